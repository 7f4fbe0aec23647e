//! Boosted histogram trees: stochastic gradient boosting and its Langevin form. What they are, in formulas, stands in
//! `boosting.md`, where users find it too: on the parameters.

mod class_weights;
mod config;
mod features;
mod fitted;
mod likelihood;
mod member_diagnostics;
mod params;
mod selection;
mod serialize;
mod train;
mod training_data;

pub use fitted::Boosted;
pub use params::{GrowPolicy, LangevinNoise, SgbParams, SglbParams};
