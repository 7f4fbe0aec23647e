//! The training objective of a batch of rows and its gradient with respect to all weights.
//!
//! With row weights `w_n`, leaf probabilities `P_l(x_n)`, leaf scores `f_l(n)` (for example log
//! densities), `N_l = sum_n w_n P_l(x_n)` and `W = sum_n w_n`:
//!
//! ```text
//! L  = sum_n w_n sum_l P_l(x_n) f_l(n) - k KL
//! KL = - s sum_n w_n sum_d H(q_d(x_n)) - sum_v N_v H(alpha_v) + W D ln 2
//! ```
//!
//! The sum over nodes `v` is that of the aggregated decisions, `alpha_v` being the weighted share of
//! the rows of `v` that go right. By the chain rule of entropy it equals `W` times the entropy of
//! the leaf occupancies `N_l / W`, so that only these are needed: the gradient of `-KL` with respect
//! to `P_l(x_n)` is `-w_n ln(N_l / W)` up to a constant. `s` is 1 for the evidence lower bound; with
//! `s = -1` the regulariser is the mutual information of route and row.

use multiversion::multiversion;

use crate::numerics::real::{LANES, Lanes, Real, lanes_at};
use crate::recurrent::lane_product::store;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::routes::{expectations, probabilities};
use crate::recurrent::unroll::{
    BLOCK, BlockInputs, Decisions, HeadGradient, Network, Sharpness, Tape, UnrollKernels,
    UnrollScratch, add_weight_gradients,
};
use crate::stop::until_cancelled;

/// Probabilities are kept this far from 0 and 1 in logarithms.
const MIN_PROBABILITY: f64 = 1e-6;
/// Smallest occupancy of a leaf, relative to all rows, in the logarithm.
const MIN_OCCUPANCY: f64 = 1e-9;

/// Weight and sign of the entropy terms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntropyTerms {
    /// `k`, the weight of the KL divergence.
    pub(crate) kl_weight: f64,
    /// `s`, the sign of the entropy of the decisions of each row.
    pub(crate) row_sign: f64,
}

/// Rows of a batch. Their number is a multiple of [`BLOCK`]; padding rows have weight 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRows<'a, T> {
    /// Encoded inputs, inputs x rows.
    pub(crate) inputs: &'a [T],
    pub(crate) weight: &'a [T],
    /// Noise of the decisions: blocks x steps x [`BLOCK`].
    pub(crate) noise: &'a [T],
}

/// Scores of the leaves for each row, and what they learn from the routes.
pub(crate) trait LeafScores<T> {
    /// Writes the score of every leaf for a chunk of rows of the batch, which begins at row `at`.
    fn scores(&self, at: usize, out: &mut [Lanes<T>]);
    /// Receives the leaf probabilities of a chunk of rows, times the weight of each row.
    fn observe(&mut self, at: usize, probability: &[Lanes<T>]);
}

/// Memory of the objective, for batches of a given number of rows.
#[derive(Debug)]
pub(crate) struct RouteObjective<T> {
    shape: NetworkShape,
    entropy: EntropyTerms,
    sharpness: Sharpness,
    tapes: Vec<Tape<T>>,
    unroll: UnrollScratch<T>,
    routes: RouteScratch<T>,
}

/// Scratch memory for the routes of a chunk of rows.
#[derive(Debug)]
pub(crate) struct RouteScratch<T> {
    /// Nodes in heap order.
    probability: Vec<Lanes<T>>,
    values: Vec<Lanes<T>>,
    occupancy: Vec<Lanes<T>>,
    /// `-k ln(N_l / W)`.
    rarity: Vec<T>,
    /// One entry per level.
    right: Vec<Lanes<T>>,
    gradient: Vec<Lanes<T>>,
    /// Gradient with respect to `q` of a block, steps x [`BLOCK`].
    of_right: Vec<T>,
}

impl<T: Real> RouteObjective<T> {
    pub(crate) fn new(
        shape: NetworkShape,
        n_rows: usize,
        entropy: EntropyTerms,
        sharpness: Sharpness,
    ) -> Self {
        let lanes = |n: usize| vec![Lanes::of(T::ZERO); n];
        let n_leaves = shape.n_leaves();
        Self {
            shape,
            entropy,
            sharpness,
            tapes: vec![Tape::new(&shape, false); n_rows.div_ceil(BLOCK)],
            unroll: UnrollScratch::new(&shape),
            routes: RouteScratch {
                probability: lanes(2 * n_leaves),
                values: lanes(2 * n_leaves),
                occupancy: lanes(n_leaves),
                rarity: vec![T::ZERO; n_leaves],
                right: lanes(shape.depth),
                gradient: lanes(shape.depth),
                of_right: vec![T::ZERO; shape.depth * BLOCK + LANES],
            },
        }
    }

