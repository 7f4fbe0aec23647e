//! The parameter table of the forest.

use crate::params::params;

params! {
    #[doc = include_str!("forest.md")]
    ForestParams, across = |params: &ForestParams| {
        (params.n_members > params.n_estimators).then(|| {
            let ForestParams { n_members, n_estimators, .. } = params;
            format!("`n_members` = {n_members} needs at least as many trees, but `n_estimators` = {n_estimators}")
        })
    }, {
        /// Trees.
        n_estimators: usize = 200, [1, 100_000];
        /// Levels of a tree.
        max_depth: usize = 30, [0, 1000];
        /// Least weight of a leaf, in rows; auto: 1, and more beyond 50 000 rows, so that a tree has no more leaves than that.
        min_child_weight: Option<f64> = None, [0.0, 1e12];
        /// Part of the columns that each split is chosen from; auto: 0.6, for classes the square root of their number.
        max_features ("colsample"): Option<f64> = None, [0.0, 1.0];
        /// Most bins of a column.
        max_bins: usize = 255, [2, 255];
        /// Members: blocks of consecutive trees.
        n_members: usize = 10, [1, 1000];
        /// Least standard deviation, in units of the target's; auto: 0.001, or half the target's resolution.
        min_scale: Option<f64> = None, [1e-6, 10.0];
    }
}
