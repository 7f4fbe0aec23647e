//! The soft-tree kernel: gates, path probabilities, leaf likelihoods and their gradients, for
//! blocks of rows.
//!
//! A complete tree of depth D has gates in heap order (children of gate n: 2n+1 left, 2n+2 right).
//! A gate sends a row to the right with probability sigmoid(beta (w.x + b)). Every leaf holds
//! channels (mean and raw scale, or logits). The top `mixing_levels` levels choose a component of a
//! mixture; the levels below blend channels inside a component.

pub(crate) mod additive;
pub(crate) mod blend;
pub(crate) mod forward;
pub(crate) mod kernel;
pub(crate) mod layout;
pub(crate) mod likelihood;
pub(crate) mod packed;
pub(crate) mod tree;
