//! What a fitted tree keeps of its training rows, to be read by users: the target in each leaf, and
//! the spread of the inputs.

use serde::{Deserialize, Serialize};

use crate::soft::general_layout::GeneralLayout;
use crate::soft::layout::TreeLayout;
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;
use crate::variational::encoded_rows::EncodedRows;

/// Largest number of a summary that is accepted from a file.
const MAX_STORED: f64 = 1e60;

/// Statistics of the training rows of a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TreeSummary {
    /// Statistics of the target in each leaf by soft membership, leaves x statistics of
    /// [`CartTarget`]; targets are in standard units.
    leaves: Vec<f64>,
    /// Standard deviation of each input.
    pub(crate) input_sd: Vec<f32>,
}

impl TreeSummary {
    /// A summary of these rows. `reach` has the probability that each row reaches a leaf, leaf by
    /// leaf.
    pub(crate) fn new<'a>(
        kind: CartTarget,
        reach: impl Iterator<Item = &'a [f32]>,
        rows: &EncodedRows,
    ) -> Self {
        let mut leaves = Vec::new();
        for reach in reach {
            let reach = reach.iter().zip(&rows.weight);
            let weights = reach.map(|(&reach, &weight)| f64::from(reach) * f64::from(weight));
            leaves.extend(leaf_statistics(kind, weights.zip(&rows.target)));
        }
        let width = rows.inputs.len() / rows.n_rows().max(1);
        Self {
            leaves,
            input_sd: (0..width.saturating_sub(1))
                .map(|input| input_sd(rows, width, input))
                .collect(),
        }
    }

    /// Whether a summary that was read from a file fits a tree.
    pub(crate) fn fits(&self, kind: CartTarget, layout: &GeneralLayout) -> bool {
        let is_valid = |stats: &[f64]| match kind {
            CartTarget::Number => stats[0] >= 0.0 && stats[2] >= 0.0,
            CartTarget::Classes(_) => stats.iter().all(|&weight| weight >= 0.0),
        };
        self.leaves.len() == layout.n_leaves() * kind.n_stats()
            && self.leaves.iter().all(|value| value.abs() <= MAX_STORED)
            && self
                .leaves
                .chunks_exact(kind.n_stats().max(1))
                .all(is_valid)
            && self.input_sd.len() == layout.n_inputs()
            && self.input_sd.iter().all(|sd| (0.0..=1e6).contains(sd))
    }

    /// Weight of the training rows in each leaf.
    pub(crate) fn leaf_weights(&self, kind: CartTarget) -> Vec<f64> {
        let leaves = self.leaves.chunks_exact(kind.n_stats());
        leaves.map(|stats| kind.weight(stats)).collect()
    }

    /// Statistics of all nodes.
    pub(crate) fn nodes(&self, kind: CartTarget, layout: &GeneralLayout) -> NodeStatistics {
        let n_gates = layout.n_gates();
        let child = |child: usize| {
            if child < n_gates {
                child as i32
            } else {
                !((child - n_gates) as i32)
            }
        };
        let children: Vec<[i32; 2]> = (0..n_gates)
            .map(|gate| layout.children(gate).map(child))
            .collect();
        NodeStatistics::of_children(kind, &children, &self.leaves)
    }
}

/// Weight, mean and sum of squared deviations of the target, or the weight of each class.
fn leaf_statistics<'a>(kind: CartTarget, rows: impl Iterator<Item = (f64, &'a f32)>) -> Vec<f64> {
    match kind {
        CartTarget::Number => {
            let (mut total, mut mean, mut squares) = (0.0, 0.0, 0.0);
            for (weight, &y) in rows.filter(|(weight, _)| *weight > 0.0) {
                total += weight;
                let distance = f64::from(y) - mean;
                mean += weight / total * distance;
                squares += weight * distance * (f64::from(y) - mean);
            }
            vec![total, mean, squares]
        }
        CartTarget::Classes(n) => {
            let mut weights = vec![0.0; n];
            for (weight, &class) in rows {
                weights[class as usize] += weight;
            }
            weights
        }
    }
}

fn input_sd(rows: &EncodedRows, width: usize, input: usize) -> f32 {
    let values: Vec<f64> = (rows.inputs.iter().skip(input).step_by(width))
        .map(|&x| f64::from(x))
        .collect();
    let mean = rows.mean(&values);
    let squares: Vec<f64> = values.iter().map(|x| (x - mean).powi(2)).collect();
    rows.mean(&squares).sqrt() as f32
}
