//! Matrix products: the only file that names the GEMM library. Matrices are row-major slices.

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

/// out (a.rows x b.rows) = a b': every row of `a` with every row of `b`.
pub(crate) fn product_transposed<T: Real>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_eq!(a.cols, b.cols, "inner sizes agree");
    let strides = Strides {
        a: (a.cols, 1),
        b: (1, b.cols),
    };
    multiply(out, (a.rows, b.rows, a.cols), a.values, b.values, strides);
}

/// out (a.rows x b.cols) = a b.
pub(crate) fn product<T: Real>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_eq!(a.cols, b.rows, "inner sizes agree");
    let strides = Strides {
        a: (a.cols, 1),
        b: (b.cols, 1),
    };
    multiply(out, (a.rows, b.cols, a.cols), a.values, b.values, strides);
}

/// (row stride, column stride) of both factors.
#[derive(Debug, Clone, Copy)]
struct Strides {
    a: (usize, usize),
    b: (usize, usize),
}

#[expect(
    unsafe_code,
    reason = "the library takes raw pointers; sizes are asserted by `Matrix::new` and here"
)]
fn multiply<T: Real>(
    out: &mut [T],
    (m, n, k): (usize, usize, usize),
    a: &[T],
    b: &[T],
    strides: Strides,
) {
    assert!(out.len() >= m * n, "the product needs rows x cols values");
    // SAFETY: `Matrix::new` and the line above hold every index inside its slice, and `out` is borrowed alone.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            strides.a.1 as isize,
            strides.a.0 as isize,
            b.as_ptr(),
            strides.b.1 as isize,
            strides.b.0 as isize,
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
