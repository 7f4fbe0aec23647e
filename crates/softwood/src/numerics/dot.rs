//! The dot product of two vectors.

use multiversion::multiversion;

/// The dot product in eight partial sums, which the compiler keeps in vectors.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let b = &b[..a.len()];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let rest: f64 = rest.map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..8 {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_summed_exactly() {
        for n in [0, 1, 7, 8, 21] {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let expected: i32 = (0..n).map(|x| x * x).sum();
            assert!((dot(&a, &a) - f64::from(expected)).abs() < 1e-12);
        }
    }
}
