//! Categories that training never saw: each member takes such a category for one that training did see.
//!
//! A member takes the same known category on every row, so that members disagree about an unseen category as much as the known
//! ones differ.

use std::ops::Range;

use crate::rng::{Key, below};

/// A cell whose category training never saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnseenCell {
    /// Row, counted from the first row of the block.
    pub(crate) row: usize,
    /// Index of the column.
    pub(crate) column: usize,
    /// Codes (inputs or bins) of the categories that training saw; not empty.
    pub(crate) known: Range<usize>,
}

impl UnseenCell {
    /// The known code that a member takes the cell for; `key` is that of the column and the member.
    pub(crate) fn substitute(&self, key: Key) -> usize {
        substitute(&self.known, key)
    }
}

/// One of the known codes, at random.
pub(crate) fn substitute(known: &Range<usize>, key: Key) -> usize {
    known.start + below(&mut key.rng(), known.len())
}
