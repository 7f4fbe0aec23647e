//! Classification and regression tree. `tree.md` describes the model; the parameter type includes
//! it.

mod fitted;
mod params;
mod pruning_cv;
mod train;

pub use fitted::Tree;
pub use params::TreeParams;

/// Random streams of a fit: children of the key of the run.
mod streams {
    /// Growing the full tree.
    pub(super) const TREE: u64 = 0;
    /// Assignment of the rows to the folds of the cross-validation.
    pub(super) const FOLDS: u64 = 4;
    /// Growing the tree of each fold.
    pub(super) const FOLD_TREES: u64 = 2;
    /// Posterior draws of the leaves.
    pub(super) const MEMBERS: u64 = 3;
}
