//! The network unrolled over the depth of the tree for a block of rows, forward and backward.
//!
//! At step `d` the heads of the state give, for input `l`, a share `pi_l` (softmax of `a` times the
//! logits) and a soft threshold `s_l = sigmoid(b (w_l0 + w_l1 x_l))`; the row goes right with probability
//! `q_d = sum_l pi_l s_l`. In training the next decision is `u = q_d + e` with noise `e`, uniform in
//! [-1/2, 1/2], as published, or `u = sigmoid(k (q_d + e - 1/2))`: for a large `k` that is nearly 1
//! with probability `q_d` and else nearly 0, as in the hard tree.
//!
//! The values of a chunk of rows at a step are contiguous, so that both passes read and write memory
//! in one stream.

use multiversion::multiversion;

use crate::numerics::real::{LANES, Lanes, Real, bounded_sigmoid, lanes_at};
use crate::recurrent::lane_product::{affine, store, transposed};
use crate::recurrent::network::NetworkShape;
use crate::recurrent::unroll_backward::{HeadGradient, backward, backward_f32};

/// Number of rows of a block.
pub(crate) const BLOCK: usize = 64;

/// The network with the transposed matrices that the backward pass needs.
#[derive(Debug)]
pub(crate) struct Network<'a, T> {
    pub(crate) shape: NetworkShape,
    pub(crate) weights: &'a [T],
    pub(crate) sharpness: Sharpness,
    /// Hidden x gate rows.
    pub(crate) state_transposed: Vec<T>,
    /// Hidden x head rows.
    pub(crate) heads_transposed: Vec<T>,
}

/// How hard the network decides; training makes it harder step by step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sharpness {
    /// `a`: factor of the logits of the inputs.
    pub(crate) share: f64,
    /// `b`: factor of the thresholds.
    pub(crate) threshold: f64,
    /// `k`: factor of the decisions that are passed on; 0 for decisions as published.
    pub(crate) decision: f64,
}

impl Sharpness {
    /// Decisions as published.
    pub(crate) const PUBLISHED: Self = Self {
        share: 1.0,
        threshold: 1.0,
        decision: 0.0,
    };
}

impl<'a, T: Real> Network<'a, T> {
    pub(crate) fn new(shape: NetworkShape, weights: &'a [T], sharpness: Sharpness) -> Self {
        let matrix = |range, rows| transposed(&weights[range], rows, shape.n_hidden);
        Self {
            shape,
            weights,
            sharpness,
            state_transposed: matrix(shape.state_weights(), shape.n_gate_rows()),
            heads_transposed: matrix(shape.head_weights(), shape.n_head_rows()),
        }
    }
}

/// Encoded inputs, `n_inputs x stride`; a block begins at row `start`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockInputs<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) stride: usize,
    pub(crate) start: usize,
}

impl<T: Real> BlockInputs<'_, T> {
    #[inline(always)]
    pub(crate) fn lanes(&self, input: usize, chunk: usize) -> Lanes<T> {
        lanes_at(
            self.values,
            input * self.stride + self.start + chunk * LANES,
        )
    }
}

/// The decision that a state passes on to the next one; steps x [`BLOCK`] values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decisions<'a, T> {
    /// The probability of going right plus this noise.
    Noisy(&'a [T]),
    /// These decisions.
    Given(&'a [T]),
}

/// What the forward pass keeps for the backward pass.
#[derive(Debug, Clone)]
pub(crate) struct Tape<T> {
    stride: usize,
    shape: NetworkShape,
    /// Chunks x steps, the last one first, x values of a step: see [`TapeStep`]. The backward pass
    /// reads them in the order of memory.
    steps: Vec<Lanes<T>>,
    /// `u`, steps x rows.
    pub(crate) decision: Vec<T>,
    /// `q`, steps x rows.
    pub(crate) right: Vec<T>,
    /// Heads before softmax and sigmoid, head rows x stride, if they are kept.
    pub(crate) heads: Vec<T>,
}

/// Values of a chunk of rows at a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapeStep<'a, T> {
    pub(crate) state: &'a [Lanes<T>],
    /// `pi`.
    pub(crate) share: &'a [Lanes<T>],
    /// `s`.
    pub(crate) threshold: &'a [Lanes<T>],
    /// For each hidden unit: reset, update and candidate gate, and `V_n h + c_n`.
    pub(crate) gates: &'a [Lanes<T>],
}

