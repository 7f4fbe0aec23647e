//! The families, one room each.

pub(crate) mod boosting;
pub(crate) mod file;
pub(crate) mod forest;
pub(crate) mod registry;
pub(crate) mod tree;
pub(crate) mod vsgbm;
pub(crate) mod vst;
