//! The report of `explain` as text: one section per importance measure, one line per column, the
//! most important column first.

use std::fmt::Write as _;

use softwood::explain::{ColumnImportance, Estimate, Importances, StructurePosterior};

use crate::commands::ExplainReport;
use crate::print::escape;
use crate::print::number::{percent, short};
use crate::print::text::{program, quoted};

/// Longest column name that is printed in full, in characters.
const MAX_NAME: usize = 20;
/// Estimate of a measure that is not available.
const NOT_AVAILABLE: Estimate = Estimate::new(f64::NAN, None);
/// Smallest probability of a structure that is printed.
const MIN_PROBABILITY: f64 = 0.01;
/// Largest number of nodes whose split probabilities are printed.
const MAX_NODES: usize = 15;
/// Length of the longest bar, in characters.
const BAR_LENGTH: f64 = 15.0;
/// Values below this fraction of the largest value in their column are rounding errors, printed as
/// 0.
const ZERO: f64 = 1e-12;

/// A line of a section: the name of a column, its figures as text, and the value that decides its
/// rank and the length of its bar.
struct Line<'a> {
    name: &'a str,
    figures: String,
    importance: f64,
}

pub(crate) fn text(report: &ExplainReport, top: usize) -> String {
    let mut out = format!("{} ({})\n", report.model.display(), report.family);
    if let Some(gains) = &report.gains {
        out += "\nGain importance: share of the total loss reduction in training\n";
        let lines = gains.iter().map(|gain| Line {
            name: &gain.column,
            figures: format!("{:>7}", percent(gain.gain)),
            importance: gain.gain,
        });
        out += &section(lines.collect(), top);
    }
    if let Some(found) = &report.importances {
        out += &importances(report, found, top);
    }
    if let Some(found) = &report.structure {
        out += &structure(found);
    }
    if let Some(tree) = &report.tree {
        let title = match &report.structure {
            Some(found) if found.n_fits > 1 => "Most probable tree of the first fit",
            Some(_) => "Most probable tree",
            None => "Tree",
        };
        let _ = write!(out, "\n{title}\n{}", indented(&tree.text()));
    }
    if let Some(svg) = &report.svg {
        let _ = writeln!(out, "\nsaved to  {}", svg.display());
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nnote: {}", escape::line(note));
    }
    if report.importances.is_none() {
        let _ = writeln!(
            out,
            "\nNext, permutation importance for predictions and knowledge uncertainty:\n  {} explain {} DATA.csv",
            program(),
            quoted(&report.model)
        );
    }
    out
}

/// Probabilities of depth, number of leaves and splits.
fn structure(found: &StructurePosterior) -> String {
    let mut out = match found.n_fits {
        1 => "\nPosterior over the structure of the tree\n".to_owned(),
        n => format!("\nPosterior over the structure of the tree (mean of {n} fits)\n"),
    };
    for (name, probabilities, first) in [("depth", &found.depth, 0), ("leaves", &found.n_leaves, 1)]
    {
        let shown = probabilities.iter().enumerate();
        let shown = shown.filter(|(_, p)| **p >= MIN_PROBABILITY);
        let shown = shown.map(|(at, &p)| format!("{}: {}", at + first, percent(p).trim()));
        let _ = writeln!(out, "  {name:<7} {}", shown.collect::<Vec<_>>().join(", "));
    }
    let nodes = found.nodes.iter();
    let nodes = nodes.filter(|node| node.exists * node.splits >= MIN_PROBABILITY);
    let nodes: Vec<String> = nodes
        .take(MAX_NODES)
        .map(|node| format!("{}: {}", node.node, percent(node.splits).trim()))
        .collect();
    let _ = writeln!(
        out,
        "  splits  {}\n          (probability that a node splits if it exists; 1 is the root, 2 i and 2 i + 1\n          are the children of node i)",
        if nodes.is_empty() {
            "none".to_owned()
        } else {
            nodes.join(", ")
        }
    );
    out
}

