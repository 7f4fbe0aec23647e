//! How wide the noise of averaged fits is: as wide as held-out rows show it for each fit by itself, less what averaging takes away.
//!
//! Fits with means `m_j` that are right by themselves err by `(y - m_j)^2`. Their average errs by less, exactly
//! `(y - mean m_j)^2 = mean (y - m_j)^2 - B` with `B = var m_j`; yet the mixture of their distributions is wider by `B` than each of them.
//! What is too much, `2 B`, was counted as noise by every fit, and is taken from the noise.

use crate::data::dataset::{Dataset, Target};
use crate::data::standardise::Standard;
use crate::predictive::block::{Block, Head};
use crate::soft::law::Law;
use crate::variational::fitted::Fitted;

/// Most held-out rows of a fit that are looked at.
const MOST_ROWS: usize = 1000;
/// Rows by which the factor of each fit by itself leans to one.
const PULL: f64 = 50.0;
/// Greatest logarithm of that factor, up or down.
const MOST: f64 = 0.5;
/// Steps of the search, each of which keeps 0.618 of the range.
const N_STEPS: usize = 12;

/// The factor of all standard deviations; one where nothing is held out. `spare` has the rows that each fit has not seen.
pub(super) fn learn(fits: &[Fitted], spare: &[Option<Dataset>], standard: &Standard) -> f64 {
    let mut terms = Vec::new();
    let mut averaging = (0.0, 0.0);
    for (at, rows) in spare.iter().enumerate() {
        let Some(rows) = rows else { continue };
        let rows = some_of(rows);
        let answers: Vec<Answer> = fits.iter().map(|fit| Answer::new(fit, &rows)).collect();
        let Target::Numeric(target) = rows.target() else {
            return 1.0;
        };
        for (row, &y) in target.iter().enumerate() {
            let weight = rows.weights().map_or(1.0, |weights| weights[row]);
            terms.push((weight, answers[at].deviations(row, standard.apply(y))));
            averaging.0 += weight;
            averaging.1 += weight * lost_by_averaging(&answers, row);
        }
    }
    if terms.is_empty() {
        return 1.0;
    }
    let alone = best(|log_factor| {
        let factor = f64::exp(log_factor);
        let scores = terms
            .iter()
            .map(|(weight, row)| weight * log_density(row, factor));
        scores.sum::<f64>() - PULL * log_factor * log_factor
    });
    // the noise that averaging takes away is relative to that of each fit as it should be
    (alone + 0.5 * averaging.1 / averaging.0).exp()
}

/// Standard deviation of a component after the factor; never below the least that the law allows.
pub(super) fn scaled(sd: f64, factor: f64, law: Law) -> f64 {
    match law {
        Law::Normal { floor } => (factor * sd).max(floor.min(sd)),
        Law::KnownNoise { .. } | Law::Categorical => sd,
    }
}

/// At most [`MOST_ROWS`] rows, evenly over all.
fn some_of(rows: &Dataset) -> Dataset {
    let n = rows.n_rows();
    let n_kept = n.min(MOST_ROWS);
    let kept: Vec<usize> = (0..n_kept).map(|at| at * n / n_kept).collect();
    rows.take(&kept)
}

/// What one fit says of some rows.
struct Answer {
    block: Block,
    law: Law,
}

/// Log weight, squared distance from the target and standard deviation of every component of every draw, and the law that bounds them.
struct Deviations {
    components: Vec<[f64; 3]>,
    law: Law,
}

impl Answer {
    fn new(fit: &Fitted, rows: &Dataset) -> Self {
        let components = fit.n_components();
        let n_rows = rows.n_rows();
        let mut block = Block::new(Head::Normal { components }, fit.n_draws(), n_rows);
        fit.fill(&rows.features().rows(0..n_rows), 0, &mut block);
        Self {
            block,
            law: fit.pass.law,
        }
    }

