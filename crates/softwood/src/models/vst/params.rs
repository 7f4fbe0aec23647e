//! The parameter table of the variational soft tree.

use crate::extrapolation::away_from_data;
use crate::params::{params, with_groups};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{LeafMixing, check_mixing_levels};
use crate::variational::param_groups::{
    soft_calibration, soft_draws, soft_fits, soft_inputs, soft_leaves, soft_members,
    soft_posterior, soft_prior, soft_sampling, soft_training,
};

params! {
    /// Parameters of the variational soft tree.
    ///
    #[doc = include_str!("vst.md")]
    VstParams, across = |params: &VstParams| {
        check_mixing_levels(params.mixing_levels, params.leaf_mixing, params.max_depth)
    }, {
        /// Depth of the tree, which has 2^`max_depth` leaves. Deeper trees fit more complex
        /// functions and take longer; auto: chosen on the validation set.
        max_depth ("depth"): Option<usize> = None, [0, 8];
        use soft_leaves;
        /// How leaves combine into one distribution: `mixture` (each leaf is a component), `blend`
        /// (one distribution with averaged parameters) or `hybrid` (the top levels mix, the lower
        /// levels blend). Mixtures can have several modes and heavy tails; auto: chosen on the
        /// validation set.
        leaf_mixing: Option<LeafMixing> = None;
        /// Number of top levels of a hybrid tree that mix; auto: half of `max_depth`, rounded up.
        mixing_levels: Option<usize> = None, [0, 8];
        use soft_posterior;
        use soft_prior;
        use soft_training;
        /// Number of passes over the training rows; auto: about 12000 optimiser steps, but 40 to
        /// 1500 epochs.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        use soft_draws;
        use soft_fits;
        use soft_calibration;
        use soft_sampling;
        use soft_members;
        use soft_inputs;
        /// Known standard deviation of the noise for regression, in the units of the target; auto:
        /// learned.
        noise_scale: Option<f64> = None, [1e-12, 1e12];
        use away_from_data;
    }
}

impl From<&VstParams> for SoftTreeConfig {
    fn from(params: &VstParams) -> Self {
        with_groups!(params, [soft_posterior, soft_prior, soft_training, soft_inputs] => SoftTreeConfig {
            depth: params.max_depth,
            max_depth: usize::MAX,
            leaf: params.leaf_model,
            leaf_mixing: params.leaf_mixing,
            mixing_levels: params.mixing_levels,
            prefers_blend: false,
            homoscedastic_warmup: false,
            n_epochs: params.n_epochs,
            n_draws: params.n_draws,
            noise: params
                .noise_scale
                .map_or(NoiseSpec::Varying, NoiseSpec::Known),
        })
    }
}
