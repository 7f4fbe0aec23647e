//! Cholesky decomposition of small symmetric positive definite matrices, row-major.

/// Replaces `a` (n x n, symmetric) by its lower factor `L` with `a = L L'`; false if `a` is not
/// positive definite.
pub(crate) fn factor(a: &mut [f64], n: usize) -> bool {
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let remainder = a[i * n + j] - dot;
            if i == j {
                if remainder.is_nan() || remainder <= 0.0 {
                    return false;
                }
                a[i * n + i] = remainder.sqrt();
            } else {
                a[i * n + j] = remainder / a[j * n + j];
            }
        }
        a[i * n + i + 1..(i + 1) * n].fill(0.0);
    }
    true
}

/// Replaces `b` by the solution `x` of `L L' x = b`.
pub(crate) fn solve(l: &[f64], n: usize, b: &mut [f64]) {
    for i in 0..n {
        let dot: f64 = (0..i).map(|k| l[i * n + k] * b[k]).sum();
        b[i] = (b[i] - dot) / l[i * n + i];
    }
    for i in (0..n).rev() {
        let dot: f64 = (i + 1..n).map(|k| l[k * n + i] * b[k]).sum();
        b[i] = (b[i] - dot) / l[i * n + i];
    }
}

/// Writes the inverse of `L L'` (n x n) to `out`.
pub(crate) fn inverse(l: &[f64], n: usize, out: &mut [f64]) {
    out.fill(0.0);
    for (column, out) in out.chunks_exact_mut(n.max(1)).enumerate() {
        out[column] = 1.0;
        solve(l, n, out);
    }
}

/// `ln det(L L')`.
pub(crate) fn ln_det(l: &[f64], n: usize) -> f64 {
    (0..n).map(|i| 2.0 * l[i * n + i].ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn factor_solve_inverse_and_determinant_agree() {
        let a = [4.0, 2.0, 0.4, 2.0, 5.0, -1.0, 0.4, -1.0, 3.0];
        let mut l = a.to_vec();
        assert!(factor(&mut l, 3));
        let mut inverse = [0.0; 9];
        super::inverse(&l, 3, &mut inverse);
        let product: Vec<f64> = (0..9)
            .map(|at| {
                (0..3)
                    .map(|k| a[at / 3 * 3 + k] * inverse[k * 3 + at % 3])
                    .sum()
            })
            .collect();
        close(
            &product,
            &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            1e-14,
        );
        let determinant = 4.0 * (15.0 - 1.0) - 2.0 * (6.0 + 0.4) + 0.4 * (-2.0 - 2.0);
        close(&[ln_det(&l, 3)], &[f64::ln(determinant)], 1e-14);
        assert!(!factor(&mut [1.0, 2.0, 2.0, 1.0], 2));
    }
}
