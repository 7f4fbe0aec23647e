//! Selection of the pruning and of the smoothing by cross-validation over the cost-complexity path.

use std::ops::Range;

use crate::error::Result;
use crate::fit::Run;
use crate::likelihood::normal::log_density_of_square;
use crate::model::Trial;
use crate::models::tree::streams;
use crate::observer::Event;
use crate::par::Pool;
use crate::rng::shuffle;
use crate::trees::cart::pruning::{NodeStatistics, PruningPath};
use crate::trees::cart::{Cart, CartLimits, CartTarget, grow};
use crate::trees::leaf_posterior::{HeldOutLeaves, LeftOutRow, Smoothing};
use crate::trees::routing::RowBins;
use crate::trees::training_set::TreeTrainingSet;

/// Number of folds.
const FOLDS: usize = 10;
/// Approximate number of candidates that are reported as trials.
const MAX_TRIALS: usize = 12;
/// Smallest loss whose log-likelihood is reported: that of a perfect fit would be infinite.
const MIN_LOSS: f64 = 1e-12;

/// The values of alpha (`ccp_alpha`) that may be selected.
#[derive(Debug)]
pub(super) struct PruningCandidates {
    /// Alpha of each candidate, ascending, and the number of leaves of the pruned tree.
    pub(super) steps: Vec<(f64, usize)>,
    /// Alpha of each candidate in the folds: the geometric mean of its alpha and the next, since
    /// the pruning paths of the folds have other breakpoints.
    fold_alphas: Vec<f64>,
}

impl PruningCandidates {
    /// The first candidate with the `plain` smoothing, for a tree without folds.
    pub(super) fn first(&self, plain: &Smoothing, is_stopped: bool) -> ChosenPruning {
        ChosenPruning {
            alpha: self.steps[0].0,
            smoothing: plain.clone(),
            trials: Vec::new(),
            is_stopped,
        }
    }

    /// All trees of the pruning path with at most `max_leaves` leaves, or the tree of a given
    /// `alpha`. `n_leaves` is the number of leaves of the full tree.
    pub(super) fn new(
        path: &PruningPath,
        n_leaves: usize,
        alpha: Option<f64>,
        max_leaves: Option<usize>,
    ) -> Self {
        let mut steps = path.steps.clone();
        if steps.first().is_none_or(|first| first.0 > 0.0) {
            steps.insert(0, (0.0, n_leaves));
        }
        let middle = |at: usize| {
            let next = steps.get(at + 1).map_or(steps[at].0, |next| next.0);
            (steps[at].0 * next).sqrt()
        };
        let fold_alphas: Vec<f64> = (0..steps.len()).map(middle).collect();
        let is_small = |at: &usize| max_leaves.is_none_or(|max| steps[*at].1 <= max);
        let allowed: Vec<usize> = (0..steps.len()).filter(is_small).collect();
        let kept = match alpha {
            // the tree that is optimal for this alpha, or the largest one that is small enough
            Some(alpha) => {
                let at = steps.iter().rposition(|step| step.0 <= alpha).unwrap_or(0);
                vec![at.max(allowed[0])]
            }
            None => allowed,
        };
        Self {
            steps: kept.iter().map(|&at| steps[at]).collect(),
            fold_alphas: kept.iter().map(|&at| fold_alphas[at]).collect(),
        }
    }
}

/// The selected pruning and smoothing.
#[derive(Debug)]
pub(super) struct ChosenPruning {
    pub(super) alpha: f64,
    pub(super) smoothing: Smoothing,
    pub(super) trials: Vec<Trial>,
    /// Whether the observer stopped the cross-validation before its end.
    pub(super) is_stopped: bool,
}

/// The tree of a fold, its pruning path, and the leaves of the rows that were left out.
#[derive(Debug)]
struct CvFold {
    tree: NodeStatistics,
    path: PruningPath,
    /// Parent of each node; 0 for the root.
    parent: Vec<usize>,
    left_out: Vec<RoutedRow>,
}

/// A row and the leaf of the full tree that it is routed to.
#[derive(Debug, Clone, Copy)]
struct RoutedRow {
    row: u32,
    /// Node number of the leaf.
    leaf: u32,
}

/// What the cross-validation needs besides its candidates.
pub(super) struct CrossValidation<'a> {
    pub(super) training_set: &'a TreeTrainingSet,
    pub(super) limits: &'a CartLimits,
    /// Smoothing without left-out rows.
    pub(super) plain: &'a Smoothing,
    /// Number of members of the model.
    pub(super) n_members: usize,
    pub(super) run: &'a Run<'a>,
}

