//! Sums of soft trees as an objective of variational training: minibatches for the kernel, the
//! homoscedastic warm-up, constant noise, offsets and frozen weights.

use std::ops::Range;

use crate::inference::lowrank_gaussian::{INITIAL_SD, LossScale, LowRank};
use crate::inference::objective::{Objective, ValidationScores};
use crate::likelihood::soft::SoftLikelihood;
use crate::numerics::normal::HALF_LN_TAU;
use crate::numerics::real::{LANES, inverse_softplus};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{Layout, TreeLayout};
use crate::soft::tree::{Workspace, log_likelihood};
use crate::variational::config::NoiseSpec;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::minibatch::{Minibatch, score_rows};
use crate::variational::train::TrainingRun;

/// Floor of the scale at the end of the homoscedastic warm-up, above the lower bound of the
/// likelihood: the softplus has almost no gradient below it.
const MIN_RELEASED_SCALE: f64 = 1e-3;

/// Inverse-Gamma prior on a noise variance that is the same for all rows, and lower bound on the
/// standard deviation.
#[derive(Debug, Clone, Copy)]
struct HomoscedasticNoise {
    shape: f64,
    scale: f64,
    min_sd: f64,
}

impl HomoscedasticNoise {
    /// The prior of a run whose noise is constant, or whose warm-up has constant noise.
    fn of<L: TreeLayout>(training_run: &TrainingRun<'_, L>) -> Option<Self> {
        match (training_run.config.noise, training_run.spec.likelihood) {
            (NoiseSpec::Constant { shape, scale }, _) => Some(Self {
                shape,
                scale,
                min_sd: 0.0,
            }),
            (_, SoftLikelihood::Normal { floor }) if training_run.n_homoscedastic_epochs() > 0 => {
                Some(Self {
                    shape: 0.0,
                    scale: 0.0,
                    min_sd: floor + MIN_RELEASED_SCALE,
                })
            }
            _ => None,
        }
    }

    /// Root of the posterior mode of the variance after `n` residuals with this sum of squares.
    fn sd(self, n: f64, sum_of_squares: f64) -> f64 {
        let variance = (self.scale + 0.5 * sum_of_squares) / (self.shape + 0.5 * n + 1.0);
        variance.sqrt().max(self.min_sd)
    }
}

/// A sum of soft trees with its training and validation rows.
pub(crate) struct SoftTreeObjective<'a, L = Layout> {
    /// Its likelihood changes during training; that of the run is the one at the end.
    spec: SoftTreeSpec<L>,
    final_likelihood: SoftLikelihood,
    train: &'a EncodedRows,
    validation: Option<&'a EncodedRows>,
    /// Number of initial epochs with one noise variance for all rows.
    n_homoscedastic_epochs: usize,
    homoscedastic_noise: Option<HomoscedasticNoise>,
    /// Ranges of the weights that are not trained.
    frozen: Vec<Range<usize>>,
    redraw_offset: Option<&'a dyn Fn(usize) -> Vec<f32>>,
    /// Offset of all rows in this epoch; empty if the offset of the training rows is used.
    offset: Vec<f32>,
    batch: Minibatch,
    workspace: Workspace<f32>,
}

impl<'a, L: TreeLayout + Clone> SoftTreeObjective<'a, L> {
    pub(crate) fn new(training_run: &TrainingRun<'a, L>) -> Self {
        let (mut spec, schedule) = (training_run.spec.clone(), &training_run.schedule);
        let n_homoscedastic_epochs = training_run.n_homoscedastic_epochs();
        if n_homoscedastic_epochs > 0 {
            spec.likelihood = SoftLikelihood::KnownNoise { sd: 1.0 };
        }
        let batch_rows = schedule
            .batch_size
            .min(training_run.train.n_rows())
            .next_multiple_of(LANES);
        Self {
            final_likelihood: training_run.spec.likelihood,
            train: training_run.train,
            validation: training_run.validation,
            n_homoscedastic_epochs,
            homoscedastic_noise: HomoscedasticNoise::of(training_run),
            frozen: frozen_ranges(training_run),
            redraw_offset: training_run.redraw_offset,
            offset: Vec::new(),
            batch: Minibatch::new(batch_rows, &spec.stack),
            workspace: Workspace::new(&spec, batch_rows, schedule.n_draws),
            spec,
        }
    }

