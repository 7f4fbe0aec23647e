//! The initial posterior of a tree: a greedy hard tree gives the structure and the rules, ridge
//! regressions on the rows of each node give the leaves.

use crate::inference::lowrank_gaussian::LowRank;
use crate::models::vart::params::VartParams;
use crate::models::vart::spec::VartSpec;
use crate::rng::Key;
use crate::soft::general_layout::LeafShape;
use crate::soft::layout::{Layout, TreeLayout};
use crate::soft::stopping_tree::{MAX_DEPTH, StoppingTree};
use crate::soft::stopping_weights::NodeShape;
use crate::variational::candidate::TreeShape;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedSplit;
use crate::variational::init::WeightInitializer;
use crate::variational::options::{Leaf, LeafMixing};
use crate::variational::streams::initial_posterior as streams;

/// Depth of added trees.
const ADDED_DEPTH: usize = 3;

/// A posterior from which training begins.
#[derive(Debug, Clone)]
pub(super) struct VartPosterior {
    pub(super) spec: VartSpec,
    pub(super) posterior: LowRank,
    pub(super) logits: Vec<f32>,
}

impl VartPosterior {
    /// A tree of at most the depth of `shape`.
    pub(super) fn new(
        params: &VartParams,
        config: &SoftTreeConfig,
        split: &EncodedSplit,
        shape: TreeShape,
        key: Key,
    ) -> Self {
        let node_shape = node_shape(params, split, shape.leaf);
        let is_mixture = params.leaf_mixing == Some(LeafMixing::Mixture)
            || (shape.depth > 0 && shape.mixing_levels == shape.depth);
        let initializer = WeightInitializer {
            train: &split.train,
            likelihood: split.scale.likelihood,
            residuals: None,
            beta: config.beta,
        };
        let weights_key = key.child(streams::WEIGHTS);
        let levels = InitialLevels::new(&initializer, &shape.layout(split), weights_key);
        let (tree, heap) = levels.tree();
        let means = levels.node_weights(&node_shape, &tree, &heap);
        let spec = VartSpec {
            added: tree.clone(),
            first: tree,
            n_added: 0,
            shape: node_shape,
            // all levels of a mixture mix, also those that structure moves add
            mixing_levels: if is_mixture {
                MAX_DEPTH
            } else {
                shape.mixing_levels
            },
            likelihood: split.scale.likelihood,
            beta: config.beta,
        };
        Self {
            posterior: initial_posterior(config, &spec.shape, means, key.child(streams::FACTORS))
                .with_blocks(spec.block_ends()),
            logits: vec![params.initial_logit(); spec.n_logits()],
            spec,
        }
    }

    /// This sum with one more tree, which begins at the residuals (rows x outputs).
    pub(super) fn with_added_tree(
        mut self,
        params: &VartParams,
        config: &SoftTreeConfig,
        split: &EncodedSplit,
        residuals: &[f64],
        key: Key,
    ) -> Self {
        let initial_logit = params.initial_logit();
        let depth = ADDED_DEPTH.min(params.max_depth);
        let leaf = self.spec.shape.leaf;
        let layout = Layout {
            n_inputs: leaf.n_inputs,
            depth,
            mixing_levels: 0,
            n_channels: leaf.n_channels,
            is_linear: leaf.is_linear,
        };
        let initializer = WeightInitializer {
            train: &split.train,
            likelihood: split.scale.likelihood,
            residuals: Some(residuals),
            beta: config.beta,
        };
        let levels = InitialLevels::new(&initializer, &layout, key.child(streams::WEIGHTS));
        // all added trees have the same structure, so that one matrix product evaluates them
        let (tree, heap) = StoppingTree::of_heap(|node| node < layout.n_gates());
        let means = levels.node_weights(&self.spec.shape, &tree, &heap);
        let factors = key.child(streams::FACTORS);
        let added = initial_posterior(config, &self.spec.shape, means, factors);
        self.posterior = LowRank::concatenated(&[self.posterior, added]);
        self.logits.extend(vec![initial_logit; tree.n_splits()]);
        self.spec.added = tree;
        self.spec.n_added += 1;
        self.posterior.block_ends = self.spec.block_ends();
        self
    }
}

/// A narrow posterior with these means. The low-rank part has at most as many columns as the largest
/// block has weights.
fn initial_posterior(
    config: &SoftTreeConfig,
    shape: &NodeShape,
    means: Vec<f32>,
    key: Key,
) -> LowRank {
    let rank = config.rank.min(shape.largest_block());
    LowRank::initial(means, rank, config.prior_scale, key)
}

fn node_shape(params: &VartParams, split: &EncodedSplit, leaf: Leaf) -> NodeShape {
    let scale = params.scale_model.unwrap_or(leaf);
    let is_normal = split.scale.target_sd().is_some();
    NodeShape {
        leaf: LeafShape {
            n_inputs: split.encoder.n_inputs(),
            n_channels: split.scale.n_channels,
            is_linear: leaf == Leaf::Linear,
        },
        has_constant_scale: is_normal && scale == Leaf::Constant,
    }
}

/// Weights of complete trees of every depth: the leaves of the tree of depth `k` are the nodes of
/// level `k`.
struct InitialLevels {
    layouts: Vec<Layout>,
    weights: Vec<Vec<f32>>,
    /// Whether the hard tree splits at each gate of the deepest tree.
    splits: Vec<bool>,
}

impl InitialLevels {
    fn new(initializer: &WeightInitializer<'_>, deepest: &Layout, key: Key) -> Self {
        let mut levels = Self {
            layouts: Vec::new(),
            weights: Vec::new(),
            splits: Vec::new(),
        };
        for depth in 0..=deepest.depth {
            let layout = Layout {
                depth,
                mixing_levels: 0,
                ..*deepest
            };
            let (weights, splits) = initializer.weights_and_splits(&layout, key);
            levels.layouts.push(layout);
            levels.weights.push(weights);
            levels.splits = splits;
        }
        levels
    }

    /// The tree in which the nodes that the hard tree splits may split, and the heap index of each
    /// node.
    fn tree(&self) -> (StoppingTree, Vec<usize>) {
        StoppingTree::of_heap(|node| self.splits.get(node).copied().unwrap_or(false))
    }

    /// Weights of the rules and leaves of a tree.
    fn node_weights(&self, shape: &NodeShape, tree: &StoppingTree, heap: &[usize]) -> Vec<f32> {
        let mut out = vec![0.0; shape.n_weights(tree)];
        let (deepest, gates) = (self.layouts.last(), self.weights.last());
        for (node, &heap_index) in heap.iter().enumerate() {
            if let (Some(deepest), Some(gates), true) = (deepest, gates, node < tree.n_splits()) {
                out[shape.rule(node)].copy_from_slice(&gates[deepest.gate(heap_index)]);
            }
            let level = (heap_index + 1).ilog2() as usize;
            let (layout, weights) = (&self.layouts[level], &self.weights[level]);
            let leaf = heap_index + 1 - (1 << level);
            let range = shape.leaf(tree, node);
            for channel in 0..layout.n_channels {
                let from = &weights[layout.leaf(channel, leaf)];
                let to = &mut out[range.clone()][shape.channel(channel)];
                to.copy_from_slice(&from[from.len() - to.len()..]);
            }
        }
        out
    }
}
