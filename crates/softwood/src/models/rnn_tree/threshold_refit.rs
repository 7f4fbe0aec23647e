//! Exact refit of the thresholds of a tree: each threshold in turn, from the leaves to the root, is
//! moved to the bin where the rows of its node have the smallest loss in the branches below.

use crate::models::rnn_tree::rows::{FitRow, RouteRows, row_loss};
use crate::stop::is_cancelled;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::histogram::BINS;
use crate::trees::structure::TreeStructure;

/// Largest number of passes over the tree; leaf values are computed anew before each.
const MAX_SWEEPS: usize = 20;
/// Relative reduction of the loss that moves a threshold.
const MIN_REDUCTION: f64 = 1e-9;

/// Moves the thresholds of a tree to the best places for the training rows, or with
/// `uses_validation` for all rows of the fit.
pub(super) fn refit_thresholds(
    rows: &RouteRows<'_>,
    uses_validation: bool,
    structure: &mut TreeStructure,
) {
    let TreeStructure::General {
        conditions,
        children,
    } = structure
    else {
        return;
    };
    if conditions.is_empty() {
        return;
    }
    let all = if uses_validation {
        rows.all()
    } else {
        rows.train.iter().collect()
    };
    for _ in 0..MAX_SWEEPS {
        let mut refit = Refit {
            rows,
            children,
            values: Vec::new(),
            has_moved: false,
        };
        refit.set_values(conditions, &all);
        refit.node(conditions, 0, &all);
        if !refit.has_moved {
            break;
        }
    }
}

struct Refit<'a> {
    rows: &'a RouteRows<'a>,
    children: &'a [[i32; 2]],
    /// Leaves x statistics.
    values: Vec<f64>,
    has_moved: bool,
}

impl Refit<'_> {
    fn set_values(&mut self, conditions: &[BinCondition], all: &[FitRow]) {
        let kind = self.rows.kind();
        let n_stats = kind.n_stats();
        self.values = vec![0.0; (conditions.len() + 1) * n_stats];
        for &(row, weight, target) in all {
            let leaf = self.leaf(conditions, 0, row);
            let stats = &mut self.values[leaf * n_stats..(leaf + 1) * n_stats];
            kind.push(stats, target, weight);
        }
    }

    /// The leaf of a row below a child.
    fn leaf(&self, conditions: &[BinCondition], mut at: i32, row: usize) -> usize {
        while at >= 0 {
            let condition = &conditions[at as usize];
            let bin = self.rows.set.binned.bin(row, condition.column);
            at = self.children[at as usize][usize::from(condition.goes_right(bin))];
        }
        !at as usize
    }

    fn loss(&self, leaf: usize, target: f32) -> f64 {
        let kind = self.rows.kind();
        let n_stats = kind.n_stats();
        row_loss(
            kind,
            &self.values[leaf * n_stats..(leaf + 1) * n_stats],
            target,
        )
    }

    /// Refits the branch of a node, whose rows are given.
    fn node(&mut self, conditions: &mut [BinCondition], node: usize, rows: &[FitRow]) {
        if is_cancelled() {
            return;
        }
        let condition = conditions[node];
        let bin = |row: &FitRow| self.rows.set.binned.bin(row.0, condition.column);
        let (right, left): (Vec<FitRow>, Vec<FitRow>) =
            rows.iter().partition(|row| condition.goes_right(bin(row)));
        for (child, rows) in self.children[node].into_iter().zip([left, right]) {
            if child >= 0 {
                self.node(conditions, child as usize, &rows);
            }
        }
        let RightBins::Above {
            bin: current,
            missing_right,
        } = condition.right_bins
        else {
            return;
        };
        let [left, right] = self.children[node];
        // how much more a row of each bin loses on the right
        let mut excess = [0.0; BINS];
        let mut weight_of = [0.0; BINS];
        for &(row, weight, target) in rows {
            let of_right = self.loss(self.leaf(conditions, right, row), target);
            let of_left = self.loss(self.leaf(conditions, left, row), target);
            let bin = usize::from(self.rows.set.binned.bin(row, condition.column));
            excess[bin] += weight * (of_right - of_left);
            weight_of[bin] += weight;
        }
        let n_bins = self.rows.set.cuts.columns[condition.column].n_bins().max(2);
        let total: f64 = weight_of[1..].iter().sum();
        let (mut above, mut weight_above) = (0.0, 0.0);
        let mut costs = vec![f64::INFINITY; n_bins];
        for threshold in (1..n_bins).rev() {
            if weight_above > 0.0 && weight_above < total {
                costs[threshold] = above;
            }
            above += excess[threshold];
            weight_above += weight_of[threshold];
        }
        let now = costs[usize::from(current)];
        let best = (1..n_bins).min_by(|&a, &b| costs[a].total_cmp(&costs[b]));
        if let Some(best) =
            best.filter(|&best| costs[best] + MIN_REDUCTION * costs[best].abs() < now)
        {
            conditions[node].right_bins = RightBins::Above {
                bin: best as u8,
                missing_right,
            };
            self.has_moved = true;
        }
    }
}
