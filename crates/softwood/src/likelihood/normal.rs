//! Normal likelihoods: `y ~ N(m, e^{2s})`. The outputs are `m` and `s` for boosted trees
//! ([`Normal`]), `m` and a raw scale `r` with `e^s = softplus(r) + floor` for soft trees
//! ([`SoftplusNormal`]), or `m` alone ([`KnownNoise`]).
//!
//! With `z = (y - m) e^{-s}`: log-likelihood `-s - z^2/2 - ln(2 pi)/2`; gradient
//! `(z e^{-s}, z^2 - 1)`, and `d/dr = (z^2 - 1) e^{-s} sigmoid(r)`; Fisher information
//! `diag(e^{-2s}, 2)`. The natural gradient is their ratio, `(y - m, (z^2 - 1)/2)`.
//!
//! A leaf of a boosted tree moves its log scale by the mean of the natural gradient, and its mean by an average of
//! the residuals `y - m` weighted by `e^{-s}`: `sum z / sum e^{-s}`. Weights `e^{-2s}` would be
//! efficient under the true scales, but with estimated scales a few rows of small scale dominate a
//! leaf; with equal weights the noisiest rows dominate it. If all rows of a leaf have the same
//! scale, the three averages agree. Given the scales, the variance of the average is
//! `n / (sum e^{-s})^2`; Langevin noise derives from it.
//!
//! Two safeguards: `z` is clamped to [`Z_LIMIT`], which bounds the influence of outliers; `s` is
//! clamped to at least the log of the floor, and below the floor its gradient is never negative.

use multiversion::multiversion;

use crate::likelihood::{Likelihood, OutputNames, OutputTerms, TargetDensity, target_mean};
use crate::numerics::normal::HALF_LN_TAU;
use crate::numerics::real::{LANES, Lanes, Real, gate, softplus};
use crate::numerics::special::exp;

/// Bound of the absolute standardised residual.
const Z_LIMIT: f32 = 8.0;
/// Largest step of the log scale in one leaf.
const MAX_SCALE_STEP: f64 = 1.0;
/// Largest log scale, far above that of any standardised target.
const MAX_LOG_SCALE: f32 = 8.0;

/// Log density at the standardised residual `z`.
#[inline(always)]
fn log_density<T: Real>(z: T, log_scale: T) -> T {
    -(T::of(0.5) * z).fma(z, log_scale + T::of(HALF_LN_TAU))
}

/// Log density at a squared residual, for learners that estimate variances instead of log scales.
pub(crate) fn log_density_of_square(square: f64, variance: f64) -> f64 {
    -0.5 * ((std::f64::consts::TAU * variance).ln() + square / variance)
}

/// The log density as a sum of products: factors of 1, `y` and `y^2`.
pub(crate) fn log_density_factors(mean: f64, log_scale: f64) -> [f64; 3] {
    let half_precision = 0.5 * (-2.0 * log_scale).exp();
    [
        -half_precision * mean * mean - log_scale - HALF_LN_TAU,
        2.0 * half_precision * mean,
        -half_precision,
    ]
}

/// Gradient of a weighted sum of log densities with respect to the mean and the log scale, from the
/// weighted sums of 1, `y` and `y^2`.
pub(crate) fn gradient_of_sums(mean: f64, log_scale: f64, [s0, s1, s2]: [f64; 3]) -> [f64; 2] {
    let precision = (-2.0 * log_scale).exp();
    let squares = s2 - 2.0 * mean * s1 + mean * mean * s0;
    [precision * (s1 - mean * s0), precision * squares - s0]
}

/// Derivative of the log density with respect to the mean.
#[inline(always)]
fn d_mean<T: Real>(z: T, inverse_scale: T) -> T {
    z * inverse_scale
}

/// Derivative of the log density with respect to the log scale.
#[inline(always)]
fn d_log_scale<T: Real>(z: T) -> T {
    z * z - T::ONE
}

/// Normal density with outputs mean and raw scale: `sd = softplus(raw) + floor`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoftplusNormal {
    /// Lower bound on the standard deviation.
    pub(crate) floor: f64,
}