fn importances(report: &ExplainReport, found: &Importances, top: usize) -> String {
    let is_regression = report.classes.is_none();
    let mut out = method(report, found);
    if let (Some(likelihood), Some(error)) = (found.log_likelihood, found.error) {
        let name = if is_regression { "RMSE" } else { "error" };
        let _ = writeln!(
            out,
            "\nPermutation importance: decrease of the log-likelihood per row, increase of\nthe {name} (baseline: log-likelihood {}, {name} {})",
            short(likelihood),
            short(error)
        );
        out += &measures(found, top, |column| {
            let [decrease, increase] = [column.log_likelihood_fall, column.error_rise]
                .map(|estimate| estimate.unwrap_or(NOT_AVAILABLE));
            (vec![decrease, increase], decrease.mean)
        });
    }
    out += if is_regression {
        "\nPrediction: mean absolute change of the predicted mean (units of the target)\n"
    } else {
        "\nPrediction: mean total variation distance of the class probabilities\n"
    };
    out += &measures(found, top, |column| {
        (
            vec![column.prediction_change],
            column.prediction_change.mean,
        )
    });
    let unit = if is_regression {
        "standard deviation in units of the target"
    } else {
        "mutual information in nats"
    };
    let _ = writeln!(
        out,
        "\nKnowledge (epistemic) uncertainty: mean absolute change, mean signed change\n({unit}; baseline {})",
        short(found.knowledge)
    );
    let has_reference = found.n_reference_rows.is_some();
    out += &measures(found, top, |column| {
        let shift = column.knowledge_shift;
        let importance = if has_reference {
            -shift.mean
        } else {
            column.knowledge_change.mean
        };
        (vec![column.knowledge_change, shift], importance)
    });
    out += if has_reference {
        "Negative signed change: with values from the reference rows the knowledge\nuncertainty is lower, so the values of this column raise it.\n"
    } else {
        "The larger the change, the more the knowledge uncertainty depends on the column.\n"
    };
    out
}

