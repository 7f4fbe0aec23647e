//! Training of a split as published by Irsoy et al.: stochastic gradient descent row by row, with
//! momentum, a step size that decays after every row, and restarts with smaller and smaller steps.
//!
//! With the rest of the tree `c`, the reach `A` of the leaf, `g = sigmoid(w.x)`, the output is
//! `F = c + A ((1 - g) z_left + g z_right)`, and with `delta = F - y` (for classes the difference of
//! probabilities and indicators) the gradient is
//!
//! - `A (1 - g) delta` for `z_left`, `A g delta` for `z_right`
//! - `A g (1 - g) (z_right - z_left).delta x` for `w`

use crate::models::soft_tree::growing_tree::SplitWeights;
use crate::models::soft_tree::params::Variant;
use crate::numerics::logspace::softmax;
use crate::numerics::real::sigmoid;
use crate::rng::{Key, cycle};
use crate::stop::until_cancelled;
use crate::variational::encoded_rows::EncodedRows;

/// Number of restarts of a split; restart `t` has the step size `10 / 2^(t + 1)`.
pub(super) const N_RESTARTS: usize = 10;
const FIRST_STEP: f64 = 5.0;
/// Number of passes over the rows in one restart.
const N_EPOCHS: usize = 25;
/// Factor of the step size after every row.
const STEP_DECAY: f64 = 0.9999;
/// Fraction of the previous step that is added to a step.
const MOMENTUM: f64 = 0.1;
/// Weights beyond this size have diverged.
const MAX_WEIGHT: f64 = 1e6;

/// Settings in which the paper and the released program of its authors differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PublishedSettings {
    /// Weight of the split input in a new gate.
    pub(super) steepness: f32,
    /// Whether the restart is chosen by the validation error; otherwise by the training error.
    pub(super) chosen_on_validation: bool,
    /// Decrease of the validation error that a split must exceed.
    pub(super) min_decrease: f64,
}

impl PublishedSettings {
    /// The settings of a published variant; `None` for the extended one.
    pub(super) fn of(variant: Variant) -> Option<Self> {
        match variant {
            Variant::Extended => None,
            Variant::Paper => Some(Self {
                steepness: 1.0,
                chosen_on_validation: false,
                min_decrease: 0.0,
            }),
            Variant::Released => Some(Self {
                steepness: 0.5,
                chosen_on_validation: true,
                min_decrease: 1e-3,
            }),
        }
    }
}

/// Rows with their offsets at a leaf, for constant leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafRows<'a> {
    /// The offset of each row is that of `TreeOutput::offset_at`.
    pub(super) rows: &'a EncodedRows,
    pub(super) width: usize,
    pub(super) n_channels: usize,
    pub(super) is_classification: bool,
}

/// Weights of a split in double precision.
#[derive(Debug, Clone)]
struct SplitParameters {
    gate: Vec<f64>,
    /// Left and right leaf: `2 x channels`.
    leaves: Vec<f64>,
}

