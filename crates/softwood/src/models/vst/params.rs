//! The parameter table of the variational soft tree.

use crate::data::encoding::{Rotation, Scaling};
use crate::params::params;
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{Leaf, LeafMixing, Prior};

params! {
    /// Parameters of the variational soft tree.
    ///
    #[doc = include_str!("vst.md")]
    VstParams, across = |params: &VstParams| {
        let levels = params.mixing_levels?;
        match (params.leaf_mixing, params.max_depth) {
            (Some(LeafMixing::Hybrid), Some(depth)) if levels > depth => {
                Some(format!("`mixing_levels` = {levels} exceeds `max_depth` = {depth}"))
            }
            (Some(LeafMixing::Hybrid), Some(_)) => None,
            _ => Some("`mixing_levels` is only used with `leaf_mixing` = hybrid and a given `max_depth`".to_owned()),
        }
    }, {
        /// Levels of gates; auto: chosen on held-out rows.
        max_depth ("depth"): Option<usize> = None, [0, 8];
        /// What stands in a leaf; auto: linear where `max_depth` or `leaf_mixing` is given, else chosen on held-out rows.
        leaf_model ("leaf"): Option<Leaf> = None, [0, 0];
        /// How leaves become one distribution; auto: chosen on held-out rows.
        leaf_mixing: Option<LeafMixing> = None, [0, 0];
        /// Levels of a hybrid tree that choose a component; auto: half of `max_depth`, rounded up.
        mixing_levels: Option<usize> = None, [0, 8];
        /// Inverse temperature of the gates.
        beta: f64 = 1.0, [0.01, 100.0];
        /// Rank of the posterior covariance besides its diagonal (at most the number of weights).
        rank: usize = 5, [0, 100_000];
        /// Where the prior variances come from.
        prior: Prior = Prior::Ard, [0, 0];
        /// Prior standard deviation of every weight: fixed, or where learning starts.
        prior_scale: f64 = 0.5, [1e-3, 100.0];
        /// Weight of the KL term of the ELBO; 1 is Bayes.
        kl_weight: f64 = 1.0, [0.0, 10.0];
        /// Peak step size of Adam, decayed to zero by a cosine; auto: 0.01, for classes 0.02.
        learning_rate: Option<f64> = None, [1e-6, 1.0];
        /// Rows per step; auto: by the number of rows.
        batch_size: Option<usize> = None, [1, 1_000_000];
        /// Passes over the training rows; auto: by the number of rows.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        /// Parameter draws per step, antithetic pairs from 2 on; auto: by the number of rows.
        n_draws: Option<usize> = None, [1, 64];
        /// Fits whose posteriors are averaged: of the shapes that come near the best, in transpose.
        n_fits: usize = 4, [1, 100];
        /// Posterior draws kept for prediction.
        n_members: usize = 100, [1, 10_000];
        /// Whether to keep the epoch that was best on held-out rows.
        early_stopping: bool = true, [0, 0];
        /// Part of the training rows held out where none are given.
        validation_fraction: f64 = 0.1, [0.01, 0.5];
        /// Scaling of numeric inputs; auto: chosen on held-out rows.
        scaling: Option<Scaling> = None, [0, 0];
        /// Rotation of numeric inputs; auto: chosen on held-out rows.
        rotation: Option<Rotation> = None, [0, 0];
        /// Whether the squares of numeric inputs are inputs too; auto: chosen on held-out rows.
        squares: Option<bool> = None, [0, 0];
        /// Categories per column that get an input of their own; rarer ones share one.
        max_categories: usize = 32, [1, 10_000];
        /// Least standard deviation of a leaf, in units of the target's; auto: 0.001, or half the target's resolution.
        min_scale: Option<f64> = None, [0.0, 10.0];
        /// Known noise standard deviation in the target's units; auto: learned.
        noise_scale: Option<f64> = None, [1e-12, 1e12];
    }
}

impl From<&VstParams> for SoftTreeConfig {
    fn from(params: &VstParams) -> Self {
        Self {
            depth: params.max_depth,
            leaf: params.leaf_model,
            leaf_mixing: params.leaf_mixing,
            mixing_levels: params.mixing_levels,
            prefers_blend: false,
            homoscedastic_warmup: false,
            beta: params.beta,
            rank: params.rank,
            prior: params.prior,
            prior_scale: params.prior_scale,
            kl_weight: params.kl_weight,
            learning_rate: params.learning_rate,
            batch_size: params.batch_size,
            n_epochs: params.n_epochs,
            n_draws: params.n_draws,
            early_stopping: params.early_stopping,
            validation_fraction: params.validation_fraction,
            scaling: params.scaling,
            rotation: params.rotation,
            squares: params.squares,
            max_categories: params.max_categories,
            min_scale: params.min_scale,
            noise: params
                .noise_scale
                .map_or(NoiseSpec::Varying, NoiseSpec::Known),
        }
    }
}
