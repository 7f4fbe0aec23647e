//! Rows grouped by the values of a few columns: categories, or whole numbers that may as well be names (a month, a number of doors).

use crate::data::column::{MISSING, Values};
use crate::data::table::Table;

/// EncodedGroup of a row whose values were never seen together.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// Which values of some columns were seen together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CategoryGroups {
    pub(crate) columns: Vec<usize>,
    /// Ascending; the digits of a key are the codes of its columns or their whole numbers, a missing cell counting as a value of
    /// its own.
    pub(crate) keys: Vec<u64>,
}

impl CategoryGroups {
    /// Groups of the given rows, and the group of each. None where the columns have too many levels for a key.
    pub(crate) fn of(
        features: &Table,
        columns: &[usize],
        rows: &[u32],
    ) -> Option<(Self, Vec<u32>)> {
        let mut wanted = columns.iter().map(|&column| radix(features, column));
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

/// Whole numbers below this, of either sign, are digits of a key.
const WHOLE: f64 = 32_767.0;

/// Digits that a column may have, the last of them for a missing cell.
fn radix(features: &Table, column: usize) -> u64 {
    match &features.columns()[column].values {
        Values::Categorical { levels, .. } => levels.len() as u64 + 1,
        Values::Numeric(_) => 2 * WHOLE as u64,
    }
}

/// The digit of a number; none where it is not whole or too large.
fn digit(value: f64) -> Option<u64> {
    if value.is_nan() {
        return Some(2 * WHOLE as u64 - 1);
    }
    let is_name = value.abs() < WHOLE && value.fract() == 0.0;
    is_name.then_some((value + WHOLE - 1.0) as u64)
}

/// The values of a numeric column at some rows, if they are at most `most` whole numbers: ascending, missing cells left out.
pub(crate) fn few_whole_numbers(
    values: &[f64],
    rows: impl Iterator<Item = usize>,
    most: usize,
) -> Option<Vec<u64>> {
    let mut seen: Vec<u64> = Vec::new();
    for row in rows.filter(|&row| !values[row].is_nan()) {
        let digit = digit(values[row])?;
        if let Err(at) = seen.binary_search(&digit) {
            if seen.len() == most {
                return None;
            }
            seen.insert(at, digit);
        }
    }
    Some(seen)
}

/// Keys of rows; none where a category is one that the schema does not know, or a number no digit.
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
            // a table with more levels than the grouping was made for cannot overflow into a wrong group: it wraps
            // into a key that is not there, or is refused by the schema before
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
    fn equal_values_share_a_group_and_missing_cells_are_a_value() {
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
    fn whole_numbers_are_names_and_others_have_no_group() {
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
        let few = |most, n| few_whole_numbers(&values, 0..n, most).map(|seen| seen.len());
        assert_eq!(few(2, 4), Some(2));
        assert_eq!(few(1, 4), None);
        assert_eq!(few(9, 5), None);
    }
}