impl LeafRows<'_> {
    /// Trains a split with the step size of a restart; `None` if it diverges.
    pub(super) fn train(
        &self,
        start: &SplitWeights,
        restart: usize,
        key: Key,
    ) -> Option<SplitWeights> {
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect();
        let mut split = SplitParameters {
            gate: wide(&start.gate),
            leaves: wide(&start.leaves.concat()),
        };
        let mut step = SplitParameters {
            gate: vec![0.0; split.gate.len()],
            leaves: vec![0.0; split.leaves.len()],
        };
        let mut rate = FIRST_STEP / f64::from(1_u32 << restart);
        let mut delta = vec![0.0; self.n_channels];
        let visits = self.visits();
        for epoch in until_cancelled(0..N_EPOCHS) {
            let mut rng = key.child(epoch as u64).rng();
            for visit in cycle(&mut rng, visits.len()) {
                self.update(visits[visit], rate, &mut split, &mut step, &mut delta);
                rate *= STEP_DECAY;
            }
        }
        let is_sound = |values: &[f64]| values.iter().all(|value| value.abs() <= MAX_WEIGHT);
        if !(is_sound(&split.gate) && is_sound(&split.leaves)) {
            return None;
        }
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        let (left, right) = split.leaves.split_at(self.n_channels);
        Some(SplitWeights {
            gate: narrow(&split.gate),
            leaves: [narrow(left), narrow(right)],
        })
    }

    /// The rows of an epoch: as many as there are rows, in proportion to their weights. Rows of equal
    /// weight are visited once each. A step in proportion to the weight would diverge.
    fn visits(&self) -> Vec<usize> {
        let n_rows = self.rows.n_rows();
        let stride = self.rows.total_weight / n_rows as f64;
        let mut visits = Vec::with_capacity(n_rows);
        let mut cumulative = 0.0;
        for (row, &weight) in self.rows.weight.iter().enumerate() {
            cumulative += f64::from(weight);
            while visits.len() < n_rows && (visits.len() as f64 + 0.5) * stride <= cumulative {
                visits.push(row);
            }
        }
        visits
    }

    /// One step of gradient descent on a row.
    fn update(
        &self,
        row: usize,
        rate: f64,
        split: &mut SplitParameters,
        step: &mut SplitParameters,
        delta: &mut [f64],
    ) {
        let n_channels = self.n_channels;
        let x = &self.rows.inputs[row * self.width..(row + 1) * self.width];
        let offset = &self.rows.offset[row * (n_channels + 2)..(row + 1) * (n_channels + 2)];
        let reach = f64::from(offset[n_channels + 1]);
        let activation: f64 = (x.iter().zip(&split.gate))
            .map(|(&x, weight)| f64::from(x) * weight)
            .sum();
        let right = sigmoid(activation);
        let (left_leaf, right_leaf) = split.leaves.split_at(n_channels);
        for (channel, delta) in delta.iter_mut().enumerate() {
            let blended = left_leaf[channel] + right * (right_leaf[channel] - left_leaf[channel]);
            *delta = f64::from(offset[1 + channel]) + reach * blended;
        }
        self.subtract_target(row, delta);
        let scale = rate * reach;
        let difference: f64 = (delta.iter().zip(left_leaf.iter().zip(right_leaf)))
            .map(|(delta, (left, right))| delta * (right - left))
            .sum();
        let of_gate = scale * right * (1.0 - right) * difference;
        for ((weight, step), &x) in split.gate.iter_mut().zip(&mut step.gate).zip(x) {
            *step = of_gate * f64::from(x) + MOMENTUM * *step;
            *weight -= *step;
        }
        for (side, share) in [1.0 - right, right].into_iter().enumerate() {
            for (channel, delta) in delta.iter().enumerate() {
                let at = side * n_channels + channel;
                step.leaves[at] = scale * share * delta + MOMENTUM * step.leaves[at];
                split.leaves[at] -= step.leaves[at];
            }
        }
    }

    /// Turns outputs into the derivative of the loss with respect to them.
    fn subtract_target(&self, row: usize, outputs: &mut [f64]) {
        let target = self.rows.target[row];
        if self.is_classification {
            softmax(outputs, 1);
            outputs[target as usize] -= 1.0;
        } else {
            outputs[0] -= f64::from(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::{central_difference, close};
    use std::sync::Arc;

    /// Half the squared error of one row, or its negative log-likelihood, from the definition.
    fn loss(rows: &LeafRows<'_>, weights: &[f64]) -> f64 {
        let EncodedRows {
            inputs,
            offset,
            target,
            ..
        } = rows.rows;
        let (gate, leaves) = weights.split_at(rows.width);
        let activation: f64 = (inputs.iter().zip(gate))
            .map(|(&x, w)| f64::from(x) * w)
            .sum();
        let right = 1.0 / (1.0 + (-activation).exp());
        let k = rows.n_channels;
        let reach = f64::from(offset[k + 1]);
        let outputs: Vec<f64> = (0..k)
            .map(|at| {
                let blended = (1.0 - right) * leaves[at] + right * leaves[k + at];
                f64::from(offset[1 + at]) + reach * blended
            })
            .collect();
        if rows.is_classification {
            let total: f64 = outputs.iter().map(|output| output.exp()).sum();
            total.ln() - outputs[target[0] as usize]
        } else {
            0.5 * (outputs[0] - f64::from(target[0])).powi(2)
        }
    }

    #[test]
    fn rows_are_visited_in_proportion_to_their_weights() {
        let visits = |weight: Vec<f32>| {
            let rows = EncodedRows {
                inputs: Arc::new(vec![1.0; weight.len()]),
                target: vec![0.0; weight.len()],
                total_weight: weight.iter().map(|&weight| f64::from(weight)).sum(),
                weight,
                offset: Vec::new(),
            };
            LeafRows {
                rows: &rows,
                width: 1,
                n_channels: 1,
                is_classification: false,
            }
            .visits()
        };
        assert_eq!(visits(vec![1000.0; 4]), [0, 1, 2, 3]);
        assert_eq!(visits(vec![2.0, 0.0, 1.0, 1.0]), [0, 0, 2, 3]);
    }

    #[test]
    fn a_step_follows_the_gradient_of_the_loss() {
        for (n_channels, is_classification, target) in [(1, false, 0.8), (3, true, 2.0)] {
            let mut offset = vec![0.0; n_channels + 2];
            for (at, value) in offset[1..].iter_mut().enumerate() {
                *value = 0.3 - 0.125 * at as f32;
            }
            offset[n_channels + 1] = 0.625;
            let row = EncodedRows {
                inputs: Arc::new(vec![0.5, -1.25, 1.0]),
                target: vec![target],
                weight: vec![1.0],
                total_weight: 1.0,
                offset,
            };
            let rows = LeafRows {
                rows: &row,
                width: 3,
                n_channels,
                is_classification,
            };
            let weights: Vec<f64> = (0..3 + 2 * n_channels)
                .map(|at| f64::from(at as u32 * 5 % 7) / 4.0 - 0.6)
                .collect();
            let (gate, leaves) = weights.split_at(3);
            let mut split = SplitParameters {
                gate: gate.to_vec(),
                leaves: leaves.to_vec(),
            };
            let mut step = SplitParameters {
                gate: vec![0.0; 3],
                leaves: vec![0.0; 2 * n_channels],
            };
            rows.update(0, 1.0, &mut split, &mut step, &mut vec![0.0; n_channels]);
            let expected = central_difference(|weights: &[f64]| loss(&rows, weights), &weights);
            close(&[step.gate, step.leaves].concat(), &expected, 1e-7);
        }
    }
}
