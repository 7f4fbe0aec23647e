//! Log density and cdf of Normal heads at one target value per row, as loops over rows.
//!
//! `p(y) = (1/S) Σ_s Σ_c w φ((y - μ)/σ) / σ`. Terms are summed relative to the largest one, whose
//! logarithm is only needed to a factor of two: the binary exponent of `w/σ` replaces its
//! logarithm. Targets so far out that these terms lose their digits have a slower computation of
//! their own.

use multiversion::multiversion;

use crate::numerics::logspace::log_sum_exp;
use crate::numerics::normal::{HALF_LN_TAU, cdf_and_kernel, mean_distance};
use crate::numerics::special::exp;
use crate::predictive::block::{Block, NormalParameters};

/// Largest standardised target value, in absolute terms. Quotients by the standard deviation of a
/// component stay finite, and every cdf is 0 or 1 long before.
pub(crate) const MAX_STANDARDISED: f64 = 1e150;
/// Below this logarithm of the largest term, the terms are summed in plain f64 logarithms: relative
/// terms would carry the rounding error of the largest one.
const MIN_LARGEST: f64 = -1e12;

/// Target values of the rows of a block in standardised units, clamped to [`MAX_STANDARDISED`] and
/// padded to the stride of the block. NaN stays NaN.
pub(crate) fn standardise(block: &Block, y: &[f64]) -> Vec<f64> {
    let standardised = |y: &f64| {
        let z = (y - block.shift) / block.scale;
        z.clamp(-MAX_STANDARDISED, MAX_STANDARDISED)
    };
    let mut z: Vec<f64> = y.iter().map(standardised).collect();
    z.resize(block.stride, 0.0);
    z
}

/// Log density of each row at `y`: natural logarithm, per unit of the target. Finite for finite
/// `y`, at least `f64::MIN`; negative infinity at infinities, NaN at NaN.
pub(crate) fn log_density(block: &Block, target: &[f64], out: &mut [f64]) {
    let y = standardise(block, target);
    let mut largest = vec![f64::NEG_INFINITY; block.stride];
    let NormalParameters { mean, sd } = block.normal();
    update_largest(&block.weight, mean, sd, &y, &mut largest);
    let mut sum = vec![0.0; block.stride];
    add_relative(&block.weight, mean, sd, &y, &largest, &mut sum);
    let constant = HALF_LN_TAU + block.scale.ln() + (block.n_members as f64).ln();
    for (row, out) in out.iter_mut().enumerate() {
        // a component of weight zero may be the largest one, and all others zero beside it
        let is_near = largest[row] > MIN_LARGEST && sum[row] > 0.0;
        *out = if is_near {
            sum[row].ln() + largest[row] - constant
        } else if target[row].is_finite() {
            (log_sum_of_tails(block, row, target[row]) - constant).max(f64::MIN)
        } else if target[row].is_nan() {
            f64::NAN
        } else {
            f64::NEG_INFINITY
        };
    }
}

/// `ln Σ_s Σ_c (w/σ) e^{-z²/2}` of one row, from the logarithms of its terms.
fn log_sum_of_tails(block: &Block, row: usize, target: f64) -> f64 {
    let normal = block.normal();
    let y = (target - block.shift) / block.scale;
    let with_weight = (row..block.weight.len())
        .step_by(block.stride)
        .filter(|&at| block.weight[at] > 0.0);
    log_sum_exp(with_weight.map(|at| {
        let z = (y - normal.mean[at]) / normal.sd[at];
        let term = block.weight[at].ln() - normal.sd[at].ln() - 0.5 * z * z;
        term.max(f64::MIN)
    }))
}

