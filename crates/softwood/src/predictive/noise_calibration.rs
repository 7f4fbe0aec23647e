//! Calibration of the noise of a predictive distribution on held-out rows.
//!
//! The standard deviations of member `k` of `M` are multiplied by `a r_k` with
//! `r_k = e^{t z_k} / sqrt(mean_j e^{2 t z_j})`. The scores `z_k` are the Normal quantiles of the
//! levels `(i + 1/2) / M`, assigned to the members in the order of the van der Corput sequence, so
//! that the members of each part of an ensemble have all of them. The noise of the mixture over
//! members is then a scale mixture: the scale `a` multiplies its standard deviation, the tail `t`
//! makes it more peaked with heavier tails and leaves its variance as it is. Both maximise the
//! likelihood of the held-out rows with a Normal prior on `ln a` and `t` about 0, which stands for
//! no change.

use std::ops::RangeInclusive;

use multiversion::multiversion;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Result;
use crate::numerics::golden_section::maximize;
use crate::numerics::logspace::log_sum_exp;
use crate::numerics::normal::{cdf_and_kernel, rough_quantile};
use crate::predictive::block::{Block, Head};
use crate::store::range;
use crate::store::record::Record;

/// Name in a record.
const STORED_NAME: &str = "calibration";
/// Precision of the prior on `ln a`, in rows: Normal residuals of as many rows have half of this
/// information.
const LOG_SCALE_PRECISION: f64 = 20.0;
/// Precision of the prior on `t`.
const TAIL_PRECISION: f64 = 10.0;
/// Maximum absolute value of `ln a`.
const MAX_LOG_SCALE: f64 = 1.5;
/// Tails that are compared.
const TAILS: [f64; 9] = [0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5];
/// Level of the interval whose coverage is corrected.
const LEVEL: f64 = 0.9;
/// Largest absolute value of the logarithm of the correction.
const MAX_LOG_CORRECTION: f64 = 0.7;
/// Logarithm of a factor that leaves nothing of the noise above its floor.
const LOG_NO_NOISE: f64 = -20.0;
/// Number of rows whose information equals that of the prior of no correction.
const CORRECTION_PRIOR_ROWS: f64 = 300.0;
/// Number of bisections of the logarithm of the correction.
const N_BISECTIONS: usize = 12;
/// Number of steps of the golden-section search, each of which keeps 0.618 of the interval.
const N_STEPS: usize = 10;

/// Scales and tails that are accepted from a file.
const SCALES: RangeInclusive<f64> = 1e-15..=1e15;
const STORED_FLOORS: RangeInclusive<f64> = 0.0..=1e3;

/// Factor that turns the residual of the mean of `n_left_out` of `n_models` models, which did not see a row,
/// into a residual of the mean of all models.
///
/// `between` is the variance of single models about their mean, and `noise` the rest of the expected squared
/// residual. The part `between (1/n_left_out - 1/n_models)` of it is the error that averaging over all models
/// removes.
pub(crate) fn ensemble_residual_factor(
    noise: f64,
    between: f64,
    (n_left_out, n_models): (usize, usize),
) -> f64 {
    let of_left_out = between / n_left_out as f64;
    let removed = of_left_out - between / n_models as f64;
    let factor = (1.0 - removed / (noise + of_left_out)).sqrt();
    // models that agree exactly and have no noise
    if factor.is_nan() { 1.0 } else { factor }
}

/// Sample variance; zero for fewer than two numbers.
pub(crate) fn sample_variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.clone().sum::<f64>() / n;
    values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// Factors of the standard deviations of the members.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct NoiseCalibration {
    /// Factor `a` of the standard deviation of the noise.
    pub(crate) scale: f64,
    /// Standard deviation `t` of the log factors of the members.
    pub(crate) tail: f64,
    /// No standard deviation is reduced below this one, in standard units.
    pub(crate) floor: f64,
}

