//! The parameter table of boosted variational soft trees.

use crate::data::encoding::{Rotation, Scaling};
use crate::likelihood::NoiseModel;
use crate::params::{choices, params};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{Leaf, LeafMixing, Prior, check_mixing_levels};

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
        /// Leaf values: `constant`, or `linear` in the inputs. Linear leaves suit smooth functions
        /// and extrapolate linearly; auto: linear if `max_depth` or `leaf_mixing` is given, else
        /// chosen on the validation set.
        leaf_model ("leaf"): Option<Leaf> = None, [0, 0];
        /// How the leaves of the first tree combine into one distribution: `mixture` (each leaf is
        /// a component), `blend` (one distribution with averaged parameters) or `hybrid` (the top
        /// levels mix, the lower levels blend). Mixtures can have several modes and heavy tails;
        /// auto: chosen on the validation set.
        leaf_mixing: Option<LeafMixing> = None, [0, 0];
        /// Number of top levels of a hybrid first tree that mix; auto: half of `max_depth`, rounded
        /// up.
        mixing_levels: Option<usize> = None, [0, 8];
        /// Noise model for regression: `varying` depends on the inputs, `constant` is one variance
        /// for all rows.
        noise: NoiseModel = NoiseModel::Varying, [0, 0];
        /// Whether training with varying noise starts with one variance for all rows, so that the
        /// mean is fitted first (only if the first tree is a blend).
        homoscedastic_warmup ("calm_start"): bool = true, [0, 0];
        /// Whether the scale of varying noise is corrected after training, on the validation set
        /// and for the averaging of `n_fits` fits.
        calibrate_noise ("recalibrate"): bool = true, [0, 0];
        /// Posterior of a constant noise variance: `exact` follows from Bayes' rule, `paper` is the
        /// formula of the paper, which counts every residual twice.
        noise_update: NoiseUpdate = NoiseUpdate::Exact, [0, 0];
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
        residuals: Residuals = Residuals::Mean, [0, 0];
        /// Whether the posteriors of all trees are also trained jointly, if there is a validation
        /// set. It improves predictions and takes longer.
        joint_training ("joint"): bool = true, [0, 0];
        /// Inverse temperature of the gates. Larger values give sharper splits under the same prior
        /// on the weights.
        beta: f64 = 1.0, [0.01, 100.0];
        /// Rank of the low-rank part of the posterior covariance, besides its diagonal (at most the
        /// number of weights). 0 means independent weights; larger values model more correlations
        /// and take longer.
        rank: usize = 5, [0, 100_000];
        /// Prior variances of the weights: `ard` learns one per input and kind of weight and so
        /// shrinks irrelevant inputs, `group` learns one per kind of weight, `fixed` uses
        /// `prior_scale` for all weights.
        prior: Prior = Prior::Ard, [0, 0];
        /// Prior standard deviation of the weights; the initial value if `prior` is `ard` or
        /// `group`. Smaller values regularise more.
        prior_scale: f64 = 0.5, [1e-3, 100.0];
        /// Weight of the KL term in the ELBO. 1 is the Bayesian posterior; smaller values fit the
        /// data more closely.
        kl_weight: f64 = 1.0, [0.0, 10.0];
        /// Peak learning rate of Adam, which falls to zero by a cosine schedule. Reduce it if
        /// training diverges; auto: 0.01 for regression, 0.02 for classification.
        learning_rate: Option<f64> = None, [1e-6, 1.0];
        /// Number of rows per optimiser step; auto: 64, 128 or 256, depending on the number of
        /// rows.
        batch_size: Option<usize> = None, [1, 1_000_000];
        /// Number of passes over the training rows in the final joint run; auto: about 12000
        /// optimiser steps, but 40 to 1500 epochs. The first tree is trained for half as many, each
        /// added tree for 0.15 times as many, and each joint run after an added tree for a tenth.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        /// Number of posterior draws per optimiser step, in antithetic pairs if more than one. More
        /// draws give gradients with less variance and take longer; auto: 4 below 3000 rows, else
        /// 2.
        n_draws: Option<usize> = None, [1, 64];
        /// Number of fits whose posteriors are averaged: of the candidates near the best on the
        /// validation set, in turn. More fits predict better and take longer in proportion.
        n_fits: usize = 4, [1, 100];
        /// Number of posterior draws kept for prediction. More draws give smoother predictive
        /// distributions and slower predictions.
        n_members: usize = 100, [1, 10_000];
        /// Whether a training run keeps the epoch with the best validation score instead of the
        /// last one.
        early_stopping: bool = true, [0, 0];
        /// Fraction of the training rows in the validation set, if no validation set is given.
        validation_fraction: f64 = 0.1, [0.01, 0.5];
        /// Scaling of numeric inputs: `standard` (mean 0, standard deviation 1), or `quantile`
        /// (ranks mapped to a standard Normal), which suits skewed columns; auto: chosen on the
        /// validation set.
        scaling: Option<Scaling> = None, [0, 0];
        /// Rotation of numeric inputs: `none`, `pca` (whitened principal components) or `both`
        /// (original and rotated inputs). Rotation suits correlated columns; auto: chosen on the
        /// validation set.
        rotation: Option<Rotation> = None, [0, 0];
        /// Whether squares of the numeric inputs are added as inputs, which suits quadratic
        /// effects; auto: chosen on the validation set.
        squares: Option<bool> = None, [0, 0];
        /// Maximum number of categories per column with an input of their own; rarer categories
        /// share one input.
        max_categories: usize = 32, [1, 10_000];
        /// Lower bound on the predicted noise standard deviation, in units of the standard
        /// deviation of the target. Increase it if predictions are overconfident; auto: 0.001, or
        /// half the step of a target with few distinct values.
        min_scale: Option<f64> = None, [0.0, 10.0];
    }
}

impl VsgbmParams {
    /// The configuration of the trees.
    pub(super) fn config(&self) -> SoftTreeConfig {
        let is_constant = self.noise == NoiseModel::Constant;
        SoftTreeConfig {
            depth: self.max_depth,
            leaf: self.leaf_model,
            leaf_mixing: if is_constant {
                Some(LeafMixing::Blend)
            } else {
                self.leaf_mixing
            },
            mixing_levels: self.mixing_levels,
            // added trees can fit any smooth mean; a mixture pays only for noise that is not Normal
            prefers_blend: true,
            beta: self.beta,
            rank: self.rank,
            prior: self.prior,
            prior_scale: self.prior_scale,
            kl_weight: self.kl_weight,
            learning_rate: self.learning_rate,
            batch_size: self.batch_size,
            n_epochs: self.n_epochs,
            n_draws: self.n_draws,
            early_stopping: self.early_stopping,
            validation_fraction: self.validation_fraction,
            scaling: self.scaling,
            rotation: self.rotation,
            squares: self.squares,
            max_categories: self.max_categories,
            min_scale: self.min_scale,
            homoscedastic_warmup: self.homoscedastic_warmup,
            noise: if is_constant {
                NoiseSpec::Constant {
                    shape: self.noise_shape_prior,
                    scale: self.noise_scale_prior,
                }
            } else {
                NoiseSpec::Varying
            },
        }
    }
}
