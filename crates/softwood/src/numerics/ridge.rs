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

/// Ridge coefficients of `residuals` on `rows` (residuals x `n_columns`); zero if the system cannot
/// be solved.
pub(crate) fn coefficients(
    rows: &[f32],
    n_columns: usize,
    residuals: &[f64],
    penalty: f64,
) -> Vec<f64> {
    let n_rows = residuals.len();
    let is_dual = n_rows < n_columns;
    let mut solution = if is_dual {
        residuals.to_vec()
    } else {
        transposed_times(rows, n_columns, residuals)
    };
    let n = solution.len();
    let mut gram = if is_dual {
        gram(rows, n, n_columns)
    } else {
        gram(&transposed(rows, n_columns), n, n_rows)
    };
    for i in 0..n {
        gram[i * n + i] += penalty;
    }
    if !cholesky::factor(&mut gram, n) {
        return vec![0.0; n_columns];
    }
    cholesky::solve(&gram, n, &mut solution);
    if is_dual {
        transposed_times(rows, n_columns, &solution)
    } else {
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
            let found = coefficients(&rows, n_columns, &residuals, 5.0);
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
