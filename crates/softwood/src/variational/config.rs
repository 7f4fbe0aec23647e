//! Configuration of a fit of soft trees, independent of the family.

use crate::data::dataset::Dataset;
use crate::data::encoding::{Rotation, Scaling};
use crate::data::split::train_validation_split;
use crate::data::target::Target;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::{ScheduleOptions, TrainingSchedule};
use crate::rng::Key;
use crate::variational::options::{Leaf, LeafMixing, Prior};

/// Tree structure, prior, schedule and encoding. `None` means automatic.
#[derive(Debug, Clone)]
pub(crate) struct SoftTreeConfig {
    pub(crate) depth: Option<usize>,
    /// Largest depth of the candidates, if `depth` is not given.
    pub(crate) max_depth: usize,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) leaf_mixing: Option<LeafMixing>,
    pub(crate) mixing_levels: Option<usize>,
    /// Whether a blend is preferred if its validation score is not clearly below the best one.
    pub(crate) prefers_blend: bool,
    /// Inverse temperature of the gates.
    pub(crate) beta: f64,
    /// Rank of the low-rank part of the posterior covariance.
    pub(crate) rank: usize,
    pub(crate) prior: Prior,
    pub(crate) prior_scale: f64,
    pub(crate) kl_weight: f64,
    pub(crate) learning_rate: Option<f64>,
    pub(crate) batch_size: Option<usize>,
    pub(crate) n_epochs: Option<usize>,
    pub(crate) n_draws: Option<usize>,
    pub(crate) early_stopping: bool,
    pub(crate) validation_fraction: f64,
    pub(crate) scaling: Option<Scaling>,
    pub(crate) rotation: Option<Rotation>,
    pub(crate) squares: Option<bool>,
    pub(crate) max_categories: usize,
    pub(crate) min_scale: Option<f64>,
    pub(crate) noise: NoiseSpec,
    /// Whether a noise scale that depends on the inputs starts as one scale for all rows.
    pub(crate) homoscedastic_warmup: bool,
}

impl SoftTreeConfig {
    /// Training and validation rows; `None` if nothing is selected or stopped on a validation set,
    /// or if there are too few rows.
    pub(crate) fn validation_split(&self, data: &Dataset, key: Key) -> Option<(Dataset, Dataset)> {
        let is_needed = self.early_stopping
            || self.depth.is_none()
            || self.leaf_mixing.is_none()
            || self.scaling.is_none()
            || self.rotation.is_none()
            || self.squares.is_none();
        is_needed
            .then(|| train_validation_split(data, self.validation_fraction, key))
            .flatten()
    }

    /// A narrow posterior with these means, to start training from.
    pub(crate) fn initial_posterior(&self, means: Vec<f32>, key: Key) -> LowRank {
        LowRank::initial(means, self.rank, self.prior_scale, key)
    }

    /// The schedule of a full training run on these rows.
    pub(crate) fn schedule(&self, data: &Dataset) -> TrainingSchedule {
        let learning_rate = match data.target() {
            Target::Numeric(_) => 0.01,
            Target::Classes(_) => 0.02,
        };
        let options = ScheduleOptions {
            n_epochs: self.n_epochs,
            batch_size: self.batch_size,
            n_draws: self.n_draws,
            learning_rate: self.learning_rate.unwrap_or(learning_rate),
        };
        TrainingSchedule::full(&options, data.n_rows())
    }
}

/// Noise model of a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoiseSpec {
    /// The noise scale is an output of the trees.
    Varying,
    /// The standard deviation of the noise is known, in the units of the target.
    Known(f64),
    /// One unknown variance with an inverse-Gamma prior of this shape and scale, in standard units.
    Constant { shape: f64, scale: f64 },
}
