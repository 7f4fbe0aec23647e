//! Variational inference: the low-rank Gaussian posterior, its prior, the optimiser and its
//! schedule. Nothing here depends on trees.

pub(crate) mod adam;
pub(crate) mod lowrank_gaussian;
pub(crate) mod prior;
pub(crate) mod schedule;
