//! The network unrolled over the depth of the tree for a block of rows, forward and backward.
//!
//! At step `d` the heads of the state give, for input `l`, a share `pi_l` (softmax of `a` times the
//! logits) and a soft threshold `s_l = sigmoid(b (w_l0 + w_l1 x_l))`; the row goes right with probability
//! `q_d = sum_l pi_l s_l`. In training the next decision is `u = q_d + e` with noise `e`, uniform in
//! [-1/2, 1/2], as published, or `u = sigmoid(k (q_d + e - 1/2))`: for a large `k` that is nearly 1
//! with probability `q_d` and else nearly 0, as in the hard tree.
//!
//! Values are kept as features x (steps x rows), rows contiguous, so that the gradient of a weight
//! matrix is one matrix product over all steps and rows of the block.

use multiversion::multiversion;

use crate::numerics::gemm::{Matrix, product_transposed};
use crate::numerics::real::{LANES, Lanes, Real, lanes_at, sigmoid};
use crate::recurrent::lane_product::{affine, store, transposed};
use crate::recurrent::network::NetworkShape;

/// Number of rows of a block.
pub(crate) const BLOCK: usize = 64;

/// The network with the transposed matrices that the backward pass needs.
#[derive(Debug)]
pub(crate) struct Network<'a, T> {
    pub(crate) shape: NetworkShape,
    pub(crate) weights: &'a [T],
    sharpness: Sharpness,
    /// Hidden x gate rows.
    state_transposed: Vec<T>,
    /// Hidden x head rows.
    heads_transposed: Vec<T>,
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
    fn lanes(&self, input: usize, chunk: usize) -> Lanes<T> {
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
    state: Vec<T>,
    reset: Vec<T>,
    update: Vec<T>,
    candidate: Vec<T>,
    /// `V_n h + c_n`.
    gated: Vec<T>,
    decision: Vec<T>,
    /// `s`.
    threshold: Vec<T>,
    /// `pi`.
    share: Vec<T>,
    /// `q`.
    pub(crate) right: Vec<T>,
    /// Heads before softmax and sigmoid.
    pub(crate) heads: Vec<T>,
}

