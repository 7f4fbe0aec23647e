//! A classification or regression tree. What it is, in formulas, stands in `tree.md`, where users find it too: on the
//! parameters.

mod choose;
mod leaf;
mod learn;
mod outline;
mod params;
mod posterior;

pub use params::TreeParams;
pub use posterior::Tree;