    /// Weight, mean and standard deviation of every component of every draw on a row.
    fn components(&self, row: usize) -> impl Iterator<Item = [f64; 3]> {
        let block = &self.block;
        let n = block.n_members * block.n_components();
        (0..n).map(move |component| {
            let at = component * block.stride + row;
            let weight = block.weight[at] / block.n_members as f64;
            [weight, block.mean[at], block.sd[at]]
        })
    }

    fn mean(&self, row: usize) -> f64 {
        let parts = self.components(row);
        parts.map(|[weight, mean, _]| weight * mean).sum()
    }

    /// Mean variance of the noise.
    fn noise(&self, row: usize) -> f64 {
        let parts = self.components(row);
        parts.map(|[weight, _, sd]| weight * sd * sd).sum()
    }

    fn deviations(&self, row: usize, target: f64) -> Deviations {
        let parts = self.components(row).filter(|part| part[0] > 0.0);
        Deviations {
            components: parts
                .map(|[weight, mean, sd]| [weight.ln(), (target - mean).powi(2), sd])
                .collect(),
            law: self.law,
        }
    }
}

/// Logarithm of the part of the noise variance that is left after averaging, `ln (S / (S + 2 B))`: to first order `1 - 2 B / S`, and
/// positive wherever the fits disagree by more than their noise.
fn lost_by_averaging(answers: &[Answer], row: usize) -> f64 {
    let n = answers.len() as f64;
    let means = answers.iter().map(|answer| answer.mean(row));
    let (sum, squares) = means.fold((0.0, 0.0), |(sum, squares), mean| {
        (sum + mean, squares + mean * mean)
    });
    let between = (squares / n - (sum / n).powi(2)).max(0.0);
    let noise = answers.iter().map(|answer| answer.noise(row)).sum::<f64>() / n;
    -(2.0 * between / noise).ln_1p()
}

/// Log density of a row's target, but for a constant, after the factor.
fn log_density(row: &Deviations, factor: f64) -> f64 {
    let term = |&[log_weight, square, sd]: &[f64; 3]| {
        let sd = scaled(sd, factor, row.law);
        log_weight - sd.ln() - 0.5 * square / (sd * sd)
    };
    let top = (row.components.iter())
        .map(term)
        .fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = (row.components.iter())
        .map(|part| (term(part) - top).exp())
        .sum();
    top + sum.ln()
}

/// Where a function with one top has it, between `-MOST` and `MOST`: a golden-section search.
fn best(score: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut low, mut high) = (-MOST, MOST);
    let inner = |low: f64, high: f64| (high - ratio * (high - low), low + ratio * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (score(a), score(b));
    for _ in 0..N_STEPS {
        if at_a > at_b {
            high = b;
            (b, at_b) = (a, at_a);
            a = inner(low, high).0;
            at_a = score(a);
        } else {
            low = a;
            (a, at_a) = (b, at_b);
            b = inner(low, high).1;
            at_b = score(b);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_top() {
        let found = best(|x| -(x - 0.21).powi(2));
        assert!((found - 0.21).abs() < 2e-3, "{found}");
    }

    /// Deviations of one standard deviation under components that say half or twice of it.
    #[test]
    fn widths_follow_the_deviations() {
        let row = |sd: f64| Deviations {
            components: vec![[0.0, 1.0, sd]],
            law: Law::Normal { floor: 1e-3 },
        };
        for sd in [0.7, 1.0, 1.4] {
            let found = best(|x| log_density(&row(sd), x.exp())).exp();
            assert!((found * sd - 1.0).abs() < 3e-3, "{sd}: {found}");
        }
    }

    #[test]
    fn no_scale_falls_below_the_floor() {
        let law = Law::Normal { floor: 0.5 };
        assert_eq!(scaled(0.55, 0.8, law), 0.5);
        assert_eq!(scaled(2.0, 0.8, law), 1.6);
        let constant = Law::KnownNoise { sd: 0.3 };
        assert_eq!(scaled(0.3, 0.8, constant), 0.3);
    }
}