/// Predictions for rows that the model was not trained on.
pub(crate) struct HeldOutBlock {
    pub(crate) block: Block,
    /// Variance of each component besides its noise, in the order of the block; none, if it is empty.
    pub(crate) added: Vec<f64>,
    /// Targets in standard units.
    pub(crate) target: Vec<f64>,
    /// Weights of the rows.
    pub(crate) weight: Vec<f64>,
}

impl NoiseCalibration {
    /// No change.
    pub(crate) const IDENTITY: Self = Self {
        scale: 1.0,
        tail: 0.0,
        floor: 0.0,
    };

    /// Learns scale and tail on held-out rows.
    pub(crate) fn learn(blocks: &[HeldOutBlock], floor: f64) -> Self {
        let blocks: Vec<TargetDeviations> =
            blocks.iter().filter_map(TargetDeviations::new).collect();
        if blocks.is_empty() {
            return Self::IDENTITY;
        }
        let score = |log_scale: f64, tail: f64| {
            let calibration = Self {
                scale: log_scale.exp(),
                tail,
                floor,
            };
            let likelihood: f64 = blocks.iter().map(|rows| rows.score(calibration)).sum();
            likelihood - LOG_SCALE_PRECISION * log_scale * log_scale - TAIL_PRECISION * tail * tail
        };
        let candidates = TAILS.map(|tail| {
            let found = maximize(-MAX_LOG_SCALE, MAX_LOG_SCALE, N_STEPS, |log_scale| {
                score(log_scale, tail)
            });
            let scale = found.at.exp();
            (Self { scale, tail, floor }, found.value)
        });
        let unchanged = Self {
            floor,
            ..Self::IDENTITY
        };
        let unchanged = (unchanged, score(0.0, 0.0));
        let (best, _) =
            candidates.into_iter().fold(
                unchanged,
                |best, other| {
                    if other.1 > best.1 { other } else { best }
                },
            );
        best
    }

    /// Multiplies the scale by a factor that makes the central interval of level 0.9 contain 90% of
    /// held-out rows, or by a factor nearer to one if there are few rows.
    ///
    /// The likelihood weighs the few rows far out in the tails, which the shape of the noise does not
    /// describe exactly; intervals should hold nevertheless.
    pub(crate) fn with_coverage_of(self, blocks: &[HeldOutBlock]) -> Self {
        let n_rows: f64 = blocks.iter().flat_map(|block| &block.weight).sum();
        let blocks: Vec<TargetDeviations> =
            blocks.iter().filter_map(TargetDeviations::new).collect();
        if blocks.is_empty() {
            return self;
        }
        let scaled = |log_factor: f64| Self {
            scale: self.scale * log_factor.exp(),
            ..self
        };
        let is_too_narrow = |log_factor: f64| {
            let calibration = scaled(log_factor);
            let covered: f64 = blocks.iter().map(|rows| rows.covered(calibration)).sum();
            covered < LEVEL * n_rows
        };
        let (mut low, mut high) = (-MAX_LOG_CORRECTION, MAX_LOG_CORRECTION);
        if !is_too_narrow(LOG_NO_NOISE) {
            // the disagreement of the members, the added variance or the floor covers the rows without
            // the noise
            return self;
        }
        for _ in 0..N_BISECTIONS {
            let middle = 0.5 * (low + high);
            if is_too_narrow(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        scaled(0.5 * (low + high) * n_rows / (n_rows + CORRECTION_PRIOR_ROWS))
    }

    /// Reads a calibration from a record; no change if there is none, as in files of the first
    /// versions.
    ///
    /// # Errors
    /// When its values are out of range.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let stored: Option<Self> = record.part(STORED_NAME)?;
        let Some(calibration) = stored else {
            return Ok(Self::IDENTITY);
        };
        range::check("calibration.scale", calibration.scale, &SCALES)?;
        range::check("calibration.tail", calibration.tail, &range::TAILS)?;
        range::check("calibration.floor", calibration.floor, &STORED_FLOORS)?;
        Ok(calibration)
    }

    /// Writes the calibration to the metadata of a record, unless it changes nothing.
    pub(crate) fn write(self, meta: &mut Value) {
        if !self.is_identity() {
            meta[STORED_NAME] = json!(self);
        }
    }

    /// The calibration with its scale multiplied by a factor, unless it changes nothing; the scale stays
    /// in the range that files may have.
    pub(crate) fn rescaled(self, factor: f64) -> Self {
        if self.is_identity() {
            return self;
        }
        let scale = (factor * self.scale).clamp(*SCALES.start(), *SCALES.end());
        Self { scale, ..self }
    }

    /// Whether it changes nothing, whatever the floor is.
    fn is_identity(self) -> bool {
        let without_floor = Self { floor: 0.0, ..self };
        without_floor == Self::IDENTITY
    }

    /// Multiplies the standard deviations of all members.
    pub(crate) fn apply(self, out: &mut Block) {
        if self.is_identity() || !matches!(out.head, Head::Normal { .. }) {
            return;
        }
        let factors = self.member_factors(out.n_members);
        let len = out.n_components() * out.stride;
        let members = out.normal_mut().sd.chunks_exact_mut(len.max(1));
        for (sds, factor) in members.zip(factors) {
            scale_above_floor(sds, factor, self.floor);
        }
    }

    /// The factor `a r_k` of each member.
    pub(crate) fn member_factors(self, n_members: usize) -> Vec<f64> {
        let factors: Vec<f64> = member_scores(n_members)
            .iter()
            .map(|score| (self.tail * score).exp())
            .collect();
        let square = factors.iter().map(|factor| factor * factor).sum::<f64>();
        let normalizer = self.scale / (square / n_members as f64).sqrt();
        factors.iter().map(|factor| normalizer * factor).collect()
    }
}

/// Normal quantiles of equally spaced levels, in the order of the van der Corput sequence.
fn member_scores(n_members: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..n_members).collect();
    order.sort_by_key(|member| member.reverse_bits());
    let mut scores = vec![0.0; n_members];
    for (rank, member) in order.into_iter().enumerate() {
        scores[member] = rough_quantile((rank as f64 + 0.5) / n_members as f64);
    }
    scores
}