/// The rows and the way in which their values were replaced.
fn method(report: &ExplainReport, found: &Importances) -> String {
    let path = |path: &Option<std::path::PathBuf>| {
        path.as_ref()
            .map_or_else(String::new, |path| path.display().to_string())
    };
    let times = match found.repeats {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let how = match found.n_reference_rows {
        None => format!("each column permuted {times}"),
        Some(n) => format!(
            "each column replaced {times} by\nvalues from {n} rows of {}",
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

/// A section of estimates. `of` gives the estimates of a column, and the value that decides its
/// rank and the length of its bar.
fn measures(
    found: &Importances,
    top: usize,
    of: impl Fn(&ColumnImportance) -> (Vec<Estimate>, f64),
) -> String {
    let columns: Vec<_> = found.columns.iter().map(of).collect();
    let n_estimates = columns.first().map_or(0, |(estimates, _)| estimates.len());
    let largest = |at: usize| {
        let means = columns
            .iter()
            .map(|(estimates, _)| estimates[at].mean.abs());
        means.fold(0.0, f64::max)
    };
    let zeros: Vec<f64> = (0..n_estimates).map(|at| ZERO * largest(at)).collect();
    let lines = found.columns.iter().zip(&columns);
    let lines = lines.map(|(column, (estimates, importance))| Line {
        name: &column.column,
        figures: estimates
            .iter()
            .zip(&zeros)
            .map(|(estimate, &zero)| with_error(estimate, zero))
            .collect(),
        importance: *importance,
    });
    section(lines.collect(), top)
}

/// An estimate with its standard error; values below `zero` are printed as 0.
fn with_error(estimate: &Estimate, zero: f64) -> String {
    let or_zero = |value: f64, show: fn(f64) -> String| {
        if value.abs() < zero || value == 0.0 {
            "0".to_owned()
        } else {
            show(value)
        }
    };
    let mean = or_zero(estimate.mean, short);
    match estimate.se {
        Some(se) => format!("{mean:>10} ± {:<7}", or_zero(se, two_digits)),
        None => format!("{mean:>10}"),
    }
}

/// A standard error with two significant digits, or one in scientific notation.
fn two_digits(se: f64) -> String {
    let power = se.log10().floor();
    if !(-3.0..4.0).contains(&power) {
        return format!("{se:.0e}");
    }
    format!("{se:.*}", (1.0 - power).max(0.0) as usize)
}

/// The lines of a section, the most important first, at most `top` of them.
fn section(mut lines: Vec<Line<'_>>, top: usize) -> String {
    lines.sort_by(|a, b| {
        b.importance
            .total_cmp(&a.importance)
            .then(a.name.cmp(b.name))
    });
    let width = lines.iter().map(|line| line.name.chars().count()).max();
    let width = width.unwrap_or(0).min(MAX_NAME);
    let largest = lines.first().map_or(0.0, |line| line.importance);
    let mut out = String::new();
    for line in lines.iter().take(top) {
        let bar = bar(line.importance / largest);
        let text = format!(
            "  {:<width$} {}  {bar}",
            shorten(&escape::line(line.name)),
            line.figures
        );
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

/// A bar whose length is a fraction of the longest bar.
fn bar(fraction: f64) -> String {
    let eighths = (8.0 * BAR_LENGTH * fraction).round();
    // NaN if all importances are zero
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

/// The name, shortened if it is too long.
fn shorten(name: &str) -> String {
    if name.chars().count() <= MAX_NAME {
        return name.to_owned();
    }
    name.chars().take(MAX_NAME - 1).chain(['…']).collect()
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["  ", line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::explain::{Condition, ExportNode, ExportSplit, LeafValue, TreeExport};

    fn report() -> ExplainReport {
        let estimate = |mean: f64| Estimate::new(mean, Some(0.012_34 * mean.abs()));
        let column = |name: &str, size: f64| {
            let changes = [30.0, 0.01, -0.001].map(|factor| estimate(factor * size));
            let [prediction, knowledge, shift] = changes;
            let mut column = ColumnImportance::new(name.to_owned(), prediction, knowledge, shift);
            column.log_likelihood_fall = Some(estimate(size));
            column.error_rise = Some(estimate(12.0 * size));
            column
        };
        let columns = vec![
            column("a column whose name goes on and on", 0.02),
            column("area", 1.234),
            column("nothing", 0.0),
        ];
        let mut importances = Importances::new(200, 5, 1.5, columns);
        importances.log_likelihood = Some(-4.25);
        importances.error = Some(12.5);
        ExplainReport {
            model: "m.softwood".into(),
            family: "vst".to_owned(),
            target: "y".to_owned(),
            classes: None,
            data: Some("rows.csv".into()),
            reference: None,
            gains: None,
            importances: Some(importances),
            tree: None,
            structure: None,
            svg: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_most_important_columns_come_first_and_lines_stay_short() {
        let text = text(&report(), 2);
        insta::assert_snapshot!(text, @r"
    m.softwood (vst)

    200 rows of rows.csv, each column permuted 5 times (± standard error)

    Permutation importance: decrease of the log-likelihood per row, increase of
    the RMSE (baseline: log-likelihood -4.250, RMSE 12.50)
      area                      1.234 ± 0.015       14.81 ± 0.18     ███████████████
      a column whose name…     0.0200 ± 2e-4       0.2400 ± 0.0030   ▎
      and 1 more (--top 3)

    Prediction: mean absolute change of the predicted mean (units of the target)
      area                      37.02 ± 0.46     ███████████████
      a column whose name…     0.6000 ± 0.0074   ▎
      and 1 more (--top 3)

    Knowledge (epistemic) uncertainty: mean absolute change, mean signed change
    (standard deviation in units of the target; baseline 1.500)
      area                     0.0123 ± 2e-4      -0.0012 ± 2e-5     ███████████████
      a column whose name…     0.0002 ± 2e-6    -2.000e-5 ± 2e-7     ▎
      and 1 more (--top 3)
    The larger the change, the more the knowledge uncertainty depends on the column.
    ");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn rounding_errors_are_printed_as_zero() {
        let mut report = report();
        let columns = &mut report.importances.as_mut().unwrap().columns;
        columns[2].error_rise = Some(Estimate::new(2.776e-18, Some(3e-17)));
        let text = text(&report, 3);
        let line = text.lines().find(|line| line.contains("nothing")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["nothing", "0", "±", "0", "0", "±", "0"]);
    }

    #[test]
    fn a_tree_is_printed_as_rules() {
        let node =
            |weight: f64, mean: f64| ExportNode::new(weight, LeafValue::Number { mean, sd: 1.0 });
        let mut root = node(10.0, 2.0);
        let mut split = ExportSplit::new("area".to_owned(), Condition::Above(3.5), [1, 2]);
        split.missing_right = true;
        root.split = Some(split);
        let nodes = vec![root, node(4.0, 1.0), node(6.0, 3.0)];
        let tree = TreeExport::new("y".to_owned(), None, nodes);
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

    saved to  tree.svg
    ");
    }

    #[test]
    fn bars_are_proportional() {
        let lengths = [0.0, 0.5, 1.0, f64::NAN, -1.0].map(|fraction| bar(fraction).chars().count());
        assert_eq!(lengths, [0, 8, 15, 0, 0]);
        assert_eq!(bar(0.01), "▏");
    }
}
