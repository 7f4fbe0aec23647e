//! A split that was found: what it gains and which bins it sends where.

use crate::data::binning::binned::{Binned, Cut, Cuts, MISSING_BIN};
use crate::rng::Key;
use crate::trees::condition::{BinCondition, RightBins};

/// What a search needs to know of the columns.
#[derive(Debug, Clone)]
pub(crate) struct ColumnInfo {
    /// Bins of each column, that of missing cells among them.
    pub(crate) n_bins: Vec<usize>,
    pub(crate) is_category: Vec<bool>,
    /// Whether some training cell is missing.
    pub(crate) has_missing: Vec<bool>,
    /// 1 where the first output may not fall as the column rises, -1 where it may not rise, else 0.
    pub(crate) order: Vec<i8>,
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
            order: vec![0; cuts.columns.len()],
        }
    }

    /// The same columns with an order to keep.
    pub(crate) fn ordered(self, order: Vec<i8>) -> Self {
        Self { order, ..self }
    }

    /// Whether some column has an order to keep.
    pub(crate) fn is_ordered(&self) -> bool {
        self.order.iter().any(|&order| order != 0)
    }
}

/// Random numbers added to scores: `sd` and where they come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitNoise {
    pub(crate) sd: f32,
    pub(crate) key: Key,
}

/// The best split of one column, or of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SplitCandidate {
    pub(crate) column: usize,
    pub(crate) right_bins: RightBins,
    /// What the score rises by.
    pub(crate) gain: f32,
    /// What the choice goes by: the gain, or with noise.
    pub(crate) rank: f32,
}

impl SplitCandidate {
    /// The one of higher rank; the first where they are equal.
    pub(crate) fn better(self, other: Self) -> Self {
        if other.rank > self.rank { other } else { self }
    }

    pub(crate) fn condition(&self) -> BinCondition {
        BinCondition {
            column: self.column,
            right_bins: self.right_bins,
        }
    }
}
