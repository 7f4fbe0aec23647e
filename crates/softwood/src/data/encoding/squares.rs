//! Squared inputs: quadratic terms of the numeric inputs.

use serde::{Deserialize, Serialize};

use crate::data::encoding::LIMIT;

/// Inputs are clamped to this many standard deviations before squaring; otherwise an outlier
/// outweighs all other rows.
const SQUARE_LIMIT: f64 = 4.0;
/// Smallest standard deviation of the nonlinear part of a square; a column of two values has none.
const MIN_NONLINEAR_SD: f64 = 1e-4;

/// Largest coefficient that is accepted from a file.
const MAX_COEFFICIENT: f64 = 1e30;

/// The square of a numeric input `x` minus its linear regression on `x`:
/// `(x^2 - slope x - shift) / scale`.
///
/// Correlated inputs make gradient descent slow, and `x` is an input already. Outside the training
/// range the square is constant, because the curve is unknown there; `x` itself is not clamped.
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
    /// `None` if the square is a linear function of the input.
    pub(super) fn fit(input: usize, values: &[f64], weights: &[f64]) -> Option<Self> {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = (min.max(-SQUARE_LIMIT), max.min(SQUARE_LIMIT));
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
        let is_curved = slope.is_finite() && scale > MIN_NONLINEAR_SD;
        is_curved.then_some(Self {
            input,
            low,
            high,
            slope,
            shift,
            scale,
        })
    }

    /// Whether the square is finite for every input; one that was read from a file may not be.
    pub(super) fn is_sound(&self) -> bool {
        -LIMIT <= self.low
            && self.low <= self.high
            && self.high <= LIMIT
            && self.slope.abs() <= MAX_COEFFICIENT
            && self.shift.abs() <= MAX_COEFFICIENT
            && (1.0 / MAX_COEFFICIENT..=MAX_COEFFICIENT).contains(&self.scale)
    }

    pub(super) fn apply(&self, x: f64) -> f64 {
        let x = x.clamp(self.low, self.high);
        ((x * x - self.slope * x - self.shift) / self.scale).clamp(-LIMIT, LIMIT)
    }
}
