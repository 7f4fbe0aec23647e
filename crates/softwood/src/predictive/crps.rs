//! Continuous ranked probability score of a Normal mixture.
//!
//! `CRPS(y) = E|X - y| - E|X - X'| / 2` with independent draws `X`, `X'`. The first term is a sum
//! over components of the closed form `mean_distance`. The second is a sum over pairs of components
//! in the same form; for large mixtures it is computed as `∫ F (1 - F)` on a grid instead, which
//! agrees with the sum over pairs to 1e-6 standard deviations.

use multiversion::multiversion;

use crate::numerics::normal::mean_distance;
use crate::predictive::block::Block;
use crate::predictive::cdf_grid::CdfGrid;
use crate::predictive::density::{MAX_STANDARDISED, distance};
use crate::predictive::row_mixture::{CHUNK, RowMixture, each_row};

/// Weight of the components dropped from the pairs: it changes the second term by at most this
/// share of the mean distance between the dropped components and the others.
const NEGLIGIBLE: f64 = 1e-8;
/// Largest number of components for the sum over pairs.
const MAX_PAIRED_COMPONENTS: usize = 96;

/// CRPS of each row at `y`, in the target's units. Finite for finite `y`, infinite at infinities,
/// NaN at NaN.
pub(crate) fn crps(block: &Block, y: &[f64], out: &mut [f64]) {
    distance(block, y, out);
    let mut grid = CdfGrid::default();
    each_row(block, NEGLIGIBLE, |row, mixture| {
        let spread = if mixture.len <= MAX_PAIRED_COMPONENTS {
            None
        } else {
            grid.half_distance(mixture)
        };
        let spread = spread.unwrap_or_else(|| half_distance(mixture));
        let is_near = ((y[row] - block.shift) / block.scale).abs() < MAX_STANDARDISED;
        let score = if is_near {
            block.scale * (out[row] - spread).max(0.0)
        } else {
            // so far out, the distance to every component is the distance to its mean
            let mean = block.shift + block.scale * mixture.summary.mean;
            (y[row] - mean).abs() - block.scale * spread
        };
        out[row] = if y[row].is_finite() {
            score.min(f64::MAX)
        } else {
            score
        };
    });
}

/// `E|X - X'| / 2`: the sum over pairs of different components, each once, plus half of each
/// component with itself.
pub(crate) fn half_distance(mixture: &RowMixture) -> f64 {
    (0..mixture.len)
        .map(|at| {
            // the difference of a component and an independent copy is Normal with mean 0 and √2
            // times the sd
            let own = mixture.weight[at] / (mixture.inverse_sd[at] * std::f64::consts::PI.sqrt());
            mixture.weight[at] * (own + pairs_below(mixture, at))
        })
        .sum()
}

fn pairs_below(mixture: &RowMixture, at: usize) -> f64 {
    let sd = 1.0 / mixture.inverse_sd[at];
    weighted_distance(
        &mixture.weight[..at],
        &mixture.mean[..at],
        &mixture.inverse_sd[..at],
        mixture.mean[at],
        sd,
    )
}

/// `Σ w E|N(μ, σ²) - N(from, sd²)|` over the given components.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn weighted_distance(weight: &[f64], mean: &[f64], inverse_sd: &[f64], from: f64, sd: f64) -> f64 {
    let mut lanes = [0.0; CHUNK];
    let chunks = weight
        .chunks(CHUNK)
        .zip(mean.chunks(CHUNK))
        .zip(inverse_sd.chunks(CHUNK));
    for ((weight, mean), inverse_sd) in chunks {
        for at in 0..weight.len() {
            let other_sd = 1.0 / inverse_sd[at];
            let sd_of_difference = other_sd.mul_add(other_sd, sd * sd).sqrt();
            lanes[at] += weight[at] * mean_distance(mean[at] - from, sd_of_difference);
        }
    }
    lanes.iter().sum()
}