impl<T: Real> Tape<T> {
    pub(crate) fn new(shape: &NetworkShape, keeps_heads: bool) -> Self {
        // rows of one cache line more than a power of two do not compete for the same cache sets
        let stride = shape.depth * BLOCK + LANES;
        let zeros = |rows: usize| vec![T::ZERO; rows * stride];
        let n_hidden = shape.n_hidden;
        Self {
            stride,
            state: zeros(n_hidden),
            reset: zeros(n_hidden),
            update: zeros(n_hidden),
            candidate: zeros(n_hidden),
            gated: zeros(n_hidden),
            decision: zeros(1),
            threshold: zeros(shape.n_inputs),
            share: zeros(shape.n_inputs),
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
}

/// Scratch memory of a worker.
#[derive(Debug, Clone)]
pub(crate) struct UnrollScratch<T> {
    state: Vec<Lanes<T>>,
    gates: Vec<Lanes<T>>,
    heads: Vec<Lanes<T>>,
    state_gradient: Vec<Lanes<T>>,
    passed_on: Vec<Lanes<T>>,
    zeros: Vec<T>,
    /// Gate rows of the state, then the candidate row of the decision: 4 hidden x stride.
    gate_gradient: Vec<T>,
    /// Head rows x stride.
    head_gradient: Vec<T>,
    product: Vec<T>,
}

impl<T: Real> UnrollScratch<T> {
    pub(crate) fn new(shape: &NetworkShape) -> Self {
        let lanes = |n: usize| vec![Lanes::of(T::ZERO); n];
        let stride = shape.depth * BLOCK + LANES;
        let n_rows = shape.n_gate_rows().max(shape.n_head_rows());
        Self {
            state: lanes(shape.n_hidden),
            gates: lanes(shape.n_gate_rows()),
            heads: lanes(shape.n_head_rows()),
            state_gradient: lanes(shape.n_hidden),
            passed_on: lanes(shape.n_hidden),
            zeros: vec![T::ZERO; shape.n_hidden],
            gate_gradient: vec![T::ZERO; 4 * shape.n_hidden * stride],
            head_gradient: vec![T::ZERO; shape.n_head_rows() * stride],
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
    for chunk in 0..BLOCK / LANES {
        let start = &network.weights[shape.start()];
        for (state, &value) in scratch.state.iter_mut().zip(start) {
            *state = Lanes::of(value);
        }
        for step in 0..shape.depth {
            let at = Tape::<T>::at(step, chunk);
            for (unit, state) in scratch.state.iter().enumerate() {
                store(&mut tape.state, unit * tape.stride + at, state);
            }
            let right = split(network, inputs, chunk, at, tape, scratch);
            store(&mut tape.right, at, &right);
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
                transition(network, &decision, at, tape, scratch);
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
            decision[lane] = sigmoid(sharpness * (decision[lane] - T::of(0.5)));
        }
    }
    decision
}

/// Heads of a state: the probability of going right.
#[inline(always)]
fn split<T: Real>(
    network: &Network<'_, T>,
    inputs: &BlockInputs<'_, T>,
    chunk: usize,
    at: usize,
    tape: &mut Tape<T>,
    scratch: &mut UnrollScratch<T>,
) -> Lanes<T> {
    let (shape, weights) = (&network.shape, network.weights);
    let n_inputs = shape.n_inputs;
    affine(
        &weights[shape.head_weights()],
        &weights[shape.head_bias()],
        &scratch.state,
        &mut scratch.heads,
    );
    if !tape.heads.is_empty() {
        for (row, head) in scratch.heads.iter().enumerate() {
            store(&mut tape.heads, row * tape.stride + at, head);
        }
    }
    let share_factor = T::of(network.sharpness.share);
    let threshold_factor = T::of(network.sharpness.threshold);
    let (logits, thresholds) = scratch.heads.split_at_mut(n_inputs);
    let (biases, slopes) = thresholds.split_at(n_inputs);
    let mut largest = logits[0];
    for logit in &logits[1..] {
        for lane in 0..LANES {
            largest[lane] = largest[lane].largest(logit[lane]);
        }
    }
    let mut total = Lanes::of(T::ZERO);
    for logit in &mut *logits {
        for lane in 0..LANES {
            logit[lane] = (share_factor * (logit[lane] - largest[lane])).exp();
            total[lane] += logit[lane];
        }
    }
    for lane in 0..LANES {
        total[lane] = T::ONE / total[lane];
    }
    let mut right = Lanes::of(T::ZERO);
    for input in 0..n_inputs {
        let x = inputs.lanes(input, chunk);
        let (mut share, mut threshold) = (logits[input], Lanes::of(T::ZERO));
        for lane in 0..LANES {
            share[lane] = share[lane] * total[lane];
            let t = slopes[input][lane].fma(x[lane], biases[input][lane]);
            threshold[lane] = sigmoid(threshold_factor * t);
            right[lane] = share[lane].fma(threshold[lane], right[lane]);
        }
        store(&mut tape.share, input * tape.stride + at, &share);
        store(&mut tape.threshold, input * tape.stride + at, &threshold);
    }
    right
}

/// The gated recurrent unit: replaces the state.
#[inline(always)]
fn transition<T: Real>(
    network: &Network<'_, T>,
    decision: &Lanes<T>,
    at: usize,
    tape: &mut Tape<T>,
    scratch: &mut UnrollScratch<T>,
) {
    let (shape, weights) = (&network.shape, network.weights);
    let n_hidden = shape.n_hidden;
    affine(
        &weights[shape.state_weights()],
        &weights[shape.state_bias()],
        &scratch.state,
        &mut scratch.gates,
    );
    let of_decision = &weights[shape.decision_weights()];
    let bias = &weights[shape.decision_bias()];
    let two = T::of(2.0);
    for unit in 0..n_hidden {
        let (w_r, b_r) = (of_decision[unit], bias[unit]);
        let (w_z, b_z) = (of_decision[n_hidden + unit], bias[n_hidden + unit]);
        let (w_n, b_n) = (of_decision[2 * n_hidden + unit], bias[2 * n_hidden + unit]);
        let gated = scratch.gates[2 * n_hidden + unit];
        let (mut reset, mut update) = (scratch.gates[unit], scratch.gates[n_hidden + unit]);
        let mut candidate = Lanes::of(T::ZERO);
        let mut state = scratch.state[unit];
        for lane in 0..LANES {
            let u = decision[lane];
            reset[lane] = sigmoid(w_r.fma(u, b_r) + reset[lane]);
            update[lane] = sigmoid(w_z.fma(u, b_z) + update[lane]);
            let a = reset[lane].fma(gated[lane], w_n.fma(u, b_n));
            candidate[lane] = two.fma(sigmoid(two * a), -T::ONE);
            state[lane] = update[lane].fma(state[lane] - candidate[lane], candidate[lane]);
        }
        let place = unit * tape.stride + at;
        store(&mut tape.reset, place, &reset);
        store(&mut tape.update, place, &update);
        store(&mut tape.candidate, place, &candidate);
        store(&mut tape.gated, place, &gated);
        scratch.state[unit] = state;
    }
}

/// The gradient that enters at the heads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HeadGradient<'a, T> {
    /// Gradient with respect to `q`, one value per step and row; also passed on through noisy
    /// decisions.
    OfRight(&'a [T]),
    /// Gradient with respect to the heads, head rows x stride; decisions are constants.
    OfHeads(&'a [T]),
}

/// [`backward`] in single precision, compiled for several SIMD instruction sets.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn backward_f32(
    network: &Network<'_, f32>,
    inputs: &BlockInputs<'_, f32>,
    tape: &Tape<f32>,
    entering: HeadGradient<'_, f32>,
    scratch: &mut UnrollScratch<f32>,
    start_gradient: &mut [f32],
) {
    backward(network, inputs, tape, entering, scratch, start_gradient);
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

/// Fills the gradients of all gates and heads, and adds that of the root's state.
#[inline(always)]
fn backward<T: Real>(
    network: &Network<'_, T>,
    inputs: &BlockInputs<'_, T>,
    tape: &Tape<T>,
    entering: HeadGradient<'_, T>,
    scratch: &mut UnrollScratch<T>,
    start_gradient: &mut [T],
) {
    let depth = network.shape.depth;
    for chunk in 0..BLOCK / LANES {
        scratch.passed_on.fill(Lanes::of(T::ZERO));
        let mut of_decision = Lanes::of(T::ZERO);
        for step in (0..depth).rev() {
            let at = Tape::<T>::at(step, chunk);
            match entering {
                HeadGradient::OfRight(of_right) => {
                    let mut gradient = lanes_at(of_right, at);
                    for lane in 0..LANES {
                        gradient[lane] += of_decision[lane];
                    }
                    split_backward(
                        network.sharpness,
                        inputs,
                        [chunk, at],
                        tape,
                        &gradient,
                        scratch,
                    );
                }
                HeadGradient::OfHeads(of_heads) => {
                    for row in 0..scratch.heads.len() {
                        let place = row * tape.stride + at;
                        scratch.heads[row] = lanes_at(of_heads, place);
                        store(&mut scratch.head_gradient, place, &scratch.heads[row]);
                    }
                }
            }
            affine(
                &network.heads_transposed,
                &scratch.zeros,
                &scratch.heads,
                &mut scratch.state_gradient,
            );
            for (sum, passed_on) in scratch.state_gradient.iter_mut().zip(&scratch.passed_on) {
                for lane in 0..LANES {
                    sum[lane] += passed_on[lane];
                }
            }
            if step > 0 {
                let before = Tape::<T>::at(step - 1, chunk);
                of_decision = transition_backward(network, before, tape, scratch);
                if network.sharpness.decision > 0.0 {
                    let factor = T::of(network.sharpness.decision);
                    let decision = lanes_at(&tape.decision, before);
                    for lane in 0..LANES {
                        let slope = decision[lane] * (T::ONE - decision[lane]);
                        of_decision[lane] = of_decision[lane] * factor * slope;
                    }
                }
            }
        }
        for (sum, gradient) in start_gradient.iter_mut().zip(&scratch.state_gradient) {
            for lane in 0..LANES {
                *sum += gradient[lane];
            }
        }
    }
}

/// Gradients of the heads of a chunk of rows, which is `at` this place of the tape, from that of the
/// probability of going right.
#[inline(always)]
fn split_backward<T: Real>(
    sharpness: Sharpness,
    inputs: &BlockInputs<'_, T>,
    [chunk, at]: [usize; 2],
    tape: &Tape<T>,
    gradient: &Lanes<T>,
    scratch: &mut UnrollScratch<T>,
) {
    let n_inputs = scratch.heads.len() / 3;
    let (share_factor, threshold_factor) = (T::of(sharpness.share), T::of(sharpness.threshold));
    let right = lanes_at(&tape.right, at);
    for input in 0..n_inputs {
        let x = inputs.lanes(input, chunk);
        let share = lanes_at(&tape.share, input * tape.stride + at);
        let threshold = lanes_at(&tape.threshold, input * tape.stride + at);
        let (mut logit, mut bias, mut slope) = (*gradient, *gradient, *gradient);
        for lane in 0..LANES {
            let shared = gradient[lane] * share[lane];
            logit[lane] = share_factor * shared * (threshold[lane] - right[lane]);
            let slack = threshold[lane] * (T::ONE - threshold[lane]);
            bias[lane] = threshold_factor * shared * slack;
            slope[lane] = bias[lane] * x[lane];
        }
        for (row, value) in [
            (input, logit),
            (n_inputs + input, bias),
            (2 * n_inputs + input, slope),
        ] {
            store(&mut scratch.head_gradient, row * tape.stride + at, &value);
            scratch.heads[row] = value;
        }
    }
}

/// Passes the gradient of a state to the state before it; returns the gradient of the decision.
#[inline(always)]
fn transition_backward<T: Real>(
    network: &Network<'_, T>,
    at: usize,
    tape: &Tape<T>,
    scratch: &mut UnrollScratch<T>,
) -> Lanes<T> {
    let shape = &network.shape;
    let n_hidden = shape.n_hidden;
    let weights = &network.weights[shape.decision_weights()];
    let mut of_decision = Lanes::of(T::ZERO);
    for unit in 0..n_hidden {
        let place = unit * tape.stride + at;
        let (w_r, w_z) = (weights[unit], weights[n_hidden + unit]);
        let w_n = weights[2 * n_hidden + unit];
        let (state, candidate) = (
            lanes_at(&tape.state, place),
            lanes_at(&tape.candidate, place),
        );
        let (reset, update) = (lanes_at(&tape.reset, place), lanes_at(&tape.update, place));
        let (gated, gradient) = (lanes_at(&tape.gated, place), scratch.state_gradient[unit]);
        let (mut of_reset, mut of_update) = (gradient, gradient);
        let (mut of_candidate, mut of_gated) = (gradient, gradient);
        let mut passed_on = gradient;
        for lane in 0..LANES {
            let (r, z, n) = (reset[lane], update[lane], candidate[lane]);
            of_update[lane] = gradient[lane] * (state[lane] - n) * z * (T::ONE - z);
            of_candidate[lane] = gradient[lane] * (T::ONE - z) * (T::ONE - n * n);
            of_reset[lane] = of_candidate[lane] * gated[lane] * r * (T::ONE - r);
            of_gated[lane] = of_candidate[lane] * r;
            passed_on[lane] = gradient[lane] * z;
            of_decision[lane] = w_r.fma(of_reset[lane], of_decision[lane]);
            of_decision[lane] = w_z.fma(of_update[lane], of_decision[lane]);
            of_decision[lane] = w_n.fma(of_candidate[lane], of_decision[lane]);
        }
        scratch.passed_on[unit] = passed_on;
        for (row, value) in [
            (unit, of_reset),
            (n_hidden + unit, of_update),
            (2 * n_hidden + unit, of_gated),
            (3 * n_hidden + unit, of_candidate),
        ] {
            store(&mut scratch.gate_gradient, row * tape.stride + at, &value);
            if row < 3 * n_hidden {
                scratch.gates[row] = value;
            }
        }
    }
    affine(
        &network.state_transposed,
        &scratch.zeros,
        &scratch.gates,
        &mut scratch.state_gradient,
    );
    for (passed_on, through) in scratch.passed_on.iter_mut().zip(&scratch.state_gradient) {
        for lane in 0..LANES {
            passed_on[lane] += through[lane];
        }
    }
    of_decision
}

/// Adds the gradients of all weights but the root's state: products over the steps and rows of the
/// tape.
pub(crate) fn add_weight_gradients<T: Real>(
    shape: &NetworkShape,
    tape: &Tape<T>,
    scratch: &mut UnrollScratch<T>,
    gradient: &mut [T],
) {
    let (n_hidden, stride) = (shape.n_hidden, tape.stride);
    let state = Matrix::new(&tape.state, n_hidden, stride);
    let rows = [
        (
            &scratch.gate_gradient,
            shape.n_gate_rows(),
            shape.state_weights(),
        ),
        (
            &scratch.head_gradient,
            shape.n_head_rows(),
            shape.head_weights(),
        ),
    ];
    for (values, n_rows, range) in rows {
        let product = &mut scratch.product[..n_rows * n_hidden];
        product_transposed(product, Matrix::new(values, n_rows, stride), state);
        add(&mut gradient[range], product);
    }
    let gates = scratch.gate_gradient.chunks_exact(stride);
    for (at, values) in gates.enumerate() {
        let (total, of_decision) = sums(values, &tape.decision);
        if at < 3 * n_hidden {
            gradient[shape.state_bias().start + at] += total;
        }
        // the candidate row of the decision stands after the gate rows of the state
        let decision_row = match at / n_hidden {
            2 => continue,
            3 => at - n_hidden,
            _ => at,
        };
        gradient[shape.decision_bias().start + decision_row] += total;
        gradient[shape.decision_weights().start + decision_row] += of_decision;
    }
    let heads = scratch.head_gradient.chunks_exact(stride);
    for (at, values) in heads.enumerate() {
        gradient[shape.head_bias().start + at] += sums(values, &tape.decision).0;
    }
}

fn add<T: Real>(sums: &mut [T], values: &[T]) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// The sum of `values`, and their dot product with `factors`.
fn sums<T: Real>(values: &[T], factors: &[T]) -> (T, T) {
    let (mut total, mut dot) = (Lanes::of(T::ZERO), Lanes::of(T::ZERO));
    for at in (0..values.len()).step_by(LANES) {
        let (value, factor) = (lanes_at(values, at), lanes_at(factors, at));
        for lane in 0..LANES {
            total[lane] += value[lane];
            // not a fused product: this function is not compiled for processors that have it
            dot[lane] += value[lane] * factor[lane];
        }
    }
    let sum = |lanes: &Lanes<T>| lanes.iter().fold(T::ZERO, |sum, &value| sum + value);
    (sum(&total), sum(&dot))
}
