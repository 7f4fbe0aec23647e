//! Questions about the posterior over structures: the distributions of depth and number of leaves,
//! split probabilities, and the most probable tree with its export.

use crate::data::schema::Schema;
use crate::explain::tree_export::{NodeProbability, StructurePosterior, TreeExport};
use crate::inference::lowrank_gaussian::LowRank;
use crate::models::vart::fitted::Vart;
use crate::models::vart::init::VartPosterior;
use crate::models::vart::node_outputs::tree_occupancy;
use crate::models::vart::objective::MAX_LOGIT;
use crate::models::vart::spec::VartSpec;
use crate::models::vart::structure_kl::TreePosterior;
use crate::soft::general_layout::GeneralLayout;
use crate::soft::layout::TreeLayout;
use crate::trees::training_set::cart_target;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::tree_export::ExportedTree;
use crate::variational::tree_summary::TreeSummary;

impl TreePosterior<'_> {
    /// Probability of each number of leaves, from 1 on.
    pub(super) fn n_leaves(&self) -> Vec<f64> {
        let tree = self.tree;
        // probabilities of the subtree of each node, by number of leaves minus 1
        let mut below: Vec<Vec<f64>> = vec![vec![1.0]; tree.n_nodes()];
        for node in (0..tree.n_splits()).rev() {
            let splits = self.split_probability(node);
            let [left, right] = tree
                .children(node)
                .map(|child| std::mem::take(&mut below[child]));
            let mut out = vec![0.0; left.len() + right.len()];
            out[0] = 1.0 - splits;
            for (i, p) in left.iter().enumerate() {
                for (j, q) in right.iter().enumerate() {
                    out[i + j + 1] += splits * p * q;
                }
            }
            below[node] = out;
        }
        below.swap_remove(0)
    }

    /// Probability of each depth, from 0 on.
    pub(super) fn depths(&self) -> Vec<f64> {
        let tree = self.tree;
        // probability that the subtree of each node has at most each depth
        let mut at_most: Vec<Vec<f64>> = vec![vec![1.0]; tree.n_nodes()];
        for node in (0..tree.n_splits()).rev() {
            let splits = self.split_probability(node);
            let [left, right] = tree
                .children(node)
                .map(|child| std::mem::take(&mut at_most[child]));
            let value = |values: &[f64], at: usize| values[at.min(values.len() - 1)];
            let below = (0..left.len().max(right.len()))
                .map(|at| 1.0 - splits + splits * value(&left, at) * value(&right, at));
            at_most[node] = [1.0 - splits].into_iter().chain(below).collect();
        }
        let cumulative = at_most.swap_remove(0);
        let previous = [0.0].into_iter().chain(cumulative.iter().copied());
        cumulative
            .iter()
            .zip(previous)
            .map(|(p, q)| p - q)
            .collect()
    }

    /// Which nodes split in the most probable tree.
    pub(super) fn most_probable(&self) -> Vec<bool> {
        let tree = self.tree;
        // largest log probability of a tree below each node
        let mut best = vec![0.0; tree.n_nodes()];
        let mut splits = vec![false; tree.n_splits()];
        for node in (0..tree.n_splits()).rev() {
            let p = self.split_probability(node);
            let [left, right] = tree.children(node);
            let (stop, split) = ((-p).ln_1p(), p.ln() + best[left] + best[right]);
            splits[node] = split > stop;
            best[node] = split.max(stop);
        }
        splits
    }
}

/// The most probable tree of a posterior as a soft tree without stop gates.
#[derive(Debug)]
pub(super) struct MostProbableTree {
    pub(super) layout: GeneralLayout,
    pub(super) weights: Vec<f32>,
}

impl MostProbableTree {
    /// The tree of a single-tree posterior, with the posterior means of its weights.
    pub(super) fn new(posterior: &VartPosterior) -> Self {
        let start = most_probable_start(posterior);
        let tree = &start.spec.first;
        let children = (0..tree.n_splits()).map(|node| tree.children(node));
        let layout = GeneralLayout::new(children.collect(), 0, start.spec.shape.leaf);
        let shape = &start.spec.shape;
        let means = start.posterior.mean();
        let mut weights = vec![0.0; layout.n_weights()];
        for node in 0..tree.n_splits() {
            weights[layout.gate(node)].copy_from_slice(&means[shape.rule(node)]);
        }
        for leaf in 0..layout.n_leaves() {
            let from = &means[shape.leaf(tree, tree.n_splits() + leaf)];
            for channel in 0..layout.n_channels() {
                let from = &from[shape.channel(channel)];
                let to = &mut weights[layout.leaf(channel, leaf)];
                let n_missing = to.len() - from.len();
                to[n_missing..].copy_from_slice(from);
            }
        }
        Self { layout, weights }
    }
}

