//! Reports of `fit`, `score`, `evaluate`, `models` and `demo` as text.

use std::fmt::Write as _;
use std::path::Path;

use softwood::data::{FieldKind, Schema};
use softwood::evaluate::{ModelReport, Report};
use softwood::params::{ParamKind, ParamSpec, ParamValue};

use crate::commands::{
    DemoReport, FamilyReport, FitReport, ParametersReport, Region, SavedReport, ScoreReport,
};
use crate::print::escape::line;
use crate::print::number::{duration, memory, percent, short, time};
use crate::print::training;

/// Metrics in the order in which they are printed; others follow in alphabetical order.
const ORDER: [&str; 22] = [
    "log_likelihood",
    "log_likelihood_std",
    "rmse",
    "rmse_std",
    "mae",
    "crps",
    "coverage_50",
    "coverage_90",
    "coverage_95",
    "calibration_error",
    "sharpness_90",
    "nll",
    "brier",
    "error",
    "auc",
    "ece",
    "prr_total",
    "prr_knowledge",
    "n_nodes",
    "fit_seconds",
    "predict_seconds",
    "peak_rss_bytes",
];

/// Error of a coverage that is too small to matter.
const MIN_COVERAGE_ERROR: f64 = 0.01;

/// The report of `fit`.
pub(crate) fn fit(report: &FitReport, verbose: bool) -> String {
    let task = task(report.classes.as_deref());
    let n_features = report.n_numeric + report.n_categorical;
    let mut lines = vec![
        (
            "model",
            format!("{}, {} members", report.model, report.n_members),
        ),
        ("target", format!("{} ({task})", line(&report.target))),
        ("rows", report.n_rows.to_string()),
        (
            "features",
            format!(
                "{n_features} ({} numeric, {} categorical)",
                report.n_numeric, report.n_categorical
            ),
        ),
    ];
    if !report.training.chosen.is_empty() {
        lines.push(("selected", report.training.chosen.clone()));
    }
    if let Some(validation) = training::validation(&report.training) {
        lines.push(("validation", validation));
    }
    if let Some(members) = &report.training.members
        && members.n_members > 1
    {
        let effective = format!(
            "effective number of members {:.1} of {}",
            members.effective, members.n_members
        );
        lines.push(("ensemble", effective));
    }
    if let Some(base) = &report.resumed {
        lines.push(("resumed", format!("from {}", base.display())));
    }
    lines.push(("time", duration(report.seconds)));
    lines.push(("saved to", report.file.display().to_string()));
    let mut out = aligned(&lines);
    for note in &report.notes {
        let _ = writeln!(out, "\nnote: {}", line(note));
    }
    if verbose {
        out += &training::trials(&report.training);
        out += &training::curve(&report.training);
    }
    let _ = writeln!(
        out,
        "\nNext:\n  {} predict {} NEW.csv",
        program(),
        quoted(&report.file)
    );
    out
}

/// The report of `score`.
pub(crate) fn score(report: &ScoreReport) -> String {
    let plural = if report.n_rows == 1 { "" } else { "s" };
    let mut out = format!(
        "{} on {} row{plural} of {}\n",
        report.model.display(),
        report.n_rows,
        report.data.display()
    );
    let names = in_order(report.scores.values.keys().map(String::as_str));
    let lines: Vec<_> = names
        .into_iter()
        .map(|name| (name, short(report.scores.values[name])))
        .collect();
    out += &aligned(&lines);
    if let Some(&coverage) = report.scores.values.get("coverage_90") {
        let _ = writeln!(out, "\n{}.", coverage_in_words(coverage, report.n_rows));
    }
    out
}

/// What the coverage of 90% intervals on some rows says about their width.
fn coverage_in_words(coverage: f64, n_rows: usize) -> String {
    // two standard errors of the coverage of intervals that are right
    let chance = 2.0 * (0.9 * 0.1 / n_rows as f64).sqrt();
    let verdict = if (coverage - 0.9).abs() <= chance.max(MIN_COVERAGE_ERROR) {
        "about right"
    } else if coverage < 0.9 {
        "too narrow"
    } else {
        "too wide"
    };
    format!(
        "90% intervals cover {} of the rows: {verdict}",
        percent(coverage)
    )
}

/// The report of `evaluate`: one line per metric, one column per model.
pub(crate) fn evaluate(report: &Report, verbose: bool) -> String {
    let n_folds = report.models.first().map_or(0, |model| model.folds.len());
    let folds = if n_folds == 1 {
        "1 fold".to_owned()
    } else {
        format!("mean ± standard deviation over {n_folds} folds")
    };
    let mut out = format!(
        "{}, {} rows, seed {}: {folds}\n\n",
        report.protocol, report.n_rows, report.seed
    );
    let mut head = format!("{:<20}", "");
    for model in &report.models {
        let _ = write!(head, "{:>22}", model.model);
    }
    out += head.trim_end();
    out.push('\n');
    let names = report
        .models
        .iter()
        .flat_map(|model| model.mean.keys().map(String::as_str));
    for name in in_order(names) {
        let _ = write!(out, "{:<20}", label(name));
        for model in &report.models {
            let _ = write!(out, "{:>22}", mean_and_sd(model, name));
        }
        out.push('\n');
    }
    if verbose {
        out += &selected_by_fold(&report.models);
    }
    out
}

