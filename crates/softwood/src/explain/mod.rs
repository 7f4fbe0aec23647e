//! Explanations of a fitted model: permutation importance and the export of a tree.
pub(crate) mod permutation_importance;
pub(crate) mod tree_export;