/// A component of a member relative to the target of a row.
struct TargetDeviation {
    member: usize,
    /// Logarithm of weight over standard deviation.
    log_height: f64,
    /// Half of the squared distance of the mean from the target, in units of the variance.
    half_square: f64,
    weight: f64,
    /// Target minus mean.
    distance: f64,
    sd: f64,
    /// Variance besides the noise.
    added: f64,
}

impl TargetDeviation {
    /// Standard deviation with a factor of the noise.
    fn total_sd(&self, factor: f64, floor: f64) -> f64 {
        let noise = scaled_above_floor(self.sd, factor, floor);
        if self.added > 0.0 {
            (noise * noise + self.added).sqrt()
        } else {
            noise
        }
    }
}

/// The components of all members on held-out rows, relative to their targets.
struct TargetDeviations {
    n_members: usize,
    /// Weight and components of each row.
    rows: Vec<(f64, Vec<TargetDeviation>)>,
}

impl TargetDeviations {
    fn new(held_out: &HeldOutBlock) -> Option<Self> {
        let block = &held_out.block;
        if block.n_rows == 0 || !matches!(block.head, Head::Normal { .. }) {
            return None;
        }
        let normal = block.normal();
        assert!(
            held_out.added.is_empty() || held_out.added.len() == normal.sd.len(),
            "a variance for each component"
        );
        let components = |row: usize| {
            let indices = (0..block.n_members * block.n_components())
                .map(move |component| (component, component * block.stride + row));
            let used = indices.filter(|&(_, at)| block.weight[at] > 0.0);
            let deviation = |(component, at): (usize, usize)| {
                let sd = normal.sd[at];
                let distance = held_out.target[row] - normal.mean[at];
                TargetDeviation {
                    member: component / block.n_components(),
                    log_height: (block.weight[at] / sd).ln(),
                    half_square: 0.5 * (distance / sd).powi(2),
                    weight: block.weight[at],
                    distance,
                    sd,
                    added: held_out.added.get(at).copied().unwrap_or(0.0),
                }
            };
            used.map(deviation).collect()
        };
        Some(Self {
            n_members: block.n_members,
            rows: (0..block.n_rows)
                .map(|row| (held_out.weight[row], components(row)))
                .collect(),
        })
    }

