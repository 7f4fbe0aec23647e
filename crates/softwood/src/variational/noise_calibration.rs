//! Calibration of the noise scale of averaged fits: a factor that maximises the validation
//! likelihood of each single fit, and a correction for averaging.
//!
//! A calibrated fit with mean `m_j` has the squared error `(y - m_j)^2`. The average of the fits
//! has the smaller squared error `(y - mean m_j)^2 = mean (y - m_j)^2 - B` with `B = var m_j`, but
//! the mixture of their distributions has a variance larger by `B` than that of each fit. The
//! excess `2 B` is subtracted from the noise variance `S` of the row, which becomes
//! `S^2 / (S + 2 B)`: this is `S - 2 B` to first order and never negative.
//!
//! A scale and a tail for the average of all fits follow ([`ensemble_calibration`]).

use crate::data::dataset::Dataset;
use crate::data::target::{Target, TargetUnits};
use crate::likelihood::soft::SoftLikelihood;
use crate::numerics::golden_section::maximize;
use crate::numerics::logspace::log_sum_exp;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{HeldOutBlock, NoiseCalibration};
use crate::predictive::seen_residuals::ResidualSizes;
use crate::rng::Key;
use crate::soft::layout::StoredLayout;
use crate::variational::fitted::FittedTrees;

/// Maximum number of validation rows per fit.
pub(crate) const MAX_ROWS: usize = 500;
/// Maximum number of posterior draws per fit.
const MAX_DRAWS: usize = 32;
/// Maximum absolute value of the log factor.
const MAX_LOG_FACTOR: f64 = 0.5;
/// Number of steps of the golden-section search, each of which keeps 0.618 of the interval.
const N_STEPS: usize = 12;
/// Floor of the factor `S / (S + 2 B)`: a disagreement of the fits that exceeds their noise cannot
/// have been fitted as noise.
const MIN_VARIANCE_FACTOR: f64 = 0.5;

/// Why the predictions of soft trees do not fail.
pub(crate) const ALWAYS_DEFINED: &str = "members of soft trees are always defined";

/// Rows by which the noise of an ensemble is calibrated.
pub(crate) struct CalibrationRows<'a> {
    /// Validation rows of each fit.
    pub(crate) validation: &'a [Option<Dataset>],
    /// Whether these are the same rows for all fits, and no fit was trained on them.
    pub(crate) is_shared: bool,
    pub(crate) standard: &'a TargetUnits,
    /// Precision of the Normal prior on the log factor, in rows.
    pub(crate) log_factor_precision: f64,
}

/// The factor of all standard deviations that maximises the validation likelihood of the single
/// fits; 1 without validation rows. `redraw` makes a fit with this number of new posterior draws.
pub(crate) fn noise_factor<L: StoredLayout>(
    fits: &[FittedTrees<L>],
    rows: &CalibrationRows<'_>,
    redraw: impl Fn(usize, usize, Key) -> FittedTrees<L>,
    key: Key,
) -> f64 {
    let CalibrationRows {
        validation,
        is_shared,
        standard,
        log_factor_precision,
    } = rows;
    // shared rows are used once for each fit
    let row_weight = if *is_shared {
        1.0 / fits.len() as f64
    } else {
        1.0
    };
    let mut terms = Vec::new();
    for (at, (fit, rows)) in fits.iter().zip(*validation).enumerate() {
        let Some(rows) = rows.as_ref().map(|rows| rows.spaced(MAX_ROWS)) else {
            continue;
        };
        let Target::Numeric(target) = rows.target() else {
            continue;
        };
        let redrawn = redraw(at, fit.n_draws().min(MAX_DRAWS), key.child(at as u64));
        let predictions = FitPredictions::new(&redrawn, &rows);
        for (row, &y) in target.iter().enumerate() {
            let weight = row_weight * rows.weights().map_or(1.0, |weights| weights[row]);
            terms.push((weight, predictions.deviations(row, standard.apply(y))));
        }
    }
    if terms.is_empty() {
        return 1.0;
    }
    let best = maximize(-MAX_LOG_FACTOR, MAX_LOG_FACTOR, N_STEPS, |log_factor| {
        let factor = f64::exp(log_factor);
        let scores = terms
            .iter()
            .map(|(weight, row)| weight * log_density(row, factor));
        scores.sum::<f64>() - log_factor_precision * log_factor * log_factor
    });
    best.at.exp()
}

