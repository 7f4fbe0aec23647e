//! The parameter table of boosted variational soft trees.

use crate::extrapolation::away_from_data;
use crate::likelihood::NoiseModel;
use crate::params::{choices, params, with_groups};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{LeafMixing, check_mixing_levels};
use crate::variational::param_groups::{
    soft_draws, soft_fits, soft_inputs, soft_leaves, soft_members, soft_posterior, soft_prior,
    soft_sampling, soft_training,
};

choices! {
    /// How the residuals for an added tree are computed from the earlier trees.
    Residuals {
        /// From the posterior means of their weights.
        Mean = "mean",
        /// From one posterior draw of their weights.
        Draw = "draw",
        /// From a new posterior draw of their weights in every epoch.
        Redrawn = "redrawn" ("refreshed"),
    }
}

choices! {
    /// Posterior of a constant noise variance with prior `IG(a, b)` after `n` residuals `r`.
    NoiseUpdate {
        /// `IG(a + n/2, b + r'r/2)`, which follows from Bayes' rule.
        Exact = "exact",
        /// `IG(a + n, b + r'r)`, the formula of the paper.
        Paper = "paper" ("printed"),
    }
}

params! {
    /// Parameters of boosted variational soft trees.
    ///
    #[doc = include_str!("vsgbm.md")]
    VsgbmParams, across = |params: &VsgbmParams| {
        if params.noise == NoiseModel::Constant
            && !matches!(params.leaf_mixing, None | Some(LeafMixing::Blend))
        {
            return Some("`noise` = constant needs `leaf_mixing` = blend".to_owned());
        }
        check_mixing_levels(params.mixing_levels, params.leaf_mixing, params.max_depth)
    }, {
        /// Number of trees; auto: chosen on the validation set, at most 10 (3 without a validation
        /// set).
        n_estimators ("n_trees"): Option<usize> = None, [1, 1000];
        /// Depth of the trees, which have 2^`max_depth` leaves. Deeper trees fit more complex
        /// functions and take longer; auto: that of the first tree is chosen on the validation set,
        /// that of the others is 3.
        max_depth ("depth"): Option<usize> = None, [0, 8];
        use soft_leaves;
        /// How the leaves of the first tree combine into one distribution: `mixture` (each leaf is
        /// a component), `blend` (one distribution with averaged parameters) or `hybrid` (the top
        /// levels mix, the lower levels blend). Mixtures can have several modes and heavy tails;
        /// auto: chosen on the validation set.
        leaf_mixing: Option<LeafMixing> = None;
        /// Number of top levels of a hybrid first tree that mix; auto: half of `max_depth`, rounded
        /// up.
        mixing_levels: Option<usize> = None, [0, 8];
        /// Noise model for regression: `varying` depends on the inputs, `constant` is one variance
        /// for all rows.
        noise: NoiseModel = NoiseModel::Varying;
        /// Whether training with varying noise starts with one variance for all rows, so that the
        /// mean is fitted first (only if the first tree is a blend).
        homoscedastic_warmup ("calm_start"): bool = true;
        /// Whether the scale of varying noise is corrected after training, on the validation set
        /// and for the averaging of `n_fits` fits.
        calibrate_noise ("recalibrate"): bool = true;
        /// Posterior of a constant noise variance: `exact` follows from Bayes' rule, `paper` is the
        /// formula of the paper, which counts every residual twice.
        noise_update: NoiseUpdate = NoiseUpdate::Exact;
        /// Shape of the inverse-Gamma prior on a constant noise variance. Larger values give the
        /// prior more weight.
        noise_shape_prior ("noise_shape"): f64 = 3.0, [0.01, 1e6];
        /// Scale of the inverse-Gamma prior on a constant noise variance, in units of the variance
        /// of the target.
        noise_scale_prior ("noise_rate"): f64 = 0.1, [1e-9, 1e6];
        /// Factor on the output of every added tree (with constant noise, of the first tree too).
        /// Smaller values overfit less and need more trees.
        shrinkage: f64 = 0.5, [0.01, 1.0];
        /// How the residuals for an added tree are computed from the earlier trees: `mean` uses
        /// their posterior means, `draw` one posterior draw, `redrawn` a new draw in every epoch.
        residuals: Residuals = Residuals::Mean;
        /// Whether the posteriors of all trees are also trained jointly, if there is a validation
        /// set. It improves predictions and takes longer.
        joint_training ("joint"): bool = true;
        use soft_posterior;
        use soft_prior;
        use soft_training;
        /// Number of passes over the training rows in the final joint run; auto: about 12000
        /// optimiser steps, but 40 to 1500 epochs. The first tree is trained for half as many, each
        /// added tree for 0.15 times as many, and each joint run after an added tree for a tenth.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        use soft_draws;
        use soft_fits;
        use soft_sampling;
        use soft_members;
        use soft_inputs;
        use away_from_data;
    }
}

impl VsgbmParams {
    /// The configuration of the trees.
    pub(super) fn config(&self) -> SoftTreeConfig {
        let is_constant = self.noise == NoiseModel::Constant;
        with_groups!(self, [soft_posterior, soft_prior, soft_training, soft_inputs] => SoftTreeConfig {
            depth: self.max_depth,
            max_depth: usize::MAX,
            leaf: self.leaf_model,
            leaf_mixing: if is_constant {
                Some(LeafMixing::Blend)
            } else {
                self.leaf_mixing
            },
            mixing_levels: self.mixing_levels,
            // added trees can fit any smooth mean; a mixture pays only for noise that is not Normal
            prefers_blend: true,
            n_epochs: self.n_epochs,
            n_draws: self.n_draws,
            homoscedastic_warmup: self.homoscedastic_warmup,
            noise: if is_constant {
                NoiseSpec::Constant {
                    shape: self.noise_shape_prior,
                    scale: self.noise_scale_prior,
                }
            } else {
                NoiseSpec::Varying
            },
        })
    }
}
