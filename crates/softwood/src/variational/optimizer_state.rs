//! What one step does: draw weights, ask the kernel for gradient, pull them back to the posterior, and move it.

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
use crate::variational::train::TrainingRun;

/// Spread of the posterior at the start, for a prior scale of one or more.
const START_SD: f64 = 0.05;
/// Spread of the low-rank part at the start, relative to the diagonal; zero would be a saddle.
const START_CORRELATION: f64 = 0.1;
/// Least scale above its floor when it is set free: a softplus is flat below.
const MIN_FREE_SCALE: f64 = 1e-3;
/// Steps between two looks at the prior.
const PRIOR_EVERY: usize = 8;
/// Draws by which held-out rows are scored.
const SCORE_DRAWS: usize = 32;

/// What is known beforehand of the variance of a noise that is one for all rows: an inverse-Gamma distribution, and the least standard deviation.
#[derive(Debug, Clone, Copy)]
struct HomoscedasticNoise {
    shape: f64,
    scale: f64,
    least: f64,
}

impl HomoscedasticNoise {
    /// That of a run, if there is such a noise in it or at its beginning.
    fn of(training_run: &TrainingRun<'_>) -> Option<Self> {
        match (training_run.config.noise, training_run.spec.likelihood) {
            (NoiseSpec::Constant { shape, scale }, _) => Some(Self {
                shape,
                scale,
                least: 0.0,
            }),
            (_, SoftLikelihood::Normal { floor }) if training_run.n_homoscedastic_epochs() > 0 => {
                Some(Self {
                    shape: 0.0,
                    scale: 0.0,
                    least: floor + MIN_FREE_SCALE,
                })
            }
            _ => None,
        }
    }

    /// The mode of its posterior after residuals of this number and sum of squares.
    fn sd(self, n: f64, squares: f64) -> f64 {
        let variance = (self.scale + 0.5 * squares) / (self.shape + 0.5 * n + 1.0);
        variance.sqrt().max(self.least)
    }
}

