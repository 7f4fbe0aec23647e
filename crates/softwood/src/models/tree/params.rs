//! The parameter table of the tree.

use crate::params::params;

params! {
    #[doc = include_str!("tree.md")]
    TreeParams, across = |_: &TreeParams| None, {
        /// Levels that the tree may grow before it is pruned.
        max_depth: usize = 30, [0, 1000];
        /// Least weight of a leaf, in rows.
        min_child_weight: f64 = 5.0, [0.0, 1e12];
        /// Most leaves, cut back to by weakest links; auto: no limit.
        max_leaf_nodes ("max_leaves"): Option<usize> = None, [1, 1_000_000];
        /// Part of the root's loss that a split must take away for every leaf it adds; auto: chosen
        /// by cross-validation.
        ccp_alpha: Option<f64> = None, [0.0, 1.0];
        /// Most bins of a column.
        max_bins: usize = 255, [2, 255];
        /// Members: draws of what the leaves hold.
        n_members: usize = 10, [1, 1000];
        /// Least standard deviation, in units of the target's; auto: 0.001, or half the target's
        /// resolution.
        min_scale: Option<f64> = None, [1e-6, 10.0];
    }
}
