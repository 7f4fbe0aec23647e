//! Labels of the random streams of a fit. A label is unique among the children of its key.

/// Children of the key of a run.
pub(crate) mod run {
    /// Split into training and validation rows; fit `i > 0` of an ensemble may split by child `i`.
    pub(crate) const VALIDATION_SPLIT: u64 = 1;
    /// Short training runs of all candidates.
    pub(crate) const SELECTION: u64 = 10;
    /// Fit `i` of the ensemble has child `i`.
    pub(crate) const FITS: u64 = 20;
    /// Posterior draws of the fitted model; fit `i` has child `i`.
    pub(crate) const POSTERIOR_DRAWS: u64 = 30;
    /// Posterior draws for the calibration of the noise scale; fit `i` has child `i`.
    pub(crate) const NOISE_CALIBRATION: u64 = 31;
    /// Chains of Hamiltonian Monte Carlo; fit `i` has child `i`.
    pub(crate) const CHAINS: u64 = 32;
}

/// Children of the key of one fit. That key is also the key of a training run, whose streams have
/// the labels 2 to 4.
pub(crate) mod fit {
    /// Posterior before training.
    pub(crate) const INITIAL_POSTERIOR: u64 = 1;
    /// Validation score of the model that a warm start begins with.
    pub(crate) const WARM_START_SCORE: u64 = 48;
    /// Validation score of the first tree after shrinkage.
    pub(crate) const SHRUNK_SCORE: u64 = 49;
    /// Trees that are added to the first one.
    pub(crate) const ADDED_TREES: u64 = 50;
    /// Joint training of all trees.
    pub(crate) const JOINT_TRAINING: u64 = 51;
}

/// Children of the key of an initial posterior.
pub(crate) mod initial_posterior {
    /// Means of the weights.
    pub(crate) const WEIGHTS: u64 = 1;
    /// Low-rank factors.
    pub(crate) const FACTORS: u64 = 2;
}

/// Children of the key of initial weights.
pub(crate) mod initial_weights {
    /// Subset of the training rows.
    pub(crate) const ROWS: u64 = 1;
    /// Small random gate weights.
    pub(crate) const GATES: u64 = 2;
}

/// Children of the key of all added trees; tree `i` (from 1 on) has child `i`.
pub(crate) mod added_trees {
    /// Validation score, with the same random numbers for every number of trees.
    pub(crate) const SCORE: u64 = 1000;
    /// First of the joint runs after each tree: the one after tree `i` has this label plus `i`.
    pub(crate) const CORRECTIVE_RUNS: u64 = 2000;
}

/// Children of the key of one added tree.
pub(crate) mod added_tree {
    /// Means of the weights before training.
    pub(crate) const INITIAL_WEIGHTS: u64 = 1;
    /// Draws of the earlier trees that define the offset; epoch `i` has child `i`.
    pub(crate) const OFFSET_DRAWS: u64 = 2;
    /// Low-rank factors of the initial posterior.
    pub(crate) const INITIAL_FACTORS: u64 = 3;
    /// Training run of the tree.
    pub(crate) const TRAINING: u64 = 4;
}

/// Children of the key of the posterior draws of one fit. The key itself draws the weights of a
/// posterior with one block.
pub(crate) mod posterior_draws {
    /// Known categories that replace unseen ones.
    pub(crate) const UNSEEN_SUBSTITUTES: u64 = 1;
    /// Variances of a constant noise; member `i` has child `i`.
    pub(crate) const NOISE_VARIANCES: u64 = 2;
    /// First of the posterior blocks: block `i` has this label plus `i`.
    pub(crate) const BLOCKS: u64 = 100;
}
