//! Parameters of the tree.

use crate::extrapolation::away_from_data;
use crate::params::params;
use crate::trees::param_groups::{hard_bins, hard_min_scale};

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
        use hard_bins;
        /// Number of ensemble members: posterior draws of the leaf values. More members estimate
        /// knowledge uncertainty better.
        n_members: usize = 10, [1, 1000];
        use hard_min_scale;
        use away_from_data;
    }
}
