//! Moments, quantiles, densities, samples and class probabilities of the rows.

use crate::distribution::Distribution;
use crate::distribution::stop_check::StopCheck;
use crate::error::{Error, Result};
use crate::predictive::block::{Block, Head, no_finite_prediction};
use crate::predictive::moments::{Moments, Uncertainty};
use crate::predictive::sample::DrawnRows;
use crate::predictive::{categorical, crps, density, moments, quantile, sample};
use crate::rng::Key;

/// Moments and quantiles of each row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RegressionSummary {
    /// Mean, standard deviation and variance decomposition.
    pub moments: Moments,
    /// Quantiles (row-major, rows x levels).
    pub quantiles: Vec<f64>,
}

/// Probabilities, labels and entropies of each row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ClassSummary {
    /// Class probabilities (row-major, rows x classes).
    pub probabilities: Vec<f64>,
    /// The most probable class.
    pub labels: Vec<u32>,
    /// Entropies in nats.
    pub uncertainty: Uncertainty,
}

/// Predictions in the target's units. Every call evaluates the model again, block by block.
///
/// # Errors
/// All methods fail as [`Model::members`] does, and if the method does not match the task, if there
/// is not one target value per row, or if a level is not between 0 and 1.
#[allow(clippy::missing_errors_doc)]
impl Distribution<'_> {
    /// Predictive mean of each row (regression).
    pub fn mean(&self) -> Result<Vec<f64>> {
        Ok(self.without_widening().moments()?.mean)
    }

    /// Predictive standard deviation of each row (regression).
    pub fn std(&self) -> Result<Vec<f64>> {
        Ok(self.moments()?.std)
    }

    /// Total, data (aleatoric) and knowledge (epistemic) uncertainty of each row: variances
    /// (regression) or entropies in nats (classification). Data uncertainty is the noise that no
    /// amount of training data removes; knowledge uncertainty is the disagreement of the members
    /// and shrinks with more data.
    pub fn uncertainty(&self) -> Result<Uncertainty> {
        if matches!(self.head(), Head::Normal { .. }) {
            return Ok(self.moments()?.variance);
        }
        let parts = self.ask(2, |block, _, out| categorical::entropies(block, out))?;
        Ok(entropies(&parts))
    }

    /// Mean, standard deviation and variance decomposition in one pass (regression).
    pub fn moments(&self) -> Result<Moments> {
        self.require_regression("a mean")?;
        // moments are finite only if all members are: a check of the results is enough
        let [rows] = self.ask_unchecked([moments::MOMENTS], |block, _, [out]| {
            moments::moments(block, out);
        })?;
        if rows.iter().all(|value| value.is_finite()) {
            Ok(Moments::from_rows(&rows))
        } else {
            Err(no_finite_prediction())
        }
    }

    /// Moments and quantiles in one pass over the model (regression).
    pub fn summary(&self, levels: &[f64]) -> Result<RegressionSummary> {
        self.require_regression("a mean")?;
        check_levels(levels)?;
        let widths = [moments::MOMENTS, levels.len()];
        let [moments, quantiles] = self.ask_many(widths, |block, _, [moments, quantiles]| {
            moments::moments(block, moments);
            quantile::quantiles(block, levels, quantiles);
        })?;
        Ok(RegressionSummary {
            moments: Moments::from_rows(&moments),
            quantiles,
        })
    }

    /// Quantiles of each row (regression; row-major, rows x levels).
    pub fn quantile(&self, levels: &[f64]) -> Result<Vec<f64>> {
        self.require_regression("quantiles")?;
        check_levels(levels)?;
        let stop_check = StopCheck::of(self);
        let values = self.ask(levels.len(), |block, rows, out| {
            let is_stopped = || stop_check.is_stopped(rows.start);
            quantile::quantiles_until(block, levels, out, &is_stopped);
        })?;
        stop_check.finish(values)
    }

    /// Central interval that contains the target with probability `level` (regression; row-major,
    /// rows x 2).
    pub fn interval(&self, level: f64) -> Result<Vec<f64>> {
        check_levels(&[level])?;
        self.quantile(&[0.5 - 0.5 * level, 0.5 + 0.5 * level])
    }

    /// Cumulative distribution function at `y`, one value per row (regression).
    pub fn cdf(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.evaluate_at(y, "a cdf", density::cdf)
    }

    /// Natural logarithm of the density at `y`, one value per row (regression).
    pub fn logpdf(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.evaluate_at(y, "a density", density::log_density)
    }

    /// Continuous ranked probability score at `y`, one value per row, in the target's units
    /// (regression).
    pub fn crps(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.evaluate_at(y, "a CRPS", crps::crps)
    }

    /// Independent draws of the target: numbers, or class indices (row-major, rows x n). Row `r`
    /// uses the random stream `key.child(r)`.
    pub fn sample(&self, n: usize, key: Key) -> Result<Vec<f64>> {
        let stop_check = StopCheck::of(self);
        let values = self.ask(n, |block, rows, out| {
            let first = rows.start;
            let rows = DrawnRows { block, first, key };
            sample::draws(rows, n, out, &|| stop_check.is_stopped(first));
        })?;
        stop_check.finish(values)
    }

    /// Predictions of `n` random members, the same members on every row: conditional means
    /// (row-major, rows x n), or class probabilities (rows x n x classes). Members repeat only if
    /// `n` exceeds their number.
    pub fn sample_functions(&self, n: usize, key: Key) -> Result<Vec<f64>> {
        let members = sample::choose_members(self.n_members(), n, key)?;
        if n <= self.n_members() {
            return self.functions(&members);
        }
        self.repeated_functions(&members)
    }

    /// Predictions of all members, the same members on every row: conditional means (row-major,
    /// rows x members), or class probabilities (rows x members x classes).
    pub fn members(&self) -> Result<Vec<f64>> {
        let all: Vec<usize> = (0..self.n_members()).collect();
        self.functions(&all)
    }

    /// Predictions of some members: see [`Distribution::members`].
    fn functions(&self, members: &[usize]) -> Result<Vec<f64>> {
        self.ask(members.len() * self.n_outputs(), |block, _, out| {
            member_outputs(block, members, out);
        })
    }

    /// As [`Distribution::functions`], for more members than the model has: every member is
    /// computed once and copied.
    fn repeated_functions(&self, members: &[usize]) -> Result<Vec<f64>> {
        let all: Vec<usize> = (0..self.n_members()).collect();
        let n_outputs = self.n_outputs();
        let (width, all_width) = (members.len() * n_outputs, all.len() * n_outputs);
        let stop_check = StopCheck::of(self);
        let values = self.ask(width, |block, rows, out| {
            let mut outputs = vec![0.0; rows.len() * all_width];
            member_outputs(block, &all, &mut outputs);
            for (out, outputs) in out.chunks_exact_mut(width).zip(outputs.chunks(all_width)) {
                if stop_check.is_stopped(rows.start) {
                    return;
                }
                for (out, &member) in out.chunks_exact_mut(n_outputs).zip(members) {
                    out.copy_from_slice(&outputs[member * n_outputs..][..n_outputs]);
                }
            }
        })?;
        stop_check.finish(values)
    }

    /// Number of values that a member predicts for a row: one conditional mean, or the probability
    /// of each class.
    pub(crate) fn n_outputs(&self) -> usize {
        match self.head() {
            Head::Normal { .. } => 1,
            Head::Categorical { classes } => classes,
        }
    }

    /// Probabilities, labels and entropies in one pass over the model (classification).
    pub fn class_summary(&self) -> Result<ClassSummary> {
        self.require_classification("probabilities")?;
        let n_classes = self.head().n_components();
        let widths = [n_classes, 2];
        let [probabilities, parts] =
            self.ask_many(widths, |block, _, [probabilities, parts]| {
                categorical::probabilities(block, probabilities);
                categorical::entropies(block, parts);
            })?;
        let rows = probabilities.chunks_exact(n_classes);
        Ok(ClassSummary {
            labels: rows.map(categorical::most_probable).collect(),
            uncertainty: entropies(&parts),
            probabilities,
        })
    }

    /// Class probabilities of each row (classification; row-major, rows x classes).
    pub fn probabilities(&self) -> Result<Vec<f64>> {
        self.require_classification("probabilities")?;
        self.ask(self.head().n_components(), |block, _, out| {
            categorical::probabilities(block, out);
        })
    }

    /// The most probable class of each row (classification).
    pub fn labels(&self) -> Result<Vec<u32>> {
        let probabilities = self.probabilities()?;
        let rows = probabilities.chunks_exact(self.head().n_components());
        Ok(rows.map(categorical::most_probable).collect())
    }

    /// Log probability of a class for each row (classification); `classes` has the index of a class for
    /// each row. It is minus infinity for a class of probability zero.
    ///
    /// # Errors
    /// When there is not one class for each row, or the model has no class of such an index.
    pub fn logpmf(&self, classes: &[u32]) -> Result<Vec<f64>> {
        self.require_classification("log probabilities of classes")?;
        self.require_one_per_row(classes.len())?;
        let n_classes = self.head().n_components();
        if let Some(class) = classes.iter().find(|&&class| class as usize >= n_classes) {
            return Err(Error::Table(format!(
                "there is no class {class}; the model has {n_classes} classes, the first of which is 0"
            )));
        }
        let probabilities = self.probabilities()?;
        let rows = probabilities.chunks_exact(n_classes).zip(classes);
        Ok(rows.map(|(row, &class)| row[class as usize].ln()).collect())
    }

    pub(crate) fn require_regression(&self, what: &str) -> Result<()> {
        match self.head() {
            Head::Normal { .. } => Ok(()),
            Head::Categorical { .. } => Err(wrong_task(what, "regression")),
        }
    }

    pub(crate) fn require_classification(&self, what: &str) -> Result<()> {
        match self.head() {
            Head::Normal { .. } => Err(wrong_task(what, "classification")),
            Head::Categorical { .. } => Ok(()),
        }
    }

    pub(crate) fn require_one_per_row(&self, given: usize) -> Result<()> {
        if given == self.n_rows() {
            return Ok(());
        }
        Err(Error::Table(format!(
            "{given} target values for {} rows; expected one for each row",
            self.n_rows()
        )))
    }

    fn evaluate_at(
        &self,
        y: &[f64],
        what: &str,
        compute: impl Fn(&Block, &[f64], &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        self.require_regression(what)?;
        self.require_one_per_row(y.len())?;
        self.ask(1, |block, rows, out| compute(block, &y[rows], out))
    }
}

fn wrong_task(what: &str, task: &str) -> Error {
    Error::Table(format!("{what} can only be asked of a {task} model"))
}

fn check_levels(levels: &[f64]) -> Result<()> {
    match levels.iter().find(|&&level| !(level > 0.0 && level < 1.0)) {
        None => Ok(()),
        Some(level) => Err(Error::Parameters(vec![format!(
            "level {level}: expected a number above 0 and below 1"
        )])),
    }
}

fn entropies(parts: &[f64]) -> Uncertainty {
    let (data, knowledge) = parts.chunks_exact(2).map(|row| (row[0], row[1])).unzip();
    Uncertainty::sum_of(data, knowledge)
}

/// Conditional means (rows x members) or class probabilities (rows x members x classes) of some
/// members.
pub(super) fn member_outputs(block: &Block, members: &[usize], out: &mut [f64]) {
    match block.head {
        Head::Normal { .. } => moments::member_means(block, members, out),
        Head::Categorical { .. } => categorical::member_probabilities(block, members, out),
    }
}