/// Selects alpha and the smoothing; with too few rows for the folds, the first candidate and the
/// `plain` smoothing.
///
/// # Errors
/// When the observer stops the fit.
pub(super) fn choose(
    candidates: &PruningCandidates,
    validation: &CrossValidation<'_>,
) -> Result<ChosenPruning> {
    let CrossValidation {
        training_set,
        limits,
        plain,
        n_members,
        run,
    } = *validation;
    let n_rows = training_set.n_rows();
    if n_rows < FOLDS {
        return Ok(candidates.first(plain, false));
    }
    let folds = folds(training_set, limits, run)?;
    if folds.is_empty() {
        return Ok(candidates.first(plain, true));
    }
    let scores = scores(training_set, candidates, &folds, plain);
    let best = pick(&scores);
    let left_out = left_out(training_set, &folds, candidates.fold_alphas[best]);
    let kind = training_set.kind;
    let smoothing = plain.fit(kind, &left_out);
    Ok(ChosenPruning {
        alpha: candidates.steps[best].0,
        smoothing: smoothing.calibrated(&HeldOutLeaves::new(kind, &left_out), n_members),
        trials: trials(training_set.kind, candidates, &scores, best),
        is_stopped: folds.len() < FOLDS,
    })
}

/// Grows a tree for each fold on the rows of the other folds. After the observer has stopped the
/// fit, only the folds with complete trees are left.
fn folds(
    training_set: &TreeTrainingSet,
    limits: &CartLimits,
    run: &Run<'_>,
) -> Result<Vec<CvFold>> {
    let n_rows = training_set.n_rows();
    let mut fold_of: Vec<usize> = (0..n_rows).map(|at| at % FOLDS).collect();
    shuffle(&mut run.key.child(streams::FOLDS).rng(), &mut fold_of);
    let bins = RowBins::new(&training_set.binned);
    let single_thread = Pool::new(1)?;
    let data = training_set.cart_data(&single_thread);
    let folds = run.pool.map(FOLDS, |fold| {
        let observer = || {
            run.observer.on_event(&Event {
                member: Some(fold),
                ..Event::new("cross-validating", fold, FOLDS)
            })
        };
        let weight: Vec<f32> = training_set
            .weight
            .iter()
            .zip(&fold_of)
            .map(|(&weight, &of)| if of == fold { 0.0 } else { weight })
            .collect();
        let key = run.key.child(streams::FOLD_TREES).child(fold as u64);
        let cart = grow(&data, &weight, limits, key, &observer)?;
        let rows = (0..n_rows).filter(|&row| fold_of[row] == fold);
        let fold = CvFold::new(training_set.kind, &cart, &bins, rows);
        Ok((!cart.is_stopped).then_some(fold))
    });
    folds.into_iter().filter_map(Result::transpose).collect()
}

impl CvFold {
    /// `rows` are the rows that were left out.
    fn new(
        kind: CartTarget,
        cart: &Cart,
        bins: &RowBins,
        rows: impl Iterator<Item = usize>,
    ) -> Self {
        let tree = NodeStatistics::new(kind, &cart.structure, &cart.leaves);
        let n_conditions = tree.children.len();
        let mut parent = vec![0; tree.n_nodes()];
        for (node, pair) in tree.children.iter().enumerate() {
            for &child in pair {
                parent[child] = node;
            }
        }
        Self {
            path: tree.path(),
            tree,
            parent,
            left_out: rows
                .map(|row| RoutedRow {
                    row: row as u32,
                    leaf: (n_conditions + bins.leaf(&cart.structure, row)) as u32,
                })
                .collect(),
        }
    }

    /// The range of alpha for which each node is a leaf of the pruned tree.
    fn leaf_ranges(&self) -> Vec<Range<f64>> {
        let n_conditions = self.tree.children.len();
        let mut ranges = vec![0.0..f64::INFINITY; self.tree.n_nodes()];
        for node in 0..self.tree.n_nodes() {
            // a parent precedes its children among the conditions, and all conditions precede the
            // leaves
            let end = if node == 0 {
                f64::INFINITY
            } else {
                let parent = self.parent[node];
                ranges[parent].end.min(self.path.cut_at[parent])
            };
            let start = if node < n_conditions {
                self.path.cut_at[node]
            } else {
                f64::NEG_INFINITY
            };
            ranges[node] = start..end;
        }
        ranges
    }

