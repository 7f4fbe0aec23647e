//! How long a run is, and how large its steps are.

use crate::data::dataset::{Dataset, Target};
use crate::variational::config::SoftTreeConfig;

/// How long a run is, and how large its steps are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TrainingSchedule {
    pub(crate) n_epochs: usize,
    pub(crate) batch_size: usize,
    pub(crate) n_draws: usize,
    pub(crate) learning_rate: f64,
}

/// Steps of a full run, unless epochs are given.
const N_STEPS: usize = 12_000;
/// Fewest and most passes over the rows, unless given.
const EPOCHS: (usize, usize) = (40, 1500);
/// Rows from which the noise of the minibatches, not of the draws, rules a step.
const MANY_ROWS: usize = 3000;

impl TrainingSchedule {
    /// That of a full run on these rows.
    pub(crate) fn full(config: &SoftTreeConfig, data: &Dataset) -> Self {
        let n_rows = data.n_rows();
        let learning_rate = match data.target() {
            Target::Numeric(_) => 0.01,
            Target::Classes(_) => 0.02,
        };
        let batch_size = config.batch_size.unwrap_or(match n_rows {
            ..2_000 => 64,
            2_000..10_000 => 128,
            _ => 256,
        });
        let steps_per_epoch = n_rows.div_ceil(batch_size);
        let n_epochs = (N_STEPS / steps_per_epoch).clamp(EPOCHS.0, EPOCHS.1);
        let n_draws = if n_rows < MANY_ROWS { 4 } else { 2 };
        Self {
            n_epochs: config.n_epochs.unwrap_or(n_epochs),
            batch_size,
            n_draws: config.n_draws.unwrap_or(n_draws),
            learning_rate: config.learning_rate.unwrap_or(learning_rate),
        }
    }

    /// The same for a part of the length.
    pub(crate) fn part(self, share: f64) -> Self {
        let n_epochs = (self.n_epochs as f64 * share).ceil().max(1.0) as usize;
        Self { n_epochs, ..self }
    }
}
