//! How wide the noise of averaged fits is: as wide as held-out rows show it for each fit by itself, less what averaging takes away.
//!
//! Fits with means `m_j` that are right by themselves err by `(y - m_j)^2`. Their average errs by less, exactly
//! `(y - mean m_j)^2 = mean (y - m_j)^2 - B` with `B = var m_j`; yet the mixture of their distributions is wider by `B` than each of them.
//! What is too much, `2 B`, was counted as noise by every fit, and is taken from the noise of the row: its variance `S` becomes
//! `S^2 / (S + 2 B)`, which is `S - 2 B` to first order and never negative.

use crate::data::dataset::Dataset;
use crate::data::target::Target;
use crate::data::target::TargetUnits;
use crate::numerics::logspace::log_sum_exp;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::soft::likelihood::SoftLikelihood;
use crate::variational::fitted::FittedTrees;

/// Most held-out rows of a fit that are looked at, and most draws of the fit by which they are with_validation_score.
const MAX_ROWS: usize = 500;
const MAX_DRAWS: usize = 32;
/// Rows by which the factor of each fit by itself leans to one.
const PULL: f64 = 100.0;
/// Greatest logarithm of that factor, up or down.
const MAX_LOG_FACTOR: f64 = 0.5;
/// Steps of the search, each of which keeps 0.618 of the range.
const N_STEPS: usize = 12;
/// Least part of a noise variance that averaging leaves: where fits disagree by more than their noise, that is not what each of them
/// took for noise.
const MIN_LEFT: f64 = 0.5;

/// The factor of all standard deviations that suits each fit by itself; one where nothing is held out. `spare` has the rows held out from each
/// fit, `share` what a row counts: rows that are held out from all fits are seen once for each.
pub(super) fn fit_scale_correction(
    fits: &[FittedTrees],
    spare: &[Option<Dataset>],
    share: f64,
    (standard, key): (&TargetUnits, Key),
) -> f64 {
    let mut terms = Vec::new();
    for (at, (fit, rows)) in fits.iter().zip(spare).enumerate() {
        let Some(rows) = rows.as_ref().map(some_of) else {
            continue;
        };
        let Target::Numeric(target) = rows.target() else {
            continue;
        };
        let answer = FitPredictions::new(fit, &rows, key.child(at as u64));
        for (row, &y) in target.iter().enumerate() {
            let weight = share * rows.weights().map_or(1.0, |weights| weights[row]);
            terms.push((weight, answer.deviations(row, standard.apply(y))));
        }
    }
    if terms.is_empty() {
        return 1.0;
    }
    let factor = best(|log_factor| {
        let factor = f64::exp(log_factor);
        let scores = terms
            .iter()
            .map(|(weight, row)| weight * log_density(row, factor));
        scores.sum::<f64>() - PULL * log_factor * log_factor
    });
    factor.exp()
}

/// Multiplies the standard deviations of all members by a factor, and by what averaging leaves of the noise of each row.
pub(super) fn apply(fits: &[FittedTrees], factor: f64, out: &mut Block) {
    let mut left = left_by_averaging(fits, out);
    for left in &mut left {
        *left = factor * left.sqrt();
    }
    let mut first = 0;
    for fit in fits {
        let places = out.at(first, 0)..out.at(first + fit.n_draws(), 0);
        for sds in out.sd[places].chunks_exact_mut(out.stride) {
            for (sd, &factor) in sds.iter_mut().zip(&left) {
                *sd = scaled(*sd, factor, fit.spec.likelihood);
            }
        }
        first += fit.n_draws();
    }
}

/// Standard deviation of a component after a factor; never below the least that the likelihood allows.
fn scaled(sd: f64, factor: f64, likelihood: SoftLikelihood) -> f64 {
    match likelihood {
        SoftLikelihood::Normal { floor } => (factor * sd).max(floor.min(sd)),
        SoftLikelihood::KnownNoise { .. } | SoftLikelihood::Categorical => sd,
    }
}

/// The part of the noise variance of each row that is left after averaging, `S / (S + 2 B)`.
fn left_by_averaging(fits: &[FittedTrees], out: &Block) -> Vec<f64> {
    let n_fits = fits.len() as f64;
    let zeros = || vec![0.0; out.stride];
    let (mut sum, mut squares, mut noise) = (zeros(), zeros(), zeros());
    let mut first = 0;
    for fit in fits {
        let share = 1.0 / fit.n_draws() as f64;
        let mut of_fit = zeros();
        for member in first..first + fit.n_draws() {
            let (mean, variance) = moments(out, member);
            for row in 0..out.stride {
                of_fit[row] += share * mean[row];
                noise[row] += share * variance[row] / n_fits;
            }
        }
        for row in 0..out.stride {
            sum[row] += of_fit[row] / n_fits;
            squares[row] += of_fit[row] * of_fit[row] / n_fits;
        }
        first += fit.n_draws();
    }
    let rows = 0..out.stride;
    rows.map(|row| left(noise[row], squares[row] - sum[row] * sum[row]))
        .collect()
}

