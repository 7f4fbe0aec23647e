//! The soft-tree kernel: gates, path probabilities, leaf likelihoods and their gradients, for
//! blocks of rows.
//!
//! A tree of any shape is described by a `TreeLayout`; the common one is a complete tree with gates
//! in heap order (children of gate n: 2n+1 left, 2n+2 right). A gate sends a row to the right with
//! probability sigmoid(beta (w.x + b)).
//! Every leaf holds channels (mean and raw scale, or logits). The gates at the top choose a
//! component of a mixture; the gates below blend channels inside a component.

pub(crate) mod additive;
pub(crate) mod blend;
pub(crate) mod forward;
pub(crate) mod general_layout;
pub(crate) mod kernel;
pub(crate) mod layout;
pub(crate) mod packed;
pub(crate) mod stopping_tree;
pub(crate) mod stopping_weights;
pub(crate) mod tree;
