//! Reduced-error pruning: bottom-up, a branch becomes a leaf if this does not raise the error on the
//! validation rows.

use crate::models::ldt::grow::GrownTree;
use crate::models::ldt::oblique_tree::ObliqueTree;
use crate::models::ldt::rows::EncodedRows;
use crate::stop::until_cancelled;
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;

/// Smallest relative decrease of the error that is not rounding.
const ROUNDING: f64 = 1e-9;

/// A pruned tree and the statistics of its leaves.
#[derive(Debug)]
pub(super) struct PrunedTree {
    pub(super) tree: ObliqueTree,
    /// Leaves x statistics.
    pub(super) leaves: Vec<f64>,
}

impl PrunedTree {
    /// Statistics of all rows.
    pub(super) fn root_stats(&self, kind: CartTarget) -> Vec<f64> {
        let mut root = vec![0.0; kind.n_stats()];
        for leaf in self.leaves.chunks_exact(kind.n_stats()) {
            kind.merge(&mut root, leaf);
        }
        root
    }

    /// Adds rows to the statistics of their leaves.
    pub(super) fn add_rows(&mut self, rows: &EncodedRows) {
        let n_stats = rows.kind.n_stats();
        for row in 0..rows.n_rows() {
            let leaf = self.tree.leaf(rows.row(row));
            let stats = &mut self.leaves[leaf * n_stats..(leaf + 1) * n_stats];
            rows.kind.push(stats, rows.target[row], rows.weight[row]);
        }
    }
}

/// Prunes the tree on the validation rows.
pub(super) fn reduced_error(grown: &GrownTree, validation: &EncodedRows) -> PrunedTree {
    let kind = validation.kind;
    let nodes = NodeStatistics::of_children(kind, &grown.tree.children, &grown.leaves);
    let errors = errors_as_leaves(&grown.tree, &nodes, validation);
    let n_inner = nodes.children.len();
    let mut is_kept = vec![false; n_inner];
    let mut branch_errors = errors.clone();
    // children stand after their parents
    for node in (0..n_inner).rev() {
        let [left, right] = nodes.children[node];
        let branch = branch_errors[left] + branch_errors[right];
        is_kept[node] = branch < errors[node] * (1.0 - ROUNDING);
        branch_errors[node] = if is_kept[node] { branch } else { errors[node] };
    }
    pruned(&grown.tree, &nodes, &is_kept)
}

/// The tree whose root alone may be split, for tables with too few rows for a validation set.
pub(super) fn stump(grown: &GrownTree, kind: CartTarget) -> PrunedTree {
    let nodes = NodeStatistics::of_children(kind, &grown.tree.children, &grown.leaves);
    let mut is_kept = vec![false; nodes.children.len()];
    is_kept.iter_mut().take(1).for_each(|root| *root = true);
    pruned(&grown.tree, &nodes, &is_kept)
}

/// Error of the validation rows that reach each node, if it were a leaf: squared error, or weight of
/// the wrongly classified rows.
fn errors_as_leaves(
    tree: &ObliqueTree,
    nodes: &NodeStatistics,
    validation: &EncodedRows,
) -> Vec<f64> {
    let n_inner = nodes.children.len();
    let predictions: Vec<f64> = (0..nodes.n_nodes())
        .map(|node| prediction(nodes.kind, nodes.stats(node)))
        .collect();
    let mut errors = vec![0.0; nodes.n_nodes()];
    for row in until_cancelled(0..validation.n_rows()) {
        let (target, weight) = (f64::from(validation.target[row]), validation.weight[row]);
        let mut add = |node: usize| {
            errors[node] += match nodes.kind {
                CartTarget::Number => weight * (target - predictions[node]).powi(2),
                CartTarget::Classes(_) if target as usize == predictions[node] as usize => 0.0,
                CartTarget::Classes(_) => weight,
            };
        };
        let leaf = tree.route(validation.row(row), &mut add);
        add(n_inner + leaf);
    }
    errors
}

/// Mean of a node, or the code of its most frequent class.
fn prediction(kind: CartTarget, stats: &[f64]) -> f64 {
    match kind {
        CartTarget::Number => stats[1],
        CartTarget::Classes(_) => {
            let classes = 0..stats.len();
            let most = classes.reduce(|best, class| {
                if stats[class] > stats[best] {
                    class
                } else {
                    best
                }
            });
            most.unwrap_or(0) as f64
        }
    }
}

/// The tree with the inner nodes that are kept and whose ancestors are kept.
fn pruned(tree: &ObliqueTree, nodes: &NodeStatistics, is_kept: &[bool]) -> PrunedTree {
    let mut out = PrunedTree {
        tree: ObliqueTree::new(tree.n_inputs),
        leaves: Vec::new(),
    };
    let n_stats = nodes.kind.n_stats();
    // nodes in the order of the full tree, so that children stand after their parents
    let mut places = vec![None; nodes.n_nodes()];
    places[0] = Some(None);
    for node in 0..nodes.n_nodes() {
        let Some(parent) = places[node] else { continue };
        let is_inner = is_kept.get(node) == Some(&true);
        let place = if is_inner {
            let at = out.tree.children.len();
            out.tree.children.push([0; 2]);
            out.tree.weights.extend_from_slice(tree.weights(node));
            out.tree.thresholds.push(tree.thresholds[node]);
            for (side, &child) in nodes.children[node].iter().enumerate() {
                places[child] = Some(Some((at, side)));
            }
            at as i32
        } else {
            out.leaves.extend_from_slice(nodes.stats(node));
            !((out.leaves.len() / n_stats - 1) as i32)
        };
        if let Some((parent, side)) = parent {
            out.tree.children[parent][side] = place;
        }
    }
    out
}
