//! The mixture of all members and components of one row in contiguous memory, for computations that
//! pass over a row many times.

use multiversion::multiversion;

use crate::predictive::block::Block;
use crate::stop::until_cancelled;

/// Components are padded to a multiple of this number.
pub(crate) const CHUNK: usize = 32;
/// Rows gathered together: the values of one cache line.
const ROWS: usize = 8;

/// The mixture `Σ weight N(mean, sd²)` of one row, in standardised units.
///
/// Padded to a multiple of [`CHUNK`] by copies of the last component with weight zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowMixture {
    pub(crate) weight: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    /// `1 / sd` of each component.
    pub(crate) inverse_sd: Vec<f64>,
    /// Number of components without padding.
    pub(crate) len: usize,
    /// Moments and extremes over all components.
    pub(crate) summary: RowSummary,
}

/// Moments and extremes of a mixture, for starting points and tolerances.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowSummary {
    pub(crate) weight: f64,
    pub(crate) mean: f64,
    pub(crate) sd: f64,
    /// Smallest and largest sd of a component.
    pub(crate) smallest_sd: f64,
    pub(crate) largest_sd: f64,
}

impl RowMixture {
    fn reserve(&mut self, capacity: usize) {
        for values in [&mut self.weight, &mut self.mean, &mut self.inverse_sd] {
            values.resize(capacity, 0.0);
        }
        self.len = 0;
    }

    /// Writes a component at the end and keeps it if `keep` holds, without a branch that the
    /// processor could mispredict.
    fn push_if(&mut self, keep: bool, weight: f64, mean: f64, sd: f64) {
        self.weight[self.len] = weight;
        self.mean[self.len] = mean;
        self.inverse_sd[self.len] = sd;
        self.len += usize::from(keep);
    }

    fn finish(&mut self) {
        let padded = self.len.next_multiple_of(CHUNK).max(CHUNK);
        let last = self.len.saturating_sub(1);
        let (mean, sd) = (self.mean[last], self.inverse_sd[last]);
        for (values, neutral) in [
            (&mut self.weight, 0.0),
            (&mut self.mean, mean),
            (&mut self.inverse_sd, sd),
        ] {
            values.truncate(padded);
            values[self.len..].fill(neutral);
        }
        self.summary = summarise(&self.weight, &self.mean, &mut self.inverse_sd);
    }
}

/// Computes the summary and replaces the sds by their inverses. Means are relative to the first
/// one, so that squares lose no digits.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn summarise(weight: &[f64], mean: &[f64], sd: &mut [f64]) -> RowSummary {
    let centre = mean[0];
    let mut sums = [[0.0; CHUNK]; 3];
    let mut smallest = [f64::INFINITY; CHUNK];
    let mut largest = [0.0; CHUNK];
    let chunks = weight
        .as_chunks::<CHUNK>()
        .0
        .iter()
        .zip(mean.as_chunks::<CHUNK>().0)
        .zip(sd.as_chunks_mut::<CHUNK>().0);
    for ((weight, mean), sd) in chunks {
        for lane in 0..CHUNK {
            let from_centre = mean[lane] - centre;
            let square = from_centre.mul_add(from_centre, sd[lane] * sd[lane]);
            sums[0][lane] += weight[lane];
            sums[1][lane] = weight[lane].mul_add(from_centre, sums[1][lane]);
            sums[2][lane] = weight[lane].mul_add(square, sums[2][lane]);
            smallest[lane] = if sd[lane] < smallest[lane] {
                sd[lane]
            } else {
                smallest[lane]
            };
            largest[lane] = if sd[lane] > largest[lane] {
                sd[lane]
            } else {
                largest[lane]
            };
            sd[lane] = 1.0 / sd[lane];
        }
    }
    let [weight, first, second] = sums.map(|lanes| lanes.iter().sum::<f64>());
    let mean = first / weight;
    RowSummary {
        weight,
        mean: centre + mean,
        sd: (second / weight - mean * mean).max(0.0).sqrt(),
        smallest_sd: smallest.iter().copied().fold(f64::INFINITY, f64::min),
        largest_sd: largest.iter().copied().fold(0.0, f64::max),
    }
}

/// Gathers each row of a Normal block and calls `visit` with its index and its mixture.
///
/// Drops components of small weight; together, the dropped ones have weight below `negligible`.
pub(crate) fn each_row(block: &Block, negligible: f64, mut visit: impl FnMut(usize, &RowMixture)) {
    let normal = block.normal();
    let n_components = block.n_members * block.n_components();
    let share = 1.0 / block.n_members as f64;
    let threshold = negligible / n_components as f64;
    let mut mixtures: [RowMixture; ROWS] = Default::default();
    for first in until_cancelled((0..block.n_rows).step_by(ROWS)) {
        for mixture in &mut mixtures {
            // one extra element, because a component is written before it is kept
            mixture.reserve((n_components + 1).next_multiple_of(CHUNK));
        }
        for component in 0..n_components {
            let start = component * block.stride + first;
            let rows = start..start + ROWS;
            let values = block.weight[rows.clone()]
                .iter()
                .zip(&normal.mean[rows.clone()])
                .zip(&normal.sd[rows]);
            for (mixture, ((weight, &mean), &sd)) in mixtures.iter_mut().zip(values) {
                let weight = weight * share;
                mixture.push_if(weight > threshold, weight, mean, sd);
            }
        }
        for (row, mixture) in until_cancelled((first..block.n_rows).zip(&mut mixtures)) {
            mixture.finish();
            visit(row, mixture);
        }
    }
}
