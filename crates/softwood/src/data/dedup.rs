//! Deduplication: equal rows become one row with the sum of their weights, in an order that does
//! not depend on the order of the table.

use std::cmp::Ordering;

use crate::data::column::Values;
use crate::data::dataset::Dataset;
use crate::data::table::Table;
use crate::data::target::Target;
use crate::error::Result;
use crate::rng::{Key, mix, shuffle};
use crate::stop::{self, CancelScope, is_cancelled, until_cancelled};

/// Number of rows that are sorted between two checks whether the work is cancelled.
const SORTED_AT_ONCE: usize = 1 << 18;

/// One row of each set of equal rows, with the sum of their weights; rows of weight zero are
/// dropped.
///
/// A model that is fitted to these rows depends neither on the order of the dataset's rows nor on
/// whether a row is repeated or weighted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Deduplicated {
    /// Row indices into the dataset.
    pub(crate) rows: Vec<u32>,
    /// Weight of each row.
    pub(crate) weights: Vec<f64>,
}

impl Deduplicated {
    /// The deduplicated rows in canonical order: by features, then by target.
    pub(crate) fn sorted(data: &Dataset) -> Self {
        let weight = |row: u32| data.weights().map_or(1.0, |weights| weights[row as usize]);
        let mut order: Vec<(u64, u32)> = sort_keys(data)
            .into_iter()
            .zip(0..)
            .filter(|&(_, row)| weight(row) > 0.0)
            .collect();
        let compare = |a: u32, b: u32| data.compare(a as usize, b as usize);
        sort_unless_cancelled(&mut order, SORTED_AT_ONCE, |a, b| {
            a.0.cmp(&b.0)
                .then_with(|| compare(a.1, b.1))
                .then_with(|| weight(a.1).total_cmp(&weight(b.1)))
                .then(a.1.cmp(&b.1))
        });
        let (rows, weights) = order
            .chunk_by(|a, b| a.0 == b.0 && compare(a.1, b.1).is_eq())
            .map(|equal| {
                (
                    equal[0].1,
                    equal.iter().map(|&(_, row)| weight(row)).sum::<f64>(),
                )
            })
            .unzip();
        Self { rows, weights }
    }

    /// Rows as indices, and their weights.
    fn into_parts(self) -> (Vec<usize>, Vec<f64>) {
        let rows = self.rows.into_iter().map(|row| row as usize);
        (rows.collect(), self.weights)
    }

    /// The deduplicated rows in random order, so that every prefix is a random sample.
    pub(crate) fn shuffled(data: &Dataset, key: Key) -> Self {
        let Self { rows, weights } = Self::sorted(data);
        let mut order: Vec<(u32, f64)> = rows.into_iter().zip(weights).collect();
        shuffle(&mut key.rng(), &mut order);
        let (rows, weights) = order.into_iter().unzip();
        Self { rows, weights }
    }
}

impl Deduplicated {
    /// A random sample of at most `max_rows` of the deduplicated rows, in random order. It hashes the
    /// rows instead of comparing them, so that it is cheap for a small sample of many rows.
    pub(crate) fn sampled(data: &Dataset, max_rows: usize, key: Key) -> Self {
        let weight = |row: u32| data.weights().map_or(1.0, |weights| weights[row as usize]);
        let hashes = row_hashes(data, key).into_iter().zip(0..);
        let mut order: Vec<(u64, u32)> = hashes.filter(|&(_, row)| weight(row) > 0.0).collect();
        sort_unless_cancelled(&mut order, SORTED_AT_ONCE, |a, b| {
            a.0.cmp(&b.0)
                .then_with(|| weight(a.1).total_cmp(&weight(b.1)))
                .then(a.1.cmp(&b.1))
        });
        let (rows, weights) = order
            .chunk_by(|a, b| a.0 == b.0)
            .take(max_rows)
            .map(|equal| {
                let weights = equal.iter().map(|&(_, row)| weight(row));
                (equal[0].1, weights.sum::<f64>())
            })
            .unzip();
        Self { rows, weights }
    }
}

/// A number for each row that depends on the cells of its features and on its target; equal rows have
/// equal numbers.
fn row_hashes(data: &Dataset, key: Key) -> Vec<u64> {
    let mut hashes = vec![key.word(); data.n_rows()];
    match data.target() {
        Target::Numeric(values) => hash_numbers(&mut hashes, values),
        Target::Classes(codes) => hash_codes(&mut hashes, codes),
    }
    cell_hashes(data.features(), hashes)
}

