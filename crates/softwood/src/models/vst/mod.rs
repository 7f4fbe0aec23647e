//! Variational soft tree. What it is, in formulas, stands in `vst.md`, where users find it too: on [`VstParams`].

mod choose;
mod learn;
mod params;
mod posterior;
mod probe;
mod problem;
mod start;
mod train;

pub use params::{Leaf, LeafMixing, Prior, VstParams};
pub use posterior::Vst;
pub use probe::{ProbeShape, StepProbe};