fn left(noise: f64, between: f64) -> f64 {
    let part = noise / (noise + 2.0 * between.max(0.0));
    // padding rows have no noise
    if part.is_nan() {
        1.0
    } else {
        part.max(MIN_LEFT)
    }
}

/// Mean and variance of a member on every row.
fn moments(block: &Block, member: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut mean, mut square) = (vec![0.0; block.stride], vec![0.0; block.stride]);
    for component in 0..block.n_components() {
        let start = block.at(member, component);
        for row in 0..block.stride {
            let (weight, m, sd) = (
                block.weight[start + row],
                block.mean[start + row],
                block.sd[start + row],
            );
            if weight > 0.0 {
                mean[row] += weight * m;
                square[row] += weight * (sd * sd + m * m);
            }
        }
    }
    for (square, mean) in square.iter_mut().zip(&mean) {
        *square -= mean * mean;
    }
    (mean, square)
}

/// At most [`MAX_ROWS`] rows, evenly over all.
fn some_of(rows: &Dataset) -> Dataset {
    let n = rows.n_rows();
    let n_kept = n.min(MAX_ROWS);
    let kept: Vec<usize> = (0..n_kept).map(|at| at * n / n_kept).collect();
    rows.take(&kept)
}

/// What one fit says of some rows.
struct FitPredictions {
    block: Block,
    likelihood: SoftLikelihood,
}

/// Log weight, squared distance from the target and standard deviation of every component of every draw, and the likelihood that bounds them.
struct Deviations {
    components: Vec<[f64; 3]>,
    likelihood: SoftLikelihood,
}

impl FitPredictions {
    fn new(fit: &FittedTrees, rows: &Dataset, key: Key) -> Self {
        let n_draws = fit.n_draws().min(MAX_DRAWS);
        let some = FittedTrees::new(
            fit.encoder.clone(),
            fit.spec,
            fit.blocks.clone(),
            n_draws,
            key,
        );
        let components = fit.n_components();
        let n_rows = rows.n_rows();
        let mut block = Block::new(Head::Normal { components }, n_draws, n_rows);
        some.fill(&rows.features().rows(0..n_rows), 0, &mut block);
        Self {
            block,
            likelihood: fit.spec.likelihood,
        }
    }

    fn deviations(&self, row: usize, target: f64) -> Deviations {
        let block = &self.block;
        let places = (0..block.n_members * block.n_components()).map(|at| at * block.stride + row);
        let used = places.filter(|&at| block.weight[at] > 0.0);
        Deviations {
            components: used
                .map(|at| {
                    let log_weight = (block.weight[at] / block.n_members as f64).ln();
                    [log_weight, (target - block.mean[at]).powi(2), block.sd[at]]
                })
                .collect(),
            likelihood: self.likelihood,
        }
    }
}

/// Log density of a row's target, but for a constant, after the factor.
fn log_density(row: &Deviations, factor: f64) -> f64 {
    let term = |&[log_weight, square, sd]: &[f64; 3]| {
        let sd = scaled(sd, factor, row.likelihood);
        log_weight - sd.ln() - 0.5 * square / (sd * sd)
    };
    let terms: Vec<f64> = row.components.iter().map(term).collect();
    log_sum_exp(terms.iter().copied())
}

/// Where a function with one top has it, between `-MAX_LOG_FACTOR` and `MAX_LOG_FACTOR`: a golden-section search.
fn best(score: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut low, mut high) = (-MAX_LOG_FACTOR, MAX_LOG_FACTOR);
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
    use softwood_testkit::close;

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
            likelihood: SoftLikelihood::Normal { floor: 1e-3 },
        };
        for sd in [0.7, 1.0, 1.4] {
            let found = best(|x| log_density(&row(sd), x.exp())).exp();
            assert!((found * sd - 1.0).abs() < 3e-3, "{sd}: {found}");
        }
    }

    /// The part that is left makes up for what the fits disagree about, to first order, and stays bounded.
    #[test]
    fn averaging_takes_twice_the_variance_between_fits() {
        let found = [0.0, 0.01, 100.0].map(|between| left(1.0, between));
        close(&found, &[1.0, 0.98, MIN_LEFT], 5e-4);
    }

    /// Two narrow components far apart are noise, however narrow they are.
    #[test]
    fn components_apart_count_as_noise() {
        let mut block = Block::new(Head::Normal { components: 2 }, 1, 1);
        for (component, mean) in [-1.0, 1.0].into_iter().enumerate() {
            let at = block.at(0, component);
            (block.weight[at], block.mean[at], block.sd[at]) = (0.5, mean, 0.1);
        }
        let (mean, variance) = moments(&block, 0);
        assert!(mean[0].abs() < 1e-12 && (variance[0] - 1.01).abs() < 1e-12);
    }

    #[test]
    fn no_scale_falls_below_the_floor() {
        let likelihood = SoftLikelihood::Normal { floor: 0.5 };
        close(
            &[0.55, 2.0].map(|sd| scaled(sd, 0.8, likelihood)),
            &[0.5, 1.6],
            1e-12,
        );
        let constant = SoftLikelihood::KnownNoise { sd: 0.3 };
        close(&[scaled(0.3, 0.8, constant)], &[0.3], 1e-12);
    }
}
