//! The model families, one module each; the rows of parameters that they share; the
//! registry that lists them; model files.

pub(crate) mod boosting;
pub(crate) mod file;
pub(crate) mod forest;
mod param_groups;
pub(crate) mod registry;
pub(crate) mod tree;
pub(crate) mod vsgbm;
pub(crate) mod vst;
