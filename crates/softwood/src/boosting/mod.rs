//! Boosting of histogram trees: chains of trees, with or without Langevin noise.

pub(crate) mod chain;
pub(crate) mod learner;
pub(crate) mod predict;
pub(crate) mod used_thresholds;
mod validation_window;
