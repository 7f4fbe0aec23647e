//! Soft trees with a Gaussian posterior over their weights, fitted by maximising the ELBO, from which
//! Hamiltonian Monte Carlo may go on: the part that the families `vst`, `vsgbm` and `soft-tree` share.

pub(crate) mod candidate;
pub(crate) mod config;
pub(crate) mod encoded_rows;
pub(crate) mod encoding_cache;
pub(crate) mod ensemble;
pub(crate) mod fit_rows;
pub(crate) mod fitted;
pub(crate) mod groups;
pub(crate) mod init;
pub(crate) mod minibatch;
pub(crate) mod noise_calibration;
pub(crate) mod objective;
pub(crate) mod options;
pub(crate) mod param_groups;
#[cfg(feature = "bench")]
pub(crate) mod probe;
pub(crate) mod sampling;
pub(crate) mod selection;
pub(crate) mod streams;
pub(crate) mod train;
pub(crate) mod tree_export;
pub(crate) mod tree_summary;
