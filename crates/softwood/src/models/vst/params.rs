//! The parameter table of the variational soft tree.

use crate::data::encoding::{Rotation, Scaling};
use crate::params::params;
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{Leaf, LeafMixing, Prior, check_mixing_levels};

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
        /// Leaf values: `constant`, or `linear` in the inputs. Linear leaves suit smooth functions
        /// and extrapolate linearly; auto: linear if `max_depth` or `leaf_mixing` is given, else
        /// chosen on the validation set.
        leaf_model ("leaf"): Option<Leaf> = None, [0, 0];
        /// How leaves combine into one distribution: `mixture` (each leaf is a component), `blend`
        /// (one distribution with averaged parameters) or `hybrid` (the top levels mix, the lower
        /// levels blend). Mixtures can have several modes and heavy tails; auto: chosen on the
        /// validation set.
        leaf_mixing: Option<LeafMixing> = None, [0, 0];
        /// Number of top levels of a hybrid tree that mix; auto: half of `max_depth`, rounded up.
        mixing_levels: Option<usize> = None, [0, 8];
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
        /// Number of passes over the training rows; auto: about 12000 optimiser steps, but 40 to
        /// 1500 epochs.
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
        /// Known standard deviation of the noise for regression, in the units of the target; auto:
        /// learned.
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
