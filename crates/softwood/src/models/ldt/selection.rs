//! Selection of the shrinkage: a tree is grown and pruned for each candidate, and the one with the
//! largest likelihood of the validation rows is kept.

use crate::error::Result;
use crate::fit::Run;
use crate::model::Trial;
use crate::models::ldt::grow::{LdtLimits, grow};
use crate::models::ldt::params::LdtParams;
use crate::models::ldt::pruning::{KeptNodes, PrunedTree, Pruner};
use crate::models::ldt::rows::InputRows;
use crate::observer::Event;
use crate::stop::until_cancelled;
use crate::trees::leaf_posterior::{HeldOutLeaves, LeftOutRow, Smoothing};

/// Shrinkages that are compared.
const CANDIDATES: [f64; 4] = [0.001, 0.03, 0.3, 0.9];
/// Shrinkage without validation rows.
const DEFAULT_SHRINKAGE: f64 = 0.3;

/// Number of folds of the validation rows.
const FOLDS: usize = 5;

/// Training and validation rows of a fit.
#[derive(Debug)]
pub(super) struct LdtRows {
    pub(super) train: InputRows,
    pub(super) validation: Option<InputRows>,
    /// Smallest standard deviation of a prediction.
    pub(super) floor: f64,
}

/// A pruned tree with the smoothing of its leaves.
#[derive(Debug)]
pub(super) struct SelectedTree {
    pub(super) pruned: PrunedTree,
    pub(super) smoothing: Smoothing,
    /// Validation rows, which the noise of the selected tree is calibrated with.
    calibration: HeldOutLeaves,
    pub(super) shrinkage: f64,
    /// Number of leaves before pruning.
    pub(super) n_full: usize,
    /// The candidates with their validation scores.
    pub(super) trials: Vec<Trial>,
    /// Whether the observer stopped the fit before its end.
    pub(super) is_stopped: bool,
}

/// Grows and prunes the tree of each candidate and selects one. A fit that is stopped selects among
/// the trees that there are.
///
/// # Errors
/// When the observer discards the fit, or the fit is cancelled.
pub(super) fn select(params: &LdtParams, rows: &LdtRows, run: &Run<'_>) -> Result<SelectedTree> {
    let candidates = match (params.shrinkage, &rows.validation) {
        (Some(shrinkage), _) => vec![shrinkage],
        (None, Some(_)) => CANDIDATES.to_vec(),
        (None, None) => vec![DEFAULT_SHRINKAGE],
    };
    let (mut tree, mut best) = grown(params, rows, run, 0, candidates[0])?;
    let mut trials = vec![tree.trial(best)];
    for (trial, &shrinkage) in candidates.iter().enumerate().skip(1) {
        if tree.is_stopped {
            break;
        }
        let (other, score) = grown(params, rows, run, trial, shrinkage)?;
        let is_stopped = other.is_stopped;
        // a tree that is not complete is no candidate
        if !is_stopped {
            trials.push(other.trial(score));
            if score > best {
                (tree, best) = (other, score);
            }
        }
        tree.is_stopped = is_stopped;
    }
    if candidates.len() > 1 {
        tree.trials = trials;
    }
    let smoothing = tree.smoothing.clone();
    tree.smoothing = smoothing.calibrated(&tree.calibration, params.n_members);
    Ok(tree)
}

/// The pruned tree of a shrinkage, and the mean log-likelihood of the validation rows.
fn grown(
    params: &LdtParams,
    rows: &LdtRows,
    run: &Run<'_>,
    trial: usize,
    shrinkage: f64,
) -> Result<(SelectedTree, f64)> {
    let train = &rows.train;
    let limits = LdtLimits {
        max_depth: params.max_depth,
        min_weight: params.min_child_weight,
        shrinkage,
    };
    let grown = grow(train, &limits, run.pool, &|n_settled| {
        (run.observer).on_event(&Event {
            trial: Some(trial),
            ..Event::new("growing", n_settled, train.n_rows())
        })
    })?;
    let pruner = Pruner::new(&grown, train.kind);
    let plain = Smoothing::plain(train.kind, pruner.stats(0), rows.floor);
    let validated = match &rows.validation {
        Some(validation) => pruned_and_smoothed(&pruner, validation, &plain),
        None => ValidatedTree {
            kept: pruner.stump(),
            smoothing: plain,
            calibration: HeldOutLeaves::default(),
            score: 0.0,
        },
    };
    let tree = SelectedTree {
        n_full: grown.tree.n_leaves(),
        is_stopped: grown.is_stopped,
        trials: Vec::new(),
        pruned: pruner.pruned(&validated.kept),
        smoothing: validated.smoothing,
        calibration: validated.calibration,
        shrinkage,
    };
    Ok((tree, validated.score))
}

/// What the validation rows tell about a full tree.
struct ValidatedTree {
    kept: KeptNodes,
    smoothing: Smoothing,
    calibration: HeldOutLeaves,
    /// Mean log-likelihood of the validation rows.
    score: f64,
}

/// Prunes on the validation rows, and fits the smoothing to them.
///
/// A tree looks better on the rows that pruned it than on new ones. Smoothing and likelihood are
/// therefore those of the rows of each fold in the tree that the other folds prune.
fn pruned_and_smoothed(
    pruner: &Pruner<'_>,
    validation: &InputRows,
    plain: &Smoothing,
) -> ValidatedTree {
    let (kind, n_rows) = (validation.kind, validation.n_rows());
    let full_leaves = pruner.full_leaves(validation);
    let mut left_out = Vec::with_capacity(n_rows);
    for fold in until_cancelled(0..FOLDS) {
        let others = (0..n_rows).filter(|row| row % FOLDS != fold);
        let kept = pruner.reduced_error(validation, others, &full_leaves);
        left_out.extend((fold..n_rows).step_by(FOLDS).map(|row| LeftOutRow {
            stats: pruner.stats(pruner.pruned_leaf(&kept, full_leaves[row])),
            target: validation.target[row],
            weight: validation.weight[row],
        }));
    }
    let smoothing = plain.fit(kind, &left_out);
    let total: f64 = validation.weight.iter().sum();
    let density = |row: &LeftOutRow<'_>| smoothing.log_density(kind, row.stats, row.target);
    let sum: f64 = left_out.iter().map(|row| row.weight * density(row)).sum();
    let kept = pruner.reduced_error(validation, 0..n_rows, &full_leaves);
    ValidatedTree {
        kept,
        smoothing,
        calibration: HeldOutLeaves::new(kind, &left_out),
        score: sum / total,
    }
}

impl SelectedTree {
    fn trial(&self, score: f64) -> Trial {
        let n_leaves = self.pruned.tree.n_leaves();
        Trial {
            what: format!("shrinkage {}, {n_leaves} leaves", self.shrinkage),
            held_out: score,
        }
    }
}
