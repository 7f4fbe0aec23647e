//! Whitening rotation: the principal components of the numeric inputs, scaled to unit variance.

use serde::{Deserialize, Serialize};

use crate::data::encoding::numeric::NumericColumn;
use crate::data::table::Table;
use crate::numerics::eigen;

/// Principal components with an eigenvalue below this share of the largest are rounding noise.
const MIN_EIGENVALUE: f64 = 1e-9;

/// Largest coefficient that is accepted from a file.
const MAX_COEFFICIENT: f64 = 1e30;

/// Rows `v / sqrt(lambda)` for the eigenvectors `v` and eigenvalues `lambda` of the covariance of
/// the scaled numbers (row-major, components x numbers).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct WhiteningRotation(Vec<f64>);

impl WhiteningRotation {
    /// Fits the rotation to the scaled numbers of a training table.
    pub(super) fn fit(numbers: &[NumericColumn], table: &Table, weights: &[f64]) -> Self {
        let n_numbers = numbers.len();
        let covariance = covariance(numbers, table, weights);
        let (values, vectors) = eigen::symmetric(&covariance, n_numbers);
        let floor = MIN_EIGENVALUE * values.first().copied().unwrap_or(0.0);
        let kept = values
            .iter()
            .zip(vectors.chunks_exact(n_numbers))
            .filter(|(value, _)| **value > floor);
        let rows = kept.flat_map(|(value, vector)| vector.iter().map(move |x| x / value.sqrt()));
        Self(rows.collect())
    }

    /// Number of components of `n_numbers` numbers.
    pub(super) fn n_outputs(&self, n_numbers: usize) -> usize {
        self.0.len() / n_numbers.max(1)
    }

    /// Whether every row has one coefficient for each number, and all products with scaled numbers
    /// are finite.
    pub(super) fn fits(&self, n_numbers: usize) -> bool {
        self.0.len() == self.n_outputs(n_numbers) * n_numbers
            && self.0.iter().all(|value| value.abs() <= MAX_COEFFICIENT)
    }

    /// The components of one row of scaled numbers.
    pub(super) fn apply(&self, scaled: &[f64]) -> impl Iterator<Item = f64> {
        let directions = self.0.chunks_exact(scaled.len().max(1));
        directions.map(move |direction| direction.iter().zip(scaled).map(|(a, b)| a * b).sum())
    }
}

/// Weighted second moments about zero of the scaled numbers (row-major, numbers x numbers).
fn covariance(numbers: &[NumericColumn], table: &Table, weights: &[f64]) -> Vec<f64> {
    let n = numbers.len();
    let mut covariance = vec![0.0; n * n];
    let mut scaled = vec![0.0; n];
    for row in 0..table.n_rows() {
        for (number, scaled) in numbers.iter().zip(&mut scaled) {
            *scaled = number.scale(number.cell(table, row));
        }
        for i in 0..n {
            for j in 0..=i {
                covariance[i * n + j] += weights[row] * scaled[i] * scaled[j];
            }
        }
    }
    let total: f64 = weights.iter().sum();
    for i in 0..n {
        for j in 0..=i {
            covariance[i * n + j] /= total;
            covariance[j * n + i] = covariance[i * n + j];
        }
    }
    covariance
}
