//! `∫ F (1 - F)` of a large Normal mixture, on a pyramid of grids.
//!
//! Each component adds its cdf to the coarsest grid that resolves it, only where the cdf is neither
//! 0 nor 1. From coarse to fine, each grid is interpolated onto the next; on the finest, the
//! trapezoid rule sums. With step `h` and components of sd at smallest `σ`, the error of that rule
//! falls as `e^{-(π σ / h)²}` and that of ten-point interpolation as `(h / σ)^10`, so that few
//! points per component suffice.

use multiversion::multiversion;

use crate::numerics::normal::cdf_and_kernel;
use crate::predictive::row_mixture::{RowMixture, RowSummary};

/// Number of standard deviations beyond which the cdf of a component is set to 0 or 1; the mean
/// distance from there is 1e-7 sd.
const REACH: f64 = 5.0;
/// Smallest number of points per sd on the finest grid: the trapezoid rule is then exact to 1e-8 of
/// the sd.
const FINEST: f64 = 1.25;
/// Smallest number of points per sd on coarser grids: interpolation is then exact to 1e-7.
const COARSER: f64 = 1.4;
/// Largest number of points of the finest grid, 8 MiB; beyond, the sum over pairs is used at any
/// cost.
const MAX_POINTS: f64 = 1_048_576.0;
/// Number of pairs that take the time of one point, where there are many points.
const PAIRS_PER_POINT: f64 = 4.0;
/// Error allowed for widening very narrow components of little weight, in units of the sd of the
/// mixture.
const WIDENING: f64 = 1e-7;
/// Number of octaves of component sds below the largest one that are distinguished.
const OCTAVES: usize = 48;
/// Number of points that a component is added to at a time.
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
/// Coefficients of midpoint interpolation from five points on each side, nearest first.
const MIDPOINT: [f64; 5] = [
    39_690.0 / 65_536.0,
    -8_820.0 / 65_536.0,
    2_268.0 / 65_536.0,
    -405.0 / 65_536.0,
    35.0 / 65_536.0,
];

/// Workspace of the pyramid, reused from row to row. `levels[l]` has `2^l` times the finest step.
#[derive(Debug, Default)]
pub(crate) struct CdfGrid {
    levels: Vec<GridLevel>,
}

#[derive(Debug, Default)]
struct GridLevel {
    /// Cdf of the components of this level and of the coarser ones, at each point.
    cdf: Vec<f64>,
    /// Weight of the components whose cdf reaches 1 before each point.
    completed: Vec<f64>,
}

/// Positions of the points of a level.
#[derive(Debug, Clone, Copy)]
struct GridCells {
    start: f64,
    step: f64,
    n_points: usize,
}

impl CdfGrid {
    /// `E|X - X'| / 2` of the mixture; `None` if the grid would need too many points.
    pub(crate) fn half_distance(&mut self, mixture: &RowMixture) -> Option<f64> {
        let (low, high) = extent(mixture);
        let RowSummary {
            weight: total,
            largest_sd,
            ..
        } = mixture.summary;
        let smallest_sd = smallest_sd(mixture);
        let step = smallest_sd / FINEST;
        let n_pairs = 0.5 * (mixture.len * mixture.len) as f64;
        let max_points = (n_pairs / PAIRS_PER_POINT).min(MAX_POINTS);
        let fits = (high - low) / step <= max_points;
        if !fits {
            return None;
        }
        let top = level_of(largest_sd, step);
        let cells = ((high - low) / step).ceil() as usize;
        let finest = GridCells {
            start: low,
            step,
            n_points: cells.next_multiple_of(1 << top) + 1,
        };
        self.clear(finest, top);
        add_components(&mut self.levels, finest, smallest_sd, mixture);
        self.refine(finest, top);
        let cdf = &self.levels[0].cdf[..finest.n_points];
        Some(step * cdf.iter().map(|f| f * (total - f)).sum::<f64>())
    }

    fn clear(&mut self, finest: GridCells, top: usize) {
        if self.levels.len() <= top {
            self.levels.resize_with(top + 1, GridLevel::default);
        }
        for (level, grid) in self.levels[..=top].iter_mut().enumerate() {
            // the last strip may extend beyond the last point
            let n_points = finest.coarsened(level).n_points + 2 * STRIP;
            grid.cdf.clear();
            grid.cdf.resize(n_points, 0.0);
            grid.completed.clear();
            grid.completed.resize(n_points + 1, 0.0);
        }
    }

