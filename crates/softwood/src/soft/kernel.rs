//! One fused pass over a block of activations: gates, path probabilities, component densities, responsibilities, and
//! the gradient with respect to every activation, written over it.
//!
//! With `t_n = beta a_n`, `g_n = sigmoid(t_n)`, components `c` at level `m`, conditional reach `q` below `c`, blended
//! channels `F_n = (1 - g_n) F_left + g_n F_right`, responsibilities `r_c` and their subtree sums `R`:
//!
//! - levels above `m`: `d ll/d t_n = R_right - g_n R_n`
//! - levels below `m`: `d ll/d t_n = q_n g_n (1 - g_n) sum_k delta_k (F_right,k - F_left,k)`, `delta = r_c d log f_c/d F_c`
//! - leaves: `d ll/d leaf_k = delta_k q_leaf`
//!
//! Activations are activations x rows, rows contiguous. Lanes are rows.

use multiversion::multiversion;

use crate::numerics::real::{LANES, Lanes, Real, both, gate, sigmoid};
use crate::soft::blend::{blend_up, lanes_at};
use crate::soft::law::Law;
use crate::soft::layout::Layout;

/// Reach probabilities are held above this, so that their products with gradients stay normal numbers.
const LEAST_REACH: f64 = 1e-12;

/// What a pass needs to know of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    pub(crate) layout: Layout,
    pub(crate) law: Law,
    /// Inverse temperature of the gates.
    pub(crate) beta: f64,
}

/// Room for one chunk of lanes; made once per worker.
#[derive(Debug, Clone)]
pub(crate) struct Scratch<T> {
    /// sigmoid of every gate.
    gates: Vec<Lanes<T>>,
    /// Log reach above the mixing level, reach below it.
    reach: Vec<Lanes<T>>,
    /// Blended channels, node-major: `node * n_channels + channel`.
    blended: Vec<Lanes<T>>,
    /// Gradient of each component's log density, component-major.
    slopes: Vec<Lanes<T>>,
    /// Responsibilities and their subtree sums, by heap node.
    shares: Vec<Lanes<T>>,
    /// Greatest log density of a component and sum of the densities relative to it. They stand in memory because
    /// the compiler gives up vectors for a loop that carries them in an array of its own.
    top: Lanes<T>,
    sum: Lanes<T>,
}

impl<T: Real> Scratch<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        let n_nodes = 2 * layout.n_leaves() - 1;
        let zeros = |len: usize| vec![Lanes::of(T::ZERO); len];
        Self {
            gates: zeros(layout.n_gates()),
            reach: zeros(n_nodes),
            blended: zeros(n_nodes * layout.n_channels),
            slopes: zeros(layout.n_components() * layout.n_channels),
            shares: zeros(n_nodes),
            top: Lanes::of(T::ZERO),
            sum: Lanes::of(T::ZERO),
        }
    }
}

/// Rows of a block: `activations` is `n_activations x n_rows`; `target` and `weight` have `n_rows` values. The number of
/// rows is a multiple of the lanes; padding rows have weight 0.
#[derive(Debug)]
pub(crate) struct BlockRows<'a, T> {
    pub(crate) activations: &'a mut [T],
    pub(crate) target: &'a [T],
    pub(crate) weight: &'a [T],
    /// Log-likelihood of each row, unweighted: an answer.
    pub(crate) scores: &'a mut [T],
}

/// [`gradient`] in single precision, compiled for the processor at hand.
#[multiversion(targets = "simd")]
pub(crate) fn gradient_f32(pass: &Pass, rows: &mut BlockRows<'_, f32>, scratch: &mut Scratch<f32>) {
    gradient(pass, rows, scratch);
}

