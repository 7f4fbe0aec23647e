//! Evaluation: protocols that split the rows, runs of all folds, scores and reports; out-of-domain
//! detection.

pub(crate) mod ood;
pub(crate) mod protocol;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scores;
mod splits_file;