    /// Ends the homoscedastic warm-up: from now on the noise scale depends on the inputs, starting
    /// from the constant scale. Does nothing if there was no warm-up.
    fn release_noise_scale(&mut self, posterior: &mut LowRank) {
        let (SoftLikelihood::KnownNoise { sd }, SoftLikelihood::Normal { floor }) =
            (self.spec.likelihood, self.final_likelihood)
        else {
            return;
        };
        self.spec.likelihood = self.final_likelihood;
        let layout = &self.spec.stack.first;
        let raw = inverse_softplus((sd - floor).max(MIN_RELEASED_SCALE)) as f32;
        let (means, log_sds) = posterior.values.split_at_mut(layout.n_weights());
        for leaf in 0..layout.n_leaves() {
            let range = layout.leaf(1, leaf);
            // during the warm-up only the KL term has changed these weights
            means[range.clone()].fill(0.0);
            means[range.end - 1] = raw;
            log_sds[range].fill(INITIAL_SD.ln() as f32);
        }
    }
}

impl<L: TreeLayout + Clone> Objective for SoftTreeObjective<'_, L> {
    type State = SoftTreeSpec<L>;

    fn n_weights(&self) -> usize {
        self.spec.stack.n_weights()
    }

    fn n_rows(&self) -> usize {
        self.train.n_rows()
    }

    fn total_weight(&self) -> f64 {
        self.train.total_weight
    }

    fn log_likelihood(&mut self, rows: &[usize], draws: &[f32], gradients: &mut [f32]) -> f64 {
        let offset = if self.offset.is_empty() {
            &self.train.offset
        } else {
            &self.offset
        };
        let batch = self.batch.gather(self.train, offset, rows);
        log_likelihood(&self.spec, &batch, draws, gradients, &mut self.workspace)
    }

    fn validation(&self, draws: &[f32]) -> Option<ValidationScores> {
        self.validation.map(|rows| {
            let of_rows = score_rows(&self.spec, draws, rows);
            let mean = rows.mean(&of_rows);
            ValidationScores { of_rows, mean }
        })
    }

    fn state(&self) -> SoftTreeSpec<L> {
        self.spec.clone()
    }

    fn start_epoch(&mut self, epoch: usize, posterior: &mut LowRank) {
        if epoch == self.n_homoscedastic_epochs {
            self.release_noise_scale(posterior);
        }
        if let Some(redraw_offset) = self.redraw_offset {
            self.offset = redraw_offset(epoch);
        }
    }

    /// Sets a constant noise variance to its posterior mode. The sum of squared residuals follows
    /// from the log-likelihood.
    fn end_epoch(&mut self, log_likelihood: f64) {
        if let (Some(noise), SoftLikelihood::KnownNoise { sd }) =
            (self.homoscedastic_noise, self.spec.likelihood)
        {
            let total_weight = self.train.total_weight;
            let log_normaliser = total_weight * (sd.ln() + HALF_LN_TAU);
            let sum_of_squares = -2.0 * sd * sd * (log_likelihood + log_normaliser);
            let sd = noise.sd(total_weight, sum_of_squares.max(0.0));
            self.spec.likelihood = SoftLikelihood::KnownNoise { sd };
        }
    }

    fn end_early(&mut self, posterior: &mut LowRank) {
        self.release_noise_scale(posterior);
    }

    fn complete_gradient(
        &self,
        posterior: &LowRank,
        _: &[f32],
        _: LossScale,
        gradient: &mut [f32],
    ) {
        for gradient in gradient.chunks_exact_mut(posterior.n_weights) {
            for range in &self.frozen {
                gradient[range.clone()].fill(0.0);
            }
        }
    }
}

/// Ranges of the leaves of the scale channel of all trees, if the run does not train them.
fn frozen_ranges<L: TreeLayout>(training_run: &TrainingRun<'_, L>) -> Vec<Range<usize>> {
    if !training_run.freezes_scale
        || !matches!(training_run.spec.likelihood, SoftLikelihood::Normal { .. })
    {
        return Vec::new();
    }
    let trees = training_run.spec.stack.ranges();
    let leaves = trees.flat_map(|(layout, range)| {
        (0..layout.n_leaves()).map(move |leaf| {
            let leaf = layout.leaf(1, leaf);
            range.start + leaf.start..range.start + leaf.end
        })
    });
    leaves.collect()
}
