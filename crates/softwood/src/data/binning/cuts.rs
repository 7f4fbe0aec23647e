//! Cuts: how the cells of a column become bins of one byte.
//!
//! Bin 0 is the missing cell, and the category that did not occur in training; numbers have bins
//! from 1 on in ascending order.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::column::{MISSING, UNSEEN, Values};
use crate::data::ranks::values_by_rank;
use crate::data::table::{Rows, Table};
use crate::data::unseen::{N_QUANTILES, UnseenCell};
use crate::error::{Error, Result};
use crate::rng::{Key, uniform};
use crate::stop::is_cancelled;

/// Bin of a missing cell.
pub(crate) const MISSING_BIN: u8 = 0;
/// Largest number of bins of a column besides the one for missing cells.
pub(crate) const MAX_BINS: usize = 255;
/// Number of rows from which the edges are computed.
const MAX_SAMPLE_ROWS: usize = 200_000;

/// The cut of one column: how its cells become bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Cut {
    /// Bin `1 + (number of edges below the value)`; edges ascend and lie between values of the
    /// training rows.
    Number {
        /// In the user's units: the midpoint between two neighbouring values.
        edges: Vec<f64>,
        /// How far each edge can move without changing the bin of a training row; empty if unknown.
        #[serde(default)]
        slack: Vec<f64>,
        /// Bins of values at equal steps of rank, which replace missing cells if no training row has any;
        /// empty otherwise, and in files of earlier versions.
        #[serde(default)]
        substitutes: Vec<u8>,
    },
    /// Bin of each category; rare categories share one bin.
    Category {
        /// One bin per level of the schema.
        bins: Vec<u8>,
        /// Whether no training row has a missing cell; false in files of earlier versions.
        #[serde(default)]
        is_complete: bool,
    },
}

/// The cuts of all columns of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cuts {
    pub(crate) columns: Vec<Cut>,
}

impl Cut {
    /// Number of bins in use, including that of missing cells.
    pub(crate) fn n_bins(&self) -> usize {
        match self {
            Self::Number { edges, .. } => edges.len() + 2,
            Self::Category { bins, .. } => 1 + bins.iter().copied().max().map_or(0, usize::from),
        }
    }

    pub(crate) fn is_category(&self) -> bool {
        matches!(self, Self::Category { .. })
    }

    /// Codes that may replace an unseen cell: those of [`UnseenCell::known`].
    fn known(&self) -> Range<usize> {
        match self {
            Self::Number { substitutes, .. } => 0..substitutes.len(),
            Self::Category { .. } => 1..self.n_bins(),
        }
    }

    /// The bin of a code of [`Self::known`].
    pub(crate) fn bin_of_known(&self, code: usize) -> u8 {
        match self {
            Self::Number { substitutes, .. } => {
                substitutes.get(code).copied().unwrap_or(MISSING_BIN)
            }
            Self::Category { .. } => code as u8,
        }
    }

    /// Rows of a range, counted from its start, whose cell training knows nothing of.
    fn unseen(&self, values: &Values, range: &Range<usize>) -> impl Iterator<Item = usize> {
        range.clone().enumerate().filter_map(move |(at, row)| {
            let is_unseen = match (self, values) {
                (Self::Number { substitutes, .. }, Values::Numeric(values)) => {
                    !substitutes.is_empty() && values[row].is_nan()
                }
                (Self::Category { bins, is_complete }, Values::Categorical { codes, .. }) => {
                    let code = codes[row];
                    let bin = bins.get(code as usize);
                    code == UNSEEN
                        || (*is_complete && code == MISSING)
                        || bin.is_some_and(|&bin| bin == MISSING_BIN)
                }
                _ => false,
            };
            is_unseen.then_some(at)
        })
    }

    /// A cut of the right kind without bins, for work that is cancelled.
    fn blank(values: &Values) -> Self {
        match values {
            Values::Numeric(_) => Self::Number {
                edges: Vec::new(),
                slack: Vec::new(),
                substitutes: Vec::new(),
            },
            Values::Categorical { levels, .. } => Self::Category {
                bins: vec![MISSING_BIN; levels.len()],
                is_complete: false,
            },
        }
    }

