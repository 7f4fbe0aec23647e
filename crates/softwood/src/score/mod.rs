//! Metrics on plain slices, one per file. Metrics do not use row weights.

pub(crate) mod auroc;
pub(crate) mod brier;
pub(crate) mod coverage;
pub(crate) mod ece;
pub(crate) mod log_score;
pub(crate) mod one_split;
pub(crate) mod pit;
pub(crate) mod prr;
pub(crate) mod sharpness;
