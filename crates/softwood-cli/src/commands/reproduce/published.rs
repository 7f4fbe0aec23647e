//! A published table as its TOML file describes it: protocol, metrics, data sets, our models, and the
//! paper's figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::args::TaskName;

/// A table of a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedTable {
    /// Name on the command line, such as `vst-1`.
    pub(crate) name: String,
    /// Name of the paper in `listing.toml`.
    pub(crate) paper: String,
    /// Place in the paper, such as `table 1`.
    pub(crate) place: String,
    pub(crate) title: String,
    pub(crate) kind: TableKind,
    /// A protocol of `evaluate`, or `splits` for the splits file of each set.
    pub(crate) protocol: String,
    /// Number of seeds whose splits are used, one after the other.
    #[serde(default = "one")]
    pub(crate) repeats: usize,
    /// Table that the cells are kept under, if another one has the same protocol: a cell of both is
    /// run once.
    pub(crate) cells_of: Option<String>,
    /// Largest number of splits, if not all are used.
    pub(crate) splits: Option<usize>,
    pub(crate) rule: TieRule,
    /// Test of our models against each other.
    pub(crate) pairs: Option<PairRule>,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) quick: QuickLimits,
    /// Origin of the out-of-domain rows.
    pub(crate) ood: Option<OodOrigin>,
    #[serde(rename = "metric")]
    pub(crate) metrics: Vec<PublishedMetric>,
    #[serde(rename = "set")]
    pub(crate) sets: Vec<PublishedSet>,
    #[serde(rename = "model")]
    pub(crate) models: Vec<ComparedModel>,
    #[serde(rename = "row")]
    pub(crate) rows: Vec<PublishedRow>,
}

fn one() -> usize {
    1
}

/// What a table measures; one runner for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TableKind {
    /// Scores of predictions.
    Scores,
    /// Scores, and detection of out-of-domain rows.
    Ood,
    /// Regret of sequential decisions.
    Bandit,
    /// Effects of treatments.
    Effects,
}

/// When our figure and the paper's count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TieRule {
    /// Ours, rounded as the paper's, is the paper's.
    Mean,
    /// The intervals of one standard deviation around both overlap.
    Overlap,
    /// A t-test of our splits against the paper's mean is not significant (5%).
    TTest,
}

/// A test of two of our models on the same splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum PairRule {
    #[serde(rename = "paired-t")]
    PairedT,
    #[serde(rename = "5x2cv-f")]
    FiveByTwoF,
}

/// What a quick run leaves out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuickLimits {
    /// Largest number of splits.
    pub(crate) splits: Option<usize>,
    /// Larger sets are left out.
    pub(crate) max_rows: Option<usize>,
    /// Largest number of steps of a bandit.
    pub(crate) steps: Option<usize>,
}

/// Tables whose columns replace those of a set, to make rows of another kind.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OodOrigin {
    /// Tables without their suffix; the first one that exists is used.
    pub(crate) files: Vec<String>,
    /// Other tables for some sets.
    #[serde(default)]
    pub(crate) own_files: BTreeMap<String, Vec<String>>,
    /// Whether the target is the first column; otherwise it is not used.
    pub(crate) target_first: bool,
}

/// A column of figures: `offset + factor * (score / scale)^power`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedMetric {
    pub(crate) name: String,
    /// Name of one of the values of a cell.
    pub(crate) score: String,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) higher_is_better: bool,
    /// True value: figures are better the nearer they are to it.
    pub(crate) truth: Option<f64>,
    #[serde(default)]
    pub(crate) offset: f64,
    #[serde(default = "unit_factor")]
    pub(crate) factor: f64,
    #[serde(default = "unit_factor")]
    pub(crate) power: f64,
    pub(crate) scale: Option<ScoreScale>,
    /// Number of decimals of the paper's figures.
    pub(crate) digits: usize,
    /// Metric whose published figures this one is compared with, if not its own.
    pub(crate) figures_of: Option<String>,
}

