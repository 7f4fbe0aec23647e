//! Candidate splits, and the properties of columns that the split search depends on.

use crate::data::binning::binned::{Binned, Cut, Cuts, MISSING_BIN};
use crate::trees::condition::{BinCondition, RightBins};

/// Properties of the columns.
#[derive(Debug, Clone)]
pub(crate) struct ColumnInfo {
    /// Number of bins of each column, including the bin of missing cells.
    pub(crate) n_bins: Vec<usize>,
    pub(crate) is_category: Vec<bool>,
    /// Whether the column has missing cells in training.
    pub(crate) has_missing: Vec<bool>,
    /// Monotone constraint of the first output: 1 increasing, -1 decreasing, 0 none.
    pub(crate) monotonic_cst: Vec<i8>,
    /// Sets of columns that show the same categories with respect to different classes.
    pub(crate) encodings: Vec<Vec<usize>>,
}

impl ColumnInfo {
    pub(crate) fn new(cuts: &Cuts, binned: &Binned) -> Self {
        let has_missing = (0..binned.n_columns()).map(|column| {
            let (bins, at) = binned.place(column);
            bins.iter().any(|row| row[at] == MISSING_BIN)
        });
        Self {
            n_bins: cuts.columns.iter().map(Cut::n_bins).collect(),
            is_category: cuts.columns.iter().map(Cut::is_category).collect(),
            has_missing: has_missing.collect(),
            monotonic_cst: vec![0; cuts.columns.len()],
            encodings: Vec::new(),
        }
    }

    /// These columns with monotone constraints.
    pub(crate) fn ordered(self, monotonic_cst: Vec<i8>) -> Self {
        Self {
            monotonic_cst,
            ..self
        }
    }

    /// These columns with sets of encodings.
    pub(crate) fn with_encodings(self, encodings: Vec<Vec<usize>>) -> Self {
        Self { encodings, ..self }
    }

    /// Whether some column has a monotone constraint.
    pub(crate) fn has_monotone_constraints(&self) -> bool {
        self.monotonic_cst.iter().any(|&direction| direction != 0)
    }
}

/// The best split of one column or of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SplitCandidate {
    pub(crate) column: usize,
    pub(crate) right_bins: RightBins,
    /// Score of the split minus that of the unsplit node.
    pub(crate) gain: f32,
    /// The value that candidates are compared by: the gain, or a noisy score.
    pub(crate) rank: f32,
    /// Number of candidates that this one is the best of, if the chooser counts them.
    pub(crate) n_candidates: usize,
}

impl SplitCandidate {
    /// The candidate of higher rank; `self` if the ranks are equal.
    pub(crate) fn better(self, other: Self) -> Self {
        let best = if other.rank > self.rank { other } else { self };
        Self {
            n_candidates: self.n_candidates + other.n_candidates,
            ..best
        }
    }

    pub(crate) fn condition(&self) -> BinCondition {
        BinCondition {
            column: self.column,
            right_bins: self.right_bins,
        }
    }
}
