//! Boosted histogram trees: stochastic gradient boosting and its Langevin form. What they are, in formulas, stands in
//! `boosting.md`, where users find it too: on the parameters.

mod alike;
mod choose;
mod class_weights;
mod codec;
mod config;
mod learn;
mod likelihood;
mod params;
mod posterior;
mod prepare;
mod view;

pub use params::{NoiseMode, RegressionHead, SgbParams, SglbParams, TreeGrowth};
pub use posterior::Boosted;
