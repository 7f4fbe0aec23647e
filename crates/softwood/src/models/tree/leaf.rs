//! What a leaf says of new rows: its law given the rows it holds, and draws of that law.
//!
//! Numbers: a leaf of weight `n` and squared deviations `S` has the variance `v = f (S + k s^2) / (n + k)`, `s^2` being the noise that
//! cross-validation found: `k` rows of the whole are added to each leaf, and `f` makes up for leaves that were chosen by what they
//! hold. Its mean is known up to the variance `v / n`. Classes: a Dirichlet law with counts `n_c + k p_c`, `p` being the shares of the whole.

use serde::{Deserialize, Serialize};

use crate::numerics::gamma::gamma;
use crate::numerics::normal::rough_quantile;
use crate::rng::{Key, shuffle};
use crate::trees::cart::CartTarget;

/// How leaves are smoothed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Smoothing {
    /// Rows of the whole that are added to each leaf.
    pub(super) rows: f64,
    /// Variance that they have; or their shares.
    pub(super) whole: Vec<f64>,
    /// Factor of the variance.
    pub(super) factor: f64,
    /// Least variance.
    pub(super) floor: f64,
}

/// Numbers of rows of the whole that are tried.
const ROWS: [f64; 10] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0];
/// Where nothing is left out to choose by.
const SAFE_ROWS: f64 = 4.0;
/// Rounds of matching the mean of the draws.
const ROUNDS: usize = 30;
/// Least number drawn from a Gamma law.
const MIN_DRAW: f64 = 1e-12;

/// Largest number that a file may hold: far beyond any that a fit gives, far from overflow.
pub(super) const MAX: f64 = 1e60;

/// A row that was left out: the stats of the leaf that it came to, its target and its weight.
pub(super) type LeftOut<'a> = (&'a [f64], f32, f64);

impl Smoothing {
    /// Without rows to choose by.
    pub(super) fn plain(kind: CartTarget, root: &[f64], floor: f64) -> Self {
        let whole = match kind {
            CartTarget::Number => vec![(root[2] / root[0]).max(floor * floor)],
            CartTarget::Classes(n) => {
                let total = kind.weight(root) + 0.5 * n as f64;
                root.iter().map(|weight| (weight + 0.5) / total).collect()
            }
        };
        Self {
            rows: SAFE_ROWS,
            whole,
            factor: 1.0,
            floor: floor * floor,
        }
    }

    /// The best for rows that were left out, and their mean log-likelihood.
    pub(super) fn fit(&self, kind: CartTarget, rows: &[LeftOut<'_>]) -> (Self, f64) {
        let total: f64 = rows.iter().map(|&(_, _, weight)| weight).sum();
        let mean = |of: &dyn Fn(&LeftOut<'_>) -> f64| {
            rows.iter().map(|row| row.2 * of(row)).sum::<f64>() / total
        };
        let mut whole = self.whole.clone();
        if kind == CartTarget::Number {
            let noise = mean(&|&(stats, y, _)| (f64::from(y) - stats[1]).powi(2));
            whole = vec![noise.max(self.floor)];
        }
        let tried = ROWS.into_iter().map(|rows| {
            let mut one = Self {
                rows,
                whole: whole.clone(),
                factor: 1.0,
                ..self.clone()
            };
            if kind == CartTarget::Number {
                one.factor = mean(&|&(stats, y, _)| {
                    (f64::from(y) - stats[1]).powi(2) / one.predictive_variance(stats)
                });
                one.factor = one.factor.clamp(1e-6, 1e12);
            }
            let score = mean(&|&(stats, y, _)| one.log_density(kind, stats, y));
            (one, score)
        });
        tried
            .reduce(|best, other| if other.1 > best.1 { other } else { best })
            .expect("there are numbers to try")
    }

    /// Variance of the rows of a leaf.
    pub(super) fn variance(&self, stats: &[f64]) -> f64 {
        let pooled = (stats[2] + self.rows * self.whole[0]) / (stats[0] + self.rows);
        (self.factor * pooled).max(self.floor)
    }

    /// Variance of a new row: that of the leaf and that of its mean.
    fn predictive_variance(&self, stats: &[f64]) -> f64 {
        self.variance(stats) * (1.0 + 1.0 / stats[0].max(1.0))
    }

    /// Probability of a class.
    pub(super) fn probability(&self, stats: &[f64], class: usize) -> f64 {
        let total: f64 = stats.iter().sum();
        (stats[class] + self.rows * self.whole[class]) / (total + self.rows)
    }

    pub(super) fn log_density(&self, kind: CartTarget, stats: &[f64], y: f32) -> f64 {
        match kind {
            CartTarget::Number => {
                let variance = self.predictive_variance(stats);
                let square = (f64::from(y) - stats[1]).powi(2);
                -0.5 * ((std::f64::consts::TAU * variance).ln() + square / variance)
            }
            CartTarget::Classes(_) => self.probability(stats, y as usize).ln(),
        }
    }

    /// Whether it can be read from a file for this kind.
    pub(super) fn is_sound(&self, kind: CartTarget) -> bool {
        let n = match kind {
            CartTarget::Number => 1,
            CartTarget::Classes(n) => n,
        };
        let positive = |value: f64| value > 0.0 && value <= MAX;
        self.whole.len() == n
            && self.whole.iter().copied().all(positive)
            && [self.rows, self.factor, self.floor]
                .into_iter()
                .all(positive)
    }

    /// Means of a leaf by member: normal quantiles in an order of the leaf's own, so that their mean and variance are exact.
    pub(super) fn draw_means(&self, stats: &[f64], n_members: usize, key: Key) -> Vec<f64> {
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

    /// Probabilities of a leaf, members x classes: draws of its Dirichlet law, moved so that their mean is the leaf's.
    pub(super) fn draw_classes(&self, stats: &[f64], n_members: usize, key: Key) -> Vec<f64> {
        let n = stats.len();
        let center: Vec<f64> = (0..n).map(|class| self.probability(stats, class)).collect();
        if n_members == 1 {
            return center;
        }
        let mut rng = key.rng();
        let counts: Vec<f64> = stats
            .iter()
            .zip(&self.whole)
            .map(|(weight, share)| weight + self.rows * share)
            .collect();
        let mut draws = vec![0.0; n_members * n];
        for (draw, class) in draws.iter_mut().zip((0..n).cycle()) {
            // a count that is no number at all (a damaged file) leaves the center
            *draw = gamma(counts[class], &mut rng)
                .unwrap_or(center[class])
                .max(MIN_DRAW);
        }
        for _ in 0..ROUNDS {
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
                // in single precision, probabilities that ought to be equal are, or differ by more than rounding
                *draw = f64::from((*draw / total) as f32);
            }
        }
        draws
    }
}
