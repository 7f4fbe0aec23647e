//! What a chain is trained with: settings and binned rows.

use crate::boosting::langevin::Sampling;
use crate::data::binning::binned::Binned;
use crate::par::Pool;
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::histogram::grower::Limits;

/// Settings of the training of one chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoostingSettings {
    pub(crate) n_trees: usize,
    pub(crate) learning_rate: f64,
    pub(crate) l2: f64,
    pub(crate) min_child_weight: f64,
    pub(crate) limits: Limits,
    /// Fraction of the rows that the split search of each tree uses.
    pub(crate) subsample: f64,
    /// Fraction of the columns that each tree may split on.
    pub(crate) colsample: f64,
    pub(crate) sampling: Sampling,
    /// Factor of the variance of Langevin noise on leaf values.
    pub(crate) temperature: f64,
    /// The raw outputs are multiplied by `1 - shrink_rate learning_rate` before each tree.
    pub(crate) shrink_rate: f64,
    /// When training stops before its last round, if it may.
    pub(crate) patience: Option<Patience>,
}

/// Number of rounds without a better validation score after which training stops: a constant, plus
/// a fraction of the rounds before the best score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Patience {
    pub(crate) fraction: f64,
    pub(crate) rounds: usize,
}

/// Binned rows with targets and weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinnedSample<'a> {
    pub(crate) binned: &'a Binned,
    pub(crate) target: &'a [f32],
    pub(crate) weight: &'a [f32],
}

/// Training and validation rows of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoostingData<'a> {
    pub(crate) train: BinnedSample<'a>,
    /// The validation set.
    pub(crate) held_out: Option<BinnedSample<'a>>,
    pub(crate) columns: &'a ColumnInfo,
    pub(crate) pool: &'a Pool,
    /// Training rows of further chains, one element per chain. These chains are trained alongside
    /// the first one to score their mixture on the validation set, and are then discarded.
    pub(crate) parallel_chains: &'a [BinnedSample<'a>],
    /// Number of leading training rows whose raw outputs are kept with the trained chain.
    pub(crate) n_kept_rows: usize,
}
