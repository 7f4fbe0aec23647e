//! Rows grouped by the values of a few categorical columns.

use crate::data::column::{MISSING, Values};
use crate::data::table::Table;

/// Group of a row whose values were never seen together.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// Which values of some categorical columns were seen together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grouping {
    pub(crate) columns: Vec<usize>,
    /// Ascending; the digits of a key are the codes of its columns, a missing cell counting as a level of its own.
    pub(crate) keys: Vec<u64>,
}

impl Grouping {
    /// Groups of the given rows, and the group of each. None where the columns have too many levels for a key.
    pub(crate) fn of(
        features: &Table,
        columns: &[usize],
        rows: &[u32],
    ) -> Option<(Self, Vec<u32>)> {
        let mut wanted = columns
            .iter()
            .map(|&column| n_levels(features, column) as u64 + 1);
        wanted.try_fold(1_u64, u64::checked_mul)?;
        let found = keys(features, columns, rows.len(), |at| rows[at] as usize);
        let mut distinct: Vec<u64> = found.iter().flatten().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let grouping = Self {
            columns: columns.to_vec(),
            keys: distinct,
        };
        let index = found.into_iter().map(|key| grouping.find(key)).collect();
        Some((grouping, index))
    }

    /// Groups of rows of a table: of row `row(at)` for each `at`.
    pub(crate) fn index(
        &self,
        features: &Table,
        n: usize,
        row: impl Fn(usize) -> usize,
    ) -> Vec<u32> {
        let keys = keys(features, &self.columns, n, row);
        keys.into_iter().map(|key| self.find(key)).collect()
    }

    fn find(&self, key: Option<u64>) -> u32 {
        key.and_then(|key| self.keys.binary_search(&key).ok())
            .map_or(NO_GROUP, |at| at as u32)
    }
}

fn n_levels(features: &Table, column: usize) -> usize {
    match &features.columns()[column].values {
        Values::Categorical { levels, .. } => levels.len(),
        Values::Numeric(_) => 0,
    }
}

/// Keys of rows; none where a category is one that the schema does not know.
fn keys(
    features: &Table,
    columns: &[usize],
    n: usize,
    row: impl Fn(usize) -> usize,
) -> Vec<Option<u64>> {
    let mut keys = vec![Some(0_u64); n];
    for &column in columns {
        let Values::Categorical { codes, levels } = &features.columns()[column].values else {
            unreachable!("only categories are grouped by");
        };
        let n_levels = levels.len() as u64;
        for (at, key) in keys.iter_mut().enumerate() {
            let code = codes[row(at)];
            let digit = if code == MISSING {
                n_levels
            } else {
                u64::from(code)
            };
            *key = key.filter(|_| digit <= n_levels).map(|key| {
                // a table with more levels than the grouping was made for cannot overflow into a wrong group: it wraps
                // into a key that is not there, or is refused by the schema before
                key.wrapping_mul(n_levels + 1).wrapping_add(digit)
            });
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;

    #[test]
    fn equal_values_share_a_group_and_missing_cells_are_a_value() {
        let table = Table::new(vec![
            Column::categorical("a", &[Some("x"), Some("y"), None, Some("x"), None]),
            Column::categorical(
                "b",
                &[Some("p"), Some("p"), Some("q"), Some("p"), Some("q")],
            ),
        ])
        .unwrap();
        let (grouping, index) = Grouping::of(&table, &[0, 1], &[0, 1, 2, 3]).unwrap();
        assert_eq!(grouping.keys.len(), 3);
        assert_eq!(index[0], index[3]);
        assert_ne!(index[0], index[1]);
        assert_eq!(grouping.index(&table, 5, |at| at)[4], index[2]);
        let (few, _) = Grouping::of(&table, &[0], &[0]).unwrap();
        assert_eq!(few.index(&table, 3, |at| at), [0, NO_GROUP, NO_GROUP]);
    }
}
