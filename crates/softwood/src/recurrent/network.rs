//! Weights of the network: shape, places in one flat array, and random starts.
//!
//! The state of the root is a learned vector. The state of a child is the gated recurrent unit of
//! the state of its parent and of the decision `u` (0 left, 1 right):
//!
//! ```text
//! r = sigmoid(W_r u + b_r + V_r h + c_r)      z = sigmoid(W_z u + b_z + V_z h + c_z)
//! n = tanh(W_n u + b_n + r (V_n h + c_n))     h' = (1 - z) n + z h
//! ```
//!
//! Linear heads of the state give, for every input, a logit and the bias and weight of a soft
//! threshold.

use std::ops::Range;

use crate::numerics::gaussian::Gaussian;
use crate::rng::{Key, uniform};

/// Number of gates of the recurrent unit: reset, update and candidate.
pub(crate) const N_GATES: usize = 3;
/// Number of heads of an input: logit, bias and weight of its threshold.
pub(crate) const N_HEADS: usize = 3;

/// Size of the network and depth of the tree that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetworkShape {
    pub(crate) n_inputs: usize,
    pub(crate) n_hidden: usize,
    pub(crate) depth: usize,
}

impl NetworkShape {
    /// Number of weights of the network.
    pub(crate) fn n_weights(&self) -> usize {
        self.head_bias().end
    }

    pub(crate) fn n_leaves(&self) -> usize {
        1 << self.depth
    }

    /// Rows of the recurrent unit.
    pub(crate) fn n_gate_rows(&self) -> usize {
        N_GATES * self.n_hidden
    }

    /// Rows of the heads: all logits, then all biases, then all weights.
    pub(crate) fn n_head_rows(&self) -> usize {
        N_HEADS * self.n_inputs
    }

    /// `W`, one weight per gate row.
    pub(crate) fn decision_weights(&self) -> Range<usize> {
        after(0, self.n_gate_rows())
    }

    /// `b`.
    pub(crate) fn decision_bias(&self) -> Range<usize> {
        after(self.decision_weights().end, self.n_gate_rows())
    }

    /// `V`, gate rows x hidden.
    pub(crate) fn state_weights(&self) -> Range<usize> {
        let n = self.n_gate_rows() * self.n_hidden;
        after(self.decision_bias().end, n)
    }

    /// `c`.
    pub(crate) fn state_bias(&self) -> Range<usize> {
        after(self.state_weights().end, self.n_gate_rows())
    }

    /// State of the root.
    pub(crate) fn start(&self) -> Range<usize> {
        after(self.state_bias().end, self.n_hidden)
    }

    /// Head rows x hidden.
    pub(crate) fn head_weights(&self) -> Range<usize> {
        after(self.start().end, self.n_head_rows() * self.n_hidden)
    }

    pub(crate) fn head_bias(&self) -> Range<usize> {
        after(self.head_weights().end, self.n_head_rows())
    }

    /// Random weights. The thresholds of the inputs start within the range of uniform scores, and
    /// their slopes at `slope` with a random sign, so that splits are decided from the start.
    pub(crate) fn random_weights(&self, slope: f64, key: Key) -> Vec<f32> {
        let mut rng = key.rng();
        let mut weights = vec![0.0; self.n_weights()];
        let scale = 1.0 / (self.n_hidden as f64).sqrt();
        for range in [
            self.decision_weights(),
            self.decision_bias(),
            self.state_weights(),
            self.state_bias(),
        ] {
            for weight in &mut weights[range] {
                *weight = (scale * (2.0 * uniform(&mut rng) - 1.0)) as f32;
            }
        }
        let mut normals = vec![0.0; self.n_weights()];
        Gaussian::new(key).fill(&mut normals);
        weights[self.start()].copy_from_slice(&normals[self.start()]);
        let (n_inputs, n_hidden) = (self.n_inputs, self.n_hidden);
        let (heads, bias) = (self.head_weights().start, self.head_bias().start);
        for row in 0..self.n_head_rows() {
            let spread = match row / n_inputs {
                0 => 1.0,
                1 => slope,
                _ => 0.3 * slope,
            };
            let range = heads + row * n_hidden..heads + (row + 1) * n_hidden;
            for (weight, z) in weights[range.clone()].iter_mut().zip(&normals[range]) {
                *weight = (scale * spread) as f32 * z;
            }
            if row / n_inputs == N_HEADS - 1 {
                let sign = if uniform(&mut rng) < 0.5 { -1.0 } else { 1.0 };
                weights[bias + row] = (sign * slope) as f32;
            }
        }
        weights
    }
}

fn after(start: usize, len: usize) -> Range<usize> {
    start..start + len
}
