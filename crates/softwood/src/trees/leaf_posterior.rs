//! Distribution of a leaf, smoothed by pseudo-rows, and posterior draws of its parameters.
//!
//! Regression: a leaf of weight `n` with sum of squared deviations `S` has the variance `v = f (S +
//! k s^2) / (n + k)`. Here `s^2` is the mean squared error on rows that the tree was not grown on,
//! `k` is the number of pseudo-rows with this variance that are added to each leaf, and the factor
//! `f` corrects for the fact that the splits were selected on the same rows. The posterior variance
//! of the leaf mean is `v / n`. The standard deviations of the members differ by factors with the
//! spread `t` ([`NoiseCalibration`]), so that the noise may have heavier tails than a Normal
//! distribution; `f` and `t` suit the left-out rows. Classification: the posterior of the class probabilities is a
//! Dirichlet distribution with the counts `n_c + k p_c`, where `p` are the overall class
//! frequencies.

use serde::{Deserialize, Serialize};

use crate::data::target::TargetUnits;
use crate::likelihood::normal::log_density_of_square;
use crate::numerics::gamma::gamma;
use crate::numerics::normal::rough_quantile;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{HeldOutBlock, NoiseCalibration, scaled_above_floor};
use crate::rng::{Key, shuffle};
use crate::store::range::{FLOORS, TAILS};
use crate::trees::cart::{CartTarget, MAX_CLASSES};

/// Pseudo-rows that are added to each leaf, and the correction of its variance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Smoothing {
    /// Number of pseudo-rows.
    #[serde(rename = "rows")]
    pub(crate) n_pseudo_rows: f64,
    /// Variance of the pseudo-rows (one value), or their class frequencies.
    #[serde(rename = "whole")]
    pub(crate) prior: Vec<f64>,
    /// Factor of the variance.
    pub(crate) factor: f64,
    /// Smallest variance.
    pub(crate) floor: f64,
    /// Standard deviation of the logarithms of the members' standard deviations; 0 in files of the first
    /// versions.
    #[serde(default)]
    pub(crate) tail: f64,
}

/// Numbers of pseudo-rows that are compared.
const N_PSEUDO_ROWS: [f64; 10] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0];
/// Number of pseudo-rows without left-out rows.
const DEFAULT_PSEUDO_ROWS: f64 = 4.0;
/// Largest number of left-out rows, and of members, that the noise is calibrated with.
const MAX_CALIBRATION_ROWS: usize = 1000;
const MAX_CALIBRATION_MEMBERS: usize = 32;
/// Iterations that match the mean of the drawn probabilities to the probabilities of the leaf.
const MATCHING_STEPS: usize = 30;
/// Smallest Gamma draw.
const MIN_DRAW: f64 = 1e-12;

/// Largest number that is accepted from a file: far above the result of any fit, far from overflow.
const MAX_STORED: f64 = 1e60;
/// Largest difference of the sum of class frequencies in a file from 1.
const MAX_FREQUENCY_ERROR: f64 = 1e-6;
/// Largest number of members: the bound of the parameter.
const MAX_MEMBERS: usize = 1000;

/// A row that the tree was not grown on: of a left-out fold, or of the validation set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeftOutRow<'a> {
    /// Statistics of its leaf in the tree.
    pub(crate) stats: &'a [f64],
    /// Standardized target, or class code.
    pub(crate) target: f32,
    pub(crate) weight: f64,
}

impl LeftOutRow<'_> {
    /// Squared residual of a regression.
    fn square(&self) -> f64 {
        (f64::from(self.target) - self.stats[1]).powi(2)
    }
}

/// Left-out rows of a regression, at most [`MAX_CALIBRATION_ROWS`]; none of a classification, whose
/// noise is not calibrated.
#[derive(Debug, Default)]
pub(crate) struct HeldOutLeaves {
    /// Statistics of the leaf of each row.
    stats: Vec<[f64; 3]>,
    target: Vec<f64>,
    weight: Vec<f64>,
}

