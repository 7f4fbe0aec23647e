//! The hard-tree kernel: greedy growth on dense inputs, and histogram trees on bins.

pub(crate) mod candidate;
pub(crate) mod fixed;
pub(crate) mod grow;
pub(crate) mod growth;
pub(crate) mod histogram;
pub(crate) mod order;
pub(crate) mod partition;
mod room;
pub(crate) mod search;
pub(crate) mod skeleton;
pub(crate) mod split;
pub(crate) mod test;
