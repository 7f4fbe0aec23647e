//! The update of raw outputs by a new tree: `F <- q F + v`, with shrinkage `q` and leaf values `v`.

use multiversion::multiversion;

use crate::data::binning::binned::Binned;
use crate::numerics::prefetch::{AHEAD, prefetch};
use crate::trees::histogram::grower::HistogramTree;
use crate::trees::histogram::partition::Partition;

/// A new tree with its leaf values.
#[derive(Debug)]
pub(super) struct TreeUpdate<'a> {
    pub(super) tree: &'a HistogramTree,
    /// Leaves x updated outputs.
    pub(super) values: &'a [f32],
    /// Outputs that the tree updates, ascending; empty if it updates all.
    pub(super) updated: &'a [u16],
    /// Raw outputs of a row.
    pub(super) n_outputs: usize,
    pub(super) shrinkage: f32,
}

impl TreeUpdate<'_> {
    fn leaf_values(&self, leaf: usize) -> &[f32] {
        let n = match self.updated.len() {
            0 => self.n_outputs,
            n => n,
        };
        &self.values[leaf * n..(leaf + 1) * n]
    }

    /// Updates the rows that the tree was grown on.
    pub(super) fn apply_to_partition(&self, partition: &Partition, raw: &mut [f32]) {
        let shrinkage = self.shrinkage;
        for (leaf, rows) in self.tree.leaves.iter().enumerate() {
            let rows = partition.rows(rows);
            match *self.leaf_values(leaf) {
                [a] => add_to_rows(raw.as_chunks_mut().0, rows, [a], shrinkage),
                [a, b] => add_to_rows(raw.as_chunks_mut().0, rows, [a, b], shrinkage),
                ref values if self.updated.is_empty() => {
                    add_to_wide_rows(raw, rows, values, shrinkage);
                }
                _ => {
                    for &row in rows {
                        let raw = &mut raw[row as usize * self.n_outputs..][..self.n_outputs];
                        self.add_leaf(leaf, raw);
                    }
                }
            }
        }
    }

    /// Updates other rows, which have to find their leaves first.
    pub(super) fn apply_by_routing(&self, binned: &Binned, raw: &mut [f32]) {
        for (row, raw) in raw.chunks_exact_mut(self.n_outputs).enumerate() {
            let leaf = self.tree.structure.leaf(|column| binned.bin(row, column));
            self.add_leaf(leaf, raw);
        }
    }

    /// Shrinks the raw outputs of one row and adds the values of its leaf.
    fn add_leaf(&self, leaf: usize, raw: &mut [f32]) {
        let values = self.leaf_values(leaf);
        if self.updated.is_empty() {
            for (raw, value) in raw.iter_mut().zip(values) {
                *raw = self.shrinkage * *raw + value;
            }
            return;
        }
        for raw in &mut *raw {
            *raw *= self.shrinkage;
        }
        for (&output, value) in self.updated.iter().zip(values) {
            raw[usize::from(output)] += value;
        }
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn add_to_rows<const K: usize>(
    raw: &mut [[f32; K]],
    rows: &[u32],
    values: [f32; K],
    shrinkage: f32,
) {
    for (at, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(at + AHEAD) {
            prefetch(raw, later as usize);
        }
        let raw = &mut raw[row as usize];
        for output in 0..K {
            raw[output] = shrinkage.mul_add(raw[output], values[output]);
        }
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn add_to_wide_rows(raw: &mut [f32], rows: &[u32], values: &[f32], shrinkage: f32) {
    for &row in rows {
        let raw = &mut raw[row as usize * values.len()..][..values.len()];
        for (raw, value) in raw.iter_mut().zip(values) {
            *raw = shrinkage.mul_add(*raw, *value);
        }
    }
}
