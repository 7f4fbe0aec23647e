//! State of the optimiser and one training step: draw weights, compute their gradients, map these
//! to the variational parameters, and update them with Adam.

use crate::inference::adam::Adam;
use crate::inference::lowrank_gaussian::{LossScale, LowRank, Sampler, draw_block};
use crate::inference::objective::{Objective, ValidationScores};
use crate::inference::prior::{WeightPrior, WeightedMoments};
use crate::inference::schedule;
use crate::inference::train::{EpochEvaluation, PosteriorRun, streams};
use crate::numerics::gaussian::Gaussian;
use crate::rng::Key;

/// Number of steps between two updates of the prior.
const PRIOR_UPDATE_INTERVAL: usize = 8;
/// Number of posterior draws that score the validation rows.
const SCORE_DRAWS: usize = 32;

/// State and buffers of a training run; a step allocates nothing.
pub(crate) struct OptimizerState {
    pub(crate) posterior: LowRank,
    sampler: Sampler,
    adam: Adam,
    prior: WeightPrior,
    /// Prior precision of each weight.
    precision: Vec<f32>,
    /// Buffer for `E[theta^2]`.
    moments: Vec<f32>,
    /// Factor of the KL divergence of each block of the posterior.
    block_weights: Vec<f32>,
    gaussian: Gaussian,
    /// Log-likelihood gradients of the draws.
    draw_gradients: Vec<f32>,
    /// Gradient of the parameters of the objective, and their optimiser.
    parameter_gradient: Vec<f32>,
    parameter_adam: Adam,
    kl_weight: f64,
    /// Current factor of the KL term, and whether the prior is learned.
    kl_annealing: f64,
    learns_prior: bool,
    n_draws: usize,
    n_steps: usize,
}

impl OptimizerState {
    /// The state before the first step of a run with this key.
    pub(crate) fn new<O: Objective>(objective: &mut O, run: PosteriorRun, key: Key) -> Self {
        let PosteriorRun {
            start: posterior,
            prior,
            kl_weight,
            schedule,
            ..
        } = run;
        let n_weights = objective.n_weights();
        let n_parameters = objective.parameters().len();
        Self {
            sampler: Sampler::new(&posterior, schedule.n_draws),
            adam: Adam::new(posterior.values.len()),
            precision: vec![prior.initial_precision(); n_weights],
            prior,
            moments: vec![0.0; n_weights],
            block_weights: vec![1.0; posterior.n_blocks()],
            gaussian: Gaussian::new(key.child(streams::STEP_DRAWS)),
            draw_gradients: vec![0.0; schedule.n_draws * n_weights],
            parameter_gradient: vec![0.0; n_parameters],
            parameter_adam: Adam::new(n_parameters),
            kl_weight,
            kl_annealing: 1.0,
            learns_prior: true,
            n_draws: schedule.n_draws,
            n_steps: 0,
            posterior,
        }
    }

    /// Sets the KL factor and the learning of the prior after a fraction `progress` of the run.
    pub(crate) fn anneal(&mut self, progress: f64) {
        self.kl_annealing = schedule::kl_annealing(progress);
        self.learns_prior = schedule::learns_prior(progress);
    }

    /// One step on a batch of rows; returns their weighted log-likelihood, averaged over draws.
    pub(crate) fn step<O: Objective>(
        &mut self,
        objective: &mut O,
        rows: &[usize],
        learning_rate: f32,
    ) -> f64 {
        objective.block_weights(&mut self.block_weights);
        if let Some(groups) = &self.prior.groups
            && self.learns_prior
            && self.n_steps.is_multiple_of(PRIOR_UPDATE_INTERVAL)
        {
            self.posterior.second_moments(&mut self.moments);
            let moments = WeightedMoments {
                moments: &self.moments,
                block_ends: &self.posterior.block_ends,
                block_weights: &self.block_weights,
            };
            groups.learn(&moments, &mut self.precision);
        }
        self.n_steps += 1;
        self.sampler.draw(&self.posterior, &mut self.gaussian);
        let sum = objective.log_likelihood(rows, &self.sampler.draws, &mut self.draw_gradients);
        // the batch of B of n rows estimates sum_i w_i ll_i by n/B times its sum; the loss is the
        // negative ELBO per unit of weight
        let total = objective.total_weight();
        let batch_scale = objective.n_rows() as f64 / (rows.len() as f64 * total);
        let scale = LossScale {
            likelihood: (batch_scale / self.n_draws as f64) as f32,
            kl: (self.kl_annealing * self.kl_weight / total) as f32,
        };
        let (posterior, precision) = (&self.posterior, &self.precision);
        self.sampler.loss_gradient(
            posterior,
            &self.draw_gradients,
            precision,
            &self.block_weights,
            scale,
        );
        objective.complete_gradient(posterior, precision, scale, &mut self.sampler.gradient);
        objective.parameter_gradient(posterior, precision, scale, &mut self.parameter_gradient);
        self.adam.step(
            &mut self.posterior.values,
            &self.sampler.gradient,
            learning_rate,
        );
        self.parameter_adam.step(
            objective.parameters(),
            &self.parameter_gradient,
            learning_rate,
        );
        sum / self.n_draws as f64
    }

    /// The ELBO after `epoch` epochs, from the log-likelihood of the training rows during the last
    /// one, and the scores of the validation rows.
    pub(crate) fn evaluate<O: Objective>(
        &self,
        objective: &O,
        epoch: usize,
        log_likelihood: f64,
        key: Key,
    ) -> (EpochEvaluation, Option<ValidationScores>) {
        let kl = objective.kl(&self.posterior, &self.precision);
        let elbo = (log_likelihood - self.kl_weight * kl) / objective.total_weight();
        let scores = objective.validation(&draw_block(&self.posterior, SCORE_DRAWS, key));
        let evaluation = EpochEvaluation {
            epoch,
            elbo,
            validation_score: scores.as_ref().map(|scores| scores.mean),
        };
        (evaluation, scores)
    }
}
