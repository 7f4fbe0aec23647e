//! `∫ F (1 - F)` of a large Normal mixture, on a pyramid of meshes.
//!
//! Each component adds its cdf on the coarsest cdf_grid that resolves it, only where it is neither 0 nor 1; from coarse
//! to fine, each cdf_grid is interpolated onto the next; on the finest, the trapezoid rule sums. That rule converges
//! like `e^{-(π σ / h)²}` for steps `h` and components of sd `σ` and up, and interpolation from ten points like
//! `(h / σ)^10`, so few points per component give all the digits wanted.

use multiversion::multiversion;

use crate::numerics::normal::cdf_and_kernel;
use crate::predictive::row_mixture::{RowMixture, RowSummary};

/// Standard deviations beyond which a component's cdf is taken as 0 or 1: its mean distance from there is 1e-7 sd.
const REACH: f64 = 5.0;
/// Points per sd on the finest cdf_grid, at least: the trapezoid rule is then exact to 1e-8 of the sd.
const FINEST: f64 = 1.25;
/// Points per sd on a coarser cdf_grid, at least: interpolation is then exact to 1e-7.
const COARSER: f64 = 1.4;
/// Points of the finest cdf_grid beyond which the pairs are summed instead, whatever that costs: 8 MiB of them.
const MAX_POINTS: f64 = 1_048_576.0;
/// Pairs that are summed in the time of one point, where there are many points.
const PAIRS_PER_POINT: f64 = 4.0;
/// Error, in units of the mixture's sd, allowed for taking very narrow components of little weight as wider.
const WIDENING: f64 = 1e-7;
/// Octaves of component sds told apart below the greatest.
const OCTAVES: usize = 48;
/// Points that a component is added to at a time.
const STRIP: usize = 8;
const OFFSET: [f64; STRIP] = {
    let mut offset = [0.0; STRIP];
    let mut at = 0;
    while at < STRIP {
        offset[at] = at as f64;
        at += 1;
    }
    offset
};
/// Midpoint interpolation from five points on each side, from the nearest on.
const MIDPOINT: [f64; 5] = [
    39_690.0 / 65_536.0,
    -8_820.0 / 65_536.0,
    2_268.0 / 65_536.0,
    -405.0 / 65_536.0,
    35.0 / 65_536.0,
];

/// Scratch memory of the pyramid, used again from row to row. `levels[l]` has steps of `2^l` times the finest.
#[derive(Debug, Default)]
pub(crate) struct CdfGrid {
    levels: Vec<GridLevel>,
}

#[derive(Debug, Default)]
struct GridLevel {
    /// Cdf of the components of this level and the coarser ones, at each point.
    cdf: Vec<f64>,
    /// Weight that has come to an end before each point.
    passed: Vec<f64>,
}

/// Where the points of a level lie.
#[derive(Debug, Clone, Copy)]
struct GridCells {
    start: f64,
    step: f64,
    n_points: usize,
}

impl CdfGrid {
    /// `E|X - X'| / 2` of the mixture; none where it needs too many points.
    pub(crate) fn half_distance(&mut self, mixture: &RowMixture) -> Option<f64> {
        let (low, high) = extent(mixture);
        let RowSummary {
            weight: total,
            greatest_sd,
            ..
        } = mixture.summary;
        let least_sd = least_sd(mixture);
        let step = least_sd / FINEST;
        let n_pairs = 0.5 * (mixture.len * mixture.len) as f64;
        let most_points = (n_pairs / PAIRS_PER_POINT).min(MAX_POINTS);
        let has_room = (high - low) / step <= most_points;
        if !has_room {
            return None;
        }
        let top = level_of(greatest_sd, step);
        let cells = ((high - low) / step).ceil() as usize;
        let finest = GridCells {
            start: low,
            step,
            n_points: cells.next_multiple_of(1 << top) + 1,
        };
        self.clear(finest, top);
        add_components(&mut self.levels, finest, least_sd, mixture);
        self.refine(finest, top);
        let cdf = &self.levels[0].cdf[..finest.n_points];
        Some(step * cdf.iter().map(|f| f * (total - f)).sum::<f64>())
    }

    fn clear(&mut self, finest: GridCells, top: usize) {
        if self.levels.len() <= top {
            self.levels.resize_with(top + 1, GridLevel::default);
        }
        for (level, of) in self.levels[..=top].iter_mut().enumerate() {
            // the last strip may reach beyond the last point
            let n_points = finest.coarsened(level).n_points + 2 * STRIP;
            of.cdf.clear();
            of.cdf.resize(n_points, 0.0);
            of.passed.clear();
            of.passed.resize(n_points + 1, 0.0);
        }
    }

    /// Completes every level and adds it to the next finer one.
    fn refine(&mut self, finest: GridCells, top: usize) {
        for level in (0..=top).rev() {
            self.levels[level].add_passed();
            if level > 0 {
                let (finer, coarser) = self.levels.split_at_mut(level);
                let n_points = finest.coarsened(level).n_points;
                add_interpolated(&coarser[0].cdf[..n_points], &mut finer[level - 1].cdf);
            }
        }
    }
}

