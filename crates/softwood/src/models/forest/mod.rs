//! Random forest. `forest.md` describes the model; the parameter type includes it.

mod fitted;
mod noise_calibration;
mod params;
mod train;

pub use fitted::Forest;
pub use params::ForestParams;