    /// Total weight of the rows that lie in the central interval of level 0.9.
    fn covered(&self, calibration: NoiseCalibration) -> f64 {
        let factors = calibration.member_factors(self.n_members);
        let is_inside = |components: &[TargetDeviation]| {
            let probabilities = components.iter().map(|component| {
                let sd = component.total_sd(factors[component.member], calibration.floor);
                component.weight * cdf_and_kernel(component.distance / sd).0
            });
            let cdf = probabilities.sum::<f64>() / self.n_members as f64;
            (cdf - 0.5).abs() < 0.5 * LEVEL
        };
        let inside = self.rows.iter().filter(|(_, row)| is_inside(row));
        inside.map(|(weight, _)| weight).sum()
    }

    /// Weighted sum of the log densities, up to a constant.
    fn score(&self, calibration: NoiseCalibration) -> f64 {
        let factors: Vec<(f64, f64, f64)> = calibration
            .member_factors(self.n_members)
            .iter()
            .map(|factor| (*factor, factor.ln(), 1.0 / (factor * factor)))
            .collect();
        let log_density = |deviation: &TargetDeviation| {
            let (mut factor, mut log_factor, mut precision) = factors[deviation.member];
            if deviation.added > 0.0 {
                let sd = deviation.total_sd(factor, calibration.floor);
                let square = (deviation.distance / sd).powi(2);
                return (deviation.weight / sd).ln() - 0.5 * square;
            }
            if factor * deviation.sd < calibration.floor && factor < 1.0 {
                factor = (calibration.floor / deviation.sd).min(1.0);
                (log_factor, precision) = (factor.ln(), 1.0 / (factor * factor));
            }
            deviation.log_height - log_factor - precision * deviation.half_square
        };
        let rows = self.rows.iter().map(|(weight, components)| {
            let terms: Vec<f64> = components.iter().map(log_density).collect();
            weight * log_sum_exp(terms.iter().copied())
        });
        rows.sum()
    }
}

/// Multiplies standard deviations; those above the floor stay at or above it, the others do not shrink.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn scale_above_floor(sds: &mut [f64], factor: f64, floor: f64) {
    for sd in sds {
        *sd = scaled_above_floor(*sd, factor, floor);
    }
}

