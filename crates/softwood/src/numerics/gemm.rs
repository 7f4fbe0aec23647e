//! Matrix products. This is the only file that uses the GEMM library. Matrices are row-major
//! slices.

use crate::numerics::real::Real;

/// A row-major matrix: `rows x cols` values, whose rows start `stride` values apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    pub(crate) fn new(values: &'a [T], rows: usize, cols: usize) -> Self {
        assert!(
            values.len() >= rows * cols,
            "a matrix needs rows x cols values"
        );
        Self {
            values,
            rows,
            cols,
            stride: cols,
        }
    }

    /// A part of a matrix with rows of `stride` values, from the first value of `values` on.
    pub(crate) fn part(values: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(
            cols <= stride
                && (rows == 0 || cols == 0 || (rows - 1) * stride + cols <= values.len()),
            "the part lies inside its matrix"
        );
        Self {
            values,
            rows,
            cols,
            stride,
        }
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
    T::multiply(out, size, &Factor::of(&a), &Factor::transposed(&b));
}

/// `out` (a.rows x b.cols) = `a b`.
pub(crate) fn product<T: Real>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_eq!(a.cols, b.rows, "inner sizes agree");
    let size = ProductSize {
        rows: a.rows,
        cols: b.cols,
        inner: a.cols,
    };
    T::multiply(out, size, &Factor::of(&a), &Factor::of(&b));
}

/// `out` (a.cols x b.cols) = `a' b`.
pub(crate) fn transposed_product<T: Real>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_eq!(a.rows, b.rows, "inner sizes agree");
    let size = ProductSize {
        rows: a.cols,
        cols: b.cols,
        inner: a.rows,
    };
    T::multiply(out, size, &Factor::transposed(&a), &Factor::of(&b));
}

/// A number type that has a matrix product.
pub(crate) trait Product: Sized {
    /// `out` = `a b`, row-major.
    fn multiply(out: &mut [Self], size: ProductSize, a: &Factor<'_, Self>, b: &Factor<'_, Self>);
}

/// Shape of a product: `rows x inner` times `inner x cols`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProductSize {
    rows: usize,
    cols: usize,
    inner: usize,
}

/// One factor of a product: its values and the distance between neighbours in a column and in a
/// row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factor<'a, T> {
    values: &'a [T],
    row_stride: isize,
    col_stride: isize,
}

impl<'a, T> Factor<'a, T> {
    fn of(matrix: &Matrix<'a, T>) -> Self {
        Self {
            values: matrix.values,
            row_stride: matrix.stride as isize,
            col_stride: 1,
        }
    }

    fn transposed(matrix: &Matrix<'a, T>) -> Self {
        Self {
            values: matrix.values,
            row_stride: 1,
            col_stride: matrix.stride as isize,
        }
    }

    /// The transposed factor.
    fn swapped(&self) -> Self {
        Self {
            values: self.values,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }
}

/// The product of one number type by the function of the library for that type.
macro_rules! library_product {
    ($real:ty, $gemm:expr) => {
        impl Product for $real {
            #[expect(
                unsafe_code,
                reason = "the library takes raw pointers; sizes are asserted by `Matrix` and here"
            )]
            fn multiply(
                out: &mut [Self],
                size: ProductSize,
                a: &Factor<'_, Self>,
                b: &Factor<'_, Self>,
            ) {
                let ProductSize { rows, cols, inner } = size;
                assert!(
                    out.len() >= rows * cols,
                    "the product needs rows x cols values"
                );
                // The library computes column-major products: `out' = b' a'`. A single column is both.
                let (m, n, lhs, rhs) = if cols > 1 {
                    (cols, rows, b.swapped(), a.swapped())
                } else {
                    (rows, cols, *a, *b)
                };
                // SAFETY: `Matrix` and the assertion above keep every index inside its slice, and
                // `out` is borrowed mutably.
                unsafe {
                    $gemm(
                        m,
                        n,
                        inner,
                        out.as_mut_ptr(),
                        cols as isize,
                        1,
                        false,
                        lhs.values.as_ptr(),
                        lhs.col_stride,
                        lhs.row_stride,
                        rhs.values.as_ptr(),
                        rhs.col_stride,
                        rhs.row_stride,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        gemm_common::Parallelism::None,
                    );
                }
            }
        }
    };
}

library_product!(f32, gemm_f32::gemm::f32::get_gemm_fn());
library_product!(f64, gemm_f64::gemm::f64::get_gemm_fn());

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    /// Values of a small matrix, exact in f32.
    fn values(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| (i * step % 17) as f32 - 8.0).collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        for (m, n, k) in [(7, 5, 3), (40, 1, 9), (1, 33, 4), (1, 1, 5)] {
            let (a, b) = (values(m * k, 5), values(k * n, 7));
            let expected: Vec<f64> = (0..m * n)
                .map(|at| {
                    let entry = |j: usize| a[at / n * k + j] * b[j * n + at % n];
                    (0..k).map(|j| f64::from(entry(j))).sum()
                })
                .collect();
            let transposed: Vec<f32> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
            agree::<f32>([&a, &b, &transposed], [m, n, k], &expected);
            agree::<f64>([&a, &b, &transposed], [m, n, k], &expected);
        }
    }

    fn agree<T: Real>(factors: [&[f32]; 3], [m, n, k]: [usize; 3], expected: &[f64]) {
        let [a, b, transposed] =
            factors.map(|values| values.iter().map(|&x| T::of(x.into())).collect::<Vec<T>>());
        let wide = |out: &[T]| out.iter().map(|x| x.wide()).collect::<Vec<f64>>();
        let mut out = vec![T::ZERO; m * n];
        product(&mut out, Matrix::new(&a, m, k), Matrix::new(&b, k, n));
        close(&wide(&out), expected, 1e-14);
        out.fill(T::ZERO);
        let transposed = Matrix::new(&transposed, n, k);
        product_transposed(&mut out, Matrix::new(&a, m, k), transposed);
        close(&wide(&out), expected, 1e-14);
        // a transposed first factor that is a part of a wider matrix
        let stride = m + 3;
        let mut wider = vec![T::ONE; k * stride];
        for at in 0..m * k {
            wider[at % k * stride + at / k] = a[at];
        }
        out.fill(T::ZERO);
        let part = Matrix::part(&wider, k, m, stride);
        transposed_product(&mut out, part, Matrix::new(&b, k, n));
        close(&wide(&out), expected, 1e-14);
    }
}
