//! The backward pass of the unrolled network for a block of rows.
//!
//! Gradients of gates and heads are kept as features x (steps x rows), rows contiguous, so that the
//! gradient of a weight matrix is one matrix product over all steps and rows of the block.

use multiversion::multiversion;

use crate::numerics::gemm::{Matrix, product_transposed};
use crate::numerics::real::{LANES, Lanes, Real, both, lanes_at};
use crate::recurrent::lane_product::{add_product, add_product_of, store};
use crate::recurrent::network::NetworkShape;
use crate::recurrent::unroll::{
    BLOCK, BlockInputs, N_KEPT, Network, Sharpness, Tape, TapeStep, UnrollScratch,
};

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
pub(crate) fn backward_f32(
    network: &Network<'_, f32>,
    inputs: &BlockInputs<'_, f32>,
    tape: &Tape<f32>,
    entering: HeadGradient<'_, f32>,
    scratch: &mut UnrollScratch<f32>,
    start_gradient: &mut [f32],
) {
    backward(network, inputs, tape, entering, scratch, start_gradient);
}

/// Fills the gradients of all gates and heads, and adds that of the root's state.
#[inline(always)]
pub(crate) fn backward<T: Real>(
    network: &Network<'_, T>,
    inputs: &BlockInputs<'_, T>,
    tape: &Tape<T>,
    entering: HeadGradient<'_, T>,
    scratch: &mut UnrollScratch<T>,
    start_gradient: &mut [T],
) {
    let shape = &network.shape;
    let stride = tape.stride();
    let first_head = shape.n_gate_rows();
    for chunk in 0..BLOCK / LANES {
        scratch.state_gradient.fill(Lanes::of(T::ZERO));
        let mut of_decision = Lanes::of(T::ZERO);
        for step in (0..shape.depth).rev() {
            let at = Tape::<T>::at(step, chunk);
            let values = tape.step(step, chunk);
            match entering {
                HeadGradient::OfRight(of_right) => {
                    let mut gradient = lanes_at(of_right, at);
                    for lane in 0..LANES {
                        gradient[lane] += of_decision[lane];
                    }
                    let right = lanes_at(&tape.right, at);
                    split_backward(
                        network.sharpness,
                        |input| inputs.lanes(input, chunk),
                        &values,
                        [&gradient, &right],
                        &mut scratch.heads,
                    );
                }
                HeadGradient::OfHeads(of_heads) => {
                    for (row, head) in scratch.heads.iter_mut().enumerate() {
                        *head = lanes_at(of_heads, row * stride + at);
                    }
                }
            }
            let totals = &mut scratch.totals[first_head..];
            for (row, (head, total)) in scratch.heads.iter().zip(totals).enumerate() {
                store(
                    &mut scratch.row_gradient,
                    (first_head + row) * stride + at,
                    head,
                );
                *total = plus(*total, *head);
            }
            for (unit, state) in values.state.iter().enumerate() {
                store(&mut scratch.states, unit * stride + at, state);
            }
            add_product_of(
                &network.heads_transposed,
                &scratch.heads,
                &mut scratch.state_gradient,
            );
            if step > 0 {
                let before = Tape::<T>::at(step - 1, chunk);
                let values = tape.step(step - 1, chunk);
                let decision = lanes_at(&tape.decision, before);
                of_decision =
                    transition_backward(network, [before, stride], &values, decision, scratch);
                if network.sharpness.decision > 0.0 {
                    let factor = T::of(network.sharpness.decision);
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

/// Gradients of the heads of a chunk of rows from that of the probability of going right.
#[inline(always)]
fn split_backward<T: Real>(
    sharpness: Sharpness,
    x: impl Fn(usize) -> Lanes<T>,
    values: &TapeStep<'_, T>,
    [gradient, right]: [&Lanes<T>; 2],
    heads: &mut [Lanes<T>],
) {
    let n_inputs = values.share.len();
    let (share_factor, threshold_factor) = (T::of(sharpness.share), T::of(sharpness.threshold));
    let (logits, thresholds) = heads.split_at_mut(n_inputs);
    let (biases, slopes) = thresholds.split_at_mut(n_inputs);
    let heads = logits.iter_mut().zip(biases).zip(slopes);
    let splits = values.share.iter().zip(values.threshold);
    for (input, (((logit, bias), slope), (share, threshold))) in heads.zip(splits).enumerate() {
        let x = x(input);
        let (mut of_logit, mut of_bias, mut of_slope) = (*gradient, *gradient, x);
        for lane in 0..LANES {
            let shared = gradient[lane] * share[lane];
            of_logit[lane] = share_factor * shared * (threshold[lane] - right[lane]);
            let slack = threshold[lane] * (T::ONE - threshold[lane]);
            of_bias[lane] = threshold_factor * shared * slack;
            of_slope[lane] = of_bias[lane] * x[lane];
        }
        *logit = of_logit;
        *bias = of_bias;
        *slope = of_slope;
    }
}

/// Replaces the gradient of a state by that of the state before it, whose place on the tape is `at`;
/// returns the gradient of the decision.
#[inline(always)]
fn transition_backward<T: Real>(
    network: &Network<'_, T>,
    [at, stride]: [usize; 2],
    values: &TapeStep<'_, T>,
    decision: Lanes<T>,
    scratch: &mut UnrollScratch<T>,
) -> Lanes<T> {
    let shape = &network.shape;
    let n_hidden = shape.n_hidden;
    let first_candidate = shape.n_gate_rows() + shape.n_head_rows();
    let weights = &network.weights[shape.decision_weights()];
    let mut of_decision = Lanes::of(T::ZERO);
    let gates = values.gates.chunks_exact(N_KEPT);
    let states = values.state.iter().zip(&mut scratch.state_gradient);
    for (unit, (gates, (state, gradient))) in gates.zip(states).enumerate() {
        let (w_r, w_z) = (weights[unit], weights[n_hidden + unit]);
        let w_n = weights[2 * n_hidden + unit];
        let (reset, update, candidate, gated) = (gates[0], gates[1], gates[2], gates[3]);
        // by value, one product at a time: else the compiler does not vectorise the loops
        let of_new = *gradient;
        let passed_on = times(of_new, update);
        let of_update = times(times(of_new, minus(*state, candidate)), slope(update));
        let of_candidate = times(minus(of_new, passed_on), square_slope(candidate));
        let of_gated = times(of_candidate, reset);
        let of_reset = times(times(of_candidate, gated), slope(reset));
        of_decision = add_product(w_r, of_reset, of_decision);
        of_decision = add_product(w_z, of_update, of_decision);
        of_decision = add_product(w_n, of_candidate, of_decision);
        *gradient = passed_on;
        scratch.gates[unit] = of_reset;
        scratch.gates[n_hidden + unit] = of_update;
        scratch.gates[2 * n_hidden + unit] = of_gated;
        let total = &mut scratch.totals[first_candidate + unit];
        *total = plus(*total, of_candidate);
        for (gate, of_gate) in [of_reset, of_update, of_candidate].into_iter().enumerate() {
            let sum = &mut scratch.of_decision[gate * n_hidden + unit];
            *sum = plus(*sum, times(of_gate, decision));
        }
    }
    for (row, (gate, total)) in scratch.gates.iter().zip(&mut scratch.totals).enumerate() {
        store(&mut scratch.row_gradient, row * stride + at, gate);
        *total = plus(*total, *gate);
    }
    add_product_of(
        &network.state_transposed,
        &scratch.gates,
        &mut scratch.state_gradient,
    );
    of_decision
}

#[inline(always)]
fn times<T: Real>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
    both(a, b, |a, b| a * b)
}

#[inline(always)]
fn plus<T: Real>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
    both(a, b, |a, b| a + b)
}

#[inline(always)]
fn minus<T: Real>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
    both(a, b, |a, b| a - b)
}

/// `g (1 - g)`, the derivative of a sigmoid with value `g`.
#[inline(always)]
fn slope<T: Real>(g: Lanes<T>) -> Lanes<T> {
    both(g, g, |g, _| g * (T::ONE - g))
}

/// `1 - n^2`, the derivative of a hyperbolic tangent with value `n`.
#[inline(always)]
fn square_slope<T: Real>(n: Lanes<T>) -> Lanes<T> {
    both(n, n, |n, _| T::ONE - n * n)
}

/// Adds the gradients of all weights but the root's state: products over the steps and rows of the
/// tape.
pub(crate) fn add_weight_gradients<T: Real>(
    shape: &NetworkShape,
    tape: &Tape<T>,
    scratch: &mut UnrollScratch<T>,
    gradient: &mut [T],
) {
    let (n_hidden, stride) = (shape.n_hidden, tape.stride());
    let n_rows = shape.n_gate_rows() + shape.n_head_rows();
    product_transposed(
        &mut scratch.product,
        Matrix::new(&scratch.row_gradient, n_rows, stride),
        Matrix::new(&scratch.states, n_hidden, stride),
    );
    let (gates, heads) = scratch.product.split_at(shape.n_gate_rows() * n_hidden);
    add(&mut gradient[shape.state_weights()], gates.iter().copied());
    add(&mut gradient[shape.head_weights()], heads.iter().copied());
    let (gates, rest) = scratch.totals.split_at(shape.n_gate_rows());
    let (heads, candidates) = rest.split_at(shape.n_head_rows());
    add(&mut gradient[shape.state_bias()], gates.iter().map(sum));
    add(&mut gradient[shape.head_bias()], heads.iter().map(sum));
    // the candidate rows of the decision are not those of the state
    let of_decision = gates[..2 * n_hidden].iter().chain(candidates);
    add(&mut gradient[shape.decision_bias()], of_decision.map(sum));
    let of_decision = scratch.of_decision.iter();
    add(
        &mut gradient[shape.decision_weights()],
        of_decision.map(sum),
    );
    scratch.totals.fill(Lanes::of(T::ZERO));
    scratch.of_decision.fill(Lanes::of(T::ZERO));
}

fn add<T: Real>(sums: &mut [T], values: impl Iterator<Item = T>) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

fn sum<T: Real>(lanes: &Lanes<T>) -> T {
    lanes.iter().fold(T::ZERO, |sum, &value| sum + value)
}
