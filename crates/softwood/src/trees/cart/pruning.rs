//! Cost-complexity pruning by weakest links (Breiman, Friedman, Olshen and Stone 1984, chapter 3).
//!
//! A node `t` costs `R(t)` as a leaf and its branch `R(T_t)`, both as parts of the root's loss. Its link holds up to
//! `g(t) = (R(t) - R(T_t)) / (leaves of T_t - 1)`: the tree that minimises `R + alpha leaves` cuts links in the order of `g`, which
//! changes for the ancestors of what was cut. The trees for all `alpha` are nested.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::trees::cart::CartTarget;
use crate::trees::structure::TreeStructure;

/// A tree with what every node holds: conditions first, in their order, then leaves.
#[derive(Debug, Clone)]
pub(crate) struct NodeStatistics {
    pub(crate) kind: CartTarget,
    /// Children of each condition, as nodes.
    pub(crate) children: Vec<[usize; 2]>,
    /// Nodes x stats.
    pub(crate) stats: Vec<f64>,
}

/// The `alpha` at which each condition is cut off as the weakest link; infinite for what goes with an ancestor before.
#[derive(Debug, Clone)]
pub(crate) struct PruningPath {
    pub(crate) cut_at: Vec<f64>,
    /// Ascending values at which something is cut, and the leaves that are left from there on.
    pub(crate) steps: Vec<(f64, usize)>,
}

impl NodeStatistics {
    /// `leaves` holds the stats of each leaf. A symmetric tree has no such gain_spec.
    pub(crate) fn new(kind: CartTarget, structure: &TreeStructure, leaves: &[f64]) -> Self {
        let (n_stats, n_conditions) = (kind.n_stats(), structure.conditions().len());
        let node = |child: i32| {
            if child < 0 {
                n_conditions + !child as usize
            } else {
                child as usize
            }
        };
        let children: Vec<[usize; 2]> = match structure {
            TreeStructure::General { children, .. } => {
                children.iter().map(|pair| pair.map(node)).collect()
            }
            TreeStructure::Symmetric(_) => unreachable!("a tree that grows freely is general"),
        };
        let mut stats = vec![0.0; n_conditions * n_stats];
        stats.extend_from_slice(leaves);
        // children stand after their parents
        for at in (0..n_conditions).rev() {
            for child in children[at] {
                let (parents, below) = stats.split_at_mut((at + 1) * n_stats);
                let from = (child - at - 1) * n_stats;
                kind.merge(&mut parents[at * n_stats..], &below[from..from + n_stats]);
            }
        }
        Self {
            kind,
            children,
            stats,
        }
    }

    pub(crate) fn n_nodes(&self) -> usize {
        2 * self.children.len() + 1
    }

    pub(crate) fn stats(&self, node: usize) -> &[f64] {
        let n_stats = self.kind.n_stats();
        &self.stats[node * n_stats..(node + 1) * n_stats]
    }

    /// Loss of every node as a part of the root's.
    pub(crate) fn losses(&self) -> Vec<f64> {
        let whole = self.kind.loss(self.stats(0));
        let unit = if whole > 0.0 { whole } else { 1.0 };
        let losses = (0..self.n_nodes()).map(|node| self.kind.loss(self.stats(node)) / unit);
        losses.collect()
    }

    /// The order in which links are cut.
    pub(crate) fn path(&self) -> PruningPath {
        weakest_links(&self.children, &self.losses())
    }

    /// The tree for `alpha`, and its leaves' stats.
    pub(crate) fn pruned(
        &self,
        structure: &TreeStructure,
        path: &PruningPath,
        alpha: f64,
    ) -> (TreeStructure, Vec<f64>) {
        let mut conditions = Vec::new();
        let mut children: Vec<[i32; 2]> = Vec::new();
        let is_test = |node: usize| node < self.children.len() && path.cut_at[node] > alpha;
        // in the order of conditions, so that children stand after their parents
        let mut place = vec![None; self.children.len()];
        let mut kept = vec![false; self.children.len()];
        if !self.children.is_empty() {
            kept[0] = is_test(0);
        }
        for node in 0..self.children.len() {
            if kept[node] {
                place[node] = Some(conditions.len() as i32);
                conditions.push(structure.conditions()[node]);
                for child in self.children[node] {
                    if is_test(child) {
                        kept[child] = true;
                    }
                }
            }
        }
        let mut leaves = Vec::new();
        let mut n_leaves = 0;
        let mut leaf = |node: usize| {
            leaves.extend_from_slice(self.stats(node));
            n_leaves += 1;
            !(n_leaves - 1)
        };
        for node in 0..self.children.len() {
            if kept[node] {
                children.push(self.children[node].map(|child| {
                    let below = place.get(child).copied().flatten();
                    below.unwrap_or_else(|| leaf(child))
                }));
            }
        }
        if conditions.is_empty() {
            leaf(0);
        }
        (
            TreeStructure::General {
                conditions,
                children,
            },
            leaves,
        )
    }
}

