//! The hard tree of the network: with decisions of 0 and 1 the state takes one value per node, so
//! every node has one split of its own.

use crate::numerics::logspace::softmax;
use crate::numerics::real::sigmoid;
use crate::recurrent::network::{N_GATES, NetworkShape};

/// The split of a node: the shares of the inputs and their soft thresholds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeSplit {
    /// Logit of each input.
    pub(crate) logits: Vec<f64>,
    /// Bias of the threshold of each input.
    pub(crate) biases: Vec<f64>,
    /// Weight of each input in its threshold.
    pub(crate) slopes: Vec<f64>,
}

impl NodeSplit {
    /// The input with the largest share; the first of equal ones.
    pub(crate) fn input(&self) -> usize {
        let mut best = 0;
        for (input, logit) in self.logits.iter().enumerate() {
            if *logit > self.logits[best] {
                best = input;
            }
        }
        best
    }

    /// Shares of the inputs: softmax of `factor` times the logits.
    pub(crate) fn shares(&self, factor: f64) -> Vec<f64> {
        let mut shares: Vec<f64> = self.logits.iter().map(|logit| factor * logit).collect();
        softmax(&mut shares, 1);
        shares
    }
}

/// The splits of all inner nodes in heap order without the unused place 0: the root is first, the
/// children of node `i` are `2 i + 1` (left) and `2 i + 2` (right).
pub(crate) fn node_splits(shape: &NetworkShape, weights: &[f32]) -> Vec<NodeSplit> {
    let n_nodes = shape.n_leaves() - 1;
    let wide = |range: std::ops::Range<usize>| -> Vec<f64> {
        weights[range].iter().map(|&x| f64::from(x)).collect()
    };
    let unit = RecurrentUnit {
        n_hidden: shape.n_hidden,
        decision_weights: wide(shape.decision_weights()),
        decision_bias: wide(shape.decision_bias()),
        state_weights: wide(shape.state_weights()),
        state_bias: wide(shape.state_bias()),
    };
    let (head_weights, head_bias) = (wide(shape.head_weights()), wide(shape.head_bias()));
    let mut states = vec![wide(shape.start())];
    for node in 1..n_nodes {
        let decision = if node % 2 == 0 { 1.0 } else { 0.0 };
        states.push(unit.next(&states[(node - 1) / 2], decision));
    }
    let split = |state: &Vec<f64>| {
        let heads = product(&head_weights, &head_bias, state);
        let (logits, thresholds) = heads.split_at(shape.n_inputs);
        let (biases, slopes) = thresholds.split_at(shape.n_inputs);
        NodeSplit {
            logits: logits.to_vec(),
            biases: biases.to_vec(),
            slopes: slopes.to_vec(),
        }
    };
    states.iter().map(split).collect()
}

/// The gated recurrent unit in double precision.
#[derive(Debug)]
pub(crate) struct RecurrentUnit {
    pub(crate) n_hidden: usize,
    pub(crate) decision_weights: Vec<f64>,
    pub(crate) decision_bias: Vec<f64>,
    pub(crate) state_weights: Vec<f64>,
    pub(crate) state_bias: Vec<f64>,
}

impl RecurrentUnit {
    /// The state after a decision.
    pub(crate) fn next(&self, state: &[f64], decision: f64) -> Vec<f64> {
        let n = self.n_hidden;
        let of_state = product(&self.state_weights, &self.state_bias, state);
        let of_decision: Vec<f64> = (0..N_GATES * n)
            .map(|row| self.decision_weights[row] * decision + self.decision_bias[row])
            .collect();
        let unit = |unit: usize| {
            let reset = sigmoid(of_decision[unit] + of_state[unit]);
            let update = sigmoid(of_decision[n + unit] + of_state[n + unit]);
            let candidate = (of_decision[2 * n + unit] + reset * of_state[2 * n + unit]).tanh();
            (1.0 - update) * candidate + update * state[unit]
        };
        (0..n).map(unit).collect()
    }
}

/// `weights state + bias`.
fn product(weights: &[f64], bias: &[f64], state: &[f64]) -> Vec<f64> {
    let rows = weights.chunks_exact(state.len()).zip(bias);
    let sum = |(row, &bias): (&[f64], &f64)| {
        bias + row.iter().zip(state).map(|(w, h)| w * h).sum::<f64>()
    };
    rows.map(sum).collect()
}
