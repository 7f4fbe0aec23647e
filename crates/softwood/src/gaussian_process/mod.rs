//! Gaussian processes: kernels, the exact posterior, a sparse posterior on inducing points, sampled
//! functions, and the estimation of hyper-parameters. Targets are standardised, and the prior mean is
//! zero.
//!
//! Every row has a noise variance of its own, so that a model of varying noise can use all of this.

pub(crate) mod exact;
pub(crate) mod exact_training;
pub(crate) mod hyperparameters;
pub(crate) mod inducing;
pub(crate) mod kernel;
pub(crate) mod noise_levels;
pub(crate) mod pathwise;
pub(crate) mod points;
pub(crate) mod posterior;
pub(crate) mod sparse;
pub(crate) mod sparse_training;
