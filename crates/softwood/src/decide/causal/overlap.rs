//! Overlap of the two arms: propensities near 0 or 1, and rows whose counterfactual outcome is known
//! far less than factual outcomes are.

use serde::Serialize;

use crate::decide::causal::config::{CausalConfig, CausalMethod};
use crate::decide::causal::row_means::RowMeans;
use crate::decide::causal::treated_rows::TreatedRows;

/// Propensities outside of these bounds mean that hardly any similar row has the other treatment.
const BOUNDS: (f64, f64) = (0.05, 0.95);
/// A counterfactual outcome is extrapolated if its knowledge uncertainty exceeds this multiple of
/// the upper factual ones.
const EXTRAPOLATION_FACTOR: f64 = 2.0;
/// Level of the factual knowledge uncertainty that counterfactual ones are compared with.
const UPPER_FACTUAL: f64 = 0.9;
/// Share of the rows from which on a warning is given.
const MIN_WARNED_SHARE: f64 = 0.05;

/// How well the arms overlap.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OverlapReport {
    /// Number of treated rows.
    pub n_treated: usize,
    /// Number of control rows.
    pub n_control: usize,
    /// Probability of treatment of each row, by a model that has not seen the row.
    #[serde(skip)]
    pub propensity: Vec<f64>,
    /// Number of rows with a propensity below 0.05: such rows are almost never treated.
    pub n_below: usize,
    /// Number of rows with a propensity above 0.95: such rows are almost always treated.
    pub n_above: usize,
    /// Share of the rows with a propensity outside of 0.05 to 0.95.
    pub share_outside: f64,
    /// Number of rows whose propensity was clipped in the scores.
    pub n_clipped: usize,
    /// Knowledge (epistemic) standard deviation of the outcome under the treatment that the row had.
    #[serde(skip)]
    pub factual_knowledge: Vec<f64>,
    /// Knowledge standard deviation of the outcome under the other treatment.
    #[serde(skip)]
    pub counterfactual_knowledge: Vec<f64>,
    /// Median of the factual knowledge.
    pub median_factual_knowledge: f64,
    /// Median of the counterfactual knowledge.
    pub median_counterfactual_knowledge: f64,
    /// Number of rows whose counterfactual knowledge is more than twice the 90% quantile of the
    /// factual one.
    pub n_extrapolated: usize,
    /// Reasons not to trust the effects of some rows, in words.
    pub warnings: Vec<String>,
}

impl OverlapReport {
    pub(super) fn new(
        data: &TreatedRows,
        propensity: &[f64],
        rows: &RowMeans,
        config: &CausalConfig,
    ) -> Self {
        let count = |is_counted: &dyn Fn(f64) -> bool| {
            propensity.iter().filter(|&&e| is_counted(e)).count()
        };
        let n = data.n_rows();
        let n_treated = data.arm(true).len();
        let (n_below, n_above) = (count(&|e| e < BOUNDS.0), count(&|e| e > BOUNDS.1));
        let n_clipped = if config.method == CausalMethod::DoublyRobust {
            count(&|e| e < config.clip || e > 1.0 - config.clip)
        } else {
            0
        };
        let limit = EXTRAPOLATION_FACTOR * quantile(&rows.factual_sd, UPPER_FACTUAL);
        let is_extrapolated = |sd: &&f64| **sd > limit;
        let n_extrapolated = rows
            .counterfactual_sd
            .iter()
            .filter(is_extrapolated)
            .count();
        let mut report = Self {
            n_treated,
            n_control: n - n_treated,
            propensity: propensity.to_vec(),
            n_below,
            n_above,
            share_outside: (n_below + n_above) as f64 / n as f64,
            n_clipped,
            factual_knowledge: rows.factual_sd.clone(),
            counterfactual_knowledge: rows.counterfactual_sd.clone(),
            median_factual_knowledge: quantile(&rows.factual_sd, 0.5),
            median_counterfactual_knowledge: quantile(&rows.counterfactual_sd, 0.5),
            n_extrapolated,
            warnings: Vec::new(),
        };
        report.warnings = report.in_words(data);
        report
    }

    fn in_words(&self, data: &TreatedRows) -> Vec<String> {
        let n = data.n_rows();
        let is_many = |count: usize| count as f64 > MIN_WARNED_SHARE * n as f64;
        let percent = |count: usize| format!("{:.0}%", 100.0 * count as f64 / n as f64);
        let mut warnings = Vec::new();
        if is_many(self.n_below + self.n_above) {
            let count = self.n_below + self.n_above;
            warnings.push(format!(
                "{count} of {n} rows ({}) have a propensity outside of {} to {}: almost all rows like these have the \
                 same treatment, and their effects rest on extrapolation",
                percent(count),
                BOUNDS.0,
                BOUNDS.1
            ));
        }
        if is_many(self.n_extrapolated) {
            warnings.push(format!(
                "for {} of {n} rows ({}) the outcome under the other treatment is known far less than outcomes that \
                 were seen (more than twice the knowledge uncertainty of 90% of the rows)",
                self.n_extrapolated,
                percent(self.n_extrapolated)
            ));
        }
        warnings
    }
}

/// The quantile of some values, linear between neighbouring ones.
fn quantile(values: &[f64], level: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = level * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}
