//! A table in bins: one byte per cell, for trees that split on thresholds and on sets of categories.
//!
//! Bin 0 is the missing cell (and the category that training never saw); numbers take bins from 1 on in ascending order.
//! Columns stand in groups of at most [`GROUP`], each group an array of rows x [`GROUP`] bytes, so that the histograms of a
//! group stay in the first-level cache while rows pass by.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::binning::bin_lookup::BinLookup;
use crate::data::column::{UNSEEN, Values};
use crate::data::table::{Rows, Table};
use crate::data::unseen::{UnseenCell, UnseenSubstitutes};
use crate::error::{Error, Result};
use crate::rng::{Key, uniform};

/// Most columns of a group, and bytes per row of it.
pub(crate) const GROUP: usize = 8;
/// Bin of a missing cell.
pub(crate) const MISSING_BIN: u8 = 0;
/// Most bins of a column besides the one for missing cells.
pub(crate) const MAX_BINS: usize = 255;
/// Rows that the edges are read off.
const SAMPLE: usize = 200_000;

/// How the cells of one column become bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Cut {
    /// Bin `1 + (number of edges below the value)`; edges ascend and lie between values of the training rows.
    Number {
        /// In the user's units: the middle of the gap between two values.
        edges: Vec<f64>,
        /// How far each edge can move and still part the training rows in the same way; none where that is not known.
        #[serde(default)]
        slack: Vec<f64>,
    },
    /// Bin by category; rare categories share one.
    Category {
        /// One per level of the schema.
        bins: Vec<u8>,
    },
}

/// How a table becomes bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cuts {
    pub(crate) columns: Vec<Cut>,
}

impl Cut {
    /// Bins in use, that of missing cells among them.
    pub(crate) fn n_bins(&self) -> usize {
        match self {
            Self::Number { edges, .. } => edges.len() + 2,
            Self::Category { bins } => 1 + bins.iter().copied().max().map_or(0, usize::from),
        }
    }

    pub(crate) fn is_category(&self) -> bool {
        matches!(self, Self::Category { .. })
    }

    fn of_numbers(values: &[f64], rows: &[u32], weights: &[f64], max_bins: usize) -> Self {
        let mut sample: Vec<(f64, f64)> = rows
            .iter()
            .zip(weights)
            .take(SAMPLE)
            .map(|(&row, &weight)| (values[row as usize] + 0.0, weight))
            .filter(|(value, _)| !value.is_nan())
            .collect();
        sample.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (edges, slack) = edges(&sample, max_bins).into_iter().unzip();
        Self::Number { edges, slack }
    }

    /// Frequent categories get a bin of their own, the others share the last; those without rows are as missing.
    fn of_codes(
        codes: &[u32],
        n_levels: usize,
        rows: &[u32],
        weights: &[f64],
        max_bins: usize,
    ) -> Self {
        let mut weight_of = vec![0.0; n_levels];
        for (&row, &weight) in rows.iter().zip(weights) {
            if let Some(sum) = weight_of.get_mut(codes[row as usize] as usize) {
                *sum += weight;
            }
        }
        let mut order: Vec<usize> = (0..n_levels)
            .filter(|&level| weight_of[level] > 0.0)
            .collect();
        order.sort_by(|&a, &b| weight_of[b].total_cmp(&weight_of[a]).then(a.cmp(&b)));
        let mut bins = vec![MISSING_BIN; n_levels];
        for (rank, &level) in order.iter().enumerate() {
            bins[level] = (rank + 1).min(max_bins) as u8;
        }
        Self::Category { bins }
    }
}

/// Cells binned at once.
const CHUNK: usize = 256;

/// Edges between ascending values, with their slack: between all of them where they are few, else after equal shares of the
/// weight.
fn edges(sorted: &[(f64, f64)], max_bins: usize) -> Vec<(f64, f64)> {
    // distinct values and their weights
    let mut distinct: Vec<(f64, f64)> = Vec::new();
    for &(value, weight) in sorted {
        match distinct.last_mut() {
            Some(last) if last.0.to_bits() == value.to_bits() => last.1 += weight,
            _ => distinct.push((value, weight)),
        }
    }
    let mut left: f64 = distinct.iter().map(|&(_, weight)| weight).sum();
    let mut bins_left = max_bins as f64;
    let few = distinct.len() <= max_bins;
    let (mut edges, mut filled) = (Vec::new(), 0.0);
    for pair in distinct.windows(2) {
        let ((below, weight), (above, next)) = (pair[0], pair[1]);
        filled += weight;
        // a heavy value ahead closes the bin early, so that it stands alone
        let share = left / bins_left;
        let is_full = filled >= share || (next >= share && filled >= 0.5 * share);
        if few || is_full {
            let edge = between(below, above);
            edges.push((edge, (edge - below).min(above.next_down() - edge)));
            left -= filled;
            filled = 0.0;
            bins_left -= 1.0;
            if !few && bins_left <= 1.0 {
                break;
            }
        }
    }
    edges
}

