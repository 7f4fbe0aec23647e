//! How far to prune, and how much to smooth: cross-validation over the trees of the cost-complexity path.

use crate::error::Result;
use crate::fit::Run;
use crate::model::Trial;
use crate::models::tree::leaf::{LeftOut, Smoothing};
use crate::observer::Progress;
use crate::par::Pool;
use crate::rng::shuffle;
use crate::trees::cart::pruning::{NodeStatistics, PruningPath};
use crate::trees::cart::{Cart, CartData, CartLimits, CartTarget, grow};
use crate::trees::routing::RowBins;
use crate::trees::training_set::TreeTrainingSet;

/// Folds.
const FOLDS: usize = 10;
/// Most trials that are kept for the reader.
const MAX_TRIALS: usize = 12;

/// The full tree and the values of alpha that may be chosen.
#[derive(Debug)]
pub(super) struct PruningCandidates {
    /// Alpha of each, ascending, and the leaves that it leaves.
    pub(super) steps: Vec<(f64, usize)>,
    /// Where each is tried on other trees: the middle between it and the next.
    betas: Vec<f64>,
}

impl PruningCandidates {
    /// All trees of the path with at most `max_leaves` leaves, or the one of `alpha`.
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
        let betas: Vec<f64> = (0..steps.len()).map(middle).collect();
        let is_small = |at: &usize| max_leaves.is_none_or(|most| steps[*at].1 <= most);
        let allowed: Vec<usize> = (0..steps.len()).filter(is_small).collect();
        let kept = match alpha {
            // the last tree that alpha does not cut further, if it is small enough
            Some(alpha) => {
                let at = steps.iter().rposition(|step| step.0 <= alpha).unwrap_or(0);
                vec![at.max(allowed[0])]
            }
            None => allowed,
        };
        Self {
            steps: kept.iter().map(|&at| steps[at]).collect(),
            betas: kept.iter().map(|&at| betas[at]).collect(),
        }
    }
}

/// What was chosen.
#[derive(Debug)]
pub(super) struct ChosenPruning {
    pub(super) alpha: f64,
    pub(super) smoothing: Smoothing,
    pub(super) trials: Vec<Trial>,
}

/// A fold's tree, its path, and where the rows left out came to.
#[derive(Debug)]
struct CvFold {
    tree: NodeStatistics,
    path: PruningPath,
    /// Parents of nodes.
    parent: Vec<usize>,
    /// Row and leaf.
    left_out: Vec<(u32, u32)>,
}

/// Chooses alpha and smoothing; without enough rows the first candidate and plain smoothing.
pub(super) fn choose(
    training_set: &TreeTrainingSet,
    candidates: &PruningCandidates,
    limits: &CartLimits,
    plain: &Smoothing,
    run: &Run<'_>,
) -> Result<ChosenPruning> {
    let n_rows = training_set.n_rows();
    if n_rows < FOLDS {
        return Ok(ChosenPruning {
            alpha: candidates.steps[0].0,
            smoothing: plain.clone(),
            trials: Vec::new(),
        });
    }
    let folds = folds(training_set, limits, run)?;
    let scores = scores(training_set, candidates, &folds, plain);
    let best = pick(&scores);
    let left_out = left_out(training_set, &folds, candidates.betas[best]);
    let (smoothing, _) = plain.fit(training_set.kind, &left_out);
    Ok(ChosenPruning {
        alpha: candidates.steps[best].0,
        smoothing,
        trials: trials(training_set.kind, candidates, &scores, best),
    })
}

fn folds(
    training_set: &TreeTrainingSet,
    limits: &CartLimits,
    run: &Run<'_>,
) -> Result<Vec<CvFold>> {
    let n_rows = training_set.n_rows();
    let mut fold_of: Vec<usize> = (0..n_rows).map(|at| at % FOLDS).collect();
    shuffle(&mut run.key.child(1).rng(), &mut fold_of);
    let bins = RowBins::new(&training_set.binned);
    let alone = Pool::new(1)?;
    let field = training_set.cart_data(&alone);
    let folds = run.pool.map(FOLDS, |fold| {
        let observer = || {
            run.observer.step(&Progress {
                stage: "cross-validating",
                done: fold,
                total: FOLDS,
                elbo: None,
                held_out: None,
            })
        };
        let weight: Vec<f32> = training_set
            .weight
            .iter()
            .zip(&fold_of)
            .map(|(&weight, &of)| if of == fold { 0.0 } else { weight })
            .collect();
        let key = run.key.child(2).child(fold as u64);
        let cart = grow(&field, &weight, limits, key, &observer)?;
        let rows = (0..n_rows).filter(|&row| fold_of[row] == fold);
        Ok(CvFold::new(&field, &cart, &bins, rows))
    });
    folds.into_iter().collect()
}

