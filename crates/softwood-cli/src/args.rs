//! Command-line arguments as clap parses them, and their help texts. The commands are in
//! `commands`.

mod bandit;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use softwood::data::Schema;
use softwood::decide::causal::{CausalMethod, EffectScope};
use softwood_io::{ReadLimits, ReadOptions};

use crate::commands::reproduce;

pub(crate) use bandit::{BanditArgs, PoolingName};

/// Tree models with predictive uncertainty.
///
/// Fits a model to a table and predicts a full distribution for every row. The uncertainty is split
/// into data (aleatoric) uncertainty, noise that more training rows would not remove, and knowledge
/// (epistemic) uncertainty, which is usually larger for rows unlike the training rows.
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
    Bandit(BanditArgs),
    Explain(ExplainArgs),
    Causal(CausalArgs),
    Models(ModelsArgs),
    Reproduce(ReproduceArgs),
    Demo(DemoArgs),
}

/// Fit a model to a table and write it to a file.
///
/// A numeric target means regression, a text or boolean target classification; --task overrides
/// that. Dates are numbers: seconds since 1970-01-01 UTC. The index column of a pandas frame is left
/// out unless it is declared with --numeric or --categorical.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood fit train.csv --target price -o model.softwood")]
pub(crate) struct FitArgs {
    /// Training table: CSV, TSV, Parquet or Arrow IPC by suffix; `-` is CSV on standard input.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// Model family; `softwood models` lists them [default: vst].
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Model file to write.
    #[arg(short, long, value_name = "MODEL", default_value = "model.softwood")]
    pub(crate) output: PathBuf,
    /// Model file to continue training from (warm start).
    ///
    /// DATA must have the features and the target of that model; parameters that are not given keep
    /// their values. `sgb` and `sglb` add `n_estimators` trees, or fewer with early stopping on
    /// --valid. `vsgbm` needs the previous training rows in DATA too, adds trees up to the new
    /// `n_trees`, and then trains all trees together for a few epochs. `softwood models NAME` says
    /// whether a family supports warm start.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["categorical", "numeric", "ignore", "task"])]
    pub(crate) resume: Option<PathBuf>,
    /// Validation set for early stopping and model selection (default: a part of DATA).
    #[arg(long, value_name = "FILE")]
    pub(crate) valid: Option<PathBuf>,
    /// Stop the fit after this time and keep the best model so far.
    ///
    /// Reading DATA does not count. The model of a stopped fit may have fewer members or trees than
    /// its parameters say, and differs from run to run.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time_limit: Option<Duration>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Predict the distribution of every row of a table, with data and knowledge uncertainty.
///
/// Regression: columns `mean`, `sd`, `data_sd` (data or aleatoric uncertainty), `knowledge_sd`
/// (knowledge or epistemic uncertainty) and quantiles, in the units of the target. Classification:
/// `label`, the probability `p_CLASS` of each class, and `total`, `data` (aleatoric) and
/// `knowledge` (epistemic) uncertainty in nats.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood predict model.softwood test.csv -o predictions.csv")]
pub(crate) struct PredictArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Table with the features of the model, in any column order.
    pub(crate) data: PathBuf,
    /// Output table, format by suffix; `-` is CSV on standard output [default: -].
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Quantile levels (regression) [default: 0.05,0.5,0.95].
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', value_parser = level)]
    pub(crate) quantiles: Vec<f64>,
    /// Samples from the predictive distribution of each row, as columns `sample_1`, ...
    /// (regression).
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) samples: u32,
    /// Include the columns of DATA before the predictions.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Write ' before texts in CSV and TSV that a spreadsheet would run as a formula.
    ///
    /// Such texts begin with =, +, -, @, a tab or a line break. Numbers stay as they are.
    #[arg(long)]
    pub(crate) safe_csv: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Print one JSON document: the predictions, or a summary if they are written to a file.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Score a fitted model on a labelled table: log-likelihood, error, coverage and more.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood score model.softwood test.csv")]
