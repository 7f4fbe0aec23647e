//! Evaluation: protocols that split the rows, runs of all folds, scores and reports; out-of-domain
//! detection.

pub(crate) mod ood;
pub(crate) mod protocol;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scores;
mod splits_file;

pub use ood::{Ood, Separation, ood};
pub use protocol::{Protocol, Split};
pub use report::{FoldReport, ModelReport, Report};
pub use run::evaluate;
pub use scores::{Scores, score};