fn unit_factor() -> f64 {
    1.0
}

/// A property of the target of all rows that a score is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum ScoreScale {
    /// Scales the target to [0, 1].
    #[serde(rename = "target-range")]
    Range,
    /// Scales the target to [-1, 1].
    #[serde(rename = "target-half-range")]
    HalfRange,
    /// Scales the target to standard deviation 1.
    #[serde(rename = "target-sd")]
    Sd,
}

impl ScoreScale {
    /// Name of the value of a cell that holds it.
    pub(crate) fn value_name(self) -> &'static str {
        match self {
            Self::Range => "target_range",
            Self::HalfRange => "target_half_range",
            Self::Sd => "target_sd",
        }
    }
}

/// A data set of a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedSet {
    pub(crate) name: String,
    /// Path below the data directory, without suffix; absent for simulated data.
    pub(crate) file: Option<String>,
    /// Path of the table of splits.
    pub(crate) splits: Option<String>,
    pub(crate) rows: usize,
    #[serde(default = "regression")]
    pub(crate) task: TaskName,
    /// Where a user finds the data.
    pub(crate) source: Option<String>,
}

fn regression() -> TaskName {
    TaskName::Regression
}

/// A model of ours and the rows of the paper that it is compared with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComparedModel {
    pub(crate) name: String,
    /// Family; absent for policies without a model.
    pub(crate) family: Option<String>,
    #[serde(default)]
    pub(crate) params: toml::Table,
    /// Parameters of quick runs.
    #[serde(default)]
    pub(crate) quick: toml::Table,
    #[serde(default)]
    pub(crate) rows: Vec<String>,
}

/// A model of the paper and its figures by metric and set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedRow {
    pub(crate) name: String,
    pub(crate) figures: BTreeMap<String, BTreeMap<String, PublishedFigure>>,
}

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum PublishedFigure {
    /// A mean alone.
    Mean(f64),
    /// Mean and standard deviation.
    MeanSd([f64; 2]),
}

impl PublishedFigure {
    pub(crate) fn mean(self) -> f64 {
        match self {
            Self::Mean(mean) | Self::MeanSd([mean, _]) => mean,
        }
    }

    pub(crate) fn sd(self) -> Option<f64> {
        match self {
            Self::Mean(_) => None,
            Self::MeanSd([_, sd]) => Some(sd),
        }
    }
}

impl PublishedTable {
    /// Largest number of splits of a run.
    pub(crate) fn max_splits(&self, is_quick: bool) -> usize {
        let quick = self.quick.splits.filter(|_| is_quick);
        let all = self.splits.unwrap_or(usize::MAX);
        quick.map_or(all, |splits| splits.min(all))
    }

    /// Whether a run leaves a set out because of its size.
    pub(crate) fn leaves_out(&self, set: &PublishedSet, is_quick: bool) -> bool {
        is_quick && self.quick.max_rows.is_some_and(|most| set.rows > most)
    }
}

impl PublishedRow {
    /// The figures of a metric by set.
    pub(crate) fn figures_of(
        &self,
        metric: &PublishedMetric,
    ) -> Option<&BTreeMap<String, PublishedFigure>> {
        let name = metric.figures_of.as_ref().unwrap_or(&metric.name);
        self.figures.get(name)
    }
}

impl PublishedMetric {
    /// The figure of a cell in the units of the paper.
    pub(crate) fn of(&self, values: &BTreeMap<String, f64>) -> Option<f64> {
        let score = values.get(&self.score)?;
        let scale = match self.scale {
            None => 1.0,
            Some(scale) => *values.get(scale.value_name())?,
        };
        Some(self.offset + self.factor * (score / scale).powf(self.power))
    }

    /// How good a figure is: larger is better.
    pub(crate) fn merit(&self, figure: f64) -> f64 {
        match self.truth {
            Some(truth) => -(figure - truth).abs(),
            None if self.higher_is_better => figure,
            None => -figure,
        }
    }
}
