//! Reduced-error pruning: bottom-up, a branch becomes a leaf unless it has a smaller error on the
//! validation rows, by more than the standard error of the difference.

use crate::models::ldt::grow::GrownLdt;
use crate::models::ldt::oblique_tree::ObliqueTree;
use crate::models::ldt::rows::InputRows;
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;

/// Number of standard errors by which a branch must be better than a leaf.
const MIN_STANDARD_ERRORS: f64 = 1.0;
/// A branch that is better by exactly one standard error, such as one row of weight one, is pruned
/// in spite of rounding.
const ROUNDING: f64 = 1e-9;

/// A pruned tree and the statistics of its leaves.
#[derive(Debug)]
pub(super) struct PrunedTree {
    pub(super) tree: ObliqueTree,
    /// Leaves x statistics.
    pub(super) leaves: Vec<f64>,
}

impl PrunedTree {
    /// Adds rows to the statistics of their leaves.
    pub(super) fn add_rows(&mut self, rows: &InputRows) {
        let n_stats = rows.kind.n_stats();
        for row in 0..rows.n_rows() {
            let leaf = self.tree.leaf(rows.row(row));
            let stats = &mut self.leaves[leaf * n_stats..(leaf + 1) * n_stats];
            rows.kind.push(stats, rows.target[row], rows.weight[row]);
        }
    }
}

/// A full tree that is to be pruned.
#[derive(Debug)]
pub(super) struct Pruner<'a> {
    tree: &'a ObliqueTree,
    nodes: NodeStatistics,
    /// Parent of each node; 0 for the root.
    parent: Vec<usize>,
}

/// For each inner node whether it keeps its branch.
pub(super) type KeptNodes = Vec<bool>;

impl<'a> Pruner<'a> {
    pub(super) fn new(grown: &'a GrownLdt, kind: CartTarget) -> Self {
        let nodes = NodeStatistics::of_children(kind, &grown.tree.children, &grown.leaves);
        let mut parent = vec![0; nodes.n_nodes()];
        for (node, pair) in nodes.children.iter().enumerate() {
            for &child in pair {
                parent[child] = node;
            }
        }
        Self {
            tree: &grown.tree,
            nodes,
            parent,
        }
    }

    /// Statistics of a node.
    pub(super) fn stats(&self, node: usize) -> &[f64] {
        self.nodes.stats(node)
    }

    /// The root alone keeps its branch.
    pub(super) fn stump(&self) -> KeptNodes {
        let n_inner = self.nodes.children.len();
        (0..n_inner).map(|node| node == 0).collect()
    }

    /// The leaf of the full tree that each row is routed to, as a node.
    pub(super) fn full_leaves(&self, rows: &InputRows) -> Vec<usize> {
        let n_inner = self.nodes.children.len();
        (0..rows.n_rows())
            .map(|row| n_inner + self.tree.leaf(rows.row(row)))
            .collect()
    }

    /// The leaf of the pruned tree on the way to a leaf of the full tree.
    pub(super) fn pruned_leaf(&self, kept: &KeptNodes, full_leaf: usize) -> usize {
        let (mut leaf, mut node) = (full_leaf, full_leaf);
        while node > 0 {
            node = self.parent[node];
            if !kept[node] {
                leaf = node;
            }
        }
        leaf
    }

    /// Prunes on some rows, whose leaves in the full tree are given.
    pub(super) fn reduced_error(
        &self,
        validation: &InputRows,
        rows: impl Iterator<Item = usize>,
        full_leaves: &[usize],
    ) -> KeptNodes {
        let n_inner = self.nodes.children.len();
        let mut rows_of_node: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.n_nodes()];
        for row in rows {
            rows_of_node[full_leaves[row]].push(row as u32);
        }
        // error of each row in the pruned branch below the node that is visited
        let mut errors = vec![0.0; validation.n_rows()];
        let mut kept = vec![false; n_inner];
        // children stand after their parents
        for node in (0..self.nodes.n_nodes()).rev() {
            let rows = std::mem::take(&mut rows_of_node[node]);
            let as_leaf = self.errors_as_leaf(validation, node, &rows);
            if node < n_inner && is_better(validation, &rows, &errors, &as_leaf) {
                kept[node] = true;
            } else {
                for (&row, error) in rows.iter().zip(as_leaf) {
                    errors[row as usize] = error;
                }
            }
            if node > 0 {
                rows_of_node[self.parent[node]].extend(rows);
            }
        }
        kept
    }

    /// Error of each of `rows` if the node were a leaf: squared error, or 1 for a wrong class.
    fn errors_as_leaf(&self, validation: &InputRows, node: usize, rows: &[u32]) -> Vec<f64> {
        let stats = self.nodes.stats(node);
        let targets = rows.iter().map(|&row| validation.target[row as usize]);
        match self.nodes.kind {
            CartTarget::Number => targets
                .map(|target| (f64::from(target) - stats[1]).powi(2))
                .collect(),
            CartTarget::Classes(n) => {
                let most = (0..n).fold(0, |best, class| {
                    if stats[class] > stats[best] {
                        class
                    } else {
                        best
                    }
                });
                let is_wrong = |target: f32| target as usize != most;
                targets
                    .map(|target| f64::from(u8::from(is_wrong(target))))
                    .collect()
            }
        }
    }

    /// The tree with the inner nodes that are kept and whose ancestors are kept.
    pub(super) fn pruned(&self, kept: &KeptNodes) -> PrunedTree {
        let mut out = PrunedTree {
            tree: ObliqueTree::new(self.tree.n_inputs),
            leaves: Vec::new(),
        };
        let n_stats = self.nodes.kind.n_stats();
        let mut n_placed = usize::from(kept.first() == Some(&true));
        let mut is_placed = vec![false; kept.len()];
        is_placed
            .iter_mut()
            .take(n_placed)
            .for_each(|root| *root = true);
        if n_placed == 0 {
            out.leaves.extend_from_slice(self.stats(0));
        }
        // nodes keep their order, so that children stand after their parents
        for node in (0..kept.len()).filter(|&node| kept[node]) {
            if !is_placed[node] {
                continue;
            }
            out.tree.weights.extend_from_slice(self.tree.weights(node));
            out.tree.thresholds.push(self.tree.thresholds[node]);
            let pair = self.nodes.children[node].map(|child| {
                if kept.get(child) == Some(&true) {
                    is_placed[child] = true;
                    n_placed += 1;
                    return (n_placed - 1) as i32;
                }
                out.leaves.extend_from_slice(self.nodes.stats(child));
                !((out.leaves.len() / n_stats - 1) as i32)
            });
            out.tree.children.push(pair);
        }
        out
    }
}

/// Whether a branch has a smaller error than a leaf, by more than rounding and the standard error of
/// the difference.
fn is_better(validation: &InputRows, rows: &[u32], branch: &[f64], as_leaf: &[f64]) -> bool {
    let (mut sum, mut squares) = (0.0, 0.0);
    for (&row, as_leaf) in rows.iter().zip(as_leaf) {
        let weight = validation.weight[row as usize];
        let difference = as_leaf - branch[row as usize];
        sum += weight * difference;
        squares += weight * difference * difference;
    }
    sum > MIN_STANDARD_ERRORS * (1.0 + ROUNDING) * squares.sqrt()
}
