//! One row's mixture of all members and components, contiguous, for questions that look at a row many times.

use crate::predictive::block::Block;

/// Components are padded to a multiple of this.
pub(crate) const CHUNK: usize = 32;
/// Rows gathered together: the numbers of one cache line.
const ROWS: usize = 8;

/// The mixture `Σ weight N(mean, sd²)` of one row, in standardised units.
///
/// Padded to whole chunks by components of weight zero; `inverse_sd` is `1 / sd`.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowMixture {
    pub(crate) weight: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    pub(crate) inverse_sd: Vec<f64>,
    /// Components in use, the padding apart.
    pub(crate) len: usize,
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
        for sd in &mut self.inverse_sd[..self.len] {
            *sd = 1.0 / *sd;
        }
        for (values, neutral) in [
            (&mut self.weight, 0.0),
            (&mut self.mean, 0.0),
            (&mut self.inverse_sd, 1.0),
        ] {
            values.resize(padded, neutral);
            values[self.len..].fill(neutral);
        }
    }

    /// Mean and standard deviation.
    pub(crate) fn mean_and_sd(&self) -> (f64, f64) {
        let parts = self.weight.iter().zip(&self.mean).zip(&self.inverse_sd);
        let total: f64 = self.weight.iter().sum();
        let mean = parts
            .clone()
            .map(|((weight, mean), _)| weight * mean)
            .sum::<f64>()
            / total;
        let square: f64 = parts
            .map(|((weight, m), inverse)| weight * ((m - mean).powi(2) + 1.0 / (inverse * inverse)))
            .sum();
        (mean, (square / total).sqrt())
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
