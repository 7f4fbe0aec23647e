//! Selection of the shrinkage: a tree is grown and pruned for each candidate, and the one with the
//! largest likelihood of the validation rows is kept.

use crate::error::Result;
use crate::fit::Run;
use crate::model::Trial;
use crate::models::ldt::grow::{LdtLimits, grow};
use crate::models::ldt::params::LdtParams;
use crate::models::ldt::pruning::{PrunedTree, reduced_error, stump};
use crate::models::ldt::rows::EncodedRows;
use crate::observer::Event;
use crate::trees::leaf_posterior::{LeftOutRow, Smoothing};

/// Shrinkages that are compared.
const CANDIDATES: [f64; 4] = [0.001, 0.03, 0.3, 0.9];
/// Shrinkage without validation rows.
const DEFAULT_SHRINKAGE: f64 = 0.3;

/// Training and validation rows of a fit.
#[derive(Debug)]
pub(super) struct LdtRows {
    pub(super) train: EncodedRows,
    pub(super) validation: Option<EncodedRows>,
    /// Smallest standard deviation of a prediction.
    pub(super) floor: f64,
}

/// A pruned tree with the smoothing of its leaves.
#[derive(Debug)]
pub(super) struct SelectedTree {
    pub(super) pruned: PrunedTree,
    pub(super) smoothing: Smoothing,
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
    let pruned = match &rows.validation {
        Some(validation) => reduced_error(&grown, validation),
        None => stump(&grown, train.kind),
    };
    let plain = Smoothing::plain(train.kind, &pruned.root_stats(train.kind), rows.floor);
    let (smoothing, score) = match &rows.validation {
        Some(validation) => smoothed(&plain, &pruned, validation),
        None => (plain, 0.0),
    };
    let tree = SelectedTree {
        n_full: grown.tree.n_leaves(),
        is_stopped: grown.is_stopped,
        trials: Vec::new(),
        pruned,
        smoothing,
        shrinkage,
    };
    Ok((tree, score))
}

/// The smoothing with the largest likelihood of the validation rows, and their mean log-likelihood.
fn smoothed(plain: &Smoothing, pruned: &PrunedTree, validation: &EncodedRows) -> (Smoothing, f64) {
    let kind = validation.kind;
    let n_stats = kind.n_stats();
    let rows: Vec<LeftOutRow<'_>> = (0..validation.n_rows())
        .map(|row| {
            let leaf = pruned.tree.leaf(validation.row(row));
            LeftOutRow {
                stats: &pruned.leaves[leaf * n_stats..(leaf + 1) * n_stats],
                target: validation.target[row],
                weight: validation.weight[row],
            }
        })
        .collect();
    let smoothing = plain.fit(kind, &rows);
    let total: f64 = validation.weight.iter().sum();
    let density = |row: &LeftOutRow<'_>| smoothing.log_density(kind, row.stats, row.target);
    let score = rows
        .iter()
        .map(|row| row.weight * density(row))
        .sum::<f64>()
        / total;
    (smoothing, score)
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
