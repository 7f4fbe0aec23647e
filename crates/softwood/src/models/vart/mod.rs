//! The variational regression tree: a posterior over the structure and the weights of a soft tree.

mod fitted;
mod groups;
mod init;
mod moves;
mod node_outputs;
mod objective;
mod params;
#[cfg(feature = "bench")]
pub(crate) mod probe;
mod relaxed_kl;
mod spec;
mod split_mass;
mod streams;
mod structure;
mod structure_kl;
#[cfg(test)]
mod tests;
mod train;
mod training_run;
mod warm_start;

pub use fitted::Vart;
pub use params::{KlEstimate, LikelihoodReduction, VartParams};
