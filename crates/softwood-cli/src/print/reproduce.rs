//! The list and the report of `reproduce`, as text and as Markdown.

use std::fmt::Write as _;

use crate::commands::reproduce::{
    ListedItem, Listing, MarkCounts, MissingFigure, MissingFile, ModelComparison, PairResult,
    PairRule, ReproduceReport, ReproducedMetric, ReproducedTable, SetComparison, TieRule,
};

/// The list of tables and figures.
pub(crate) fn listing(listing: &Listing) -> String {
    let mut out = String::new();
    for paper in &listing.papers {
        let _ = writeln!(out, "{}", paper.citation);
        for item in &paper.items {
            out += &listed(item);
        }
        out.push('\n');
    }
    out += "Run tables with `softwood reproduce NAME... --data DIR`; `all` runs every table, --quick a part of each.\n";
    out += "Draw figures with `softwood reproduce NAME... -o DIR`; `figures` draws every figure.\n";
    if !listing.has_data {
        out +=
            "With --data DIR or the variable SOFTWOOD_DATA, this list says which sets are there.\n";
    }
    out
}

fn listed(item: &ListedItem) -> String {
    let name = item.name.as_deref().unwrap_or("-");
    let mut out = format!("  {name:<19}{:<16}{}\n", item.place, item.title);
    let mut below = |text: &str| {
        let _ = writeln!(out, "{:37}{text}", "");
    };
    if let Some(reading) = item.reading {
        below(reading);
    }
    for need in &item.needs {
        below(need);
    }
    if let Some(n_found) = item.n_found {
        below(&format!("{n_found} of {} sets found", item.n_sets));
    }
    out
}

/// The report as text.
pub(crate) fn text(report: &ReproduceReport) -> String {
    let mut out = String::new();
    if !report.tables.is_empty() {
        let _ = writeln!(out, "{}", heading(report));
    }
    for table in &report.tables {
        let _ = writeln!(out, "\n{}: {}", table.name, table.source);
        let _ = writeln!(out, "{}", sentence(&table.title));
        for line in description(table) {
            let _ = writeln!(out, "{line}");
        }
        for metric in &table.metrics {
            for model in &metric.models {
                out += &text_block(metric, model);
            }
        }
        for line in pair_lines(&table.pairs) {
            let _ = writeln!(out, "\n{line}");
        }
        for line in remarks(table) {
            let _ = writeln!(out, "\n{line}");
        }
    }
    for MissingFigure { figure, file } in &report.left_out {
        let _ = writeln!(
            out,
            "{figure}: not drawn, because there is no table `{file}` (.parquet, .csv, ...) in the data directory."
        );
    }
    for file in &report.figures {
        let _ = writeln!(out, "Written: {}", file.display());
    }
    if let Some(file) = &report.file {
        let _ = writeln!(out, "\nWritten: {}", file.display());
    }
    out
}

fn text_block(metric: &ReproducedMetric, model: &ModelComparison) -> String {
    let mut out = format!("\n{}\n", block_title(metric, model));
    let cells = block_cells(metric, model, "");
    let width = |column: usize| {
        let widths = cells.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let n_columns = cells.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    for line in &cells {
        let mut text = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(text, "{cell:<width$}   ");
        }
        let _ = writeln!(out, "  {}", text.trim_end());
    }
    let _ = writeln!(out, "  {}", count_line(model));
    out
}

/// The report as Markdown.
pub(crate) fn markdown(report: &ReproduceReport) -> String {
    let names: Vec<&str> = report.tables.iter().map(|table| &*table.name).collect();
    let quick = if report.quick { " --quick" } else { "" };
    let splits = report.splits.map(|n| format!(" --splits {n}"));
    let seed = Some(report.seed).filter(|&seed| seed != 0);
    let seed = seed.map(|seed| format!(" --seed {seed}"));
    let mut out = format!(
        "# Published tables and ours\n\n{} Command: `softwood reproduce {}{quick}{}{} --data DIR`.\n",
        heading(report),
        names.join(" "),
        splits.unwrap_or_default(),
        seed.unwrap_or_default()
    );
    for table in &report.tables {
        let _ = writeln!(out, "\n## `{}`: {}\n", table.name, table.source);
        let mut lines = vec![sentence(&table.title)];
        lines.extend(description(table));
        let _ = writeln!(out, "{}", lines.join(" "));
        for metric in &table.metrics {
            for model in &metric.models {
                let _ = writeln!(out, "\n### {}\n", block_title(metric, model));
                out += &markdown_block(metric, model);
                let _ = writeln!(out, "\n{}", count_line(model));
            }
        }
        for line in pair_lines(&table.pairs).into_iter().chain(remarks(table)) {
            let _ = writeln!(out, "\n{line}");
        }
    }
    out
}

fn markdown_block(metric: &ReproducedMetric, model: &ModelComparison) -> String {
    let mut out = String::new();
    for (at, line) in block_cells(metric, model, "**").iter().enumerate() {
        let _ = writeln!(out, "| {} |", line.join(" | "));
        if at == 0 {
            let _ = writeln!(out, "|{}", "---|".repeat(line.len()));
        }
    }
    out
}

fn heading(report: &ReproduceReport) -> String {
    let quick = if report.quick {
        "; a quick run: fewer splits, smaller models and no large sets, as each table says"
    } else {
        ""
    };
    format!(
        "softwood {}, {}, {}, seed {}{quick}. Ours and the paper's are mean ± standard deviation over splits.",
        report.version, report.date, report.machine, report.seed
    )
}

