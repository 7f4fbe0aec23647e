//! Reduced-error pruning of the hard tree on the validation rows, and the smoothing of its leaves.

use crate::models::rnn_tree::rows::{RouteRows, row_loss};
use crate::models::rnn_tree::soft_routes::SoftRoutes;
use crate::models::rnn_tree::sparse_leaves::SparseLeaves;
use crate::models::rnn_tree::threshold_refit::refit_thresholds;
use crate::recurrent::hard_tree::HardTree;
use crate::rng::Key;
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::{NodeStatistics, PruningPath};
use crate::trees::leaf_posterior::{LeftOutRow, SmoothedLeaves, Smoothing};
use crate::trees::structure::TreeStructure;

/// Number of folds of the validation rows.
const FOLDS: usize = 5;
/// Number of standard errors by which a tree is better than its root if that is no chance.
const MIN_STANDARD_ERRORS: f64 = 3.0;
/// Number of pseudo-rows of leaves with values of few interactions.
const SPARSE_PSEUDO_ROWS: f64 = 0.25;
/// Number of standard errors by which a tree may be below half of the gain of the best one.
const MAX_STANDARD_ERRORS: f64 = 2.0;

/// A tree whose leaves have distributions.
#[derive(Debug, Clone)]
pub(super) struct RouteTree {
    pub(super) structure: TreeStructure,
    pub(super) leaves: SmoothedLeaves,
    /// The posterior over routes, if predictions are mixtures.
    pub(super) soft: Option<SoftRoutes>,
}

impl RouteTree {
    /// The leaves that predictions come from.
    pub(super) fn active_leaves(&self) -> &SmoothedLeaves {
        self.soft.as_ref().map_or(&self.leaves, |soft| &soft.leaves)
    }

    /// As [`Self::active_leaves`].
    pub(super) fn active_leaves_mut(&mut self) -> &mut SmoothedLeaves {
        match &mut self.soft {
            Some(soft) => &mut soft.leaves,
            None => &mut self.leaves,
        }
    }
}

/// Factors of the leaf variances that are compared.
pub(super) const VARIANCE_FACTORS: [f64; 9] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2];

/// What a tree predicts for the validation rows, which it has not seen.
#[derive(Debug, Default)]
pub(super) struct HeldOutPredictions {
    /// Densities for each of [`VARIANCE_FACTORS`]; for classes only for the first.
    pub(super) densities: Vec<Vec<f64>>,
    /// Means of a regression.
    pub(super) means: Vec<f64>,
}

impl HeldOutPredictions {
    /// The densities of each factor, from those of a smoothing, and the means.
    pub(super) fn new(
        kind: CartTarget,
        smoothing: &Smoothing,
        densities: impl Fn(&Smoothing) -> Vec<f64>,
        means: Vec<f64>,
    ) -> Self {
        let n_factors = if kind == CartTarget::Number {
            VARIANCE_FACTORS.len()
        } else {
            1
        };
        let scaled = |factor: &f64| Smoothing {
            factor: factor * smoothing.factor,
            ..smoothing.clone()
        };
        let factors = VARIANCE_FACTORS[..n_factors].iter();
        Self {
            densities: factors.map(|factor| densities(&scaled(factor))).collect(),
            means,
        }
    }

    /// Densities of the unscaled variances.
    pub(super) fn unscaled(&self) -> &[f64] {
        self.densities.first().map_or(&[], Vec::as_slice)
    }
}

/// A hard tree and the density that it gives each validation row.
#[derive(Debug)]
pub(super) struct ScoredTree {
    pub(super) tree: RouteTree,
    pub(super) held_out: HeldOutPredictions,
    /// How much more probable the validation rows are than under the root.
    pub(super) gain: ValidationGain,
    /// Whether the tree is better than its root by more than chance.
    pub(super) is_significant: bool,
}

impl ScoredTree {
    /// Mean log-likelihood of the validation rows; 0 without validation rows.
    pub(super) fn score(&self, rows: &RouteRows<'_>) -> f64 {
        mean_log_density(rows, self.held_out.unscaled())
    }
}

/// Mean difference of the log density of validation rows from that under the root.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValidationGain {
    pub(super) mean: f64,
    pub(super) standard_error: f64,
}

