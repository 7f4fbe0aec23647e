//! Raw outputs of a chain and of its prefixes on binned rows.

use multiversion::multiversion;

use crate::boosting::chain::{BoostedTree, Chain};
use crate::data::binning::binned::Binned;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::structure::TreeStructure;

/// Rows of a block: each tree is loaded from the second-level cache once per block.
const ROWS: usize = 256;
/// Trees of a batch, whose values are added up in `f32` before they are added to the sums.
const BATCH: usize = 4;
/// Greatest depth of a symmetric tree whose leaf numbers fit into a byte.
const BYTE_DEPTH: usize = 8;

/// A source of binned rows.
pub(crate) trait BinSource {
    fn n_rows(&self) -> usize;

    fn n_columns(&self) -> usize;

    /// Writes the bins of consecutive rows from `first` on. It may leave `bins` unchanged for a
    /// column that no tree splits on.
    fn fill(&self, column: usize, first: usize, bins: &mut [u8]);
}

impl BinSource for Binned {
    fn n_rows(&self) -> usize {
        self.n_rows()
    }

    fn n_columns(&self) -> usize {
        self.n_columns()
    }

    fn fill(&self, column: usize, first: usize, bins: &mut [u8]) {
        let (rows, at) = self.place(column);
        for (bin, row) in bins.iter_mut().zip(&rows[first..]) {
            *bin = row[at];
        }
    }
}

/// The bins of a block of rows by column, and the leaves that a batch of trees sends the rows to.
#[derive(Debug, Clone)]
struct Router {
    /// Bins of each column.
    bins: Vec<[u8; ROWS]>,
    n_rows: usize,
    /// Leaf of each row, by tree of the batch.
    leaves: [[u8; ROWS]; BATCH],
}

impl Router {
    fn new(n_columns: usize) -> Self {
        Self {
            bins: vec![[0; ROWS]; n_columns],
            n_rows: 0,
            leaves: [[0; ROWS]; BATCH],
        }
    }

    fn load(&mut self, source: &impl BinSource, first: usize) {
        self.n_rows = ROWS.min(source.n_rows() - first);
        for (column, bins) in self.bins.iter_mut().enumerate() {
            source.fill(column, first, &mut bins[..self.n_rows]);
        }
    }

    /// Adds the leaf values of trees to the sums (rows x outputs).
    fn add(&mut self, mut trees: &[BoostedTree], n_outputs: usize, sums: &mut [f64]) {
        while let Some(tree) = trees.first() {
            let depth = byte_depth(tree);
            let next_trees = trees.iter().take(BATCH);
            let n_equal = next_trees
                .take_while(|tree| byte_depth(tree) == depth)
                .count();
            let is_batch = depth.is_some() && n_equal == BATCH && n_outputs <= 2;
            let (batch, remaining) = trees.split_at(if is_batch { BATCH } else { 1 });
            match depth {
                _ if !tree.outputs.is_empty() => self.add_some_outputs(tree, n_outputs, sums),
                Some(depth) => {
                    for (tree, leaves) in batch.iter().zip(&mut self.leaves) {
                        route_symmetric(tree.structure.conditions(), &self.bins, leaves);
                    }
                    self.add_shallow(batch, depth, n_outputs, sums);
                }
                None => self.add_deep(tree, n_outputs, sums),
            }
            trees = remaining;
        }
    }

    /// Adds the values of a batch of symmetric trees of equal depth, or of a single one.
    fn add_shallow(&self, batch: &[BoostedTree], depth: usize, n_outputs: usize, sums: &mut [f64]) {
        match n_outputs {
            1 => self.add_batch(batch, depth, sums.as_chunks_mut::<1>().0),
            2 => self.add_batch(batch, depth, sums.as_chunks_mut::<2>().0),
            _ => {
                let values = &batch[0].values;
                let rows = sums.chunks_exact_mut(n_outputs);
                for (sums, &leaf) in rows.zip(&self.leaves[0]) {
                    add_leaf(values, leaf.into(), sums);
                }
            }
        }
    }

    fn add_batch<const OUTPUTS: usize>(
        &self,
        batch: &[BoostedTree],
        depth: usize,
        sums: &mut [[f64; OUTPUTS]],
    ) {
        match depth {
            0 => add_tables::<1, OUTPUTS>(batch, &self.leaves, sums),
            1 => add_tables::<2, OUTPUTS>(batch, &self.leaves, sums),
            2 => add_tables::<4, OUTPUTS>(batch, &self.leaves, sums),
            3 => add_tables::<8, OUTPUTS>(batch, &self.leaves, sums),
            4 => add_tables::<16, OUTPUTS>(batch, &self.leaves, sums),
            5 => add_tables::<32, OUTPUTS>(batch, &self.leaves, sums),
            6 => add_tables::<64, OUTPUTS>(batch, &self.leaves, sums),
            7 => add_tables::<128, OUTPUTS>(batch, &self.leaves, sums),
            _ => add_tables::<256, OUTPUTS>(batch, &self.leaves, sums),
        }
    }