/// Replaces activations by weighted gradients of the log-likelihood, and writes each row's log-likelihood.
#[inline(always)]
pub(crate) fn gradient<T: Real>(
    pass: &Pass,
    rows: &mut BlockRows<'_, T>,
    scratch: &mut Scratch<T>,
) {
    let n_rows = rows.target.len();
    for start in (0..n_rows).step_by(LANES) {
        let mut view = View {
            activations: rows.activations,
            n_rows,
            start,
        };
        let target = lanes_at(rows.target, start);
        let weight = lanes_at(rows.weight, start);
        let scores = chunk(pass, &mut view, &target, &weight, scratch);
        rows.scores[start..start + LANES].copy_from_slice(&scores[..]);
    }
}

/// One chunk of lanes of the activations.
struct View<'a, T> {
    activations: &'a mut [T],
    n_rows: usize,
    start: usize,
}

impl<T: Real> View<'_, T> {
    #[inline(always)]
    fn get(&self, activation: usize) -> Lanes<T> {
        lanes_at(self.activations, activation * self.n_rows + self.start)
    }
    #[inline(always)]
    fn set(&mut self, activation: usize, value: &Lanes<T>) {
        let at = activation * self.n_rows + self.start;
        self.activations[at..at + LANES].copy_from_slice(&value[..]);
    }
}

#[inline(always)]
fn chunk<T: Real>(
    pass: &Pass,
    view: &mut View<'_, T>,
    target: &Lanes<T>,
    weight: &Lanes<T>,
    scratch: &mut Scratch<T>,
) -> Lanes<T> {
    descend(pass, view, scratch);
    let leaves = |activation| view.get(activation);
    blend_up(&pass.layout, leaves, &scratch.gates, &mut scratch.blended);
    let scores = components(pass, target, weight, scratch);
    choosing_gates(pass, view, scratch);
    blending_gates(pass, view, scratch);
    scores
}

/// Gates and reach, from the root down.
#[inline(always)]
fn descend<T: Real>(pass: &Pass, view: &View<'_, T>, scratch: &mut Scratch<T>) {
    let beta = T::of(pass.beta);
    let n_choosing = pass.layout.n_components() - 1;
    scratch.reach[0] = Lanes::of(T::ZERO);
    for node in 0..n_choosing {
        let a = view.get(node);
        let up = scratch.reach[node];
        let (mut left, mut right, mut g) = (up, up, up);
        for lane in 0..LANES {
            let (value, above, below) = gate(beta * a[lane]);
            g[lane] = value;
            left[lane] = up[lane] - above;
            right[lane] = up[lane] - below;
        }
        scratch.gates[node] = g;
        scratch.reach[2 * node + 1] = left;
        scratch.reach[2 * node + 2] = right;
    }
    for node in n_choosing..pass.layout.n_gates() {
        let a = view.get(node);
        let is_top = node < 2 * n_choosing + 1;
        let up = if is_top {
            Lanes::of(T::ONE)
        } else {
            scratch.reach[node]
        };
        let (mut left, mut right, mut g) = (up, up, up);
        for lane in 0..LANES {
            let value = sigmoid(beta * a[lane]);
            g[lane] = value;
            right[lane] = (up[lane] * value).largest(T::of(LEAST_REACH));
            left[lane] = (up[lane] - up[lane] * value).largest(T::of(LEAST_REACH));
        }
        scratch.gates[node] = g;
        scratch.reach[2 * node + 1] = left;
        scratch.reach[2 * node + 2] = right;
    }
}

