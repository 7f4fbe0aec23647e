//! The report of `ood` as text: one line per kind of uncertainty.

use std::fmt::Write as _;

use crate::commands::OodReport;
use crate::print::number::short;

pub(crate) fn text(report: &OodReport) -> String {
    let found = &report.found;
    let mut out = format!(
        "{}: {} in-domain rows of {} (in), {} other rows of {} (out)\n\n",
        report.model.display(),
        found.n_in,
        report.inside.display(),
        found.n_out,
        report.outside.display()
    );
    let head = ["AUROC", "bal. acc.", "threshold", "median in", "median out"];
    out += &line("uncertainty", &head.map(str::to_owned));
    for (name, part) in [
        ("total", &found.total),
        ("data", &found.data),
        ("knowledge", &found.knowledge),
    ] {
        let numbers = [
            part.auroc,
            part.one_split_auroc,
            part.threshold.unwrap_or(f64::NAN),
            part.median_in,
            part.median_out,
        ];
        out += &line(name, &numbers.map(short));
    }
    let _ = writeln!(
        out,
        "\nAUROC: probability that a row of (out) is more uncertain than a row of (in).\n\
         bal. acc.: balanced accuracy of the best threshold, with (out) on either side.\n\
         threshold, medians: {}.",
        report.unit
    );
    for note in &report.notes {
        let _ = writeln!(out, "\nnote: {}", crate::print::escape::line(note));
    }
    out
}

fn line(name: &str, cells: &[String]) -> String {
    let mut out = format!("{name:<12}");
    for cell in cells {
        let _ = write!(out, "{cell:>12}");
    }
    out.push('\n');
    out
}
