//! Variational soft tree.

mod learn;
mod params;
mod posterior;

pub use params::{Leaf, LeafMixing, Prior, Rotation, Scaling, VstParams};
pub use posterior::Vst;
