//! Continuous ranked probability score of a Normal mixture.
//!
//! `CRPS(y) = E|X - y| - E|X - X'| / 2` with `X`, `X'` independent draws. The first part is a sum over components of
//! the closed form `mean_distance`. The second is a sum over pairs of components in the same form; where those are too many, it is
//! computed as `∫ F (1 - F)` on a cdf_grid, which agrees with the pairs to 1e-6 standard deviations.

use multiversion::multiversion;

use crate::numerics::normal::mean_distance;
use crate::predictive::block::Block;
use crate::predictive::cdf_grid::CdfGrid;
use crate::predictive::density::distance;
use crate::predictive::row_mixture::{CHUNK, RowMixture, each_row};

/// Weight left out of the pairs: it changes the second part by at most this share of the mean distance between
/// what is left out and the rest.
const NEGLIGIBLE: f64 = 1e-8;
/// Components up to which the pairs are summed one by one.
const PAIRS_UP_TO: usize = 96;

/// CRPS of each row at `y`, in the target's units.
pub(crate) fn crps(block: &Block, y: &[f64], out: &mut [f64]) {
    distance(block, y, out);
    let mut cdf_grid = CdfGrid::default();
    each_row(block, NEGLIGIBLE, |row, mixture| {
        let spread = if mixture.len <= PAIRS_UP_TO {
            None
        } else {
            cdf_grid.half_distance(mixture)
        };
        let spread = spread.unwrap_or_else(|| half_distance(mixture));
        out[row] = block.scale * (out[row] - spread).max(0.0);
    });
}

/// `E|X - X'| / 2`: the sum over pairs of different components, each once, and half of each with itself.
pub(crate) fn half_distance(mixture: &RowMixture) -> f64 {
    (0..mixture.len)
        .map(|at| {
            // a component and its copy differ by a Normal of mean 0 and √2 times the sd
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
        [mixture.mean[at], sd],
    )
}

/// `Σ w E|N(μ, σ²) - N(mean, sd²)|` over the components given.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2+fma", "aarch64+neon"))]
fn weighted_distance(
    weight: &[f64],
    mean: &[f64],
    inverse_sd: &[f64],
    [from, sd]: [f64; 2],
) -> f64 {
    let mut lanes = [0.0; CHUNK];
    let chunks = weight
        .chunks(CHUNK)
        .zip(mean.chunks(CHUNK))
        .zip(inverse_sd.chunks(CHUNK));
    for ((weight, mean), inverse_sd) in chunks {
        for at in 0..weight.len() {
            let theirs = 1.0 / inverse_sd[at];
            let both = theirs.mul_add(theirs, sd * sd).sqrt();
            lanes[at] += weight[at] * mean_distance(mean[at] - from, both);
        }
    }
    lanes.iter().sum()
}
