//! What was typed. What it means is in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Tree models that know what they do not know.
///
/// Fits a table's target, predicts a full distribution for every row, and splits its uncertainty into data (noise
/// that no amount of data removes) and knowledge (what the model has not seen).
#[derive(Debug, Parser)]
#[command(
    name = "softwood",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  softwood demo"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(FitArgs),
    Predict(PredictArgs),
    Score(ScoreArgs),
    Evaluate(EvaluateArgs),
    Ood(OodArgs),
    Explain(ExplainArgs),
    Models(ModelsArgs),
    Demo(DemoArgs),
}

/// Fit a model to a table and write it to a file.
///
/// The task comes from the target column: numbers make a regression, text a classification.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood fit houses.csv --target price -o houses.softwood")]
pub(crate) struct FitArgs {
    /// Table to learn from: CSV, TSV, Parquet or Arrow IPC by suffix; `-` is CSV on standard input.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// Model family; `softwood models` lists them [default: vst].
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Where the model goes.
    #[arg(short, long, value_name = "MODEL", default_value = "model.softwood")]
    pub(crate) output: PathBuf,
    /// Model file to go on from: DATA has its columns and target, and parameters that are not given stay as they were.
    /// Boosted models get `n_estimators` more trees, or as many of them as --valid asks for; `vsgbm` wants the old rows too,
    /// gets the trees that a larger `n_trees` asks for, and a short run of all. `softwood models NAME` says whether a family can go on.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["categorical", "numeric", "ignore", "task"])]
    pub(crate) resume: Option<PathBuf>,
    /// Rows for early stopping and choices, in place of a part of DATA.
    #[arg(long, value_name = "FILE")]
    pub(crate) valid: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Predict every row of a table: moments, quantiles or probabilities, and both kinds of uncertainty.
///
/// Regression: `mean`, `sd`, `data_sd`, `knowledge_sd` and quantiles, in the target's units. Classification: `label`,
/// one probability a class, and `total`, `data` and `knowledge` uncertainty in nats.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  softwood predict houses.softwood new_houses.csv -o predictions.csv"
)]
pub(crate) struct PredictArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Table with the model's columns, in any order.
    pub(crate) data: PathBuf,
    /// Where the predictions go, by suffix; `-` is CSV on standard output [default: -].
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Levels of the quantiles (regression) [default: 0.05,0.5,0.95].
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', value_parser = level)]
    pub(crate) quantiles: Vec<f64>,
    /// Draws from the predictive distribution to add to each row (regression).
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) samples: u32,
    /// Copy the columns of DATA in front of the predictions.
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Print one JSON document: the predictions, or with -o FILE what was written.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Metrics of a fitted model on labelled rows.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood score houses.softwood new_houses.csv")]
pub(crate) struct ScoreArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Table with the model's columns and the target.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Threads; 0 takes one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Fit and score models by a protocol.
#[derive(Debug, Args)]
#[command(
    after_help = "Protocols:\n  holdout:F    fit to all but a fraction F of the rows, score that fraction\n  \
    cv:K         K folds, each scored by a model of the others\n  \
    paper:F,K    hold out F as test, then K folds of the rest, each model scored on the test part\n  \
    splits:FILE  splits given by a table\n\n\
    Example:\n  softwood evaluate houses.csv --target price --model vst --protocol cv:3"
)]
pub(crate) struct EvaluateArgs {
    /// Labelled table.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// Model families to compare, separated by commas [default: vst].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// How rows are divided; see below.
    #[arg(long, value_name = "P", default_value = "holdout:0.2")]
    pub(crate) protocol: String,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// How well a model's uncertainty tells two tables apart: rows of its domain, and others.
///
/// For total, data and knowledge uncertainty: `auroc`, the probability that a row of OUT is more uncertain than one of
/// IN (0.5 is chance), and that of the best single threshold, with the threshold itself in the units of `predict`.
/// Only the model's columns are read; a target is not needed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood ood houses.softwood new_houses.csv castles.csv")]
pub(crate) struct OodArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Fresh rows of the kind that the model was fitted to; not its training rows, which it knows too well.
    #[arg(value_name = "IN")]
    pub(crate) inside: PathBuf,
    /// Rows of another kind, with the same columns.
    #[arg(value_name = "OUT")]
    pub(crate) outside: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Threads; 0 takes one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What columns are worth to a model, which of them make it unsure, and a tree as rules.
///
/// Without DATA: what the splits on each column gained in training, for models that split on columns, and the tree itself where
/// the model is a single one. With DATA, for every model: each column is shuffled in turn. How much the score falls (where
/// DATA has the target), how far predictions move, and how far knowledge uncertainty moves tell what the column is worth.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood explain houses.softwood new_houses.csv")]
pub(crate) struct ExplainArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Table with the model's columns, best of rows that it was not fitted to; with or without the target.
    pub(crate) data: Option<PathBuf>,
    /// Table of well-known rows, such as the training rows, that lend their cells in place of DATA's own: shows which
    /// columns make the rows of DATA less known than those.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub(crate) reference: Option<PathBuf>,
    /// Times that each column is shuffled.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeats: u16,
    /// Columns to show in each part of the text.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) top: u16,
    /// Where a picture of the tree goes (a model that is a single tree).
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the models, one model's parameters, or what a model file holds.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood models vst")]
pub(crate) struct ModelsArgs {
    /// A model family, or a model file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The whole tour on data with a known truth: fit, score, draw, and what to type next.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood demo --out demo")]
pub(crate) struct DemoArgs {
    /// Folder for the data, the model and the pictures; made where absent.
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub(crate) out: PathBuf,
    /// Parameter of the model, in place of its default.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Which columns play which part, and the parameters: by flags or from a file.
#[derive(Debug, Args)]
pub(crate) struct ColumnArgs {
    /// Column to predict.
    #[arg(short, long, value_name = "COL")]
    pub(crate) target: Option<String>,
    /// Parameter of the model; `softwood models NAME` lists them.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// TOML file with `target`, `model`, ... and a table `[params]`; flags win over it.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Columns to take as categories.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,
    /// Columns to take as numbers.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) numeric: Vec<String>,
    /// Columns to leave out.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    /// Column of row weights.
    #[arg(long, value_name = "COL")]
    pub(crate) weight: Option<String>,
    /// Task, where the target column's kind does not say it.
    #[arg(long)]
    pub(crate) task: Option<TaskName>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// How a text table is written.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Delimiter of CSV files: one character, or `tab`.
    #[arg(long, value_name = "C", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
}

/// Random numbers and threads.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Decides every random number [default: 0].
    #[arg(long, value_name = "N", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Threads; 0 takes one per core. The result does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
}

/// How much is printed, and in which form.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress and no report.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print what was tried and the loss curve too.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskName {
    Regression,
    Classification,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected KEY=VALUE, such as depth=4".to_owned()),
    }
}

/// The byte between the cells of a text table.
pub(crate) fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ if text.len() == 1 && !"\"\r\n".contains(text) => Ok(text.as_bytes()[0]),
        _ => Err("expected one ASCII character, or `tab`".to_owned()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn level(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        _ => Err("expected numbers between 0 and 1, such as 0.05,0.5,0.95".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn small_values_are_read() {
        assert_eq!(key_value("a = 3"), Ok(("a".to_owned(), "3".to_owned())));
        assert!(key_value("=3").is_err() && key_value("a").is_err());
        assert_eq!(delimiter("tab"), Ok(b'\t'));
        assert!(delimiter("é").is_err() && delimiter("\"").is_err());
        assert!(level("1").is_err() && level("nan").is_err());
    }
}
