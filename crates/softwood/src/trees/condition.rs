//! The split condition of a node, on binned columns.

use crate::trees::histogram::histogram::BINS;

/// Sends a row right if its bin in one column is above a threshold or in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BinCondition {
    pub(crate) column: usize,
    pub(crate) right_bins: RightBins,
}

/// The bins that go right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightBins {
    /// Bins above `bin`. Bin 0 holds the missing cells and goes right if `missing_right`.
    Above { bin: u8, missing_right: bool },
    /// Bins whose bit is set.
    In([u64; 4]),
}

impl BinCondition {
    #[inline]
    pub(crate) fn goes_right(&self, bin: u8) -> bool {
        match self.right_bins {
            RightBins::Above {
                bin: threshold,
                missing_right,
            } => {
                if bin == 0 {
                    missing_right
                } else {
                    bin > threshold
                }
            }
            RightBins::In(set) => set[bin as usize / 64] >> (bin % 64) & 1 == 1,
        }
    }

    /// [`BinCondition::goes_right`] for every bin.
    pub(crate) fn table(&self) -> [bool; BINS] {
        std::array::from_fn(|bin| self.goes_right(bin as u8))
    }
}
