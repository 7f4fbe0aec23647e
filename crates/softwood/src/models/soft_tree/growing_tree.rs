//! A soft tree while it grows: nodes in an arena, and their outputs on the training and validation
//! rows.

use std::ops::Range;

use crate::numerics::gemm::{Matrix, product_transposed};
use crate::numerics::real::sigmoid;
use crate::soft::general_layout::{GeneralLayout, LeafShape};
use crate::soft::layout::TreeLayout;
use crate::stop::until_cancelled;
use crate::variational::encoded_rows::EncodedRows;

/// Number of rows that are evaluated at once.
const BLOCK: usize = 256;

/// A node of a growing tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GrowingNode {
    /// A gate: the row goes right with probability `sigmoid(weights . x)`.
    Gate {
        /// One weight per input, the bias last.
        weights: Vec<f32>,
        /// Left and right child.
        children: [usize; 2],
    },
    /// A leaf: channel by channel the weights of a linear function, or a constant.
    Leaf(Vec<f32>),
}

/// The weights of a new split: its gate and its left and right leaf.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SplitWeights {
    pub(super) gate: Vec<f32>,
    pub(super) leaves: [Vec<f32>; 2],
}

impl SplitWeights {
    /// From the weights of a tree with one gate.
    pub(super) fn from_flat(layout: &impl TreeLayout, weights: &[f32]) -> Self {
        let leaf = |leaf: usize| {
            let channels = (0..layout.n_channels()).map(|channel| layout.leaf(channel, leaf));
            channels
                .flat_map(|range| weights[range].iter().copied())
                .collect()
        };
        Self {
            gate: weights[layout.gate(0)].to_vec(),
            leaves: [leaf(0), leaf(1)],
        }
    }

    /// The weights of a tree with one gate.
    pub(super) fn to_flat(&self, layout: &impl TreeLayout) -> Vec<f32> {
        let mut weights = vec![0.0; layout.n_weights()];
        weights[layout.gate(0)].copy_from_slice(&self.gate);
        for (leaf, values) in self.leaves.iter().enumerate() {
            for (channel, values) in values.chunks_exact(layout.leaf_width()).enumerate() {
                weights[layout.leaf(channel, leaf)].copy_from_slice(values);
            }
        }
        weights
    }
}

/// A growing tree; node 0 is the root. Nodes that were cut off stay in the arena.
#[derive(Debug, Clone)]
pub(super) struct GrowingTree {
    pub(super) shape: LeafShape,
    nodes: Vec<GrowingNode>,
}

/// Output of a tree and reach of its leaves on some rows.
#[derive(Debug, Clone)]
pub(super) struct TreeOutput {
    /// Channels of the root: rows x channels.
    pub(super) root: Vec<f32>,
    /// Leaves of the tree, in the order of its layout.
    leaves: Vec<usize>,
    /// Probability that a row reaches each leaf: leaves x rows.
    reach: Vec<f32>,
    /// Channels of the leaves: leaves x rows x channels.
    channels: Vec<f32>,
    n_channels: usize,
}

impl TreeOutput {
    pub(super) fn n_rows(&self) -> usize {
        self.root.len() / self.n_channels
    }

    /// Reach of every leaf for each row, in the order of the layout.
    pub(super) fn reaches(&self) -> impl Iterator<Item = &[f32]> {
        self.reach.chunks_exact(self.n_rows().max(1))
    }

    fn position(&self, leaf: usize) -> usize {
        let found = self.leaves.iter().position(|&node| node == leaf);
        found.expect("the leaf belongs to the tree that was evaluated")
    }

    /// Reach of a leaf for each row.
    pub(super) fn reach(&self, leaf: usize) -> &[f32] {
        let n_rows = self.n_rows();
        let at = self.position(leaf);
        &self.reach[at * n_rows..(at + 1) * n_rows]
    }

    /// The rows as training rows of a subtree that replaces a leaf: for each row the log weight of
    /// the only component (0), the output of the rest of the tree, and the reach of the leaf.
    pub(super) fn offset_at(&self, leaf: usize) -> Vec<f32> {
        let (n_rows, n_channels) = (self.n_rows(), self.n_channels);
        let at = self.position(leaf);
        let channels = &self.channels[at * n_rows * n_channels..];
        let mut offset = Vec::with_capacity(n_rows * (n_channels + 2));
        for (row, &reach) in self.reach(leaf).iter().enumerate() {
            let range = row * n_channels..(row + 1) * n_channels;
            offset.push(0.0);
            let pairs = self.root[range.clone()].iter().zip(&channels[range]);
            offset.extend(pairs.map(|(root, own)| root - reach * own));
            offset.push(reach);
        }
        offset
    }
}

