//! Quantiles of a row's mixture: a bracketed root search on its cdf.
//!
//! The quantile of level p lies between the least and the greatest of the components' own. Within that bracket,
//! Halley's method runs on `ln G(u) - ln q`, where `q = min(p, 1 - p)` and `G` is the cdf from the nearer end, so that tails keep their
//! digits; a step that leaves the bracket, or is not half as long as the one before the last, becomes a bisection. A
//! first root on an eighth of the components, which
//! are whole members and so a fair sample, gives the start.

use multiversion::multiversion;

use crate::numerics::normal::{INV_SQRT_TAU, cdf_and_kernel, rough_quantile};
use crate::predictive::block::Block;
use crate::predictive::row_mixture::{CHUNK, RowMixture, RowSummary, each_row};

/// Weight left out, relative to the least tail probability asked for: what comes out is the exact quantile of a
/// level within this share of the level.
const NEGLIGIBLE: f64 = 1e-9;
/// Accuracy in units of the row's standard deviation.
const TOLERANCE: f64 = 1e-7;
/// Accuracy of the first root, on a part of the components.
const ROUGH: f64 = 1e-2;
/// Share of the components that the first root looks at, and the number from which that pays.
const PART: usize = 8;
const PART_FROM: usize = 512;
/// Error of [`rough_quantile`], with room.
const ROUGH_QUANTILE_ERROR: f64 = 2e-3;
/// Steps after which the search ends whatever is left: bisection alone needs fewer.
const MAX_STEPS: usize = 200;
const LANES: usize = 8;

/// The quantiles of each row in the target's units (row-major, rows x levels). Levels lie strictly within (0, 1).
pub(crate) fn quantiles(block: &Block, levels: &[f64], out: &mut [f64]) {
    let least = levels
        .iter()
        .fold(0.5_f64, |least, level| least.min(level.min(1.0 - level)));
    each_row(block, NEGLIGIBLE * least, |row, mixture| {
        let search = Search::new(mixture);
        let out = &mut out[row * levels.len()..][..levels.len()];
        for (out, &level) in out.iter_mut().zip(levels) {
            *out = block.shift + block.scale * search.quantile(level);
        }
        restore_order(levels, out);
    });
}

/// Quantiles of near levels may cross by the tolerance: where levels ascend, so do answers.
fn restore_order(levels: &[f64], out: &mut [f64]) {
    if levels.is_sorted() {
        for at in 1..out.len() {
            out[at] = out[at].max(out[at - 1]);
        }
    }
}

struct Search<'a> {
    mixture: &'a RowMixture,
    /// Components of the first root and their weight, where there are enough.
    part: Option<(usize, f64)>,
}

impl<'a> Search<'a> {
    fn new(mixture: &'a RowMixture) -> Self {
        let part = (mixture.len >= PART_FROM).then(|| {
            let len = (mixture.len / PART).next_multiple_of(CHUNK);
            (len, mixture.weight[..len].iter().sum())
        });
        Self { mixture, part }
    }

    fn quantile(&self, level: f64) -> f64 {
        // the upper half is the lower half of the mirrored mixture
        let sign = if level > 0.5 { -1.0 } else { 1.0 };
        let tail = level.min(1.0 - level);
        let z = rough_quantile(tail);
        let RowSummary {
            mean, sd, weight, ..
        } = self.mixture.summary;
        let bracket = bracket(&self.mixture.mean, &self.mixture.inverse_sd, [z, sign]);
        let mut start = (sign * mean + z * sd).clamp(bracket.0, bracket.1);
        if let Some((len, weight)) = self.part {
            start = self.root(len, [tail * weight, sign], start, (bracket, ROUGH));
        }
        let len = self.mixture.weight.len();
        sign * self.root(len, [tail * weight, sign], start, (bracket, TOLERANCE))
    }

