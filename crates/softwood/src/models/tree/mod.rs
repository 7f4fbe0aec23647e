//! A classification or regression tree. What it is, in formulas, stands in `tree.md`, where users find it too: on the
//! parameters.

mod export;
mod fitted;
mod leaf;
mod params;
mod pruning_cv;
mod train;

pub use fitted::Tree;
pub use params::TreeParams;