impl ValidationGain {
    /// The gain of a tree whose root has the smoothing `plain`; zero without validation rows.
    fn new(rows: &RouteRows<'_>, plain: &Smoothing, densities: &[f64]) -> Self {
        let Some(validation) = &rows.validation else {
            return Self::default();
        };
        let (kind, root) = (rows.kind(), rows.root_stats());
        let differences: Vec<(f64, f64)> = (validation.iter().zip(densities))
            .map(|((_, weight, target), density)| {
                let of_root = plain.log_density(kind, &root, target);
                (weight, density.max(f64::MIN_POSITIVE).ln() - of_root)
            })
            .collect();
        let total: f64 = differences.iter().map(|(weight, _)| weight).sum();
        let sum = |value: &dyn Fn(f64) -> f64| -> f64 {
            let terms = differences.iter().map(|&(weight, x)| weight * value(x));
            terms.sum()
        };
        let mean = sum(&|x| x) / total;
        let variance = sum(&|x| (x - mean).powi(2)) / total;
        Self {
            mean,
            standard_error: (variance / total).sqrt(),
        }
    }

    /// Whether the tree is better than its root by at least [`MIN_STANDARD_ERRORS`].
    fn is_significant(&self) -> bool {
        self.mean > MIN_STANDARD_ERRORS * self.standard_error
    }

    /// Whether less than half of the gain of the best tree is reached, by more than chance.
    pub(super) fn is_far_below(&self, best: &Self) -> bool {
        let deviation = (self.standard_error.powi(2) + (0.5 * best.standard_error).powi(2)).sqrt();
        self.mean + MAX_STANDARD_ERRORS * deviation < 0.5 * best.mean
    }
}

/// Mean logarithm of the densities of the validation rows, up to a constant factor.
pub(super) fn mean_log_density(rows: &RouteRows<'_>, densities: &[f64]) -> f64 {
    let Some(validation) = &rows.validation else {
        return 0.0;
    };
    let (mut sum, mut total) = (0.0, 0.0);
    for ((_, weight, _), density) in validation.iter().zip(densities) {
        sum += weight * density.max(f64::MIN_POSITIVE).ln();
        total += weight;
    }
    sum / total
}

/// The tree of the nodes that training rows reach, pruned on the validation rows; its leaves have the
/// statistics of all rows of the fit.
pub(super) fn fitted_tree(
    rows: &RouteRows<'_>,
    tree: &HardTree,
    floor: f64,
    key: Key,
) -> ScoredTree {
    let kind = rows.kind();
    let (structure, stats) = {
        let routed = RoutedTree::refitted(rows, tree);
        let stats = leaf_stats(rows, &routed.structure);
        (routed.structure, stats)
    };
    let nodes = NodeStatistics::new(kind, &structure, &stats);
    let plain = Smoothing::plain(kind, nodes.stats(0), floor);
    let root_smoothing = plain.clone();
    let mut held_out = HeldOutPredictions::default();
    let (mut structure, mut stats, smoothing) = match &rows.validation {
        None => (structure, stats, plain),
        Some(validation) => {
            let pruner = RoutePruner::new(&structure, &nodes);
            let leaf_of: Vec<usize> = (validation.iter())
                .map(|(row, ..)| pruner.leaf(|column| validation.binned.bin(row, column)))
                .collect();
            let scored: Vec<ValidationRow> = (validation.iter().zip(&leaf_of))
                .map(|((_, weight, target), &leaf)| ValidationRow {
                    leaf,
                    weight,
                    target,
                })
                .collect();
            // a tree looks better on the rows that pruned it, so each fold is scored by the tree that
            // the other folds prune
            let mut left_out = Vec::with_capacity(scored.len());
            for fold in 0..FOLDS {
                let others = scored
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| at % FOLDS != fold);
                let kept = pruner.kept(others.map(|(_, row)| row));
                let fold_rows = scored.iter().skip(fold).step_by(FOLDS);
                left_out.extend(fold_rows.map(|row| LeftOutRow {
                    stats: nodes.stats(pruner.pruned_leaf(&kept, row.leaf)),
                    target: row.target,
                    weight: row.weight,
                }));
            }
            let smoothing = plain.fit(kind, &left_out);
            let by_row = |value: &dyn Fn(&LeftOutRow<'_>) -> f64| {
                let mut values = vec![0.0; scored.len()];
                let order = (0..FOLDS).flat_map(|fold| (fold..scored.len()).step_by(FOLDS));
                for (row, at) in left_out.iter().zip(order) {
                    values[at] = value(row);
                }
                values
            };
            let densities = |smoothing: &Smoothing| {
                by_row(&|row| smoothing.log_density(kind, row.stats, row.target).exp())
            };
            let means = by_row(&|row| row.stats[1]);
            held_out = HeldOutPredictions::new(kind, &smoothing, densities, means);
            let path = PruningPath {
                cut_at: pruner
                    .kept(scored.iter())
                    .iter()
                    .map(|&kept| f64::from(u8::from(kept)))
                    .collect(),
                steps: Vec::new(),
            };
            let (structure, stats) = nodes.pruned(&structure, &path, 0.0);
            (structure, stats, smoothing)
        }
    };
    if rows.validation.is_some() {
        stats = all_stats(rows, &structure);
        refit(rows, true, &mut structure, &mut stats);
    }
    let leaves = SmoothedLeaves {
        kind,
        stats,
        smoothing,
        key,
    };
    let gain = ValidationGain::new(rows, &root_smoothing, held_out.unscaled());
    ScoredTree {
        is_significant: rows.validation.is_none() || gain.is_significant(),
        gain,
        tree: RouteTree {
            structure,
            leaves,
            soft: None,
        },
        held_out,
    }
}

