//! The value of a policy from logged choices of another policy: inverse propensity, self-normalised and
//! doubly robust estimates with intervals.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::data::dataset::Dataset;
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::Target;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::models::ModelSpec;
use crate::rng::shuffle;

/// Smallest number of rewards of an arm that a model is fitted to; fewer give their mean.
const MIN_ROWS: usize = 10;

/// Random streams of the cross-fitting.
mod streams {
    pub(super) const FOLDS: u64 = 0;
    pub(super) const FITS: u64 = 1;
}

/// Choices of a logging policy and their rewards.
#[derive(Debug, Clone, Copy)]
pub struct LoggedChoices<'a> {
    /// Number of arms.
    pub n_arms: usize,
    /// Arm of each row.
    pub arms: &'a [u32],
    /// Reward of each row.
    pub rewards: &'a [f64],
    /// Probability with which the logging policy chose the arm of each row.
    pub propensities: &'a [f64],
}

/// An estimate of the mean reward of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PolicyValue {
    /// Estimated mean reward.
    pub value: f64,
    /// Its standard error.
    pub std_error: f64,
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
}

/// All estimates of the value of a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PolicyValues {
    /// Inverse propensity estimate: mean of weight times reward.
    pub inverse_propensity: PolicyValue,
    /// Self-normalised estimate: weighted mean of the rewards.
    pub self_normalised: PolicyValue,
    /// Doubly robust estimate; `None` without predicted rewards.
    pub doubly_robust: Option<PolicyValue>,
    /// Mean logged reward: the value of the logging policy.
    pub logging: PolicyValue,
    /// Effective number of rows: squared sum of the weights over the sum of their squares.
    pub effective_rows: f64,
    /// Mean weight, which is near 1 if the logging policy takes every arm that the policy takes.
    pub mean_weight: f64,
    /// Largest weight.
    pub max_weight: f64,
}

impl LoggedChoices<'_> {
    /// Returns an error unless arms, rewards and propensities can be used.
    fn check_rows(&self) -> Result<()> {
        let n = self.arms.len();
        if n < 2 {
            return Err(Error::Table(format!(
                "the log has {n} rows; expected at least two"
            )));
        }
        for (what, found) in [
            ("rewards", self.rewards.len()),
            ("propensities", self.propensities.len()),
        ] {
            if found != n {
                return Err(Error::Table(format!(
                    "{found} {what} for {n} logged rows; expected one for each"
                )));
            }
        }
        for row in 0..n {
            if self.arms[row] as usize >= self.n_arms {
                let problem = format!("there is no arm {}", self.arms[row]);
                return Err(Error::cell("arm", row + 1, problem));
            }
            let propensity = self.propensities[row];
            if !(propensity > 0.0 && propensity <= 1.0) {
                let problem = format!("{propensity} is not a probability above 0");
                return Err(Error::cell("propensity", row + 1, problem));
            }
            if !self.rewards[row].is_finite() {
                return Err(Error::cell("reward", row + 1, "the reward is not finite"));
            }
        }
        Ok(())
    }

    /// Returns an error unless the probabilities of a policy and the predicted rewards fit the log.
    fn check_policy(&self, target: &[f64], predicted: Option<&[f64]>) -> Result<()> {
        let n = self.arms.len();
        let expected = n.checked_mul(self.n_arms);
        let lengths = [
            ("probabilities of the policy", Some(target.len())),
            ("predicted rewards", predicted.map(<[f64]>::len)),
        ];
        for (what, found) in lengths {
            if let Some(found) = found
                && Some(found) != expected
            {
                return Err(Error::Table(format!(
                    "{found} {what} for {n} logged rows and {} arms; expected one for each pair",
                    self.n_arms
                )));
            }
        }
        if predicted.is_some_and(|predicted| !predicted.iter().all(|value| value.is_finite())) {
            return Err(Error::Table(
                "a predicted reward is not a finite number".to_owned(),
            ));
        }
        for (row, probabilities) in target.chunks_exact(self.n_arms.max(1)).enumerate() {
            let sum: f64 = probabilities.iter().sum();
            if !probabilities.iter().all(|p| *p >= 0.0) || (sum - 1.0).abs() > 1e-6 {
                return Err(Error::Table(format!(
                    "row {}: the probabilities of the policy are not probabilities with sum 1",
                    row + 1
                )));
            }
        }
        Ok(())
    }
}

