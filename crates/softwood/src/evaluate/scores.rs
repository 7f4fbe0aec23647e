//! All scores of a prediction on labelled rows, by name.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::data::target::Target;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::predictive::categorical::{entropies, most_probable, probabilities};
use crate::predictive::moments::{MOMENTS, moments};
use crate::predictive::quantile::quantiles;
use crate::predictive::{crps, density};
use crate::score::auroc::class_auroc;
use crate::score::brier::brier;
use crate::score::coverage::coverage;
use crate::score::ece::expected_calibration_error;
use crate::score::log_score::negative_log_likelihood;
use crate::score::pit::calibration_error;
use crate::score::prr;
use crate::score::sharpness::mean_width;

/// Scores by name. Undefined scores, such as an AUROC of a single class, are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct Scores {
    /// Value of each score.
    pub values: BTreeMap<String, f64>,
}

impl Scores {
    fn set(&mut self, name: &str, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into() {
            self.values.insert(name.to_owned(), value);
        }
    }
}

/// Scores a prediction against the true targets.
///
/// Regression: `log_likelihood`, `rmse` (of the mean), `mae` (of the median), `crps`, `coverage_50`,
/// `coverage_90`, `coverage_95`, `calibration_error` (mean over the levels 0.05, 0.10, ..., 0.95 of
/// the absolute difference between the level and the coverage of the central interval),
/// `sharpness_90` (mean width of the central 90% interval, in the target's units), `prr_total`,
/// `prr_knowledge`, and with the standard deviation `target_sd` of the training target also
/// `log_likelihood_std` and `rmse_std` in units of it.
///
/// Classification: `nll` (log loss), `brier` (squared deviations, summed over the classes: 0 to 2),
/// `error`, `auc`, `ece`, `prr_total`, `prr_knowledge`.
///
/// # Errors
/// When the targets do not match the task of the model or the number of rows.
pub fn score(
    distribution: &Distribution<'_>,
    target: &Target,
    target_sd: Option<f64>,
) -> Result<Scores> {
    distribution.require_one_per_row(target.len())?;
    if target.is_empty() {
        return Err(Error::Table("there are no rows to score".to_owned()));
    }
    match target {
        Target::Numeric(y) => regression(distribution, y, target_sd),
        Target::Classes(y) => classification(distribution, y),
    }
}

/// Levels of the ends of the 90% interval, and between them that of the median.
const QUANTILES: [f64; 3] = [0.05, 0.5, 0.95];

fn regression(
    distribution: &Distribution<'_>,
    y: &[f64],
    target_sd: Option<f64>,
) -> Result<Scores> {
    const WIDTH: usize = MOMENTS + 3 + QUANTILES.len();
    distribution.require_regression("scores of numbers")?;
    let answers = distribution.ask(WIDTH, |block, rows, out| {
        let y = &y[rows];
        let mut parts = vec![0.0; y.len() * WIDTH];
        let (first, rest) = parts.split_at_mut(y.len() * MOMENTS);
        moments(block, first);
        let (columns, last) = rest.split_at_mut(y.len() * 3);
        let mut columns = columns.chunks_exact_mut(y.len());
        let mut next = || columns.next().expect("three columns follow the moments");
        density::log_density(block, y, next());
        density::cdf(block, y, next());
        crps::crps(block, y, next());
        quantiles(block, &QUANTILES, last);
        for (row, out) in out.chunks_exact_mut(WIDTH).enumerate() {
            out[..MOMENTS].copy_from_slice(&parts[row * MOMENTS..][..MOMENTS]);
            for column in MOMENTS..MOMENTS + 3 {
                out[column] = parts[column * y.len() + row];
            }
            let first = (MOMENTS + 3) * y.len() + row * QUANTILES.len();
            out[MOMENTS + 3..].copy_from_slice(&parts[first..][..QUANTILES.len()]);
        }
    })?;
    let column = |at: usize| answers.chunks_exact(WIDTH).map(move |row| row[at]);
    let unit = unit_of(column(0).zip(y).map(|(mean, y)| mean - y));
    let errors: Vec<f64> = column(0)
        .zip(y)
        .map(|(mean, y)| ((mean - y) / unit).powi(2))
        .collect();
    // only ranks matter here, and standard deviations do not overflow as variances do
    let (total, knowledge): (Vec<f64>, Vec<f64>) = column(3).zip(column(5)).unzip();
    let cdf: Vec<f64> = column(MOMENTS + 1).collect();
    let log_likelihood = mean_of(&column(MOMENTS).collect::<Vec<_>>());
    let rmse = mean_of(&errors).sqrt() * unit;

    let medians = column(MOMENTS + 4).zip(y);
    let distances: Vec<f64> = medians
        .map(|(median, y)| (median / unit - y / unit).abs())
        .collect();
    let mae = mean_of(&distances) * unit;

    let mut scores = Scores::default();
    scores.set("log_likelihood", log_likelihood);
    scores.set("rmse", rmse);
    scores.set("mae", mae);
    scores.set("crps", mean_of(&column(MOMENTS + 2).collect::<Vec<_>>()));
    for (name, level) in [
        ("coverage_50", 0.5),
        ("coverage_90", 0.9),
        ("coverage_95", 0.95),
    ] {
        scores.set(name, coverage(&cdf, level));
    }
    scores.set("calibration_error", calibration_error(&cdf));
    let intervals = column(MOMENTS + 3).zip(column(MOMENTS + 5));
    scores.set("sharpness_90", mean_width(intervals));
    scores.set("prr_total", prr::regression(&errors, &total));
    scores.set("prr_knowledge", prr::regression(&errors, &knowledge));
    if let Some(sd) = target_sd.filter(|&sd| sd > 0.0) {
        scores.set("log_likelihood_std", log_likelihood + sd.ln());
        scores.set("rmse_std", rmse / sd);
    }
    Ok(scores)
}

