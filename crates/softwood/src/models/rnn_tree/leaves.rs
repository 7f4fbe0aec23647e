//! The distributions of the leaves while the network is trained: constants that are optimised
//! together with the network.

use crate::inference::radam::RectifiedAdam;
use crate::likelihood::categorical::d_logit_of_sums;
use crate::likelihood::normal;
use crate::models::rnn_tree::params::LeafScale;
use crate::numerics::logspace::log_sum_exp;
use crate::numerics::real::{LANES, Lanes};
use crate::recurrent::objective::{BatchRows, LeafScores, RouteObjective, ScoreTerms};
use crate::trees::cart::CartTarget;

/// Smallest and largest logarithm of the standard deviation of a leaf, in units of the standardised
/// target.
const LOG_SCALE_RANGE: [f32; 2] = [-7.0, 3.0];
/// Largest number of classes whose scores are sums of products; for more it is faster to look up the
/// class of each row.
const MAX_TERMS: usize = 16;

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

    /// The objective of a batch and what its routes say about the leaves; adds the gradient of the
    /// network.
    pub(super) fn evaluate(
        &self,
        objective: &mut RouteObjective<f32>,
        weights: &[f32],
        rows: &BatchRows<'_, f32>,
        target: &[f32],
        gradient: &mut [f32],
    ) -> (f64, LeafSums) {
        if let CartTarget::Classes(classes) = self.kind
            && classes > MAX_TERMS
        {
            let mut scores = ClassScores::new(self.log_probabilities(classes), target);
            let value = objective.evaluate(weights, rows, &mut scores, gradient);
            return (value, LeafSums(scores.sums));
        }
        let BatchTerms {
            coefficients,
            values,
        } = self.terms(target);
        let terms = ScoreTerms {
            coefficients: &coefficients,
            values: &values,
        };
        let value = objective.evaluate_terms(weights, rows, terms, gradient);
        (value, self.sums(objective.term_sums()))
    }

    /// The log density of a row as a sum of products. Regression: terms 1, y and y^2. Classes: term 1,
    /// which has the log probability of the first class, and indicators of the other classes.
    fn terms(&self, target: &[f32]) -> BatchTerms {
        let n = self.n_leaves;
        match self.kind {
            CartTarget::Number => {
                let of_leaf = |leaf: usize| {
                    let [mean, log_scale] = self.normal(leaf);
                    normal::log_density_factors(mean, log_scale).map(|factor| factor as f32)
                };
                let squares = target.iter().map(|y| y * y);
                BatchTerms {
                    coefficients: (0..n).flat_map(of_leaf).collect(),
                    values: target.iter().copied().chain(squares).collect(),
                }
            }
            CartTarget::Classes(classes) => {
                let log_p = self.log_probabilities(classes);
                let mut coefficients = vec![0.0; n * classes];
                for (leaf, of_leaf) in coefficients.chunks_exact_mut(classes).enumerate() {
                    of_leaf[0] = log_p[leaf];
                    for (class, coefficient) in of_leaf.iter_mut().enumerate().skip(1) {
                        *coefficient = log_p[class * n + leaf] - log_p[leaf];
                    }
                }
                let of_class = |class: usize| {
                    let is_class = move |&y: &f32| f32::from(u8::from(y as usize == class));
                    target.iter().map(is_class)
                };
                BatchTerms {
                    coefficients,
                    values: (1..classes).flat_map(of_class).collect(),
                }
            }
        }
    }

    /// Mean and log standard deviation of a leaf.
    fn normal(&self, leaf: usize) -> [f64; 2] {
        [leaf, self.n_leaves + leaf].map(|at| f64::from(self.values[at]))
    }

    /// The sums of a batch, from those of its terms.
    fn sums(&self, of_terms: &[f64]) -> LeafSums {
        let mut sums = of_terms.to_vec();
        if matches!(self.kind, CartTarget::Classes(_)) {
            // the first term counts all rows
            let (first, others) = sums.split_at_mut(self.n_leaves);
            for of_class in others.chunks_exact(self.n_leaves) {
                for (first, other) in first.iter_mut().zip(of_class) {
                    *first -= other;
                }
            }
        }
        LeafSums(sums)
    }

    /// Log probabilities, classes x leaves.
    fn log_probabilities(&self, classes: usize) -> Vec<f32> {
        let n = self.n_leaves;
        let mut out = vec![0.0; classes * n];
        for leaf in 0..n {
            let logits = (0..classes).map(|class| f64::from(self.values[class * n + leaf]));
            let total = log_sum_exp(logits.clone());
            for (class, logit) in logits.enumerate() {
                out[class * n + leaf] = (logit - total) as f32;
            }
        }
        out
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
                    let [mean, log_scale] = self.normal(leaf);
                    let of_leaf = [0, 1, 2].map(|sum| sums.0[sum * n + leaf]);
                    let [d_mean, d_log_scale] = normal::gradient_of_sums(mean, log_scale, of_leaf);
                    gradient[leaf] = (d_mean / total) as f32;
                    gradient[n + leaf] = (d_log_scale / total) as f32;
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
                let log_p = self.log_probabilities(classes);
                for leaf in 0..n {
                    let weight: f64 = (0..classes).map(|class| sums.0[class * n + leaf]).sum();
                    for at in (0..classes).map(|class| class * n + leaf) {
                        let p = f64::from(log_p[at]).exp();
                        gradient[at] = (d_logit_of_sums(sums.0[at], weight, p) / total) as f32;
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

/// The scores of a batch as sums of products.
struct BatchTerms {
    /// Leaves x terms.
    coefficients: Vec<f32>,
    /// Terms without the first x rows.
    values: Vec<f32>,
}

/// Scores of the leaves for rows of many classes.
struct ClassScores<'a> {
    /// Row of `log_p` for each row of the batch.
    target: &'a [f32],
    /// Classes x leaves.
    log_p: Vec<f32>,
    sums: Vec<f64>,
}

impl<'a> ClassScores<'a> {
    fn new(log_p: Vec<f32>, target: &'a [f32]) -> Self {
        Self {
            target,
            sums: vec![0.0; log_p.len()],
            log_p,
        }
    }
}

impl LeafScores<f32> for ClassScores<'_> {
    #[inline(always)]
    fn scores(&self, at: usize, out: &mut [Lanes<f32>]) {
        let n = out.len();
        for lane in 0..LANES {
            let class = self.target[at + lane] as usize;
            let log_p = &self.log_p[class * n..(class + 1) * n];
            for (out, &log_p) in out.iter_mut().zip(log_p) {
                out[lane] = log_p;
            }
        }
    }

    #[inline(always)]
    fn observe(&mut self, at: usize, probability: &[Lanes<f32>]) {
        let n = probability.len();
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
            let BatchTerms {
                coefficients,
                values,
            } = leaves.terms(target);
            let n_terms = coefficients.len() / N_LEAVES;
            let score = |leaf: usize, row: usize| -> f64 {
                let of_leaf = &coefficients[leaf * n_terms..(leaf + 1) * n_terms];
                let others = of_leaf[1..].iter().enumerate();
                let products = others.map(|(term, c)| c * values[term * LANES + row]);
                f64::from(of_leaf[0] + products.sum::<f32>())
            };
            let leaves = probability.iter().enumerate();
            let rows = leaves.flat_map(|(leaf, p)| {
                let products = p.iter().enumerate();
                products.map(move |(row, &p)| (leaf, row, f64::from(p)))
            });
            rows.map(|(leaf, row, p)| p * score(leaf, row)).sum()
        };
        let values = leaves.terms(target).values;
        let mut sums = vec![0.0; N_LEAVES * (1 + values.len() / LANES)];
        for (at, sum) in sums.iter_mut().enumerate() {
            let (term, leaf) = (at / N_LEAVES, at % N_LEAVES);
            for (row, &p) in probability[leaf].iter().enumerate() {
                let value = match term {
                    0 => 1.0,
                    _ => values[(term - 1) * LANES + row],
                };
                *sum += f64::from(p * value);
            }
        }
        let gradient = leaves.gradient(&leaves.sums(&sums), 1.0);
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
