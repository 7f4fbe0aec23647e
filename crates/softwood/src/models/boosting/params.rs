//! Parameters of the boosted families.

use crate::boosting::langevin::Sampling;
use crate::extrapolation::away_from_data;
use crate::likelihood::NoiseModel;
use crate::params::{ClassWeight, Directions, choices, param_group, params};
use crate::trees::histogram::grower::Growth;
use crate::trees::param_groups::{hard_bins, hard_min_scale};

choices! {
    /// How a boosted tree grows.
    GrowPolicy {
        /// One split condition for all nodes of a level.
        Symmetric = "symmetric",
        /// Level by level; every node has its own split condition.
        Depthwise = "depthwise",
        /// The leaf with the largest gain is split first.
        Leafwise = "leafwise",
    }
}

choices! {
    /// Where the noise of a Langevin chain is added.
    LangevinNoise {
        /// To the leaf values, so that the stationary distribution of the chain is the posterior.
        Posterior = "posterior",
        /// To the leaf values, with the variance of equation 11 of Malinin et al. (2021).
        Malinin = "malinin",
        /// To the scores of the splits.
        SplitNoise = "split-noise",
    }
}

impl From<GrowPolicy> for Growth {
    fn from(policy: GrowPolicy) -> Self {
        match policy {
            GrowPolicy::Symmetric => Self::Symmetric,
            GrowPolicy::Depthwise => Self::Depthwise,
            GrowPolicy::Leafwise => Self::Leafwise,
        }
    }
}

impl From<LangevinNoise> for Sampling {
    fn from(noise: LangevinNoise) -> Self {
        match noise {
            LangevinNoise::Posterior => Self::Posterior,
            LangevinNoise::Malinin => Self::Malinin,
            LangevinNoise::SplitNoise => Self::SplitNoise,
        }
    }
}

param_group! {
    /// Trees, features and target of both boosted families.
    boosted_trees {
        /// Number of boosting rounds: each adds a tree to every chain. It is the maximum if the
        /// number is selected on the validation set.
        n_estimators: usize = 1000, [1, 100_000];
        /// Step size of each boosting round. Smaller values need more rounds (`n_estimators`);
        /// auto: chosen on the validation set.
        learning_rate: Option<f64> = None, [1e-5, 1.0];
        /// Maximum depth of a tree. Deeper trees fit interactions of more columns; auto: chosen on
        /// the validation set.
        max_depth: Option<usize> = None, [0, 16];
        /// How a tree grows: `symmetric` has one split condition for all nodes of a level (fast,
        /// least prone to overfitting), `depthwise` splits every node of a level by its own
        /// condition, `leafwise` splits the leaf with the largest gain first, up to
        /// `max_leaf_nodes`.
        grow_policy ("growth"): GrowPolicy = GrowPolicy::Symmetric;
        /// Maximum number of leaves of a tree; only used with `grow_policy` = leafwise.
        max_leaf_nodes ("max_leaves"): usize = 31, [2, 65_536];
        /// L2 penalty on leaf values, in units of the average hessian of a row. Increase it against
        /// overfitting.
        l2_regularization ("l2"): f64 = 3.0, [0.0, 1e6];
        /// Minimum weight of a leaf: the total weight of its rows, for classification the sum of
        /// their hessians. Increase it against overfitting.
        min_child_weight: f64 = 1e-3, [0.0, 1e12];
        /// Fraction of the rows, drawn at random for each tree, that its splits are chosen on; leaf
        /// values use all rows. The members of `sgb` hardly differ unless this or `colsample_bytree`
        /// is below 1; auto: 0.5, with `sglb` 1 except for classification with fewer than 5000 rows.
        subsample: Option<f64> = None, [0.01, 1.0];
        /// Fraction of the columns, drawn at random for each tree, that it may split on. Reduce it
        /// if there are many columns.
        colsample_bytree ("colsample"): f64 = 1.0, [0.01, 1.0];
        use hard_bins;
        /// Whether pairs and triples of categorical columns are target-encoded too; auto: if that
        /// improves the validation score.
        category_crosses ("interactions"): Option<bool> = None;
        /// Noise model for regression: `varying` depends on the inputs, `constant` is one variance
        /// for all rows.
        noise ("head"): NoiseModel = NoiseModel::Varying;
        /// Monotonic constraints: columns in which the mean (for two classes: the logit of the
        /// second class) never decreases (1) or never increases (-1).
        monotonic_cst ("monotone"): Option<Directions> = None, [-1, 1];
        /// Weights of the classes, which multiply the weights of the rows; `balanced` gives all
        /// classes the same total weight.
        class_weight: Option<ClassWeight> = None, [0.0, 1e6];
    }
}