impl CvFold {
    fn new(
        field: &CartData<'_>,
        cart: &Cart,
        bins: &RowBins,
        rows: impl Iterator<Item = usize>,
    ) -> Self {
        let tree = NodeStatistics::new(field.kind, &cart.structure, &cart.leaves);
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
                .map(|row| {
                    (
                        row as u32,
                        (n_conditions + bins.leaf(&cart.structure, row)) as u32,
                    )
                })
                .collect(),
        }
    }

    /// Between which values of alpha each node is a leaf.
    fn spans(&self) -> Vec<(f64, f64)> {
        let n_conditions = self.tree.children.len();
        let mut spans = vec![(0.0, f64::INFINITY); self.tree.n_nodes()];
        for node in 0..self.tree.n_nodes() {
            // parents stand before children among conditions, and before all leaves
            let end = if node == 0 {
                f64::INFINITY
            } else {
                let above = self.parent[node];
                spans[above].1.min(self.path.cut_at[above])
            };
            let start = if node < n_conditions {
                self.path.cut_at[node]
            } else {
                f64::NEG_INFINITY
            };
            spans[node] = (start, end);
        }
        spans
    }

    /// The node that is a leaf for alpha on the way to `leaf`.
    fn node_at(&self, spans: &[(f64, f64)], leaf: u32, alpha: f64) -> usize {
        let mut node = leaf as usize;
        while node > 0 && spans[node].1 <= alpha {
            node = self.parent[node];
        }
        node
    }
}

/// Mean loss of the rows left out, by candidate.
fn scores(
    training_set: &TreeTrainingSet,
    candidates: &PruningCandidates,
    folds: &[CvFold],
    plain: &Smoothing,
) -> Vec<f64> {
    let betas = &candidates.betas;
    let n = betas.len();
    // sums over rows, as differences from candidate to candidate
    let mut sums = vec![0.0; n + 1];
    let mut total = 0.0;
    for fold in folds {
        let spans = fold.spans();
        let range: Vec<(usize, usize)> = spans
            .iter()
            .map(|&(start, end)| {
                let first = |alpha: f64| betas.partition_point(|&beta| beta < alpha);
                (first(start), first(end))
            })
            .collect();
        for &(row, leaf) in &fold.left_out {
            let (y, weight) = (
                training_set.target[row as usize],
                f64::from(training_set.weight[row as usize]),
            );
            total += weight;
            let mut node = leaf as usize;
            loop {
                let (start, end) = range[node];
                if start < end {
                    let loss = loss(training_set.kind, fold.tree.stats(node), y, plain);
                    sums[start] += weight * loss;
                    sums[end] -= weight * loss;
                }
                if node == 0 {
                    break;
                }
                node = fold.parent[node];
            }
        }
    }
    let running = sums[..n].iter().scan(0.0, |sum, change| {
        *sum += change;
        Some(*sum / total)
    });
    running.collect()
}

/// Loss of a row that was left out: the squared error of a number, less the log-likelihood of a class.
fn loss(kind: CartTarget, stats: &[f64], y: f32, plain: &Smoothing) -> f64 {
    match kind {
        CartTarget::Number => (f64::from(y) - stats[1]).powi(2),
        CartTarget::Classes(_) => -plain.log_density(kind, stats, y),
    }
}

/// The smallest tree among those of least loss.
fn pick(scores: &[f64]) -> usize {
    (1..scores.len()).fold(
        0,
        |best, at| {
            if scores[at] <= scores[best] { at } else { best }
        },
    )
}

/// What every row that was left out came to.
fn left_out<'a>(
    training_set: &TreeTrainingSet,
    folds: &'a [CvFold],
    beta: f64,
) -> Vec<LeftOut<'a>> {
    let mut all = Vec::with_capacity(training_set.n_rows());
    for fold in folds {
        let spans = fold.spans();
        all.extend(fold.left_out.iter().map(|&(row, leaf)| {
            let stats = fold.tree.stats(fold.node_at(&spans, leaf, beta));
            (
                stats,
                training_set.target[row as usize],
                f64::from(training_set.weight[row as usize]),
            )
        }));
    }
    all
}

/// A few of the candidates, with the chosen one, as a reader sees them.
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
                    // the log-likelihood of a Normal law whose variance is the loss
                    CartTarget::Number => {
                        -0.5 * (std::f64::consts::TAU * loss.max(1e-12)).ln() - 0.5
                    }
                    CartTarget::Classes(_) => -loss,
                },
            }
        })
        .collect()
}
