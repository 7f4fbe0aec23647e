//! The model families, one module each; the registry that lists them; model files.

pub(crate) mod boosting;
pub(crate) mod file;
pub(crate) mod forest;
pub(crate) mod gp;
pub(crate) mod ldt;
pub(crate) mod registry;
pub(crate) mod rnn_tree;
pub(crate) mod soft_tree;
pub(crate) mod tree;
pub(crate) mod vart;
pub(crate) mod vsgbm;
pub(crate) mod vst;

pub use crate::data::encoding::{Rotation, Scaling};
pub use crate::gaussian_process::kernel::KernelShape;
pub use crate::likelihood::NoiseModel;
pub use crate::variational::options::{Leaf, LeafMixing, PosteriorMethod, Prior};
pub use boosting::{Boosted, GrowPolicy, LangevinNoise, SgbParams, SglbParams};
pub use file::{from_bytes, load};
pub use forest::{Forest, ForestParams};
pub use gp::{Gp, GpParams, GpRnnTreeParams};
pub use ldt::{Ldt, LdtParams};
pub use registry::{Family, ModelSpec};
pub use rnn_tree::{LeafScale, RnnTree, RnnTreeParams, RouteEntropy};
pub use soft_tree::{GrowthOrder, SoftTree, SoftTreeParams, Variant, WeightPosterior};
pub use tree::{Tree, TreeParams};
pub use vart::{KlEstimate, LikelihoodReduction, Vart, VartParams};
pub use vsgbm::{NoiseUpdate, Residuals, Vsgbm, VsgbmParams};
pub use vst::{Vst, VstParams};
