//! Averages of potential outcomes as linear functions of the two regression functions, with or
//! without the correction that makes them doubly robust (AIPW).
//!
//! With the functions `mu1` and `mu0`, treatment `a`, outcome `y` and propensity `e`, the value is
//!
//! ```text
//! sum_i  p1_i mu1(x_i) + p0_i mu0(x_i) + r1_i (y_i - mu1(x_i)) + r0_i (y_i - mu0(x_i)) - c_i
//! ```
//!
//! with a cost `c_i` of the row, which is zero but for policies. The average effect of `n` rows has
//! `p1 = 1/n`, `p0 = -1/n`, `r1 = a / (e n)` and `r0 = -(1 - a) / ((1 - e) n)`.

use crate::decide::causal::config::EffectScope;

/// Coefficients of the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinearScore {
    /// Coefficients of the two functions: treated, control.
    pub(super) plug: [Vec<f64>; 2],
    /// Coefficients of the residuals of the two functions; `None` without a correction.
    pub(super) residual: Option<[Vec<f64>; 2]>,
    /// Share of each row in the average.
    mass: Vec<f64>,
    /// Cost of each row, times its share; empty if there are no costs. The value does not contain it,
    /// the variance over other rows does.
    costs: Vec<f64>,
}

/// Treatment and propensity of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assignment<'a> {
    pub(super) is_treated: &'a [bool],
    /// Clipped propensities; `None` for averages without a correction.
    pub(super) propensity: Option<&'a [f64]>,
}

/// Outcomes and predicted means of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcomes<'a> {
    pub(super) y: &'a [f64],
    pub(super) treated: &'a [f64],
    pub(super) control: &'a [f64],
}

impl LinearScore {
    /// The average effect over all rows.
    pub(super) fn average_effect(rows: Assignment<'_>) -> Self {
        let n = rows.is_treated.len();
        Self::of_rows(rows, |_| (1.0, -1.0), vec![1.0 / n as f64; n])
    }

    /// The average effect over the treated rows. Control rows stand for treated ones with the odds
    /// of treatment as weights, so that the propensities of treated rows are not needed.
    pub(super) fn effect_on_treated(rows: Assignment<'_>) -> Self {
        let n_treated = rows.is_treated.iter().filter(|&&a| a).count() as f64;
        let mass: Vec<f64> = rows
            .is_treated
            .iter()
            .map(|&a| if a { 1.0 / n_treated } else { 0.0 })
            .collect();
        let odds = rows.propensity.map(|propensity| {
            let control = propensity.iter().zip(rows.is_treated);
            let control = control.map(|(e, &a)| if a { 0.0 } else { -e / (1.0 - e) / n_treated });
            [mass.clone(), control.collect()]
        });
        Self {
            plug: [mass.clone(), mass.iter().map(|share| -share).collect()],
            residual: odds,
            mass,
            costs: Vec::new(),
        }
    }

    /// The average outcome if the rows are treated as decided.
    pub(super) fn policy_value(rows: Assignment<'_>, decisions: &[bool]) -> Self {
        let n = decisions.len();
        let coefficients = |row: usize| {
            if decisions[row] {
                (1.0, 0.0)
            } else {
                (0.0, 1.0)
            }
        };
        Self::of_rows(rows, coefficients, vec![1.0 / n as f64; n])
    }

    /// The average effect of the decisions against treating no row.
    pub(super) fn policy_gain(rows: Assignment<'_>, decisions: &[bool]) -> Self {
        let n = decisions.len();
        let coefficients = |row: usize| {
            if decisions[row] {
                (1.0, -1.0)
            } else {
                (0.0, 0.0)
            }
        };
        Self::of_rows(rows, coefficients, vec![1.0 / n as f64; n])
    }

    /// The score with these coefficients of the two functions for a row, times its share.
    fn of_rows(
        rows: Assignment<'_>,
        coefficients: impl Fn(usize) -> (f64, f64),
        mass: Vec<f64>,
    ) -> Self {
        let n = mass.len();
        let treated: Vec<f64> = (0..n).map(|row| mass[row] * coefficients(row).0).collect();
        let control: Vec<f64> = (0..n).map(|row| mass[row] * coefficients(row).1).collect();
        let residual = rows.propensity.map(|propensity| {
            let weighted = |row: usize| {
                let e = propensity[row];
                if rows.is_treated[row] {
                    (treated[row] / e, 0.0)
                } else {
                    (0.0, control[row] / (1.0 - e))
                }
            };
            let (treated, control) = (0..n).map(weighted).unzip();
            [treated, control]
        });
        Self {
            plug: [treated, control],
            residual,
            mass,
            costs: Vec::new(),
        }
    }

    /// The score less a cost of each treated row.
    pub(super) fn with_cost(mut self, cost: f64, decisions: &[bool]) -> Self {
        let pairs = self.mass.iter().zip(decisions);
        self.costs = pairs
            .map(|(mass, &treat)| if treat { mass * cost } else { 0.0 })
            .collect();
        self
    }

    /// Coefficients of the two functions in the value, for a row.
    pub(super) fn coefficients(&self, row: usize) -> (f64, f64) {
        let [plug1, plug0] = &self.plug;
        match &self.residual {
            None => (plug1[row], plug0[row]),
            Some([r1, r0]) => (plug1[row] - r1[row], plug0[row] - r0[row]),
        }
    }

