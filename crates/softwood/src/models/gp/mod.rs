//! Gaussian processes with constant noise (`gp.md`) and with noise that is a tree (`gp_rnn_tree.md`);
//! the parameter types include these pages.

mod config;
mod fitted;
mod noise_calibration;
mod noise_network;
mod noise_training;
mod noise_tree;
mod params;
mod problem;
mod search;
mod train;

pub use fitted::Gp;
pub use params::{GpParams, GpRnnTreeParams};

/// Random streams of a fit: children of the key of the run.
mod streams {
    /// Rows of the sample that chooses a starting point.
    pub(super) const SAMPLE: u64 = 0;
    /// Starting points of the search.
    pub(super) const STARTS: u64 = 1;
    /// Candidates of the inducing points.
    pub(super) const INDUCING: u64 = 2;
    /// Minibatches.
    pub(super) const BATCHES: u64 = 3;
    /// Sampled functions of the members.
    pub(super) const MEMBERS: u64 = 4;
    /// Substitutes for unseen categories.
    pub(super) const UNSEEN: u64 = 5;
    /// Networks of the noise; one child for each restart.
    pub(super) const NETWORKS: u64 = 6;
    /// Steps of the network in the turns of process and network.
    pub(super) const TURNS: u64 = 7;
    /// Children of a restart: first weights, and steps.
    pub(super) const NETWORK_WEIGHTS: u64 = 0;
    pub(super) const NETWORK_STEPS: u64 = 1;
    /// Child of a restart: bootstrap sample and tree that the network starts from.
    pub(super) const NETWORK_START: u64 = 2;
}