/// Probability of a target at most `y`, for each row; NaN at NaN.
pub(crate) fn cdf(block: &Block, target: &[f64], out: &mut [f64]) {
    let y = standardise(block, target);
    let mut sum = vec![0.0; block.stride];
    let NormalParameters { mean, sd } = block.normal();
    add_cdf(&block.weight, mean, sd, &y, &mut sum);
    for ((out, sum), &z) in out.iter_mut().zip(sum).zip(&y) {
        // weights sum to one only up to rounding errors
        let probability = (sum / block.n_members as f64).min(1.0);
        *out = if z >= MAX_STANDARDISED {
            1.0
        } else if z.is_nan() {
            f64::NAN
        } else {
            probability
        };
    }
}

/// Mean absolute distance between `y` and a draw, for each row, in standardised units.
pub(crate) fn distance(block: &Block, y: &[f64], out: &mut [f64]) {
    let y = standardise(block, y);
    let mut sum = vec![0.0; block.stride];
    let NormalParameters { mean, sd } = block.normal();
    add_distance(&block.weight, mean, sd, &y, &mut sum);
    for (out, sum) in out.iter_mut().zip(sum) {
        *out = sum / block.n_members as f64;
    }
}

/// `⌊log2 x⌋ ln 2` for positive normal `x`, from its exponent bits; about -709 at zero.
#[allow(clippy::inline_always)]
#[inline(always)]
fn coarse_ln(x: f64) -> f64 {
    const MAGIC: u64 = 0x4330_0000_0000_0000;
    let exponent = f64::from_bits((x.to_bits() >> 52) | MAGIC) - f64::from_bits(MAGIC);
    (exponent - 1023.0) * std::f64::consts::LN_2
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn update_largest(weight: &[f64], mean: &[f64], sd: &[f64], y: &[f64], largest: &mut [f64]) {
    let rows = y.len();
    let largest = &mut largest[..rows];
    for ((weight, mean), sd) in weight
        .chunks_exact(rows)
        .zip(mean.chunks_exact(rows))
        .zip(sd.chunks_exact(rows))
    {
        for row in 0..rows {
            let inverse = 1.0 / sd[row];
            let z = (y[row] - mean[row]) * inverse;
            let term = (-0.5 * z).mul_add(z, coarse_ln(weight[row] * inverse));
            largest[row] = if term > largest[row] {
                term
            } else {
                largest[row]
            };
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_relative(
    weight: &[f64],
    mean: &[f64],
    sd: &[f64],
    y: &[f64],
    largest: &[f64],
    sum: &mut [f64],
) {
    let rows = y.len();
    let (largest, sum) = (&largest[..rows], &mut sum[..rows]);
    for ((weight, mean), sd) in weight
        .chunks_exact(rows)
        .zip(mean.chunks_exact(rows))
        .zip(sd.chunks_exact(rows))
    {
        for row in 0..rows {
            let inverse = 1.0 / sd[row];
            let z = (y[row] - mean[row]) * inverse;
            let relative = exp((-0.5 * z).mul_add(z, -largest[row]));
            sum[row] = (weight[row] * inverse).mul_add(relative, sum[row]);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_cdf(weight: &[f64], mean: &[f64], sd: &[f64], y: &[f64], sum: &mut [f64]) {
    let rows = y.len();
    let sum = &mut sum[..rows];
    for ((weight, mean), sd) in weight
        .chunks_exact(rows)
        .zip(mean.chunks_exact(rows))
        .zip(sd.chunks_exact(rows))
    {
        for row in 0..rows {
            let (below, _) = cdf_and_kernel((y[row] - mean[row]) / sd[row]);
            sum[row] = weight[row].mul_add(below, sum[row]);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_distance(weight: &[f64], mean: &[f64], sd: &[f64], y: &[f64], sum: &mut [f64]) {
    let rows = y.len();
    let sum = &mut sum[..rows];
    for ((weight, mean), sd) in weight
        .chunks_exact(rows)
        .zip(mean.chunks_exact(rows))
        .zip(sd.chunks_exact(rows))
    {
        for row in 0..rows {
            let distance = mean_distance(y[row] - mean[row], sd[row]);
            sum[row] = weight[row].mul_add(distance, sum[row]);
        }
    }
}
