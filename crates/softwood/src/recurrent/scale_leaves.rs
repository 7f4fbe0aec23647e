//! Leaves that are scales of a noise: the score of a leaf with log scale `m` for a row with the
//! expected squared error `s` is `-m - s e^(-2m) / 2`, the expected Normal log density up to a
//! constant. And the probabilities of the leaves.

use crate::error::Result;
use crate::numerics::real::{LANES, Lanes, Real, lanes_at};
use crate::recurrent::objective::LeafScores;
use crate::reserve;

/// Scales of the leaves, the squared errors of a batch, and what the routes say about the leaves.
#[derive(Debug)]
pub(crate) struct ScaleLeaves<'a, T> {
    log_scales: &'a [T],
    squares: &'a [T],
    /// `e^(-2m) / 2` of each leaf.
    half_precision: Vec<T>,
    /// Sums over the rows of the probability of each leaf, and of that times the squared error.
    weight: Vec<Lanes<T>>,
    square: Vec<Lanes<T>>,
}

impl<'a, T: Real> ScaleLeaves<'a, T> {
    pub(crate) fn new(log_scales: &'a [T], squares: &'a [T]) -> Self {
        let zeros = || vec![Lanes::of(T::ZERO); log_scales.len()];
        Self {
            log_scales,
            squares,
            half_precision: log_scales.iter().map(|&m| half_precision(m)).collect(),
            weight: zeros(),
            square: zeros(),
        }
    }

    /// Gradient of the objective with respect to the log scales.
    pub(crate) fn gradient(&self) -> Vec<f64> {
        let sum = |lanes: &Lanes<T>| lanes.iter().map(|value| value.wide()).sum::<f64>();
        let terms = self.weight.iter().zip(&self.square);
        terms
            .zip(&self.half_precision)
            .map(|((weight, square), half)| 2.0 * half.wide() * sum(square) - sum(weight))
            .collect()
    }
}

fn half_precision<T: Real>(log_scale: T) -> T {
    T::of(0.5 * (-2.0 * log_scale.wide()).exp())
}

impl<T: Real> LeafScores<T> for ScaleLeaves<'_, T> {
    #[inline(always)]
    fn scores(&self, at: usize, out: &mut [Lanes<T>]) {
        let s = lanes_at(self.squares, at);
        let leaves = self.log_scales.iter().zip(&self.half_precision);
        for (out, (&m, &half)) in out.iter_mut().zip(leaves) {
            for lane in 0..LANES {
                out[lane] = -half.fma(s[lane], m);
            }
        }
    }

    #[inline(always)]
    fn observe(&mut self, at: usize, probability: &[Lanes<T>]) {
        let s = lanes_at(self.squares, at);
        let sums = self.weight.iter_mut().zip(&mut self.square);
        for (p, (weight, square)) in probability.iter().zip(sums) {
            for lane in 0..LANES {
                weight[lane] += p[lane];
                square[lane] = p[lane].fma(s[lane], square[lane]);
            }
        }
    }
}

/// The probabilities of all leaves for each row of a batch.
#[derive(Debug)]
pub(crate) struct RouteProbabilities<'a, T> {
    /// Weight of each row, which the routes are multiplied by.
    weight: &'a [T],
    n_leaves: usize,
    /// Rows x leaves; the same for all leaves in rows without weight.
    pub(crate) values: Vec<f64>,
}

impl<'a, T: Real> RouteProbabilities<'a, T> {
    /// Space for the probabilities of `n_leaves` leaves.
    ///
    /// # Errors
    /// When they do not fit into memory.
    pub(crate) fn new(n_leaves: usize, weight: &'a [T]) -> Result<Self> {
        let mut values = reserve::zeros(weight.len(), n_leaves)?;
        values.fill(1.0 / n_leaves as f64);
        Ok(Self {
            weight,
            n_leaves,
            values,
        })
    }
}

impl<T: Real> LeafScores<T> for RouteProbabilities<'_, T> {
    fn scores(&self, _: usize, out: &mut [Lanes<T>]) {
        out.fill(Lanes::of(T::ZERO));
    }

    fn observe(&mut self, at: usize, probability: &[Lanes<T>]) {
        for lane in 0..LANES {
            let (row, weight) = (at + lane, self.weight[at + lane].wide());
            let values = &mut self.values[row * self.n_leaves..(row + 1) * self.n_leaves];
            if weight > 0.0 {
                for (value, p) in values.iter_mut().zip(probability) {
                    *value = p[lane].wide() / weight;
                }
            }
        }
    }
}
