//! The nodes of an export from the statistics of a fitted tree: order, weights and values.

use crate::data::schema::Schema;
use crate::data::target::TargetUnits;
use crate::explain::tree_export::{Condition, ExportNode, ExportSplit, LeafValue, TreeExport};
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::leaf_posterior::Smoothing;

/// A fitted tree without its conditions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FittedNodes<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) statistics: &'a NodeStatistics,
    pub(crate) units: TargetUnits,
    pub(crate) smoothing: &'a Smoothing,
}

/// The condition of a node in the terms of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeCondition {
    /// Name of the column of the condition.
    pub(crate) column: String,
    pub(crate) condition: Condition,
    pub(crate) missing_right: bool,
}

impl FittedNodes<'_> {
    /// Exports the tree; `condition` gives that of each inner node. Nodes are renumbered in
    /// preorder: a node, its left branch, its right branch.
    pub(crate) fn export(&self, condition: impl Fn(usize) -> NodeCondition) -> TreeExport {
        let tree = self.statistics;
        let losses = tree.losses();
        let order = preorder(&tree.children);
        let mut position = vec![0; tree.n_nodes()];
        for (at, &node) in order.iter().enumerate() {
            position[node] = at;
        }
        let nodes = order.iter().map(|&node| {
            let split = tree.children.get(node).map(|pair| {
                let NodeCondition {
                    column,
                    condition,
                    missing_right,
                } = condition(node);
                ExportSplit {
                    column,
                    question: condition,
                    missing_right,
                    gain: (losses[node] - losses[pair[0]] - losses[pair[1]]).max(0.0),
                    children: pair.map(|child| position[child]),
                }
            });
            let stats = tree.stats(node);
            ExportNode {
                weight: tree.kind.weight(stats),
                answer: self.value(stats),
                split,
                function: None,
            }
        });
        TreeExport {
            target: self.schema.target.clone(),
            classes: self.schema.classes().map(<[String]>::to_vec),
            nodes: nodes.collect(),
        }
    }

    /// Value that a node with these statistics would predict as a leaf.
    fn value(&self, stats: &[f64]) -> LeafValue {
        match self.statistics.kind {
            CartTarget::Number => LeafValue::Number {
                mean: self.units.shift + self.units.scale * stats[1],
                sd: self.units.scale * (stats[2] / stats[0]).sqrt(),
            },
            CartTarget::Classes(n) => LeafValue::Classes(
                (0..n)
                    .map(|class| self.smoothing.probability(stats, class))
                    .collect(),
            ),
        }
    }
}

fn preorder(children: &[[usize; 2]]) -> Vec<usize> {
    let mut order = Vec::with_capacity(2 * children.len() + 1);
    let mut stack = vec![0];
    while let Some(node) = stack.pop() {
        order.push(node);
        if let Some(&[left, right]) = children.get(node) {
            stack.extend([right, left]);
        }
    }
    order
}
