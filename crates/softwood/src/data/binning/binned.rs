//! Binned rows: one byte per cell, for trees that split on thresholds and on sets of categories.
//!
//! Columns are stored in groups of at most [`GROUP`]; each group is an array of rows x [`GROUP`]
//! bytes, so that the histograms of a group stay in the first-level cache during a pass over rows.

use std::ops::Range;

use crate::data::binning::bin_lookup::BinLookup;
pub(crate) use crate::data::binning::cuts::{Cut, Cuts, MAX_BINS, MISSING_BIN};
use crate::data::column::Values;
use crate::data::table::{Rows, Table};
use crate::data::unseen::{UnseenCell, UnseenSubstitutes};
use crate::stop::until_cancelled;

/// Largest number of columns of a group, and bytes per row of a group.
pub(crate) const GROUP: usize = 8;
/// Number of cells binned at once.
const CHUNK: usize = 256;

/// Rows in bins, one byte per cell.
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
        // groups have equal width, because a group of one column costs as much as a full group
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

    /// The rows of the group of a column, and the offset of the column within a row of the group.
    pub(crate) fn place(&self, column: usize) -> (&[[u8; GROUP]], usize) {
        (self.group(column / self.width), column % self.width)
    }

    fn group_mut(&mut self, column: usize) -> (&mut [[u8; GROUP]], usize) {
        let start = column / self.width * self.n_rows;
        let rows = &mut self.bytes[start..start + self.n_rows];
        (rows, column % self.width)
    }

    /// The bin of a cell.
    #[inline]
    pub(crate) fn bin(&self, row: usize, column: usize) -> u8 {
        let (rows, offset) = self.place(column);
        rows[row][offset]
    }

    /// Sets the bin of a cell.
    pub(crate) fn set(&mut self, row: usize, column: usize, bin: u8) {
        let index = (column / self.width) * self.n_rows + row;
        self.bytes[index][column % self.width] = bin;
    }
}

impl Cuts {
    /// Bins the given rows of a table, in that order.
    pub(crate) fn bin_rows(&self, features: &Table, rows: &[u32]) -> Binned {
        self.bin(features, rows.len(), |index| rows[index] as usize)
    }

    /// Bins a range of rows.
    pub(crate) fn bin_range(&self, rows: &Rows<'_>) -> Binned {
        self.bin(rows.table, rows.len(), |index| rows.range.start + index)
    }

    fn bin(&self, features: &Table, n_rows: usize, row: impl Fn(usize) -> usize) -> Binned {
        let mut binned = Binned::new(n_rows, self.columns.len());
        for (column, cut) in until_cancelled(self.columns.iter().enumerate()) {
            let (cells, offset) = binned.group_mut(column);
            match (cut, &features.columns()[column].values) {
                (Cut::Number { edges, .. }, Values::Numeric(values)) => {
                    let lookup = BinLookup::new(edges);
                    let mut chunk = [0.0; CHUNK];
                    for (index, cells) in cells.chunks_mut(CHUNK).enumerate() {
                        let chunk = &mut chunk[..cells.len()];
                        for (offset_in_chunk, value) in chunk.iter_mut().enumerate() {
                            *value = values[row(index * CHUNK + offset_in_chunk)];
                        }
                        write_bins(&lookup, chunk, cells, offset);
                    }
                }
                (Cut::Category { bins, .. }, Values::Categorical { codes, .. }) => {
                    for (index, cells) in cells.iter_mut().enumerate() {
                        let bin = bins.get(codes[row(index)] as usize);
                        cells[offset] = bin.copied().unwrap_or(MISSING_BIN);
                    }
                }
                _ => {
                    unreachable!("tables are aligned to the schema that the cuts were fitted with")
                }
            }
        }
        binned
    }

    /// Replaces the values of a numeric column.
    pub(crate) fn bin_again(&self, column: usize, values: &[f64], binned: &mut Binned) {
        if let Cut::Number { edges, .. } = &self.columns[column] {
            let (cells, offset) = binned.group_mut(column);
            let lookup = BinLookup::new(edges);
            for (values, cells) in values.chunks(CHUNK).zip(cells.chunks_mut(CHUNK)) {
                write_bins(&lookup, values, cells, offset);
            }
        }
    }
}

/// Writes the bins of at most [`CHUNK`] values at one offset of each row of a group.
fn write_bins(lookup: &BinLookup, values: &[f64], cells: &mut [[u8; GROUP]], offset: usize) {
    let mut bins = [MISSING_BIN; CHUNK];
    lookup.bins(values, &mut bins[..values.len()]);
    let offset = offset % GROUP;
    for (cells, bin) in cells.iter_mut().zip(bins) {
        cells[offset] = bin;
    }
}

/// Replaces the bins of unseen cells by the substitutes of a member (or of a chain of
/// members).
pub(crate) fn substitute_unseen(
    cuts: &Cuts,
    unseen: &[UnseenCell],
    substitutes: UnseenSubstitutes,
    member: usize,
    binned: &mut Binned,
) {
    for cell in unseen {
        if let Some(code) = substitutes.code_of(member, cell) {
            binned.set(
                cell.row,
                cell.column,
                cuts.columns[cell.column].bin_of_known(code),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_of_equal_width() {
        let binned = Binned::new(3, 10);
        assert_eq!((binned.n_groups(), binned.columns(1)), (2, 5..10));
        let binned = Binned::new(3, 9);
        assert_eq!((binned.n_groups(), binned.columns(1)), (2, 5..9));
    }
}
