//! Fit and score by a protocol: how rows are split, how folds are run, what is reported. And
//! out-of-domain alarms, and what columns are worth.

pub(crate) mod ood;
pub(crate) mod protocol;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scores;
mod splits_file;
