//! Products of a small matrix with columns of rows in lanes, for one chunk of rows.

use crate::numerics::real::{LANES, Lanes, Real};

/// Number of rows of the matrix that are computed side by side: with fewer, the additions would
/// wait for each other.
const SIDE_BY_SIDE: usize = 4;

/// `out[o] = bias[o] + sum_i weights[o, i] input[i]`; `weights` is row-major, `out.len() x
/// input.len()`.
#[inline(always)]
pub(crate) fn affine<T: Real>(weights: &[T], bias: &[T], input: &[Lanes<T>], out: &mut [Lanes<T>]) {
    let n = input.len();
    let n_blocks = out.len() / SIDE_BY_SIDE;
    for block in 0..n_blocks {
        let first = block * SIDE_BY_SIDE;
        let rows = &weights[first * n..(first + SIDE_BY_SIDE) * n];
        let (row_0, rest) = rows.split_at(n);
        let (row_1, rest) = rest.split_at(n);
        let (row_2, row_3) = rest.split_at(n);
        let mut sums: [Lanes<T>; SIDE_BY_SIDE] =
            std::array::from_fn(|row| Lanes::of(bias[first + row]));
        for ((((x, &a), &b), &c), &d) in input.iter().zip(row_0).zip(row_1).zip(row_2).zip(row_3) {
            for lane in 0..LANES {
                sums[0][lane] = a.fma(x[lane], sums[0][lane]);
                sums[1][lane] = b.fma(x[lane], sums[1][lane]);
                sums[2][lane] = c.fma(x[lane], sums[2][lane]);
                sums[3][lane] = d.fma(x[lane], sums[3][lane]);
            }
        }
        out[first..first + SIDE_BY_SIDE].copy_from_slice(&sums);
    }
    for row in n_blocks * SIDE_BY_SIDE..out.len() {
        let mut sum = Lanes::of(bias[row]);
        for (x, &weight) in input.iter().zip(&weights[row * n..(row + 1) * n]) {
            for lane in 0..LANES {
                sum[lane] = weight.fma(x[lane], sum[lane]);
            }
        }
        out[row] = sum;
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
