//! Greedy complete trees on dense inputs, which initialise soft trees.

pub(crate) mod best_split;
pub(crate) mod complete_tree;
