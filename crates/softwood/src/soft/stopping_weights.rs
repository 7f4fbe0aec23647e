//! Positions of the weights of a tree whose nodes may stop, node by node, and their translation to
//! and from the weights of the kernels.
//!
//! The rules of the nodes that may split come first, then the leaves of all nodes. A rule and a leaf
//! are each contiguous: the blocks of a posterior.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::numerics::real::Real;
use crate::soft::general_layout::{GeneralLayout, LeafShape};
use crate::soft::layout::TreeLayout;
use crate::soft::stopping_tree::StoppingTree;

/// Kinds of weights of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeShape {
    pub(crate) leaf: LeafShape,
    /// Whether the last channel, the noise scale, is a constant in each leaf although the other
    /// channels are linear.
    pub(crate) has_constant_scale: bool,
}

impl NodeShape {
    /// Number of weights of a rule.
    pub(crate) fn rule_size(&self) -> usize {
        self.leaf.n_inputs + 1
    }

    /// Number of weights of one channel of a leaf.
    fn channel_size(&self, channel: usize) -> usize {
        let is_constant_scale = self.has_constant_scale && channel + 1 == self.leaf.n_channels;
        if self.leaf.is_linear && !is_constant_scale {
            self.leaf.n_inputs + 1
        } else {
            1
        }
    }

    /// Range of the weights of a channel in those of a leaf; the bias is the last.
    pub(crate) fn channel(&self, channel: usize) -> Range<usize> {
        // only the last channel may have another size
        let start = if channel == 0 {
            0
        } else {
            channel * self.channel_size(0)
        };
        start..start + self.channel_size(channel)
    }

    /// Number of weights of a leaf.
    pub(crate) fn leaf_size(&self) -> usize {
        self.channel(self.leaf.n_channels - 1).end
    }

    /// Number of weights of the largest rule or leaf.
    pub(crate) fn largest_block(&self) -> usize {
        self.rule_size().max(self.leaf_size())
    }

    /// Number of weights of a tree.
    pub(crate) fn n_weights(&self, tree: &StoppingTree) -> usize {
        tree.n_splits() * self.rule_size() + tree.n_nodes() * self.leaf_size()
    }

    /// Range of the weights of the rule of a node that may split.
    pub(crate) fn rule(&self, node: usize) -> Range<usize> {
        node * self.rule_size()..(node + 1) * self.rule_size()
    }

    /// Range of the weights of the leaf of a node.
    pub(crate) fn leaf(&self, tree: &StoppingTree, node: usize) -> Range<usize> {
        let start = tree.n_splits() * self.rule_size() + node * self.leaf_size();
        start..start + self.leaf_size()
    }

    /// Ends of the rules and the leaves of a tree.
    pub(crate) fn block_ends(&self, tree: &StoppingTree) -> Vec<usize> {
        let rules = (0..tree.n_splits()).map(|node| self.rule(node).end);
        let leaves = (0..tree.n_nodes()).map(|node| self.leaf(tree, node).end);
        rules.chain(leaves).collect()
    }
}

/// The part of a tree that the kernels evaluate: some of its nodes may not split, and their
/// subtrees are left out.
#[derive(Debug, Clone)]
pub(crate) struct ActivePart {
    pub(crate) shape: NodeShape,
    /// The whole tree.
    pub(crate) whole: StoppingTree,
    /// Layout of the active part.
    pub(crate) layout: GeneralLayout,
    /// Index in the whole tree of each node of the active part; nodes that may split come first.
    pub(crate) nodes: Vec<usize>,
}

impl ActivePart {
    /// The active part in which the nodes with `keeps` may split.
    pub(crate) fn new(
        whole: &StoppingTree,
        shape: NodeShape,
        mixing_levels: usize,
        keeps: impl Fn(usize) -> bool,
    ) -> Self {
        let (tree, nodes) = whole.restricted(keeps);
        Self {
            layout: tree.layout(mixing_levels, shape.leaf),
            whole: whole.clone(),
            shape,
            nodes,
        }
    }

    fn n_splits(&self) -> usize {
        (self.nodes.len() - 1) / 2
    }

    /// Writes the weights of the kernels from the weights of the whole tree. `stop_logits` has the
    /// logit of the split indicator of every node of the whole tree that may split, divided by the
    /// inverse temperature of the gates.
    pub(crate) fn expand<T: Real>(&self, weights: &[T], stop_logits: &[T], out: &mut [T]) {
        let (layout, shape) = (&self.layout, &self.shape);
        for (at, &node) in self.nodes[..self.n_splits()].iter().enumerate() {
            let stop = &mut out[layout.gate(2 * at)];
            let bias = stop.len() - 1;
            stop.fill(T::ZERO);
            stop[bias] = stop_logits[node];
            out[layout.gate(2 * at + 1)].copy_from_slice(&weights[shape.rule(node)]);
        }
        for channel in 0..layout.n_channels() {
            let from = shape.channel(channel);
            for (at, &node) in self.nodes.iter().enumerate() {
                let leaf = &weights[shape.leaf(&self.whole, node)][from.clone()];
                let out = &mut out[layout.leaf(channel, at)];
                let n_missing = out.len() - leaf.len();
                out[..n_missing].fill(T::ZERO);
                out[n_missing..].copy_from_slice(leaf);
            }
        }
    }

    /// Writes the gradient of the weights of the whole tree from that of the weights of the kernels;
    /// it is zero outside the active part. Adds the gradient of the stop logits.
    pub(crate) fn collect<T: Real>(
        &self,
        kernel_gradient: &[T],
        gradient: &mut [T],
        stop_gradient: &mut [T],
    ) {
        let (layout, shape) = (&self.layout, &self.shape);
        gradient.fill(T::ZERO);
        for (at, &node) in self.nodes[..self.n_splits()].iter().enumerate() {
            let stop = kernel_gradient[layout.gate(2 * at).end - 1];
            stop_gradient[node] += stop;
            let rule = &kernel_gradient[layout.gate(2 * at + 1)];
            gradient[shape.rule(node)].copy_from_slice(rule);
        }
        for channel in 0..layout.n_channels() {
            let to = shape.channel(channel);
            for (at, &node) in self.nodes.iter().enumerate() {
                let leaf = &kernel_gradient[layout.leaf(channel, at)];
                let out = &mut gradient[shape.leaf(&self.whole, node)][to.clone()];
                out.copy_from_slice(&leaf[leaf.len() - out.len()..]);
            }
        }
    }
}
