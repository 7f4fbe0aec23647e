//! Parameters of the linear discriminant tree.

use crate::extrapolation::away_from_data;
use crate::params::params;
use crate::trees::param_groups::hard_min_scale;

params! {
    #[doc = include_str!("ldt.md")]
    LdtParams, across = |_: &LdtParams| None, {
        /// Maximum depth of the tree, before it is pruned.
        max_depth: usize = 30, [0, 1000];
        /// Minimum weight of a leaf: the total weight of its rows. Increase it against overfitting
        /// and for smaller models.
        min_child_weight: f64 = 5.0, [0.0, 1e12];
        /// Shrinkage of the scatter matrix of a node towards a multiple of the identity: near 0 the
        /// discriminant uses all correlations of the inputs, near 1 none of them. Increase it for
        /// many noisy inputs; auto: chosen on the validation set.
        shrinkage: Option<f64> = None, [1e-6, 0.999];
        /// Fraction of the training rows in the validation set that prunes the tree, if no
        /// validation set is given.
        validation_fraction: f64 = 0.3, [0.01, 0.5];
        /// Maximum number of categories per column with an input of their own; rarer categories
        /// share one input.
        max_categories: usize = 32, [1, 10_000];
        /// Number of ensemble members: posterior draws of the leaf values. More members estimate
        /// knowledge uncertainty better.
        n_members: usize = 10, [1, 1000];
        use hard_min_scale;
        use away_from_data;
    }
}