impl GrowingTree {
    /// A tree that is one leaf.
    pub(super) fn of_leaf(shape: LeafShape, values: Vec<f32>) -> Self {
        Self {
            shape,
            nodes: vec![GrowingNode::Leaf(values)],
        }
    }

    /// Values of a leaf; empty for a gate.
    pub(super) fn leaf_values(&self, node: usize) -> &[f32] {
        match &self.nodes[node] {
            GrowingNode::Leaf(values) => values,
            GrowingNode::Gate { .. } => &[],
        }
    }

    pub(super) fn children(&self, node: usize) -> Option<[usize; 2]> {
        match &self.nodes[node] {
            GrowingNode::Leaf(_) => None,
            GrowingNode::Gate { children, .. } => Some(*children),
        }
    }

    /// Number of weights of a leaf and channel.
    pub(super) fn leaf_width(&self) -> usize {
        if self.shape.is_linear {
            self.shape.n_inputs + 1
        } else {
            1
        }
    }

    /// Splits a leaf; returns the two new leaves.
    pub(super) fn split(&mut self, leaf: usize, weights: SplitWeights) -> [usize; 2] {
        let children = [self.nodes.len(), self.nodes.len() + 1];
        let SplitWeights { gate, leaves } = weights;
        self.nodes.extend(leaves.map(GrowingNode::Leaf));
        self.nodes[leaf] = GrowingNode::Gate {
            weights: gate,
            children,
        };
        children
    }

    /// Replaces a subtree by a leaf.
    pub(super) fn cut(&mut self, node: usize, values: Vec<f32>) {
        self.nodes[node] = GrowingNode::Leaf(values);
    }

    /// Gates in the order of the layout: parents before their children, level by level.
    pub(super) fn gates(&self) -> Vec<usize> {
        let mut gates = Vec::new();
        let mut level = vec![0];
        while !level.is_empty() {
            let below: Vec<usize> = (level.iter())
                .filter_map(|&node| self.children(node))
                .flatten()
                .collect();
            gates.extend(level.iter().filter(|&&node| self.children(node).is_some()));
            level = below;
        }
        gates
    }

    /// Leaves in the order of the layout, from left to right.
    pub(super) fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        let mut stack = vec![0];
        while let Some(node) = stack.pop() {
            match self.children(node) {
                Some([left, right]) => stack.extend([right, left]),
                None => leaves.push(node),
            }
        }
        leaves
    }

    /// Number of gates above a node.
    pub(super) fn depth_of(&self, node: usize) -> usize {
        let mut depth_of = vec![0; self.nodes.len()];
        for gate in self.gates() {
            if let Some(children) = self.children(gate) {
                for child in children {
                    depth_of[child] = depth_of[gate] + 1;
                }
            }
        }
        depth_of[node]
    }

    /// The layout of the tree.
    pub(super) fn layout(&self) -> GeneralLayout {
        let (gates, leaves) = (self.gates(), self.leaves());
        let mut position = vec![0; self.nodes.len()];
        for (at, &node) in gates.iter().chain(&leaves).enumerate() {
            position[node] = at;
        }
        let children = gates.iter().filter_map(|&gate| self.children(gate));
        let children = children.map(|pair| pair.map(|child| position[child]));
        GeneralLayout::new(children.collect(), 0, self.shape)
    }

    /// The weights in the order of a layout of this tree.
    pub(super) fn weights(&self, layout: &GeneralLayout) -> Vec<f32> {
        let mut out = vec![0.0; layout.n_weights()];
        for (at, gate) in self.gates().into_iter().enumerate() {
            if let GrowingNode::Gate { weights, .. } = &self.nodes[gate] {
                out[layout.gate(at)].copy_from_slice(weights);
            }
        }
        for (at, leaf) in self.leaves().into_iter().enumerate() {
            let channels = self.leaf_values(leaf).chunks_exact(self.leaf_width());
            for (channel, values) in channels.enumerate() {
                out[layout.leaf(channel, at)].copy_from_slice(values);
            }
        }
        out
    }

    /// Replaces the weights by others in the order of a layout of this tree.
    pub(super) fn set_weights(&mut self, layout: &GeneralLayout, values: &[f32]) {
        for (at, gate) in self.gates().into_iter().enumerate() {
            if let GrowingNode::Gate { weights, .. } = &mut self.nodes[gate] {
                weights.copy_from_slice(&values[layout.gate(at)]);
            }
        }
        let n_channels = self.shape.n_channels;
        for (at, leaf) in self.leaves().into_iter().enumerate() {
            let channels = (0..n_channels).map(|channel| layout.leaf(channel, at));
            let leaf_values = channels.flat_map(|range| values[range].iter().copied());
            self.nodes[leaf] = GrowingNode::Leaf(leaf_values.collect());
        }
    }

    /// Output and reach of the leaves on these rows.
    pub(super) fn evaluate(&self, rows: &EncodedRows) -> TreeOutput {
        let layout = self.layout();
        TreeOutput {
            leaves: self.leaves(),
            ..evaluate(&layout, &self.weights(&layout), rows)
        }
    }

    /// Output of the root on these rows: rows x channels.
    pub(super) fn root_output(&self, rows: &EncodedRows) -> Vec<f32> {
        let layout = self.layout();
        evaluate_nodes(&layout, &self.weights(&layout), rows, false).root
    }
}