/// Scale and tail of the noise of the average of all fits, learned on the validation rows of single fits.
/// `predict` writes the predictions of all members in the order of the fits.
///
/// Unless the fits share their validation rows, most others were trained on the validation rows of a fit, and
/// their predictions move to where they would be without ([`move_from_targets`]). Few rows are left out by
/// several fits; they are not told apart.
pub(crate) fn ensemble_calibration<L: StoredLayout>(
    fits: &[FittedTrees<L>],
    rows: &CalibrationRows<'_>,
    head: Head,
    predict: impl Fn(&Dataset, &mut Block),
) -> NoiseCalibration {
    let SoftLikelihood::Normal { floor } = fits[0].spec.likelihood else {
        return NoiseCalibration::IDENTITY;
    };
    let n_members = fits.iter().map(FittedTrees::n_draws).sum();
    let n_sets = if rows.is_shared { 1 } else { fits.len() };
    let blocks = rows.validation[..n_sets].iter().enumerate();
    let blocks = blocks.filter_map(|(left_out_by, own)| {
        let own = own.as_ref()?.spaced(MAX_ROWS);
        let Target::Numeric(target) = own.target() else {
            return None;
        };
        let mut block = Block::new(head, n_members, own.n_rows());
        predict(&own, &mut block);
        let weight = |row: usize| own.weights().map_or(1.0, |weights| weights[row]);
        let held_out = HeldOutBlock {
            block,
            added: Vec::new(),
            weight: (0..own.n_rows()).map(weight).collect(),
            target: target.iter().map(|&y| rows.standard.apply(y)).collect(),
        };
        Some((left_out_by, held_out))
    });
    let (left_out_by, mut blocks): (Vec<usize>, Vec<HeldOutBlock>) = blocks.unzip();
    if !rows.is_shared {
        let shapes: Vec<FitShape> = fits.iter().map(FitShape::new).collect();
        move_from_targets(&shapes, &left_out_by, &mut blocks);
    }
    NoiseCalibration::learn(&blocks, floor).with_coverage_of(&blocks)
}

/// Number and form of the members of a fit.
#[derive(Debug, Clone, Copy)]
struct FitShape {
    n_draws: usize,
    is_mixture: bool,
}

impl FitShape {
    fn new<L: StoredLayout>(fit: &FittedTrees<L>) -> Self {
        Self {
            n_draws: fit.n_draws(),
            is_mixture: fit.n_components() > 1,
        }
    }
}

/// Moves the predictions of fits for rows that they were trained on away from the targets, until their
/// residuals are as large as those of the fit that left the rows out ([`ResidualSizes`]). Each block has
/// the rows that one fit left out.
///
/// The members of a fit move together. In a mixture each component moves by its own distance from the target:
/// a mode at the target may be a value that occurs often, and stays.
fn move_from_targets(fits: &[FitShape], left_out_by: &[usize], blocks: &mut [HeldOutBlock]) {
    let mut sizes = ResidualSizes::default();
    let means: Vec<Vec<Vec<f64>>> = blocks
        .iter()
        .map(|held_out| fit_means(fits, &held_out.block))
        .collect();
    for ((held_out, &left_out_by), means) in blocks.iter().zip(left_out_by).zip(&means) {
        for (fit, means) in means.iter().enumerate() {
            let rows = held_out.target.iter().zip(means).zip(&held_out.weight);
            for ((y, mean), &weight) in rows {
                sizes.add(y - mean, weight, fit == left_out_by);
            }
        }
    }
    let factor = sizes.factor();
    for ((held_out, &left_out_by), means) in blocks.iter_mut().zip(left_out_by).zip(&means) {
        let (block, target) = (&mut held_out.block, &held_out.target);
        let mut first = 0;
        for (fit, shape) in fits.iter().enumerate() {
            let range = block.at(first, 0)..block.at(first + shape.n_draws, 0);
            first += shape.n_draws;
            if fit == left_out_by {
                continue;
            }
            let stride = block.stride;
            for components in block.normal_mut().mean[range].chunks_exact_mut(stride) {
                for ((mean, y), fit_mean) in components.iter_mut().zip(target).zip(&means[fit]) {
                    let centre = if shape.is_mixture { *mean } else { *fit_mean };
                    *mean -= (factor - 1.0) * (y - centre);
                }
            }
        }
    }
}