/// Protocol, number of splits, parameters, and the rule of the marks.
fn description(table: &ReproducedTable) -> Vec<String> {
    let rule = match table.rule {
        TieRule::Mean => "the better mean wins; equal as printed is a tie",
        TieRule::Overlap => "overlapping error bars (one standard deviation) are a tie",
        TieRule::TTest => {
            "a tie if a t-test of our splits against the paper's mean is not significant (5%), or if both are \
             equal as printed; a single split is compared by its value"
        }
    };
    vec![
        format!(
            "Protocol: {}, at most {} splits of a set.",
            table.protocol, table.n_splits
        ),
        format!(
            "Models: {}; other parameters are defaults.",
            table.models.join("; ")
        ),
        format!("Marks: {rule}."),
    ]
}

fn block_title(metric: &ReproducedMetric, model: &ModelComparison) -> String {
    let unit = if metric.unit.is_empty() {
        String::new()
    } else {
        format!(" in {}", metric.unit)
    };
    let direction = match metric.truth {
        Some(truth) => format!("nearer to {truth}"),
        None if metric.higher_is_better => "higher".to_owned(),
        None => "lower".to_owned(),
    };
    format!(
        "{}: {}{unit} ({direction} is better)",
        model.model, metric.name
    )
}

/// The head and a line for each set; `strong` stands around wins.
fn block_cells(
    metric: &ReproducedMetric,
    model: &ModelComparison,
    strong: &str,
) -> Vec<Vec<String>> {
    let has_rows = model.sets.iter().any(|set| set.paper.is_some());
    let mut head = vec!["set".to_owned(), "splits".to_owned(), "ours".to_owned()];
    if has_rows {
        head.extend([model.rows.join(" or "), "mark".to_owned()]);
    }
    head.extend(["best of the paper", "row", "mark"].map(str::to_owned));
    let mut lines = vec![head];
    for set in &model.sets {
        lines.push(set_cells(metric, set, has_rows, strong));
    }
    lines
}

fn set_cells(
    metric: &ReproducedMetric,
    set: &SetComparison,
    has_rows: bool,
    strong: &str,
) -> Vec<String> {
    let digits = metric.digits;
    let figure = |mean: f64, sd: Option<f64>| match sd {
        Some(sd) => format!("{mean:.digits$} ± {sd:.digits$}"),
        None => format!("{mean:.digits$}"),
    };
    let word = |mark: &'static str| match mark {
        "win" => format!("{strong}win{strong}"),
        other => other.to_owned(),
    };
    let sd = Some(set.sd).filter(|_| set.n_splits > 1);
    let mut cells = vec![
        set.set.clone(),
        set.n_splits.to_string(),
        figure(set.mean, sd),
    ];
    if has_rows {
        let paper = set.paper.as_ref();
        let missing = || "-".to_owned();
        cells.push(paper.map_or_else(missing, |paper| figure(paper.mean, paper.sd)));
        cells.push(paper.map_or_else(missing, |paper| word(paper.mark.word())));
    }
    if let Some(best) = &set.best {
        cells.push(figure(best.mean, best.sd));
        cells.push(best.row.clone());
        cells.push(word(best.mark.word()));
    }
    cells
}

fn count_line(model: &ModelComparison) -> String {
    let counts = |counts: &MarkCounts| {
        let MarkCounts { wins, ties, losses } = counts;
        format!("{wins} wins, {ties} ties, {losses} losses")
    };
    let best = format!(
        "against the best of the paper {}",
        counts(&model.counts_of_best)
    );
    if model.rows.is_empty() {
        return format!("{}: {best}.", model.model);
    }
    format!("{}: {}; {best}.", model.model, counts(&model.counts))
}

/// One line for each metric and pair of our models.
fn pair_lines(pairs: &[PairResult]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut groups: Vec<(&String, &String)> = Vec::new();
    for pair in pairs {
        let group = (&pair.metric, &pair.second);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (metric, second) in groups {
        let own: Vec<&PairResult> = pairs
            .iter()
            .filter(|pair| pair.metric == *metric && pair.second == *second)
            .collect();
        let Some(pair) = own.first() else { continue };
        let count = |name: Option<&String>| {
            own.iter()
                .filter(|pair| pair.better.as_ref() == name)
                .count()
        };
        let test = match pair.rule {
            PairRule::PairedT => "paired t-test over splits",
            PairRule::FiveByTwoF => "5x2 cv F test",
        };
        lines.push(format!(
            "Ours, {metric}: {} better than {second} on {} sets, worse on {}, no difference on {} ({test}, 5%).",
            pair.first,
            count(Some(&pair.first)),
            count(Some(&pair.second)),
            count(None)
        ));
    }
    lines
}

/// Missing files, sets that were left out, and the notes of the table.
fn remarks(table: &ReproducedTable) -> Vec<String> {
    let mut lines: Vec<String> = table
        .missing
        .iter()
        .map(|file| missing(file, &table.name))
        .collect();
    if !table.left_out.is_empty() {
        let sets = table.left_out.join(", ");
        lines.push(format!("Left out of the quick run for their size: {sets}."));
    }
    lines.extend(table.notes.iter().map(|note| format!("Note: {note}")));
    lines
}

fn missing(file: &MissingFile, table: &str) -> String {
    let MissingFile { set, file, source } = file;
    let source = source
        .as_ref()
        .map_or_else(String::new, |source| format!(" Source: {source}."));
    format!(
        "{set}: there is no table `{file}` (.parquet, .csv, ...) in the data directory. With it, \
         `softwood reproduce {table} --data DIR` runs the set.{source}"
    )
}

/// The text with a capital first letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
