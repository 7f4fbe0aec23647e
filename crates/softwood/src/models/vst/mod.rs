//! Variational soft tree. What it is, in formulas, stands in `vst.md`, where users find it too: on [`VstParams`].

mod fitted;
mod params;
mod train;

pub use fitted::Vst;
pub use params::VstParams;