/// The mean of finite numbers, which is finite too: log densities of far targets may be the largest
/// negative number, and their sum overflows.
fn mean_of(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let sum: f64 = values.iter().sum();
    if sum.is_finite() {
        return sum / n;
    }
    let mean: f64 = values.iter().map(|value| value / n).sum();
    mean.clamp(f64::MIN, f64::MAX)
}

/// A power of two near the largest error: errors divided by it have squares in range, and the
/// division is exact.
pub(crate) fn unit_of(errors: impl Iterator<Item = f64>) -> f64 {
    let largest = errors.fold(0.0, |largest: f64, error| largest.max(error.abs()));
    let unit = largest.log2().floor().exp2();
    if unit.is_normal() { unit } else { 1.0 }
}

/// Checks that all classes are below `n_classes`.
pub(crate) fn check_classes(y: &[u32], n_classes: usize) -> Result<()> {
    match y.iter().find(|&&class| class as usize >= n_classes) {
        None => Ok(()),
        Some(class) => Err(Error::Table(format!(
            "class {class} is not one of the {n_classes} classes of the model"
        ))),
    }
}

fn classification(distribution: &Distribution<'_>, y: &[u32]) -> Result<Scores> {
    let n_classes = distribution.head().n_components();
    let width = n_classes + 2;
    distribution.require_classification("scores of classes")?;
    check_classes(y, n_classes)?;
    let answers = distribution.ask(width, |block, rows, out| {
        let mut means = vec![0.0; rows.len() * n_classes];
        probabilities(block, &mut means);
        let mut parts = vec![0.0; rows.len() * 2];
        entropies(block, &mut parts);
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            out[..n_classes].copy_from_slice(&means[row * n_classes..][..n_classes]);
            out[n_classes..].copy_from_slice(&parts[row * 2..][..2]);
        }
    })?;
    let rows = || answers.chunks_exact(width);
    let means: Vec<f64> = rows().flat_map(|row| &row[..n_classes]).copied().collect();
    let labels: Vec<u32> = means.chunks_exact(n_classes).map(most_probable).collect();
    let knowledge: Vec<f64> = rows().map(|row| row[n_classes + 1]).collect();
    let total: Vec<f64> = rows()
        .map(|row| row[n_classes] + row[n_classes + 1])
        .collect();
    let is_wrong: Vec<bool> = labels.iter().zip(y).map(|(label, y)| label != y).collect();
    let n_wrong = is_wrong.iter().filter(|&&wrong| wrong).count();

    let mut scores = Scores::default();
    scores.set("nll", negative_log_likelihood(&means, n_classes, y));
    scores.set("brier", brier(&means, n_classes, y));
    scores.set("error", n_wrong as f64 / y.len() as f64);
    scores.set("auc", class_auroc(&means, n_classes, y));
    scores.set(
        "ece",
        expected_calibration_error(&means, n_classes, &labels, y),
    );
    scores.set("prr_total", prr::classification(&is_wrong, &total));
    scores.set("prr_knowledge", prr::classification(&is_wrong, &knowledge));
    Ok(scores)
}
