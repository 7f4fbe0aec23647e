//! Variational soft tree. `vst.md` has the model in formulas; it is also the documentation of
//! [`VstParams`].

#[cfg(test)]
mod chain_tests;
mod fitted;
mod params;
mod train;
mod warm_start;

pub use fitted::Vst;
pub use params::VstParams;