    /// Adds the values of a tree that updates some of the outputs.
    fn add_some_outputs(&mut self, tree: &BoostedTree, n_outputs: usize, sums: &mut [f64]) {
        let is_shallow = byte_depth(tree).is_some();
        if is_shallow {
            route_symmetric(tree.structure.conditions(), &self.bins, &mut self.leaves[0]);
        }
        let n_updated = tree.outputs.len();
        for (row, sums) in sums.chunks_exact_mut(n_outputs).enumerate() {
            let leaf = if is_shallow {
                self.leaves[0][row].into()
            } else {
                tree.structure.leaf(|column| self.bins[column][row])
            };
            let values = &tree.values[leaf * n_updated..(leaf + 1) * n_updated];
            for (&output, &value) in tree.outputs.iter().zip(values) {
                sums[usize::from(output)] += f64::from(value);
            }
        }
    }

    /// Adds the values of a tree of any shape.
    fn add_deep(&self, tree: &BoostedTree, n_outputs: usize, sums: &mut [f64]) {
        for (row, sums) in sums.chunks_exact_mut(n_outputs).enumerate() {
            let leaf = tree.structure.leaf(|column| self.bins[column][row]);
            add_leaf(&tree.values, leaf, sums);
        }
    }
}

/// Depth of a symmetric tree whose leaf numbers fit into a byte.
fn byte_depth(tree: &BoostedTree) -> Option<usize> {
    match &tree.structure {
        TreeStructure::Symmetric(conditions) if conditions.len() <= BYTE_DEPTH => {
            Some(conditions.len())
        }
        _ => None,
    }
}

fn add_leaf(values: &[f32], leaf: usize, sums: &mut [f64]) {
    let values = &values[leaf * sums.len()..(leaf + 1) * sums.len()];
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += f64::from(value);
    }
}

/// Leaf of each row in a symmetric tree: one bit per condition, the first condition highest.
#[multiversion(targets("x86_64+avx2+fma"))]
fn route_symmetric(conditions: &[BinCondition], bins: &[[u8; ROWS]], leaves: &mut [u8; ROWS]) {
    leaves.fill(0);
    for condition in conditions {
        let bins = &bins[condition.column];
        match condition.right_bins {
            RightBins::Above { bin, missing_right } => {
                // if missing cells go right, bin 0 wraps to the highest bin
                let shift = u8::from(missing_right);
                let threshold = bin.wrapping_sub(shift);
                for row in 0..ROWS {
                    let right = bins[row].wrapping_sub(shift) > threshold;
                    leaves[row] = (leaves[row] << 1) | u8::from(right);
                }
            }
            RightBins::In(set) => {
                for row in 0..ROWS {
                    let right = set[bins[row] as usize / 64] >> (bins[row] % 64) & 1;
                    leaves[row] = (leaves[row] << 1) | right as u8;
                }
            }
        }
    }
}

/// Leaf values of a tree as an array, leaves x outputs.
fn table<const LEAVES: usize, const OUTPUTS: usize>(
    tree: &BoostedTree,
) -> &[[f32; OUTPUTS]; LEAVES] {
    let values = tree.values.as_chunks::<OUTPUTS>().0;
    values
        .first_chunk()
        .expect("a tree has values for every leaf")
}

/// Adds the values of one tree or of a batch, each tree with `LEAVES` leaves.
///
/// The values of a batch are added up in `f32`: the rounding error of four terms is negligible.
fn add_tables<const LEAVES: usize, const OUTPUTS: usize>(
    trees: &[BoostedTree],
    leaves: &[[u8; ROWS]; BATCH],
    sums: &mut [[f64; OUTPUTS]],
) {
    let value = |table: &[[f32; OUTPUTS]; LEAVES], leaf: u8| table[leaf as usize % LEAVES];
    let [first, second, third, fourth] = leaves;
    if let [a, b, c, d] = trees {
        let (a, b, c, d) = (table(a), table(b), table(c), table(d));
        for (row, sums) in sums.iter_mut().enumerate().take(ROWS) {
            let (a, b) = (value(a, first[row]), value(b, second[row]));
            let (c, d) = (value(c, third[row]), value(d, fourth[row]));
            for output in 0..OUTPUTS {
                let batch = (a[output] + b[output]) + (c[output] + d[output]);
                sums[output] += f64::from(batch);
            }
        }
        return;
    }
    for tree in trees {
        let table = table(tree);
        for (sums, &leaf) in sums.iter_mut().zip(first) {
            let values = value(table, leaf);
            for output in 0..OUTPUTS {
                sums[output] += f64::from(values[output]);
            }
        }
    }
}

impl Chain {
    /// Raw outputs of the whole chain, rows x outputs.
    pub(crate) fn raw(&self, binned: &Binned) -> Vec<f32> {
        let n_outputs = self.n_outputs();
        let mut raw = vec![0.0; binned.n_rows() * n_outputs];
        self.forward(binned, &[self.trees.len()], |_, output, first, values| {
            for (at, &value) in values.iter().enumerate() {
                raw[(first + at) * n_outputs + output] = value as f32;
            }
        });
        raw
    }

