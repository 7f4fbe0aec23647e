//! The report of `explain` as text: a section a question, a line a column, the weightiest first.

use std::fmt::Write as _;

use softwood::{ColumnImportance, Estimate, Importances};

use crate::commands::ExplainReport;
use crate::print::number::{percent, short};
use crate::print::text::{program, quoted};

/// Letters of a column's name that are shown.
const NAME: usize = 20;
/// What was not measured.
const NOTHING: Estimate = Estimate {
    mean: f64::NAN,
    se: None,
};
/// Letters of the longest bar.
const BAR: f64 = 15.0;

/// A line of a section: the column's name, its figures, and how long its bar is.
struct Line<'a> {
    name: &'a str,
    figures: String,
    weight: f64,
}

pub(crate) fn text(report: &ExplainReport, top: usize) -> String {
    let mut out = format!("{} ({})\n", report.model.display(), report.family);
    if let Some(gains) = &report.gains {
        out += "\nGain: part of what all splits took off the loss in training\n";
        let lines = gains.iter().map(|gain| Line {
            name: &gain.column,
            figures: format!("{:>7}", percent(gain.gain)),
            weight: gain.gain,
        });
        out += &section(lines.collect(), top);
    }
    if let Some(found) = &report.importances {
        out += &importances(report, found, top);
    }
    if let Some(tree) = &report.tree {
        let _ = write!(out, "\nTree\n{}", indented(&tree.text()));
    }
    if let Some(svg) = &report.svg {
        let _ = writeln!(out, "\nwritten  {}", svg.display());
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nnote: {note}");
    }
    if report.importances.is_none() {
        let _ = writeln!(
            out,
            "\nNext, what columns are worth on rows, and which make the model unsure:\n  {} explain {} DATA.csv",
            program(),
            quoted(&report.model)
        );
    }
    out
}

fn importances(report: &ExplainReport, found: &Importances, top: usize) -> String {
    let is_regression = report.classes.is_none();
    let mut out = shuffles(report, found);
    if let (Some(likelihood), Some(error)) = (found.log_likelihood, found.error) {
        let name = if is_regression { "RMSE" } else { "error" };
        let _ = writeln!(
            out,
            "\nScore: by how much a row's log-likelihood falls and the {name} rises\n(now {} and {})",
            short(likelihood),
            short(error)
        );
        out += &measures(found, top, |column| {
            let [fall, rise] = [column.log_likelihood_fall, column.error_rise]
                .map(|found| found.unwrap_or(NOTHING));
            (vec![fall, rise], fall.mean)
        });
    }
    out += if is_regression {
        "\nPrediction: how far a row's mean moves, in the target's units\n"
    } else {
        "\nPrediction: probability that moves from one class to another, of 1\n"
    };
    out += &measures(found, top, |column| {
        (
            vec![column.prediction_change],
            column.prediction_change.mean,
        )
    });
    let unit = if is_regression {
        "sd, in the target's units"
    } else {
        "mutual information, in nats"
    };
    let _ = writeln!(
        out,
        "\nKnowledge: how far a row's knowledge uncertainty moves, and with its sign\n({unit}; now {} on average)",
        short(found.knowledge)
    );
    let is_lent = found.n_reference_rows.is_some();
    out += &measures(found, top, |column| {
        let shift = column.knowledge_shift;
        let weight = if is_lent {
            -shift.mean
        } else {
            column.knowledge_change.mean
        };
        (vec![column.knowledge_change, shift], weight)
    });
    out += if is_lent {
        "Below zero: with cells of the reference the model would be surer; the column's\nown cells are what makes it unsure.\n"
    } else {
        "The further it moves, the more being sure or unsure hangs on the column.\n"
    };
    out
}

fn shuffles(report: &ExplainReport, found: &Importances) -> String {
    let path = |path: &Option<std::path::PathBuf>| {
        path.as_ref()
            .map_or_else(String::new, |path| path.display().to_string())
    };
    let times = match found.repeats {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let how = match found.n_reference_rows {
        None => format!("each column shuffled {times}"),
        Some(n) => format!(
            "cells lent {times} by {n} rows of {}",
            path(&report.reference)
        ),
    };
    let error = if found.repeats > 1 {
        " (± standard error)"
    } else {
        ""
    };
    format!(
        "\n{} rows of {}, {how}{error}\n",
        found.n_rows,
        path(&report.data)
    )
}

/// A section of measured figures, with what decides the order and the bar.
fn measures(
    found: &Importances,
    top: usize,
    of: impl Fn(&ColumnImportance) -> (Vec<Estimate>, f64),
) -> String {
    let lines = found.columns.iter().map(|column| {
        let (measured, weight) = of(column);
        let figures = measured.iter().map(with_error).collect();
        Line {
            name: &column.column,
            figures,
            weight,
        }
    });
    section(lines.collect(), top)
}

fn with_error(measured: &Estimate) -> String {
    match measured.se {
        Some(se) => format!("{:>10} ± {:<7}", short(measured.mean), brief(se)),
        None => format!("{:>10}", short(measured.mean)),
    }
}

/// Two digits are enough for an error.
fn brief(se: f64) -> String {
    if se == 0.0 {
        return "0".to_owned();
    }
    let power = se.log10().floor();
    if !(-3.0..4.0).contains(&power) {
        return format!("{se:.0e}");
    }
    format!("{se:.*}", (1.0 - power).max(0.0) as usize)
}

fn section(mut lines: Vec<Line<'_>>, top: usize) -> String {
    lines.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.name.cmp(b.name)));
    let width = lines.iter().map(|line| line.name.chars().count()).max();
    let width = width.unwrap_or(0).min(NAME);
    let longest = lines.first().map_or(0.0, |line| line.weight);
    let mut out = String::new();
    for line in lines.iter().take(top) {
        let bar = bar(line.weight / longest);
        let text = format!("  {:<width$} {}  {bar}", cut(line.name), line.figures);
        let _ = writeln!(out, "{}", text.trim_end());
    }
    if lines.len() > top {
        let _ = writeln!(
            out,
            "  and {} more (--top {})",
            lines.len() - top,
            lines.len()
        );
    }
    out
}

