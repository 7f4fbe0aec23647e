//! State of the optimiser and one training step: draw weights, compute their gradients, map these
//! to the variational parameters, and update them with Adam.

use std::ops::Range;

use crate::inference::adam::Adam;
use crate::inference::lowrank_gaussian::{LossScale, LowRank, Sampler};
use crate::inference::prior::Groups;
use crate::inference::schedule;
use crate::model::CurvePoint;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::{LANES, inverse_softplus};
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::likelihood::{HALF_LN_TWO_PI, SoftLikelihood};
use crate::soft::tree::{Workspace, log_likelihood};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::groups::groups;
use crate::variational::minibatch::{Minibatch, score_rows};
use crate::variational::streams::fit as streams;
use crate::variational::train::TrainingRun;

/// Initial standard deviation of the posterior for a prior scale of one or more.
const INITIAL_SD: f64 = 0.05;
/// Initial scale of the low-rank part relative to the diagonal; zero would be a saddle point.
const INITIAL_CORRELATION: f64 = 0.1;
/// Floor of the scale at the end of the homoscedastic warm-up, above the lower bound of the
/// likelihood: the softplus has almost no gradient below it.
const MIN_RELEASED_SCALE: f64 = 1e-3;
/// Number of steps between two updates of the prior.
const PRIOR_UPDATE_INTERVAL: usize = 8;
/// Number of posterior draws that score the validation rows.
const SCORE_DRAWS: usize = 32;

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
    fn of(training_run: &TrainingRun<'_>) -> Option<Self> {
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

/// State and buffers of a training run; a step allocates nothing.
pub(crate) struct OptimizerState {
    pub(crate) spec: SoftTreeSpec,
    pub(crate) posterior: LowRank,
    sampler: Sampler,
    adam: Adam,
    groups: Option<Groups>,
    /// Prior precision of each weight.
    precision: Vec<f32>,
    /// Buffer for `E[theta^2]`.
    moments: Vec<f32>,
    gaussian: Gaussian,
    workspace: Workspace<f32>,
    /// Log-likelihood gradients of the draws.
    gradient: Vec<f32>,
    batch: Minibatch,
    /// Offset of all rows in this epoch; empty if the offset of the training rows is used.
    pub(crate) offset: Vec<f32>,
    kl_weight: f64,
    homoscedastic_noise: Option<HomoscedasticNoise>,
    /// Ranges of the weights that are not trained.
    frozen: Vec<Range<usize>>,
    /// Current factor of the KL term, and whether the prior is learned.
    kl_annealing: f64,
    learns_prior: bool,
    n_draws: usize,
    n_steps: usize,
}

impl OptimizerState {
    pub(crate) fn new(training_run: &TrainingRun<'_>, key: Key) -> Self {
        let (mut spec, config, schedule) = (
            training_run.spec,
            training_run.config,
            &training_run.schedule,
        );
        if training_run.n_homoscedastic_epochs() > 0 {
            spec.likelihood = SoftLikelihood::KnownNoise { sd: 1.0 };
        }
        let stack = &spec.stack;
        let n_weights = stack.n_weights();
        let batch_rows = schedule
            .batch_size
            .min(training_run.train.n_rows())
            .next_multiple_of(LANES);
        let posterior = training_run.start.clone();
        Self {
            sampler: Sampler::new(&posterior, schedule.n_draws),
            adam: Adam::new(posterior.values.len()),
            groups: groups(config, stack, spec.likelihood),
            precision: vec![(1.0 / config.prior_scale.powi(2)) as f32; n_weights],
            moments: vec![0.0; n_weights],
            gaussian: Gaussian::new(key.child(streams::STEP_DRAWS)),
            workspace: Workspace::new(&spec, batch_rows, schedule.n_draws),
            gradient: vec![0.0; schedule.n_draws * n_weights],
            batch: Minibatch::new(batch_rows, stack),
            offset: Vec::new(),
            kl_weight: config.kl_weight,
            homoscedastic_noise: HomoscedasticNoise::of(training_run),
            frozen: frozen_ranges(training_run),
            kl_annealing: 1.0,
            learns_prior: true,
            n_draws: schedule.n_draws,
            n_steps: 0,
            posterior,
            spec,
        }
    }

    /// Sets the KL factor and the learning of the prior after a fraction `progress` of the run.
    pub(crate) fn anneal(&mut self, progress: f64) {
        self.kl_annealing = schedule::kl_annealing(progress);
        self.learns_prior = schedule::learns_prior(progress);
    }

    /// One step on a batch of rows; returns their weighted log-likelihood, averaged over draws.
    pub(crate) fn step(&mut self, train: &EncodedRows, rows: &[usize], learning_rate: f32) -> f64 {
        if let Some(groups) = &self.groups
            && self.learns_prior
            && self.n_steps.is_multiple_of(PRIOR_UPDATE_INTERVAL)
        {
            self.posterior.second_moments(&mut self.moments);
            groups.learn(&self.moments, &mut self.precision);
        }
        self.n_steps += 1;
        self.sampler.draw(&self.posterior, &mut self.gaussian);
        let offset = if self.offset.is_empty() {
            &train.offset
        } else {
            &self.offset
        };
        let batch = self.batch.gather(train, offset, rows);
        let sum = log_likelihood(
            &self.spec,
            &batch,
            &self.sampler.draws,
            &mut self.gradient,
            &mut self.workspace,
        );
        // the batch of B of n rows estimates sum_i w_i ll_i by n/B times its sum; the loss is the
        // negative ELBO per unit of weight
        let total = train.total_weight;
        let batch_scale = train.n_rows() as f64 / (rows.len() as f64 * total);
        let scale = LossScale {
            likelihood: (batch_scale / self.n_draws as f64) as f32,
            kl: (self.kl_annealing * self.kl_weight / total) as f32,
        };
        self.sampler
            .loss_gradient(&self.posterior, &self.gradient, &self.precision, scale);
        for gradient in self
            .sampler
            .gradient
            .chunks_exact_mut(self.posterior.n_weights)
        {
            for range in &self.frozen {
                gradient[range.clone()].fill(0.0);
            }
        }
        self.adam.step(
            &mut self.posterior.values,
            &self.sampler.gradient,
            learning_rate,
        );
        sum / self.n_draws as f64
    }

    /// Sets a constant noise variance to its posterior mode. The sum of squared residuals follows
    /// from the log-likelihood `score` of the last epoch.
    pub(crate) fn update_noise(&mut self, total_weight: f64, score: f64) {
        if let (Some(noise), SoftLikelihood::KnownNoise { sd }) =
            (self.homoscedastic_noise, self.spec.likelihood)
        {
            let log_normaliser = total_weight * (sd.ln() + HALF_LN_TWO_PI);
            let sum_of_squares = -2.0 * sd * sd * (score + log_normaliser);
            let sd = noise.sd(total_weight, sum_of_squares.max(0.0));
            self.spec.likelihood = SoftLikelihood::KnownNoise { sd };
        }
    }

    /// Ends the homoscedastic warm-up: from now on the noise scale depends on the inputs, starting
    /// from the constant scale. Does nothing if there was no warm-up.
    pub(crate) fn release_noise_scale(&mut self, likelihood: SoftLikelihood) {
        let (SoftLikelihood::KnownNoise { sd }, SoftLikelihood::Normal { floor }) =
            (self.spec.likelihood, likelihood)
        else {
            return;
        };
        self.spec.likelihood = likelihood;
        let layout = self.spec.stack.first;
        let raw = inverse_softplus((sd - floor).max(MIN_RELEASED_SCALE)) as f32;
        let (means, log_sds) = self.posterior.values.split_at_mut(layout.n_weights());
        for leaf in 0..layout.n_leaves() {
            let range = layout.leaf(1, leaf);
            // during the warm-up only the KL term has changed these weights
            means[range.clone()].fill(0.0);
            means[range.end - 1] = raw;
            log_sds[range].fill(INITIAL_SD.ln() as f32);
        }
    }

    /// A point of the training curve, and the log-likelihood of each validation row.
    pub(crate) fn evaluate(
        &self,
        training_run: &TrainingRun<'_>,
        epoch: usize,
        score: f64,
        key: Key,
    ) -> (CurvePoint, Vec<f64>) {
        let kl = self.posterior.kl(&self.precision);
        let elbo = (score - self.kl_weight * kl) / training_run.train.total_weight;
        let draws = draw_block(&self.posterior, SCORE_DRAWS, key);
        let scores = training_run
            .validation
            .map(|rows| score_rows(&self.spec, &draws, rows));
        let held_out = (training_run.validation)
            .zip(scores.as_ref())
            .map(|(rows, scores)| rows.mean(scores));
        let point = CurvePoint {
            epoch,
            elbo,
            held_out,
        };
        (point, scores.unwrap_or_default())
    }
}

/// Ranges of the leaves of the scale channel of all trees, if the run does not train them.
fn frozen_ranges(training_run: &TrainingRun<'_>) -> Vec<Range<usize>> {
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

/// A narrow and almost uncorrelated posterior with these means.
pub(crate) fn initial_posterior(
    config: &SoftTreeConfig,
    mut weights: Vec<f32>,
    key: Key,
) -> LowRank {
    let n_weights = weights.len();
    let rank = config.rank.min(n_weights);
    let sd = INITIAL_SD * config.prior_scale.min(1.0);
    weights.resize(2 * n_weights, sd.ln() as f32);
    let mut factors = vec![0.0; rank * n_weights];
    Gaussian::new(key).fill(&mut factors);
    let factor_scale = (INITIAL_CORRELATION / (rank as f64).sqrt()) as f32;
    weights.extend(factors.iter().map(|factor| factor_scale * factor));
    LowRank {
        n_weights,
        rank,
        values: weights,
    }
}

/// Draws from a posterior, one after the other.
pub(crate) fn draw_block(posterior: &LowRank, n_draws: usize, key: Key) -> Vec<f32> {
    let mut sampler = Sampler::new(posterior, n_draws);
    sampler.draw(posterior, &mut Gaussian::new(key));
    sampler.draws
}
