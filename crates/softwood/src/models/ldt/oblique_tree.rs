//! Structure of a tree whose conditions are linear in the inputs.

use crate::error::{Error, Result};
use crate::store::record::{Array, Record};
use crate::trees::serialize::{WordReader, read_children};

/// Largest magnitude of a weight in a file; a fit writes directions of length one.
const MAX_WEIGHT: f32 = 1e6;
/// Largest magnitude of a threshold in a file.
const MAX_THRESHOLD: f64 = 1e15;
/// Number of sums that a dot product accumulates side by side.
const N_SUMS: usize = 8;

/// A row goes right if the weighted sum of its inputs is above the threshold of the node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObliqueTree {
    pub(super) n_inputs: usize,
    /// Nodes x inputs.
    pub(super) weights: Vec<f32>,
    /// Threshold of each node.
    pub(super) thresholds: Vec<f64>,
    /// Children of each node. A negative child is the leaf `!child`; any other child is a node,
    /// which stands after its parent.
    pub(super) children: Vec<[i32; 2]>,
}

impl ObliqueTree {
    pub(super) fn new(n_inputs: usize) -> Self {
        Self {
            n_inputs,
            weights: Vec::new(),
            thresholds: Vec::new(),
            children: Vec::new(),
        }
    }

    pub(super) fn n_leaves(&self) -> usize {
        self.children.len() + 1
    }

    pub(super) fn weights(&self, node: usize) -> &[f32] {
        &self.weights[node * self.n_inputs..(node + 1) * self.n_inputs]
    }

    /// Whether a row with these inputs goes right at a node.
    pub(super) fn goes_right(&self, node: usize, inputs: &[f32]) -> bool {
        project(self.weights(node), inputs) > self.thresholds[node]
    }

    /// Calls `visit` with every node on the way of a row from the root, and returns its leaf.
    pub(super) fn route(&self, inputs: &[f32], mut visit: impl FnMut(usize)) -> usize {
        let mut at = if self.children.is_empty() { -1 } else { 0 };
        while at >= 0 {
            let node = at as usize;
            visit(node);
            at = self.children[node][usize::from(self.goes_right(node, inputs))];
        }
        !at as usize
    }

    /// The leaf of a row.
    pub(super) fn leaf(&self, inputs: &[f32]) -> usize {
        self.route(inputs, |_| ())
    }

    /// Arrays of a record.
    pub(super) fn arrays(&self) -> Vec<(String, Array)> {
        let children = self.children.iter().flatten().map(|&child| child as u32);
        vec![
            ("weights".to_owned(), Array::F32(self.weights.clone())),
            ("thresholds".to_owned(), Array::F64(self.thresholds.clone())),
            ("children".to_owned(), Array::U32(children.collect())),
        ]
    }

    /// Reads the arrays of a record.
    ///
    /// # Errors
    /// When an array is absent or of the wrong length, the nodes do not form a tree, or a number is
    /// out of range.
    pub(super) fn from_record(record: &Record, n_inputs: usize) -> Result<Self> {
        let words = record.u32s("children")?;
        let n_nodes = words.len() / 2;
        let mut words = WordReader::new(words);
        let tree = Self {
            n_inputs,
            children: read_children(&mut words, n_nodes)?,
            weights: record
                .f32s("weights", n_nodes.saturating_mul(n_inputs))?
                .to_vec(),
            thresholds: record.f64s("thresholds", n_nodes)?.to_vec(),
        };
        let is_valid = words.is_empty()
            && tree.weights.iter().all(|weight| weight.abs() <= MAX_WEIGHT)
            && (tree.thresholds.iter()).all(|threshold| threshold.abs() <= MAX_THRESHOLD);
        if !is_valid {
            return Err(Error::Format(
                "the weights, the thresholds or the children of the tree are out of range"
                    .to_owned(),
            ));
        }
        Ok(tree)
    }
}

/// The weighted sum of the inputs. Training and prediction share it: they route rows by the same
/// bits.
pub(super) fn project(weights: &[f32], inputs: &[f32]) -> f64 {
    let mut sums = [0.0; N_SUMS];
    let chunks = weights
        .chunks_exact(N_SUMS)
        .zip(inputs.chunks_exact(N_SUMS));
    for (weights, inputs) in chunks {
        for ((sum, &weight), &input) in sums.iter_mut().zip(weights).zip(inputs) {
            *sum += f64::from(weight) * f64::from(input);
        }
    }
    let start = weights.len() / N_SUMS * N_SUMS;
    let rest = weights[start..].iter().zip(&inputs[start..]);
    let rest: f64 = rest
        .map(|(&weight, &input)| f64::from(weight) * f64::from(input))
        .sum();
    sums.iter().sum::<f64>() + rest
}
