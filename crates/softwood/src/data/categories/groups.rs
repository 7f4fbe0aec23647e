//! Groups of rows with equal values in a few columns: categories, or integers that may serve as
//! categories (a month, a number of doors).

use crate::data::column::{MISSING, Values};
use crate::data::table::Table;

/// Group of a row whose combination of values did not occur in training.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// The group of each row of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowGroups<'a> {
    /// Group of each row, or [`NO_GROUP`].
    pub(crate) index: &'a [u32],
    pub(crate) n_groups: usize,
}

/// The combinations of values of some columns that occur in training.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CategoryGroups {
    pub(crate) columns: Vec<usize>,
    /// Ascending. The digits of a key are the category codes or integers of its columns; a missing
    /// cell has a digit of its own.
    pub(crate) keys: Vec<u64>,
}

impl CategoryGroups {
    /// The groups of the given rows, and the group of each row. `None` if the columns have too many
    /// levels for a 64-bit key.
    pub(crate) fn of(
        features: &Table,
        columns: &[usize],
        rows: &[u32],
    ) -> Option<(Self, Vec<u32>)> {
        let mut radices = columns.iter().map(|&column| radix(features, column));
        radices.try_fold(1_u64, u64::checked_mul)?;
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

    /// The group of row `row(i)` of a table, for each `i` below `n`.
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

/// Integers below this magnitude are digits of a key.
const MAX_INTEGER: f64 = 32_767.0;

/// Number of digits of a column; the last one is the missing cell.
fn radix(features: &Table, column: usize) -> u64 {
    match &features.columns()[column].values {
        Values::Categorical { levels, .. } => levels.len() as u64 + 1,
        Values::Numeric(_) => 2 * MAX_INTEGER as u64,
    }
}

/// The digit of a number; `None` if it is not an integer or too large.
fn digit(value: f64) -> Option<u64> {
    if value.is_nan() {
        return Some(2 * MAX_INTEGER as u64 - 1);
    }
    let is_integer = value.abs() < MAX_INTEGER && value.fract() == 0.0;
    is_integer.then_some((value + MAX_INTEGER - 1.0) as u64)
}

/// The distinct values of a numeric column at the given rows, ascending and without missing cells;
/// `None` unless they are at most `max` integers.
pub(crate) fn few_whole_numbers(
    values: &[f64],
    rows: impl Iterator<Item = usize>,
    max: usize,
) -> Option<Vec<u64>> {
    let mut seen: Vec<u64> = Vec::new();
    for row in rows.filter(|&row| !values[row].is_nan()) {
        let digit = digit(values[row])?;
        if let Err(at) = seen.binary_search(&digit) {
            if seen.len() == max {
                return None;
            }
            seen.insert(at, digit);
        }
    }
    Some(seen)
}

/// Keys of rows; `None` for a category that the schema does not have and for a number without a
/// digit.
fn keys(
    features: &Table,
    columns: &[usize],
    n: usize,
    row: impl Fn(usize) -> usize,
) -> Vec<Option<u64>> {
    let mut keys = vec![Some(0_u64); n];
    for &column in columns {
        let radix = radix(features, column);
        for (at, key) in keys.iter_mut().enumerate() {
            let digit = match &features.columns()[column].values {
                Values::Categorical { codes, .. } => match codes[row(at)] {
                    MISSING => Some(radix - 1),
                    code => Some(u64::from(code)).filter(|&code| code < radix),
                },
                Values::Numeric(values) => digit(values[row(at)]),
            };
            // a table with more levels than in training cannot reach a wrong group by overflow: the
            // key wraps to one that does not exist, or the schema rejects the table before
            *key = (*key)
                .zip(digit)
                .map(|(key, digit)| key.wrapping_mul(radix).wrapping_add(digit));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;

    #[test]
    fn equal_values_share_a_group_and_missing_cells_are_a_value_of_their_own() {
        let table = Table::new(vec![
            Column::categorical("a", &[Some("x"), Some("y"), None, Some("x"), None]),
            Column::categorical(
                "b",
                &[Some("p"), Some("p"), Some("q"), Some("p"), Some("q")],
            ),
        ])
        .unwrap();
        let (grouping, index) = CategoryGroups::of(&table, &[0, 1], &[0, 1, 2, 3]).unwrap();
        assert_eq!(grouping.keys.len(), 3);
        assert_eq!(index[0], index[3]);
        assert_ne!(index[0], index[1]);
        assert_eq!(grouping.index(&table, 5, |at| at)[4], index[2]);
        let (few, _) = CategoryGroups::of(&table, &[0], &[0]).unwrap();
        assert_eq!(few.index(&table, 3, |at| at), [0, NO_GROUP, NO_GROUP]);
    }

    #[test]
    fn integers_form_groups_and_other_numbers_have_none() {
        let values = vec![-3.0, 12.0, f64::NAN, 12.0, 1.5, 4e4, -0.0];
        let table = Table::new(vec![
            Column::numeric("a", values.clone()),
            Column::categorical("b", &[Some("p"); 7]),
        ])
        .unwrap();
        let (grouping, index) = CategoryGroups::of(&table, &[0, 1], &[0, 1, 2, 6]).unwrap();
        assert_eq!(grouping.keys.len(), 4);
        let all = grouping.index(&table, 7, |at| at);
        assert_eq!(all[..3], index[..3]);
        assert_eq!(all[3], index[1]);
        assert_eq!(all[4..], [NO_GROUP, NO_GROUP, index[3]]);
        let few = |max, n| few_whole_numbers(&values, 0..n, max).map(|seen| seen.len());
        assert_eq!(few(2, 4), Some(2));
        assert_eq!(few(1, 4), None);
        assert_eq!(few(9, 5), None);
    }
}
