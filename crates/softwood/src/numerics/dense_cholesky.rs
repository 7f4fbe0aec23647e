//! Cholesky decomposition of large symmetric positive definite matrices, row-major, in blocks whose
//! products are computed by `gemm`. `cholesky` is for small matrices.
//!
//! Hand-written, because the crate for this, faer, costs about 100 processor seconds of a cold build
//! against 4 for the f64 products that the blocks need, and the program builds in 240
//! (`docs/decisions/0025-gaussian-process.md`). A product of blocks takes nearly all of the time.

use crate::numerics::dot::dot;
use crate::numerics::gemm::{Matrix, product, product_transposed, transposed_product};
use crate::stop::is_cancelled;

/// Rows and columns of a block.
const BLOCK: usize = 64;
/// Columns of the inverse that are computed at once.
const INVERSE_COLUMNS: usize = 256;
/// Number of multiplications between two checks whether the work is cancelled.
const MAX_UNCHECKED: usize = 1 << 29;

/// The lower factor `L` of a matrix `a = L L'`.
#[derive(Debug, Clone)]
pub(crate) struct DenseCholesky {
    n: usize,
    /// `L` (n x n); what is above the diagonal has no meaning.
    lower: Vec<f64>,
    /// Inverses of the diagonal blocks of `L`, one after the other.
    inverse_blocks: Vec<f64>,
}

impl DenseCholesky {
    /// Factors `a` (n x n), of which the lower triangle is read; `None` if it is not positive
    /// definite or the work is cancelled.
    pub(crate) fn factor(mut a: Vec<f64>, n: usize) -> Option<Self> {
        assert_eq!(a.len(), n * n, "a square matrix");
        let mut inverse_blocks = Vec::with_capacity(n * BLOCK.min(n));
        let mut product = vec![0.0; n * BLOCK.min(n)];
        for start in (0..n).step_by(BLOCK) {
            let width = BLOCK.min(n - start);
            // a[start.., start..end] -= L[start.., ..start] L[start..end, ..start]'
            let step = rows_at_once(width * start);
            for first in (start..n).step_by(step) {
                if is_cancelled() {
                    return None;
                }
                let rows = step.min(n - first);
                let left = Matrix::part(&a[first * n..], rows, start, n);
                let right = Matrix::part(&a[start * n..], width, start, n);
                product_transposed(&mut product, left, right);
                for (row, product) in product.chunks_exact(width).take(rows).enumerate() {
                    let at = (first + row) * n + start;
                    for (a, product) in a[at..at + width].iter_mut().zip(product) {
                        *a -= product;
                    }
                }
            }
            let inverse = factor_block(&mut a[start * n + start..], width, n)?;
            let below = n - start - width;
            let panel = Matrix::part(tail(&a, (start + width) * n + start), below, width, n);
            product_transposed(&mut product, panel, Matrix::new(&inverse, width, width));
            for (row, product) in product.chunks_exact(width).take(below).enumerate() {
                let at = (start + width + row) * n + start;
                a[at..at + width].copy_from_slice(product);
            }
            inverse_blocks.extend(inverse);
        }
        Some(Self {
            n,
            lower: a,
            inverse_blocks,
        })
    }

    /// The factor of a matrix whose lower triangle is given row by row; `None` if a diagonal value
    /// is not positive.
    pub(crate) fn from_packed(packed: &[f64], n: usize) -> Option<Self> {
        let mut lower = vec![0.0; n * n];
        let mut at = 0;
        for row in 0..n {
            lower[row * n..=row * n + row].copy_from_slice(&packed[at..=at + row]);
            at += row + 1;
        }
        let mut inverse_blocks = Vec::with_capacity(n * BLOCK.min(n));
        for start in (0..n).step_by(BLOCK) {
            let width = BLOCK.min(n - start);
            inverse_blocks.extend(inverse_of_block(&lower[start * n + start..], width, n)?);
        }
        Some(Self {
            n,
            lower,
            inverse_blocks,
        })
    }

    /// The lower triangle of `L`, row by row.
    pub(crate) fn packed(&self) -> Vec<f64> {
        let rows = self.lower.chunks_exact(self.n.max(1)).enumerate();
        rows.flat_map(|(row, values)| values[..=row].iter().copied())
            .collect()
    }

    /// `ln det a`.
    pub(crate) fn ln_det(&self) -> f64 {
        let diagonal = self.lower.iter().step_by(self.n + 1);
        diagonal.map(|value| 2.0 * value.ln()).sum()
    }