impl HeldOutLeaves {
    pub(crate) fn new(kind: CartTarget, rows: &[LeftOutRow<'_>]) -> Self {
        let mut chosen = Self::default();
        if kind != CartTarget::Number {
            return chosen;
        }
        let n = rows.len().min(MAX_CALIBRATION_ROWS);
        for row in (0..n).map(|at| &rows[at * rows.len() / n]) {
            chosen
                .stats
                .push([row.stats[0], row.stats[1], row.stats[2]]);
            chosen.target.push(f64::from(row.target));
            chosen.weight.push(row.weight);
        }
        chosen
    }
}

impl Smoothing {
    /// Smoothing without left-out rows; `root` has the statistics of all rows.
    pub(crate) fn plain(kind: CartTarget, root: &[f64], floor: f64) -> Self {
        let prior = match kind {
            CartTarget::Number => vec![(root[2] / root[0]).max(floor * floor)],
            CartTarget::Classes(n) => {
                let total = kind.weight(root) + 0.5 * n as f64;
                root.iter().map(|weight| (weight + 0.5) / total).collect()
            }
        };
        Self {
            n_pseudo_rows: DEFAULT_PSEUDO_ROWS,
            prior,
            factor: 1.0,
            floor: floor * floor,
            tail: 0.0,
        }
    }

