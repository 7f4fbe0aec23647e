//! Log density and cdf of Normal heads at one target value per row, as loops over rows.
//!
//! `p(y) = (1/S) Σ_s Σ_c w φ((y - μ)/σ) / σ`. Terms are summed relative to the largest one, whose
//! logarithm is only needed to a factor of two: the binary exponent of `w/σ` replaces its
//! logarithm.

use multiversion::multiversion;

use crate::numerics::normal::{HALF_LN_TAU, cdf_and_kernel, mean_distance};
use crate::numerics::special::exp;
use crate::predictive::block::Block;

/// Target values of the rows of a block in standardised units, padded to the stride of the block.
pub(crate) fn standardise(block: &Block, y: &[f64]) -> Vec<f64> {
    let mut z: Vec<f64> = y.iter().map(|y| (y - block.shift) / block.scale).collect();
    z.resize(block.stride, 0.0);
    z
}

/// Log density of each row at `y`: natural logarithm, per unit of the target.
pub(crate) fn log_density(block: &Block, y: &[f64], out: &mut [f64]) {
    let y = standardise(block, y);
    let mut largest = vec![f64::NEG_INFINITY; block.stride];
    update_largest(&block.weight, &block.mean, &block.sd, &y, &mut largest);
    let mut sum = vec![0.0; block.stride];
    add_relative(
        &block.weight,
        &block.mean,
        &block.sd,
        &y,
        &largest,
        &mut sum,
    );
    let constant = HALF_LN_TAU + block.scale.ln() + (block.n_members as f64).ln();
    for (row, out) in out.iter_mut().enumerate() {
        *out = if largest[row] > f64::NEG_INFINITY {
            sum[row].ln() + largest[row] - constant
        } else {
            // the square of the distance overflows
            f64::NEG_INFINITY
        };
    }
}

/// Probability of a target at most `y`, for each row.
pub(crate) fn cdf(block: &Block, y: &[f64], out: &mut [f64]) {
    let y = standardise(block, y);
    let mut sum = vec![0.0; block.stride];
    add_cdf(&block.weight, &block.mean, &block.sd, &y, &mut sum);
    for (out, sum) in out.iter_mut().zip(sum) {
        // weights sum to one only up to rounding errors
        *out = (sum / block.n_members as f64).min(1.0);
    }
}

/// Mean absolute distance between `y` and a draw, for each row, in standardised units.
pub(crate) fn distance(block: &Block, y: &[f64], out: &mut [f64]) {
    let y = standardise(block, y);
    let mut sum = vec![0.0; block.stride];
    add_distance(&block.weight, &block.mean, &block.sd, &y, &mut sum);
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
