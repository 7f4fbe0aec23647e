//! Squares of numeric inputs.

use serde::{Deserialize, Serialize};

use crate::data::encoding::LIMIT;

/// Squares are taken of inputs within this many standard deviations: an outlier would outweigh all other rows.
const SQUARE_LIMIT: f64 = 4.0;
/// Least standard deviation of a square's part that is not linear; a column of two values has none.
const MIN_CURVE: f64 = 1e-4;

/// The square of a numeric input `x`, without what is linear in it: `(x^2 - slope x - shift) / scale`.
///
/// Inputs that follow each other closely make poor gradients, and `x` is an input already. Beyond the training range
/// the square stays at its end: nothing is known of the curve there, and `x` itself goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SquaredInput {
    /// Index of the numeric input.
    pub(super) input: usize,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) slope: f64,
    pub(super) shift: f64,
    pub(super) scale: f64,
}

impl SquaredInput {
    /// `None` where the square is a linear function of the input.
    pub(super) fn fit(input: usize, values: &[f64], weights: &[f64]) -> Option<Self> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = (least.max(-SQUARE_LIMIT), most.min(SQUARE_LIMIT));
        if low >= high {
            return None;
        }
        let total: f64 = weights.iter().sum();
        let mean = |of: &dyn Fn(f64) -> f64| {
            let terms = values.iter().zip(weights);
            terms
                .map(|(x, weight)| weight * of(x.clamp(low, high)))
                .sum::<f64>()
                / total
        };
        let (first, second) = (mean(&|x| x), mean(&|x| x * x));
        let variance = mean(&|x| (x - first) * (x - first));
        let slope = mean(&|x| (x - first) * (x * x - second)) / variance;
        let shift = second - slope * first;
        let scale = mean(&|x| (x * x - slope * x - shift).powi(2)).sqrt();
        let is_curved = slope.is_finite() && scale > MIN_CURVE;
        is_curved.then_some(Self {
            input,
            low,
            high,
            slope,
            shift,
            scale,
        })
    }

    /// Whether it can be applied to any number: one from a file may not be.
    pub(super) fn is_sound(&self) -> bool {
        -LIMIT <= self.low
            && self.low <= self.high
            && self.high <= LIMIT
            && self.slope.is_finite()
            && self.shift.is_finite()
            && self.scale > 0.0
            && self.scale.is_finite()
    }

    pub(super) fn apply(&self, x: f64) -> f64 {
        let x = x.clamp(self.low, self.high);
        ((x * x - self.slope * x - self.shift) / self.scale).clamp(-LIMIT, LIMIT)
    }
}