    /// The smoothing with the largest likelihood of the left-out rows.
    pub(crate) fn fit(&self, kind: CartTarget, rows: &[LeftOutRow<'_>]) -> Self {
        let total: f64 = rows.iter().map(|row| row.weight).sum();
        let mean = |value: &dyn Fn(&LeftOutRow<'_>) -> f64| {
            rows.iter().map(|row| row.weight * value(row)).sum::<f64>() / total
        };
        let mut prior = self.prior.clone();
        if kind == CartTarget::Number {
            let noise = mean(&|row| row.square());
            prior = vec![noise.max(self.floor)];
        }
        let candidates = N_PSEUDO_ROWS.into_iter().map(|n_pseudo_rows| {
            let mut candidate = Self {
                n_pseudo_rows,
                prior: prior.clone(),
                factor: 1.0,
                ..self.clone()
            };
            if kind == CartTarget::Number {
                candidate.factor =
                    mean(&|row| row.square() / candidate.predictive_variance(row.stats));
                candidate.factor = candidate.factor.clamp(1e-6, 1e12);
            }
            let score = mean(&|row| candidate.log_density(kind, row.stats, row.target));
            (candidate, score)
        });
        let (best, _) = candidates
            .reduce(|best, other| if other.1 > best.1 { other } else { best })
            .expect("the list of candidates is not empty");
        best
    }

    /// The smoothing of a model with `n_members` members whose noise has the scale and the tail of left-out
    /// rows. The scale multiplies the variance of a new row as a whole, as the factor does.
    pub(crate) fn calibrated(self, rows: &HeldOutLeaves, n_members: usize) -> Self {
        let n_members = n_members.min(MAX_CALIBRATION_MEMBERS);
        let n_rows = rows.target.len();
        let mut block = Block::new(Head::Normal { components: 1 }, n_members, n_rows);
        block.weight.fill(1.0);
        for (row, stats) in rows.stats.iter().enumerate() {
            let sd = self.predictive_variance(stats).sqrt();
            for member in 0..n_members {
                let at = block.at(member, 0) + row;
                let normal = block.normal_mut();
                (normal.mean[at], normal.sd[at]) = (stats[1], sd);
            }
        }
        let held_out = [HeldOutBlock {
            block,
            added: Vec::new(),
            target: rows.target.clone(),
            weight: rows.weight.clone(),
        }];
        let found = NoiseCalibration::learn(&held_out, self.floor.sqrt());
        let found = found.with_coverage_of(&held_out);
        Self {
            factor: self.factor * found.scale * found.scale,
            tail: found.tail,
            ..self
        }
    }

    /// Variance of the target in a leaf.
    pub(crate) fn variance(&self, stats: &[f64]) -> f64 {
        let k = self.n_pseudo_rows;
        let pooled = (stats[2] + k * self.prior[0]) / (stats[0] + k);
        (self.factor * pooled).max(self.floor)
    }

    /// Variance of a new row: the variance of the leaf and the posterior variance of its mean.
    fn predictive_variance(&self, stats: &[f64]) -> f64 {
        self.variance(stats) * (1.0 + 1.0 / stats[0].max(1.0))
    }

    /// Probability of a class in a leaf.
    pub(crate) fn probability(&self, stats: &[f64], class: usize) -> f64 {
        let total: f64 = stats.iter().sum();
        let k = self.n_pseudo_rows;
        (stats[class] + k * self.prior[class]) / (total + k)
    }

    /// Log-likelihood of a new row in a leaf.
    pub(crate) fn log_density(&self, kind: CartTarget, stats: &[f64], y: f32) -> f64 {
        match kind {
            CartTarget::Number => {
                let variance = self.predictive_variance(stats);
                let square = (f64::from(y) - stats[1]).powi(2);
                log_density_of_square(square, variance)
            }
            CartTarget::Classes(_) => self.probability(stats, y as usize).ln(),
        }
    }

    /// Whether the values of a file are possible for this kind of target.
    fn is_valid(&self, kind: CartTarget) -> bool {
        let n = match kind {
            CartTarget::Number => 1,
            CartTarget::Classes(n) => n,
        };
        let is_positive = |value: f64| value > 0.0 && value <= MAX_STORED;
        let total: f64 = self.prior.iter().sum();
        self.prior.len() == n
            && (kind == CartTarget::Number || (total - 1.0).abs() <= MAX_FREQUENCY_ERROR)
            && self.prior.iter().copied().all(is_positive)
            && is_positive(self.n_pseudo_rows)
            && is_positive(self.factor)
            && TAILS.contains(&self.tail)
            && FLOORS.contains(&self.floor.sqrt())
    }

    /// Posterior draws of the mean of a leaf, one per member: Normal quantiles in random order, so
    /// that their mean and variance are exact.
    fn draw_means(&self, stats: &[f64], n_members: usize, key: Key) -> Vec<f64> {
        if n_members == 1 {
            return vec![stats[1]];
        }
        let level = |at: usize| (at as f64 + 0.5) / n_members as f64;
        let mut scores: Vec<f64> = (0..n_members).map(|at| rough_quantile(level(at))).collect();
        let mean = scores.iter().sum::<f64>() / n_members as f64;
        for score in &mut scores {
            *score -= mean;
        }
        let square: f64 = scores.iter().map(|z| z * z).sum::<f64>() / n_members as f64;
        let sd = (self.variance(stats) / stats[0].max(1.0) / square).sqrt();
        shuffle(&mut key.rng(), &mut scores);
        scores.iter().map(|z| stats[1] + sd * z).collect()
    }

    /// Posterior draws of the class probabilities of a leaf, members x classes: Dirichlet draws,
    /// adjusted so that their mean is the probability of the leaf.
    fn draw_classes(&self, stats: &[f64], n_members: usize, key: Key) -> Vec<f64> {
        let n = stats.len();
        let center: Vec<f64> = (0..n).map(|class| self.probability(stats, class)).collect();
        if n_members == 1 {
            return center;
        }
        let mut rng = key.rng();
        let counts: Vec<f64> = stats
            .iter()
            .zip(&self.prior)
            .map(|(weight, frequency)| weight + self.n_pseudo_rows * frequency)
            .collect();
        let mut draws = vec![0.0; n_members * n];
        for (draw, class) in draws.iter_mut().zip((0..n).cycle()) {
            // a damaged file may have a count that is not a number; the draw is then the center
            *draw = gamma(counts[class], &mut rng)
                .unwrap_or(center[class])
                .max(MIN_DRAW);
        }
        for _ in 0..MATCHING_STEPS {
            let mut mean = vec![0.0; n];
            for member in draws.chunks_exact_mut(n) {
                let total: f64 = member.iter().sum();
                for (draw, mean) in member.iter_mut().zip(&mut mean) {
                    *draw /= total;
                    *mean += *draw / n_members as f64;
                }
            }
            for member in draws.chunks_exact_mut(n) {
                for (class, draw) in member.iter_mut().enumerate() {
                    *draw *= center[class] / mean[class];
                }
            }
        }
        for member in draws.chunks_exact_mut(n) {
            let total: f64 = member.iter().sum();
            for draw in member {
                // rounded to single precision, so that probabilities that should be equal are equal
                *draw = f64::from((*draw / total) as f32);
            }
        }
        draws
    }
}

/// The leaves of a tree: statistics and the smoothing that makes distributions of them.
#[derive(Debug, Clone)]
pub(crate) struct SmoothedLeaves {
    pub(crate) kind: CartTarget,
    /// Leaves x statistics.
    pub(crate) stats: Vec<f64>,
    pub(crate) smoothing: Smoothing,
    /// Key of the posterior draws.
    pub(crate) key: Key,
}

impl SmoothedLeaves {
    /// Whether the values of a file are possible for `n_members` members and these units of the
    /// target.
    pub(crate) fn is_valid(&self, n_members: usize, units: &TargetUnits) -> bool {
        let kind = self.kind;
        let are_stats = |stats: &[f64]| match kind {
            CartTarget::Number => {
                let end = stats[1].abs() + (stats[2] / stats[0]).sqrt();
                let farthest = units.shift.abs() + units.scale * end;
                stats[0] > 0.0 && stats[2] >= 0.0 && farthest.is_finite()
            }
            CartTarget::Classes(_) => stats.iter().all(|&weight| weight >= 0.0),
        };
        let n_values = match kind {
            CartTarget::Number => n_members,
            CartTarget::Classes(n) => n_members.saturating_mul(n),
        };
        kind != CartTarget::Classes(0)
            && kind.n_stats() <= MAX_CLASSES
            && self.stats.iter().all(|value| value.abs() <= MAX_STORED)
            && self.stats.chunks_exact(kind.n_stats()).all(are_stats)
            && self.smoothing.is_valid(kind)
            && (1..=MAX_MEMBERS).contains(&n_members)
            && n_values <= MAX_MEMBERS * MAX_CLASSES
    }
}

/// The members of a tree: posterior draws of the parameters of every leaf.
#[derive(Debug, Clone)]
pub(crate) struct LeafDraws {
    kind: CartTarget,
    n_members: usize,
    /// Means (leaves x members), or probabilities (leaves x members x classes).
    draws: Vec<f64>,
    /// Standard deviation of each leaf; empty for classification.
    sd: Vec<f64>,
    /// Factor of the standard deviation of each member, and the floor of the product.
    factors: Vec<f64>,
    floor: f64,
}

impl LeafDraws {
    pub(crate) fn new(leaves: &SmoothedLeaves, n_members: usize) -> Self {
        let (kind, smoothing) = (leaves.kind, &leaves.smoothing);
        let (mut draws, mut sd) = (Vec::new(), Vec::new());
        for (leaf, stats) in leaves.stats.chunks_exact(kind.n_stats()).enumerate() {
            let key = leaves.key.child(leaf as u64);
            match kind {
                CartTarget::Number => {
                    draws.extend(smoothing.draw_means(stats, n_members, key));
                    sd.push(smoothing.variance(stats).sqrt());
                }
                CartTarget::Classes(_) => {
                    draws.extend(smoothing.draw_classes(stats, n_members, key));
                }
            }
        }
        let noise = NoiseCalibration {
            tail: smoothing.tail,
            ..NoiseCalibration::IDENTITY
        };
        Self {
            kind,
            n_members,
            draws,
            sd,
            factors: noise.member_factors(n_members),
            floor: smoothing.floor.sqrt(),
        }
    }