/// Estimates the mean reward of a policy that chooses arms with the probabilities `target` (row-major,
/// rows x arms) from logged choices. `predicted` has the predicted reward of every arm (rows x arms) for
/// the doubly robust estimate, from models that have not seen the row ([`cross_fitted_rewards`]).
/// Intervals are Normal and contain the value with probability `level`, provided that the logged
/// propensities are right and positive wherever the policy's probabilities are.
///
/// # Errors
/// When lengths do not match, or a propensity, probability or reward is not valid.
pub fn replay(
    log: &LoggedChoices<'_>,
    target: &[f64],
    predicted: Option<&[f64]>,
    level: f64,
) -> Result<PolicyValues> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::Parameters(vec![format!(
            "`level` is {level}; expected a number above 0 and below 1"
        )]));
    }
    log.check_rows()?;
    log.check_policy(target, predicted)?;
    let n = log.arms.len();
    let arm = |row: usize| row * log.n_arms + log.arms[row] as usize;
    let weights: Vec<f64> = (0..n)
        .map(|row| target[arm(row)] / log.propensities[row])
        .collect();
    let weighted: Vec<f64> = weights
        .iter()
        .zip(log.rewards)
        .map(|(w, r)| w * r)
        .collect();
    let sum: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|w| w * w).sum();
    if sum <= 0.0 {
        return Err(Error::Table(
            "the policy never takes a logged arm: the log says nothing of its value".to_owned(),
        ));
    }
    let value = weighted.iter().sum::<f64>() / sum;
    let terms = weights.iter().zip(log.rewards);
    let variance = terms.map(|(w, r)| (w * (r - value)).powi(2)).sum::<f64>() / (sum * sum);
    let self_normalised = interval(value, variance.sqrt(), level);
    let doubly_robust = predicted.map(|predicted| {
        let score = |row: usize| {
            let cells = row * log.n_arms..(row + 1) * log.n_arms;
            let pairs = target[cells.clone()].iter().zip(&predicted[cells]);
            let direct: f64 = pairs.map(|(p, reward)| p * reward).sum();
            direct + weights[row] * (log.rewards[row] - predicted[arm(row)])
        };
        mean_value(&(0..n).map(score).collect::<Vec<f64>>(), level)
    });
    Ok(PolicyValues {
        inverse_propensity: mean_value(&weighted, level),
        self_normalised,
        doubly_robust,
        logging: mean_value(log.rewards, level),
        effective_rows: sum * sum / squares,
        mean_weight: sum / n as f64,
        max_weight: weights.iter().fold(0.0, |a: f64, &b| a.max(b)),
    })
}

/// The mean of some scores.
fn mean_value(scores: &[f64], level: f64) -> PolicyValue {
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
    let variance = squares / (n - 1.0).max(1.0) / n;
    interval(mean, variance.sqrt(), level)
}

fn interval(value: f64, std_error: f64, level: f64) -> PolicyValue {
    let half = Normal::standard().inverse_cdf(0.5 + 0.5 * level) * std_error;
    PolicyValue {
        value,
        std_error,
        lower: value - half,
        upper: value + half,
    }
}