    fn of_numbers(values: &[f64], rows: &[u32], weights: &[f64], max_bins: usize) -> Self {
        let mut sample: Vec<(f64, f64)> = rows
            .iter()
            .zip(weights)
            .take(MAX_SAMPLE_ROWS)
            .map(|(&row, &weight)| (values[row as usize] + 0.0, weight))
            .filter(|(value, _)| !value.is_nan())
            .collect();
        sample.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (edges, slack): (Vec<f64>, Vec<f64>) = edges(&sample, max_bins).into_iter().unzip();
        let is_complete = !rows.iter().any(|&row| values[row as usize].is_nan());
        let substitutes = if is_complete && !sample.is_empty() {
            let (sorted, weights): (Vec<f64>, Vec<f64>) = sample.into_iter().unzip();
            let bin = |value: f64| (1 + edges.partition_point(|&edge| edge < value)) as u8;
            let values = values_by_rank(&sorted, &weights, N_QUANTILES);
            values.into_iter().map(bin).collect()
        } else {
            Vec::new()
        };
        Self::Number {
            edges,
            slack,
            substitutes,
        }
    }

    /// The most frequent categories have a bin each, the others share the last one; categories
    /// without training rows have the bin of missing cells.
    fn of_codes(
        codes: &[u32],
        n_levels: usize,
        rows: &[u32],
        weights: &[f64],
        max_bins: usize,
    ) -> Self {
        let mut weight_of_level = vec![0.0; n_levels];
        for (&row, &weight) in rows.iter().zip(weights) {
            if let Some(sum) = weight_of_level.get_mut(codes[row as usize] as usize) {
                *sum += weight;
            }
        }
        let mut order: Vec<usize> = (0..n_levels)
            .filter(|&level| weight_of_level[level] > 0.0)
            .collect();
        order.sort_by(|&a, &b| {
            weight_of_level[b]
                .total_cmp(&weight_of_level[a])
                .then(a.cmp(&b))
        });
        let mut bins = vec![MISSING_BIN; n_levels];
        for (rank, &level) in order.iter().enumerate() {
            bins[level] = (rank + 1).min(max_bins) as u8;
        }
        Self::Category {
            bins,
            is_complete: !rows.iter().any(|&row| codes[row as usize] == MISSING),
        }
    }
}

impl Cuts {
    /// Fits the cuts of all columns to the given training rows.
    pub(crate) fn fit(features: &Table, rows: &[u32], weights: &[f64], max_bins: usize) -> Self {
        let max_bins = vec![max_bins; features.columns().len()];
        Self::fit_each(features, rows, weights, &max_bins)
    }

    /// As [`Self::fit`], with the largest number of bins of each column.
    pub(crate) fn fit_each(
        features: &Table,
        rows: &[u32],
        weights: &[f64],
        max_bins: &[usize],
    ) -> Self {
        let columns = features
            .columns()
            .iter()
            .zip(max_bins)
            .map(|(column, &max_bins)| match &column.values {
                values if is_cancelled() => Cut::blank(values),
                Values::Numeric(values) => Cut::of_numbers(values, rows, weights, max_bins),
                Values::Categorical { codes, levels } => {
                    Cut::of_codes(codes, levels.len(), rows, weights, max_bins)
                }
            });
        Self {
            columns: columns.collect(),
        }
    }

    /// Moves every edge at random within the gap between two training values. The bins of the
    /// training rows stay the same: the rows do not determine where in the gap the edge lies.
    pub(crate) fn jittered(&self, key: Key) -> Self {
        let mut cuts = self.clone();
        for (column, cut) in cuts.columns.iter_mut().enumerate() {
            if let Cut::Number { edges, slack, .. } = cut {
                let mut rng = key.child(column as u64).rng();
                for (edge, slack) in edges.iter_mut().zip(slack) {
                    *edge += (2.0 * uniform(&mut rng) - 1.0) * *slack;
                }
            }
        }
        cuts
    }

    /// Cells of a range of rows whose category did not occur in training, and missing cells of columns
    /// that had none.
    pub(crate) fn unseen(&self, rows: &Rows<'_>) -> Vec<UnseenCell> {
        let mut found = Vec::new();
        for (column, cut) in self.columns.iter().enumerate() {
            let values = &rows.table.columns()[column].values;
            found.extend(cut.unseen(values, &rows.range).map(|row| UnseenCell {
                row,
                column,
                known: cut.known(),
                is_number: !cut.is_category(),
            }));
        }
        found
    }

