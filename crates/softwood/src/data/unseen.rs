//! Categories that did not occur in training: each member replaces such a category by one that did.
//!
//! A member uses the same replacement on every row, so members disagree about an unseen category as
//! much as the known categories differ. Target-encoded columns (`data/categories/target_encoding.rs`)
//! are an exception: there an unseen category has the prior mean.

use std::ops::Range;

use crate::error::Result;
use crate::rng::{Key, below};
use crate::store::record::Record;

/// The known category that each member substitutes for an unseen one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnseenSubstitutes(Option<Key>);

impl UnseenSubstitutes {
    pub(crate) fn new(key: Key) -> Self {
        Self(Some(key))
    }

    /// Reads the substitutes from a record. Files of the first versions hold no key: their
    /// substitutes depend on the member alone.
    ///
    /// # Errors
    /// When the key in the record cannot be read.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        record.part("unseen").map(Self)
    }

    /// The value that a record stores as `unseen`.
    pub(crate) fn stored(self) -> Option<Key> {
        self.0
    }

    /// The known code that a member substitutes in a column, the same on every row; `None` if there
    /// are no known codes.
    pub(crate) fn code(self, member: usize, column: usize, known: &Range<usize>) -> Option<usize> {
        let (member, column) = (member as u64, column as u64);
        let key = match self.0 {
            Some(key) => key.child(column).child(member),
            None => Key::from_seed(member).child(column),
        };
        (!known.is_empty()).then(|| known.start + below(&mut key.rng(), known.len()))
    }
}

/// A cell whose category did not occur in training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnseenCell {
    /// Row index within the block.
    pub(crate) row: usize,
    /// Index of the column.
    pub(crate) column: usize,
    /// Codes (inputs or bins) of the categories that occurred in training.
    pub(crate) known: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_takes_one_known_category_and_members_differ() {
        let substitutes = UnseenSubstitutes::new(Key::from_seed(5));
        let code = |member: usize| substitutes.code(member, 2, &(1..9)).unwrap();
        let all: Vec<usize> = (0..50).map(code).collect();
        assert!(all.iter().all(|code| (1..9).contains(code)));
        assert!(all.iter().any(|&code| code != all[0]));
        assert_eq!(all, (0..50).map(code).collect::<Vec<_>>());
        assert_eq!(substitutes.code(0, 2, &(1..1)), None);
        let other = UnseenSubstitutes::new(Key::from_seed(6));
        assert_ne!(
            all,
            (0..50)
                .map(|m| other.code(m, 2, &(1..9)).unwrap())
                .collect::<Vec<_>>()
        );
    }
}