    /// Replaces `b` (n x `width`) by the solution `x` of `L x = b`.
    pub(crate) fn solve_lower(&self, b: &mut [f64], width: usize) {
        let n = self.n;
        let mut product = vec![0.0; BLOCK.min(n) * width];
        for start in (0..n).step_by(BLOCK) {
            if is_cancelled() {
                return;
            }
            let rows = BLOCK.min(n - start);
            let (known, rest) = b.split_at_mut(start * width);
            let rest = &mut rest[..rows * width];
            let left = Matrix::part(&self.lower[start * n..], rows, start, n);
            self::product(&mut product, left, Matrix::new(known, start, width));
            for (rest, product) in rest.iter_mut().zip(&product) {
                *rest -= product;
            }
            let inverse = self.inverse_block(start, rows);
            self::product(&mut product, inverse, Matrix::new(rest, rows, width));
            rest.copy_from_slice(&product[..rows * width]);
        }
    }

    /// Replaces `b` (n x `width`) by the solution `x` of `L' x = b`.
    pub(crate) fn solve_upper(&self, b: &mut [f64], width: usize) {
        let n = self.n;
        let mut product = vec![0.0; BLOCK.min(n) * width];
        for start in (0..n).step_by(BLOCK).rev() {
            if is_cancelled() {
                return;
            }
            let rows = BLOCK.min(n - start);
            let end = start + rows;
            let (rest, known) = b.split_at_mut(end * width);
            let rest = &mut rest[start * width..];
            let below = Matrix::part(tail(&self.lower, end * n + start), n - end, rows, n);
            transposed_product(&mut product, below, Matrix::new(known, n - end, width));
            for (rest, product) in rest.iter_mut().zip(&product) {
                *rest -= product;
            }
            let inverse = self.inverse_block(start, rows);
            transposed_product(&mut product, inverse, Matrix::new(rest, rows, width));
            rest.copy_from_slice(&product[..rows * width]);
        }
    }

    /// The lower triangle of the inverse of `a` (n x n). What is above the diagonal has no meaning.
    pub(crate) fn into_inverse(self) -> Vec<f64> {
        let n = self.n;
        let mut a = self.into_inverse_lower();
        // a = X'X with X = L^-1; a block of rows of X is not needed once that of `a` is there
        let mut product = vec![0.0; n * BLOCK.min(n)];
        for start in (0..n).step_by(BLOCK) {
            if is_cancelled() {
                return a;
            }
            let rows = BLOCK.min(n - start);
            let end = start + rows;
            let left = Matrix::part(&a[start * n + start..], n - start, rows, n);
            let right = Matrix::part(&a[start * n..], n - start, end, n);
            transposed_product(&mut product, left, right);
            for (row, product) in product.chunks_exact(end).take(rows).enumerate() {
                let at = (start + row) * n;
                a[at..at + end].copy_from_slice(product);
            }
        }
        a
    }

    /// `L^-1` (n x n), with zeros above the diagonal.
    pub(crate) fn into_inverse_lower(self) -> Vec<f64> {
        let Self {
            n,
            lower: mut x,
            inverse_blocks,
        } = self;
        let mut sum = vec![0.0; BLOCK * INVERSE_COLUMNS];
        let mut product = vec![0.0; BLOCK * INVERSE_COLUMNS];
        for start in (0..n).step_by(BLOCK) {
            if is_cancelled() {
                return x;
            }
            let rows = BLOCK.min(n - start);
            let at = start * BLOCK.min(n);
            let inverse = Matrix::new(&inverse_blocks[at..at + rows * rows], rows, rows);
            // X[start.., ..start] = -inverse L[start.., ..start] X[..start, ..start]; X is lower, so
            // columns from `first` on need the rows from `first` on alone
            for first in (0..start).step_by(INVERSE_COLUMNS) {
                let width = INVERSE_COLUMNS.min(start - first);
                let left = Matrix::part(&x[start * n + first..], rows, start - first, n);
                let right = Matrix::part(&x[first * n + first..], start - first, width, n);
                self::product(&mut sum, left, right);
                self::product(&mut product, inverse, Matrix::new(&sum, rows, width));
                for (row, product) in product.chunks_exact(width).take(rows).enumerate() {
                    let at = (start + row) * n + first;
                    for (x, product) in x[at..at + width].iter_mut().zip(product) {
                        *x = -product;
                    }
                }
            }
            for (row, inverse) in inverse_blocks[at..at + rows * rows]
                .chunks_exact(rows)
                .enumerate()
            {
                let at = (start + row) * n + start;
                x[at..at + rows].copy_from_slice(inverse);
                x[at + rows..(start + row + 1) * n].fill(0.0);
            }
        }
        x
    }

    /// The inverse of the diagonal block that starts at row `start`.
    fn inverse_block(&self, start: usize, rows: usize) -> Matrix<'_, f64> {
        let at = start * BLOCK.min(self.n);
        Matrix::new(&self.inverse_blocks[at..], rows, rows)
    }
}

/// The values from `at` on; none if the matrix ends before.
fn tail(values: &[f64], at: usize) -> &[f64] {
    values.get(at..).unwrap_or_default()
}

