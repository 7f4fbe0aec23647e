//! Inputs of numeric columns: standardised, or mapped through their ranks to a standard Normal.

use serde::{Deserialize, Serialize};

use crate::data::column::Values;
use crate::data::encoding::{LIMIT, Scaling};
use crate::data::ranks::values_by_rank;
use crate::data::table::Table;
use crate::data::target::TargetUnits;
use crate::data::unseen::N_QUANTILES;

/// Number of knots of the quantile scaling.
const N_KNOTS: usize = 200;

/// The input of a numeric column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NumericColumn {
    /// Index of the column in the schema.
    pub(super) column: usize,
    /// Replaces a missing cell.
    pub(super) mean: f64,
    pub(super) sd: f64,
    /// Whether there is an indicator input for missing cells.
    pub(super) has_missing: bool,
    /// Values at equal steps of rank for quantile scaling; empty for standard scaling.
    pub(super) knots: Vec<f64>,
    /// Values at equal steps of rank, which replace missing cells if training had none; empty if it had
    /// some, and in files of earlier versions.
    #[serde(default)]
    pub(super) quantiles: Vec<f64>,
}

impl NumericColumn {
    /// `None` for an uninformative column: all cells missing, or constant without missing cells.
    pub(super) fn fit(
        column: usize,
        values: &[f64],
        weights: &[f64],
        scaling: Scaling,
    ) -> Option<Self> {
        let mut present: Vec<(f64, f64)> = values
            .iter()
            .copied()
            .zip(weights.iter().copied())
            .filter(|(value, _)| !value.is_nan())
            .collect();
        let has_missing = present.len() < values.len();
        present.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (present.first()?.0, present.last()?.0);
        let magnitude = first.abs().max(last.abs());
        let is_constant = last - first <= 1e-12 * magnitude;
        if is_constant && !has_missing {
            return None;
        }
        let (sorted, weights): (Vec<f64>, Vec<f64>) = present.into_iter().unzip();
        let TargetUnits {
            shift: mean,
            scale: sd,
        } = TargetUnits::fit(&sorted, Some(&weights));
        let uses_ranks = scaling == Scaling::Quantile && !is_constant;
        let knots = if uses_ranks {
            values_by_rank(&sorted, &weights, N_KNOTS)
        } else {
            Vec::new()
        };
        let quantiles = if has_missing {
            Vec::new()
        } else {
            values_by_rank(&sorted, &weights, N_QUANTILES)
        };
        Some(Self {
            column,
            mean,
            sd,
            has_missing,
            knots,
            quantiles,
        })
    }

    /// Whether a column that was read from a file can be scaled: its knots ascend.
    pub(super) fn is_sound(&self) -> bool {
        let lists = self.knots.iter().chain(&self.quantiles);
        let numbers = lists.chain([&self.mean, &self.sd]);
        numbers.copied().all(f64::is_finite)
            && self.sd > 0.0
            && self.knots.len() != 1
            && self.knots.is_sorted()
    }

    pub(super) fn cell(&self, table: &Table, row: usize) -> f64 {
        match &table.columns()[self.column].values {
            Values::Numeric(values) => values[row],
            Values::Categorical { .. } => f64::NAN,
        }
    }

    /// Whether a missing cell tells nothing, because training had none.
    pub(super) fn is_unseen(&self, table: &Table, row: usize) -> bool {
        !self.quantiles.is_empty() && self.cell(table, row).is_nan()
    }

    pub(super) fn scale(&self, value: f64) -> f64 {
        if value.is_nan() {
            return 0.0;
        }
        if self.knots.is_empty() {
            ((value - self.mean) / self.sd).clamp(-LIMIT, LIMIT)
        } else {
            self.rank_score(value)
        }
    }

    /// Normal score of the interpolated rank of a value; outside the range of the knots it
    /// continues with the slope of standard scaling.
    fn rank_score(&self, value: f64) -> f64 {
        let last = self.knots.len() - 1;
        let next = self.knots.partition_point(|&knot| knot < value);
        let score = |rank: f64| normal_score((rank + 0.5) / (last as f64 + 1.0));
        if next == 0 || next > last {
            let end = if next == 0 { 0 } else { last };
            let beyond = (value - self.knots[end]) / self.sd;
            return (score(end as f64) + beyond).clamp(-LIMIT, LIMIT);
        }
        // a value at several equal knots has the mean of their ranks
        let low = self.knots[next - 1];
        let high = self.knots[next];
        let run_end = self.knots.partition_point(|&knot| knot <= value);
        if run_end > next {
            return score(0.5 * (next as f64 + (run_end - 1) as f64));
        }
        // the difference of two halves does not overflow
        score((next - 1) as f64 + (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low))
    }
}

/// The standard Normal quantile of level `p`.
fn normal_score(p: f64) -> f64 {
    std::f64::consts::SQRT_2 * statrs::function::erf::erf_inv(2.0 * p - 1.0)
}
