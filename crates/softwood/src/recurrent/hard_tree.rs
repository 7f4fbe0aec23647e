//! The hard tree of a network on binned rows: routing through all of its nodes, and the tree of the
//! nodes that training rows reach.

use crate::data::binning::binned::{Binned, Cuts};
use crate::recurrent::bin_inputs::{BinInputs, BinSplit};
use crate::recurrent::network::NetworkShape;
use crate::recurrent::node_splits::node_splits;
use crate::trees::structure::TreeStructure;

/// The hard splits of all inner nodes; the children of node `i` are `2 i + 1` and `2 i + 2`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HardTree {
    pub(crate) splits: Vec<BinSplit>,
}

impl HardTree {
    pub(crate) fn new(
        shape: &NetworkShape,
        weights: &[f32],
        inputs: &BinInputs,
        cuts: &Cuts,
    ) -> Self {
        let splits = node_splits(shape, weights);
        let splits = splits.iter().map(|split| inputs.hard_split(split, cuts));
        Self {
            splits: splits.collect(),
        }
    }

    /// The leaf of a row, from 0 to the number of nodes.
    #[inline]
    pub(crate) fn leaf(&self, binned: &Binned, row: usize) -> usize {
        let mut node = 0;
        while let Some(split) = self.splits.get(node) {
            let bin = binned.bin(row, split.condition.column);
            node = 2 * node + 1 + usize::from(split.goes_right(bin));
        }
        node - self.splits.len()
    }

    /// The tree of the nodes that divide the given rows, and the leaf of the complete tree of each of
    /// its leaves. A node that sends all rows to one side is replaced by its child there.
    pub(crate) fn structure(&self, binned: &Binned, rows: &[u32]) -> (TreeStructure, Vec<usize>) {
        let mut builder = StructureBuilder {
            tree: self,
            binned,
            structure: Vec::new(),
        };
        let root = builder.add(0, rows);
        builder.finished(root)
    }
}

/// A child in the structure under construction.
#[derive(Debug, Clone, Copy)]
enum BuiltChild {
    /// Place of a node.
    Node(usize),
    /// Leaf of the complete tree.
    Leaf(usize),
}

/// A node of the structure: its split, and its children.
type BuiltNode = (usize, [BuiltChild; 2]);

struct StructureBuilder<'a> {
    tree: &'a HardTree,
    binned: &'a Binned,
    structure: Vec<BuiltNode>,
}

impl StructureBuilder<'_> {
    /// Adds the branch of a node.
    fn add(&mut self, node: usize, rows: &[u32]) -> BuiltChild {
        let Some(split) = self.tree.splits.get(node) else {
            return BuiltChild::Leaf(node - self.tree.splits.len());
        };
        let column = split.condition.column;
        let goes_right = |&&row: &&u32| split.goes_right(self.binned.bin(row as usize, column));
        let (right, left): (Vec<u32>, Vec<u32>) = rows.iter().partition(goes_right);
        if left.is_empty() || right.is_empty() {
            let child = 2 * node + 1 + usize::from(left.is_empty());
            return self.add(child, rows);
        }
        let place = self.structure.len();
        self.structure.push((node, [BuiltChild::Leaf(0); 2]));
        let children = [
            self.add(2 * node + 1, &left),
            self.add(2 * node + 2, &right),
        ];
        self.structure[place].1 = children;
        BuiltChild::Node(place)
    }

    /// The structure with the leaves numbered in the order of the nodes.
    fn finished(self, root: BuiltChild) -> (TreeStructure, Vec<usize>) {
        let mut leaves = Vec::new();
        if let BuiltChild::Leaf(leaf) = root {
            leaves.push(leaf);
        }
        let mut conditions = Vec::new();
        let mut children = Vec::new();
        for (node, [left, right]) in self.structure {
            let split = &self.tree.splits[node];
            let pair = if split.is_swapped {
                [right, left]
            } else {
                [left, right]
            };
            conditions.push(split.condition);
            children.push(pair.map(|child| match child {
                BuiltChild::Node(place) => place as i32,
                BuiltChild::Leaf(leaf) => {
                    leaves.push(leaf);
                    !(leaves.len() as i32 - 1)
                }
            }));
        }
        let structure = TreeStructure::General {
            conditions,
            children,
        };
        (structure, leaves)
    }
}