/// The name of a metric in the text report: without the unit, if the values are printed with one.
fn label(metric: &str) -> &str {
    match metric {
        "n_nodes" => "nodes",
        "fit_seconds" => "fit time",
        "predict_seconds" => "predict time",
        "peak_rss_bytes" => "peak memory",
        other => other,
    }
}

fn mean_and_sd(model: &ModelReport, name: &str) -> String {
    let Some(&mean) = model.mean.get(name) else {
        return "-".to_owned();
    };
    let sd = model.sd.get(name).copied();
    let sd = sd.filter(|_| model.folds.len() > 1);
    if name.ends_with("_seconds") {
        return time(mean, sd);
    }
    if name.ends_with("_bytes") {
        return memory(mean, sd);
    }
    match sd {
        Some(sd) => format!("{} ± {}", short(mean), short(sd)),
        None => short(mean),
    }
}

fn selected_by_fold(models: &[ModelReport]) -> String {
    let mut out = String::new();
    for model in models {
        let _ = writeln!(out, "\nSelected by {}", model.model);
        for fold in &model.folds {
            let _ = writeln!(out, "  fold {}  {}", fold.fold, fold.chosen);
        }
    }
    out
}

/// The list of model families.
pub(crate) fn families(report: &[FamilyReport]) -> String {
    let lines: Vec<_> = report
        .iter()
        .map(|family| (family.model, family.summary.to_owned()))
        .collect();
    let next = "\n`softwood models NAME` lists the parameters of a model, `softwood models FILE` describes a model file.\n";
    aligned(&lines) + next
}

/// The parameters of a model family.
pub(crate) fn parameters(report: &ParametersReport) -> String {
    let mut out = format!(
        "{}: {}\n\nParameters, set with -p KEY=VALUE:\n",
        report.model, report.summary
    );
    for spec in &report.parameters {
        let auto = if spec.auto {
            format!(", or {}", spec.kind.unset())
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "\n  {} = {}    ({}{auto})",
            spec.name,
            default_of(spec),
            range_of(spec.kind)
        );
        let _ = writeln!(out, "      {}", spec.doc);
    }
    if report.supports_warm_start {
        out += "\nWarm start: `softwood fit DATA --resume MODEL -o MODEL` continues the training of a fitted model.\n";
    }
    out
}

