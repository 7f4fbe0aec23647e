//! Gaussian process. `gp.md` describes the model; the parameter type includes it.

mod fitted;
mod params;
mod search;
mod train;

pub use fitted::Gp;
pub use params::GpParams;

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
}