    /// The part of the value that does not depend on the functions.
    pub(super) fn constant(&self, y: &[f64]) -> f64 {
        let Some([r1, r0]) = &self.residual else {
            return 0.0;
        };
        (0..y.len()).map(|row| (r1[row] + r0[row]) * y[row]).sum()
    }

    /// The correction of a row: its weighted residuals.
    pub(super) fn correction(&self, rows: Outcomes<'_>, row: usize) -> f64 {
        let Some([r1, r0]) = &self.residual else {
            return 0.0;
        };
        r1[row] * (rows.y[row] - rows.treated[row]) + r0[row] * (rows.y[row] - rows.control[row])
    }

    /// Variance of the value over the outcomes of other draws of the same rows, or over other rows
    /// of the population.
    pub(super) fn sampling_variance(&self, rows: Outcomes<'_>, scope: EffectScope) -> f64 {
        let n = rows.y.len();
        let corrections: Vec<f64> = (0..n).map(|row| self.correction(rows, row)).collect();
        let deviations: Vec<f64> = match scope {
            EffectScope::Sample => {
                let mean = corrections.iter().sum::<f64>() / n as f64;
                corrections.iter().map(|value| value - mean).collect()
            }
            EffectScope::Population => {
                let score = |row: usize| {
                    self.plug[0][row] * rows.treated[row]
                        + self.plug[1][row] * rows.control[row]
                        + corrections[row]
                        - self.costs.get(row).copied().unwrap_or(0.0)
                };
                let scores: Vec<f64> = (0..n).map(score).collect();
                let value: f64 = scores.iter().sum();
                let pairs = scores.iter().zip(&self.mass);
                pairs.map(|(score, mass)| score - mass * value).collect()
            }
        };
        let freedom = n as f64 / (n as f64 - 1.0).max(1.0);
        freedom * deviations.iter().map(|value| value * value).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    const Y: [f64; 4] = [5.0, 1.0, 3.0, 2.0];
    const MU1: [f64; 4] = [4.0, 4.0, 5.0, 5.0];
    const MU0: [f64; 4] = [2.0, 2.0, 1.0, 1.0];
    const E: [f64; 4] = [0.5, 0.5, 0.25, 0.2];
    const A: [bool; 4] = [true, false, true, false];

    fn value(score: &LinearScore) -> f64 {
        let rows = 0..4;
        let functions: f64 = rows
            .map(|row| {
                let (treated, control) = score.coefficients(row);
                treated * MU1[row] + control * MU0[row]
            })
            .sum();
        functions + score.constant(&Y)
    }

    fn outcomes() -> Outcomes<'static> {
        Outcomes {
            y: &Y,
            treated: &MU1,
            control: &MU0,
        }
    }

    fn assignment() -> Assignment<'static> {
        Assignment {
            is_treated: &A,
            propensity: Some(&E),
        }
    }

    #[test]
    fn aipw_by_hand() {
        // effects 2, 2, 4, 4; corrections 1/0.5 = 2, -(-1)/0.5 = 2, -2/0.25 = -8, -(1)/0.8 = -1.25
        let score = LinearScore::average_effect(assignment());
        close(
            &[value(&score)],
            &[(12.0 + 2.0 + 2.0 - 8.0 - 1.25) / 4.0],
            1e-12,
        );
        let corrections: Vec<f64> = (0..4)
            .map(|row| 4.0 * score.correction(outcomes(), row))
            .collect();
        close(&corrections, &[2.0, 2.0, -8.0, -1.25], 1e-12);
        // variance of the four scores 4, 4, -4, 2.75 divided by 4
        let found = score.sampling_variance(outcomes(), EffectScope::Population);
        close(
            &[found],
            &[(2.0 * 2.3125_f64.powi(2) + 5.6875_f64.powi(2) + 1.0625_f64.powi(2)) / 3.0 / 4.0],
            1e-12,
        );
    }

    #[test]
    fn effect_on_the_treated_by_hand() {
        // treated: (5 - 2 + 3 - 1) / 2; control: odds 1 and 0.25, residuals -1 and 1
        let score = LinearScore::effect_on_treated(assignment());
        close(&[value(&score)], &[2.5 - f64::midpoint(-1.0, 0.25)], 1e-12);
    }

    #[test]
    fn policy_value_by_hand() {
        // rows 0 and 3 are treated; only the residuals of row 0, and no control row, agree with it
        let decisions = [true, false, false, true];
        let score = LinearScore::policy_value(assignment(), &decisions);
        // mu: 4, 2, 1, 5; corrections: 1/0.5, -1/0.5, 0, 0
        close(&[value(&score)], &[12.0 / 4.0], 1e-12);
        let gain = LinearScore::policy_gain(assignment(), &decisions);
        // effects of rows 0 and 3: 2 + 2, 4 - 1.25
        close(&[value(&gain)], &[6.75 / 4.0], 1e-12);
    }

    #[test]
    fn without_a_correction_the_value_is_the_mean_of_the_functions() {
        let rows = Assignment {
            propensity: None,
            ..assignment()
        };
        let score = LinearScore::average_effect(rows);
        close(&[value(&score)], &[3.0], 1e-12);
        assert!(
            score
                .sampling_variance(outcomes(), EffectScope::Sample)
                .abs()
                < 1e-15
        );
        let found = score.sampling_variance(outcomes(), EffectScope::Population);
        close(&[found], &[4.0 / 3.0 / 4.0], 1e-12);
    }
}
