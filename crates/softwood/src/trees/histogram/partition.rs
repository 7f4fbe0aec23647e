//! The partition of rows into nodes: one array of row numbers in which every node owns a range.

use std::ops::Range;

use crate::data::binning::binned::Binned;
use crate::numerics::prefetch::{AHEAD, prefetch};
use crate::trees::condition::BinCondition;

/// Row numbers, ordered by node; within a node they ascend.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    rows: Vec<u32>,
    scratch: Vec<u32>,
}

impl Partition {
    /// One node with rows `0..n_rows`.
    pub(crate) fn new(n_rows: usize) -> Self {
        Self {
            rows: (0..n_rows as u32).collect(),
            scratch: vec![0; n_rows],
        }
    }

    /// One node with these rows, which ascend.
    pub(crate) fn of(rows: Vec<u32>) -> Self {
        Self {
            scratch: vec![0; rows.len()],
            rows,
        }
    }

    /// Puts rows `0..n_rows` into one node again.
    pub(crate) fn reset(&mut self) {
        for (at, row) in self.rows.iter_mut().enumerate() {
            *row = at as u32;
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rows(&self, node: &Range<usize>) -> &[u32] {
        &self.rows[node.clone()]
    }

    /// Splits a node: rows that go right come last. Returns the start of their range.
    pub(crate) fn split(
        &mut self,
        node: &Range<usize>,
        condition: &BinCondition,
        binned: &Binned,
    ) -> usize {
        let (bins, at) = binned.place(condition.column);
        let rows = &mut self.rows[node.clone()];
        let right = &mut self.scratch[..rows.len()];
        let table = condition.table();
        let (mut n_left, mut n_right) = (0, 0);
        for index in 0..rows.len() {
            let row = rows[index];
            if let Some(&later) = rows.get(index + AHEAD) {
                prefetch(bins, later as usize);
            }
            let goes_right = table[bins[row as usize][at] as usize];
            // branch-free: the row is written to both sides and one side advances
            rows[n_left] = row;
            right[n_right] = row;
            n_left += usize::from(!goes_right);
            n_right += usize::from(goes_right);
        }
        rows[n_left..].copy_from_slice(&right[..n_right]);
        node.start + n_left
    }
}