/// Mixes the cells of each row into its hash; equal rows with equal hashes keep equal ones.
pub(crate) fn cell_hashes(table: &Table, mut hashes: Vec<u64>) -> Vec<u64> {
    for column in until_cancelled(table.columns()) {
        match &column.values {
            Values::Numeric(values) => hash_numbers(&mut hashes, values),
            Values::Categorical { codes, .. } => hash_codes(&mut hashes, codes),
        }
    }
    hashes
}

fn hash_numbers(hashes: &mut [u64], values: &[f64]) {
    for (hash, &value) in hashes.iter_mut().zip(values) {
        // zeros of both signs are equal, and so are all missing cells
        let bits = if value.is_nan() {
            u64::MAX
        } else {
            (value + 0.0).to_bits()
        };
        *hash = mix(*hash ^ bits);
    }
}

fn hash_codes(hashes: &mut [u64], codes: &[u32]) {
    for (hash, &code) in hashes.iter_mut().zip(codes) {
        *hash = mix(*hash ^ f64::from(code).to_bits());
    }
}

/// Sorts items that are all different. Sorts and merges pieces of `at_once` items, so that it can
/// stop between them if the work is cancelled.
fn sort_unless_cancelled<T: Copy>(
    items: &mut Vec<T>,
    at_once: usize,
    compare: impl Fn(&T, &T) -> Ordering,
) {
    for piece in until_cancelled(items.chunks_mut(at_once)) {
        piece.sort_unstable_by(&compare);
    }
    let mut merged = Vec::new();
    let mut width = at_once;
    while width < items.len() {
        merged.clear();
        merged.reserve_exact(items.len());
        for pair in items.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge([left, right], at_once, &compare, &mut merged);
        }
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
}

