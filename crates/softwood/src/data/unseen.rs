//! Categories that training never saw: each member takes such a category for one that training did see.
//!
//! A member takes the same known category on every row, so that members disagree about an unseen category as much as the known
//! ones differ.

use std::ops::Range;

use crate::error::Result;
use crate::rng::{Key, below};
use crate::store::record::Record;

/// Which known category each member takes an unseen one for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnseenSubstitutes(Option<Key>);

impl UnseenSubstitutes {
    pub(crate) fn new(key: Key) -> Self {
        Self(Some(key))
    }

    /// Those of a record. Files of the first versions hold no key: their substitutes depend on the member alone.
    ///
    /// # Errors
    /// When the record holds something else in the place of the key.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        record.part("unseen").map(Self)
    }

    /// What a record holds under the name `unseen`.
    pub(crate) fn stored(self) -> Option<Key> {
        self.0
    }

    /// One of the known codes of a column for a member, the same on every row; none where there are no known codes.
    pub(crate) fn code(self, member: usize, column: usize, known: &Range<usize>) -> Option<usize> {
        let (member, column) = (member as u64, column as u64);
        let key = match self.0 {
            Some(key) => key.child(column).child(member),
            None => Key::from_seed(member).child(column),
        };
        (!known.is_empty()).then(|| known.start + below(&mut key.rng(), known.len()))
    }
}

/// A cell whose category training never saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnseenCell {
    /// Row, counted from the first row of the block.
    pub(crate) row: usize,
    /// Index of the column.
    pub(crate) column: usize,
    /// Codes (inputs or bins) of the categories that training saw.
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