impl GridCells {
    fn coarsened(self, level: usize) -> Self {
        Self {
            start: self.start,
            step: self.step * (1_u64 << level) as f64,
            n_points: ((self.n_points - 1) >> level) + 1,
        }
    }
}

impl GridLevel {
    fn add_passed(&mut self) {
        let mut sum = 0.0;
        for (cdf, passed) in self.cdf.iter_mut().zip(&self.passed) {
            sum += passed;
            *cdf += sum;
        }
    }
}

/// Least and greatest point within reach of a component.
fn extent(mixture: &RowMixture) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (mean, inverse) in mixture.mean.iter().zip(&mixture.inverse_sd) {
        let reach = REACH / inverse;
        low = low.min(mean - reach);
        high = high.max(mean + reach);
    }
    (low, high)
}

/// The sd up to which components are taken as wider, so wide.
///
/// Adding noise of sd `s` to components of weight `W` moves `E|X - X'| / 2` by less than `W s`.
fn least_sd(mixture: &RowMixture) -> f64 {
    // weight and least sd of the components by octaves below the greatest sd
    let mut octaves = [(0.0, f64::INFINITY); OCTAVES];
    let greatest = mixture.summary.greatest_sd;
    for (weight, inverse) in mixture.weight.iter().zip(&mixture.inverse_sd) {
        let octave = floor_log2(greatest * inverse).clamp(0, OCTAVES as i64 - 1);
        let (total, least) = &mut octaves[octave as usize];
        *total += weight;
        *least = least.min(1.0 / inverse);
    }
    let mut narrower = 0.0;
    for (octave, &(weight, least)) in octaves.iter().enumerate().rev() {
        narrower += weight;
        let widest = greatest / (1_u64 << octave) as f64;
        if narrower * widest > WIDENING * mixture.summary.sd {
            // an octave without components has no least sd: those below it may be as wide as its lower end
            return least.min(widest).max(0.5 * widest);
        }
    }
    greatest
}

/// The coarsest level that resolves a component: the greatest `l` with `2^l step <= sd / COARSER`, or 0.
fn level_of(sd: f64, step: f64) -> usize {
    floor_log2(sd / (COARSER * step)).max(0) as usize
}

/// `⌊log2 x⌋` of a positive normal number, by its exponent bits.
fn floor_log2(x: f64) -> i64 {
    (x.to_bits() >> 52) as i64 - 1023
}

/// Adds each component's cdf to the level that resolves it.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2+fma", "aarch64+neon"))]
fn add_components(
    levels: &mut [GridLevel],
    finest: GridCells,
    least_sd: f64,
    mixture: &RowMixture,
) {
    for at in 0..mixture.len {
        let (weight, mean) = (mixture.weight[at], mixture.mean[at]);
        let sd = (1.0 / mixture.inverse_sd[at]).max(least_sd);
        let level = level_of(sd, finest.step);
        let grid = finest.coarsened(level);
        // whole strips at fixed places: what one component has stored, the next loads without waiting
        let place = |y: f64| (((y - grid.start) / grid.step) as usize).min(grid.n_points);
        let first = place(mean - REACH * sd) / STRIP * STRIP;
        let end = (place(mean + REACH * sd) + 1).next_multiple_of(STRIP);
        let z = (grid.start + grid.step * first as f64 - mean) / sd;
        let level = &mut levels[level];
        add_cdf(&mut level.cdf[first..end], weight, [z, grid.step / sd]);
        level.passed[end] += weight;
    }
}

/// Adds `weight Phi(z)` at equally spaced `z`, in whole strips.
#[allow(clippy::inline_always)]
#[inline(always)]
fn add_cdf(cdf: &mut [f64], weight: f64, [z, step]: [f64; 2]) {
    let mut from = z;
    for strip in cdf.as_chunks_mut::<STRIP>().0 {
        for at in 0..STRIP {
            let (below, _) = cdf_and_kernel(step.mul_add(OFFSET[at], from));
            strip[at] = weight.mul_add(below, strip[at]);
        }
        from += step * STRIP as f64;
    }
}

/// Adds a coarse cdf_grid to one of half its step. Beyond its ends the coarse one is flat.
fn add_interpolated(coarse: &[f64], fine: &mut [f64]) {
    let last = coarse.len() - 1;
    let side = MIDPOINT.len();
    let edge = |at: isize| coarse[at.clamp(0, last as isize) as usize];
    for cell in 0..last {
        let middle = if cell + 1 >= side && cell + side <= last {
            let around = &coarse[cell + 1 - side..=cell + side];
            (0..side)
                .map(|k| MIDPOINT[k] * (around[side - 1 - k] + around[side + k]))
                .sum::<f64>()
        } else {
            let cell = cell as isize;
            (0..side as isize)
                .map(|k| MIDPOINT[k as usize] * (edge(cell - k) + edge(cell + 1 + k)))
                .sum()
        };
        fine[2 * cell] += coarse[cell];
        fine[2 * cell + 1] += middle;
    }
    fine[2 * last] += coarse[last];
}
