//! Arguments of `softwood bandit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::{FormatArgs, RunArgs, ShowArgs, key_value};

/// Compare agents on a contextual bandit by their cumulative regret.
///
/// In every step an agent sees a context, chooses an arm and observes the reward of that arm alone.
/// Its regret is the best expected reward of the step minus that of its arm. Agents fit their models
/// again at growing intervals. Each seed draws its own order of contexts and, for the public problems,
/// its own rewards; all agents meet the same ones.
#[derive(Debug, Args)]
#[command(
    after_help = "Problems:\n  financial        portfolios of stocks, 8 arms (needs financial.parquet)\n  \
    exploration      one number, 20 arms that pay on their own tile\n  \
    mushroom         eat or pass (needs mushroom.parquet)\n  \
    jester           8 jokes given ratings of 32 others (needs jester.parquet)\n  \
    statlog_shuttle  7 classes as arms (needs statlog_shuttle.parquet)\n  \
    FILE             a table of contexts, with --rewards or --classes\n\n\
    Agents:\n  uniform          a random arm\n  \
    linear           Thompson sampling with Bayesian linear regression\n  \
    MODEL            Thompson sampling with a model; `softwood models` lists them\n  \
    greedy-...       the best mean of `linear` or MODEL, or a random arm with probability --epsilon\n\n\
    Example:\n  softwood bandit exploration --agent tree,uniform --steps 2000"
)]
pub(crate) struct BanditArgs {
    /// Problem, or a table of contexts.
    #[arg(value_name = "PROBLEM|FILE")]
    pub(crate) problem: String,
    /// Agents to compare, separated by commas.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "vst,linear"
    )]
    pub(crate) agent: Vec<String>,
    /// Folder with the tables of the problems, or with a folder `bandit` of them [default: the environment
    /// variable `SOFTWOOD_DATA`].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Columns of FILE with the rewards of the arms.
    #[arg(
        long,
        value_name = "COL,...",
        value_delimiter = ',',
        conflicts_with = "classes"
    )]
    pub(crate) rewards: Vec<String>,
    /// Column of FILE whose classes are the arms: the right class pays 1, the others 0.
    #[arg(long, value_name = "COL")]
    pub(crate) classes: Option<String>,
    /// Number of steps [default: as published, or all rows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) steps: Option<u32>,
    /// Number of seeds: --seed, --seed + 1, ...
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: u32,
    /// Parameter of the models; `MODEL.KEY=VALUE` for one of them.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// One model per arm, or one model with the arm as a column.
    #[arg(long, value_name = "KIND", default_value = "per-arm")]
    pub(crate) pooling: PoolingName,
    /// Treat rewards of 0 and 1 as classes.
    #[arg(long)]
    pub(crate) classify: bool,
    /// Probability of a random arm of the greedy agents.
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = probability)]
    pub(crate) epsilon: f64,
    /// Random choices per arm before models choose.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) initial: u32,
    /// The model of an arm is fitted again when the arm has this many times as many rewards, or earlier if
    /// new rewards are far from its predictions.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.3)]
    pub(crate) refit_growth: f64,
    /// Whether models are trained further between fits from scratch [default: where that is short].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) warm_start: Option<bool>,
    /// SVG file for the curves of cumulative regret.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoolingName {
    PerArm,
    ArmColumn,
}
