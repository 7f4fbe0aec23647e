//! Greedy growth of a complete tree of a given depth.

use crate::trees::dense::best_split::{DenseSample, DenseSplit, SplitScratch, best};

/// A complete tree.
#[derive(Debug, Clone)]
pub(crate) struct CompleteTree {
    /// Splits in heap order; `None` for a node without a valid split.
    pub(crate) splits: Vec<Option<DenseSplit>>,
    pub(crate) leaf_of_row: Vec<usize>,
}

/// Grows a tree of the given depth. A node without a valid split sends its rows left.
pub(crate) fn complete(sample: &DenseSample<'_>, depth: usize, min_rows: usize) -> CompleteTree {
    let n_rows = sample.weights.len();
    let n_splits = (1_usize << depth) - 1;
    let mut rows_of_node: Vec<Vec<usize>> = vec![Vec::new(); 2 * n_splits + 1];
    rows_of_node[0] = (0..n_rows).collect();
    let mut splits = vec![None; n_splits];
    let mut scratch = SplitScratch::default();
    for node in 0..n_splits {
        let rows = std::mem::take(&mut rows_of_node[node]);
        splits[node] = if rows.len() >= 2 * min_rows {
            best(sample, &rows, min_rows, &mut scratch)
        } else {
            None
        };
        let goes_right = |row: usize| {
            splits[node].is_some_and(|split: DenseSplit| {
                sample.inputs[row * sample.width + split.input] > split.threshold
            })
        };
        let (right, left) = rows.into_iter().partition(|&row| goes_right(row));
        rows_of_node[2 * node + 1] = left;
        rows_of_node[2 * node + 2] = right;
    }
    let mut leaf_of_row = vec![0; n_rows];
    for (leaf, rows) in rows_of_node[n_splits..].iter().enumerate() {
        for &row in rows {
            leaf_of_row[row] = leaf;
        }
    }
    CompleteTree {
        splits,
        leaf_of_row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piecewise_constant_target_is_fitted_exactly() {
        let inputs: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let outputs: Vec<f64> = (0..64).map(|i| [0.0, 3.0, 10.0, 14.0][i / 16]).collect();
        let weights = vec![1.0; 64];
        let sample = DenseSample {
            inputs: &inputs,
            width: 1,
            n_inputs: 1,
            outputs: &outputs,
            n_outputs: 1,
            weights: &weights,
        };
        let grown = complete(&sample, 2, 4);
        assert_eq!(
            grown.leaf_of_row,
            (0..64).map(|i| i / 16).collect::<Vec<_>>()
        );
        let deeper = complete(&sample, 4, 4);
        assert!(deeper.splits[3..].iter().all(Option::is_none));
    }
}