/// Number of rows whose products take at most [`MAX_UNCHECKED`] multiplications.
fn rows_at_once(row_cost: usize) -> usize {
    (MAX_UNCHECKED / row_cost.max(1)).max(BLOCK)
}

/// Factors the block of `width` rows at the start of `a`, whose rows are `stride` apart, in place;
/// returns the inverse of the factor.
fn factor_block(a: &mut [f64], width: usize, stride: usize) -> Option<Vec<f64>> {
    for row in 0..width {
        for column in 0..=row {
            let (above, this) = a.split_at_mut(row * stride);
            let other = if column == row {
                &this[..column]
            } else {
                &above[column * stride..column * stride + column]
            };
            let remainder = this[column] - dot(&this[..column], other);
            this[column] = if column == row {
                if remainder.is_nan() || remainder <= 0.0 {
                    return None;
                }
                remainder.sqrt()
            } else {
                remainder / above[column * stride + column]
            };
        }
    }
    inverse_of_block(a, width, stride)
}

/// The inverse (`width` x `width`) of the lower triangular block at the start of `lower`; `None` if
/// a diagonal value is not positive.
fn inverse_of_block(lower: &[f64], width: usize, stride: usize) -> Option<Vec<f64>> {
    let mut inverse = vec![0.0; width * width];
    for row in 0..width {
        let pivot = lower[row * stride + row];
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        let (known, this) = inverse.split_at_mut(row * width);
        for (other, known) in known.chunks_exact(width).enumerate() {
            let factor = lower[row * stride + other];
            for (this, known) in this[..=other].iter_mut().zip(known) {
                *this -= factor * known;
            }
        }
        for this in &mut this[..row] {
            *this /= pivot;
        }
        this[row] = 1.0 / pivot;
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    /// A positive definite matrix with entries of all sizes.
    fn matrix(n: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| {
            let distance = i.abs_diff(j) as f64;
            (-0.02 * distance).exp() * (1.0 + ((i * j) % 7) as f64 / 70.0)
                + if i == j { 1.5 } else { 0.0 }
        };
        (0..n * n).map(|at| entry(at / n, at % n)).collect()
    }

    /// Sizes below, at and beyond one block of rows and one group of columns.
    const SIZES: [usize; 6] = [1, 3, 64, 65, 200, 330];

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix() {
        for n in SIZES {
            let a = matrix(n);
            let factor = DenseCholesky::factor(a.clone(), n).unwrap();
            let l = |i: usize, j: usize| if j <= i { factor.lower[i * n + j] } else { 0.0 };
            for i in 0..n {
                let row: Vec<f64> = (0..=i)
                    .map(|j| (0..=j).map(|k| l(i, k) * l(j, k)).sum())
                    .collect();
                close(&row, &a[i * n..=i * n + i], 1e-12);
            }
            let again = DenseCholesky::from_packed(&factor.packed(), n).unwrap();
            close(&again.inverse_blocks, &factor.inverse_blocks, 1e-14);
        }
        assert!(DenseCholesky::factor(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(DenseCholesky::from_packed(&[1.0, 2.0, 0.0], 2).is_none());
    }

    #[test]
    fn solutions_solve_their_systems() {
        for n in SIZES {
            let a = matrix(n);
            let factor = DenseCholesky::factor(a.clone(), n).unwrap();
            for width in [1, 5] {
                let b: Vec<f64> = (0..n * width).map(|at| (at % 11) as f64 - 5.0).collect();
                let mut x = b.clone();
                factor.solve_lower(&mut x, width);
                factor.solve_upper(&mut x, width);
                let mut found = vec![0.0; n * width];
                product(&mut found, Matrix::new(&a, n, n), Matrix::new(&x, n, width));
                // only the lower triangle of `a` is read
                let symmetric = (0..n * n).all(|at| at % n > at / n || a[at] <= 3.0);
                assert!(symmetric);
                close(&found, &b, 1e-9);
            }
        }
    }

    #[test]
    fn the_inverse_and_the_determinant_are_those_of_the_matrix() {
        for n in SIZES {
            let a = matrix(n);
            let factor = DenseCholesky::factor(a.clone(), n).unwrap();
            let mut small = a.clone();
            assert!(crate::numerics::cholesky::factor(&mut small, n));
            let ln_det = crate::numerics::cholesky::ln_det(&small, n);
            close(&[factor.ln_det()], &[ln_det], 1e-12);
            let mut expected = vec![0.0; n * n];
            crate::numerics::cholesky::inverse(&small, n, &mut expected);
            let found = factor.into_inverse();
            for row in 0..n {
                let part = row * n..=row * n + row;
                close(&found[part.clone()], &expected[part], 1e-10);
            }
        }
    }
}