/// Appends two sorted slices to `out` in order; checks after every `at_once` items whether the work
/// is cancelled, and then appends the rest as it is.
fn merge<T: Copy>(
    [mut left, mut right]: [&[T]; 2],
    at_once: usize,
    compare: &impl Fn(&T, &T) -> Ordering,
    out: &mut Vec<T>,
) {
    while !left.is_empty() && !right.is_empty() && !is_cancelled() {
        let mut n_left = at_once;
        while let ([a, ..], [b, ..], 1..) = (left, right, n_left) {
            let from = if compare(b, a).is_lt() {
                &mut right
            } else {
                &mut left
            };
            out.push(from[0]);
            *from = &from[1..];
            n_left -= 1;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
}

impl Dataset {
    /// The deduplicated rows in canonical order, each with the sum of the weights of its copies;
    /// rows of weight zero are dropped.
    #[must_use]
    pub fn deduplicated(&self) -> Self {
        // complete also inside of work that is cancelled
        let sorted = CancelScope::default().enter(|| Deduplicated::sorted(self));
        let (rows, weights) = sorted.into_parts();
        self.take(&rows).replace_weights(weights)
    }

    /// As [`Dataset::deduplicated`], unless the work is cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it is.
    pub(crate) fn try_deduplicated(&self) -> Result<Self> {
        let (rows, weights) = Deduplicated::sorted(self).into_parts();
        stop::check()?;
        Ok(self.try_take(&rows)?.replace_weights(weights))
    }
}

/// Integers in the order of the first column: they decide most comparisons without access to the
/// other columns.
fn sort_keys(data: &Dataset) -> Vec<u64> {
    match &data.features().columns()[0].values {
        Values::Numeric(values) => values.iter().map(|&value| ordered(value)).collect(),
        Values::Categorical { codes, .. } => codes.iter().map(|&code| u64::from(code)).collect(),
    }
}

/// Maps a number to an integer in the order of `f64::total_cmp`.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::dataset::Roles;
    use crate::data::table::Table;
    use crate::stop::{CancelToken, cancellable};

    fn data(columns: Vec<Column>, weight: Option<&str>) -> Dataset {
        let roles = Roles {
            target: "y".to_owned(),
            weight: weight.map(str::to_owned),
            ..Roles::default()
        };
        Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
    }

    #[test]
    fn sorting_in_pieces_sorts_and_stops_if_it_is_cancelled() {
        let unsorted: Vec<u32> = (0..1000).map(|i| i * 617 % 1000).collect();
        for at_once in [1, 7, 250, 999, 1000, 5000] {
            let mut items = unsorted.clone();
            sort_unless_cancelled(&mut items, at_once, Ord::cmp);
            assert!(items.is_sorted() && items.len() == 1000, "{at_once}");
        }
        let token = CancelToken::at_check(30);
        let mut items = unsorted;
        let result = cancellable(vec![token.clone()], || {
            sort_unless_cancelled(&mut items, 50, Ord::cmp);
            Ok(())
        });
        assert!(result.is_err() && !items.is_sorted() && items.len() == 1000);
        // 20 pieces are sorted, and no more than the merges of one pass notice the stop
        assert!(token.n_checks() < 60, "{}", token.n_checks());
    }

    #[test]
    fn rows_are_deduplicated_completely_inside_of_cancelled_work() {
        let columns = ["a", "y"].map(|name| Column::numeric(name, vec![2.0, 1.0, 2.0]));
        let data = data(columns.to_vec(), None);
        let expected = data.deduplicated();
        let token = CancelToken::new();
        token.cancel();
        let result = cancellable(vec![token], || {
            assert!(data.try_deduplicated().is_err());
            assert_eq!(data.deduplicated(), expected);
            Ok(())
        });
        assert!(result.is_err());
    }

    #[test]
    fn repeated_rows_weigh_their_sum_and_order_does_not_matter() {
        let a = vec![1.0, 2.0, 1.0, 3.0, 2.0, 1.0];
        let y = vec![5.0, 6.0, 5.0, 7.0, 8.0, 5.0];
        let found = Deduplicated::sorted(&data(
            vec![
                Column::numeric("a", a.clone()),
                Column::numeric("y", y.clone()),
            ],
            None,
        ));
        assert_eq!(found.rows.len(), 4);
        assert!((found.weights.iter().sum::<f64>() - 6.0).abs() < 1e-12);
        let weighted = data(
            vec![
                Column::numeric("y", vec![8.0, 7.0, 6.0, 5.0, 0.0]),
                Column::numeric("w", vec![1.0, 1.0, 1.0, 3.0, 0.0]),
                Column::numeric("a", vec![2.0, 3.0, 2.0, 1.0, 0.0]),
            ],
            Some("w"),
        );
        let again = Deduplicated::sorted(&weighted);
        assert_eq!(again.weights, found.weights);
        let Target::Numeric(theirs) = weighted.target() else {
            panic!("numbers expected")
        };
        for (&ours, &other) in found.rows.iter().zip(&again.rows) {
            assert_eq!(y[ours as usize].to_bits(), theirs[other as usize].to_bits());
        }
    }

    #[test]
    fn a_sample_depends_neither_on_order_nor_on_repetition() {
        let n = 60;
        let a: Vec<f64> = (0..n).map(|row| f64::from(row % 13)).collect();
        let y: Vec<f64> = (0..n).map(|row| f64::from(row % 7)).collect();
        let columns = vec![
            Column::numeric("a", a.clone()),
            Column::numeric("y", y.clone()),
        ];
        let once = data(columns, None);
        let reversed: Vec<usize> = (0..60).rev().collect();
        let weighted = data(
            vec![
                Column::numeric("a", a),
                Column::numeric("y", y.clone()),
                Column::numeric("w", vec![2.0; 60]),
            ],
            Some("w"),
        );
        let twice: Vec<usize> = (0..60).chain(0..60).collect();
        let cells = |data: &Dataset, sample: &Deduplicated| -> Vec<[u64; 3]> {
            let rows: Vec<usize> = sample.rows.iter().map(|&row| row as usize).collect();
            let (Values::Numeric(a), Target::Numeric(y)) =
                (&data.features().columns()[0].values, data.target())
            else {
                panic!("numbers expected")
            };
            let weights = sample.weights.iter();
            rows.iter()
                .zip(weights)
                .map(|(&row, weight)| [a[row], y[row], *weight].map(f64::to_bits))
                .collect()
        };
        let sampled = |data: &Dataset| {
            let sample = Deduplicated::sampled(data, 20, Key::from_seed(4));
            cells(data, &sample)
        };
        assert_eq!(sampled(&once).len(), 20);
        assert_eq!(sampled(&once.take(&reversed)), sampled(&once));
        assert_eq!(sampled(&once.take(&twice)), sampled(&weighted));
        assert_ne!(sampled(&once), sampled(&weighted));
    }
}
