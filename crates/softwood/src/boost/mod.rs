//! Boosting of histogram trees: chains of trees, with or without Langevin noise.

pub(crate) mod asked;
pub(crate) mod chain;
pub(crate) mod forward;
pub(crate) mod learner;
mod ordered;
mod window;
