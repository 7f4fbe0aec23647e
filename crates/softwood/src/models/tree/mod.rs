//! A classification or regression tree. What it is, in formulas, stands in `tree.md`, where users find it too: on the
//! parameters.

mod choose;
mod fitted;
mod leaf;
mod outline;
mod params;
mod train;

pub use params::TreeParams;
pub use posterior::Tree;
