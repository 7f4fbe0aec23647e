//! The families, one room each.

pub(crate) mod any;
pub(crate) mod vst;
