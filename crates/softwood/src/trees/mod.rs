//! The hard-tree kernel: greedy growth on dense inputs, and histogram trees on bins.

pub(crate) mod cart;
pub(crate) mod column_gains;
pub(crate) mod condition;
pub(crate) mod dense;
pub(crate) mod histogram;
pub(crate) mod monotone;
pub(crate) mod routing;
pub(crate) mod serialize;
pub(crate) mod structure;
pub(crate) mod training_set;