/// A posterior whose nodes that may split are those of the most probable tree, and surely do.
fn most_probable_start(posterior: &VartPosterior) -> VartPosterior {
    let spec = &posterior.spec;
    let tree_posterior = TreePosterior {
        tree: &spec.first,
        logits: &posterior.logits,
    };
    let splits = tree_posterior.most_probable();
    let (tree, nodes) = spec.first.restricted(|node| splits[node]);
    let shape = &spec.shape;
    let n_old = posterior.posterior.n_weights;
    let columns = posterior.posterior.values.chunks_exact(n_old);
    let values = columns.flat_map(|column| {
        let rules = nodes[..tree.n_splits()]
            .iter()
            .map(|&node| shape.rule(node));
        let leaves = nodes.iter().map(|&node| shape.leaf(&spec.first, node));
        rules
            .chain(leaves)
            .flat_map(|range| column[range].iter().copied())
    });
    let values = values.collect();
    let spec = VartSpec {
        added: tree.clone(),
        first: tree,
        n_added: 0,
        ..spec.clone()
    };
    let block_ends = spec.block_ends();
    VartPosterior {
        logits: vec![MAX_LOGIT; spec.n_logits()],
        posterior: LowRank {
            n_weights: spec.n_weights(),
            rank: posterior.posterior.rank,
            values,
            block_ends,
        },
        spec,
    }
}

/// What the export of the most probable tree needs of the training rows; `None` for a sum of trees.
pub(super) fn summarize(
    posterior: &VartPosterior,
    schema: &Schema,
    rows: &EncodedRows,
) -> Option<TreeSummary> {
    if posterior.spec.n_added > 0 {
        return None;
    }
    let start = most_probable_start(posterior);
    let all: Vec<usize> = (0..rows.n_rows()).collect();
    let ranges = start.spec.trees().next()?;
    let occupancy = tree_occupancy(&start, &ranges, rows, &all);
    let leaves = occupancy[start.spec.first.n_splits()..].iter();
    let kind = cart_target(schema);
    Some(TreeSummary::new(kind, leaves.map(Vec::as_slice), rows))
}

impl Vart {
    /// The most probable tree of the first fit; `None` for a sum of trees.
    pub(super) fn exported(&self) -> Option<TreeExport> {
        let summary = self.summary.as_ref()?;
        let tree = MostProbableTree::new(&self.posteriors[0]);
        let export = ExportedTree {
            schema: &self.schema,
            encoder: &self.trees[0].encoder,
            units: self.standard,
            layout: &tree.layout,
            weights: &tree.weights,
            beta: self.posteriors[0].spec.beta,
            summary,
        };
        Some(export.export())
    }

    /// Posterior over depth and number of leaves, averaged over the fits; `None` for sums of trees.
    pub(super) fn structure_posterior(&self) -> Option<StructurePosterior> {
        let n_fits = self.posteriors.len();
        let (mut depth, mut n_leaves) = (Vec::new(), Vec::new());
        for posterior in &self.posteriors {
            if posterior.spec.n_added > 0 {
                return None;
            }
            let tree = TreePosterior {
                tree: &posterior.spec.first,
                logits: &posterior.logits,
            };
            add(&mut depth, &tree.depths(), n_fits);
            add(&mut n_leaves, &tree.n_leaves(), n_fits);
        }
        let first = &self.posteriors[0];
        let tree = TreePosterior {
            tree: &first.spec.first,
            logits: &first.logits,
        };
        let existence = tree.existence();
        let heap = first.spec.first.heap_indices();
        let mut nodes: Vec<NodeProbability> = (0..first.spec.first.n_nodes())
            .map(|node| {
                NodeProbability::new(
                    heap[node] + 1,
                    existence[node],
                    tree.split_probability(node),
                )
            })
            .collect();
        nodes.sort_by_key(|node| node.node);
        Some(StructurePosterior::new(n_fits, depth, n_leaves, nodes))
    }
}

/// Adds the share of one fit.
fn add(sum: &mut Vec<f64>, values: &[f64], n_fits: usize) {
    sum.resize(sum.len().max(values.len()), 0.0);
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += value / n_fits as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soft::stopping_tree::StoppingTree;
    use softwood_testkit::close;

    /// The root splits with probability 0.8, its left child with 0.25.
    #[test]
    fn depth_and_number_of_leaves_have_the_probabilities_of_the_trees() {
        let (tree, _) = StoppingTree::of_heap(|node| node < 2);
        let logit = |p: f64| (p / (1.0 - p)).ln() as f32;
        let posterior = TreePosterior {
            tree: &tree,
            logits: &[logit(0.8), logit(0.25)],
        };
        close(&posterior.n_leaves(), &[0.2, 0.6, 0.2], 1e-6);
        close(&posterior.depths(), &[0.2, 0.6, 0.2], 1e-6);
        assert_eq!(posterior.most_probable(), [true, false]);
    }

    /// A root that hardly splits hides its likely children.
    #[test]
    fn the_most_probable_tree_weighs_whole_subtrees() {
        let (tree, _) = StoppingTree::of_heap(|node| node < 3);
        let posterior = TreePosterior {
            tree: &tree,
            logits: &[0.4, 0.1, 0.1],
        };
        // 0.40 for the root alone, 0.6 * 0.52^2 = 0.16 for the most probable tree with a split
        assert_eq!(posterior.most_probable(), [false, true, true]);
    }
}