pub(crate) struct ScoreArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Table with the features and the target of the model.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Number of threads; 0 uses one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Fit and score models by cross-validation or another protocol.
#[derive(Debug, Args)]
#[command(
    after_help = "Protocols:\n  holdout:F    train on all but a fraction F of the rows, test on that fraction\n  \
    cv:K         K-fold cross-validation\n  \
    paper:F,K    fraction F as test set, K folds of the rest, each model scored on the test set\n  \
    splits:FILE  splits given by a table\n\n\
    Example:\n  softwood evaluate train.csv --target price --model vst --protocol cv:3"
)]
pub(crate) struct EvaluateArgs {
    /// Labelled table.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// Model families to compare, separated by commas [default: vst].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Evaluation protocol; see below.
    #[arg(long, value_name = "P", default_value = "holdout:0.2")]
    pub(crate) protocol: String,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Out-of-distribution detection: how well uncertainty separates in-domain rows from other rows.
///
/// For total, data (aleatoric) and knowledge (epistemic) uncertainty: the AUROC, which is the
/// probability that a row of OUT is more uncertain than a row of IN (0.5 is chance), and the
/// balanced accuracy of the best single threshold, with that threshold in the units of `predict`.
/// Only the features of the model are read; a target is not needed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood ood model.softwood test.csv other_rows.csv")]
pub(crate) struct OodArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// In-domain rows, such as a test set; not the training rows, on which uncertainty is too low.
    #[arg(value_name = "IN")]
    pub(crate) inside: PathBuf,
    /// Other rows, with the same columns.
    #[arg(value_name = "OUT")]
    pub(crate) outside: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Number of threads; 0 uses one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Feature importance for predictions and for knowledge uncertainty; a single tree as rules.
///
/// Without DATA: gain importance, for models that split on single columns, and the rules of the
/// tree if the model is a single tree. With DATA, for every model: permutation importance. Each
/// column is permuted in turn, and the report shows the decrease of the log-likelihood (if DATA has
/// the target), the change of the predictions and the change of knowledge (epistemic) uncertainty.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood explain model.softwood test.csv")]
pub(crate) struct ExplainArgs {
    /// Model file written by `softwood fit`.
    pub(crate) model: PathBuf,
    /// Table with the features of the model, preferably not the training rows; the target is
    /// optional.
    pub(crate) data: Option<PathBuf>,
    /// Table of reference rows, such as the training set.
    ///
    /// Values of a column are replaced by values from these rows instead of being permuted: this
    /// shows which columns make the knowledge uncertainty of DATA higher than that of the reference
    /// rows.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub(crate) reference: Option<PathBuf>,
    /// Number of permutations per column.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeats: u16,
    /// Number of columns to list in each section of the text report.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) top: u16,
    /// SVG file for a drawing of the tree (models that are a single tree).
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

/// Effect of a treatment on an outcome: on average and for every row, with intervals.
///
/// All columns besides treatment and outcome are covariates. The effect is causal only if they
/// contain everything that influences both the treatment and the outcome. The report gives the
/// average effect (of all rows and of the treated rows), how many rows have an effect whose interval
/// excludes zero, the value of treating rows by their effects, and how well the two arms overlap.
///
/// Methods: `single` fits one model with the treatment as a column, `per-arm` one model for each
/// arm, `doubly-robust` corrects cross-fitted models by the propensities of the rows.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  softwood causal trial.csv --treatment drug --outcome recovery -o effects.csv"
)]
pub(crate) struct CausalArgs {
    /// Table with covariates, treatment and outcome.
    pub(crate) data: PathBuf,
    /// Treatment column: 0 and 1, true and false, or two categories.
    #[arg(long, value_name = "COL")]
    pub(crate) treatment: String,
    /// Outcome column, numeric.
    #[arg(long, value_name = "COL")]
    pub(crate) outcome: String,
    /// Level of the treatment column that counts as treated [default: the larger of two].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) treated: Option<String>,
    /// Level of the treatment column that counts as control [default: the smaller of two].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) control: Option<String>,
    /// Model family of the outcome; `softwood models` lists them.
    #[arg(long, value_name = "NAME", default_value = crate::commands::DEFAULT_MODEL)]
    pub(crate) model: String,
    /// Parameter of the model of the outcome; `softwood models NAME` lists them.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// single, per-arm or doubly-robust.
    #[arg(long, value_name = "METHOD", default_value = "doubly-robust", value_parser = parsed::<CausalMethod>)]
    pub(crate) method: CausalMethod,
    /// Model family of the propensity [default: a logistic regression, `vst` of depth 0].
    #[arg(long, value_name = "NAME")]
    pub(crate) propensity: Option<String>,
    /// Number of folds of cross-fitting.
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=100))]
    pub(crate) folds: u16,
    /// Average that the intervals are for: of the rows of DATA (sample) or of the population.
    #[arg(long, value_name = "SCOPE", default_value = "sample", value_parser = parsed::<EffectScope>)]
    pub(crate) scope: EffectScope,
    /// Probability of the intervals.
    #[arg(long, value_name = "LEVEL", default_value_t = 0.9, value_parser = level)]
    pub(crate) level: f64,
    /// Cost of one treatment in units of the outcome: rows with a larger effect are treated.
    #[arg(long, value_name = "C", default_value_t = 0.0, allow_negative_numbers = true, value_parser = finite)]
    pub(crate) policy_cost: f64,
    /// Column of decisions (1: treat, 0: do not) to value instead.
    #[arg(long, value_name = "COL")]
    pub(crate) policy: Option<String>,
    /// Table of the effect of every row, format by suffix; `-` is CSV on standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Columns to treat as categorical.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,
    /// Columns to treat as numeric.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) numeric: Vec<String>,
    /// Columns to leave out.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress bar and no report.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// List the model families, the parameters of one family, or the content of a model file.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood models vst")]
