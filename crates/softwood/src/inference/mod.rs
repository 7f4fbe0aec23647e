//! Variational inference: the low-rank Gaussian posterior, its prior, the optimiser, its schedule
//! and the training loop. A model takes part by the trait `Objective`; nothing here depends on
//! trees. Hamiltonian Monte Carlo draws from any density with a gradient (`LogDensity`).

pub(crate) mod adam;
pub(crate) mod hmc;
pub(crate) mod lowrank_gaussian;
pub(crate) mod objective;
pub(crate) mod optimizer_state;
pub(crate) mod prior;
pub(crate) mod radam;
pub(crate) mod schedule;
#[cfg(test)]
mod tests;
pub(crate) mod train;
