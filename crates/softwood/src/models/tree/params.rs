//! Parameters of the tree.

use crate::params::params;

params! {
    #[doc = include_str!("tree.md")]
    TreeParams, across = |_: &TreeParams| None, {
        /// Maximum depth of a tree, before it is pruned.
        max_depth: usize = 30, [0, 1000];
        /// Minimum weight of a leaf: the total weight of its rows. Increase it against overfitting
        /// and for smaller models.
        min_child_weight: f64 = 5.0, [0.0, 1e12];
        /// Maximum number of leaves of a tree, which is pruned to this size. Reduce it for a tree
        /// that is easier to read; auto: no limit.
        max_leaf_nodes ("max_leaves"): Option<usize> = None, [1, 1_000_000];
        /// Strength of cost-complexity pruning: the reduction of the loss that each additional leaf
        /// must bring, as a fraction of the loss of the root. Larger values make smaller trees;
        /// auto: chosen by cross-validation.
        ccp_alpha: Option<f64> = None, [0.0, 1.0];
        /// Maximum number of bins of a column. Fewer bins are faster but make thresholds coarser.
        max_bins: usize = 255, [2, 255];
        /// Number of ensemble members: posterior draws of the leaf values. More members estimate
        /// knowledge uncertainty better.
        n_members: usize = 10, [1, 1000];
        /// Minimum predicted standard deviation, in units of the standard deviation of the target;
        /// auto: 0.001, or half the resolution of a rounded target.
        min_scale: Option<f64> = None, [1e-6, 10.0];
    }
}