    /// Changes the weight of the KL divergence.
    pub(crate) fn set_kl_weight(&mut self, kl_weight: f64) {
        self.entropy.kl_weight = kl_weight;
    }

    /// Changes how hard the network decides.
    pub(crate) fn set_sharpness(&mut self, sharpness: Sharpness) {
        self.sharpness = sharpness;
    }

    /// Weight of the rows of each leaf in the last batch.
    pub(crate) fn occupancy(&self) -> Vec<f64> {
        let sum = |lanes: &Lanes<T>| lanes.iter().map(|value| value.wide()).sum();
        self.routes.occupancy.iter().map(sum).collect()
    }

    /// Occupancies of the leaves, which the gradient needs before its pass over the rows.
    fn set_rarity(&mut self, total: f64) {
        let occupancy = self.occupancy();
        for (rarity, n) in self.routes.rarity.iter_mut().zip(occupancy) {
            let share = (n / total).max(MIN_OCCUPANCY);
            *rarity = T::of(-self.entropy.kl_weight * share.ln());
        }
    }
}

/// Inputs of the block that begins at row `start`.
fn block_inputs<'a, T: Real>(rows: &BatchRows<'a, T>, start: usize) -> BlockInputs<'a, T> {
    BlockInputs {
        values: rows.inputs,
        stride: rows.weight.len(),
        start,
    }
}

/// Noise of a block.
fn block_noise<'a, T: Real>(
    rows: &BatchRows<'a, T>,
    depth: usize,
    block: usize,
) -> Decisions<'a, T> {
    let length = depth * BLOCK;
    Decisions::Noisy(&rows.noise[block * length..(block + 1) * length])
}

impl<T: RouteKernels> RouteObjective<T> {
    /// The objective of a batch; adds its gradient to `gradient`, one value per weight of the network.
    pub(crate) fn evaluate(
        &mut self,
        weights: &[T],
        rows: &BatchRows<'_, T>,
        leaves: &mut impl LeafScores<T>,
        gradient: &mut [T],
    ) -> f64 {
        let network = Network::new(self.shape, weights, self.sharpness);
        let n_rows = rows.weight.len();
        self.routes.occupancy.fill(Lanes::of(T::ZERO));
        for (block, start) in until_cancelled((0..n_rows).step_by(BLOCK).enumerate()) {
            let tape = &mut self.tapes[block];
            let decisions = block_noise(rows, self.shape.depth, block);
            let inputs = block_inputs(rows, start);
            T::forward(&network, &inputs, decisions, tape, &mut self.unroll);
            T::add_occupancy(&mut self.routes, tape, &rows.weight[start..start + BLOCK]);
        }
        let total: f64 = rows.weight.iter().map(|weight| weight.wide()).sum();
        self.set_rarity(total);
        let mut value = 0.0;
        for (block, start) in until_cancelled((0..n_rows).step_by(BLOCK).enumerate()) {
            let tape = &self.tapes[block];
            value += T::route_gradient(&mut self.routes, self.entropy, tape, rows, start, leaves);
            let entering = HeadGradient::OfRight(&self.routes.of_right);
            let inputs = block_inputs(rows, start);
            T::backward_lanes(
                &network,
                &inputs,
                tape,
                entering,
                &mut self.unroll,
                gradient,
            );
            add_weight_gradients(&self.shape, tape, &mut self.unroll, gradient);
        }
        value - self.constant(total)
    }
}

/// The passes over the rows of the objective, for each number type.
pub(crate) trait RouteKernels: UnrollKernels {
    fn add_occupancy(routes: &mut RouteScratch<Self>, tape: &Tape<Self>, weight: &[Self]);
    fn route_gradient<S: LeafScores<Self>>(
        routes: &mut RouteScratch<Self>,
        entropy: EntropyTerms,
        tape: &Tape<Self>,
        rows: &BatchRows<'_, Self>,
        start: usize,
        leaves: &mut S,
    ) -> f64;
}

impl RouteKernels for f32 {
    fn add_occupancy(routes: &mut RouteScratch<f32>, tape: &Tape<f32>, weight: &[f32]) {
        add_occupancy_f32(routes, tape, weight);
    }
    fn route_gradient<S: LeafScores<f32>>(
        routes: &mut RouteScratch<f32>,
        entropy: EntropyTerms,
        tape: &Tape<f32>,
        rows: &BatchRows<'_, f32>,
        start: usize,
        leaves: &mut S,
    ) -> f64 {
        route_gradient_f32(routes, entropy, tape, rows, start, leaves)
    }
}

