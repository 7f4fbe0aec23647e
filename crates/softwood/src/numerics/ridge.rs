//! Ridge regression on many columns: the smaller one of the two equivalent linear systems.
//!
//! With rows `A` (n x d), residuals `r` and penalty `λ`, the coefficients are
//!
//! - `(A'A + λ I)^-1 A'r`, a system of size d (primal), or
//! - `A'(A A' + λ I)^-1 r`, a system of size n (dual).
//!
//! Products of matrices are in f32: the penalty keeps both systems well conditioned.

use crate::numerics::cholesky;
use crate::numerics::gemm::{Matrix, product_transposed};
use crate::stop::until_cancelled;

/// Number of rows of a product that are computed between two checks whether the work is cancelled.
const PRODUCT_ROWS: usize = 64;

/// The factored system of a ridge regression: one matrix, any number of residuals.
#[derive(Debug)]
pub(crate) struct RidgeSystem {
    /// Rows `A` (n x d).
    rows: Vec<f32>,
    n_columns: usize,
    is_dual: bool,
    /// Lower Cholesky factor of the system; empty if it is not positive definite.
    factor: Vec<f64>,
}

impl RidgeSystem {
    /// Factors the system of `rows` (rows x `n_columns`).
    pub(crate) fn new(rows: Vec<f32>, n_columns: usize, penalty: f64) -> Self {
        let n_rows = rows.len() / n_columns.max(1);
        let is_dual = n_rows < n_columns;
        let n = n_rows.min(n_columns);
        let mut factor = if is_dual {
            gram(&rows, n, n_columns)
        } else {
            gram(&transposed(&rows, n_columns), n, n_rows)
        };
        for i in 0..n {
            factor[i * n + i] += penalty;
        }
        if !cholesky::factor(&mut factor, n) {
            factor.clear();
        }
        Self {
            rows,
            n_columns,
            is_dual,
            factor,
        }
    }

    /// Ridge coefficients of `residuals`, one per row; zero if the system cannot be solved.
    pub(crate) fn coefficients(&self, residuals: &[f64]) -> Vec<f64> {
        if self.factor.is_empty() {
            return vec![0.0; self.n_columns];
        }
        if self.is_dual {
            let mut solution = residuals.to_vec();
            cholesky::solve(&self.factor, residuals.len(), &mut solution);
            return transposed_times(&self.rows, self.n_columns, &solution);
        }
        let mut solution = transposed_times(&self.rows, self.n_columns, residuals);
        cholesky::solve(&self.factor, self.n_columns, &mut solution);
        solution
    }
}

/// `a a'` of a matrix of `n` rows.
fn gram(a: &[f32], n: usize, n_columns: usize) -> Vec<f64> {
    let all = Matrix::new(a, n, n_columns);
    let mut products = vec![0.0_f32; n * n];
    let parts = products.chunks_mut(PRODUCT_ROWS * n.max(1));
    let rows = a.chunks(PRODUCT_ROWS * n_columns.max(1));
    for (out, rows) in until_cancelled(parts.zip(rows)) {
        let n_part = out.len() / n;
        product_transposed(out, Matrix::new(rows, n_part, n_columns), all);
    }
    products.into_iter().map(f64::from).collect()
}

/// `a' x`.
fn transposed_times(a: &[f32], n_columns: usize, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; n_columns];
    for (row, &x) in a.chunks_exact(n_columns.max(1)).zip(x) {
        for (out, &a) in out.iter_mut().zip(row) {
            *out += x * f64::from(a);
        }
    }
    out
}

fn transposed(a: &[f32], n_columns: usize) -> Vec<f32> {
    (0..n_columns)
        .flat_map(|column| a.iter().skip(column).step_by(n_columns))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, uniform};
    use softwood_testkit::close;

    #[test]
    fn coefficients_solve_the_normal_equations_with_more_rows_or_more_columns() {
        let mut rng = Key::from_seed(3).rng();
        for (n_rows, n_columns) in [(150, 7), (7, 150), (70, 70), (1, 3), (0, 2)] {
            let mut draw = || 2.0 * uniform(&mut rng) - 1.0;
            let rows: Vec<f32> = (0..n_rows * n_columns).map(|_| draw() as f32).collect();
            let residuals: Vec<f64> = (0..n_rows).map(|_| draw()).collect();
            let system = RidgeSystem::new(rows.clone(), n_columns, 5.0);
            let found = system.coefficients(&residuals);
            // A'(r - A x) = λ x
            let errors: Vec<f64> = rows
                .chunks_exact(n_columns)
                .zip(&residuals)
                .map(|(row, y)| {
                    let fit = row.iter().zip(&found).map(|(&a, b)| f64::from(a) * b);
                    y - fit.sum::<f64>()
                })
                .collect();
            let left = transposed_times(&rows, n_columns, &errors);
            let right: Vec<f64> = found.iter().map(|x| 5.0 * x).collect();
            close(&left, &right, 1e-4);
        }
    }
}
