//! What a fit of soft trees is told, whatever its family.

use crate::data::dataset::Dataset;
use crate::data::encoding::{Rotation, Scaling};
use crate::data::split::train_validation_split;
use crate::data::target::Target;
use crate::inference::schedule::{ScheduleOptions, TrainingSchedule};
use crate::rng::Key;
use crate::variational::options::{Leaf, LeafMixing, Prior};

/// Shape, prior, length of training and encoding; what is `None` is chosen.
#[derive(Debug, Clone)]
pub(crate) struct SoftTreeConfig {
    pub(crate) depth: Option<usize>,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) leaf_mixing: Option<LeafMixing>,
    pub(crate) mixing_levels: Option<usize>,
    /// Whether a blend is taken where held-out rows cannot tell it from the best.
    pub(crate) prefers_blend: bool,
    pub(crate) beta: f64,
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
    /// Whether a noise that depends on the inputs begins as one for all rows.
    pub(crate) homoscedastic_warmup: bool,
}

impl SoftTreeConfig {
    /// Splits off a validation set; none where nothing is chosen or stopped by it, or there are too few rows.
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

    /// The schedule of a full run on these rows.
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

/// What is said of the noise of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoiseSpec {
    /// Its scale is an output of the trees.
    Varying,
    /// Its standard deviation is known, in the target's units.
    Known(f64),
    /// One unknown variance, with an inverse-Gamma prior of this shape and scale in standard units.
    Constant { shape: f64, scale: f64 },
}
