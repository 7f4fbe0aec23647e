//! Boosted variational soft trees. What they are, in formulas, stands in `vsgbm.md`, where users find it too: on [`VsgbmParams`].

mod boost;
mod given;
mod learn;
mod noise;
mod params;
mod posterior;
mod spread;

pub use params::{NoiseModel, NoiseUpdate, Residuals, VsgbmParams};
pub use posterior::Vsgbm;
