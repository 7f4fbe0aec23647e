//! Labels of the random streams of the family. A label is unique among the children of its key.

/// Children of the key of one fit. That key is also the key of a training run, whose streams have
/// the labels 2 to 4.
pub(super) mod fit {
    /// Posterior before training.
    pub(crate) const START: u64 = 1;
    /// Split indicators of the steps and of validation.
    pub(crate) const INDICATORS: u64 = 5;
    /// Structure moves; round `i` has child `i`.
    pub(crate) const MOVES: u64 = 6;
    /// Added trees; tree `i` has child `i`.
    pub(crate) const ADDED_TREES: u64 = 7;
}

/// Children of the key of split indicators.
pub(super) mod indicators {
    /// Logistic noise of the steps.
    pub(crate) const NOISE: u64 = 1;
    /// Hard indicators of the validation draws.
    pub(crate) const VALIDATION: u64 = 2;
}

/// Children of the key of the posterior draws of one fit. The key itself draws the weights, and its
/// child 1 the substitutes of unseen categories.
pub(super) mod posterior_draws {
    /// Split indicators.
    pub(crate) const INDICATORS: u64 = 3;
}