/// For tests of gradients.
impl RouteKernels for f64 {
    fn add_occupancy(routes: &mut RouteScratch<f64>, tape: &Tape<f64>, weight: &[f64]) {
        add_occupancy(routes, tape, weight);
    }
    fn route_gradient<S: LeafScores<f64>>(
        routes: &mut RouteScratch<f64>,
        entropy: EntropyTerms,
        tape: &Tape<f64>,
        rows: &BatchRows<'_, f64>,
        start: usize,
        leaves: &mut S,
    ) -> f64 {
        route_gradient(routes, entropy, tape, rows, start, leaves)
    }
}

impl<T> RouteObjective<T> {
    /// `k W D ln 2`.
    fn constant(&self, total: f64) -> f64 {
        self.entropy.kl_weight * total * self.shape.depth as f64 * std::f64::consts::LN_2
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_occupancy_f32(routes: &mut RouteScratch<f32>, tape: &Tape<f32>, weight: &[f32]) {
    add_occupancy(routes, tape, weight);
}

/// Adds the leaf probabilities of a block to the occupancies.
#[inline(always)]
fn add_occupancy<T: Real>(routes: &mut RouteScratch<T>, tape: &Tape<T>, weight: &[T]) {
    for chunk in 0..BLOCK / LANES {
        let weight = lanes_at(weight, chunk * LANES);
        load_right(routes, tape, chunk);
        probabilities(&routes.right, &mut routes.probability);
        let n_leaves = routes.occupancy.len();
        let leaves = &routes.probability[n_leaves..];
        for (sum, p) in routes.occupancy.iter_mut().zip(leaves) {
            for lane in 0..LANES {
                sum[lane] = weight[lane].fma(p[lane], sum[lane]);
            }
        }
    }
}

#[inline(always)]
fn load_right<T: Real>(routes: &mut RouteScratch<T>, tape: &Tape<T>, chunk: usize) {
    for (step, right) in routes.right.iter_mut().enumerate() {
        *right = lanes_at(&tape.right, Tape::<T>::at(step, chunk));
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn route_gradient_f32<S: LeafScores<f32>>(
    routes: &mut RouteScratch<f32>,
    entropy: EntropyTerms,
    tape: &Tape<f32>,
    rows: &BatchRows<'_, f32>,
    start: usize,
    leaves: &mut S,
) -> f64 {
    route_gradient(routes, entropy, tape, rows, start, leaves)
}

/// The objective of a block without its constant; fills the gradient with respect to `q`.
#[inline(always)]
fn route_gradient<T: Real>(
    routes: &mut RouteScratch<T>,
    entropy: EntropyTerms,
    tape: &Tape<T>,
    rows: &BatchRows<'_, T>,
    start: usize,
    leaves: &mut impl LeafScores<T>,
) -> f64 {
    let n_leaves = routes.occupancy.len();
    let factor = T::of(entropy.kl_weight * entropy.row_sign);
    let mut value = Lanes::of(T::ZERO);
    for chunk in 0..BLOCK / LANES {
        let at = start + chunk * LANES;
        let weight = lanes_at(rows.weight, at);
        load_right(routes, tape, chunk);
        probabilities(&routes.right, &mut routes.probability);
        leaves.scores(at, &mut routes.values[n_leaves..]);
        for (score, &rarity) in routes.values[n_leaves..].iter_mut().zip(&routes.rarity) {
            for lane in 0..LANES {
                score[lane] += rarity;
            }
        }
        routes.gradient.fill(Lanes::of(T::ZERO));
        expectations(
            &routes.right,
            &routes.probability,
            &mut routes.values,
            &mut routes.gradient,
        );
        let root = routes.values[1];
        for lane in 0..LANES {
            value[lane] = weight[lane].fma(root[lane], value[lane]);
        }
        for (step, (right, gradient)) in routes.right.iter().zip(&routes.gradient).enumerate() {
            let mut sum = *gradient;
            for lane in 0..LANES {
                let (h, slope) = binary_entropy(right[lane]);
                value[lane] = (weight[lane] * factor).fma(h, value[lane]);
                sum[lane] = weight[lane] * factor.fma(slope, sum[lane]);
            }
            store(&mut routes.of_right, Tape::<T>::at(step, chunk), &sum);
        }
        let probability = &mut routes.probability[n_leaves..];
        for p in &mut *probability {
            for lane in 0..LANES {
                p[lane] = p[lane] * weight[lane];
            }
        }
        leaves.observe(at, probability);
    }
    value.iter().map(|value| value.wide()).sum()
}

/// Entropy of a decision in nats, and its derivative.
#[inline(always)]
fn binary_entropy<T: Real>(q: T) -> (T, T) {
    let (low, high) = (T::of(MIN_PROBABILITY), T::of(1.0 - MIN_PROBABILITY));
    let q = q.largest(low);
    let q = if q < high { q } else { high };
    let (ln_q, ln_rest) = (q.ln(), (T::ONE - q).ln());
    (-(q * ln_q) - (T::ONE - q) * ln_rest, ln_rest - ln_q)
}
