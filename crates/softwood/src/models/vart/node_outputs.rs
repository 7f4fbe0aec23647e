//! The expected tree on rows: reach and occupancy of its nodes, and residuals of the sum of all
//! trees. Weights are posterior means, and split probabilities take the place of indicators.

use crate::likelihood::soft::SoftLikelihood;
use crate::models::vart::init::VartPosterior;
use crate::models::vart::spec::TreeRanges;
use crate::numerics::logspace::softmax;
use crate::numerics::real::sigmoid;
use crate::stop::until_cancelled;
use crate::variational::encoded_rows::EncodedRows;

/// The expected trees on some rows.
#[derive(Debug)]
pub(super) struct NodeOutputs {
    /// Probability that a row stops in the leaf of each node of the first tree, nodes x rows.
    pub(super) occupancy: Vec<Vec<f32>>,
    /// Target minus mean, or class indicators minus probabilities: rows x outputs.
    pub(super) residuals: Vec<f64>,
    pub(super) n_outputs: usize,
}

impl NodeOutputs {
    pub(super) fn new(start: &VartPosterior, rows: &EncodedRows, subset: &[usize]) -> Self {
        let VartPosterior { spec, .. } = start;
        let n_channels = spec.shape.leaf.n_channels;
        let mut channels = vec![0.0; subset.len() * n_channels];
        let mut occupancy = Vec::new();
        for (at, ranges) in spec.trees().enumerate() {
            let of_tree = tree_occupancy(start, &ranges, rows, subset);
            add_channels(start, &ranges, rows, subset, &of_tree, &mut channels);
            if at == 0 {
                occupancy = of_tree;
            }
        }
        let (residuals, n_outputs) = match spec.likelihood {
            SoftLikelihood::Categorical => {
                for (row, logits) in channels.chunks_exact_mut(n_channels).enumerate() {
                    softmax(logits, 1);
                    for probability in logits.iter_mut() {
                        *probability = -*probability;
                    }
                    logits[rows.target[subset[row]] as usize] += 1.0;
                }
                (channels, n_channels)
            }
            SoftLikelihood::Normal { .. } | SoftLikelihood::KnownNoise { .. } => {
                let means = channels
                    .chunks_exact(n_channels)
                    .map(|channels| channels[0]);
                let targets = subset.iter().map(|&row| f64::from(rows.target[row]));
                (targets.zip(means).map(|(y, mean)| y - mean).collect(), 1)
            }
        };
        Self {
            occupancy,
            residuals,
            n_outputs,
        }
    }
}

/// The inputs of a row.
fn inputs<'a>(start: &VartPosterior, rows: &'a EncodedRows, row: usize) -> &'a [f32] {
    let width = start.spec.shape.rule_size();
    &rows.inputs[row * width..(row + 1) * width]
}

fn dot(weights: &[f32], inputs: &[f32]) -> f64 {
    let products = weights.iter().zip(&inputs[inputs.len() - weights.len()..]);
    products.map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
}

/// Probability that each row stops in the leaf of each node of a tree.
pub(super) fn tree_occupancy(
    start: &VartPosterior,
    ranges: &TreeRanges<'_>,
    rows: &EncodedRows,
    subset: &[usize],
) -> Vec<Vec<f32>> {
    let (tree, shape) = (ranges.tree, &start.spec.shape);
    let posterior = ranges.posterior(&start.logits);
    let weights = &start.posterior.mean()[ranges.weights.clone()];
    let mut reach = vec![Vec::new(); tree.n_nodes()];
    reach[0] = vec![1.0; subset.len()];
    for node in until_cancelled(0..tree.n_splits()) {
        let splits = posterior.split_probability(node) as f32;
        let rule = &weights[shape.rule(node)];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (&row, reach) in subset.iter().zip(&mut reach[node]) {
            let gate = start.spec.beta * dot(rule, inputs(start, rows, row));
            let gate = sigmoid(gate) as f32;
            right.push(*reach * splits * gate);
            left.push(*reach * splits * (1.0 - gate));
            *reach *= 1.0 - splits;
        }
        let [left_child, right_child] = tree.children(node);
        reach[left_child] = left;
        reach[right_child] = right;
    }
    // only if the work is cancelled
    for rows in &mut reach {
        rows.resize(subset.len(), 0.0);
    }
    reach
}

/// Adds the channels of a tree, averaged over its leaves.
fn add_channels(
    start: &VartPosterior,
    ranges: &TreeRanges<'_>,
    rows: &EncodedRows,
    subset: &[usize],
    occupancy: &[Vec<f32>],
    out: &mut [f64],
) {
    let shape = &start.spec.shape;
    let n_channels = shape.leaf.n_channels;
    let weights = &start.posterior.mean()[ranges.weights.clone()];
    for (node, occupancy) in until_cancelled(occupancy.iter().enumerate()) {
        let leaf = &weights[shape.leaf(ranges.tree, node)];
        for (at, (&row, &weight)) in subset.iter().zip(occupancy).enumerate() {
            if weight <= 0.0 {
                continue;
            }
            let inputs = inputs(start, rows, row);
            for channel in 0..n_channels {
                out[at * n_channels + channel] +=
                    f64::from(weight) * dot(&leaf[shape.channel(channel)], inputs);
            }
        }
    }
}
