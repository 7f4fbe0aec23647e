//! The parameter table of boosted variational soft trees.

use crate::data::encoding::{Rotation, Scaling};
use crate::likelihood::NoiseModel;
use crate::params::{choices, params};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{Leaf, LeafMixing, Prior};

choices! {
    /// What of the earlier trees a tree is fitted to.
    Residuals {
        /// Their mean weights.
        Mean = "mean",
        /// One draw of their weights, the same for the whole run.
        Draw = "draw",
        /// A draw of their weights, anew for every pass over the rows.
        Redrawn = "redrawn" ("refreshed"),
    }
}

choices! {
    /// How the squared residuals of `n` rows count in the posterior of a constant noise variance.
    NoiseUpdate {
        /// `IG(a + n/2, b + r'r/2)`, which Bayes' rule gives.
        Exact = "exact",
        /// `IG(a + n, b + r'r)`, as printed.
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
        let levels = params.mixing_levels?;
        match (params.leaf_mixing, params.max_depth) {
            (Some(LeafMixing::Hybrid), Some(depth)) if levels > depth => {
                Some(format!("`mixing_levels` = {levels} exceeds `max_depth` = {depth}"))
            }
            (Some(LeafMixing::Hybrid), Some(_)) => None,
            _ => Some("`mixing_levels` is only used with `leaf_mixing` = hybrid and a given `max_depth`".to_owned()),
        }
    }, {
        /// Trees; auto: as many as held-out rows ask for, at most 10 (3 where none are held out).
        n_estimators ("n_trees"): Option<usize> = None, [1, 1000];
        /// Levels of gates; auto: of the first tree chosen on held-out rows, of the others 3.
        max_depth ("depth"): Option<usize> = None, [0, 8];
        /// What stands in a leaf; auto: linear where `max_depth` or `leaf_mixing` is given, else chosen on held-out rows.
        leaf_model ("leaf"): Option<Leaf> = None, [0, 0];
        /// How the leaves of the first tree become one distribution; auto: chosen on held-out rows.
        leaf_mixing: Option<LeafMixing> = None, [0, 0];
        /// Levels of a hybrid first tree that choose a component; auto: half of `max_depth`, rounded up.
        mixing_levels: Option<usize> = None, [0, 8];
        /// What is said of the noise of a number.
        noise: NoiseModel = NoiseModel::Varying, [0, 0];
        /// Whether a varying noise begins as one for all rows and is set free when the mean is there (where the first tree is a blend).
        homoscedastic_warmup ("calm_start"): bool = true, [0, 0];
        /// Whether a varying noise is made as wide as held-out rows show it, less what averaging the fits takes away.
        calibrate_noise ("recalibrate"): bool = true, [0, 0];
        /// How squared residuals count in the posterior of a constant noise.
        noise_update: NoiseUpdate = NoiseUpdate::Exact, [0, 0];
        /// Shape of the inverse-Gamma prior of a constant noise variance.
        noise_shape_prior ("noise_shape"): f64 = 3.0, [0.01, 1e6];
        /// Scale of that prior, in units of the target's variance.
        noise_scale_prior ("noise_rate"): f64 = 0.1, [1e-9, 1e6];
        /// Factor of every tree that is added (with a constant noise, of the first tree too).
        shrinkage: f64 = 0.5, [0.01, 1.0];
        /// What of the earlier trees a tree is fitted to.
        residuals: Residuals = Residuals::Mean, [0, 0];
        /// Whether the posteriors of all trees are improved together, where held-out rows can judge it.
        joint_training ("joint"): bool = true, [0, 0];
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
        /// Passes over the training rows in the last run of all trees; auto: by the number of rows. The first tree has half of them,
        /// each tree that is added 0.15 of them by itself and (with `joint_training`) a tenth with the others.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        /// Parameter draws per step, antithetic pairs from 2 on; auto: by the number of rows.
        n_draws: Option<usize> = None, [1, 64];
        /// Fits whose posteriors are averaged: of the shapes that come near the best, in transpose.
        n_fits: usize = 4, [1, 100];
        /// Posterior draws kept for prediction.
        n_members: usize = 100, [1, 10_000];
        /// Whether to keep the epoch of a run that was best on held-out rows.
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
    }
}

impl VsgbmParams {
    /// What it tells the fit of its trees.
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
            // what is smooth the added trees can follow; components are for noise that is not Normal
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