    /// Completes every level and adds it to the next finer one.
    fn refine(&mut self, finest: GridCells, top: usize) {
        for level in (0..=top).rev() {
            self.levels[level].add_completed();
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
    fn add_completed(&mut self) {
        let mut sum = 0.0;
        for (cdf, completed) in self.cdf.iter_mut().zip(&self.completed) {
            sum += completed;
            *cdf += sum;
        }
    }
}

/// Smallest and largest point within reach of a component.
fn extent(mixture: &RowMixture) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (mean, inverse) in mixture.mean.iter().zip(&mixture.inverse_sd) {
        let reach = REACH / inverse;
        low = low.min(mean - reach);
        high = high.max(mean + reach);
    }
    (low, high)
}

/// The sd to which components of smaller sd are widened.
///
/// Adding noise of sd `s` to components of weight `W` changes `E|X - X'| / 2` by less than `W s`.
fn smallest_sd(mixture: &RowMixture) -> f64 {
    // weight and smallest sd of the components, by octave below the largest sd
    let mut octaves = [(0.0, f64::INFINITY); OCTAVES];
    let largest = mixture.summary.largest_sd;
    for (weight, inverse) in mixture.weight.iter().zip(&mixture.inverse_sd) {
        let octave = floor_log2(largest * inverse).clamp(0, OCTAVES as i64 - 1);
        let (total, smallest) = &mut octaves[octave as usize];
        *total += weight;
        *smallest = smallest.min(1.0 / inverse);
    }
    let mut narrower_weight = 0.0;
    for (octave, &(weight, smallest)) in octaves.iter().enumerate().rev() {
        narrower_weight += weight;
        let widest = largest / (1_u64 << octave) as f64;
        if narrower_weight * widest > WIDENING * mixture.summary.sd {
            // an octave without components has no smallest sd: the components below it may be as
            // wide as its lower end
            return smallest.min(widest).max(0.5 * widest);
        }
    }
    largest
}

/// The coarsest level that resolves a component: the largest `l` with `2^l step <= sd / COARSER`,
/// or 0.
fn level_of(sd: f64, step: f64) -> usize {
    floor_log2(sd / (COARSER * step)).max(0) as usize
}

/// `⌊log2 x⌋` of a positive normal number, from its exponent bits.
fn floor_log2(x: f64) -> i64 {
    (x.to_bits() >> 52) as i64 - 1023
}

/// Adds the cdf of each component to the level that resolves it.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_components(
    levels: &mut [GridLevel],
    finest: GridCells,
    smallest_sd: f64,
    mixture: &RowMixture,
) {
    for at in 0..mixture.len {
        let (weight, mean) = (mixture.weight[at], mixture.mean[at]);
        let sd = (1.0 / mixture.inverse_sd[at]).max(smallest_sd);
        let level = level_of(sd, finest.step);
        let grid = finest.coarsened(level);
        // whole strips at fixed positions: a load of what the previous component stored at the same
        // address does not stall
        let point_at = |y: f64| (((y - grid.start) / grid.step) as usize).min(grid.n_points);
        let first = point_at(mean - REACH * sd) / STRIP * STRIP;
        let end = (point_at(mean + REACH * sd) + 1).next_multiple_of(STRIP);
        let z = (grid.start + grid.step * first as f64 - mean) / sd;
        let level = &mut levels[level];
        add_cdf(&mut level.cdf[first..end], weight, z, grid.step / sd);
        level.completed[end] += weight;
    }
}

/// Adds `weight Phi(z)` at equally spaced `z`, in whole strips.
#[allow(clippy::inline_always)]
#[inline(always)]
fn add_cdf(cdf: &mut [f64], weight: f64, z: f64, step: f64) {
    let mut strip_z = z;
    for strip in cdf.as_chunks_mut::<STRIP>().0 {
        for at in 0..STRIP {
            let (below, _) = cdf_and_kernel(step.mul_add(OFFSET[at], strip_z));
            strip[at] = weight.mul_add(below, strip[at]);
        }
        strip_z += step * STRIP as f64;
    }
}

/// Adds a coarse grid to one of half its step. Outside its range the coarse grid is constant.
fn add_interpolated(coarse: &[f64], fine: &mut [f64]) {
    let last = coarse.len() - 1;
    let side = MIDPOINT.len();
    let value = |at: isize| coarse[at.clamp(0, last as isize) as usize];
    for cell in 0..last {
        let middle = if cell + 1 >= side && cell + side <= last {
            let around = &coarse[cell + 1 - side..=cell + side];
            (0..side)
                .map(|k| MIDPOINT[k] * (around[side - 1 - k] + around[side + k]))
                .sum::<f64>()
        } else {
            let cell = cell as isize;
            (0..side as isize)
                .map(|k| MIDPOINT[k as usize] * (value(cell - k) + value(cell + 1 + k)))
                .sum()
        };
        fine[2 * cell] += coarse[cell];
        fine[2 * cell + 1] += middle;
    }
    fine[2 * last] += coarse[last];
}
