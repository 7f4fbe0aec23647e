//! The families, one room each.

pub(crate) mod any;
pub(crate) mod boosting;
pub(crate) mod file;
pub(crate) mod vst;
