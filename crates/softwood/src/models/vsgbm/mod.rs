//! Boosted variational soft trees. What they are, in formulas, stands in `vsgbm.md`, where users find it too: on [`VsgbmParams`].

mod learn;
mod noise;
mod noise_calibration;
mod offset;
mod params;
mod posterior;
mod stages;

pub use params::{NoiseModel, NoiseUpdate, Residuals, VsgbmParams};
pub use posterior::Vsgbm;
