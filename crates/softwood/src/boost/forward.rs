//! Raw outputs of a chain on binned rows, with those of the sub-models on the way.

use multiversion::multiversion;

use crate::boost::chain::{Chain, Tree};
use crate::data::binned::Binned;
use crate::hard::skeleton::Skeleton;
use crate::hard::test::{Rule, Test};

/// Rows routed at once.
const ROWS: usize = 64;

/// A block of rows by column, for routing.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    /// Bins of each column.
    bins: Vec<[u8; ROWS]>,
    n_rows: usize,
    leaves: [u32; ROWS],
}

impl Router {
    pub(crate) fn new(n_columns: usize) -> Self {
        Self {
            bins: vec![[0; ROWS]; n_columns],
            n_rows: 0,
            leaves: [0; ROWS],
        }
    }

    fn load(&mut self, binned: &Binned, start: usize) {
        self.n_rows = ROWS.min(binned.n_rows() - start);
        for (column, bins) in self.bins.iter_mut().enumerate() {
            let (rows, at) = binned.place(column);
            for (bin, row) in bins.iter_mut().zip(&rows[start..start + self.n_rows]) {
                *bin = row[at];
            }
        }
    }

    fn route(&mut self, skeleton: &Skeleton) {
        match skeleton {
            Skeleton::Symmetric(tests) => {
                self.leaves = [0; ROWS];
                for test in tests {
                    answer(test, &self.bins[test.column], &mut self.leaves);
                }
            }
            Skeleton::General { .. } => {
                for row in 0..self.n_rows {
                    self.leaves[row] = skeleton.leaf(|column| self.bins[column][row]) as u32;
                }
            }
        }
    }
}

/// Appends the answers of one test to the leaf numbers.
#[multiversion(targets = "simd")]
fn answer(test: &Test, bins: &[u8; ROWS], leaves: &mut [u32; ROWS]) {
    match test.rule {
        Rule::Above { bin, missing_right } => {
            // with missing cells on the right, bin 0 becomes the highest by wrapping
            let down = u8::from(missing_right);
            let top = bin.wrapping_sub(down);
            for row in 0..ROWS {
                let right = bins[row].wrapping_sub(down) > top;
                leaves[row] = 2 * leaves[row] + u32::from(right);
            }
        }
        Rule::In(set) => {
            for row in 0..ROWS {
                let right = set[bins[row] as usize / 64] >> (bins[row] % 64) & 1;
                leaves[row] = 2 * leaves[row] + right as u32;
            }
        }
    }
}

impl Chain {
    /// Raw outputs of all trees, rows x outputs.
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

    /// Raw outputs of the sub-models after `snapshots` trees (ascending), for every row: `write` gets the snapshot, the output,
    /// the first of up to 64 rows, and their values.
    pub(crate) fn forward(
        &self,
        binned: &Binned,
        snapshots: &[usize],
        mut write: impl FnMut(usize, usize, usize, &[f64]),
    ) {
        let n_outputs = self.n_outputs();
        let mut router = Router::new(binned.n_columns());
        let mut sums = vec![[0.0_f64; ROWS]; n_outputs];
        let mut scaled = [0.0; ROWS];
        for first in (0..binned.n_rows()).step_by(ROWS) {
            router.load(binned, first);
            let n_rows = router.n_rows;
            for (sum, &start) in sums.iter_mut().zip(&self.start) {
                *sum = [start; ROWS];
            }
            let mut done = 0;
            for (snapshot, &t) in snapshots.iter().enumerate() {
                for tree in &self.trees[done..t] {
                    router.route(&tree.skeleton);
                    add_values(tree, &router.leaves, n_rows, &mut sums);
                }
                done = t;
                let factor = self.factor(t);
                for (output, sum) in sums.iter().enumerate() {
                    for (scaled, sum) in scaled.iter_mut().zip(sum) {
                        *scaled = factor * sum;
                    }
                    write(snapshot, output, first, &scaled[..n_rows]);
                }
            }
        }
    }
}

fn add_values(tree: &Tree, leaves: &[u32; ROWS], n_rows: usize, sums: &mut [[f64; ROWS]]) {
    let n_outputs = sums.len();
    if let [mean, scale] = sums {
        let values = tree.values.as_chunks::<2>().0;
        for row in 0..n_rows {
            let [a, b] = values[leaves[row] as usize];
            mean[row] += f64::from(a);
            scale[row] += f64::from(b);
        }
        return;
    }
    for (output, sum) in sums.iter_mut().enumerate() {
        for row in 0..n_rows {
            sum[row] += f64::from(tree.values[leaves[row] as usize * n_outputs + output]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_agrees_with_the_test_for_every_bin_and_threshold() {
        for bin in 1..=u8::MAX {
            for missing_right in [false, true] {
                let test = Test {
                    column: 0,
                    rule: Rule::Above { bin, missing_right },
                };
                for first in [0, 64, 128, 192] {
                    let bins: [u8; ROWS] = std::array::from_fn(|row| first + row as u8);
                    let mut leaves = [0; ROWS];
                    answer(&test, &bins, &mut leaves);
                    for (leaf, bin) in leaves.iter().zip(bins) {
                        assert_eq!(*leaf == 1, test.goes_right(bin));
                    }
                }
            }
        }
    }
}
