//! Gradient boosting of histogram trees, with or without Langevin noise.

pub(crate) mod chain;
pub(crate) mod early_stopping;
pub(crate) mod inputs;
pub(crate) mod langevin;
pub(crate) mod predict;
mod round;
mod subsample;
pub(crate) mod train_chain;
mod update;
pub(crate) mod used_thresholds;
mod validation_window;
