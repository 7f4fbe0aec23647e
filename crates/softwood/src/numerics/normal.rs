//! The standard Normal distribution: density, cdf, quantile, and functions for vectorised loops
//! over many Normals.

#![allow(clippy::inline_always)]

use crate::numerics::special::{exp, scaled_tail};

/// `ln(2π) / 2`.
pub(crate) const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
/// `1 / √(2π)`.
pub(crate) const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_7;

/// `Phi(z)` and `e^{-z²/2}`. The lower tail has a relative error below 1e-12 down to z = -37 and is
/// zero below.
#[inline(always)]
pub(crate) fn cdf_and_kernel(z: f64) -> (f64, f64) {
    let kernel = exp(-0.5 * z * z);
    let tail = kernel * scaled_tail(z.abs());
    (if z < 0.0 { tail } else { 1.0 - tail }, kernel)
}

/// `E|X|` of a Normal with mean `m` and standard deviation `s`:
/// `2 s phi(m/s) + m (2 Phi(m/s) - 1)`.
#[inline(always)]
pub(crate) fn mean_distance(m: f64, s: f64) -> f64 {
    let z = m.abs() / s;
    let kernel = exp(-0.5 * z * z);
    // 2 Phi(|z|) - 1 = 1 - 2 tail
    let tail = kernel * scaled_tail(z);
    (2.0 * INV_SQRT_TAU * s).mul_add(kernel, m.abs() * (-2.0_f64).mul_add(tail, 1.0))
}

/// The quantile of level `p` to about 1e-3 (Abramowitz and Stegun 26.2.23), for starting points.
pub(crate) fn rough_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p).max(f64::MIN_POSITIVE);
    let t = (-2.0 * tail.ln()).sqrt();
    let numerator = (0.010_328 * t + 0.802_853) * t + 2.515_517;
    let denominator = ((0.001_308 * t + 0.189_269) * t + 1.432_788) * t + 1.0;
    let z = t - numerator / denominator;
    if p < 0.5 { -z } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cdf(z: f64) -> f64 {
        cdf_and_kernel(z).0
    }

    /// `Phi(-z)` for z >= 0: the series about zero below 3, Laplace's continued fraction above.
    fn slow_tail(z: f64) -> f64 {
        let density = INV_SQRT_TAU * (-0.5 * z * z).exp();
        if z < 3.0 {
            let (mut term, mut sum) = (z, z);
            for n in 1..100 {
                term *= z * z / f64::from(2 * n + 1);
                sum += term;
            }
            return 0.5 - density * sum;
        }
        density / (1..300).rev().fold(z, |below, k| z + f64::from(k) / below)
    }

    proptest! {
        #[test]
        fn cdf_agrees_with_the_series_and_the_continued_fraction(z in 0.0..37.0_f64) {
            let expected = slow_tail(z);
            // the series loses digits as the tail probability falls below one half
            let tolerance = if z < 3.0 { 1e-15 } else { 2e-13 * expected };
            prop_assert!((cdf(-z) - expected).abs() <= tolerance, "{z}: {} {expected}", cdf(-z));
            prop_assert!((cdf(z) + cdf(-z) - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn tails_keep_their_digits() {
        // Phi(-z) computed with 60 digits
        for (z, expected) in [
            (0.5, 0.308_537_538_725_986_9),
            (3.0, 0.001_349_898_031_630_094_6),
            (8.0, 6.220_960_574_271_784e-16),
            (20.0, 2.753_624_118_606_233_7e-89),
            (37.0, 5.725_571_222_524_577e-300),
        ] {
            assert!((cdf(-z) / expected - 1.0).abs() < 2e-13, "{z}");
        }
    }

    #[test]
    fn mean_distance_agrees_with_known_values() {
        // E|N(0, 1)| = √(2/π); far from zero the distance is the mean
        assert!((mean_distance(0.0, 1.0) - (2.0 / std::f64::consts::PI).sqrt()).abs() < 1e-15);
        assert!((mean_distance(-50.0, 2.0) - 50.0).abs() < 1e-13);
    }

    #[test]
    fn rough_quantiles_are_near() {
        for p in [1e-6, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-6] {
            assert!((cdf(rough_quantile(p)) - p).abs() < 2e-3 * p.min(1.0 - p).max(0.01));
        }
    }
}