    /// Mean and standard deviation of a draw in a leaf.
    pub(crate) fn normal(&self, leaf: usize, draw: usize) -> (f64, f64) {
        let sd = scaled_above_floor(self.sd[leaf], self.factors[draw], self.floor);
        (self.draws[leaf * self.n_members + draw], sd)
    }

    /// Class probabilities of a draw in a leaf.
    pub(crate) fn probabilities(&self, leaf: usize, draw: usize) -> &[f64] {
        let CartTarget::Classes(n) = self.kind else {
            return &[];
        };
        &self.draws[(leaf * self.n_members + draw) * n..][..n]
    }

    /// Writes the distribution of a member in a leaf.
    pub(crate) fn fill(&self, out: &mut Block, member: usize, row: usize, leaf: usize) {
        self.fill_as(out, member, row, leaf, member);
    }

    /// As [`Self::fill`]; the member has the draw with the number `draw`.
    pub(crate) fn fill_as(
        &self,
        out: &mut Block,
        member: usize,
        row: usize,
        leaf: usize,
        draw: usize,
    ) {
        match self.kind {
            CartTarget::Number => {
                let at = out.at(member, 0) + row;
                out.weight[at] = 1.0;
                let normal = out.normal_mut();
                (normal.mean[at], normal.sd[at]) = self.normal(leaf, draw);
            }
            CartTarget::Classes(n) => {
                let from = (leaf * self.n_members + draw) * n;
                for (class, &p) in self.draws[from..from + n].iter().enumerate() {
                    let at = out.at(member, class) + row;
                    out.weight[at] = p;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian::Gaussian;
    use softwood_testkit::close;

    const N_ROWS: usize = 1000;

    fn plain() -> Smoothing {
        Smoothing::plain(CartTarget::Number, &[1e4, 0.0, 1e4], 1e-3)
    }

    /// The smoothing of a leaf with unit variance, for residuals that are functions of two Normal numbers.
    fn calibrated(residual: impl Fn(f64, f64) -> f64) -> Smoothing {
        let mut draws = vec![0.0; 2 * N_ROWS];
        Gaussian::new(Key::from_seed(7)).fill(&mut draws);
        let stats = [1e4, 0.0, 1e4];
        let rows: Vec<LeftOutRow<'_>> = draws
            .chunks_exact(2)
            .map(|pair| LeftOutRow {
                stats: &stats,
                target: residual(f64::from(pair[0]), f64::from(pair[1])) as f32,
                weight: 1.0,
            })
            .collect();
        let rows = HeldOutLeaves::new(CartTarget::Number, &rows);
        plain().calibrated(&rows, 20)
    }

    /// The standard error of the variance is 0.045 for 1000 rows; the test allows six.
    #[test]
    fn the_scale_is_that_of_left_out_rows() {
        for sd in [0.6, 1.0, 1.7] {
            let found = calibrated(|z, _| sd * z);
            let variance = found.variance(&[1e4, 0.0, 1e4]);
            assert!((variance / (sd * sd)).ln().abs() < 0.27, "{sd}: {found:?}");
            assert!(found.tail < 0.4, "{sd}: {found:?}");
        }
    }

    #[test]
    fn members_have_the_tails_of_left_out_rows_and_the_variance_of_the_leaf() {
        let found = calibrated(|z, u| z * u.exp());
        assert!(found.tail > 0.5, "{found:?}");
        let leaves = SmoothedLeaves {
            kind: CartTarget::Number,
            stats: vec![1e4, 0.0, 1e4],
            smoothing: found.clone(),
            key: Key::from_seed(2),
        };
        assert!(leaves.is_valid(
            20,
            &TargetUnits {
                shift: 0.0,
                scale: 1.0
            }
        ));
        let draws = LeafDraws::new(&leaves, 20);
        let square = (0..20)
            .map(|draw| draws.normal(0, draw).1.powi(2))
            .sum::<f64>()
            / 20.0;
        close(&[square], &[found.variance(&leaves.stats)], 1e-9);
    }

    #[test]
    fn classes_keep_their_smoothing() {
        let kind = CartTarget::Classes(3);
        let stats = [4.0, 2.0, 1.0];
        let row = LeftOutRow {
            stats: &stats,
            target: 1.0,
            weight: 1.0,
        };
        let smoothing = Smoothing::plain(kind, &stats, 1e-3);
        let rows = HeldOutLeaves::new(kind, &[row]);
        assert_eq!(smoothing.clone().calibrated(&rows, 10), smoothing);
    }
}
