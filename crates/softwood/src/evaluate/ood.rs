//! Out-of-domain alarms: how well each kind of uncertainty tells the rows of two tables apart.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::model::Distribution;
use crate::predictive::block::Head;
use crate::score::auroc::auroc;
use crate::score::one_split::one_split;

/// How well total, data and knowledge uncertainty tell rows of the model's domain from others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ood {
    /// Rows of the domain.
    pub n_in: usize,
    /// Rows outside it.
    pub n_out: usize,
    /// By knowledge and data uncertainty together.
    pub total: Separation,
    /// By what the model takes for noise.
    pub data: Separation,
    /// By what the model has not seen.
    pub knowledge: Separation,
}

/// How well one uncertainty tells two tables apart. Its values are those that predictions show:
/// standard deviations in the target's units (regression), or nats (classification).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Separation {
    /// Probability that a row outside is more uncertain than one inside, ties counting one half.
    pub auroc: f64,
    /// AUROC of a tree with one split on the uncertainty; it does not ask which side is outside,
    /// and is at least 1/2.
    pub one_split_auroc: f64,
    /// The threshold of that split; none where all values are equal.
    pub threshold: Option<f64>,
    /// Median of the rows inside.
    pub median_in: f64,
    /// Median of the rows outside.
    pub median_out: f64,
}

/// Compares a model's uncertainty on rows of its domain with that on rows outside.
///
/// # Errors
/// When one of the tables has no rows, the two answers are of different tasks, or the model cannot
/// answer.
pub fn ood(inside: &Distribution<'_>, outside: &Distribution<'_>) -> Result<Ood> {
    for (distribution, which) in [(inside, "inside"), (outside, "outside")] {
        if distribution.n_rows() == 0 {
            return Err(Error::Table(format!(
                "there are no rows {which} to compare"
            )));
        }
    }
    if is_regression(inside) != is_regression(outside) {
        return Err(Error::Table(
            "variances and entropies do not compare: ask one model for both".to_owned(),
        ));
    }
    let (inner, outer) = (levels(inside)?, levels(outside)?);
    let [total, data, knowledge] = [0, 1, 2].map(|kind| separation(&inner[kind], &outer[kind]));
    Ok(Ood {
        n_in: inside.n_rows(),
        n_out: outside.n_rows(),
        total,
        data,
        knowledge,
    })
}

fn is_regression(distribution: &Distribution<'_>) -> bool {
    matches!(distribution.head(), Head::Normal { .. })
}

/// Total, data and knowledge uncertainty of each row. Standard deviations rank as variances do, and
/// stay finite where those do not.
fn levels(distribution: &Distribution<'_>) -> Result<[Vec<f64>; 3]> {
    if is_regression(distribution) {
        let moments = distribution.moments()?;
        return Ok([moments.sd, moments.data_sd, moments.knowledge_sd]);
    }
    let parts = distribution.uncertainty()?;
    Ok([parts.total, parts.data, parts.knowledge])
}

fn separation(inside: &[f64], outside: &[f64]) -> Separation {
    let scores = [inside, outside].concat();
    let is_outside = |row: usize| row >= inside.len();
    let split = one_split(&scores, is_outside).expect("neither table is empty");
    Separation {
        auroc: auroc(&scores, is_outside).expect("neither table is empty"),
        one_split_auroc: split.auroc,
        threshold: split.threshold,
        median_in: median(inside),
        median_out: median(outside),
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    0.5 * sorted[lower] + 0.5 * sorted[upper]
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn both_areas_of_eight_rows() {
        // by hand: 4 of 16 pairs are in order; the split at 0.65 leaves one of the four inside rows
        // on the other side
        let found = separation(&[0.1, 0.8, 0.9, 0.95], &[0.2, 0.3, 0.4, 0.5]);
        close(&[found.auroc, found.one_split_auroc], &[0.25, 0.875], 1e-15);
        close(
            &[found.threshold.unwrap(), found.median_in, found.median_out],
            &[0.65, 0.85, 0.35],
            1e-15,
        );
    }

    #[test]
    fn medians_of_odd_and_even_numbers_of_values() {
        let found = [&[3.0, 1.0, 2.0][..], &[4.0, 1.0], &[7.0]].map(median);
        close(&found, &[2.0, 2.5, 7.0], 1e-15);
    }
}
