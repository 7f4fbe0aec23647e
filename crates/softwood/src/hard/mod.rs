//! The hard-tree kernel: split search and greedy growth on dense inputs.

pub(crate) mod grow;
pub(crate) mod split;
