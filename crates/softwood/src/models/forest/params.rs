//! Parameters of the forest.

use crate::extrapolation::away_from_data;
use crate::params::params;
use crate::trees::param_groups::{hard_bins, hard_min_scale};

params! {
    #[doc = include_str!("forest.md")]
    ForestParams, across = |params: &ForestParams| {
        (params.n_members > params.n_estimators).then(|| {
            let ForestParams { n_members, n_estimators, .. } = params;
            format!(
                "`n_members` = {n_members} exceeds `n_estimators` = {n_estimators}, but every member needs a tree; \
                 increase `n_estimators` or reduce `n_members`"
            )
        })
    }, {
        /// Number of trees. More trees predict better and take longer.
        n_estimators: usize = 200, [1, 100_000];
        /// Maximum depth of a tree. Reduce it for smaller and faster models.
        max_depth: usize = 30, [0, 1000];
        /// Minimum weight of a leaf: the total weight of its rows. Increase it against overfitting
        /// and for smaller models; auto: 1, with more than 50 000 rows the total weight divided by
        /// 50 000, which limits the number of leaves.
        min_child_weight: Option<f64> = None, [0.0, 1e12];
        /// Fraction of the columns, drawn at random for each split, that it is chosen from. Smaller
        /// values make the trees more different; auto: 0.6 for regression, for classification as
        /// many columns as the square root of their number.
        max_features ("colsample"): Option<f64> = None, [0.0, 1.0];
        use hard_bins;
        /// Number of ensemble members: blocks of consecutive trees. More members estimate knowledge
        /// uncertainty better, but each averages fewer trees.
        n_members: usize = 10, [1, 1000];
        use hard_min_scale;
        use away_from_data;
    }
}
