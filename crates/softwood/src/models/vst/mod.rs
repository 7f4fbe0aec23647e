//! Variational soft tree.

mod choose;
mod learn;
mod params;
mod posterior;
mod problem;
mod start;
mod train;

pub use params::{Leaf, LeafMixing, Prior, VstParams};
pub use posterior::Vst;
