//! Likelihoods of the target given the outputs of a model: log densities, gradients, hessians,
//! starts. One file per distribution has its formulas for all engines: [`TargetDensity`] for soft
//! trees, [`Likelihood`] for boosted hard trees.

pub(crate) mod categorical;
pub(crate) mod normal;
pub(crate) mod soft;
pub(crate) mod squared;

use crate::numerics::real::{Lanes, Real};
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

/// Names of the outputs of a model under a likelihood: the parameters of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputNames {
    /// One name per output.
    Each(&'static [&'static str]),
    /// One output per class, all with this name.
    PerClass(&'static str),
}

impl OutputNames {
    /// Name of an output.
    pub(crate) fn name(self, output: usize) -> &'static str {
        match self {
            Self::Each(names) => names[output],
            Self::PerClass(name) => name,
        }
    }

    /// Index of the first output with the name of this one: outputs with one name have one role.
    pub(crate) fn role(self, output: usize) -> usize {
        match self {
            Self::Each(_) => output,
            Self::PerClass(_) => 0,
        }
    }

    /// Number of outputs; `n_classes` is used for outputs per class.
    pub(crate) fn n_outputs(self, n_classes: usize) -> usize {
        match self {
            Self::Each(names) => names.len(),
            Self::PerClass(_) => n_classes,
        }
    }
}

/// The density of the target given the outputs of a model, with its gradient: what gradient-based
/// training of any model needs.
pub(crate) trait TargetDensity {
    /// Names of the outputs.
    fn output_names(&self) -> OutputNames;

    /// Log density of `target` given the outputs; writes its gradient. Lanes are rows.
    fn log_density<T: Real>(
        &self,
        outputs: &[Lanes<T>],
        target: &Lanes<T>,
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T>;
}

/// The entries that hold the gradient and the hessian of one output, and its regularisation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputTerms {
    pub(crate) gradient: usize,
    pub(crate) hessian: usize,
    /// Weight of this output in the score of a split.
    pub(crate) factor: f64,
    /// Added to the hessian of every leaf.
    pub(crate) l2: f64,
}

/// A likelihood that boosting maximises. Gradients are those of the log-likelihood.
///
/// A row has some raw outputs and `L` entries: gradients, hessians and weight. The sums of the
/// entries over the rows of a leaf are all that split search and leaf values need.
pub(crate) trait Likelihood<const L: usize>: Sync {
    /// Terms of each output, given the sums of the entries over all rows. `l2` is in units of rows
    /// with a typical hessian.
    fn outputs(&self, l2: f64, totals: &[f64; L]) -> Vec<OutputTerms>;

    /// The entry that `min_child_weight` applies to.
    fn weight_entry(&self) -> usize;

    /// Posterior variance of a leaf value, given the sums of the leaf. `hessian` includes `l2`.
    fn noise_variance(&self, _output: usize, _sums: &[f64; L], hessian: f64) -> f64 {
        1.0 / hessian
    }

    /// Whether Langevin noise applies to an output in leaves without rows.
    fn has_noise_in_empty_leaves(&self, _output: usize) -> bool {
        true
    }

    /// Residual variance under a likelihood without a scale of its own, else 1. It multiplies
    /// [`Likelihood::noise_variance`].
    fn dispersion(&self, _raw: &[f32], _target: &[f32], _weight: &[f32]) -> f64 {
        1.0
    }

    /// This likelihood with some outputs drawn at random, if there are too many to update all of
    /// them in every round.
    fn for_round(&self, _key: Key) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The outputs that the entries describe, ascending; empty if they describe all.
    fn updated_outputs(&self) -> &[u16] {
        &[]
    }

    /// Raw outputs of the best constant model.
    fn start(&self, target: &[f32], weight: &[f32]) -> Vec<f64>;

    /// Computes the entries of each row. `raw` is rows x outputs.
    fn grad_hess(&self, raw: &[f32], target: &[f32], weight: &[f32], out: &mut [[f32; L]]);

    /// Largest absolute step of an output in one leaf, before the learning rate.
    fn step_limit(&self, output: usize) -> f64;

    /// Shift of each raw output that fits the scale to these rows; it never narrows the scale.
    /// Empty for a likelihood without a scale.
    fn scale_correction(&self, _raw: &[f32], _target: &[f32], _weight: &[f32]) -> Vec<f64> {
        Vec::new()
    }

    /// Log-likelihood of each row.
    fn log_densities(&self, raw: &[f32], target: &[f32], out: &mut [f64]);
}

/// Weighted mean of a target.
pub(crate) fn target_mean(target: &[f32], weight: &[f32]) -> f64 {
    let total: f64 = weight.iter().map(|&w| f64::from(w)).sum();
    let terms = target.iter().zip(weight);
    terms
        .map(|(&y, &w)| f64::from(y) * f64::from(w))
        .sum::<f64>()
        / total
}

/// Weighted mean of the log-likelihoods of rows.
pub(crate) fn weighted_mean(log_densities: &[f64], weight: &[f32]) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (&value, &weight) in log_densities.iter().zip(weight) {
        sum += f64::from(weight) * value;
        total += f64::from(weight);
    }
    sum / total
}
