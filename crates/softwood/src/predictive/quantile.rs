//! Quantiles of the mixture of a row: a bracketed root search on its cdf.
//!
//! The quantile of level `p` lies between the smallest and the largest quantile of that level of
//! the components. Within that bracket, Halley's method solves `ln G(u) = ln q`, where
//! `q = min(p, 1 - p)` and `G` is the probability of the nearer tail, so that tails keep their
//! digits. A step that leaves the bracket, or is more than half as long as the step before the
//! last, is replaced by a bisection. The starting point is the root for an eighth of the
//! components, which are whole members and so a representative sample.

use multiversion::multiversion;

use crate::numerics::normal::{INV_SQRT_TAU, cdf_and_kernel, rough_quantile};
use crate::predictive::block::Block;
use crate::predictive::row_mixture::{CHUNK, RowMixture, RowSummary, each_row};

/// Weight of the dropped components relative to the smallest tail probability of the levels: the
/// result is the exact quantile of a level within this share of the given one.
const NEGLIGIBLE: f64 = 1e-9;
/// Tolerance in units of the standard deviation of the row.
const TOLERANCE: f64 = 1e-7;
/// Tolerance of the first root, for a part of the components.
const ROUGH_TOLERANCE: f64 = 1e-2;
/// The first root uses one in this many components, ...
const PART: usize = 8;
/// ... where there are at least this many.
const MIN_COMPONENTS_FOR_PART: usize = 512;
/// Bound of the error of [`rough_quantile`].
const ROUGH_QUANTILE_ERROR: f64 = 2e-3;
/// Largest number of steps; bisection alone needs fewer.
const MAX_STEPS: usize = 200;
/// Number of quantiles of a row between two questions whether to stop.
const LEVELS_PER_CHECK: usize = 16;
const LANES: usize = 8;

/// The quantiles of each row in the target's units (row-major, rows x levels). Levels lie strictly
/// between 0 and 1.
pub(crate) fn quantiles(block: &Block, levels: &[f64], out: &mut [f64]) {
    quantiles_until(block, levels, out, &|| false);
}

/// As [`quantiles`], but asks from time to time whether to stop, and then leaves the rest undone.
pub(crate) fn quantiles_until(
    block: &Block,
    levels: &[f64],
    out: &mut [f64],
    is_stopped: &dyn Fn() -> bool,
) {
    let smallest_tail = levels
        .iter()
        .fold(0.5_f64, |least, level| least.min(level.min(1.0 - level)));
    each_row(block, NEGLIGIBLE * smallest_tail, |row, mixture| {
        let search = QuantileSearch::new(mixture);
        let out = &mut out[row * levels.len()..][..levels.len()];
        let parts = out.chunks_mut(LEVELS_PER_CHECK);
        for (at, (out, levels)) in parts.zip(levels.chunks(LEVELS_PER_CHECK)).enumerate() {
            if at > 0 && is_stopped() {
                return;
            }
            for (out, &level) in out.iter_mut().zip(levels) {
                *out = block.shift + block.scale * search.quantile(level);
            }
        }
        restore_order(levels, out);
    });
}

/// Makes quantiles ascend where levels do: those of neighbouring levels may cross by the tolerance.
fn restore_order(levels: &[f64], out: &mut [f64]) {
    if levels.is_sorted() {
        for at in 1..out.len() {
            out[at] = out[at].max(out[at - 1]);
        }
    }
}

struct QuantileSearch<'a> {
    mixture: &'a RowMixture,
    /// Number of components for the first root and their weight, if there are enough components.
    part: Option<(usize, f64)>,
}

/// The equation `G(u) = target` for a mixture that is mirrored where `sign` is -1.
#[derive(Debug, Clone, Copy)]
struct TailEquation {
    /// Number of components of the mixture, from the first on.
    n_components: usize,
    /// Tail probability times the weight of the components.
    target: f64,
    sign: f64,
}

