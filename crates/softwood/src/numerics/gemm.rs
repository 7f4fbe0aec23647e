//! Matrix products. This is the only file that uses the GEMM library. Matrices are row-major
//! slices.

use crate::numerics::real::Real;

/// A row-major matrix: `rows x cols` values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    cols: usize,
}

impl<'a, T> Matrix<'a, T> {
    pub(crate) fn new(values: &'a [T], rows: usize, cols: usize) -> Self {
        assert!(
            values.len() >= rows * cols,
            "a matrix needs rows x cols values"
        );
        Self { values, rows, cols }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
}

/// `out` (a.rows x b.rows) = `a b'`: the dot product of every row of `a` with every row of `b`.
pub(crate) fn product_transposed<T: Real>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_eq!(a.cols, b.cols, "inner sizes agree");
    let size = ProductSize {
        rows: a.rows,
        cols: b.rows,
        inner: a.cols,
    };
    let (a, b) = (Factor::of(&a), Factor::transposed(&b));
    multiply(out, size, &a, &b);
}

/// `out` (a.rows x b.cols) = `a b`.
pub(crate) fn product<T: Real>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_eq!(a.cols, b.rows, "inner sizes agree");
    let size = ProductSize {
        rows: a.rows,
        cols: b.cols,
        inner: a.cols,
    };
    multiply(out, size, &Factor::of(&a), &Factor::of(&b));
}

/// Shape of a product: `rows x inner` times `inner x cols`.
#[derive(Debug, Clone, Copy)]
struct ProductSize {
    rows: usize,
    cols: usize,
    inner: usize,
}

/// One factor of a product: its values and the distance between neighbours in a column and in a
/// row.
#[derive(Debug, Clone, Copy)]
struct Factor<'a, T> {
    values: &'a [T],
    row_stride: isize,
    col_stride: isize,
}

impl<'a, T> Factor<'a, T> {
    fn of(matrix: &Matrix<'a, T>) -> Self {
        Self {
            values: matrix.values,
            row_stride: matrix.cols as isize,
            col_stride: 1,
        }
    }

    fn transposed(matrix: &Matrix<'a, T>) -> Self {
        Self {
            values: matrix.values,
            row_stride: 1,
            col_stride: matrix.cols as isize,
        }
    }
}

#[expect(
    unsafe_code,
    reason = "the library takes raw pointers; sizes are asserted by `Matrix::new` and here"
)]
fn multiply<T: Real>(out: &mut [T], size: ProductSize, a: &Factor<'_, T>, b: &Factor<'_, T>) {
    let ProductSize { rows, cols, inner } = size;
    assert!(
        out.len() >= rows * cols,
        "the product needs rows x cols values"
    );
    // SAFETY: `Matrix::new` and the assertion above keep every index inside its slice, and `out` is
    // borrowed mutably.
    unsafe {
        gemm::gemm(
            rows,
            cols,
            inner,
            out.as_mut_ptr(),
            1,
            cols as isize,
            false,
            a.values.as_ptr(),
            a.col_stride,
            a.row_stride,
            b.values.as_ptr(),
            b.col_stride,
            b.row_stride,
            T::ZERO,
            T::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn products_agree_with_the_definition() {
        let (m, n, k) = (7, 5, 3);
        let a: Vec<f64> = (0..m * k).map(|i| (i as f64).sin()).collect();
        let b: Vec<f64> = (0..k * n).map(|i| (i as f64).cos()).collect();
        let expected: Vec<f64> = (0..m * n)
            .map(|at| (0..k).map(|j| a[at / n * k + j] * b[j * n + at % n]).sum())
            .collect();
        let mut out = vec![0.0; m * n];
        product(&mut out, Matrix::new(&a, m, k), Matrix::new(&b, k, n));
        close(&out, &expected, 1e-14);
        let transposed: Vec<f64> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
        product_transposed(
            &mut out,
            Matrix::new(&a, m, k),
            Matrix::new(&transposed, n, k),
        );
        close(&out, &expected, 1e-14);
    }
}
