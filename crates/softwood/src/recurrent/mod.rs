//! The recurrent network that writes a decision tree: gated recurrent unit, split heads, routes to
//! the leaves, and the objective with its gradient. It names no leaf likelihood and no model.

pub(crate) mod batches;
pub(crate) mod bin_inputs;
pub(crate) mod hard_tree;
pub(crate) mod imitation;
pub(crate) mod lane_product;
pub(crate) mod network;
pub(crate) mod node_splits;
pub(crate) mod objective;
pub(crate) mod routes;
pub(crate) mod scale_leaves;
pub(crate) mod schedule;
pub(crate) mod soft_gates;
#[cfg(test)]
mod tests;
pub(crate) mod unroll;
pub(crate) mod unroll_backward;