fn default_of(spec: &ParamSpec) -> String {
    match &spec.default {
        ParamValue::Unset => spec.kind.unset().to_owned(),
        ParamValue::Text(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// The range of a parameter in short form; error messages about parameters have the long form.
fn range_of(kind: ParamKind) -> String {
    match kind {
        ParamKind::Float { min, max } => format!("{min} to {max}"),
        ParamKind::Int { min, max } => format!("integer, {min} to {max}"),
        ParamKind::Bool => "true or false".to_owned(),
        ParamKind::Choice { names, .. } => names.join(", "),
        ParamKind::Map { form, .. } => form.to_owned(),
        _ => String::new(),
    }
}

/// The content of a model file.
pub(crate) fn saved(report: &SavedReport) -> String {
    let lines = [
        ("file", report.file.display().to_string()),
        (
            "model",
            format!("{}, {} members", report.model, report.n_members),
        ),
        (
            "target",
            format!(
                "{} ({})",
                line(&report.schema.target),
                task(report.schema.classes())
            ),
        ),
        ("features", features(&report.schema)),
        ("selected", report.training.chosen.clone()),
    ];
    let lines: Vec<_> = lines
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .collect();
    aligned(&lines) + &training::trials(&report.training) + &training::curve(&report.training)
}

fn features(schema: &Schema) -> String {
    let name = |field: &softwood::data::Field| match &field.kind {
        FieldKind::Categorical { levels } => {
            format!("{} ({} categories)", line(&field.name), levels.len())
        }
        _ => line(&field.name).into_owned(),
    };
    let names: Vec<String> = schema.fields.iter().map(name).collect();
    names.join(", ")
}

fn task(classes: Option<&[String]>) -> String {
    match classes {
        None => "regression".to_owned(),
        Some(classes) if classes.len() <= 8 => {
            let names: Vec<_> = classes.iter().map(|class| line(class)).collect();
            format!("classification: {}", names.join(", "))
        }
        Some(classes) => format!("classification, {} classes", classes.len()),
    }
}

/// Lines of a name and a text, with the texts aligned.
pub(crate) fn aligned(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for (name, text) in lines {
        let _ = writeln!(out, "{name:<width$}{text}");
    }
    out
}

fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let place = |name: &str| {
        ORDER
            .iter()
            .position(|known| *known == name)
            .unwrap_or(ORDER.len())
    };
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| (place(name), *name));
    names.dedup();
    names
}

/// The program as it was called, so that printed commands work if it is not on the `PATH`.
pub(crate) fn program() -> String {
    match std::env::args().next() {
        Some(name) if name.contains('/') => quoted(Path::new(&name)),
        _ => "softwood".to_owned(),
    }
}

/// A path, quoted for a shell if necessary.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%,:=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The report of `demo`.
pub(crate) fn demo(report: &DemoReport) -> String {
    let mut out = format!(
        "{} fitted to {} rows of y = f(x) + noise(x) in {}: {}\n\n",
        report.model,
        report.n_train,
        duration(report.seconds),
        report.chosen
    );
    let _ = writeln!(
        out,
        "{:<38}{:>15}{:>15}",
        "test rows", "near the", "away from the"
    );
    let _ = writeln!(
        out,
        "{:<38}{:>15}{:>15}",
        "", "training rows", "training rows"
    );
    for (label, inside, outside) in demo_lines(report) {
        let _ = writeln!(out, "{label:<38}{inside:>15}{outside:>15}");
    }
    out += &demo_caveat(report);
    let _ = write!(out, "\nFiles in {}:", report.folder.display());
    for file in &report.files {
        let _ = write!(out, " {}", file.file_name().unwrap_or_default().display());
    }
    let _ = writeln!(
        out,
        "\nPlot: {}\n\nNext:",
        quoted(&report.folder.join("demo.svg"))
    );
    for line in demo_next(&report.folder) {
        let _ = writeln!(out, "  {} {line}", program());
    }
    out
}

/// What the intervals away from the training rows cover.
fn demo_caveat(report: &DemoReport) -> String {
    let coverage = report.outside.scores.values.get("coverage_90");
    let coverage = coverage.copied().unwrap_or(f64::NAN);
    let words = coverage_in_words(coverage, report.n_test);
    format!(
        "\nWhere there are no training rows nearby, {words}.\n\
         A large share of knowledge (epistemic) uncertainty in the predictive variance\n\
         marks such rows; the rest of the variance is data (aleatoric) uncertainty.\n"
    )
}

fn demo_lines(report: &DemoReport) -> Vec<(&'static str, String, String)> {
    let of = |name: &str, show: fn(f64) -> String| {
        let value =
            |region: &Region| show(region.scores.values.get(name).copied().unwrap_or(f64::NAN));
        (value(&report.inside), value(&report.outside))
    };
    let line = |label, (inside, outside)| (label, inside, outside);
    let both = |show: fn(&Region) -> String| (show(&report.inside), show(&report.outside));
    vec![
        line("log-likelihood per row", of("log_likelihood", short)),
        line(
            "  of the true distribution",
            both(|region| short(region.best_log_likelihood)),
        ),
        line("RMSE", of("rmse", short)),
        line("CRPS", of("crps", short)),
        line("coverage of 50% intervals", of("coverage_50", percent)),
        line("coverage of 90% intervals", of("coverage_90", percent)),
        line("coverage of 95% intervals", of("coverage_95", percent)),
        line(
            "share of knowledge uncertainty",
            both(|region| percent(region.knowledge_share)),
        ),
    ]
}

/// Commands to try next; they work as printed.
fn demo_next(folder: &Path) -> Vec<String> {
    let file = |name: &str| quoted(&folder.join(name));
    vec![
        format!("models {}", file("demo.softwood")),
        format!("score {} {}", file("demo.softwood"), file("test.csv")),
        format!(
            "predict {} {} -o {}",
            file("demo.softwood"),
            file("outside.csv"),
            file("predictions.csv")
        ),
        format!(
            "fit {} --target y -o {}",
            file("train.csv"),
            file("mine.softwood")
        ),
        format!(
            "evaluate {} --target y --model vst --protocol cv:3",
            file("train.csv")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::coverage_in_words;

    #[test]
    fn a_coverage_is_judged_by_its_standard_error() {
        for (coverage, n_rows, verdict) in [
            (
                0.84,
                2000,
                "90% intervals cover 84.0% of the rows: too narrow",
            ),
            (
                0.84,
                60,
                "90% intervals cover 84.0% of the rows: about right",
            ),
            (
                0.958,
                2000,
                "90% intervals cover 95.8% of the rows: too wide",
            ),
            (
                0.905,
                1_000_000,
                "90% intervals cover 90.5% of the rows: about right",
            ),
        ] {
            assert_eq!(coverage_in_words(coverage, n_rows), verdict);
        }
    }
}
