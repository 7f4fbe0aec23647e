//! The parameter tables of the boosted families.

use crate::boosting::langevin::Sampling;
use crate::likelihood::NoiseModel;
use crate::params::{ClassWeight, Directions, choices, params};
use crate::trees::histogram::grower::Growth;

choices! {
    /// How a boosted tree grows.
    GrowPolicy {
        /// One test for all nodes of a level.
        Symmetric = "symmetric",
        /// Level by level, every node by its own test.
        Depthwise = "depthwise",
        /// The leaf that gains most first.
        Leafwise = "leafwise",
    }
}

choices! {
    /// Where the noise of a Langevin chain goes.
    LangevinNoise {
        /// Into the leaves, so that the stationary distribution is the posterior.
        Posterior = "posterior",
        /// Into the leaves, as the paper's equation 11 is printed.
        Malinin = "malinin",
        /// Into the scores of splits.
        SplitNoise = "split-noise",
    }
}

impl From<GrowPolicy> for Growth {
    fn from(growth: GrowPolicy) -> Self {
        match growth {
            GrowPolicy::Symmetric => Self::Symmetric,
            GrowPolicy::Depthwise => Self::Depthwise,
            GrowPolicy::Leafwise => Self::Leafwise,
        }
    }
}

impl From<LangevinNoise> for Sampling {
    fn from(mode: LangevinNoise) -> Self {
        match mode {
            LangevinNoise::Posterior => Self::Posterior,
            LangevinNoise::Malinin => Self::Malinin,
            LangevinNoise::SplitNoise => Self::SplitNoise,
        }
    }
}

params! {
    #[doc = include_str!("boosting.md")]
    SgbParams, across = |_: &SgbParams| None, {
        /// Trees of each member.
        n_estimators: usize = 1000, [1, 100_000];
        /// Step size; auto: chosen on held-out rows.
        learning_rate: Option<f64> = None, [1e-5, 1.0];
        /// Levels of a tree; auto: chosen on held-out rows.
        max_depth: Option<usize> = None, [0, 16];
        /// How a tree grows.
        grow_policy ("growth"): GrowPolicy = GrowPolicy::Symmetric, [0, 0];
        /// Most leaves of a tree that grows leaf by leaf.
        max_leaf_nodes ("max_leaves"): usize = 31, [2, 65_536];
        /// Rows of typical hessian added to every leaf.
        l2_regularization ("l2"): f64 = 3.0, [0.0, 1e6];
        /// Least weight of a leaf (classification: least hessian).
        min_child_weight: f64 = 1e-3, [0.0, 1e12];
        /// Part of the rows that the conditions of a tree are chosen on.
        subsample: f64 = 0.5, [0.01, 1.0];
        /// Part of the columns that the conditions of a tree are chosen from.
        colsample_bytree ("colsample"): f64 = 1.0, [0.01, 1.0];
        /// Most bins of a column.
        max_bins: usize = 255, [2, 255];
        /// Whether categories are also looked at together; auto: where held-out rows gain by it.
        category_crosses ("interactions"): Option<bool> = None, [0, 0];
        /// What a regression model predicts besides the mean.
        noise ("head"): NoiseModel = NoiseModel::Varying, [0, 0];
        /// Columns in which the mean (or the logit of the second of two classes) may only rise or only fall.
        monotonic_cst ("monotone"): Option<Directions> = None, [-1, 1];
        /// Weights of the classes, times those of the rows; balanced: each class counts the same altogether.
        class_weight: Option<ClassWeight> = None, [0.0, 1e6];
        /// Members, each fitted by itself.
        n_members: usize = 10, [1, 1000];
        /// Trees without a better held-out score after which to stop; auto: never.
        early_stopping_rounds: Option<usize> = None, [1, 100_000];
        /// Part of the training rows held out where something is chosen on them and none are given.
        validation_fraction: f64 = 0.2, [0.01, 0.5];
        /// Least standard deviation, in units of the target's; auto: 0.001, or half the target's resolution.
        min_scale: Option<f64> = None, [1e-6, 10.0];
    }
}

params! {
    #[doc = include_str!("boosting.md")]
    SglbParams, across = |params: &SglbParams| {
        if params.n_chains.is_some() && !params.virtual_ensemble {
            return Some("`n_chains` is only used with `virtual_ensemble` = true; give `n_members`".to_owned());
        }
        let of_each = params.n_members.div_ceil(params.n_chains.unwrap_or(1));
        (params.virtual_ensemble && of_each > params.n_estimators).then(|| {
            let n_trees = params.n_estimators;
            format!("a chain of `n_estimators` = {n_trees} trees has no {of_each} virtual members; give more trees or fewer members")
        })
    }, {
        /// Trees of each chain.
        n_estimators: usize = 1000, [1, 100_000];
        /// Step size; auto: chosen on held-out rows.
        learning_rate: Option<f64> = None, [1e-5, 1.0];
        /// Levels of a tree; auto: chosen on held-out rows.
        max_depth: Option<usize> = None, [0, 16];
        /// How a tree grows.
        grow_policy ("growth"): GrowPolicy = GrowPolicy::Symmetric, [0, 0];
        /// Most leaves of a tree that grows leaf by leaf.
        max_leaf_nodes ("max_leaves"): usize = 31, [2, 65_536];
        /// Rows of typical hessian added to every leaf.
        l2_regularization ("l2"): f64 = 3.0, [0.0, 1e6];
        /// Least weight of a leaf (classification: least hessian).
        min_child_weight: f64 = 1e-3, [0.0, 1e12];
        /// Part of the rows that the conditions of a tree are chosen on.
        subsample: f64 = 1.0, [0.01, 1.0];
        /// Part of the columns that the conditions of a tree are chosen from.
        colsample_bytree ("colsample"): f64 = 1.0, [0.01, 1.0];
        /// Most bins of a column.
        max_bins: usize = 255, [2, 255];
        /// Whether categories are also looked at together; auto: where held-out rows gain by it.
        category_crosses ("interactions"): Option<bool> = None, [0, 0];
        /// What a regression model predicts besides the mean.
        noise ("head"): NoiseModel = NoiseModel::Varying, [0, 0];
        /// Columns in which the mean (or the logit of the second of two classes) may only rise or only fall.
        monotonic_cst ("monotone"): Option<Directions> = None, [-1, 1];
        /// Weights of the classes, times those of the rows; balanced: each class counts the same altogether.
        class_weight: Option<ClassWeight> = None, [0.0, 1e6];
        /// Where the noise goes.
        langevin_noise ("sampling"): LangevinNoise = LangevinNoise::Posterior, [0, 0];
        /// Shrinkage of the sum before each tree, times the step size; auto: 1/(2 N), for classes at least 0.01.
        model_shrink_rate ("shrink_rate"): Option<f64> = None, [0.0, 1.0];
        /// Members.
        n_members: usize = 10, [1, 1000];
        /// Whether members are sub-models of a few chains instead of a chain each.
        virtual_ensemble ("virtual"): bool = false, [0, 0];
        /// Chains that virtual members are taken from; auto: 1.
        n_chains: Option<usize> = None, [1, 1000];
        /// Part of a chain before the first virtual member.
        burn_in: f64 = 0.5, [0.0, 0.99];
        /// Part of the training rows held out where something is chosen on them and none are given.
        validation_fraction: f64 = 0.2, [0.01, 0.5];
        /// Least standard deviation, in units of the target's; auto: 0.001, or half the target's resolution.
        min_scale: Option<f64> = None, [1e-6, 10.0];
    }
}