fn bar(share: f64) -> String {
    let eighths = (8.0 * BAR * share).round();
    // not a number where all weights are zero
    if eighths.is_nan() || eighths < 1.0 {
        return String::new();
    }
    let (whole, part) = (eighths as usize / 8, eighths as usize % 8);
    let mut bar = "█".repeat(whole);
    bar.extend(
        ["▏", "▎", "▍", "▌", "▋", "▊", "▉"]
            .get(part.wrapping_sub(1))
            .copied(),
    );
    bar
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME - 1).chain(['…']).collect()
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["  ", line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::{Condition, ExportNode, ExportSplit, LeafValue, TreeExport};

    fn report() -> ExplainReport {
        let measured = |mean: f64| Estimate {
            mean,
            se: Some(0.012_34 * mean.abs()),
        };
        let column = |name: &str, size: f64| ColumnImportance {
            column: name.to_owned(),
            log_likelihood_fall: Some(measured(size)),
            error_rise: Some(measured(12.0 * size)),
            prediction_change: measured(30.0 * size),
            knowledge_change: measured(0.01 * size),
            knowledge_shift: measured(-0.001 * size),
        };
        let columns = vec![
            column("a column whose name goes on and on", 0.02),
            column("area", 1.234),
            column("nothing", 0.0),
        ];
        ExplainReport {
            model: "m.softwood".into(),
            family: "vst".to_owned(),
            target: "y".to_owned(),
            classes: None,
            data: Some("rows.csv".into()),
            reference: None,
            gains: None,
            importances: Some(Importances {
                n_rows: 200,
                n_reference_rows: None,
                repeats: 5,
                log_likelihood: Some(-4.25),
                error: Some(12.5),
                knowledge: 1.5,
                columns,
            }),
            tree: None,
            svg: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn weightiest_columns_come_first_and_lines_stay_short() {
        let text = text(&report(), 2);
        insta::assert_snapshot!(text, @r"
    m.softwood (vst)

    200 rows of rows.csv, each column shuffled 5 times (± standard error)

    Score: by how much a row's log-likelihood falls and the RMSE rises
    (now -4.250 and 12.50)
      area                      1.234 ± 0.015       14.81 ± 0.18     ███████████████
      a column whose name…     0.0200 ± 2e-4       0.2400 ± 0.0030   ▎
      and 1 more (--top 3)

    Prediction: how far a row's mean moves, in the target's units
      area                      37.02 ± 0.46     ███████████████
      a column whose name…     0.6000 ± 0.0074   ▎
      and 1 more (--top 3)

    Knowledge: how far a row's knowledge uncertainty moves, and with its sign
    (sd, in the target's units; now 1.500 on average)
      area                     0.0123 ± 2e-4      -0.0012 ± 2e-5     ███████████████
      a column whose name…     0.0002 ± 2e-6    -2.000e-5 ± 2e-7     ▎
      and 1 more (--top 3)
    The further it moves, the more being sure or unsure hangs on the column.
    ");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn a_tree_is_shown_as_rules() {
        let node = |weight: f64, mean: f64| ExportNode {
            weight,
            answer: LeafValue::Number { mean, sd: 1.0 },
            split: None,
        };
        let mut root = node(10.0, 2.0);
        root.split = Some(ExportSplit {
            column: "area".to_owned(),
            question: Condition::Above(3.5),
            missing_right: true,
            gain: 0.5,
            children: [1, 2],
        });
        let tree = TreeExport {
            target: "y".to_owned(),
            classes: None,
            nodes: vec![root, node(4.0, 1.0), node(6.0, 3.0)],
        };
        let report = ExplainReport {
            importances: None,
            tree: Some(tree),
            svg: Some("tree.svg".into()),
            ..report()
        };
        insta::assert_snapshot!(text(&report, 20).split("\nNext").next().unwrap(), @r"
    m.softwood (vst)

    Tree
      y: 2 ± 1, 10 rows
      ├─ area <= 3.5: 1 ± 1, 4 rows
      └─ area > 3.5 or missing: 3 ± 1, 6 rows

    written  tree.svg
    ");
    }

    #[test]
    fn bars_are_as_long_as_their_shares() {
        let lengths = [0.0, 0.5, 1.0, f64::NAN, -1.0].map(|share| bar(share).chars().count());
        assert_eq!(lengths, [0, 8, 15, 0, 0]);
        assert_eq!(bar(0.01), "▏");
    }
}