/// Densities of the components, their log-sum-exp, and weighted responsibilities.
#[inline(always)]
fn components<T: Real>(
    pass: &Pass,
    target: &Lanes<T>,
    weight: &Lanes<T>,
    scratch: &mut Scratch<T>,
) -> Lanes<T> {
    let n_channels = pass.layout.n_channels;
    let first = pass.layout.n_components() - 1;
    let last = 2 * first + 1;
    scratch.top = Lanes::of(T::of(-1e30));
    for node in first..last {
        let z = &scratch.blended[node * n_channels..(node + 1) * n_channels];
        let slopes =
            &mut scratch.slopes[(node - first) * n_channels..(node - first + 1) * n_channels];
        let density = pass.law.log_density(z, target, slopes);
        let joint = both(density, scratch.reach[node], |f, reach| f + reach);
        scratch.shares[node] = joint;
        scratch.top = both(scratch.top, joint, Real::largest);
    }
    if first == 0 {
        let scores = scratch.shares[0];
        scratch.shares[0] = *weight;
        return scores;
    }
    scratch.sum = Lanes::of(T::ZERO);
    for node in first..last {
        let relative = both(scratch.shares[node], scratch.top, |a, b| (a - b).exp());
        scratch.shares[node] = relative;
        scratch.sum = both(scratch.sum, relative, |a, b| a + b);
    }
    let factor = both(*weight, scratch.sum, |weight, sum| weight / sum);
    for node in first..last {
        scratch.shares[node] = both(scratch.shares[node], factor, |share, factor| share * factor);
    }
    both(scratch.top, scratch.sum, |top, sum| top + sum.ln())
}

/// Gradients of the gates that choose a component.
#[inline(always)]
fn choosing_gates<T: Real>(pass: &Pass, view: &mut View<'_, T>, scratch: &mut Scratch<T>) {
    let beta = T::of(pass.beta);
    for node in (0..pass.layout.n_components() - 1).rev() {
        let (left, right) = (scratch.shares[2 * node + 1], scratch.shares[2 * node + 2]);
        let sum = both(left, right, |left, right| left + right);
        let part = both(scratch.gates[node], sum, |g, sum| g * sum);
        let out = both(right, part, |right, part| beta * (right - part));
        scratch.shares[node] = sum;
        view.set(node, &out);
    }
}

/// Gradients of the gates that blend, and of the leaves. `shares` of a node below a component is not used: the reach
/// inside the component and the component's slopes carry everything.
#[inline(always)]
fn blending_gates<T: Real>(pass: &Pass, view: &mut View<'_, T>, scratch: &mut Scratch<T>) {
    let layout = &pass.layout;
    let (n_gates, n_leaves, n_channels) = (layout.n_gates(), layout.n_leaves(), layout.n_channels);
    let beta = T::of(pass.beta);
    let first = layout.n_components() - 1;
    for component in 0..=first {
        let share = scratch.shares[first + component];
        for slope in &mut scratch.slopes[component * n_channels..(component + 1) * n_channels] {
            *slope = both(*slope, share, |slope, share| slope * share);
        }
    }
    for level in layout.mixing_levels..layout.depth {
        let below = level - layout.mixing_levels;
        for node in (1 << level) - 1..(2 << level) - 1 {
            let component = (node + 1 - (1 << level)) >> below;
            let mut pull = Lanes::of(T::ZERO);
            for channel in 0..n_channels {
                let slope = scratch.slopes[component * n_channels + channel];
                let left = scratch.blended[(2 * node + 1) * n_channels + channel];
                let right = scratch.blended[(2 * node + 2) * n_channels + channel];
                let apart = both(right, left, |right, left| right - left);
                for lane in 0..LANES {
                    pull[lane] = slope[lane].fma(apart[lane], pull[lane]);
                }
            }
            let (g, right) = (scratch.gates[node], scratch.reach[2 * node + 2]);
            for lane in 0..LANES {
                pull[lane] = beta * pull[lane] * right[lane] * (T::ONE - g[lane]);
            }
            view.set(node, &pull);
        }
    }
    let below = layout.depth - layout.mixing_levels;
    for leaf in 0..n_leaves {
        let component = leaf >> below;
        let reach = if below == 0 {
            Lanes::of(T::ONE)
        } else {
            scratch.reach[n_gates + leaf]
        };
        for channel in 0..n_channels {
            let slope = scratch.slopes[component * n_channels + channel];
            let out = both(slope, reach, |slope, reach| slope * reach);
            view.set(n_gates + channel * n_leaves + leaf, &out);
        }
    }
}