/// An unpruned tree, and the leaf of the complete tree of each of its leaves.
#[derive(Debug)]
pub(super) struct RoutedTree {
    structure: TreeStructure,
    complete: Vec<usize>,
}

impl RoutedTree {
    /// The tree of the nodes that training rows reach.
    pub(super) fn new(rows: &RouteRows<'_>, tree: &HardTree) -> Self {
        let (structure, complete) = tree.structure(rows.train.binned, &rows.train.rows);
        Self {
            structure,
            complete,
        }
    }

    /// As [`Self::new`], with thresholds at the best places for the training rows.
    pub(super) fn refitted(rows: &RouteRows<'_>, tree: &HardTree) -> Self {
        let mut routed = Self::new(rows, tree);
        let mut stats = leaf_stats(rows, &routed.structure);
        refit(rows, false, &mut routed.structure, &mut stats);
        routed
    }

    /// The leaf of the complete tree that a row of the fit reaches.
    pub(super) fn leaf(&self, rows: &RouteRows<'_>, row: usize) -> usize {
        let bin = |column| rows.set.binned.bin(row, column);
        self.complete[self.structure.leaf(bin)]
    }
}

/// Refits the thresholds and the statistics of the leaves, unless a leaf would lose all of its rows.
fn refit(
    rows: &RouteRows<'_>,
    uses_validation: bool,
    structure: &mut TreeStructure,
    stats: &mut Vec<f64>,
) {
    let mut moved = structure.clone();
    refit_thresholds(rows, uses_validation, &mut moved);
    let of_moved = if uses_validation {
        all_stats(rows, &moved)
    } else {
        leaf_stats(rows, &moved)
    };
    let kind = rows.kind();
    let mut leaves = of_moved.chunks_exact(kind.n_stats());
    if leaves.all(|leaf| kind.weight(leaf) > 0.0) {
        *structure = moved;
        *stats = of_moved;
    }
}

/// The unpruned tree with values of few interactions in its leaves. The validation rows are scored by
/// the values of the folds that they are not in; without values of folds, by those of the training
/// rows.
pub(super) fn sparse_tree(
    rows: &RouteRows<'_>,
    routed: RoutedTree,
    sparse: &SparseLeaves,
    folds: &[Option<SparseLeaves>],
    (floor, key): (f64, Key),
) -> ScoredTree {
    let kind = rows.kind();
    let n_stats = kind.n_stats();
    let RoutedTree {
        structure,
        complete,
    } = routed;
    let replaced = |sparse: &SparseLeaves, mut stats: Vec<f64>| {
        for (leaf, stats) in stats.chunks_exact_mut(n_stats).enumerate() {
            sparse.replace(complete[leaf], stats);
        }
        stats
    };
    let of_training = leaf_stats(rows, &structure);
    let root = rows.root_stats();
    let of_fold = |fold: &Option<SparseLeaves>| match fold {
        Some(sparse) => replaced(sparse, of_training.clone()),
        None => root.repeat(structure.n_leaves()),
    };
    let stats: Vec<Vec<f64>> = match folds {
        [] => vec![replaced(sparse, of_training.clone())],
        folds => folds.iter().map(of_fold).collect(),
    };
    let plain = Smoothing::plain(kind, &root, floor);
    let validation = rows.validation.iter();
    let left_out: Vec<LeftOutRow<'_>> = validation
        .flat_map(|validation| {
            validation
                .iter()
                .enumerate()
                .map(move |row| (validation, row))
        })
        .map(|(validation, (at, (row, weight, target)))| {
            let leaf = structure.leaf(|column| validation.binned.bin(row, column));
            LeftOutRow {
                stats: &stats[at % stats.len()][leaf * n_stats..(leaf + 1) * n_stats],
                target,
                weight,
            }
        })
        .collect();
    let mut smoothing = plain.fit(kind, &left_out);
    if matches!(kind, CartTarget::Classes(_)) {
        // the values rest on all rows and are shrunk already
        smoothing.n_pseudo_rows = SPARSE_PSEUDO_ROWS;
    }
    let densities = |smoothing: &Smoothing| {
        let density = |row: &LeftOutRow<'_>| smoothing.log_density(kind, row.stats, row.target);
        left_out.iter().map(|row| density(row).exp()).collect()
    };
    let means = left_out.iter().map(|row| row.stats[1]).collect();
    let held_out = HeldOutPredictions::new(kind, &smoothing, densities, means);
    let stats = replaced(sparse, all_stats(rows, &structure));
    let leaves = SmoothedLeaves {
        kind,
        stats,
        smoothing,
        key,
    };
    let gain = ValidationGain::new(rows, &plain, held_out.unscaled());
    ScoredTree {
        tree: RouteTree {
            structure,
            leaves,
            soft: None,
        },
        is_significant: gain.is_significant(),
        gain,
        held_out,
    }
}

