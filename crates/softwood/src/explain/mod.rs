//! Explanations of fitted models: permutation importance and the export of a single tree.

pub(crate) mod permutation_importance;
pub(crate) mod tree_export;
