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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::table::Table;
    use crate::recurrent::bin_inputs::BinnedRows;
    use crate::rng::Key;
    use crate::trees::cart::CartTarget;

    /// Numbers with missing cells, categories with missing cells, and a column of two values.
    fn table(n: usize) -> Table {
        let draws = Key::from_seed(8).uniforms(3 * n);
        let number = |row: usize| {
            if row.is_multiple_of(7) {
                f64::NAN
            } else {
                draws[row]
            }
        };
        let category = |row: usize| match (3.5 * draws[n + row]) as usize {
            0 => Some("ash"),
            1 => Some("elm"),
            2 => Some("oak"),
            _ => None,
        };
        let categories: Vec<_> = (0..n).map(category).collect();
        Table::new(vec![
            Column::numeric("a", (0..n).map(number).collect()),
            Column::categorical("b", &categories),
            Column::numeric("c", draws[2 * n..].iter().map(|u| u.round()).collect()),
        ])
        .unwrap()
    }

    #[test]
    fn the_tree_routes_every_row_as_the_network_does() {
        let n = 300;
        let table = table(n);
        let (rows, ones): (Vec<u32>, Vec<f64>) = (0..n as u32).map(|row| (row, 1.0)).unzip();
        let cuts = Cuts::fit(&table, &rows, &ones, 255);
        let binned = cuts.bin_rows(&table, &rows);
        let weight = vec![1.0; n];
        let data = BinnedRows {
            cuts: &cuts,
            binned: &binned,
            weight: &weight,
            target: &weight,
            kind: CartTarget::Number,
        };
        let inputs = BinInputs::fit(&data, 8, 100);
        let shape = NetworkShape {
            n_inputs: inputs.len(),
            n_hidden: 8,
            depth: 4,
        };
        for seed in 0..200 {
            let weights = shape.random_weights(1.0, Key::from_seed(seed));
            let tree = HardTree::new(&shape, &weights, &inputs, &cuts);
            let (structure, leaves) = tree.structure(&binned, &rows);
            for row in 0..n {
                let leaf = structure.leaf(|column| binned.bin(row, column));
                assert_eq!(
                    leaves[leaf],
                    tree.leaf(&binned, row),
                    "seed {seed}, row {row}"
                );
            }
        }
    }
}
