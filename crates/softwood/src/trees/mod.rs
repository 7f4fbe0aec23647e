//! Hard decision trees: histogram trees and CART on binned columns, greedy trees on dense inputs, and
//! the distributions of their leaves.

pub(crate) mod cart;
pub(crate) mod column_gains;
pub(crate) mod condition;
pub(crate) mod dense;
pub(crate) mod histogram;
pub(crate) mod leaf_posterior;
pub(crate) mod monotone;
pub(crate) mod param_groups;
pub(crate) mod routing;
pub(crate) mod serialize;
pub(crate) mod structure;
pub(crate) mod training_set;
