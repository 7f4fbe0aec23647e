//! Cells that training knows nothing of: categories that did not occur, and missing cells of columns
//! without missing cells. Each member replaces such a cell by a category or a value that did occur.
//!
//! A member uses the same replacement on every row, so members disagree about an unseen cell as
//! much as the known categories or values differ. Target-encoded columns
//! (`data/categories/target_encoding.rs`) are an exception: there an unseen category has the prior mean.

use std::ops::Range;

use crate::error::Result;
use crate::rng::{Key, below, shuffle, uniform};
use crate::store::record::Record;

/// Number of values of a column that may replace a missing cell.
pub(crate) const N_QUANTILES: usize = 16;

/// Number of successive members whose levels are evenly spread: the smallest usual number of members.
const N_SPREAD: usize = 10;
/// Stream of the levels of a column.
const LEVELS: u64 = u64::MAX;

/// The known category or value that each member substitutes for an unseen one.
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

    /// The known code that a member substitutes for a cell, the same on every row; `None` if there are
    /// none.
    pub(crate) fn code_of(self, member: usize, cell: &UnseenCell) -> Option<usize> {
        if cell.is_number {
            self.code_of_number(member, cell.column, cell.known.len())
        } else {
            self.code(member, cell.column, &cell.known)
        }
    }

    /// The different codes that the members substitute for the cells of a row, each with its members.
    pub(crate) fn groups(self, n_members: usize, cells: &[UnseenCell]) -> Vec<SubstitutedCodes> {
        let mut groups: Vec<SubstitutedCodes> = Vec::new();
        for member in 0..n_members {
            let codes = cells.iter().map(|cell| self.code_of(member, cell));
            let codes: Vec<Option<usize>> = codes.collect();
            if let Some(group) = groups.iter_mut().find(|group| group.codes == codes) {
                group.members.push(member);
            } else {
                groups.push(SubstitutedCodes {
                    codes,
                    members: vec![member],
                });
            }
        }
        groups
    }

    /// Which of `n_known` values at equal steps of rank a member substitutes for a missing number in a column:
    /// ten successive members take evenly spread ones, in a random order for each column. `None` if there
    /// are none.
    pub(crate) fn code_of_number(
        self,
        member: usize,
        column: usize,
        n_known: usize,
    ) -> Option<usize> {
        let key = self.0.unwrap_or(Key::from_seed(0));
        let part = (member / N_SPREAD) as u64;
        let mut rng = key.child(column as u64).child(LEVELS).child(part).rng();
        let mut order: Vec<usize> = (0..N_SPREAD).collect();
        shuffle(&mut rng, &mut order);
        let level = (order[member % N_SPREAD] as f64 + uniform(&mut rng)) / N_SPREAD as f64;
        (n_known > 0).then(|| ((level * n_known as f64) as usize).min(n_known - 1))
    }

    /// The known category that a member substitutes in a column, the same on every row; `None` if there
    /// are no known categories.
    pub(crate) fn code(self, member: usize, column: usize, known: &Range<usize>) -> Option<usize> {
        let (member, column) = (member as u64, column as u64);
        let key = match self.0 {
            Some(key) => key.child(column).child(member),
            None => Key::from_seed(member).child(column),
        };
        (!known.is_empty()).then(|| known.start + below(&mut key.rng(), known.len()))
    }
}

/// A cell whose category did not occur in training, or which is missing in a column without missing
/// cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnseenCell {
    /// Row index within the block.
    pub(crate) row: usize,
    /// Index of the column.
    pub(crate) column: usize,
    /// Inputs or bins of the categories that occurred in training, or indices of the values at equal steps of
    /// rank that may replace a missing number.
    pub(crate) known: Range<usize>,
    /// Whether the column is numeric.
    pub(crate) is_number: bool,
}

/// Codes in place of the unseen cells of a row, and the members that have them.
#[derive(Debug)]
pub(crate) struct SubstitutedCodes {
    /// A code for each cell; `None` if it has no known ones.
    pub(crate) codes: Vec<Option<usize>>,
    pub(crate) members: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_take_evenly_spread_values() {
        let substitutes = UnseenSubstitutes::new(Key::from_seed(7));
        for column in 0..10 {
            let cell = UnseenCell {
                row: 0,
                column,
                known: 0..4,
                is_number: true,
            };
            let mut counts = [0; 4];
            for member in 0..40 {
                counts[substitutes.code_of(member, &cell).unwrap()] += 1;
            }
            assert!(
                counts.iter().all(|count| (8..=12).contains(count)),
                "{counts:?}"
            );
        }
        assert_eq!(substitutes.code_of_number(0, 0, 0), None);
    }

    /// The correlation over 100 members has a standard deviation of 0.1.
    #[test]
    fn values_of_different_columns_are_not_related() {
        for (a, b) in [(0, 1), (0, 8), (3, 7), (1, 2)] {
            let substitutes = UnseenSubstitutes::new(Key::from_seed(a));
            let code = |member: usize, column: u64| {
                let code = substitutes.code_of_number(member, column as usize, 16);
                code.unwrap() as f64 - 7.5
            };
            let products = (0..100).map(|member| code(member, a) * code(member, b));
            let correlation = products.sum::<f64>() / (100.0 * 21.25);
            assert!(correlation.abs() < 0.5, "{a} {b} {correlation}");
        }
    }

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
