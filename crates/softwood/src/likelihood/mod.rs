//! Laws of the target given raw outputs: starts, gradients, hessians.

pub(crate) mod categorical;
pub(crate) mod normal;
pub(crate) mod squared;

use crate::params::choices;
use crate::rng::Key;

choices! {
    /// Noise model for regression.
    NoiseModel {
        /// The noise depends on the inputs.
        Varying = "varying" ("normal"),
        /// One noise variance for all rows.
        Constant = "constant" ("squared"),
    }
}

/// One output: where its gradient and its hessian stand among the gradient and hessian entries, and its regularisation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputTerms {
    pub(crate) gradient: usize,
    pub(crate) hessian: usize,
    /// Weight of this output's score.
    pub(crate) factor: f64,
    /// Added to the hessian of every leaf.
    pub(crate) l2: f64,
}

/// A likelihood whose negative log-likelihood boosting lowers. Gradients point uphill in likelihood.
///
/// A row has some raw outputs and `L` entries (gradients, hessians, weight): their sums over the rows of a leaf are all that split search
/// and leaf values need.
pub(crate) trait Likelihood<const L: usize>: Sync {
    /// Where gradient and hessian of each output stand, given the sums of all entries; `l2` counts rows of typical hessian.
    fn outputs(&self, l2: f64, totals: &[f64; L]) -> Vec<OutputTerms>;

    /// The entry that the least weight of a leaf is counted in.
    fn weight_entry(&self) -> usize;

    /// Variance of the posterior of a leaf's value, given the sums of its entries and its hessian with `l2`.
    fn noise_variance(&self, _output: usize, _sums: &[f64; L], hessian: f64) -> f64 {
        1.0 / hessian
    }

    /// Whether an output wanders where no rows hold it.
    fn is_free_without_rows(&self, _output: usize) -> bool {
        true
    }

    /// Multiplies the noise variance: the residual variance of a likelihood that has none of its own.
    fn dispersion(&self, _raw: &[f32], _target: &[f32], _weight: &[f32]) -> f64 {
        1.0
    }

    /// The likelihood as one round sees it, where there are too many outputs to move in every round.
    fn for_round(&self, _key: Key) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The outputs that the entries are about, ascending; empty for all.
    fn shown(&self) -> &[u16] {
        &[]
    }

    /// Raw outputs of the best constant.
    fn start(&self, target: &[f32], weight: &[f32]) -> Vec<f64>;

    /// Entries of each row. `raw` is rows x outputs.
    fn grad_hess(&self, raw: &[f32], target: &[f32], weight: &[f32], out: &mut [[f32; L]]);

    /// Largest step of an output in one leaf, before the learning rate.
    fn step_limit(&self, output: usize) -> f64;

    /// What to add to each raw output so that a constant more would fit these rows no better; only ever wider.
    fn scale_correction(&self, _raw: &[f32], _target: &[f32], _weight: &[f32]) -> Vec<f64> {
        Vec::new()
    }

    /// Log-likelihood of each row.
    fn log_densities(&self, raw: &[f32], target: &[f32], out: &mut [f64]);
}

/// Mean of the rows' log-likelihoods per unit of weight.
pub(crate) fn weighted_mean(log_densities: &[f64], weight: &[f32]) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (&value, &weight) in log_densities.iter().zip(weight) {
        sum += f64::from(weight) * value;
        total += f64::from(weight);
    }
    sum / total
}
