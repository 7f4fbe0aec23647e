//! The interface between a model and its variational training: log-likelihoods and gradients for
//! draws of the weights, validation scores, and hooks for terms of the loss that only some models
//! have.

use crate::inference::lowrank_gaussian::{LossScale, LowRank};

/// A model whose weights have a [`LowRank`] posterior, together with its training and validation
/// rows.
///
/// The loss per unit of row weight is `- E[log-likelihood] + KL`. [`OptimizerState`] estimates the
/// first term by draws of the weights and minibatches of rows; the prior of the weights is
/// `N(0, diag(1/precision))`.
///
/// A model may have parameters without a Gaussian posterior ([`Objective::parameters`]): point
/// estimates, or the parameters of another posterior factor such as split probabilities. The same
/// optimiser updates them. A model may have no weights at all; it is then trained with one (empty)
/// draw.
///
/// [`OptimizerState`]: crate::inference::optimizer_state::OptimizerState
pub(crate) trait Objective {
    /// The part of the fitted model besides the posterior of the weights, such as a noise variance
    /// or the values of [`Objective::parameters`].
    type State: Clone;

    /// Number of weights of a draw.
    fn n_weights(&self) -> usize;

    /// Number of training rows.
    fn n_rows(&self) -> usize;

    /// Sum of the weights of the training rows.
    fn total_weight(&self) -> f64;

    /// Weighted log-likelihood of the training rows with these indices, summed over draws. Writes
    /// the gradient of each draw to `gradients`. Draws and gradients stand one after the other,
    /// `n_weights` values each.
    fn log_likelihood(&mut self, rows: &[usize], draws: &[f32], gradients: &mut [f32]) -> f64;

    /// Log densities of the validation rows under the mixture of the draws; `None` without a
    /// validation set.
    fn validation(&self, draws: &[f32]) -> Option<ValidationScores>;

    /// The current state.
    fn state(&self) -> Self::State;

    /// Called before the first step of each epoch; may change the posterior.
    fn start_epoch(&mut self, _epoch: usize, _posterior: &mut LowRank) {}

    /// Called after each epoch and its evaluation, with the weighted log-likelihood of the training
    /// rows during its steps.
    fn end_epoch(&mut self, _log_likelihood: f64) {}

    /// Called when a run is stopped before an epoch could be selected: brings state and posterior
    /// into the form that they have at the end of a run.
    fn end_early(&mut self, _posterior: &mut LowRank) {}

    /// KL divergence of all posterior factors from their priors.
    fn kl(&self, posterior: &LowRank, precision: &[f32]) -> f64 {
        posterior.kl(precision)
    }

    /// Writes the factor of the KL divergence of each block of the posterior, for a model whose KL
    /// divergence is such a sum; all factors are 1 by default. They also weigh the second moments
    /// from which the prior is learned.
    fn block_weights(&self, _weights: &mut [f32]) {}

    /// Parameters that are optimised besides those of the posterior.
    fn parameters(&mut self) -> &mut [f32] {
        &mut []
    }

    /// Completes the gradient of the loss with respect to `LowRank::values` after
    /// [`Objective::log_likelihood`]. `gradient` holds the likelihood term and the gradient of
    /// `posterior.kl` with the factors of [`Objective::block_weights`]; a model that overrides
    /// [`Objective::kl`] in another way adds the difference.
    fn complete_gradient(
        &self,
        _posterior: &LowRank,
        _precision: &[f32],
        _scale: LossScale,
        _gradient: &mut [f32],
    ) {
    }

    /// Writes the gradient of the loss with respect to [`Objective::parameters`], after
    /// [`Objective::log_likelihood`].
    fn parameter_gradient(
        &self,
        _posterior: &LowRank,
        _precision: &[f32],
        _scale: LossScale,
        _gradient: &mut [f32],
    ) {
    }
}

/// Log densities of the validation rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValidationScores {
    /// Log density of each row.
    pub(crate) of_rows: Vec<f64>,
    /// Weighted mean over the rows.
    pub(crate) mean: f64,
}
