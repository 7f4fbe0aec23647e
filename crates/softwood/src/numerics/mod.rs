//! Numerical routines shared by the other modules, one subject per file.

pub(crate) mod cholesky;
pub(crate) mod dense_cholesky;
pub(crate) mod dot;
pub(crate) mod eigen;
pub(crate) mod gamma;
pub(crate) mod gaussian;
pub(crate) mod gemm;
pub(crate) mod golden_section;
pub(crate) mod lbfgs;
pub(crate) mod logspace;
pub(crate) mod mcmc_diagnostics;
pub(crate) mod normal;
pub(crate) mod order;
pub(crate) mod prefetch;
pub(crate) mod real;
pub(crate) mod ridge;
pub(crate) mod special;
pub(crate) mod tail_probability;