/// The middle of two values, below the upper one whatever the rounding.
fn between(below: f64, above: f64) -> f64 {
    let middle = 0.5 * below + 0.5 * above;
    if middle < above { middle } else { below }
}

impl Cuts {
    /// Edges and categories of the training rows given.
    pub(crate) fn fit(features: &Table, rows: &[u32], weights: &[f64], max_bins: usize) -> Self {
        let columns = features
            .columns()
            .iter()
            .map(|column| match &column.values {
                Values::Numeric(values) => Cut::of_numbers(values, rows, weights, max_bins),
                Values::Categorical { codes, levels } => {
                    Cut::of_codes(codes, levels.len(), rows, weights, max_bins)
                }
            });
        Self {
            columns: columns.collect(),
        }
    }

    /// The same bins for the training rows, with each edge somewhere in the gap between two of their values: which place is right,
    /// no row tells.
    pub(crate) fn jittered(&self, key: Key) -> Self {
        let mut cuts = self.clone();
        for (column, cut) in cuts.columns.iter_mut().enumerate() {
            if let Cut::Number { edges, slack } = cut {
                let mut rng = key.child(column as u64).rng();
                for (edge, slack) in edges.iter_mut().zip(slack) {
                    *edge += (2.0 * uniform(&mut rng) - 1.0) * *slack;
                }
            }
        }
        cuts
    }

    /// The given rows of a table, in that order.
    pub(crate) fn bin_rows(&self, features: &Table, rows: &[u32]) -> Binned {
        self.bin(features, rows.len(), |at| rows[at] as usize)
    }

    /// Cells of a run of rows whose category training never saw.
    pub(crate) fn unseen(&self, rows: &Rows<'_>) -> Vec<UnseenCell> {
        let mut found = Vec::new();
        for (column, cut) in self.columns.iter().enumerate() {
            let values = &rows.table.columns()[column].values;
            if let (Cut::Category { bins }, Values::Categorical { codes, .. }) = (cut, values) {
                let is_unseen = |code: u32| {
                    code == UNSEEN
                        || bins
                            .get(code as usize)
                            .is_some_and(|&bin| bin == MISSING_BIN)
                };
                let cells = codes[rows.range.clone()].iter().enumerate();
                found.extend(cells.filter(|&(_, &code)| is_unseen(code)).map(|(row, _)| {
                    UnseenCell {
                        row,
                        column,
                        known: 1..cut.n_bins(),
                    }
                }));
            }
        }
        found
    }

    /// A run of rows.
    pub(crate) fn bin_range(&self, rows: &Rows<'_>) -> Binned {
        self.bin(rows.table, rows.len(), |at| rows.range.start + at)
    }

    fn bin(&self, features: &Table, n_rows: usize, row: impl Fn(usize) -> usize) -> Binned {
        let mut binned = Binned::new(n_rows, self.columns.len());
        for (column, cut) in self.columns.iter().enumerate() {
            let (cells, place) = binned.place_mut(column);
            match (cut, &features.columns()[column].values) {
                (Cut::Number { edges, .. }, Values::Numeric(values)) => {
                    let lookup = BinLookup::new(edges);
                    let mut chunk = [0.0; CHUNK];
                    for (at, cells) in cells.chunks_mut(CHUNK).enumerate() {
                        let chunk = &mut chunk[..cells.len()];
                        for (in_chunk, value) in chunk.iter_mut().enumerate() {
                            *value = values[row(at * CHUNK + in_chunk)];
                        }
                        put(&lookup, chunk, cells, place);
                    }
                }
                (Cut::Category { bins }, Values::Categorical { codes, .. }) => {
                    for (at, cells) in cells.iter_mut().enumerate() {
                        let bin = bins.get(codes[row(at)] as usize);
                        cells[place] = bin.copied().unwrap_or(MISSING_BIN);
                    }
                }
                _ => {
                    unreachable!("tables are aligned to the schema that the cuts were fitted with")
                }
            }
        }
        binned
    }

    /// Puts other values into a column of numbers.
    pub(crate) fn bin_again(&self, column: usize, values: &[f64], binned: &mut Binned) {
        if let Cut::Number { edges, .. } = &self.columns[column] {
            let (cells, place) = binned.place_mut(column);
            let lookup = BinLookup::new(edges);
            for (values, cells) in values.chunks(CHUNK).zip(cells.chunks_mut(CHUNK)) {
                put(&lookup, values, cells, place);
            }
        }
    }

    /// Refuses what a damaged file may hold.
    ///
    /// # Errors
    /// When there is not one rule for each of `kinds` (whether the column is categorical, and its levels), edges do not
    /// ascend, there are too many, or they cannot move as said.
    pub(crate) fn check(&self, kinds: &[Option<usize>]) -> Result<()> {
        let fits = |(cut, kind): (&Cut, &Option<usize>)| match (cut, kind) {
            (Cut::Number { edges, slack }, None) => {
                edges.len() < MAX_BINS
                    && edges.iter().all(|edge| edge.is_finite())
                    && edges.windows(2).all(|pair| pair[0] < pair[1])
                    && (slack.is_empty() || slack.len() == edges.len())
                    && slack.iter().all(|slack| slack.is_finite() && *slack >= 0.0)
            }
            (Cut::Category { bins }, Some(n_levels)) => bins.len() == *n_levels,
            _ => false,
        };
        if self.columns.len() == kinds.len() && self.columns.iter().zip(kinds).all(fits) {
            return Ok(());
        }
        Err(Error::Format("the bins do not fit the schema".to_owned()))
    }
}

