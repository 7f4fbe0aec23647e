//! The distributions of the leaves while the network is trained: constants that are optimised
//! together with the network.

use crate::inference::radam::RectifiedAdam;
use crate::models::rnn_tree::params::LeafScale;
use crate::numerics::real::{LANES, Lanes, lanes_at};
use crate::recurrent::objective::LeafScores;
use crate::trees::cart::CartTarget;

/// Smallest and largest logarithm of the standard deviation of a leaf, in units of the standardised
/// target.
const LOG_SCALE_RANGE: [f32; 2] = [-7.0, 3.0];
/// `ln(2 pi) / 2`.
const HALF_LN_TWO_PI: f32 = 0.918_938_5;

/// Constants of the leaves.
#[derive(Debug, Clone)]
pub(super) struct LeafConstants {
    kind: CartTarget,
    n_leaves: usize,
    scale: LeafScale,
    /// Regression: means, then logarithms of the standard deviations. Classification: logits, classes
    /// x leaves.
    values: Vec<f32>,
    optimiser: RectifiedAdam,
}

impl LeafConstants {
    /// Leaves with these values: a mean for each leaf, or logits (classes x leaves).
    pub(super) fn new(
        kind: CartTarget,
        n_leaves: usize,
        scale: LeafScale,
        mut values: Vec<f32>,
    ) -> Self {
        if kind == CartTarget::Number {
            values.resize(2 * n_leaves, 0.0);
        }
        Self {
            kind,
            n_leaves,
            scale,
            optimiser: RectifiedAdam::new(values.len()),
            values,
        }
    }

    /// What the routes of a batch say about the leaves.
    pub(super) fn batch<'a>(&'a self, target: &'a [f32]) -> BatchLeaves<'a> {
        let n = self.n_leaves;
        let mut coefficients = vec![0.0; self.values.len().max(3 * n)];
        match self.kind {
            CartTarget::Number => {
                // log density = a + b y + c y^2
                for leaf in 0..n {
                    let (mean, log_scale) = (self.values[leaf], self.values[n + leaf]);
                    let half_precision = 0.5 * (-2.0 * log_scale).exp();
                    coefficients[leaf] = -half_precision * mean * mean - log_scale - HALF_LN_TWO_PI;
                    coefficients[n + leaf] = 2.0 * half_precision * mean;
                    coefficients[2 * n + leaf] = -half_precision;
                }
            }
            CartTarget::Classes(classes) => {
                for leaf in 0..n {
                    let logit = |class: usize| self.values[class * n + leaf];
                    let largest = (0..classes).map(logit).fold(f32::MIN, f32::max);
                    let total: f32 = (0..classes)
                        .map(|class| (logit(class) - largest).exp())
                        .sum();
                    for class in 0..classes {
                        coefficients[class * n + leaf] = logit(class) - largest - total.ln();
                    }
                }
            }
        }
        let n_sums = match self.kind {
            CartTarget::Number => 3,
            CartTarget::Classes(classes) => classes,
        };
        BatchLeaves {
            kind: self.kind,
            n_leaves: n,
            target,
            coefficients,
            sums: vec![0.0; n_sums * n],
            lane_sums: vec![
                Lanes::of(0.0);
                if self.kind == CartTarget::Number {
                    3 * n
                } else {
                    0
                }
            ],
        }
    }

    /// One step along the gradient of a batch with this total weight.
    pub(super) fn ascend(&mut self, sums: &LeafSums, total: f64, learning_rate: f64) {
        let gradient = self.gradient(sums, total);
        self.optimiser
            .ascend(&mut self.values, &gradient, learning_rate);
        if self.kind == CartTarget::Number {
            let [low, high] = LOG_SCALE_RANGE;
            for log_scale in &mut self.values[self.n_leaves..] {
                *log_scale = log_scale.clamp(low, high);
            }
        }
    }

    /// Gradient of the mean log density.
    fn gradient(&self, sums: &LeafSums, total: f64) -> Vec<f32> {
        let n = self.n_leaves;
        let mut gradient = vec![0.0; self.values.len()];
        match self.kind {
            CartTarget::Number => {
                for leaf in 0..n {
                    let (mean, log_scale) = (f64::from(self.values[leaf]), self.values[n + leaf]);
                    let precision = (-2.0 * f64::from(log_scale)).exp();
                    let [s0, s1, s2] = [0, 1, 2].map(|sum| sums.0[sum * n + leaf]);
                    gradient[leaf] = (precision * (s1 - mean * s0) / total) as f32;
                    let square = s2 - 2.0 * mean * s1 + mean * mean * s0;
                    gradient[n + leaf] = ((precision * square - s0) / total) as f32;
                }
                let scales = &mut gradient[n..];
                match self.scale {
                    LeafScale::Shared => {
                        let sum: f32 = scales.iter().sum();
                        scales.fill(sum);
                    }
                    LeafScale::Leaf => {}
                    LeafScale::Unit => scales.fill(0.0),
                }
            }
            CartTarget::Classes(classes) => {
                for leaf in 0..n {
                    let logit = |class: usize| f64::from(self.values[class * n + leaf]);
                    let largest = (0..classes).map(logit).fold(f64::MIN, f64::max);
                    let exp = |class: usize| (logit(class) - largest).exp();
                    let normaliser: f64 = (0..classes).map(exp).sum();
                    let weight: f64 = (0..classes).map(|class| sums.0[class * n + leaf]).sum();
                    for class in 0..classes {
                        let at = class * n + leaf;
                        let expected = weight * exp(class) / normaliser;
                        gradient[at] = ((sums.0[at] - expected) / total) as f32;
                    }
                }
            }
        }
        gradient
    }
}

