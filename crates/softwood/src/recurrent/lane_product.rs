//! Products of a small matrix with columns of rows in lanes, for one chunk of rows.

use crate::numerics::real::{LANES, Lanes, Real};

/// Number of rows of the matrix that are computed side by side: with fewer, the additions would
/// wait for each other.
const SIDE_BY_SIDE: usize = 4;

/// `weight x + sum`. Lanes are passed by value and the sums are separate variables, because the
/// compiler keeps sums in registers only then.
#[inline(always)]
pub(crate) fn add_product<T: Real>(weight: T, x: Lanes<T>, sum: Lanes<T>) -> Lanes<T> {
    let mut out = sum;
    for lane in 0..LANES {
        out[lane] = weight.fma(x[lane], sum[lane]);
    }
    out
}

/// `out[o] = bias[o] + sum_i weights[o, i] input[i]`; `weights` is row-major, `out.len() x
/// input.len()`.
#[inline(always)]
pub(crate) fn affine<T: Real>(weights: &[T], bias: &[T], input: &[Lanes<T>], out: &mut [Lanes<T>]) {
    for (out, &bias) in out.iter_mut().zip(bias) {
        *out = Lanes::of(bias);
    }
    add_product_of(weights, input, out);
}

/// `out[o] += sum_i weights[o, i] input[i]`; `weights` is row-major, `out.len() x input.len()`.
#[inline(always)]
pub(crate) fn add_product_of<T: Real>(weights: &[T], input: &[Lanes<T>], out: &mut [Lanes<T>]) {
    let n = input.len();
    let mut blocks = out.chunks_exact_mut(SIDE_BY_SIDE);
    let mut first = 0;
    for out in &mut blocks {
        let rows = &weights[first * n..(first + SIDE_BY_SIDE) * n];
        let (row_0, rest) = rows.split_at(n);
        let (row_1, rest) = rest.split_at(n);
        let (row_2, row_3) = rest.split_at(n);
        let (mut sum_0, mut sum_1) = (out[0], out[1]);
        let (mut sum_2, mut sum_3) = (out[2], out[3]);
        for i in 0..n {
            let x = input[i];
            sum_0 = add_product(row_0[i], x, sum_0);
            sum_1 = add_product(row_1[i], x, sum_1);
            sum_2 = add_product(row_2[i], x, sum_2);
            sum_3 = add_product(row_3[i], x, sum_3);
        }
        out[0] = sum_0;
        out[1] = sum_1;
        out[2] = sum_2;
        out[3] = sum_3;
        first += SIDE_BY_SIDE;
    }
    for (row, out) in (first..).zip(blocks.into_remainder()) {
        let mut sum = *out;
        for (&x, &weight) in input.iter().zip(&weights[row * n..(row + 1) * n]) {
            sum = add_product(weight, x, sum);
        }
        *out = sum;
    }
}

/// The transposed matrix of a row-major `rows x cols` one.
pub(crate) fn transposed<T: Real>(matrix: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; rows * cols];
    for row in 0..rows {
        for col in 0..cols {
            out[col * rows + row] = matrix[row * cols + col];
        }
    }
    out
}

/// Writes lanes to `values[at..]`.
#[inline(always)]
pub(crate) fn store<T: Real>(values: &mut [T], at: usize, lanes: &Lanes<T>) {
    values[at..at + LANES].copy_from_slice(&lanes.0);
}