/// Cuts links in their order. `children` are those of each condition; `losses` of each node.
fn weakest_links(children: &[[usize; 2]], losses: &[f64]) -> PruningPath {
    let n_conditions = children.len();
    let mut parent = vec![None; losses.len()];
    let mut branch = losses.to_vec();
    let mut n_leaves = vec![1_usize; losses.len()];
    for node in (0..n_conditions).rev() {
        let [left, right] = children[node];
        (parent[left], parent[right]) = (Some(node), Some(node));
        branch[node] = branch[left] + branch[right];
        n_leaves[node] = n_leaves[left] + n_leaves[right];
    }
    let link = |node: usize, branch: &[f64], n_leaves: &[usize]| {
        let strength = (losses[node] - branch[node]) / (n_leaves[node] - 1) as f64;
        // among equals the one nearer to the root: it takes the others along
        (
            OrderedCost(strength.max(0.0)),
            Reverse(n_leaves[node]),
            node,
        )
    };
    let mut links: BTreeSet<_> = (0..n_conditions)
        .map(|node| link(node, &branch, &n_leaves))
        .collect();
    let mut path = PruningPath {
        cut_at: vec![f64::INFINITY; n_conditions],
        steps: Vec::new(),
    };
    let mut alpha = 0.0_f64;
    while let Some((OrderedCost(strength), _, node)) = links.pop_first() {
        // theory has them ascend; rounding may not
        alpha = alpha.max(strength);
        path.cut_at[node] = alpha;
        drop_below(node, children, &mut links, |below| {
            link(below, &branch, &n_leaves)
        });
        let (lost_leaves, lost_loss) = (n_leaves[node] - 1, losses[node] - branch[node]);
        let mut at = Some(node);
        while let Some(node_above) = at {
            if node_above != node {
                links.remove(&link(node_above, &branch, &n_leaves));
            }
            branch[node_above] += lost_loss;
            n_leaves[node_above] -= lost_leaves;
            if node_above != node {
                links.insert(link(node_above, &branch, &n_leaves));
            }
            at = parent[node_above];
        }
        match path.steps.last_mut() {
            Some(last) if last.0.to_bits() == alpha.to_bits() => last.1 = n_leaves[0],
            _ => path.steps.push((alpha, n_leaves[0])),
        }
    }
    path
}

/// Takes the links below a node out.
fn drop_below<T: Ord>(
    node: usize,
    children: &[[usize; 2]],
    links: &mut BTreeSet<T>,
    link: impl Fn(usize) -> T,
) {
    let mut below: Vec<usize> = children[node].to_vec();
    while let Some(node) = below.pop() {
        // what was cut before is no longer there, and neither is what stood below it
        if node < children.len() && links.remove(&link(node)) {
            below.extend(children[node]);
        }
    }
}

/// A finite number in its natural order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OrderedCost(f64);

impl Eq for OrderedCost {}

impl PartialOrd for OrderedCost {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedCost {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two conditions below the root; the leaves of the second are 5 and 6.
    const CHILDREN: [[usize; 2]; 3] = [[1, 2], [3, 4], [5, 6]];

    fn close(steps: &[(f64, usize)], expected: &[(f64, usize)]) {
        assert_eq!(steps.len(), expected.len(), "{steps:?}");
        for (found, expected) in steps.iter().zip(expected) {
            assert!((found.0 - expected.0).abs() < 1e-12, "{steps:?}");
            assert_eq!(found.1, expected.1, "{steps:?}");
        }
    }

    #[test]
    fn links_are_cut_in_the_order_of_their_strength_as_it_changes() {
        // by hand: g = 0.55/3, 0.2, 0.05; without node 2 g = 0.5/2, 0.2; without node 1 g = 0.3
        let path = weakest_links(&CHILDREN, &[1.0, 0.4, 0.3, 0.1, 0.1, 0.2, 0.05]);
        close(&path.steps, &[(0.05, 3), (0.2, 2), (0.3, 1)]);
        assert!((path.cut_at[1] - 0.2).abs() < 1e-12 && (path.cut_at[0] - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_weak_root_takes_all_below_it_along() {
        // g = 0.4/3, 0.25, 0.15: the root is weakest, though its children are strong
        let path = weakest_links(&CHILDREN, &[0.5, 0.3, 0.2, 0.05, 0.0, 0.05, 0.0]);
        close(&path.steps, &[(0.4 / 3.0, 1)]);
        assert!(path.cut_at[1].is_infinite() && path.cut_at[2].is_infinite());
    }

    #[test]
    fn equal_links_are_cut_together() {
        // all save 0.1 per leaf
        let path = weakest_links(&CHILDREN, &[0.7, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1]);
        close(&path.steps, &[(0.1, 1)]);
    }

    /// The branch below a node: its least cost for alpha, and its leaves.
    fn best(node: usize, children: &[[usize; 2]], losses: &[f64], alpha: f64) -> (f64, usize) {
        let own = (losses[node] + alpha, 1);
        let Some(pair) = children.get(node) else {
            return own;
        };
        let [a, b] = pair.map(|child| best(child, children, losses, alpha));
        let branch = (a.0 + b.0, a.1 + b.1);
        if branch.0 < own.0 - 1e-12 {
            branch
        } else {
            own
        }
    }

    #[test]
    fn trees_of_the_path_minimise_loss_plus_alpha_times_leaves() {
        // a chain of conditions with irregular losses, against all of its subtrees
        let children: Vec<[usize; 2]> = vec![[1, 4], [2, 5], [3, 6], [7, 8]];
        let losses = [1.0, 0.62, 0.5, 0.31, 0.2, 0.04, 0.1, 0.1, 0.12];
        let path = weakest_links(&children, &losses);
        for alpha in (0..60).map(|at| f64::from(at) * 0.01 + 0.003) {
            let cut = path.steps.iter().rev().find(|step| step.0 <= alpha);
            let n_leaves = cut.map_or(children.len() + 1, |step| step.1);
            assert_eq!(n_leaves, best(0, &children, &losses, alpha).1, "{alpha}");
        }
    }
}
