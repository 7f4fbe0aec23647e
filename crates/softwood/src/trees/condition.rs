//! The question that a node asks of a row, in bins.

use crate::trees::histogram::histogram::BINS;

/// Sends a row right if its bin of one column is above a threshold or in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BinCondition {
    pub(crate) column: usize,
    pub(crate) right_bins: RightBins,
}

/// ScanOrder bins go right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightBins {
    /// Bins above `bin`; bin 0, the missing cells, as said.
    Above { bin: u8, missing_right: bool },
    /// Bins whose bit is set.
    In([u64; 4]),
}

impl BinCondition {
    #[inline]
    pub(crate) fn goes_right(&self, bin: u8) -> bool {
        match self.right_bins {
            RightBins::Above {
                bin: top,
                missing_right,
            } => {
                if bin == 0 {
                    missing_right
                } else {
                    bin > top
                }
            }
            RightBins::In(set) => set[bin as usize / 64] >> (bin % 64) & 1 == 1,
        }
    }

    /// The answer for every bin.
    pub(crate) fn table(&self) -> [bool; BINS] {
        std::array::from_fn(|bin| self.goes_right(bin as u8))
    }
}
