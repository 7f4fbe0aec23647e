//! Boosted variational soft trees. What they are, in formulas, stands in `vsgbm.md`, where users find it too: on [`VsgbmParams`].

mod fitted;
mod noise;
mod noise_calibration;
mod offset;
mod params;
mod stages;
mod train;

pub use fitted::Vsgbm;
pub use params::{NoiseUpdate, Residuals, VsgbmParams};
