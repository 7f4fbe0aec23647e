//! Boosted histogram trees: stochastic gradient boosting (`sgb`) and stochastic gradient Langevin
//! boosting (`sglb`). `boosting.md` describes the model; the parameter types include it.

mod class_weights;
mod config;
mod features;
mod fitted;
mod likelihood;
mod member_diagnostics;
mod noise_calibration;
mod params;
mod selection;
mod serialize;
mod train;
mod training_data;

pub use fitted::Boosted;
pub use params::{GrowPolicy, LangevinNoise, SgbParams, SglbParams};

/// Random streams of a fit: children of the key of the run.
mod streams {
    /// Chains that compare candidates on the validation set.
    pub(super) const SELECTION: u64 = 10;
    /// Chains of the fitted model.
    pub(super) const CHAINS: u64 = 20;
    /// Row order of the target encoding, one for each chain of the fitted model.
    pub(super) const ENCODING_ORDER: u64 = 30;
    /// Row order of the target encoding, one for each parallel chain of the selection.
    pub(super) const PARALLEL_ORDER: u64 = 31;
    /// Order of the training rows.
    pub(super) const ROW_ORDER: u64 = 40;
    /// Order of the validation rows.
    pub(super) const VALIDATION_ORDER: u64 = 41;
    /// Substitutes for unseen categories.
    pub(super) const UNSEEN: u64 = 42;
    /// Thresholds of each chain between neighbouring training values.
    pub(super) const THRESHOLDS: u64 = 43;
}
