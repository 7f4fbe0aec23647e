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

/// Streams of the run's key.
mod streams {
    /// Chains that compare candidates.
    pub(super) const SELECTION: u64 = 10;
    /// Chains of the fitted model.
    pub(super) const CHAINS: u64 = 20;
    /// Order of the rows in the target encoding of each chain.
    pub(super) const ENCODING_ORDER: u64 = 30;
    /// The same for the parallel chains of a selection.
    pub(super) const PARALLEL_ORDER: u64 = 31;
    /// Order of the training rows.
    pub(super) const ROW_ORDER: u64 = 40;
    /// Order of the validation rows.
    pub(super) const VALIDATION_ORDER: u64 = 41;
    /// Substitutes of unseen categories.
    pub(super) const UNSEEN: u64 = 42;
    /// Places of the thresholds in the gaps between training values.
    pub(super) const THRESHOLDS: u64 = 43;
}