param_group! {
    /// Validation set of both boosted families.
    boosted_validation {
        /// Fraction of the training rows held out as the validation set, if one is needed and none
        /// is given.
        validation_fraction: f64 = 0.2, [0.01, 0.5];
        /// Whether each chain leaves out a few rows, on which the scale and the tails of the noise
        /// are corrected after training (regression with at least four chains, no virtual members).
        calibrate_noise: bool = true;
    }
}

params! {
    #[doc = include_str!("boosting.md")]
    SgbParams, across = |_: &SgbParams| None, {
        use boosted_trees;
        /// Number of ensemble members, each trained separately. More members estimate knowledge
        /// uncertainty better and take longer.
        n_members: usize = 10, [1, 1000];
        /// Number of boosting rounds without a better validation score after which training stops;
        /// auto: no early stopping of the members.
        early_stopping_rounds: Option<usize> = None, [1, 100_000];
        use boosted_validation;
        use hard_min_scale;
        use away_from_data;
    }
}

params! {
    #[doc = include_str!("boosting.md")]
    SglbParams, across = |params: &SglbParams| {
        if params.n_chains.is_some() && !params.virtual_ensemble {
            return Some("`n_chains` is only used with `virtual_ensemble` = true; set that, or remove `n_chains`".to_owned());
        }
        let members_per_chain = params.n_members.div_ceil(params.n_chains.unwrap_or(1).max(1));
        (params.virtual_ensemble && members_per_chain > params.n_estimators).then(|| {
            let n_trees = params.n_estimators;
            format!(
                "a chain of `n_estimators` = {n_trees} trees is too short for {members_per_chain} virtual members; \
                 increase `n_estimators` or reduce `n_members`"
            )
        })
    }, {
        use boosted_trees;
        /// Where the Langevin noise is added: `posterior` adds it to the leaf values so that the
        /// members are posterior samples (use this for knowledge uncertainty), `malinin` adds that
        /// of equation 11 of the paper, which is much smaller (to reproduce the paper),
        /// `split-noise` adds it to the scores of splits only (to compare with CatBoost).
        langevin_noise ("sampling"): LangevinNoise = LangevinNoise::Posterior;
        /// Factor of the variance of the Langevin noise on leaf values: below 1 the members agree
        /// more than posterior samples; auto: 1, for classification 0.1.
        langevin_temperature: Option<f64> = None, [0.0, 10.0];
        /// Before each tree the model is multiplied by 1 - `learning_rate` * `model_shrink_rate`,
        /// which acts as a prior: larger values draw the members towards a constant; auto: 1/(2 N)
        /// for N rows, for classification at least 0.01 (less with more than 31 classes).
        model_shrink_rate ("shrink_rate"): Option<f64> = None, [0.0, 1.0];
        /// Number of ensemble members, each from a chain of its own unless `virtual_ensemble` =
        /// true. More members estimate knowledge uncertainty better and take longer.
        n_members: usize = 10, [1, 1000];
        /// Take the members from a few chains (virtual ensemble) instead of one chain per member:
        /// faster to fit and predict, but the members are correlated.
        virtual_ensemble ("virtual"): bool = false;
        /// Number of chains of a virtual ensemble. More chains make the members less correlated;
        /// auto: 1.
        n_chains: Option<usize> = None, [1, 1000];
        /// Fraction of the trees of a chain before its first virtual member. Smaller values put the
        /// members farther apart.
        burn_in: f64 = 0.5, [0.0, 0.99];
        use boosted_validation;
        use hard_min_scale;
        use away_from_data;
    }
}
