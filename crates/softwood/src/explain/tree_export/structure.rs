//! The posterior over the structure of a tree, for users.

use serde::Serialize;

/// Posterior probabilities of the depth, the number of leaves and the splits of a tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StructurePosterior {
    /// Number of fits that depth and number of leaves are averaged over.
    pub n_fits: usize,
    /// Probability of each depth, from 0 on.
    pub depth: Vec<f64>,
    /// Probability of each number of leaves, from 1 on.
    pub n_leaves: Vec<f64>,
    /// The nodes of the tree of the first fit, by depth, then from left to right.
    pub nodes: Vec<NodeProbability>,
}

/// A node that may exist and may split.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NodeProbability {
    /// Number of the node: 1 for the root, `2 i` and `2 i + 1` for the children of node `i`.
    pub node: usize,
    /// Depth of the node; 0 for the root.
    pub depth: usize,
    /// Probability that the node exists.
    pub exists: f64,
    /// Probability that the node splits if it exists.
    pub splits: f64,
}

impl StructurePosterior {
    /// A posterior of these probabilities.
    pub(crate) fn new(
        n_fits: usize,
        depth: Vec<f64>,
        n_leaves: Vec<f64>,
        nodes: Vec<NodeProbability>,
    ) -> Self {
        Self {
            n_fits,
            depth,
            n_leaves,
            nodes,
        }
    }

    /// Mean number of leaves.
    pub fn mean_leaves(&self) -> f64 {
        let terms = self.n_leaves.iter().enumerate();
        terms.map(|(at, p)| (at + 1) as f64 * p).sum()
    }
}

impl NodeProbability {
    /// A node with these probabilities; `node` counts from 1.
    pub(crate) fn new(node: usize, exists: f64, splits: f64) -> Self {
        Self {
            node,
            depth: node.ilog2() as usize,
            exists,
            splits,
        }
    }
}