/// The reward of every arm on every row (row-major, rows x arms), predicted by models of each arm that
/// were fitted to the other folds. An arm with few or equal rewards gets their mean.
///
/// # Errors
/// When a fit fails or is stopped, or there are fewer than two rows or folds.
pub fn cross_fitted_rewards(
    contexts: &Table,
    log: &LoggedChoices<'_>,
    spec: &ModelSpec,
    n_folds: usize,
    run: &Run<'_>,
) -> Result<Vec<f64>> {
    let n = log.arms.len();
    if n_folds < 2 || n < n_folds {
        return Err(Error::Parameters(vec![format!(
            "`n_folds` is {n_folds} for {n} rows; expected at least 2 and at most the number of rows"
        )]));
    }
    log.check_rows()?;
    if contexts.n_rows() != n {
        return Err(Error::Table(format!(
            "{} contexts for {n} logged rows",
            contexts.n_rows()
        )));
    }
    let mut order: Vec<usize> = (0..n).collect();
    shuffle(&mut run.key.child(streams::FOLDS).rng(), &mut order);
    let mut fold_of = vec![0; n];
    for (place, &row) in order.iter().enumerate() {
        fold_of[row] = place % n_folds;
    }
    let mut predicted = vec![0.0; n * log.n_arms];
    for fold in 0..n_folds {
        let test: Vec<usize> = (0..n).filter(|&row| fold_of[row] == fold).collect();
        for arm in 0..log.n_arms {
            let is_training = |&row: &usize| fold_of[row] != fold && log.arms[row] as usize == arm;
            let rows: Vec<usize> = (0..n).filter(is_training).collect();
            let rewards: Vec<f64> = rows.iter().map(|&row| log.rewards[row]).collect();
            let key = run
                .key
                .child(streams::FITS)
                .child(fold as u64)
                .child(arm as u64);
            let run = Run { key, ..*run };
            let varies = rewards
                .iter()
                .any(|reward| (reward - rewards[0]).abs() > 0.0);
            let means = if rows.len() < MIN_ROWS || !varies {
                let mean = rewards.iter().sum::<f64>() / (rewards.len().max(1)) as f64;
                vec![mean; test.len()]
            } else {
                let features = contexts.take(&rows);
                let schema = Schema::of(&features, "reward", Task::Regression);
                let data = Dataset::new(schema, features, Target::Numeric(rewards), None)?;
                let model = spec.fit_with(&data, &run)?;
                Distribution::new(model.as_ref(), &contexts.take(&test), run.pool)?.mean()?
            };
            for (row, mean) in test.iter().zip(means) {
                predicted[row * log.n_arms + arm] = mean;
            }
        }
    }
    Ok(predicted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    const LOG: LoggedChoices<'static> = LoggedChoices {
        n_arms: 2,
        arms: &[0, 1, 1, 0],
        rewards: &[1.0, 2.0, 4.0, 0.0],
        propensities: &[0.5, 0.5, 0.25, 0.8],
    };

    #[test]
    fn estimates_are_those_of_their_formulas() {
        // the policy takes the second arm: weights 0, 2, 4, 0
        let target = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        let predicted = [0.0, 3.0, 0.0, 3.0, 0.0, 3.0, 0.0, 3.0];
        let values = replay(&LOG, &target, Some(&predicted), 0.9).unwrap();
        close(
            &[values.inverse_propensity.value],
            &[(4.0 + 16.0) / 4.0],
            1e-12,
        );
        close(&[values.self_normalised.value], &[20.0 / 6.0], 1e-12);
        let robust = values.doubly_robust.unwrap();
        // scores: 3, 3 + 2 (2 - 3), 3 + 4 (4 - 3), 3
        close(&[robust.value], &[(3.0 + 1.0 + 7.0 + 3.0) / 4.0], 1e-12);
        close(&[values.effective_rows], &[36.0 / 20.0], 1e-12);
        let half = robust.upper - robust.value;
        close(&[half / robust.std_error], &[1.644_853_627], 1e-6);
    }

    #[test]
    fn the_logging_policy_has_its_own_value() {
        let target = [0.5; 8];
        let log = LoggedChoices {
            propensities: &[0.5; 4],
            ..LOG
        };
        let values = replay(&log, &target, None, 0.9).unwrap();
        close(
            &[
                values.inverse_propensity.value,
                values.self_normalised.value,
            ],
            &[values.logging.value; 2],
            1e-12,
        );
        close(&[values.effective_rows], &[4.0], 1e-12);
    }

    #[test]
    fn invalid_logs_are_refused() {
        let target = [0.5; 8];
        let zero = LoggedChoices {
            propensities: &[0.5, 0.0, 0.5, 0.5],
            ..LOG
        };
        let error = replay(&zero, &target, None, 0.9).unwrap_err().to_string();
        assert!(error.contains("row 2"), "{error}");
        assert!(replay(&LOG, &target[..6], None, 0.9).is_err());
        assert!(replay(&LOG, &[0.7; 8], None, 0.9).is_err());
        assert!(replay(&LOG, &target, None, 1.5).is_err());
        // the policy takes the arm that was not taken
        let other = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let error = replay(&LOG, &other, None, 0.9).unwrap_err().to_string();
        assert!(error.contains("never takes a logged arm"), "{error}");
        assert!(replay(&LOG, &target, Some(&[f64::NAN; 8]), 0.9).is_err());
    }
}
