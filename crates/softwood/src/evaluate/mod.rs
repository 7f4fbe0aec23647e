//! Evaluation: protocols that split the rows, runs of all folds, scores and reports; out-of-domain
//! detection; tests of the significance of differences.

pub(crate) mod ood;
pub(crate) mod protocol;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scores;
pub mod significance;
mod splits_file;

pub use ood::{Ood, Separation, ood};
pub use protocol::{Protocol, Split};
pub use report::{FoldReport, ModelReport, Report};
pub use run::{FittedFold, evaluate, fit_fold};
pub use scores::{Scores, score};