impl SoftplusNormal {
    /// Standard deviation for a raw scale.
    #[inline(always)]
    pub(crate) fn sd<T: Real>(self, raw: T) -> T {
        softplus(raw) + T::of(self.floor)
    }
}

impl TargetDensity for SoftplusNormal {
    fn output_names(&self) -> OutputNames {
        OutputNames::Each(&["mean", "raw scale"])
    }

    #[inline(always)]
    fn log_density<T: Real>(
        &self,
        outputs: &[Lanes<T>],
        target: &Lanes<T>,
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T> {
        let floor = T::of(self.floor);
        let (mean, raw, target) = (outputs[0], outputs[1], *target);
        let mut out = Lanes::of(T::ZERO);
        let (mut of_mean, mut of_raw) = (out, out);
        for lane in 0..LANES {
            let (d_soft, soft, _) = gate(raw[lane]);
            let sd = floor + soft;
            let inverse = T::ONE / sd;
            let z = (target[lane] - mean[lane]) * inverse;
            out[lane] = log_density(z, sd.ln());
            of_mean[lane] = d_mean(z, inverse);
            of_raw[lane] = d_log_scale(z) * inverse * d_soft;
        }
        (gradient[0], gradient[1]) = (of_mean, of_raw);
        out
    }
}

/// Normal density with the mean as output and a known standard deviation. Further outputs are not
/// used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownNoise {
    /// Standard deviation of the target.
    pub(crate) sd: f64,
}

impl TargetDensity for KnownNoise {
    fn output_names(&self) -> OutputNames {
        OutputNames::Each(&["mean"])
    }

    #[inline(always)]
    fn log_density<T: Real>(
        &self,
        outputs: &[Lanes<T>],
        target: &Lanes<T>,
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T> {
        let sd = T::of(self.sd);
        let (inverse, log_scale) = (T::ONE / sd, sd.ln());
        let mut out = Lanes::of(T::ZERO);
        for lane in 0..LANES {
            let z = (target[lane] - outputs[0][lane]) * inverse;
            out[lane] = log_density(z, log_scale);
            gradient[0][lane] = d_mean(z, inverse);
        }
        for unused in &mut gradient[1..] {
            *unused = Lanes::of(T::ZERO);
        }
        out
    }
}

/// Normal likelihood. The entries of a row are `z`, `e^{-s}`, the natural gradient of the log
/// scale, and 1, each times the weight of the row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Normal {
    /// Least standard deviation.
    pub(crate) floor: f64,
}

impl Normal {
    pub(crate) const OUTPUT_NAMES: OutputNames = OutputNames::Each(&["mean", "log scale"]);

    /// The log scale of a raw output, clamped.
    pub(crate) fn log_scale(self, raw: f64) -> f64 {
        raw.clamp(self.floor.ln(), f64::from(MAX_LOG_SCALE))
    }

