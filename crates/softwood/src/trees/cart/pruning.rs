//! Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone 1984, chapter 3).
//!
//! `R(t)` is the loss of node `t` as a leaf and `R(T_t)` the loss of its branch, both relative to
//! the loss of the root. The strength of its link is
//! `g(t) = (R(t) - R(T_t)) / (leaves of T_t - 1)`. The subtree that minimises `R + alpha leaves`
//! results from pruning the weakest link again and again while its `g` is at most `alpha`; pruning
//! a branch changes `g` of its ancestors. The subtrees for increasing `alpha` are nested.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::trees::cart::CartTarget;
use crate::trees::structure::TreeStructure;

/// Statistics of every node of a tree: nodes with conditions first, in their order, then leaves.
#[derive(Debug, Clone)]
pub(crate) struct NodeStatistics {
    pub(crate) kind: CartTarget,
    /// Child nodes of each condition.
    pub(crate) children: Vec<[usize; 2]>,
    /// Nodes x statistics.
    pub(crate) stats: Vec<f64>,
}

/// The sequence of pruned subtrees.
#[derive(Debug, Clone)]
pub(crate) struct PruningPath {
    /// The `alpha` at which each condition is pruned as the weakest link; infinite if an ancestor
    /// is pruned first.
    pub(crate) cut_at: Vec<f64>,
    /// The values of `alpha` at which links are pruned, ascending, and the number of leaves from
    /// each value on.
    pub(crate) steps: Vec<(f64, usize)>,
}

impl NodeStatistics {
    /// Statistics of all nodes of a general tree; `leaves` holds those of its leaves.
    pub(crate) fn new(kind: CartTarget, structure: &TreeStructure, leaves: &[f64]) -> Self {
        match structure {
            TreeStructure::General { children, .. } => Self::of_children(kind, children, leaves),
            TreeStructure::Symmetric(_) => unreachable!("CART grows general trees"),
        }
    }

    /// Statistics of all nodes of a tree with these children: a negative child is the leaf
    /// `!child`, any other child is a node, which stands after its parent.
    pub(crate) fn of_children(kind: CartTarget, children: &[[i32; 2]], leaves: &[f64]) -> Self {
        let (n_stats, n_conditions) = (kind.n_stats(), children.len());
        let node = |child: i32| {
            if child < 0 {
                n_conditions + !child as usize
            } else {
                child as usize
            }
        };
        let children: Vec<[usize; 2]> = children.iter().map(|pair| pair.map(node)).collect();
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

    /// Loss of every node, relative to that of the root.
    pub(crate) fn losses(&self) -> Vec<f64> {
        let root = self.kind.loss(self.stats(0));
        let unit = if root > 0.0 { root } else { 1.0 };
        let losses = (0..self.n_nodes()).map(|node| self.kind.loss(self.stats(node)) / unit);
        losses.collect()
    }

    /// The pruning path of the tree.
    pub(crate) fn path(&self) -> PruningPath {
        weakest_links(&self.children, &self.losses())
    }

    /// The subtree for `alpha`, and the statistics of its leaves.
    pub(crate) fn pruned(
        &self,
        structure: &TreeStructure,
        path: &PruningPath,
        alpha: f64,
    ) -> (TreeStructure, Vec<f64>) {
        let mut conditions = Vec::new();
        let mut children: Vec<[i32; 2]> = Vec::new();
        let has_condition = |node: usize| node < self.children.len() && path.cut_at[node] > alpha;
        // conditions keep their order: children stand after their parents
        let mut place = vec![None; self.children.len()];
        let mut kept = vec![false; self.children.len()];
        if !self.children.is_empty() {
            kept[0] = has_condition(0);
        }
        for node in 0..self.children.len() {
            if kept[node] {
                place[node] = Some(conditions.len() as i32);
                conditions.push(structure.conditions()[node]);
                for child in self.children[node] {
                    if has_condition(child) {
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

/// Prunes the weakest link until the root is a leaf. `children` are those of each condition,
/// `losses` those of each node.
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
        // of equal links the one nearest to the root: it prunes the others with it
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
        // strengths ascend in exact arithmetic, but not always with rounding
        alpha = alpha.max(strength);
        path.cut_at[node] = alpha;
        remove_below(node, children, &mut links, |below| {
            link(below, &branch, &n_leaves)
        });
        let (removed_leaves, added_loss) = (n_leaves[node] - 1, losses[node] - branch[node]);
        let mut next = Some(node);
        while let Some(at) = next {
            if at != node {
                links.remove(&link(at, &branch, &n_leaves));
            }
            branch[at] += added_loss;
            n_leaves[at] -= removed_leaves;
            if at != node {
                links.insert(link(at, &branch, &n_leaves));
            }
            next = parent[at];
        }
        match path.steps.last_mut() {
            Some(last) if last.0.to_bits() == alpha.to_bits() => last.1 = n_leaves[0],
            _ => path.steps.push((alpha, n_leaves[0])),
        }
    }
    path
}

/// Removes the links below a node.
fn remove_below<T: Ord>(
    node: usize,
    children: &[[usize; 2]],
    links: &mut BTreeSet<T>,
    link: impl Fn(usize) -> T,
) {
    let mut below: Vec<usize> = children[node].to_vec();
    while let Some(node) = below.pop() {
        // a link that was pruned before is not in the set, and neither are the links below it
        if node < children.len() && links.remove(&link(node)) {
            below.extend(children[node]);
        }
    }
}

/// A finite `f64` with a total order.
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

    /// A root with two conditions below it: node 1 with leaves 3 and 4, node 2 with leaves 5 and 6.
    const CHILDREN: [[usize; 2]; 3] = [[1, 2], [3, 4], [5, 6]];

    fn close(steps: &[(f64, usize)], expected: &[(f64, usize)]) {
        assert_eq!(steps.len(), expected.len(), "{steps:?}");
        for (found, expected) in steps.iter().zip(expected) {
            assert!((found.0 - expected.0).abs() < 1e-12, "{steps:?}");
            assert_eq!(found.1, expected.1, "{steps:?}");
        }
    }

    #[test]
    fn links_are_pruned_in_the_order_of_their_updated_strengths() {
        // by hand: g = 0.55/3, 0.2, 0.05; without node 2 g = 0.5/2, 0.2; without node 1 g = 0.3
        let path = weakest_links(&CHILDREN, &[1.0, 0.4, 0.3, 0.1, 0.1, 0.2, 0.05]);
        close(&path.steps, &[(0.05, 3), (0.2, 2), (0.3, 1)]);
        assert!((path.cut_at[1] - 0.2).abs() < 1e-12 && (path.cut_at[0] - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_weak_root_prunes_all_links_below_it() {
        // g = 0.4/3, 0.25, 0.15: the root is the weakest link
        let path = weakest_links(&CHILDREN, &[0.5, 0.3, 0.2, 0.05, 0.0, 0.05, 0.0]);
        close(&path.steps, &[(0.4 / 3.0, 1)]);
        assert!(path.cut_at[1].is_infinite() && path.cut_at[2].is_infinite());
    }

    #[test]
    fn equal_links_are_pruned_together() {
        // g = 0.1 for all links
        let path = weakest_links(&CHILDREN, &[0.7, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1]);
        close(&path.steps, &[(0.1, 1)]);
    }

    /// The branch of least `R + alpha leaves` below a node: its cost and its number of leaves.
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
    fn pruned_trees_minimise_loss_plus_alpha_times_leaves() {
        // a degenerate tree with irregular losses, against the exact minimum over all subtrees
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
