//! Parameters of the RNN-Tree.

use crate::extrapolation::away_from_data;
use crate::params::{choices, params};
use crate::trees::param_groups::{hard_bins, hard_min_scale};

/// Greatest depth of a tree whose predictions are mixtures of all leaves.
pub(super) const MAX_SOFT_DEPTH: usize = 6;

choices! {
    /// Entropy term of the decisions of each row in the objective.
    RouteEntropy {
        /// The evidence lower bound: undecided rows are rewarded (equation 9 of the paper).
        Elbo = "elbo",
        /// The mutual information of route and row: decided rows are rewarded (the sign of
        /// equation 22 of the paper).
        MutualInformation = "mutual-information",
    }
}

choices! {
    /// Standard deviations of the leaves while the network is trained.
    LeafScale {
        /// One standard deviation for all leaves, learned.
        Shared = "shared",
        /// A standard deviation for each leaf, learned.
        Leaf = "leaf",
        /// The standard deviation of the target, as in the paper.
        Unit = "unit",
    }
}

params! {
    #[doc = include_str!("rnn_tree.md")]
    RnnTreeParams, across = |params: &RnnTreeParams| params.conflict(), {
        /// Depth of the tree that the network writes. Nodes that divide no training rows or do not
        /// help on the validation set are removed.
        max_depth: usize = 5, [1, 10];
        /// Number of hidden units of the network.
        n_hidden: usize = 16, [1, 256];
        /// Number of training runs from different starts. Increase it for a better tree.
        n_restarts: usize = 8, [1, 1000];
        /// Number of trees in the model: the best of the restarts. Members of the ensemble use these
        /// trees in turn, so there are at most as many trees as members. 1 gives a single tree, which
        /// predicts fast and can be read; auto: all restarts, or those whose tree is better than its
        /// root on the validation set by three standard errors, if there are such, without trees far
        /// below the best one.
        n_trees: Option<usize> = None, [1, 1000];
        /// Whether a prediction is a mixture over all leaves, weighted by the posterior over routes,
        /// or that of the most probable leaf of each tree. Auto: the one with the larger likelihood
        /// on the validation set; trees deeper than 6, and trees of too few rows for a validation set,
        /// are always hard.
        posterior: Option<bool> = None;
        /// Number of optimisation steps of a training run.
        n_steps: usize = 800, [1, 1_000_000];
        /// Number of rows of an optimisation step; auto: all rows, but at most 1024.
        batch_size: Option<usize> = None, [64, 32_768];
        /// Learning rate.
        learning_rate: f64 = 0.01, [1e-6, 1.0];
        /// Weight of the KL divergence between routes and the prior of balanced trees.
        kl_weight: f64 = 0.1, [0.0, 100.0];
        /// Entropy term of the decisions of each row.
        route_entropy: RouteEntropy = RouteEntropy::Elbo;
        /// Standard deviations of the leaves while the network is trained.
        leaf_scale: LeafScale = LeafScale::Shared;
        /// Sharpness of the splits at the beginning of training, for inputs with standard deviation
        /// 1: a row one standard deviation from the threshold goes to its side with probability
        /// `sigmoid(initial_sharpness)`.
        initial_sharpness: f64 = 3.0, [0.01, 10_000.0];
        /// Sharpness of the splits at the end of training; it grows by a constant factor per step.
        final_sharpness: f64 = 50.0, [0.01, 10_000.0];
        /// Sharpness of the decisions that the network passes on in training: for a large value the
        /// states are nearly those of the hard tree. 0 is the decision of the paper, the probability
        /// plus uniform noise.
        decision_sharpness: f64 = 10.0, [0.0, 1000.0];
        /// Fraction of the training rows in the validation set that stops training and prunes the
        /// tree, if no validation set is given.
        validation_fraction: f64 = 0.2, [0.01, 0.5];
        /// Maximum number of categories per column with an input of their own.
        max_categories: usize = 32, [1, 255];
        use hard_bins;
        /// Number of ensemble members: posterior draws of the leaf values of the trees. More members
        /// estimate knowledge uncertainty better.
        n_members: usize = 16, [1, 1000];
        use hard_min_scale;
        use away_from_data;
    }
}

impl RnnTreeParams {
    fn conflict(&self) -> Option<String> {
        let is_deep = self.max_depth > MAX_SOFT_DEPTH && self.posterior == Some(true);
        is_deep.then(|| {
            format!(
                "`posterior` needs `max_depth` of at most {MAX_SOFT_DEPTH}, not {}",
                self.max_depth
            )
        })
    }
}