    /// Standard deviations of rows from their raw log scales.
    pub(crate) fn scales(self, raw: &[f64], out: &mut [f64]) {
        scales(self.floor.ln(), raw, out);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn scales(min_log_scale: f64, raw: &[f64], out: &mut [f64]) {
    for (out, &raw) in out.iter_mut().zip(raw) {
        *out = exp(raw.clamp(min_log_scale, f64::from(MAX_LOG_SCALE)));
    }
}

impl Likelihood<4> for Normal {
    fn outputs(&self, l2: f64, totals: &[f64; 4]) -> Vec<OutputTerms> {
        // puts the score of the mean in the units of the log scale's: (sum z)^2 / n if all rows
        // have the same scale
        let mean_precision = totals[1] / totals[3];
        vec![
            OutputTerms {
                gradient: 0,
                hessian: 1,
                factor: mean_precision,
                l2: l2 * mean_precision,
            },
            OutputTerms {
                gradient: 2,
                hessian: 3,
                factor: 2.0,
                l2,
            },
        ]
    }

    fn noise_variance(&self, output: usize, sums: &[f64; 4], hessian: f64) -> f64 {
        if output == 0 {
            // n / (W + l2)^2, as (n / W) W / (W + l2)^2 with W >= l2 in the second factor: without
            // this bound a leaf of one row would have a smaller variance than a leaf of ten
            let (n, weights) = (sums[3], sums[1]);
            let l2 = hessian - weights;
            let bounded = weights.max(l2);
            if weights > 0.0 {
                n / weights * bounded / (bounded + l2).powi(2)
            } else {
                0.0
            }
        } else {
            0.5 / hessian
        }
    }

    /// Only the mean: noise on the log scale would change scales by orders of magnitude.
    fn has_noise_in_empty_leaves(&self, output: usize) -> bool {
        output == 0
    }

    fn weight_entry(&self) -> usize {
        3
    }

    fn start(&self, target: &[f32], weight: &[f32]) -> Vec<f64> {
        let weighted = |of: &dyn Fn(f64) -> f64| -> f64 {
            target
                .iter()
                .zip(weight)
                .map(|(&y, &w)| of(f64::from(y)) * f64::from(w))
                .sum()
        };
        let total: f64 = weight.iter().map(|&w| f64::from(w)).sum();
        let mean = target_mean(target, weight);
        let variance = weighted(&|y| (y - mean).powi(2)) / total;
        vec![mean, 0.5 * variance.max(self.floor.powi(2)).ln()]
    }

    fn grad_hess(&self, raw: &[f32], target: &[f32], weight: &[f32], out: &mut [[f32; 4]]) {
        grad_hess(raw, target, weight, self.floor.ln() as f32, out);
    }

    fn step_limit(&self, output: usize) -> f64 {
        if output == 0 {
            f64::INFINITY
        } else {
            MAX_SCALE_STEP
        }
    }

    /// The shift of the log scale is `ln(mean z^2) / 2`, if positive.
    fn scale_correction(&self, raw: &[f32], target: &[f32], weight: &[f32]) -> Vec<f64> {
        let (mut sum, mut total) = (0.0, 0.0);
        for ((raw, &y), &w) in raw.as_chunks::<2>().0.iter().zip(target).zip(weight) {
            let inverse = (-self.log_scale(f64::from(raw[1]))).exp();
            let z =
                (f64::from(y - raw[0]) * inverse).clamp(-f64::from(Z_LIMIT), f64::from(Z_LIMIT));
            sum += f64::from(w) * z * z;
            total += f64::from(w);
        }
        vec![0.0, (0.5 * (sum / total).ln()).max(0.0)]
    }

    fn log_densities(&self, raw: &[f32], target: &[f32], out: &mut [f64]) {
        for ((out, raw), &y) in out.iter_mut().zip(raw.as_chunks::<2>().0).zip(target) {
            let s = self.log_scale(f64::from(raw[1]));
            let z = f64::from(y - raw[0]) * (-s).exp();
            *out = -s - 0.5 * z * z - HALF_LN_TAU;
        }
    }
}

/// Rows whose entries are computed together, in SIMD lanes.
const CHUNK: usize = 16;

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn grad_hess(
    raw: &[f32],
    target: &[f32],
    weight: &[f32],
    min_log_scale: f32,
    out: &mut [[f32; 4]],
) {
    let (rows, last) = raw.as_chunks::<2>().0.as_chunks();
    let (targets, last_target) = target.as_chunks();
    let (weights, last_weight) = weight.as_chunks();
    let (out, last_out) = out.as_chunks_mut();
    for (((row, target), weight), out) in rows.iter().zip(targets).zip(weights).zip(out) {
        *out = grad_hess_of_chunk(row, target, weight, min_log_scale);
    }
    if !last.is_empty() {
        let mut padded = ([[0.0; 2]; CHUNK], [0.0; CHUNK], [0.0; CHUNK]);
        padded.0[..last.len()].copy_from_slice(last);
        padded.1[..last.len()].copy_from_slice(last_target);
        padded.2[..last.len()].copy_from_slice(last_weight);
        let chunk = grad_hess_of_chunk(&padded.0, &padded.1, &padded.2, min_log_scale);
        last_out.copy_from_slice(&chunk[..last.len()]);
    }
}

#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "only inlined code is compiled for the instruction set of its caller"
)]
fn grad_hess_of_chunk(
    raw: &[[f32; 2]; CHUNK],
    target: &[f32; CHUNK],
    weight: &[f32; CHUNK],
    min_log_scale: f32,
) -> [[f32; 4]; CHUNK] {
    // plain loops of one constant length, which the compiler vectorises; transposed in and out
    let mut columns = [[0.0_f32; CHUNK]; 2];
    for at in 0..CHUNK {
        columns[0][at] = raw[at][0];
        columns[1][at] = raw[at][1];
    }
    let mut entries = [[0.0_f32; CHUNK]; 3];
    for at in 0..CHUNK {
        let (mean, raw_scale, y, w) = (columns[0][at], columns[1][at], target[at], weight[at]);
        let log_scale = raw_scale.clamp(min_log_scale, MAX_LOG_SCALE);
        let precision = Real::exp(-log_scale);
        let z = ((y - mean) * precision).clamp(-Z_LIMIT, Z_LIMIT);
        let gradient = 0.5 * d_log_scale(z);
        let gradient = if raw_scale < min_log_scale {
            gradient.max(0.0)
        } else {
            gradient
        };
        entries[0][at] = w * z;
        entries[1][at] = w * precision;
        entries[2][at] = w * gradient;
    }
    let mut out = [[0.0; 4]; CHUNK];
    for at in 0..CHUNK {
        out[at] = [entries[0][at], entries[1][at], entries[2][at], weight[at]];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::central_difference;

    fn grad_hess_of_row(raw: [f32; 2], y: f32) -> [f32; 4] {
        let mut out = [[0.0; 4]];
        Normal { floor: 1e-3 }.grad_hess(&raw, &[y], &[1.0], &mut out);
        out[0]
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        for (y, raw) in [(1.1, [0.3, -0.4]), (-2.0, [1.5, 0.7]), (0.2, [0.1, -2.0])] {
            let log_likelihood = |raw: &[f64]| {
                let z = (y - raw[0]) * (-raw[1]).exp();
                -raw[1] - 0.5 * z * z
            };
            let exact = central_difference(log_likelihood, &raw);
            let entries = grad_hess_of_row([raw[0] as f32, raw[1] as f32], y as f32);
            let gradient = [
                f64::from(entries[0]) * (-raw[1]).exp(),
                2.0 * f64::from(entries[2]),
            ];
            for (gradient, exact) in gradient.iter().zip(exact) {
                assert!((gradient - exact).abs() < 1e-4 * exact.abs().max(1.0));
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_in_a_chunk_and_alone() {
        let n = 2 * CHUNK + 5;
        let at = |i: usize, k: usize| ((i * k) % 17) as f32 / 4.0 - 2.0;
        let raw: Vec<f32> = (0..n).flat_map(|i| [at(i, 5), at(i, 3) * 4.0]).collect();
        let target: Vec<f32> = (0..n).map(|i| at(i, 7) * 3.0).collect();
        let weight: Vec<f32> = (0..n).map(|i| at(i, 11) + 2.0).collect();
        let mut together = vec![[0.0; 4]; n];
        let likelihood = Normal { floor: 1e-3 };
        likelihood.grad_hess(&raw, &target, &weight, &mut together);
        for i in 0..n {
            let mut alone = [[0.0; 4]];
            let own = (&raw[2 * i..2 * i + 2], &target[i..=i], &weight[i..=i]);
            likelihood.grad_hess(own.0, own.1, own.2, &mut alone);
            assert_eq!(together[i].map(f32::to_bits), alone[0].map(f32::to_bits));
        }
    }

    #[test]
    fn the_natural_gradient_matches_its_golden_value() {
        let entries = grad_hess_of_row([0.3, -0.4], 1.1);
        // the golden value is the gradient of the loss
        assert!((-entries[0] / entries[1] + 0.8).abs() < 1e-6);
        assert!((-entries[2] / entries[3] + 0.212_173_1).abs() < 1e-6);
    }

    #[test]
    fn outliers_have_bounded_gradients_and_the_floor_holds() {
        assert!(grad_hess_of_row([0.0, 0.0], 1e30)[2] < 32.0);
        let below = grad_hess_of_row([0.0, -50.0], 0.0);
        assert!(below[2].abs() < 1e-9 && below[1] < 1.1e3);
    }
}
