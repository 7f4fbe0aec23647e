//! Structure moves between training runs: leaves whose residuals a split would reduce may split, and
//! splits that the posterior hardly uses are removed.

use crate::inference::lowrank_gaussian::{INITIAL_SD, LowRank};
use crate::models::vart::init::VartPosterior;
use crate::models::vart::node_outputs::NodeOutputs;
use crate::models::vart::spec::VartSpec;
use crate::models::vart::structure_kl::TreePosterior;
use crate::soft::stopping_tree::StoppingTree;
use crate::trees::dense::best_split::{DenseSample, DenseSplit, SplitScratch, best};
use crate::variational::encoded_rows::EncodedRows;

/// Maximum number of rows on which splits are searched.
const MAX_ROWS: usize = 8192;
/// Split probability below which a node no longer splits.
const IDLE_PROBABILITY: f64 = 0.05;
/// Initial logit of a new split.
const NEW_LOGIT: f32 = 0.5;
/// Initial sharpness of the gate of a new split.
const SHARPNESS: f32 = 3.0;
/// Occupancy from which a row counts for the split of a leaf.
const MIN_OCCUPANCY: f32 = 0.1;
/// A new split must reduce the squared residuals of its leaf by this many mean squares, times the
/// logarithm of the number of rows.
const MIN_GAIN: f64 = 1.0;
/// At most one leaf of this number splits in a round.
const LEAVES_PER_SPLIT: usize = 3;
/// Number of pseudo-rows by which the values of new leaves are shrunk towards the split leaf.
const SHRINKAGE: f64 = 5.0;
/// Largest derivative of a class probability with respect to its logit.
const MAX_DERIVATIVE: f64 = 0.25;

/// A leaf that may split, with the changes of the biases of its children.
#[derive(Debug, Clone)]
struct NewSplit {
    heap: usize,
    split: DenseSplit,
    /// Left and right: a change for each output.
    shifts: [Vec<f64>; 2],
}

/// A tree with other nodes that may split; `None` if nothing is to change. Only for a single tree.
pub(super) fn moved(
    start: &VartPosterior,
    train: &EncodedRows,
    max_depth: usize,
    prior_scale: f64,
) -> Option<VartPosterior> {
    let tree = &start.spec.first;
    let n_rows = train.n_rows();
    let n_sampled = n_rows.min(MAX_ROWS);
    let subset: Vec<usize> = (0..n_sampled).map(|at| at * n_rows / n_sampled).collect();
    let outputs = NodeOutputs::new(start, train, &subset);
    let heap = tree.heap_indices();
    let posterior = TreePosterior {
        tree,
        logits: &start.logits,
    };
    let is_used = |node: usize| posterior.split_probability(node) >= IDLE_PROBABILITY;
    let used: Vec<usize> = (0..tree.n_splits())
        .filter(|&node| is_used(node))
        .map(|node| heap[node])
        .collect();
    let new_splits = best_splits(start, train, &subset, &outputs, max_depth);
    if new_splits.is_empty() && used.len() == tree.n_splits() {
        return None;
    }
    let may_split =
        |node: usize| used.contains(&node) || new_splits.iter().any(|new| new.heap == node);
    let (new_tree, new_heap) = StoppingTree::of_heap(may_split);
    Some(rebuild(
        start,
        &new_tree,
        &new_heap,
        &new_splits,
        prior_scale,
    ))
}