/// Number of values of a hidden unit in [`TapeStep::gates`].
pub(crate) const N_KEPT: usize = 4;

impl<T: Real> Tape<T> {
    pub(crate) fn new(shape: &NetworkShape, keeps_heads: bool) -> Self {
        // rows of one cache line more than a power of two do not compete for the same cache sets
        let stride = shape.depth * BLOCK + LANES;
        let zeros = |rows: usize| vec![T::ZERO; rows * stride];
        let n_lanes = BLOCK / LANES * shape.depth * Self::step_len(shape);
        Self {
            stride,
            shape: *shape,
            steps: vec![Lanes::of(T::ZERO); n_lanes],
            decision: zeros(1),
            right: zeros(1),
            heads: zeros(if keeps_heads { shape.n_head_rows() } else { 0 }),
        }
    }

    /// Place of a chunk of rows at a step, within a row of the tape.
    #[inline(always)]
    pub(crate) fn at(step: usize, chunk: usize) -> usize {
        step * BLOCK + chunk * LANES
    }

    /// Distance between two features.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Number of values of a row at a step.
    pub(crate) fn step_len(shape: &NetworkShape) -> usize {
        (1 + N_KEPT) * shape.n_hidden + 2 * shape.n_inputs
    }

    /// The values of a chunk of rows at a step.
    #[inline(always)]
    pub(crate) fn step(&self, step: usize, chunk: usize) -> TapeStep<'_, T> {
        let NetworkShape {
            n_inputs,
            n_hidden,
            depth,
        } = self.shape;
        let len = Self::step_len(&self.shape);
        let place = (chunk + 1) * depth - 1 - step;
        let values = &self.steps[place * len..][..len];
        let (state, rest) = values.split_at(n_hidden);
        let (share, rest) = rest.split_at(n_inputs);
        let (threshold, gates) = rest.split_at(n_inputs);
        TapeStep {
            state,
            share,
            threshold,
            gates,
        }
    }
}

/// Scratch memory of a worker.
#[derive(Debug, Clone)]
pub(crate) struct UnrollScratch<T> {
    pub(crate) gates: Vec<Lanes<T>>,
    pub(crate) heads: Vec<Lanes<T>>,
    pub(crate) state_gradient: Vec<Lanes<T>>,
    /// States of all steps and rows, hidden x stride.
    pub(crate) states: Vec<T>,
    /// Gradients of gate rows and head rows, rows x stride.
    pub(crate) row_gradient: Vec<T>,
    /// Sums of the gradients of the gate rows, the head rows and the candidate rows of the decision.
    pub(crate) totals: Vec<Lanes<T>>,
    /// Sums of the gradients of the gate rows of the decision times the decision.
    pub(crate) of_decision: Vec<Lanes<T>>,
    pub(crate) product: Vec<T>,
}

impl<T: Real> UnrollScratch<T> {
    pub(crate) fn new(shape: &NetworkShape) -> Self {
        let lanes = |n: usize| vec![Lanes::of(T::ZERO); n];
        let stride = shape.depth * BLOCK + LANES;
        let n_rows = shape.n_gate_rows() + shape.n_head_rows();
        Self {
            gates: lanes(shape.n_gate_rows()),
            heads: lanes(shape.n_head_rows()),
            state_gradient: lanes(shape.n_hidden),
            states: vec![T::ZERO; shape.n_hidden * stride],
            row_gradient: vec![T::ZERO; n_rows * stride],
            totals: lanes(n_rows + shape.n_hidden),
            of_decision: lanes(shape.n_gate_rows()),
            product: vec![T::ZERO; n_rows * shape.n_hidden],
        }
    }
}

/// [`forward`] in single precision, compiled for several SIMD instruction sets.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn forward_f32(
    network: &Network<'_, f32>,
    inputs: &BlockInputs<'_, f32>,
    decisions: Decisions<'_, f32>,
    tape: &mut Tape<f32>,
    scratch: &mut UnrollScratch<f32>,
) {
    forward(network, inputs, decisions, tape, scratch);
}