/// A standard deviation times a factor, but not below the floor, or not below itself if it is smaller.
#[inline(always)]
pub(crate) fn scaled_above_floor(sd: f64, factor: f64, floor: f64) -> f64 {
    let bound = if sd < floor { sd } else { floor };
    let scaled = factor * sd;
    if scaled > bound { scaled } else { bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian::Gaussian;
    use crate::rng::Key;

    const N_MEMBERS: usize = 20;

    /// Standard Normal predictions; the targets are functions of two Normal numbers.
    fn held_out(n_rows: usize, noise: impl Fn(f64, f64) -> f64) -> HeldOutBlock {
        let mut block = Block::new(Head::Normal { components: 1 }, N_MEMBERS, n_rows);
        block.weight.fill(1.0);
        block.normal_mut().sd.fill(1.0);
        let mut draws = vec![0.0; 2 * n_rows];
        Gaussian::new(Key::from_seed(5)).fill(&mut draws);
        let pairs = draws.chunks_exact(2);
        HeldOutBlock {
            block,
            added: Vec::new(),
            target: pairs
                .map(|pair| noise(f64::from(pair[0]), f64::from(pair[1])))
                .collect(),
            weight: vec![1.0; n_rows],
        }
    }

    #[test]
    fn scaled_deviations_are_those_of_the_scalar_formula() {
        let floor = 0.1;
        for factor in [0.2, 1.0, 3.0] {
            let given: Vec<f64> = (0..37).map(|at| 0.01 * f64::from(at * at) + 1e-3).collect();
            let mut scaled = given.clone();
            scale_above_floor(&mut scaled, factor, floor);
            let expected: Vec<f64> = given
                .iter()
                .map(|&sd| (factor * sd).max(f64::min(floor, sd)))
                .collect();
            assert_eq!(scaled, expected);
        }
    }

    /// The standard error of the scale is 0.011 for 4000 rows; the test allows six.
    #[test]
    fn the_scale_is_that_of_normal_residuals() {
        for sd in [0.6, 1.0, 1.7] {
            let found = NoiseCalibration::learn(&[held_out(4000, |z, _| sd * z)], 0.0);
            assert!((found.scale / sd).ln().abs() < 0.07, "{sd}: {found:?}");
            assert!(found.tail < 0.2, "{sd}: {found:?}");
        }
    }

    /// Residuals with variance 1 + 3 for members with noise variance 1 and an added variance of 3: no change.
    /// With twice the noise, the scale is 2.
    #[test]
    fn an_added_variance_is_not_scaled() {
        for sd in [1.0_f64, 2.0] {
            let mut rows = held_out(4000, |z, _| (sd * sd + 3.0).sqrt() * z);
            rows.added = vec![3.0; rows.block.normal().sd.len()];
            let found = NoiseCalibration::learn(&[rows], 0.0);
            assert!((found.scale / sd).ln().abs() < 0.25, "{sd}: {found:?}");
        }
    }

    #[test]
    fn the_tail_is_that_of_a_mixture_of_scales() {
        let found = NoiseCalibration::learn(&[held_out(4000, |z, u| z * (0.8 * u).exp())], 0.0);
        assert!((0.5..1.1).contains(&found.tail), "{found:?}");
    }

    /// A tenth of the targets are far out, so that no scale mixture within the bounds suits them all. The
    /// standard error of the coverage is 0.003; the test allows six.
    #[test]
    fn corrected_intervals_cover_what_they_say() {
        let blocks = [held_out(10_000, |z, u| if u > 1.4 { 40.0 * z } else { z })];
        let learned = NoiseCalibration::learn(&blocks, 0.0);
        let corrected = learned.with_coverage_of(&blocks);
        let rows = TargetDeviations::new(&blocks[0]).expect("Normal predictions");
        let coverage = |calibration| rows.covered(calibration) / 10_000.0;
        let (before, after) = (coverage(learned), coverage(corrected));
        assert!((before - 0.9).abs() > 0.02, "{before}");
        assert!((after - 0.9).abs() < 0.02, "{after}");
    }

    /// All rows are covered although no standard deviation can fall below the floor.
    #[test]
    fn scales_at_the_floor_are_left_alone() {
        let mut blocks = [held_out(500, |z, _| 1e-3 * z)];
        let calibration = NoiseCalibration::learn(&blocks, 1.0).with_coverage_of(&blocks);
        calibration.apply(&mut blocks[0].block);
        assert!(blocks[0].block.normal().sd.iter().all(|&sd| sd >= 1.0));
    }

    #[test]
    fn a_rescaled_calibration_can_be_stored() {
        let calibration = NoiseCalibration {
            scale: 2.0,
            tail: 0.3,
            floor: 1e-3,
        };
        assert!((calibration.rescaled(0.25).scale - 0.5).abs() < 1e-12);
        assert!(SCALES.contains(&calibration.rescaled(1e-40).scale));
        let unchanged = NoiseCalibration::IDENTITY;
        assert_eq!(unchanged.rescaled(3.0), unchanged);
    }

    #[test]
    fn averaging_reduces_a_residual_by_the_error_of_a_single_model() {
        let found = [
            (1.0, 0.0, 1, 10),
            (1.0, 1.0, 1, 1),
            (3.0, 1.0, 1, 2),
            (3.0, 2.0, 2, 4),
        ]
        .map(|(noise, between, n_left_out, n)| {
            ensemble_residual_factor(noise, between, (n_left_out, n))
        });
        let expected = [1.0, 1.0, 0.875_f64.sqrt(), 0.875_f64.sqrt()];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn few_rows_change_little() {
        let few = NoiseCalibration::learn(&[held_out(5, |z, _| 0.3 * z)], 0.0);
        let many = NoiseCalibration::learn(&[held_out(500, |z, _| 0.3 * z)], 0.0);
        assert!(
            few.scale > 0.7 && few.scale < 1.0 && many.scale < 0.35,
            "{few:?} {many:?}"
        );
    }

    #[test]
    fn weights_count_as_repeated_rows() {
        let once = held_out(40, |z, _| 0.5 * z);
        let mut weighted = held_out(40, |z, _| 0.5 * z);
        weighted.weight.fill(3.0);
        let repeated = [0, 1, 2].map(|_| held_out(40, |z, _| 0.5 * z));
        let expected = NoiseCalibration::learn(&repeated, 0.0);
        let found = NoiseCalibration::learn(&[weighted], 0.0);
        assert!((found.scale - expected.scale).abs() < 1e-9);
        assert!((found.tail - expected.tail).abs() < 1e-9);
        assert!(found.scale < NoiseCalibration::learn(&[once], 0.0).scale);
    }

    #[test]
    fn the_mean_variance_is_multiplied_by_the_squared_scale() {
        for n_members in [1, 2, 7, 100] {
            let calibration = NoiseCalibration {
                scale: 0.8,
                tail: 1.2,
                floor: 0.0,
            };
            let factors = calibration.member_factors(n_members);
            let square = factors.iter().map(|factor| factor * factor).sum::<f64>();
            assert!(
                (square / n_members as f64 - 0.64).abs() < 1e-12,
                "{n_members}"
            );
        }
    }

    /// The members of every quarter of an ensemble have small and large factors.
    #[test]
    fn the_parts_of_an_ensemble_have_similar_factors() {
        let calibration = NoiseCalibration {
            scale: 1.0,
            tail: 1.0,
            floor: 0.0,
        };
        let factors = calibration.member_factors(100);
        for part in factors.chunks_exact(25) {
            let mean = part.iter().map(|factor| factor.ln()).sum::<f64>() / 25.0;
            let all = factors.iter().map(|factor| factor.ln()).sum::<f64>() / 100.0;
            assert!((mean - all).abs() < 0.2, "{mean} {all}");
        }
    }

    #[test]
    fn no_standard_deviation_falls_below_the_floor() {
        let mut block = held_out(3, |z, _| z).block;
        let at = block.at(1, 0);
        block.normal_mut().sd[at] = 0.1;
        let calibration = NoiseCalibration {
            scale: 0.3,
            tail: 0.0,
            floor: 0.5,
        };
        calibration.apply(&mut block);
        assert_eq!(block.normal().sd[0].to_bits(), 0.5_f64.to_bits());
        // one that was below the floor stays
        assert_eq!(block.normal().sd[at].to_bits(), 0.1_f64.to_bits());
    }

    #[test]
    fn records_keep_the_calibration_and_may_lack_it() {
        let record = |meta: Value| Record {
            family: "vst".to_owned(),
            meta,
            arrays: Vec::new(),
        };
        let calibration = NoiseCalibration {
            scale: 0.8,
            tail: 0.3,
            floor: 1e-3,
        };
        let mut meta = json!({});
        NoiseCalibration::IDENTITY.write(&mut meta);
        assert_eq!(meta, json!({}));
        let read = NoiseCalibration::from_record(&record(meta.clone()));
        assert_eq!(read.ok(), Some(NoiseCalibration::IDENTITY));
        calibration.write(&mut meta);
        let read = NoiseCalibration::from_record(&record(meta.clone()));
        assert_eq!(read.ok(), Some(calibration));
        meta[STORED_NAME]["scale"] = json!(-1.0);
        assert!(NoiseCalibration::from_record(&record(meta)).is_err());
    }
}