/// The leaves with the largest gains, and their splits.
fn best_splits(
    start: &VartPosterior,
    train: &EncodedRows,
    subset: &[usize],
    outputs: &NodeOutputs,
    max_depth: usize,
) -> Vec<NewSplit> {
    let tree = &start.spec.first;
    let width = start.spec.shape.rule_size();
    let heap = tree.heap_indices();
    let min_rows = (width / 2).max(5);
    let inputs: Vec<f32> = subset
        .iter()
        .flat_map(|&row| &train.inputs[row * width..(row + 1) * width])
        .copied()
        .collect();
    let mut scratch = SplitScratch::default();
    let mut found = Vec::new();
    for node in tree.n_splits()..tree.n_nodes() {
        if tree.depth(node) >= max_depth {
            continue;
        }
        let occupancy = &outputs.occupancy[node];
        let rows: Vec<usize> = (0..subset.len())
            .filter(|&at| occupancy[at] >= MIN_OCCUPANCY)
            .collect();
        if rows.len() < 2 * min_rows {
            continue;
        }
        let weights = subset.iter().zip(occupancy);
        let weights: Vec<f64> = weights
            .map(|(&row, occupancy)| f64::from(train.weight[row]) * f64::from(*occupancy))
            .collect();
        let sample = DenseSample {
            inputs: &inputs,
            width,
            n_inputs: width - 1,
            outputs: &outputs.residuals,
            n_outputs: outputs.n_outputs,
            weights: &weights,
        };
        let Some(split) = best(&sample, &rows, min_rows, &mut scratch) else {
            continue;
        };
        let total: f64 = rows.iter().map(|&at| weights[at]).sum();
        let square = |at: usize| {
            let residuals = &outputs.residuals[at * outputs.n_outputs..][..outputs.n_outputs];
            weights[at] * residuals.iter().map(|r| r * r).sum::<f64>()
        };
        let mean_square = rows.iter().map(|&at| square(at)).sum::<f64>() / total;
        let relative_gain = split.gain / mean_square.max(f64::MIN_POSITIVE);
        if relative_gain > MIN_GAIN * (rows.len() as f64).ln() {
            let shifts = shifts(start, &sample, &rows, &split);
            let new_split = NewSplit {
                heap: heap[node],
                split,
                shifts,
            };
            found.push((relative_gain, new_split));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let n_leaves = tree.n_splits() + 1;
    let new_splits = found.into_iter().map(|(_, new_split)| new_split);
    new_splits
        .take(n_leaves.div_ceil(LEAVES_PER_SPLIT))
        .collect()
}

/// Mean residuals on both sides of a split, as changes of the mean or of the logits.
fn shifts(
    start: &VartPosterior,
    sample: &DenseSample<'_>,
    rows: &[usize],
    split: &DenseSplit,
) -> [Vec<f64>; 2] {
    let n_outputs = sample.n_outputs;
    let mut sums = [vec![0.0; n_outputs], vec![0.0; n_outputs]];
    let mut totals = [SHRINKAGE; 2];
    for &at in rows {
        let side = usize::from(sample.inputs[at * sample.width + split.input] > split.threshold);
        totals[side] += sample.weights[at];
        for (sum, residual) in sums[side].iter_mut().zip(&sample.outputs[at * n_outputs..]) {
            *sum += sample.weights[at] * residual;
        }
    }
    let derivative = if n_outputs == start.spec.shape.leaf.n_channels && n_outputs > 1 {
        MAX_DERIVATIVE
    } else {
        1.0
    };
    for (sums, total) in sums.iter_mut().zip(totals) {
        for sum in sums {
            *sum /= derivative * total;
        }
    }
    sums
}

/// The posterior of a tree that shares nodes with the former one. A new leaf begins with the values
/// of the leaf that was split.
fn rebuild(
    start: &VartPosterior,
    tree: &StoppingTree,
    heap: &[usize],
    new_splits: &[NewSplit],
    prior_scale: f64,
) -> VartPosterior {
    let (old, shape) = (&start.spec.first, &start.spec.shape);
    let old_heap = old.heap_indices();
    let old_node = |heap: usize| old_heap.iter().position(|&node| node == heap);
    let sources: Vec<Option<usize>> = heap.iter().map(|&heap| old_node(heap)).collect();
    // the leaf whose values a node begins with: its own, or that of the leaf that was split
    let leaf_sources: Vec<usize> = (sources.iter().zip(heap))
        .map(|(source, &heap)| {
            source.unwrap_or_else(|| {
                old_node((heap - 1) / 2).expect("a new leaf has a former parent")
            })
        })
        .collect();
    let n_old = start.posterior.n_weights;
    let n_new = shape.n_weights(tree);
    let log_sd = (INITIAL_SD * prior_scale.min(1.0)).ln() as f32;
    let mut values = vec![0.0; n_new * (2 + start.posterior.rank)];
    let columns = start.posterior.values.chunks_exact(n_old);
    for (column, (to, from)) in values.chunks_exact_mut(n_new).zip(columns).enumerate() {
        for (node, &heap_index) in heap.iter().enumerate() {
            let source = sources[node];
            if node < tree.n_splits() {
                let rule = &mut to[shape.rule(node)];
                match source.filter(|&source| source < old.n_splits()) {
                    Some(source) => rule.copy_from_slice(&from[shape.rule(source)]),
                    None => new_rule(
                        column,
                        rule,
                        new_splits,
                        heap_index,
                        log_sd,
                        start.spec.beta,
                    ),
                }
            }
            let leaf = &mut to[shape.leaf(tree, node)];
            leaf.copy_from_slice(&from[shape.leaf(old, leaf_sources[node])]);
            if column == 0 && source.is_none() {
                shift_leaf(start, leaf, new_splits, heap_index);
            }
        }
    }
    let logit = |node: usize| {
        sources[node]
            .and_then(|source| start.logits.get(source).copied())
            .unwrap_or(NEW_LOGIT)
    };
    let logits = (0..tree.n_splits()).map(logit).collect();
    let spec = VartSpec {
        first: tree.clone(),
        added: tree.clone(),
        ..start.spec.clone()
    };
    VartPosterior {
        posterior: LowRank {
            n_weights: n_new,
            rank: start.posterior.rank,
            values,
            block_ends: spec.block_ends(),
        },
        spec,
        logits,
    }
}

/// One column (mean, logarithm of the standard deviation, or factor) of the rule of a new split.
fn new_rule(
    column: usize,
    rule: &mut [f32],
    new_splits: &[NewSplit],
    heap: usize,
    log_sd: f32,
    beta: f64,
) {
    match column {
        0 => {
            let found = new_splits.iter().find(|new| new.heap == heap);
            if let Some(NewSplit { split, .. }) = found {
                let sharpness = SHARPNESS / beta as f32;
                let bias = rule.len() - 1;
                rule[split.input] = sharpness;
                rule[bias] = -sharpness * split.threshold;
            }
        }
        1 => rule.fill(log_sd),
        _ => {}
    }
}

/// Moves the biases of a new leaf by the mean residuals of its side.
fn shift_leaf(start: &VartPosterior, leaf: &mut [f32], new_splits: &[NewSplit], heap: usize) {
    let found = new_splits.iter().find(|new| new.heap == (heap - 1) / 2);
    if let Some(new_split) = found {
        let side = usize::from(heap.is_multiple_of(2));
        for (channel, shift) in new_split.shifts[side].iter().enumerate() {
            leaf[start.spec.shape.channel(channel).end - 1] += *shift as f32;
        }
    }
}
