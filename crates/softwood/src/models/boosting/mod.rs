//! Boosted histogram trees: stochastic gradient boosting and its Langevin form. What they are, in formulas, stands in
//! `boosting.md`, where users find it too: on the parameters.

mod alike;
mod choose;
mod class_weights;
mod codec;
mod config;
mod fitted;
mod likelihood;
mod params;
mod prepare;
mod train;
mod view;

pub use params::{NoiseMode, RegressionHead, SgbParams, SglbParams, TreeGrowth};
pub use posterior::Boosted;