    /// The root of `G(u) = target` on the first `len` components, from `start`, within a bracket and to a tolerance.
    fn root(
        &self,
        len: usize,
        [target, sign]: [f64; 2],
        start: f64,
        (mut bracket, tolerance): ((f64, f64), f64),
    ) -> f64 {
        let weight = &self.mixture.weight[..len];
        let (mean, inverse_sd) = (&self.mixture.mean[..len], &self.mixture.inverse_sd[..len]);
        let RowSummary { sd, least_sd, .. } = self.mixture.summary;
        let enough = tolerance * sd;
        // a Halley step of this length leaves an error below the tolerance even at the sharpest component
        let last_step = (enough * least_sd).sqrt().max(enough);
        let mut u = start;
        // lengths of the last two steps
        let mut lengths = [f64::INFINITY; 2];
        for _ in 0..MAX_STEPS {
            let [below, density, slope] = tail_at(weight, mean, inverse_sd, [u, sign]);
            if below < target {
                bracket.0 = u;
            } else {
                bracket.1 = u;
            }
            let step = halley(target, [below, density, slope]);
            let next = u + step;
            // between a flat and a steep stretch steps may go back and forth for ever: they must halve every other time
            let is_sound = next > bracket.0 && next < bracket.1 && step.abs() <= 0.5 * lengths[0];
            if is_sound && step.abs() <= last_step {
                return next;
            }
            let next = if is_sound {
                next
            } else {
                0.5 * (bracket.0 + bracket.1)
            };
            lengths = [lengths[1], (next - u).abs()];
            u = next;
            if bracket.1 - bracket.0 <= enough {
                return u;
            }
        }
        u
    }
}

/// Least and greatest quantile of the components, a little apart.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2+fma", "aarch64+neon"))]
fn bracket(mean: &[f64], inverse_sd: &[f64], [z, sign]: [f64; 2]) -> (f64, f64) {
    let (mut low, mut high) = ([f64::INFINITY; CHUNK], [f64::NEG_INFINITY; CHUNK]);
    let chunks = mean
        .as_chunks::<CHUNK>()
        .0
        .iter()
        .zip(inverse_sd.as_chunks::<CHUNK>().0);
    for (mean, inverse_sd) in chunks {
        for lane in 0..CHUNK {
            let sd = 1.0 / inverse_sd[lane];
            let below = sd.mul_add(z - ROUGH_QUANTILE_ERROR, sign * mean[lane]);
            let above = sd.mul_add(z + ROUGH_QUANTILE_ERROR, sign * mean[lane]);
            low[lane] = if below < low[lane] { below } else { low[lane] };
            high[lane] = if above > high[lane] {
                above
            } else {
                high[lane]
            };
        }
    }
    let low = low.iter().copied().fold(f64::INFINITY, f64::min);
    (low, high.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// Halley's step for `ln G = ln target`, given `G` and its first two derivatives; NaN where `G` is flat.
fn halley(target: f64, [below, density, slope]: [f64; 3]) -> f64 {
    let first = density / below;
    let second = slope / below - first * first;
    let newton = (target / below).ln() / first;
    let damped = 1.0 + 0.5 * newton * second / first;
    // a far step would trust the curvature too much
    newton / damped.clamp(0.5, 2.0)
}

/// `G(u)`, `G'(u)` and `G''(u)` of the mixture mirrored where `sign` is -1. Sums run in fixed lanes.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2+fma", "aarch64+neon"))]
fn tail_at(weight: &[f64], mean: &[f64], inverse_sd: &[f64], [u, sign]: [f64; 2]) -> [f64; 3] {
    let mut sums = [[0.0; LANES]; 3];
    let chunks = weight
        .as_chunks::<CHUNK>()
        .0
        .iter()
        .zip(mean.as_chunks::<CHUNK>().0)
        .zip(inverse_sd.as_chunks::<CHUNK>().0);
    for ((weight, mean), inverse_sd) in chunks {
        let mut terms = [[0.0; CHUNK]; 3];
        for at in 0..CHUNK {
            let z = (u - sign * mean[at]) * inverse_sd[at];
            let (below, kernel) = cdf_and_kernel(z);
            let density = weight[at] * kernel * inverse_sd[at];
            terms[0][at] = weight[at] * below;
            terms[1][at] = density;
            terms[2][at] = -density * z * inverse_sd[at];
        }
        for (sums, terms) in sums.iter_mut().zip(&terms) {
            for part in terms.as_chunks::<LANES>().0 {
                for lane in 0..LANES {
                    sums[lane] += part[lane];
                }
            }
        }
    }
    let [below, density, slope] = sums.map(|lanes| lanes.iter().sum::<f64>());
    [below, density * INV_SQRT_TAU, slope * INV_SQRT_TAU]
}