/// Bins of at most [`CHUNK`] values, into one place of each group of cells.
fn put(lookup: &BinLookup, values: &[f64], cells: &mut [[u8; GROUP]], place: usize) {
    let mut bins = [MISSING_BIN; CHUNK];
    lookup.bins(values, &mut bins[..values.len()]);
    let place = place % GROUP;
    for (cells, bin) in cells.iter_mut().zip(bins) {
        cells[place] = bin;
    }
}

/// Replaces the bins of unseen categories by those that a member (or a chain of members) takes them for.
pub(crate) fn substitute_unseen(
    unseen: &[UnseenCell],
    substitutes: UnseenSubstitutes,
    member: usize,
    binned: &mut Binned,
) {
    for cell in unseen {
        if let Some(bin) = substitutes.code(member, cell.column, &cell.known) {
            binned.set(cell.row, cell.column, bin as u8);
        }
    }
}

/// Rows in bins.
#[derive(Debug, Clone)]
pub(crate) struct Binned {
    bytes: Vec<[u8; GROUP]>,
    n_rows: usize,
    n_columns: usize,
    /// Columns per group.
    width: usize,
}

impl Binned {
    fn new(n_rows: usize, n_columns: usize) -> Self {
        let n_groups = n_columns.div_ceil(GROUP).max(1);
        // groups of equal width: a lone last column would cost as much as a full group
        let width = n_columns.div_ceil(n_groups).max(1);
        Self {
            bytes: vec![[MISSING_BIN; GROUP]; n_groups * n_rows],
            n_rows,
            n_columns,
            width,
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    pub(crate) fn n_groups(&self) -> usize {
        self.n_columns.div_ceil(self.width)
    }

    /// Columns of a group.
    pub(crate) fn columns(&self, group: usize) -> Range<usize> {
        group * self.width..((group + 1) * self.width).min(self.n_columns)
    }

    /// Rows of a group, [`GROUP`] bytes each.
    pub(crate) fn group(&self, group: usize) -> &[[u8; GROUP]] {
        &self.bytes[group * self.n_rows..(group + 1) * self.n_rows]
    }

    /// The rows of the group that a column stands in, and its place there.
    pub(crate) fn place(&self, column: usize) -> (&[[u8; GROUP]], usize) {
        (self.group(column / self.width), column % self.width)
    }

    fn place_mut(&mut self, column: usize) -> (&mut [[u8; GROUP]], usize) {
        let start = column / self.width * self.n_rows;
        let rows = &mut self.bytes[start..start + self.n_rows];
        (rows, column % self.width)
    }

    /// One cell.
    #[inline]
    pub(crate) fn bin(&self, row: usize, column: usize) -> u8 {
        let (rows, at) = self.place(column);
        rows[row][at]
    }

    /// Writes one cell.
    pub(crate) fn set(&mut self, row: usize, column: usize, bin: u8) {
        let at = (column / self.width) * self.n_rows + row;
        self.bytes[at][column % self.width] = bin;
    }
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
        let (bytes, at) = binned.place(0);
        bytes.iter().map(|row| row[at]).collect()
    }

    #[test]
    fn few_values_have_a_bin_each_and_missing_cells_their_own() {
        let found = bins_of(vec![3.0, f64::NAN, -1.0, 3.0, 0.5, 1e300, -1e300], 255);
        assert_eq!(found, [4, 0, 2, 4, 3, 5, 1]);
        // values next to each other are still told apart
        assert_eq!(bins_of(vec![1.0, 1.0_f64.next_up()], 255), [1, 2]);
    }

    #[test]
    fn moved_edges_part_the_training_rows_in_the_same_way() {
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
            let own = cuts.bin_rows(&table, &rows);
            for seed in 0..50 {
                let moved = cuts.jittered(Key::from_seed(seed));
                assert_ne!(moved, cuts);
                assert!(moved.check(&[None]).is_ok());
                let found = moved.bin_rows(&table, &rows);
                assert!((0..n).all(|row| found.bin(row, 0) == own.bin(row, 0)));
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
    fn a_heavy_value_stands_alone() {
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
                bins: vec![2, 2, 1, 0]
            }
        );
    }

    #[test]
    fn groups_are_of_equal_width() {
        let binned = Binned::new(3, 10);
        assert_eq!((binned.n_groups(), binned.columns(1)), (2, 5..10));
        let binned = Binned::new(3, 9);
        assert_eq!((binned.n_groups(), binned.columns(1)), (2, 5..9));
    }
}
