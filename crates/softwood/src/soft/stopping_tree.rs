//! A soft tree whose nodes may stop: node `i` is a leaf with probability `1 - s_i`, and splits with
//! probability `s_i`, the split indicator. Every node has a leaf of its own.
//!
//! To the kernels such a tree is an ordinary soft tree with two gates per node that may split: a
//! *stop gate*, whose activation is the logit of `s_i` and does not depend on the inputs, and the
//! gate of the split. With reach `W`, `omega_i = W_i (1 - s_i)` is the weight of the leaf of node
//! `i`; the weights sum to one for any indicators between 0 and 1.

use serde::{Deserialize, Serialize};

use crate::soft::general_layout::{GeneralLayout, LeafShape};

/// Maximum depth of a tree.
pub(crate) const MAX_DEPTH: usize = 10;

/// The nodes of a tree: those that may split come first, in breadth-first order, then those that
/// may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<[usize; 2]>", into = "Vec<[usize; 2]>")]
pub(crate) struct StoppingTree {
    /// Left and right child of each node that may split.
    children: Vec<[usize; 2]>,
    /// Depth of each node.
    depths: Vec<usize>,
}

impl From<StoppingTree> for Vec<[usize; 2]> {
    fn from(tree: StoppingTree) -> Self {
        tree.children
    }
}

impl TryFrom<Vec<[usize; 2]>> for StoppingTree {
    type Error = String;

    fn try_from(children: Vec<[usize; 2]>) -> Result<Self, String> {
        let n_splits = children.len();
        if n_splits >= 1 << MAX_DEPTH {
            return Err(format!("{n_splits} nodes may split"));
        }
        let n_nodes = 2 * n_splits + 1;
        let mut depths = vec![usize::MAX; n_nodes];
        depths[0] = 0;
        for (node, children) in children.iter().enumerate() {
            let is_ordered = node == 0 || depths[node] >= depths[node - 1];
            if depths[node] >= MAX_DEPTH || !is_ordered {
                return Err(format!("node {node} may not split"));
            }
            for &child in children {
                if child <= node || child >= n_nodes || depths[child] != usize::MAX {
                    return Err(format!("node {node} cannot have the child {child}"));
                }
                depths[child] = depths[node] + 1;
            }
        }
        // 2 n distinct children of n nodes are all nodes but the root
        Ok(Self { children, depths })
    }
}

impl StoppingTree {
    /// The tree in which the nodes of a binary heap with `may_split` may split; a node below one
    /// that may not split does not exist. Also returns the heap index of each node.
    pub(crate) fn of_heap(may_split: impl Fn(usize) -> bool) -> (Self, Vec<usize>) {
        let (mut splits, mut leaves) = (Vec::new(), Vec::new());
        let mut level = vec![0];
        while !level.is_empty() {
            let mut next = Vec::new();
            for node in level {
                if may_split(node) {
                    splits.push(node);
                    next.extend([2 * node + 1, 2 * node + 2]);
                } else {
                    leaves.push(node);
                }
            }
            level = next;
        }
        let nodes = [splits.clone(), leaves].concat();
        let at = |heap: usize| {
            let found = nodes.iter().position(|&node| node == heap);
            found.expect("both children of a split are nodes")
        };
        let children = splits
            .iter()
            .map(|&node| [at(2 * node + 1), at(2 * node + 2)]);
        (Self::new(children.collect()), nodes)
    }

    /// A tree of these children.
    ///
    /// # Panics
    /// When they are not a tree in breadth-first order.
    pub(crate) fn new(children: Vec<[usize; 2]>) -> Self {
        Self::try_from(children).expect("the children are a tree in breadth-first order")
    }

    /// Number of nodes that may split.
    pub(crate) fn n_splits(&self) -> usize {
        self.children.len()
    }

    /// Number of nodes.
    pub(crate) fn n_nodes(&self) -> usize {
        2 * self.children.len() + 1
    }

    /// Children of a node that may split.
    pub(crate) fn children(&self, node: usize) -> [usize; 2] {
        self.children[node]
    }

    /// Depth of a node.
    pub(crate) fn depth(&self, node: usize) -> usize {
        self.depths[node]
    }

    /// Index in a binary heap of each node.
    pub(crate) fn heap_indices(&self) -> Vec<usize> {
        let mut heap = vec![0; self.n_nodes()];
        for (node, &[left, right]) in self.children.iter().enumerate() {
            heap[left] = 2 * heap[node] + 1;
            heap[right] = 2 * heap[node] + 2;
        }
        heap
    }