/// Sums over the rows of a batch, weighted by leaf probability: regression 1, y and y^2; else one per
/// class; sums x leaves.
#[derive(Debug)]
pub(super) struct LeafSums(Vec<f64>);

/// Scores of the leaves for the rows of a batch.
#[derive(Debug)]
pub(super) struct BatchLeaves<'a> {
    kind: CartTarget,
    n_leaves: usize,
    target: &'a [f32],
    coefficients: Vec<f32>,
    sums: Vec<f64>,
    lane_sums: Vec<Lanes<f32>>,
}

impl BatchLeaves<'_> {
    pub(super) fn finished(mut self) -> LeafSums {
        for (sum, lanes) in self.sums.iter_mut().zip(&self.lane_sums) {
            *sum += lanes.iter().map(|&value| f64::from(value)).sum::<f64>();
        }
        LeafSums(self.sums)
    }
}

impl LeafScores<f32> for BatchLeaves<'_> {
    #[inline(always)]
    fn scores(&self, at: usize, out: &mut [Lanes<f32>]) {
        let n = self.n_leaves;
        if self.kind == CartTarget::Number {
            let y = lanes_at(self.target, at);
            let (a, rest) = self.coefficients.split_at(n);
            let (b, c) = rest.split_at(n);
            for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
                for lane in 0..LANES {
                    out[lane] = c.mul_add(y[lane], b).mul_add(y[lane], a);
                }
            }
            return;
        }
        for lane in 0..LANES {
            let class = self.target[at + lane] as usize;
            let log_p = &self.coefficients[class * n..(class + 1) * n];
            for (out, &log_p) in out.iter_mut().zip(log_p) {
                out[lane] = log_p;
            }
        }
    }

    #[inline(always)]
    fn observe(&mut self, at: usize, probability: &[Lanes<f32>]) {
        let n = self.n_leaves;
        if self.kind == CartTarget::Number {
            let y = lanes_at(self.target, at);
            let (zero, rest) = self.lane_sums.split_at_mut(n);
            let (one, two) = rest.split_at_mut(n);
            for (((p, s0), s1), s2) in probability.iter().zip(zero).zip(one).zip(two) {
                for lane in 0..LANES {
                    let py = p[lane] * y[lane];
                    s0[lane] += p[lane];
                    s1[lane] += py;
                    s2[lane] = py.mul_add(y[lane], s2[lane]);
                }
            }
            return;
        }
        for lane in 0..LANES {
            let class = self.target[at + lane] as usize;
            let sums = &mut self.sums[class * n..(class + 1) * n];
            for (sum, p) in sums.iter_mut().zip(probability) {
                *sum += f64::from(p[lane]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;

    const N_LEAVES: usize = 4;

    /// Leaf probabilities of one chunk of rows, and the gradient of the mean log density.
    fn check(kind: CartTarget, scale: LeafScale, target: &[f32], values: Vec<f32>) {
        let mut leaves = LeafConstants::new(kind, N_LEAVES, scale, values);
        let draws = Key::from_seed(6).uniforms(N_LEAVES * LANES);
        let probability: Vec<Lanes<f32>> = (0..N_LEAVES)
            .map(|leaf| {
                Lanes(std::array::from_fn(|lane| {
                    draws[leaf * LANES + lane] as f32
                }))
            })
            .collect();
        let value = |leaves: &LeafConstants| -> f64 {
            let mut scores = vec![Lanes::of(0.0); N_LEAVES];
            leaves.batch(target).scores(0, &mut scores);
            let terms = scores.iter().zip(&probability);
            let sum = terms.flat_map(|(score, p)| score.iter().zip(p.iter()));
            sum.map(|(&score, &p)| f64::from(score) * f64::from(p))
                .sum()
        };
        let mut batch = leaves.batch(target);
        batch.observe(0, &probability);
        let gradient = leaves.gradient(&batch.finished(), 1.0);
        for at in 0..gradient.len() {
            let given = leaves.values[at];
            let mut shifted = |step: f32| {
                leaves.values[at] = given + step;
                let shifted = value(&leaves);
                leaves.values[at] = given;
                shifted
            };
            let difference = (shifted(0.01) - shifted(-0.01)) / 0.02;
            let error = (f64::from(gradient[at]) - difference).abs();
            assert!(
                error < 0.01 * (1.0 + difference.abs()),
                "{at}: {difference}"
            );
        }
    }

    #[test]
    fn gradients_of_leaf_constants_agree_with_central_differences() {
        let numbers: Vec<f32> = (0..LANES).map(|row| row as f32 / 8.0 - 1.0).collect();
        let means = vec![-0.5, 0.1, 0.4, 1.2];
        check(CartTarget::Number, LeafScale::Leaf, &numbers, means);
        let classes: Vec<f32> = (0..LANES).map(|row| (row % 3) as f32).collect();
        let logits = (0..3 * N_LEAVES).map(|at| (at % 5) as f32 / 3.0).collect();
        check(CartTarget::Classes(3), LeafScale::Shared, &classes, logits);
    }
}