/// Statistics of the leaves of a structure on all rows of the fit.
fn all_stats(rows: &RouteRows<'_>, structure: &TreeStructure) -> Vec<f64> {
    let mut stats = leaf_stats(rows, structure);
    if let (true, Some(validation)) = (rows.is_split, &rows.validation) {
        let n_stats = rows.kind().n_stats();
        for (row, weight, target) in validation.iter() {
            let leaf = structure.leaf(|column| validation.binned.bin(row, column));
            let stats = &mut stats[leaf * n_stats..(leaf + 1) * n_stats];
            rows.kind().push(stats, target, weight);
        }
    }
    stats
}

/// Statistics of the leaves of a structure on the training rows.
fn leaf_stats(rows: &RouteRows<'_>, structure: &TreeStructure) -> Vec<f64> {
    let n_stats = rows.kind().n_stats();
    let mut stats = vec![0.0; structure.n_leaves() * n_stats];
    for (row, weight, target) in rows.train.iter() {
        let leaf = structure.leaf(|column| rows.train.binned.bin(row, column));
        rows.kind().push(
            &mut stats[leaf * n_stats..(leaf + 1) * n_stats],
            target,
            weight,
        );
    }
    stats
}

/// A validation row and the node of the leaf that it reaches.
struct ValidationRow {
    leaf: usize,
    weight: f64,
    target: f32,
}

struct RoutePruner<'a> {
    structure: &'a TreeStructure,
    nodes: &'a NodeStatistics,
    parent: Vec<usize>,
}

impl<'a> RoutePruner<'a> {
    fn new(structure: &'a TreeStructure, nodes: &'a NodeStatistics) -> Self {
        let mut parent = vec![0; nodes.n_nodes()];
        for (node, pair) in nodes.children.iter().enumerate() {
            for &child in pair {
                parent[child] = node;
            }
        }
        Self {
            structure,
            nodes,
            parent,
        }
    }

    /// Node of the leaf of a row.
    fn leaf(&self, bin: impl Fn(usize) -> u8) -> usize {
        self.nodes.children.len() + self.structure.leaf(bin)
    }

    /// Which inner nodes stay split: those whose branch has a smaller loss on the rows than the node
    /// as a leaf.
    fn kept<'r>(&self, rows: impl Iterator<Item = &'r ValidationRow>) -> Vec<bool> {
        let n_inner = self.nodes.children.len();
        let mut as_leaf = vec![0.0; self.nodes.n_nodes()];
        for row in rows {
            let mut node = row.leaf;
            loop {
                as_leaf[node] += row.weight * self.loss(node, row.target);
                if node == 0 {
                    break;
                }
                node = self.parent[node];
            }
        }
        let mut kept = vec![false; n_inner];
        let mut best = as_leaf.clone();
        for node in (0..n_inner).rev() {
            let [left, right] = self.nodes.children[node];
            let branch = best[left] + best[right];
            kept[node] = branch < as_leaf[node];
            best[node] = branch.min(as_leaf[node]);
        }
        kept
    }

    fn loss(&self, node: usize, target: f32) -> f64 {
        row_loss(self.nodes.kind, self.nodes.stats(node), target)
    }

    /// The leaf of the pruned tree above a leaf of the full tree.
    fn pruned_leaf(&self, kept: &[bool], leaf: usize) -> usize {
        let (mut found, mut node) = (leaf, leaf);
        while node != 0 {
            node = self.parent[node];
            if !kept[node] {
                found = node;
            }
        }
        found
    }
}