    /// The node on the way from the root to `leaf` that is a leaf of the tree pruned with `alpha`.
    fn pruned_leaf(&self, ranges: &[Range<f64>], leaf: u32, alpha: f64) -> usize {
        let mut node = leaf as usize;
        while node > 0 && ranges[node].end <= alpha {
            node = self.parent[node];
        }
        node
    }
}

/// Mean loss of the left-out rows, by candidate.
fn scores(
    training_set: &TreeTrainingSet,
    candidates: &PruningCandidates,
    folds: &[CvFold],
    plain: &Smoothing,
) -> Vec<f64> {
    let alphas = &candidates.fold_alphas;
    let n = alphas.len();
    // a node is a leaf for a range of candidates: its loss is added at the first and subtracted
    // after the last, and a running sum gives the loss of each candidate
    let mut changes = vec![0.0; n + 1];
    let mut total = 0.0;
    for fold in folds {
        let first_at = |alpha: f64| alphas.partition_point(|&candidate| candidate < alpha);
        let candidate_ranges: Vec<Range<usize>> = fold
            .leaf_ranges()
            .iter()
            .map(|range| first_at(range.start)..first_at(range.end))
            .collect();
        for &RoutedRow { row, leaf } in &fold.left_out {
            let (y, weight) = (
                training_set.target[row as usize],
                f64::from(training_set.weight[row as usize]),
            );
            total += weight;
            let mut node = leaf as usize;
            loop {
                let range = &candidate_ranges[node];
                if !range.is_empty() {
                    let loss = loss(training_set.kind, fold.tree.stats(node), y, plain);
                    changes[range.start] += weight * loss;
                    changes[range.end] -= weight * loss;
                }
                if node == 0 {
                    break;
                }
                node = fold.parent[node];
            }
        }
    }
    let running = changes[..n].iter().scan(0.0, |sum, change| {
        *sum += change;
        Some(*sum / total)
    });
    running.collect()
}

/// Loss of a left-out row: squared error for a regression, negative log-likelihood for a
/// classification.
fn loss(kind: CartTarget, stats: &[f64], y: f32, plain: &Smoothing) -> f64 {
    match kind {
        CartTarget::Number => (f64::from(y) - stats[1]).powi(2),
        CartTarget::Classes(_) => -plain.log_density(kind, stats, y),
    }
}

/// The candidate with the smallest loss; the smallest tree of several.
fn pick(scores: &[f64]) -> usize {
    (1..scores.len()).fold(
        0,
        |best, at| {
            if scores[at] <= scores[best] { at } else { best }
        },
    )
}

/// The left-out rows with their leaves in the trees pruned with `alpha`.
fn left_out<'a>(
    training_set: &TreeTrainingSet,
    folds: &'a [CvFold],
    alpha: f64,
) -> Vec<LeftOutRow<'a>> {
    let mut all = Vec::with_capacity(training_set.n_rows());
    for fold in folds {
        let ranges = fold.leaf_ranges();
        all.extend(
            fold.left_out
                .iter()
                .map(|&RoutedRow { row, leaf }| LeftOutRow {
                    stats: fold.tree.stats(fold.pruned_leaf(&ranges, leaf, alpha)),
                    target: training_set.target[row as usize],
                    weight: f64::from(training_set.weight[row as usize]),
                }),
        );
    }
    all
}

/// Some of the candidates, the best among them, as a user reads them.
fn trials(
    kind: CartTarget,
    candidates: &PruningCandidates,
    scores: &[f64],
    best: usize,
) -> Vec<Trial> {
    let n = scores.len();
    let step = n.div_ceil(MAX_TRIALS).max(1);
    (0..n)
        .filter(|&at| at == best || at % step == 0 || at + 1 == n)
        .map(|at| {
            let (alpha, leaves) = candidates.steps[at];
            let loss = scores[at];
            Trial {
                what: format!("{leaves} leaves, ccp_alpha {alpha:.3e}"),
                held_out: match kind {
                    // log-likelihood of a Normal distribution whose variance is the loss
                    CartTarget::Number => {
                        let variance = loss.max(MIN_LOSS);
                        log_density_of_square(variance, variance)
                    }
                    CartTarget::Classes(_) => -loss,
                },
            }
        })
        .collect()
}