/// The mean of each fit on every row.
fn fit_means(fits: &[FitShape], block: &Block) -> Vec<Vec<f64>> {
    let mut first = 0;
    let mean_of_fit = |shape: &FitShape| {
        let n_draws = shape.n_draws;
        let mut sum = vec![0.0; block.stride];
        for member in first..first + n_draws {
            let (mean, _) = moments(block, member);
            for (sum, mean) in sum.iter_mut().zip(mean) {
                *sum += mean / n_draws as f64;
            }
        }
        first += n_draws;
        sum
    };
    fits.iter().map(mean_of_fit).collect()
}

/// Multiplies the standard deviations of all members by the calibration factor and by the
/// correction for averaging of each row.
pub(crate) fn apply<L: StoredLayout>(fits: &[FittedTrees<L>], factor: f64, out: &mut Block) {
    let mut factors = variance_factors(fits, out);
    for row_factor in &mut factors {
        *row_factor = factor * row_factor.sqrt();
    }
    let mut first = 0;
    for fit in fits {
        let range = out.at(first, 0)..out.at(first + fit.n_draws(), 0);
        let stride = out.stride;
        for sds in out.normal_mut().sd[range].chunks_exact_mut(stride) {
            for (sd, &factor) in sds.iter_mut().zip(&factors) {
                *sd = scaled(*sd, factor, fit.spec.likelihood);
            }
        }
        first += fit.n_draws();
    }
}

/// A standard deviation times a factor, but not below the lower bound of the likelihood.
fn scaled(sd: f64, factor: f64, likelihood: SoftLikelihood) -> f64 {
    match likelihood {
        SoftLikelihood::Normal { floor } => (factor * sd).max(floor.min(sd)),
        SoftLikelihood::KnownNoise { .. } | SoftLikelihood::Categorical => sd,
    }
}

/// The factor `S / (S + 2 B)` of the noise variance of each row.
fn variance_factors<L: StoredLayout>(fits: &[FittedTrees<L>], out: &Block) -> Vec<f64> {
    let n_fits = fits.len() as f64;
    let zeros = || vec![0.0; out.stride];
    let (mut sum, mut squares, mut noise) = (zeros(), zeros(), zeros());
    let mut first = 0;
    for fit in fits {
        let member_weight = 1.0 / fit.n_draws() as f64;
        let mut fit_mean = zeros();
        for member in first..first + fit.n_draws() {
            let (mean, variance) = moments(out, member);
            for row in 0..out.stride {
                fit_mean[row] += member_weight * mean[row];
                noise[row] += member_weight * variance[row] / n_fits;
            }
        }
        for row in 0..out.stride {
            sum[row] += fit_mean[row] / n_fits;
            squares[row] += fit_mean[row] * fit_mean[row] / n_fits;
        }
        first += fit.n_draws();
    }
    let rows = 0..out.stride;
    rows.map(|row| variance_factor(noise[row], squares[row] - sum[row] * sum[row]))
        .collect()
}

/// `S / (S + 2 B)` with a floor, for noise variance `S` and variance `B` between the fits.
fn variance_factor(noise: f64, between: f64) -> f64 {
    let factor = noise / (noise + 2.0 * between.max(0.0));
    // padding rows have no noise
    if factor.is_nan() {
        1.0
    } else {
        factor.max(MIN_VARIANCE_FACTOR)
    }
}