    /// The tree in which only some of the nodes may still split: those with `keeps` whose ancestors
    /// have it too. Also returns the former index of each node.
    pub(crate) fn restricted(&self, keeps: impl Fn(usize) -> bool) -> (Self, Vec<usize>) {
        let (mut splits, mut leaves) = (Vec::new(), Vec::new());
        let mut is_reached = vec![false; self.n_nodes()];
        is_reached[0] = true;
        for node in 0..self.n_nodes() {
            if !is_reached[node] {
                continue;
            }
            if node < self.n_splits() && keeps(node) {
                splits.push(node);
                for child in self.children[node] {
                    is_reached[child] = true;
                }
            } else {
                leaves.push(node);
            }
        }
        let nodes = [splits, leaves].concat();
        let mut new_index = vec![usize::MAX; self.n_nodes()];
        for (at, &node) in nodes.iter().enumerate() {
            new_index[node] = at;
        }
        let n_splits = (nodes.len() - 1) / 2;
        let children = nodes[..n_splits].iter().map(|&node| {
            let [left, right] = self.children[node];
            [new_index[left], new_index[right]]
        });
        (Self::new(children.collect()), nodes)
    }

    /// The tree as the kernels see it. Gate `2 i` is the stop gate of node `i`, gate `2 i + 1` its
    /// split, and leaf `j` is the leaf of node `j`. The gates of the first `mixing_levels` levels
    /// choose a component.
    pub(crate) fn layout(&self, mixing_levels: usize, leaf: LeafShape) -> GeneralLayout {
        let n_gates = 2 * self.n_splits();
        let first_gate = |node: usize| {
            if node < self.n_splits() {
                2 * node
            } else {
                n_gates + node
            }
        };
        let mut children = Vec::with_capacity(n_gates);
        for (node, &[left, right]) in self.children.iter().enumerate() {
            children.push([n_gates + node, 2 * node + 1]);
            children.push([first_gate(left), first_gate(right)]);
        }
        let n_mixing = (0..self.n_splits())
            .take_while(|&node| self.depths[node] < mixing_levels)
            .count();
        GeneralLayout::new(children, 2 * n_mixing, leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soft::layout::TreeLayout;

    /// Nodes 0, 1, 2 and 4 of a heap may split.
    fn example() -> (StoppingTree, Vec<usize>) {
        StoppingTree::of_heap(|node| [0, 1, 2, 4].contains(&node))
    }

    #[test]
    fn nodes_that_may_split_come_first_in_breadth_first_order() {
        let (tree, heap) = example();
        assert_eq!(heap, [0, 1, 2, 4, 3, 5, 6, 9, 10]);
        assert_eq!(tree.heap_indices(), heap);
        assert_eq!(tree.children(1), [4, 3]);
        assert_eq!((tree.depth(3), tree.depth(8)), (2, 3));
    }

    #[test]
    fn a_restricted_tree_loses_the_subtrees_of_nodes_that_do_not_split() {
        let (tree, _) = example();
        let (restricted, nodes) = tree.restricted(|node| node != 1);
        assert_eq!(nodes, [0, 2, 1, 5, 6]);
        assert_eq!(restricted.children(1), [3, 4]);
        let (root, nodes) = tree.restricted(|_| false);
        assert_eq!((root.n_nodes(), nodes), (1, vec![0]));
    }

    #[test]
    fn kernels_see_a_stop_gate_before_every_split() {
        let (tree, _) = example();
        let shape = LeafShape {
            n_inputs: 2,
            n_channels: 1,
            is_linear: true,
        };
        let layout = tree.layout(1, shape);
        assert_eq!((layout.n_gates(), layout.n_leaves()), (8, 9));
        assert_eq!(layout.n_mixing_gates(), 2);
        // the root stops in its own leaf, or splits into its children
        assert_eq!(layout.children(0), [8, 1]);
        assert_eq!(layout.children(1), [2, 4]);
        // a child that may not split is a leaf
        assert_eq!(layout.children(3), [8 + 4, 6]);
    }

    #[test]
    fn children_that_are_not_a_tree_are_refused() {
        for children in [vec![[1, 1]], vec![[1, 3]], vec![[2, 1], [0, 3]]] {
            assert!(StoppingTree::try_from(children).is_err());
        }
    }
}
