//! Whitening rotation: the principal components of the numeric inputs, scaled to unit variance.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::encoding::numeric::NumericColumn;
use crate::data::table::Table;
use crate::numerics::eigen;
use crate::stop::until_cancelled;

/// Principal components with an eigenvalue below this share of the largest are rounding noise.
const MIN_EIGENVALUE: f64 = 1e-9;

/// Largest coefficient that is accepted from a file.
const MAX_COEFFICIENT: f64 = 1e30;
/// Number of columns beyond which fewer rows than columns are decomposed in the dual form.
const MIN_DUAL_COLUMNS: usize = 64;
/// Number of rows that are added to the covariance at a time.
const BLOCK_ROWS: usize = 64;

/// Rows `v / sqrt(lambda)` for the eigenvectors `v` and eigenvalues `lambda` of the covariance of
/// the scaled numbers (row-major, components x numbers).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct WhiteningRotation(Vec<f64>);

impl WhiteningRotation {
    /// Fits the rotation to the scaled numbers of a training table.
    pub(super) fn fit(numbers: &[NumericColumn], table: &Table, weights: &[f64]) -> Self {
        let n_numbers = numbers.len();
        let (values, vectors) = if n_numbers > MIN_DUAL_COLUMNS && table.n_rows() < n_numbers {
            dual_components(numbers, table, weights)
        } else {
            let covariance = covariance(numbers, table, weights);
            eigen::symmetric(&covariance, n_numbers)
        };
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

/// Eigenvalues and eigenvectors of the covariance of fewer rows than numbers: with the weighted
/// rows `A` and an eigenvector `u` of `A A'`, `A'u` is an eigenvector of `A'A`. There are at most as
/// many components as rows.
fn dual_components(
    numbers: &[NumericColumn],
    table: &Table,
    weights: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let (n_rows, n) = (table.n_rows(), numbers.len());
    let total: f64 = weights.iter().sum();
    let mut rows = scaled_rows(numbers, table, 0..n_rows);
    for (row, weight) in rows.chunks_exact_mut(n).zip(weights) {
        let root = (weight / total).sqrt();
        for value in row {
            *value *= root;
        }
    }
    let row = |at: usize| &rows[at * n..(at + 1) * n];
    let mut gram = vec![0.0; n_rows * n_rows];
    for i in until_cancelled(0..n_rows) {
        for j in 0..=i {
            gram[i * n_rows + j] = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
            gram[j * n_rows + i] = gram[i * n_rows + j];
        }
    }
    let (values, vectors) = eigen::symmetric(&gram, n_rows);
    let mut components = vec![0.0; n_rows * n];
    let parts = components.chunks_exact_mut(n).zip(&values);
    for ((out, value), vector) in until_cancelled(parts.zip(vectors.chunks_exact(n_rows))) {
        for (at, u) in vector.iter().enumerate() {
            for (out, x) in out.iter_mut().zip(row(at)) {
                *out += u * x;
            }
        }
        let length = value.max(f64::MIN_POSITIVE).sqrt();
        for x in out {
            *x /= length;
        }
    }
    (values, components)
}

/// Scaled numbers of some rows (row-major, rows x numbers).
fn scaled_rows(numbers: &[NumericColumn], table: &Table, rows: Range<usize>) -> Vec<f64> {
    rows.flat_map(|row| {
        let cells = numbers.iter();
        cells.map(move |number| number.scale(number.cell(table, row)))
    })
    .collect()
}

/// Weighted second moments about zero of the scaled numbers (row-major, numbers x numbers).
fn covariance(numbers: &[NumericColumn], table: &Table, weights: &[f64]) -> Vec<f64> {
    let (n, n_rows) = (numbers.len(), table.n_rows());
    let mut covariance = vec![0.0; n * n];
    // a row of the result stays in the first-level cache while it is updated
    for first in until_cancelled((0..n_rows).step_by(BLOCK_ROWS)) {
        let block = first..(first + BLOCK_ROWS).min(n_rows);
        let scaled = scaled_rows(numbers, table, block.clone());
        for i in 0..n {
            let sums = &mut covariance[i * n..=i * n + i];
            for (scaled, weight) in scaled.chunks_exact(n).zip(&weights[block.clone()]) {
                let left = weight * scaled[i];
                for (sum, right) in sums.iter_mut().zip(scaled) {
                    *sum += left * right;
                }
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