/// Everything a step touches; nothing is allocated inside a step.
pub(crate) struct OptimizerState {
    pub(crate) spec: SoftTreeSpec,
    pub(crate) posterior: LowRank,
    sampler: Sampler,
    adam: Adam,
    groups: Option<Groups>,
    precision: Vec<f32>,
    moments: Vec<f32>,
    gaussian: Gaussian,
    workspace: Workspace<f32>,
    gradient: Vec<f32>,
    batch: Minibatch,
    /// What earlier trees say in this epoch, if that changes.
    pub(crate) offset: Vec<f32>,
    kl_weight: f64,
    homoscedastic_noise: Option<HomoscedasticNoise>,
    /// Weights that stay as they are.
    kept: Vec<Range<usize>>,
    /// Part of the KL term that counts, and whether the prior is learned, at this point of the run.
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
            gaussian: Gaussian::new(key.child(2)),
            workspace: Workspace::new(&spec, batch_rows, schedule.n_draws),
            gradient: vec![0.0; schedule.n_draws * n_weights],
            batch: Minibatch::new(batch_rows, stack),
            offset: Vec::new(),
            kl_weight: config.kl_weight,
            homoscedastic_noise: HomoscedasticNoise::of(training_run),
            kept: kept(training_run),
            kl_annealing: 1.0,
            learns_prior: true,
            n_draws: schedule.n_draws,
            n_steps: 0,
            posterior,
            spec,
        }
    }

    /// Sets what depends on the part of the run that is done.
    pub(crate) fn anneal(&mut self, progress: f64) {
        self.kl_annealing = schedule::kl_annealing(progress);
        self.learns_prior = schedule::learns_prior(progress);
    }

    /// One step on the rows given; the mean over draws of their weighted log-likelihood.
    pub(crate) fn step(&mut self, train: &EncodedRows, rows: &[usize], learning_rate: f32) -> f64 {
        if let Some(groups) = &self.groups
            && self.learns_prior
            && self.n_steps.is_multiple_of(PRIOR_EVERY)
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
        // sum_i w_i ll_i is estimated by n/B times the batch's; the loss is the ELBO per unit of weight
        let total = train.total_weight;
        let share = train.n_rows() as f64 / (rows.len() as f64 * total);
        let scale = LossScale {
            likelihood: (share / self.n_draws as f64) as f32,
            kl: (self.kl_annealing * self.kl_weight / total) as f32,
        };
        self.sampler
            .loss_gradient(&self.posterior, &self.gradient, &self.precision, scale);
        for gradient in self
            .sampler
            .gradient
            .chunks_exact_mut(self.posterior.n_weights)
        {
            for range in &self.kept {
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

    /// Sets a noise that is one for all rows to the mode of its posterior, given the squared residuals of the last epoch, which its score tells.
    pub(crate) fn learn_noise(&mut self, total_weight: f64, score: f64) {
        if let (Some(noise), SoftLikelihood::KnownNoise { sd }) =
            (self.homoscedastic_noise, self.spec.likelihood)
        {
            let squares = -2.0 * sd * sd * (score + total_weight * (sd.ln() + HALF_LN_TWO_PI));
            let sd = noise.sd(total_weight, squares.max(0.0));
            self.spec.likelihood = SoftLikelihood::KnownNoise { sd };
        }
    }

    /// Lets the scale depend on the inputs from now on, starting from the noise that was one for all; nothing where it does already,
    /// or never will.
    pub(crate) fn free_noise(&mut self, likelihood: SoftLikelihood) {
        let (SoftLikelihood::KnownNoise { sd }, SoftLikelihood::Normal { floor }) =
            (self.spec.likelihood, likelihood)
        else {
            return;
        };
        self.spec.likelihood = likelihood;
        let layout = self.spec.stack.first;
        let raw = inverse_softplus((sd - floor).max(MIN_FREE_SCALE)) as f32;
        let (means, spreads) = self.posterior.values.split_at_mut(layout.n_weights());
        for leaf in 0..layout.n_leaves() {
            let range = layout.leaf(1, leaf);
            // the KL term alone has moved these
            means[range.clone()].fill(0.0);
            means[range.end - 1] = raw;
            spreads[range].fill(START_SD.ln() as f32);
        }
    }

    /// Where training stands, and the log-likelihood of each held-out row.
    pub(crate) fn look(
        &self,
        training_run: &TrainingRun<'_>,
        epoch: usize,
        score: f64,
        key: Key,
    ) -> (CurvePoint, Vec<f64>) {
        let kl = self.posterior.kl(&self.precision);
        let elbo = (score - self.kl_weight * kl) / training_run.train.total_weight;
        let draws = draws_of(&self.posterior, SCORE_DRAWS, key);
        let scores = training_run
            .held_out
            .map(|rows| score_rows(&self.spec, &draws, rows));
        let held_out = (training_run.held_out)
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

/// The leaves of the scale channel of all trees, where a run leaves them alone.
fn kept(training_run: &TrainingRun<'_>) -> Vec<Range<usize>> {
    if !training_run.keeps_scale
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

/// A posterior around the weights given, narrow and hardly correlated.
pub(crate) fn start_posterior(config: &SoftTreeConfig, mut weights: Vec<f32>, key: Key) -> LowRank {
    let n_weights = weights.len();
    let rank = config.rank.min(n_weights);
    let sd = START_SD * config.prior_scale.min(1.0);
    weights.resize(2 * n_weights, sd.ln() as f32);
    let mut factors = vec![0.0; rank * n_weights];
    Gaussian::new(key).fill(&mut factors);
    let spread = (START_CORRELATION / (rank as f64).sqrt()) as f32;
    weights.extend(factors.iter().map(|factor| spread * factor));
    LowRank {
        n_weights,
        rank,
        values: weights,
    }
}

/// Draws of a posterior, one after the other.
pub(crate) fn draws_of(posterior: &LowRank, n_draws: usize, key: Key) -> Vec<f32> {
    let mut sampler = Sampler::new(posterior, n_draws);
    sampler.draw(posterior, &mut Gaussian::new(key));
    sampler.draws
}
