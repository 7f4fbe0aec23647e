//! Boosted variational soft trees. `vsgbm.md` has the model in formulas; it is also the
//! documentation of [`VsgbmParams`].

mod fitted;
mod noise;
mod offset;
mod params;
mod stages;
mod train;
mod warm_start;

pub use fitted::Vsgbm;
pub use params::{NoiseUpdate, Residuals, VsgbmParams};