    /// Missing cells of these rows are no longer unseen, because a model is trained on them.
    pub(crate) fn see_missing_cells(&mut self, features: &Table, rows: &[u32]) {
        for (cut, column) in self.columns.iter_mut().zip(features.columns()) {
            match (cut, &column.values) {
                (Cut::Number { substitutes, .. }, Values::Numeric(values)) => {
                    let is_complete = !rows.iter().any(|&row| values[row as usize].is_nan());
                    if !is_complete {
                        substitutes.clear();
                    }
                }
                (Cut::Category { is_complete, .. }, Values::Categorical { codes, .. }) => {
                    *is_complete &= !rows.iter().any(|&row| codes[row as usize] == MISSING);
                }
                _ => {}
            }
        }
    }

    /// Checks cuts that were read from a file.
    ///
    /// # Errors
    /// When the number of cuts differs from that of `kinds` (number of levels of a categorical
    /// column, `None` for a numeric one), edges do not ascend, there are too many of them, or a
    /// slack is negative or not finite.
    pub(crate) fn check(&self, kinds: &[Option<usize>]) -> Result<()> {
        let fits = |(cut, kind): (&Cut, &Option<usize>)| match (cut, kind) {
            (
                Cut::Number {
                    edges,
                    slack,
                    substitutes,
                },
                None,
            ) => {
                let bins = 1..edges.len() + 2;
                edges.len() < MAX_BINS
                    && (substitutes.iter()).all(|&bin| bins.contains(&usize::from(bin)))
                    && edges.iter().all(|edge| edge.is_finite())
                    && edges.windows(2).all(|pair| pair[0] < pair[1])
                    && (slack.is_empty() || slack.len() == edges.len())
                    && slack.iter().all(|slack| slack.is_finite() && *slack >= 0.0)
                    && (edges.iter().zip(slack))
                        .all(|(edge, slack)| (edge.abs() + slack).is_finite())
            }
            (Cut::Category { bins, .. }, Some(n_levels)) => bins.len() == *n_levels,
            _ => false,
        };
        if self.columns.len() == kinds.len() && self.columns.iter().zip(kinds).all(fits) {
            return Ok(());
        }
        Err(Error::Format("the bins do not fit the schema".to_owned()))
    }
}

/// Edges between ascending `(value, weight)` pairs, each with its slack: between all distinct
/// values where they are few, otherwise after equal shares of the weight.
fn edges(sorted: &[(f64, f64)], max_bins: usize) -> Vec<(f64, f64)> {
    // distinct values and their weights
    let mut distinct: Vec<(f64, f64)> = Vec::new();
    for &(value, weight) in sorted {
        match distinct.last_mut() {
            Some(last) if last.0.to_bits() == value.to_bits() => last.1 += weight,
            _ => distinct.push((value, weight)),
        }
    }
    let mut weight_left: f64 = distinct.iter().map(|&(_, weight)| weight).sum();
    let mut bins_left = max_bins as f64;
    let is_one_bin_each = distinct.len() <= max_bins;
    let (mut edges, mut bin_weight) = (Vec::new(), 0.0);
    for pair in distinct.windows(2) {
        let ((below, weight), (above, next_weight)) = (pair[0], pair[1]);
        bin_weight += weight;
        // the bin closes early before a heavy value, so that this value has a bin of its own
        let share = weight_left / bins_left;
        let is_full = bin_weight >= share || (next_weight >= share && bin_weight >= 0.5 * share);
        if is_one_bin_each || is_full {
            let edge = midpoint(below, above);
            edges.push((edge, (edge - below).min(above.next_down() - edge)));
            weight_left -= bin_weight;
            bin_weight = 0.0;
            bins_left -= 1.0;
            if !is_one_bin_each && bins_left <= 1.0 {
                break;
            }
        }
    }
    edges
}