impl<'a> QuantileSearch<'a> {
    fn new(mixture: &'a RowMixture) -> Self {
        let part = (mixture.len >= MIN_COMPONENTS_FOR_PART).then(|| {
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
        let bracket = bracket(&self.mixture.mean, &self.mixture.inverse_sd, z, sign);
        let mut start = (sign * mean + z * sd).clamp(bracket.0, bracket.1);
        if let Some((n_components, weight)) = self.part {
            let equation = TailEquation {
                n_components,
                target: tail * weight,
                sign,
            };
            start = self.root(equation, start, bracket, ROUGH_TOLERANCE);
        }
        let equation = TailEquation {
            n_components: self.mixture.weight.len(),
            target: tail * weight,
            sign,
        };
        sign * self.root(equation, start, bracket, TOLERANCE)
    }

    /// The root of the equation, from `start` on, within a bracket and to a tolerance.
    fn root(
        &self,
        equation: TailEquation,
        start: f64,
        mut bracket: (f64, f64),
        tolerance: f64,
    ) -> f64 {
        let TailEquation {
            n_components,
            target,
            sign,
        } = equation;
        let weight = &self.mixture.weight[..n_components];
        let mean = &self.mixture.mean[..n_components];
        let inverse_sd = &self.mixture.inverse_sd[..n_components];
        let RowSummary {
            sd, smallest_sd, ..
        } = self.mixture.summary;
        let max_error = tolerance * sd;
        // a Halley step of this length leaves an error below the tolerance even at the narrowest
        // component
        let last_step = (max_error * smallest_sd).sqrt().max(max_error);
        let mut u = start;
        // lengths of the last two steps
        let mut lengths = [f64::INFINITY; 2];
        for _ in 0..MAX_STEPS {
            let tail = tail_at(weight, mean, inverse_sd, u, sign);
            if tail.probability < target {
                bracket.0 = u;
            } else {
                bracket.1 = u;
            }
            let step = halley_step(target, tail);
            let next = u + step;
            // between a flat and a steep part of the cdf, steps can oscillate: every step must be
            // at most half as long as the one before the last
            let is_accepted =
                next > bracket.0 && next < bracket.1 && step.abs() <= 0.5 * lengths[0];
            if is_accepted && step.abs() <= last_step {
                return next;
            }
            let next = if is_accepted {
                next
            } else {
                0.5 * (bracket.0 + bracket.1)
            };
            lengths = [lengths[1], (next - u).abs()];
            u = next;
            if bracket.1 - bracket.0 <= max_error {
                return u;
            }
        }
        u
    }
}

/// `G(u)` and its first two derivatives.
#[derive(Debug, Clone, Copy)]
struct TailValue {
    probability: f64,
    density: f64,
    slope: f64,
}

/// Smallest and largest quantile of the components, widened by the error of [`rough_quantile`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn bracket(mean: &[f64], inverse_sd: &[f64], z: f64, sign: f64) -> (f64, f64) {
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

/// Halley's step for `ln G = ln target`; NaN where `G` is flat.
fn halley_step(target: f64, tail: TailValue) -> f64 {
    let first = tail.density / tail.probability;
    let second = tail.slope / tail.probability - first * first;
    let newton = (target / tail.probability).ln() / first;
    let damped = 1.0 + 0.5 * newton * second / first;
    // the second-order correction is bounded, because it is unreliable for long steps
    newton / damped.clamp(0.5, 2.0)
}

/// `G(u)`, `G'(u)` and `G''(u)` of the mixture, mirrored where `sign` is -1. The order of summation
/// is fixed.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn tail_at(weight: &[f64], mean: &[f64], inverse_sd: &[f64], u: f64, sign: f64) -> TailValue {
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
    let [probability, density, slope] = sums.map(|lanes| lanes.iter().sum::<f64>());
    TailValue {
        probability,
        density: density * INV_SQRT_TAU,
        slope: slope * INV_SQRT_TAU,
    }
}