/// Output and reach of the leaves of a tree on these rows; leaves have their number in the layout.
pub(super) fn evaluate(layout: &GeneralLayout, weights: &[f32], rows: &EncodedRows) -> TreeOutput {
    evaluate_nodes(layout, weights, rows, true)
}

/// Output of the root and, unless `keeps_leaves` is false, reach and channels of the leaves.
fn evaluate_nodes(
    layout: &GeneralLayout,
    weights: &[f32],
    rows: &EncodedRows,
    keeps_leaves: bool,
) -> TreeOutput {
    let (n_rows, n_channels) = (rows.n_rows(), layout.n_channels());
    let n_leaves = layout.n_leaves();
    let n_kept = if keeps_leaves { n_leaves * n_rows } else { 0 };
    let mut out = TreeOutput {
        root: vec![0.0; n_rows * n_channels],
        leaves: (0..n_leaves).collect(),
        reach: vec![0.0; n_kept],
        channels: vec![0.0; n_kept * n_channels],
        n_channels,
    };
    let width = layout.width();
    let mut activations = vec![0.0; layout.n_activations() * BLOCK];
    let mut reach = vec![1.0; layout.n_nodes()];
    for start in until_cancelled((0..n_rows).step_by(BLOCK)) {
        let block = start..(start + BLOCK).min(n_rows);
        activate(
            layout,
            weights,
            &rows.inputs[block.start * width..block.end * width],
            &mut activations,
        );
        for row in block.clone() {
            out.fill_row(layout, &activations, row, &block, &mut reach);
        }
    }
    out
}

/// Activations of some rows: activations x rows.
fn activate(layout: &GeneralLayout, weights: &[f32], inputs: &[f32], out: &mut [f32]) {
    let width = layout.width();
    let n_rows = inputs.len() / width;
    let n_products = layout.n_products();
    let (products, constants) = weights.split_at(n_products * width);
    let (product_out, constant_out) = out.split_at_mut(n_products * n_rows);
    product_transposed(
        product_out,
        Matrix::new(products, n_products, width),
        Matrix::new(inputs, n_rows, width),
    );
    for (row, &constant) in constant_out.chunks_exact_mut(n_rows).zip(constants) {
        row.fill(constant);
    }
}

impl TreeOutput {
    /// Writes one row from the activations of the rows of a block. `reach` is a buffer with one
    /// value per node, the first of which is 1.
    fn fill_row(
        &mut self,
        layout: &GeneralLayout,
        activations: &[f32],
        row: usize,
        block: &Range<usize>,
        reach: &mut [f32],
    ) {
        let (n_rows, n_channels) = (self.n_rows(), self.n_channels);
        let value = |activation: usize| activations[activation * block.len() + row - block.start];
        let (n_gates, n_leaves) = (layout.n_gates(), layout.n_leaves());
        for gate in 0..n_gates {
            let right = reach[gate] * sigmoid(value(gate));
            let [left_child, right_child] = layout.children(gate);
            reach[right_child] = right;
            reach[left_child] = reach[gate] - right;
        }
        for leaf in 0..n_leaves {
            let reach = reach[n_gates + leaf];
            if let Some(kept) = self.reach.get_mut(leaf * n_rows + row) {
                *kept = reach;
            }
            for channel in 0..n_channels {
                let own = value(n_gates + channel * n_leaves + leaf);
                let at = (leaf * n_rows + row) * n_channels + channel;
                if let Some(kept) = self.channels.get_mut(at) {
                    *kept = own;
                }
                self.root[row * n_channels + channel] += reach * own;
            }
        }
    }
}