/// The midpoint of two values, below the upper one even after rounding.
fn midpoint(below: f64, above: f64) -> f64 {
    let middle = 0.5 * below + 0.5 * above;
    if middle < above { middle } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;

    fn bins_of(values: Vec<f64>, max_bins: usize) -> Vec<u8> {
        let n = values.len();
        let table = Table::new(vec![Column::numeric("a", values)]).unwrap();
        let rows: Vec<u32> = (0..n as u32).collect();
        let cuts = Cuts::fit(&table, &rows, &vec![1.0; n], max_bins);
        let binned = cuts.bin_rows(&table, &rows);
        let (bytes, offset) = binned.place(0);
        bytes.iter().map(|row| row[offset]).collect()
    }

    #[test]
    fn few_values_have_a_bin_each_and_missing_cells_have_bin_zero() {
        let found = bins_of(vec![3.0, f64::NAN, -1.0, 3.0, 0.5, 1e300, -1e300], 255);
        assert_eq!(found, [4, 0, 2, 4, 3, 5, 1]);
        // neighbouring floating-point numbers have different bins
        assert_eq!(bins_of(vec![1.0, 1.0_f64.next_up()], 255), [1, 2]);
    }

    #[test]
    fn jittered_edges_keep_the_bins_of_the_training_rows() {
        let mut values: Vec<f64> = Key::from_seed(1).uniforms(2000);
        values.extend([
            3.0,
            7.0,
            7.0_f64.next_up(),
            f64::MAX,
            f64::MIN,
            1.0_f64.next_down(),
        ]);
        values.extend([1.0, 1.0_f64.next_up(), 0.0, f64::MIN_POSITIVE, f64::NAN]);
        let n = values.len();
        let table = Table::new(vec![Column::numeric("a", values)]).unwrap();
        let rows: Vec<u32> = (0..n as u32).collect();
        for max_bins in [20, 255] {
            let cuts = Cuts::fit(&table, &rows, &vec![1.0; n], max_bins);
            let binned = cuts.bin_rows(&table, &rows);
            for seed in 0..50 {
                let jittered = cuts.jittered(Key::from_seed(seed));
                assert_ne!(jittered, cuts);
                assert!(jittered.check(&[None]).is_ok());
                let found = jittered.bin_rows(&table, &rows);
                assert!((0..n).all(|row| found.bin(row, 0) == binned.bin(row, 0)));
            }
        }
    }

    #[test]
    fn many_values_share_bins_of_equal_weight() {
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i * 7 % 10_000)).collect();
        let bins = bins_of(values, 100);
        let mut counts = [0; 101];
        for bin in bins {
            counts[bin as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|&n| n == 100), "{counts:?}");
    }

    #[test]
    fn a_heavy_value_has_a_bin_of_its_own() {
        let mut values = vec![0.0; 5000];
        values.extend((1..=5000).map(f64::from));
        let bins = bins_of(values, 50);
        assert!(bins[..5000].iter().all(|&bin| bin == 1));
        assert!(bins[5000..].iter().all(|&bin| bin > 1));
        assert_eq!(bins.iter().max(), Some(&50));
    }

    #[test]
    fn rare_categories_share_the_last_bin_and_unseen_ones_are_missing() {
        let texts: Vec<_> = ["a", "b", "b", "c", "c", "c", "d"].map(Some).to_vec();
        let table = Table::new(vec![Column::categorical("k", &texts)]).unwrap();
        let rows: Vec<u32> = (0..6).collect();
        let cuts = Cuts::fit(&table, &rows, &[1.0; 6], 2);
        assert_eq!(
            cuts.columns[0],
            Cut::Category {
                bins: vec![2, 2, 1, 0],
                is_complete: true,
            }
        );
    }

    #[test]
    fn missing_cells_are_unseen_until_training_has_some() {
        let complete = |present: Option<&str>, x: f64| {
            let kinds = [Some("a"), Some("b"), present];
            let columns = vec![
                Column::numeric("x", vec![1.0, 2.0, x]),
                Column::categorical("k", &kinds),
            ];
            Table::new(columns).unwrap()
        };
        let training = complete(Some("a"), 3.0);
        let mut cuts = Cuts::fit(&training, &[0, 1, 2], &[1.0; 3], 10);
        assert_eq!(cuts.unseen(&training.rows(0..3)), []);
        let new = complete(None, f64::NAN);
        let cell = |column: usize, known: Range<usize>, is_number: bool| UnseenCell {
            row: 1,
            column,
            known,
            is_number,
        };
        let expected = [cell(0, 0..3, true), cell(1, 1..3, false)];
        assert_eq!(cuts.unseen(&new.rows(1..3)), expected);
        cuts.see_missing_cells(&new, &[0, 1]);
        assert_eq!(cuts.unseen(&new.rows(1..3)), expected);
        cuts.see_missing_cells(&new, &[2]);
        assert_eq!(cuts.unseen(&new.rows(1..3)), []);
    }
}
