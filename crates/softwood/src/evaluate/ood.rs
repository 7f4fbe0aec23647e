//! Out-of-domain detection: how well each kind of uncertainty separates the rows of two tables.

use serde::Serialize;

use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::predictive::block::Head;
use crate::score::auroc::auroc;
use crate::score::one_split::one_split;

/// How well total, data and knowledge uncertainty separate in-domain rows from out-of-domain rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Ood {
    /// Number of in-domain rows.
    pub n_in: usize,
    /// Number of out-of-domain rows.
    pub n_out: usize,
    /// By total uncertainty.
    pub total: Separation,
    /// By data (aleatoric) uncertainty.
    pub data: Separation,
    /// By knowledge (epistemic) uncertainty.
    pub knowledge: Separation,
}

/// How well one kind of uncertainty separates two tables. Values are those that predictions report:
/// standard deviations in the target's units (regression), or nats (classification).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Separation {
    /// Probability that an out-of-domain row is more uncertain than an in-domain row, ties counting
    /// one half.
    pub auroc: f64,
    /// AUROC of a tree with one split on the uncertainty; at least 1/2, because either side may be
    /// out of domain.
    pub one_split_auroc: f64,
    /// Threshold of that split; `None` if all values are equal.
    pub threshold: Option<f64>,
    /// Median over the in-domain rows.
    pub median_in: f64,
    /// Median over the out-of-domain rows.
    pub median_out: f64,
}

/// Compares the uncertainty of a model on in-domain rows with that on out-of-domain rows.
///
/// # Errors
/// When one of the tables has no rows, the two predictions are of different tasks, or the model
/// cannot predict.
pub fn ood(inside: &Distribution<'_>, outside: &Distribution<'_>) -> Result<Ood> {
    for (distribution, which) in [(inside, "inside"), (outside, "outside")] {
        if distribution.n_rows() == 0 {
            return Err(Error::Table(format!(
                "there are no rows {which} the domain; give a table with at least one row"
            )));
        }
    }
    if is_regression(inside) != is_regression(outside) {
        return Err(Error::Table(
            "variances and entropies do not compare: use one model for both tables".to_owned(),
        ));
    }
    let (inner, outer) = (uncertainties(inside)?, uncertainties(outside)?);
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

/// Total, data and knowledge uncertainty of each row. Standard deviations have the order of
/// variances and do not overflow.
fn uncertainties(distribution: &Distribution<'_>) -> Result<[Vec<f64>; 3]> {
    if is_regression(distribution) {
        let moments = distribution.moments()?;
        return Ok([moments.std, moments.data_std, moments.knowledge_std]);
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
    fn auroc_and_one_split_auroc_of_eight_rows() {
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
