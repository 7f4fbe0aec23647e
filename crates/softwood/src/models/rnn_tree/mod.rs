//! RNN-Tree: a recurrent network that writes a decision tree. `rnn_tree.md` describes the model; the
//! parameter type includes it.

mod fitted;
mod leaves;
mod noise_calibration;
mod params;
mod pruning;
mod rows;
mod soft_routes;
mod sparse_leaves;
mod starts;
mod threshold_refit;
mod train;
mod training_run;

pub use fitted::RnnTree;
pub use params::{LeafScale, RnnTreeParams, RouteEntropy};

/// Random streams of a fit: children of the key of the run.
mod streams {
    /// Training runs, one child each.
    pub(super) const RESTARTS: u64 = 0;
    /// Posterior draws of the leaves, one child per tree.
    pub(super) const MEMBERS: u64 = 1;
    /// Split into training and validation rows.
    pub(super) const VALIDATION: u64 = 2;
    /// Start of a run: rows of a bootstrap, inputs of the levels, order of the leaf values.
    pub(super) const START: u64 = 0;
    /// Random weights of the network.
    pub(super) const WEIGHTS: u64 = 1;
    /// Batches and noise of a run.
    pub(super) const STEPS: u64 = 2;
}