/// Runs the network on a block of rows and fills the tape.
#[inline(always)]
fn forward<T: Real>(
    network: &Network<'_, T>,
    inputs: &BlockInputs<'_, T>,
    decisions: Decisions<'_, T>,
    tape: &mut Tape<T>,
    scratch: &mut UnrollScratch<T>,
) {
    let shape = &network.shape;
    let (n_hidden, step_len) = (shape.n_hidden, Tape::<T>::step_len(shape));
    let stride = tape.stride;
    let chunks = tape.steps.chunks_exact_mut(shape.depth * step_len);
    for (chunk, steps) in chunks.enumerate() {
        let mut steps = steps.chunks_exact_mut(step_len).rev();
        let mut next = steps.next();
        if let Some(values) = &mut next {
            let start = &network.weights[shape.start()];
            for (state, &value) in values.iter_mut().zip(start) {
                *state = Lanes::of(value);
            }
        }
        for step in 0..shape.depth {
            let at = Tape::<T>::at(step, chunk);
            let Some(values) = next else { return };
            let (state, values) = values.split_at_mut(n_hidden);
            let (splits, gates) = values.split_at_mut(2 * shape.n_inputs);
            affine(
                &network.weights[shape.head_weights()],
                &network.weights[shape.head_bias()],
                state,
                &mut scratch.heads,
            );
            if !tape.heads.is_empty() {
                for (row, head) in scratch.heads.iter().enumerate() {
                    store(&mut tape.heads, row * stride + at, head);
                }
            }
            let right = split(network.sharpness, inputs, chunk, &scratch.heads, splits);
            store(&mut tape.right, at, &right);
            next = None;
            if step + 1 < shape.depth {
                let decision = match decisions {
                    Decisions::Noisy(noise) => noisy_decision(
                        &right,
                        &lanes_at(noise, at),
                        T::of(network.sharpness.decision),
                    ),
                    Decisions::Given(path) => lanes_at(path, at),
                };
                store(&mut tape.decision, at, &decision);
                affine(
                    &network.weights[shape.state_weights()],
                    &network.weights[shape.state_bias()],
                    state,
                    &mut scratch.gates,
                );
                next = steps.next();
                if let Some(values) = &mut next {
                    let next_state = &mut values[..n_hidden];
                    transition(
                        network,
                        decision,
                        &scratch.gates,
                        [state, gates],
                        next_state,
                    );
                }
            }
        }
    }
}

/// The decision of a probability of going right and noise.
#[inline(always)]
fn noisy_decision<T: Real>(right: &Lanes<T>, noise: &Lanes<T>, sharpness: T) -> Lanes<T> {
    let mut decision = *noise;
    for lane in 0..LANES {
        decision[lane] += right[lane];
    }
    if sharpness > T::ZERO {
        for lane in 0..LANES {
            decision[lane] = bounded_sigmoid(sharpness * (decision[lane] - T::of(0.5)));
        }
    }
    decision
}

/// The probability of going right from the heads of a state; fills shares and thresholds.
#[inline(always)]
fn split<T: Real>(
    sharpness: Sharpness,
    inputs: &BlockInputs<'_, T>,
    chunk: usize,
    heads: &[Lanes<T>],
    out: &mut [Lanes<T>],
) -> Lanes<T> {
    let n_inputs = heads.len() / 3;
    let (share_factor, threshold_factor) = (T::of(sharpness.share), T::of(sharpness.threshold));
    let (logits, thresholds) = heads.split_at(n_inputs);
    let (biases, slopes) = thresholds.split_at(n_inputs);
    let (shares, thresholds) = out.split_at_mut(n_inputs);
    let mut largest = logits[0];
    for logit in &logits[1..] {
        for lane in 0..LANES {
            largest[lane] = largest[lane].largest(logit[lane]);
        }
    }
    let (mut total, mut right) = (Lanes::of(T::ZERO), Lanes::of(T::ZERO));
    let heads = logits.iter().zip(biases).zip(slopes);
    let outs = shares.iter_mut().zip(thresholds);
    for (input, (((logit, bias), slope), (share, threshold))) in heads.zip(outs).enumerate() {
        let x = inputs.lanes(input, chunk);
        let (mut p, mut s) = (*logit, *bias);
        for lane in 0..LANES {
            p[lane] = (share_factor * (p[lane] - largest[lane])).exp();
            total[lane] += p[lane];
            s[lane] = bounded_sigmoid(threshold_factor * slope[lane].fma(x[lane], s[lane]));
            right[lane] = p[lane].fma(s[lane], right[lane]);
        }
        *share = p;
        *threshold = s;
    }
    for lane in 0..LANES {
        total[lane] = T::ONE / total[lane];
        right[lane] = right[lane] * total[lane];
    }
    for share in shares {
        for lane in 0..LANES {
            share[lane] = share[lane] * total[lane];
        }
    }
    right
}

