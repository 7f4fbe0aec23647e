//! Eigenvalues and eigenvectors of small symmetric matrices, by Jacobi rotations.

use crate::numerics::order::descending;
use crate::stop::until_cancelled;

/// Largest number of sweeps; the off-diagonal part of a small matrix vanishes earlier.
const MAX_SWEEPS: usize = 30;

/// Eigenvalues of `a` (n x n, symmetric, row-major) in decreasing order, and their unit
/// eigenvectors as rows.
pub(crate) fn symmetric(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = a.to_vec();
    let mut vectors = vec![0.0; n * n];
    for i in 0..n {
        vectors[i * n + i] = 1.0;
    }
    let squared_norm: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..MAX_SWEEPS {
        let off_diagonal: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i * n + j].powi(2))
            .sum();
        if off_diagonal <= 1e-30 * squared_norm {
            break;
        }
        for p in until_cancelled(0..n) {
            for q in p + 1..n {
                rotate(&mut a, &mut vectors, n, p, q);
            }
        }
    }
    let diagonal: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
    let order = descending(&diagonal);
    let values = order.iter().map(|&i| diagonal[i]).collect();
    let rows = order
        .iter()
        .flat_map(|&i| vectors[i * n..(i + 1) * n].to_vec())
        .collect();
    (values, rows)
}

/// Applies the Jacobi rotation that makes `a[p][q]` zero; `vectors` holds eigenvectors as rows.
fn rotate(a: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    let off = a[p * n + q];
    if off.abs() < f64::MIN_POSITIVE {
        return;
    }
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * off);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    for k in 0..n {
        let (x, y) = (a[k * n + p], a[k * n + q]);
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for k in 0..n {
        let (x, y) = (a[p * n + k], a[q * n + k]);
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
        let (x, y) = (vectors[p * n + k], vectors[q * n + k]);
        vectors[p * n + k] = c * x - s * y;
        vectors[q * n + k] = s * x + c * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn vectors_diagonalise() {
        let n = 6;
        let a: Vec<f64> = (0..n * n)
            .map(|at| 1.0 / (1.0 + (at / n) as f64 + (at % n) as f64))
            .collect();
        let (values, vectors) = symmetric(&a, n);
        for (value, vector) in values.iter().zip(vectors.chunks_exact(n)) {
            let image: Vec<f64> = (0..n)
                .map(|i| (0..n).map(|j| a[i * n + j] * vector[j]).sum())
                .collect();
            close(
                &image,
                &vector.iter().map(|x| x * value).collect::<Vec<_>>(),
                1e-12,
            );
            close(&[vector.iter().map(|x| x * x).sum()], &[1.0], 1e-12);
        }
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
    }
}