pub(crate) struct ModelsArgs {
    /// Model family or model file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Published tables of five papers: ours beside theirs, with wins, ties and losses.
///
/// Without a name: lists every table and figure and the data that it needs. With names: runs them on
/// the tables of the data directory. Files that are not there are named, and their sets are left
/// out. With --output, every finished cell (one model on one split of one set) is kept, so that the
/// same command continues an interrupted run.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood reproduce")]
pub(crate) struct ReproduceArgs {
    /// Tables and figures, such as `vst-1`; `all` means every table, `figures` every figure.
    #[arg(value_name = "TABLE", hide_possible_values = true, value_parser = table_names())]
    pub(crate) names: Vec<String>,
    /// Directory of the data sets [default: the environment variable `SOFTWOOD_DATA`].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Directory for the results: results.md, results.json and the finished cells; figures as SVG, and
    /// gallery.md.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Run a part of each table in minutes: fewer splits, smaller models, no large sets.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run at most N splits, seeds or runs of each set [default: all of the protocol].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) splits: Option<u16>,
    /// Models of the tables, or families to run beside the paper's [default: those of the table].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// A table in a TOML file of your own, in the form of those of the program.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "names")]
    pub(crate) table: Option<PathBuf>,
    /// Random seed of splits and fits.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of threads; 0 uses one per core. The result does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names of the tables and figures; clap suggests one that is similar to a wrong name.
fn table_names() -> PossibleValuesParser {
    let figures = reproduce::FIGURES.iter().map(|figure| figure.name);
    let names = reproduce::NAMES.iter().copied().chain(figures);
    PossibleValuesParser::new(names.chain([reproduce::ALL, reproduce::ALL_FIGURES]))
}

/// Demonstration on synthetic data with a known true distribution: fit, score and plot a model.
///
/// Shows data (aleatoric) and knowledge (epistemic) uncertainty near the training rows and away
/// from them, and prints commands to try next.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  softwood demo --out demo")]
pub(crate) struct DemoArgs {
    /// Directory for the data, the model and the plots; created if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub(crate) out: PathBuf,
    /// Parameter of the model; `softwood models vst` lists them.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Column roles, column kinds and model parameters, from flags or a configuration file.
#[derive(Debug, Args)]
pub(crate) struct ColumnArgs {
    /// Target column.
    #[arg(short, long, value_name = "COL")]
    pub(crate) target: Option<String>,
    /// Parameter of the model; `softwood models NAME` lists them.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// TOML file with `target`, `model`, ... and a table `[params]`; flags override it.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Columns to treat as categorical.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,
    /// Columns to treat as numeric.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) numeric: Vec<String>,
    /// Columns to leave out.
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    /// Column of frequency weights: a row of weight 2 counts as two rows.
    #[arg(long, value_name = "COL")]
    pub(crate) weight: Option<String>,
    /// Task, if the type of the target column does not imply it.
    #[arg(long)]
    pub(crate) task: Option<TaskName>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// Format of text tables.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Delimiter of CSV files: one character, or `tab`.
    #[arg(long, value_name = "C", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// Read tables of any size.
    ///
    /// Without it, a table may have at most 1,000,000 columns, 16 MB per text cell and 16 GB after
    /// decompression, so that a small damaged or hostile file does not take all memory.
    #[arg(long)]
    pub(crate) no_size_limits: bool,
}

impl FormatArgs {
    /// Options for a table without a schema.
    pub(crate) fn plain_options(&self) -> ReadOptions {
        ReadOptions {
            delimiter: self.delimiter,
            limits: self.limits(),
            ..ReadOptions::default()
        }
    }

    /// Largest sizes of tables.
    pub(crate) fn limits(&self) -> ReadLimits {
        if self.no_size_limits {
            ReadLimits::NONE
        } else {
            ReadLimits::default()
        }
    }

    /// Options for a table that a model with this schema is applied to.
    pub(crate) fn read_options(&self, schema: &Schema) -> ReadOptions {
        ReadOptions {
            delimiter: self.delimiter,
            limits: self.limits(),
            ..ReadOptions::for_schema(schema)
        }
    }
}

/// Random seed and threads.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Random seed [default: 0].
    #[arg(long, value_name = "N", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Number of threads; 0 uses one per core. The result does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,
}

/// Amount and format of the output.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress bar and no report.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Also print the results of model selection and the learning curve.
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
        _ => Err("expected KEY=VALUE, such as max_depth=4".to_owned()),
    }
}

/// Parses the delimiter of a text table.
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
        .map_err(|_| format!("expected an integer from 0 to {}", u64::MAX))
}

/// A positive number of seconds.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a positive number of seconds".to_owned())
}

/// A value that the library parses.
fn parsed<T: std::str::FromStr<Err = softwood::Error>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error: softwood::Error| error.to_string())
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok();
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| "expected a number".to_owned())
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
    fn clap_accepts_the_definition() {
        Cli::command().debug_assert();
    }

    #[test]
    fn argument_values_are_parsed() {
        assert_eq!(key_value("a = 3"), Ok(("a".to_owned(), "3".to_owned())));
        assert!(key_value("=3").is_err() && key_value("a").is_err());
        assert_eq!(delimiter("tab"), Ok(b'\t'));
        assert!(delimiter("é").is_err() && delimiter("\"").is_err());
        assert!(level("1").is_err() && level("nan").is_err());
    }
}