/// The gated recurrent unit: the next state from `V h + c` of all gates; fills the gates.
#[inline(always)]
fn transition<T: Real>(
    network: &Network<'_, T>,
    decision: Lanes<T>,
    of_state: &[Lanes<T>],
    [state, gates]: [&mut [Lanes<T>]; 2],
    next: &mut [Lanes<T>],
) {
    let (shape, weights) = (&network.shape, network.weights);
    let n_hidden = shape.n_hidden;
    let of_decision = &weights[shape.decision_weights()];
    let bias = &weights[shape.decision_bias()];
    let two = T::of(2.0);
    let gates = gates.chunks_exact_mut(N_KEPT);
    for (unit, ((state, next), gates)) in state.iter().zip(next).zip(gates).enumerate() {
        let (w_r, b_r) = (of_decision[unit], bias[unit]);
        let (w_z, b_z) = (of_decision[n_hidden + unit], bias[n_hidden + unit]);
        let (w_n, b_n) = (of_decision[2 * n_hidden + unit], bias[2 * n_hidden + unit]);
        let gated = of_state[2 * n_hidden + unit];
        let (mut reset, mut update) = (of_state[unit], of_state[n_hidden + unit]);
        let (mut candidate, mut new) = (gated, *state);
        for lane in 0..LANES {
            let u = decision[lane];
            reset[lane] = bounded_sigmoid(w_r.fma(u, b_r) + reset[lane]);
            update[lane] = bounded_sigmoid(w_z.fma(u, b_z) + update[lane]);
            let a = reset[lane].fma(gated[lane], w_n.fma(u, b_n));
            candidate[lane] = two.fma(bounded_sigmoid(two * a), -T::ONE);
            new[lane] = update[lane].fma(new[lane] - candidate[lane], candidate[lane]);
        }
        gates[0] = reset;
        gates[1] = update;
        gates[2] = candidate;
        gates[3] = gated;
        *next = new;
    }
}

/// The passes over a block of rows, for each number type.
pub(crate) trait UnrollKernels: Real {
    /// Runs the network on a block of rows and fills the tape.
    fn forward(
        network: &Network<'_, Self>,
        inputs: &BlockInputs<'_, Self>,
        decisions: Decisions<'_, Self>,
        tape: &mut Tape<Self>,
        scratch: &mut UnrollScratch<Self>,
    );
    /// Fills the gradients of all gates and heads, and adds that of the root's state to `gradient`;
    /// [`add_weight_gradients`] adds the others.
    fn backward_lanes(
        network: &Network<'_, Self>,
        inputs: &BlockInputs<'_, Self>,
        tape: &Tape<Self>,
        entering: HeadGradient<'_, Self>,
        scratch: &mut UnrollScratch<Self>,
        gradient: &mut [Self],
    );
}

impl UnrollKernels for f32 {
    fn forward(
        network: &Network<'_, f32>,
        inputs: &BlockInputs<'_, f32>,
        decisions: Decisions<'_, f32>,
        tape: &mut Tape<f32>,
        scratch: &mut UnrollScratch<f32>,
    ) {
        forward_f32(network, inputs, decisions, tape, scratch);
    }
    fn backward_lanes(
        network: &Network<'_, f32>,
        inputs: &BlockInputs<'_, f32>,
        tape: &Tape<f32>,
        entering: HeadGradient<'_, f32>,
        scratch: &mut UnrollScratch<f32>,
        gradient: &mut [f32],
    ) {
        let start = &mut gradient[network.shape.start()];
        backward_f32(network, inputs, tape, entering, scratch, start);
    }
}

/// For tests of gradients.
impl UnrollKernels for f64 {
    fn forward(
        network: &Network<'_, f64>,
        inputs: &BlockInputs<'_, f64>,
        decisions: Decisions<'_, f64>,
        tape: &mut Tape<f64>,
        scratch: &mut UnrollScratch<f64>,
    ) {
        forward(network, inputs, decisions, tape, scratch);
    }
    fn backward_lanes(
        network: &Network<'_, f64>,
        inputs: &BlockInputs<'_, f64>,
        tape: &Tape<f64>,
        entering: HeadGradient<'_, f64>,
        scratch: &mut UnrollScratch<f64>,
        gradient: &mut [f64],
    ) {
        let start = &mut gradient[network.shape.start()];
        backward(network, inputs, tape, entering, scratch, start);
    }
}
