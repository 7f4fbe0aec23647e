//! One row's mixture of all members and components, contiguous, for questions that look at a row many times.

use multiversion::multiversion;

use crate::predictive::block::Block;

/// Components are padded to a multiple of this.
pub(crate) const CHUNK: usize = 32;
/// Rows gathered together: the numbers of one cache line.
const ROWS: usize = 8;

/// The mixture `Σ weight N(mean, sd²)` of one row, in standardised units.
///
/// Padded to whole chunks by copies of the last component with weight zero; `inverse_sd` is `1 / sd`.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowMixture {
    pub(crate) weight: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    pub(crate) inverse_sd: Vec<f64>,
    /// Components in use, the padding apart.
    pub(crate) len: usize,
    /// Totals over components.
    pub(crate) summary: RowSummary,
}

/// What a search wants to know of a mixture before it starts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowSummary {
    pub(crate) weight: f64,
    pub(crate) mean: f64,
    pub(crate) sd: f64,
    /// Least and greatest sd of a component.
    pub(crate) least_sd: f64,
    pub(crate) greatest_sd: f64,
}

impl RowMixture {
    fn reserve(&mut self, capacity: usize) {
        for values in [&mut self.weight, &mut self.mean, &mut self.inverse_sd] {
            values.resize(capacity, 0.0);
        }
        self.len = 0;
    }

    /// Writes a component in the next place and keeps it where `keep` holds: no branch to mispredict.
    fn offer(&mut self, [weight, mean, sd]: [f64; 3], keep: bool) {
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

/// Inverts the sds and sums up. Means are taken from the first one, so that squares lose no digits.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2+fma", "aarch64+neon"))]
fn summarise(weight: &[f64], mean: &[f64], sd: &mut [f64]) -> RowSummary {
    let centre = mean[0];
    let mut sums = [[0.0; CHUNK]; 3];
    let mut least = [f64::INFINITY; CHUNK];
    let mut greatest = [0.0; CHUNK];
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
            least[lane] = if sd[lane] < least[lane] {
                sd[lane]
            } else {
                least[lane]
            };
            greatest[lane] = if sd[lane] > greatest[lane] {
                sd[lane]
            } else {
                greatest[lane]
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
        least_sd: least.iter().copied().fold(f64::INFINITY, f64::min),
        greatest_sd: greatest.iter().copied().fold(0.0, f64::max),
    }
}

/// Gathers each row of a Normal block and shows it to `see` with its index.
///
/// Components are left out where all those left out weigh less than `negligible` together.
pub(crate) fn each_row(block: &Block, negligible: f64, mut see: impl FnMut(usize, &RowMixture)) {
    let n_components = block.n_members * block.n_components();
    let share = 1.0 / block.n_members as f64;
    let least = negligible / n_components as f64;
    let mut mixtures: [RowMixture; ROWS] = Default::default();
    for first in (0..block.n_rows).step_by(ROWS) {
        for mixture in &mut mixtures {
            // one place more, since a component is written before it is kept
            mixture.reserve((n_components + 1).next_multiple_of(CHUNK));
        }
        for component in 0..n_components {
            let at = component * block.stride + first;
            let rows = at..at + ROWS;
            let numbers = block.weight[rows.clone()]
                .iter()
                .zip(&block.mean[rows.clone()])
                .zip(&block.sd[rows]);
            for (mixture, ((weight, &mean), &sd)) in mixtures.iter_mut().zip(numbers) {
                let weight = weight * share;
                mixture.offer([weight, mean, sd], weight > least);
            }
        }
        for (row, mixture) in (first..block.n_rows).zip(&mut mixtures) {
            mixture.finish();
            see(row, mixture);
        }
    }
}