/// Predictive mean and variance of a member on every row.
fn moments(block: &Block, member: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut mean, mut square) = (vec![0.0; block.stride], vec![0.0; block.stride]);
    let normal = block.normal();
    for component in 0..block.n_components() {
        let start = block.at(member, component);
        for row in 0..block.stride {
            let at = start + row;
            let (weight, m, sd) = (block.weight[at], normal.mean[at], normal.sd[at]);
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

/// Predictive distributions of one fit.
struct FitPredictions {
    block: Block,
    likelihood: SoftLikelihood,
}

/// The components of all draws on one row, relative to its target.
struct Deviations {
    components: Vec<ComponentDeviation>,
    likelihood: SoftLikelihood,
}

/// A component relative to the target of a row.
struct ComponentDeviation {
    log_weight: f64,
    /// Squared distance of the mean from the target.
    square: f64,
    sd: f64,
}

impl FitPredictions {
    fn new<L: StoredLayout>(fit: &FittedTrees<L>, rows: &Dataset) -> Self {
        let components = fit.n_components();
        let n_rows = rows.n_rows();
        let mut block = Block::new(Head::Normal { components }, fit.n_draws(), n_rows);
        fit.fill(&rows.features().rows(0..n_rows), 0, &mut block);
        Self {
            block,
            likelihood: fit.spec.likelihood,
        }
    }

    fn deviations(&self, row: usize, target: f64) -> Deviations {
        let block = &self.block;
        let normal = block.normal();
        let indices = (0..block.n_members * block.n_components()).map(|at| at * block.stride + row);
        let used = indices.filter(|&at| block.weight[at] > 0.0);
        Deviations {
            components: used
                .map(|at| ComponentDeviation {
                    log_weight: (block.weight[at] / block.n_members as f64).ln(),
                    square: (target - normal.mean[at]).powi(2),
                    sd: normal.sd[at],
                })
                .collect(),
            likelihood: self.likelihood,
        }
    }
}

/// Log density of the target of a row, up to a constant, with scaled standard deviations.
fn log_density(row: &Deviations, factor: f64) -> f64 {
    let term = |component: &ComponentDeviation| {
        let sd = scaled(component.sd, factor, row.likelihood);
        component.log_weight - sd.ln() - 0.5 * component.square / (sd * sd)
    };
    let terms: Vec<f64> = row.components.iter().map(term).collect();
    log_sum_exp(terms.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    /// A deviation of 1 from components with smaller or larger standard deviations.
    #[test]
    fn the_best_factor_matches_the_deviations() {
        let row = |sd: f64| Deviations {
            components: vec![ComponentDeviation {
                log_weight: 0.0,
                square: 1.0,
                sd,
            }],
            likelihood: SoftLikelihood::Normal { floor: 1e-3 },
        };
        for sd in [0.7, 1.0, 1.4] {
            let found = maximize(-0.5, 0.5, N_STEPS, |x| log_density(&row(sd), x.exp()));
            let found = found.at.exp();
            assert!((found * sd - 1.0).abs() < 3e-3, "{sd}: {found}");
        }
    }

    /// To first order; the factor has a floor.
    #[test]
    fn twice_the_variance_between_fits_is_subtracted() {
        let found = [0.0, 0.01, 100.0].map(|between| variance_factor(1.0, between));
        close(&found, &[1.0, 0.98, MIN_VARIANCE_FACTOR], 5e-4);
    }

    /// Two fits with two draws each, on a row that the first one left out and one that the second one left out.
    #[test]
    fn predictions_move_away_from_targets_that_fits_have_seen() {
        let moved = |components: usize, distances: [f64; 2]| {
            let blocks = [[2.0, 1.0], [1.0, 2.0]].map(|residuals| {
                let mut block = Block::new(Head::Normal { components }, 4, 1);
                for member in 0..4 {
                    for component in 0..components {
                        let at = block.at(member, component);
                        block.weight[at] = 1.0 / components as f64;
                        block.normal_mut().mean[at] = 5.0
                            - residuals[member / 2]
                            - distances[member % 2] * (1.0 - 2.0 * component as f64);
                    }
                }
                HeldOutBlock {
                    block,
                    added: Vec::new(),
                    target: vec![5.0],
                    weight: vec![1.0],
                }
            });
            let mut blocks = Vec::from(blocks);
            let shape = FitShape {
                n_draws: 2,
                is_mixture: components > 1,
            };
            move_from_targets(&[shape; 2], &[0, 1], &mut blocks);
            let block = &blocks[0].block;
            let at = (0..4).map(|member| block.at(member, 0));
            at.map(|at| block.normal().mean[at]).collect::<Vec<f64>>()
        };
        // the residuals that were left out are twice as large; draws of a fit keep their distance
        close(&moved(1, [-0.1, 0.1]), &[3.1, 2.9, 3.1, 2.9], 1e-9);
        // components move by their own distances of 0 and 2 from the target
        close(&moved(2, [-1.0, 1.0]), &[4.0, 2.0, 5.0, 1.0], 1e-9);
    }

    #[test]
    fn the_distance_of_components_counts_as_noise_variance() {
        let mut block = Block::new(Head::Normal { components: 2 }, 1, 1);
        for (component, mean) in [-1.0, 1.0].into_iter().enumerate() {
            let at = block.at(0, component);
            block.weight[at] = 0.5;
            let normal = block.normal_mut();
            (normal.mean[at], normal.sd[at]) = (mean, 0.1);
        }
        let (mean, variance) = moments(&block, 0);
        assert!(mean[0].abs() < 1e-12 && (variance[0] - 1.01).abs() < 1e-12);
    }

    #[test]
    fn no_standard_deviation_falls_below_its_lower_bound() {
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
