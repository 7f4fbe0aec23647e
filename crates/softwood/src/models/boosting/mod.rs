//! Boosted histogram trees: stochastic gradient boosting and its Langevin form.

mod codec;
mod head;
mod learn;
mod params;
mod posterior;
mod recipe;

pub use params::{NoiseMode, RegressionHead, SgbParams, SglbParams, TreeGrowth};
pub use posterior::Boosted;
