//! A random forest. What it is, in formulas, stands in `forest.md`, where users find it too: on the parameters.

mod bootstrap;
mod fitted;
mod noise_calibration;
mod params;
mod train;

pub use fitted::Forest;
pub use params::ForestParams;
