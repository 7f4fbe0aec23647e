//! Labels of the random streams of a fit of soft trees that grow. A label is unique among the
//! children of its key; `variational::streams` has those of the training of the posterior.

/// Children of the key of a run, besides those of `variational::streams::run`.
pub(super) mod run {
    /// Comparison of encodings.
    pub(crate) const ENCODINGS: u64 = 40;
}

/// Children of the key of one fit.
pub(super) mod fit {
    /// Bootstrap sample of the training rows.
    pub(crate) const BOOTSTRAP: u64 = 60;
    /// Growth of the tree.
    pub(crate) const GROWTH: u64 = 61;
    /// Low-rank factors of the initial posterior.
    pub(crate) const INITIAL_FACTORS: u64 = 62;
    /// Training of the leaf scales of a point estimate.
    pub(crate) const POINT_TRAINING: u64 = 63;
}

/// Children of the key of the growth of a tree.
pub(super) mod growth {
    /// Split `i` of round `r` has child `r`, then child `i`.
    pub(crate) const SPLITS: u64 = 1;
    /// The refinement after round `r` has child `r`.
    pub(crate) const REFINEMENTS: u64 = 2;
    /// Of the key of a split: its initial weights.
    pub(crate) const START: u64 = 1;
    /// Of the key of a split: the order of the rows.
    pub(crate) const TRAINING: u64 = 2;
}
