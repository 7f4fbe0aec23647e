//! Greedy complete trees on dense inputs: the starting points of soft trees.

pub(crate) mod best_split;
pub(crate) mod complete_tree;