    /// Raw outputs of the chain after each number of trees in `snapshots` (ascending).
    ///
    /// For every block of rows, snapshot and output, `write` receives the index of the snapshot,
    /// the output, the first row of the block, and the values of its rows.
    pub(crate) fn forward(
        &self,
        source: &impl BinSource,
        snapshots: &[usize],
        mut write: impl FnMut(usize, usize, usize, &[f64]),
    ) {
        let n_outputs = self.n_outputs();
        let mut router = Router::new(source.n_columns());
        let mut sums = vec![0.0; ROWS * n_outputs];
        let mut scaled = [0.0; ROWS];
        for first in (0..source.n_rows()).step_by(ROWS) {
            router.load(source, first);
            let n_rows = router.n_rows;
            let sums = &mut sums[..n_rows * n_outputs];
            for sums in sums.chunks_exact_mut(n_outputs) {
                sums.copy_from_slice(&self.start);
            }
            let mut done = 0;
            for (snapshot, &t) in snapshots.iter().enumerate() {
                router.add(&self.trees[done..t], n_outputs, sums);
                done = t;
                let factor = self.factor(t);
                for output in 0..n_outputs {
                    let sums = sums.iter().skip(output).step_by(n_outputs);
                    for (scaled, sum) in scaled.iter_mut().zip(sums) {
                        *scaled = factor * sum;
                    }
                    write(snapshot, output, first, &scaled[..n_rows]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_agrees_with_the_condition_for_every_bin_and_threshold() {
        let bins: [u8; ROWS] = std::array::from_fn(|row| row as u8);
        let mut leaves = [0; ROWS];
        let mut check = |right_bins| {
            let condition = BinCondition {
                column: 0,
                right_bins,
            };
            route_symmetric(&[condition, condition], &[bins], &mut leaves);
            for (leaf, bin) in leaves.iter().zip(bins) {
                assert_eq!(*leaf, 3 * u8::from(condition.goes_right(bin)));
            }
        };
        for bin in 1..=u8::MAX {
            for missing_right in [false, true] {
                check(RightBins::Above { bin, missing_right });
            }
        }
        check(RightBins::In([
            0x1234_5678_9abc_def1,
            1 << 63,
            7,
            u64::MAX / 3,
        ]));
    }

    /// A symmetric tree on two columns; its conditions and values depend on `number`.
    fn tree(depth: usize, n_outputs: usize, number: usize) -> BoostedTree {
        let conditions = (0..depth).map(|level| BinCondition {
            column: (level + number) % 2,
            right_bins: RightBins::Above {
                bin: (17 * level + 29 * number + 1) as u8,
                missing_right: level % 2 == 0,
            },
        });
        let values = (0..n_outputs << depth).map(|at| (at + 7 * number) as f32 * 0.37);
        BoostedTree {
            structure: TreeStructure::Symmetric(conditions.collect()),
            values: values.collect(),
            outputs: Vec::new(),
            gains: Vec::new(),
        }
    }

    #[test]
    fn batches_of_trees_add_up_to_their_leaf_values() {
        for n_outputs in [1, 2, 3] {
            for depth in 0..=BYTE_DEPTH + 1 {
                let depths = [depth, depth, depth, depth, depth / 2, depth, depth];
                let trees = depths.iter().enumerate();
                let trees: Vec<_> = trees.map(|(t, &depth)| tree(depth, n_outputs, t)).collect();
                let mut router = Router::new(2);
                router.bins[0] = std::array::from_fn(|row| row as u8);
                router.bins[1] = std::array::from_fn(|row| (row * 91 % 256) as u8);
                let mut sums = vec![0.25; 200 * n_outputs];
                router.add(&trees, n_outputs, &mut sums);
                for (at, &sum) in sums.iter().enumerate() {
                    let (row, output) = (at / n_outputs, at % n_outputs);
                    let of = |tree: &BoostedTree| {
                        let leaf = tree.structure.leaf(|column| router.bins[column][row]);
                        f64::from(tree.values[leaf * n_outputs + output])
                    };
                    let expected = 0.25 + trees.iter().map(of).sum::<f64>();
                    assert!(
                        (sum - expected).abs() <= 1e-6 * expected,
                        "{sum} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_tree_that_updates_some_outputs_leaves_the_others_unchanged() {
        for depth in [3, BYTE_DEPTH + 1] {
            let updating = BoostedTree {
                outputs: vec![1, 4],
                ..tree(depth, 2, 3)
            };
            let mut router = Router::new(2);
            router.bins[0] = std::array::from_fn(|row| row as u8);
            router.bins[1] = std::array::from_fn(|row| (row * 91 % 256) as u8);
            let mut sums = vec![0.25; 200 * 5];
            router.add(&[updating.clone(), updating.clone()], 5, &mut sums);
            for (row, sums) in sums.chunks_exact(5).enumerate() {
                let leaf = updating.structure.leaf(|column| router.bins[column][row]);
                let value = |at: usize| 0.25 + 2.0 * f64::from(updating.values[2 * leaf + at]);
                assert_eq!(sums, [0.25, value(0), 0.25, 0.25, value(1)]);
            }
        }
    }
}
