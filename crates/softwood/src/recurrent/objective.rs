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
//!
//! The probability of leaf `l = (i, j)` is that of its upper decisions times that of its lower
//! decisions, `P_l = u_i v_j`, each of about the square root of the number of leaves. Sums over rows
//! are products of two matrices, and the gradients with respect to `u` and `v` are `F v` and `F' u`
//! for the scores `F` of a row as a matrix.

use multiversion::multiversion;

use crate::error::Result;
use crate::numerics::gemm::{Matrix, product_transposed};
use crate::numerics::real::{LANES, Lanes, Real, lanes_at};
use crate::recurrent::lane_product::store;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::routes::HalfRoutes;
use crate::recurrent::unroll::{
    BLOCK, BlockInputs, Decisions, Network, Sharpness, Tape, UnrollKernels, UnrollScratch,
};
use crate::recurrent::unroll_backward::{HeadGradient, add_weight_gradients};
use crate::reserve::reserve;
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

/// Scores that are sums of few products: `f_l(n) = c_l0 + sum_k c_lk t_k(n)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoreTerms<'a, T> {
    /// `c`, leaves x terms.
    pub(crate) coefficients: &'a [T],
    /// `t`, terms without the first x rows of the batch.
    pub(crate) values: &'a [T],
}

/// Where the scores of a batch come from.
#[derive(Debug)]
pub(crate) enum ScoreSource<'a, T, S> {
    Terms(ScoreTerms<'a, T>),
    Leaves(&'a mut S),
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

/// Scratch memory for the routes of a block of rows.
#[derive(Debug)]
pub(crate) struct RouteScratch<T> {
    upper: HalfRoutes<T>,
    lower: HalfRoutes<T>,
    /// Scores or probabilities of all leaves for a chunk of rows.
    leaves: Vec<Lanes<T>>,
    /// Terms of the scores of a chunk of rows, without the first.
    terms: Vec<Lanes<T>>,
    /// Leaves x terms; the first term has `rarity` in it.
    coefficients: Vec<T>,
    /// `u` of a block times weight and term: terms x upper routes x [`BLOCK`].
    weighted: Vec<T>,
    /// `v` of a block: lower routes x [`BLOCK`].
    lower_rows: Vec<T>,
    product: Vec<T>,
    /// Sums over the rows of `w P_l t_k`, terms x leaves; the first are the occupancies.
    sums: Vec<f64>,
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
        let n_upper_levels = shape.depth / 2;
        Self {
            shape,
            entropy,
            sharpness,
            tapes: vec![Tape::new(&shape, false); n_rows.div_ceil(BLOCK)],
            unroll: UnrollScratch::new(&shape),
            routes: RouteScratch {
                upper: HalfRoutes::new(n_upper_levels),
                lower: HalfRoutes::new(shape.depth - n_upper_levels),
                leaves: lanes(n_leaves),
                terms: Vec::new(),
                coefficients: Vec::new(),
                weighted: Vec::new(),
                lower_rows: vec![T::ZERO; BLOCK << (shape.depth - n_upper_levels)],
                product: Vec::new(),
                sums: Vec::new(),
                rarity: vec![T::ZERO; n_leaves],
                right: lanes(shape.depth),
                gradient: lanes(shape.depth),
                of_right: vec![T::ZERO; shape.depth * BLOCK + LANES],
            },
        }
    }

    /// Tries to allocate the memory that batches of this number of rows need.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::error::Error::Memory) when there is not enough.
    pub(crate) fn check_memory(shape: &NetworkShape, n_rows: usize) -> Result<()> {
        let per_row = shape.depth * Tape::<T>::step_len(shape);
        reserve(&mut Vec::<T>::new(), n_rows, per_row)
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
        self.routes.sums[..self.shape.n_leaves()].to_vec()
    }

    /// Sums over the rows of the last batch of their terms, times weight and leaf probability: terms
    /// x leaves.
    pub(crate) fn term_sums(&self) -> &[f64] {
        &self.routes.sums
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

impl<T: Real> RouteScratch<T> {
    /// Prepares the sums of a batch whose scores have this number of terms.
    fn start(&mut self, n_terms: usize) {
        let n_leaves = self.rarity.len();
        self.terms.resize(n_terms - 1, Lanes::of(T::ZERO));
        self.weighted
            .resize(n_terms * self.upper.n_leaves() * BLOCK, T::ZERO);
        self.product.resize(n_terms * n_leaves, T::ZERO);
        self.sums.clear();
        self.sums.resize(n_terms * n_leaves, 0.0);
    }

    /// Adds the sums of the block whose routes were filled last.
    fn add_sums(&mut self) {
        let (n_upper, n_lower) = (self.weighted.len() / BLOCK, self.lower.n_leaves());
        product_transposed(
            &mut self.product,
            Matrix::new(&self.weighted, n_upper, BLOCK),
            Matrix::new(&self.lower_rows, n_lower, BLOCK),
        );
        for (sum, value) in self.sums.iter_mut().zip(&self.product) {
            *sum += value.wide();
        }
    }

    /// Copies the coefficients of the terms and adds the rarity of each leaf to its first one.
    fn set_coefficients(&mut self, coefficients: &[T]) {
        self.coefficients.clear();
        self.coefficients.extend_from_slice(coefficients);
        let n_terms = self.terms.len() + 1;
        let leaves = self.coefficients.chunks_exact_mut(n_terms);
        for (leaf, &rarity) in leaves.zip(&self.rarity) {
            leaf[0] += rarity;
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
        self.evaluate_source(weights, rows, ScoreSource::Leaves(leaves), gradient)
    }

    /// As [`Self::evaluate`], for scores of few terms; [`Self::term_sums`] are then those of the batch.
    pub(crate) fn evaluate_terms(
        &mut self,
        weights: &[T],
        rows: &BatchRows<'_, T>,
        terms: ScoreTerms<'_, T>,
        gradient: &mut [T],
    ) -> f64 {
        let source = ScoreSource::<T, NoLeaves>::Terms(terms);
        self.evaluate_source(weights, rows, source, gradient)
    }

    fn evaluate_source<S: LeafScores<T>>(
        &mut self,
        weights: &[T],
        rows: &BatchRows<'_, T>,
        mut source: ScoreSource<'_, T, S>,
        gradient: &mut [T],
    ) -> f64 {
        let network = Network::new(self.shape, weights, self.sharpness);
        let n_rows = rows.weight.len();
        let (n_terms, values): (usize, &[T]) = match &source {
            ScoreSource::Terms(terms) => {
                let n_terms = terms.coefficients.len() / self.shape.n_leaves();
                (n_terms, terms.values)
            }
            ScoreSource::Leaves(_) => (1, &[]),
        };
        self.routes.start(n_terms);
        for (block, start) in until_cancelled((0..n_rows).step_by(BLOCK).enumerate()) {
            let tape = &mut self.tapes[block];
            let decisions = block_noise(rows, self.shape.depth, block);
            let inputs = block_inputs(rows, start);
            T::forward(&network, &inputs, decisions, tape, &mut self.unroll);
            T::fill_routes(&mut self.routes, tape, rows, values, start);
            self.routes.add_sums();
        }
        let total: f64 = rows.weight.iter().map(|weight| weight.wide()).sum();
        self.set_rarity(total);
        if let ScoreSource::Terms(terms) = &source {
            self.routes.set_coefficients(terms.coefficients);
        }
        let mut value = 0.0;
        for (block, start) in until_cancelled((0..n_rows).step_by(BLOCK).enumerate()) {
            let tape = &self.tapes[block];
            let routes = &mut self.routes;
            value += T::route_gradient(routes, self.entropy, tape, rows, start, &mut source);
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

/// The leaves of scores that are given by their terms.
enum NoLeaves {}

impl<T> LeafScores<T> for NoLeaves {
    fn scores(&self, _: usize, _: &mut [Lanes<T>]) {}
    fn observe(&mut self, _: usize, _: &[Lanes<T>]) {}
}

/// The passes over the rows of the objective, for each number type.
pub(crate) trait RouteKernels: UnrollKernels {
    fn fill_routes(
        routes: &mut RouteScratch<Self>,
        tape: &Tape<Self>,
        rows: &BatchRows<'_, Self>,
        values: &[Self],
        start: usize,
    );
    fn route_gradient<S: LeafScores<Self>>(
        routes: &mut RouteScratch<Self>,
        entropy: EntropyTerms,
        tape: &Tape<Self>,
        rows: &BatchRows<'_, Self>,
        start: usize,
        source: &mut ScoreSource<'_, Self, S>,
    ) -> f64;
}

impl RouteKernels for f32 {
    fn fill_routes(
        routes: &mut RouteScratch<f32>,
        tape: &Tape<f32>,
        rows: &BatchRows<'_, f32>,
        values: &[f32],
        start: usize,
    ) {
        fill_routes_f32(routes, tape, rows, values, start);
    }
    fn route_gradient<S: LeafScores<f32>>(
        routes: &mut RouteScratch<f32>,
        entropy: EntropyTerms,
        tape: &Tape<f32>,
        rows: &BatchRows<'_, f32>,
        start: usize,
        source: &mut ScoreSource<'_, f32, S>,
    ) -> f64 {
        route_gradient_f32(routes, entropy, tape, rows, start, source)
    }
}

/// For tests of gradients.
impl RouteKernels for f64 {
    fn fill_routes(
        routes: &mut RouteScratch<f64>,
        tape: &Tape<f64>,
        rows: &BatchRows<'_, f64>,
        values: &[f64],
        start: usize,
    ) {
        fill_routes(routes, tape, rows, values, start);
    }
    fn route_gradient<S: LeafScores<f64>>(
        routes: &mut RouteScratch<f64>,
        entropy: EntropyTerms,
        tape: &Tape<f64>,
        rows: &BatchRows<'_, f64>,
        start: usize,
        source: &mut ScoreSource<'_, f64, S>,
    ) -> f64 {
        route_gradient(routes, entropy, tape, rows, start, source)
    }
}

impl<T> RouteObjective<T> {
    /// `k W D ln 2`.
    fn constant(&self, total: f64) -> f64 {
        self.entropy.kl_weight * total * self.shape.depth as f64 * std::f64::consts::LN_2
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn fill_routes_f32(
    routes: &mut RouteScratch<f32>,
    tape: &Tape<f32>,
    rows: &BatchRows<'_, f32>,
    values: &[f32],
    start: usize,
) {
    fill_routes(routes, tape, rows, values, start);
}

/// Fills the probabilities of the upper routes of a block, times weight and terms, and of the lower
/// routes.
#[inline(always)]
fn fill_routes<T: Real>(
    routes: &mut RouteScratch<T>,
    tape: &Tape<T>,
    rows: &BatchRows<'_, T>,
    values: &[T],
    start: usize,
) {
    let n_upper = routes.upper.n_leaves();
    let n_rows = rows.weight.len();
    for chunk in 0..BLOCK / LANES {
        let at = start + chunk * LANES;
        let weight = lanes_at(rows.weight, at);
        load_right(routes, tape, chunk);
        for (route, p) in routes.lower.leaves().iter().enumerate() {
            store(&mut routes.lower_rows, route * BLOCK + chunk * LANES, p);
        }
        for term in 0..=routes.terms.len() {
            let mut factor = weight;
            if term > 0 {
                let value = lanes_at(values, (term - 1) * n_rows + at);
                for lane in 0..LANES {
                    factor[lane] = factor[lane] * value[lane];
                }
            }
            for (route, p) in routes.upper.leaves().iter().enumerate() {
                let mut weighted = *p;
                for lane in 0..LANES {
                    weighted[lane] = p[lane] * factor[lane];
                }
                let place = (term * n_upper + route) * BLOCK + chunk * LANES;
                store(&mut routes.weighted, place, &weighted);
            }
        }
    }
}

/// Loads the probabilities of going right of a chunk of rows, and fills those of both halves of the
/// routes.
#[inline(always)]
fn load_right<T: Real>(routes: &mut RouteScratch<T>, tape: &Tape<T>, chunk: usize) {
    for (step, right) in routes.right.iter_mut().enumerate() {
        *right = lanes_at(&tape.right, Tape::<T>::at(step, chunk));
    }
    let (upper, lower) = routes.right.split_at(routes.upper.n_levels());
    routes.upper.fill(upper);
    routes.lower.fill(lower);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn route_gradient_f32<S: LeafScores<f32>>(
    routes: &mut RouteScratch<f32>,
    entropy: EntropyTerms,
    tape: &Tape<f32>,
    rows: &BatchRows<'_, f32>,
    start: usize,
    source: &mut ScoreSource<'_, f32, S>,
) -> f64 {
    route_gradient(routes, entropy, tape, rows, start, source)
}

/// The objective of a block without its constant; fills the gradient with respect to `q`.
#[inline(always)]
fn route_gradient<T: Real, S: LeafScores<T>>(
    routes: &mut RouteScratch<T>,
    entropy: EntropyTerms,
    tape: &Tape<T>,
    rows: &BatchRows<'_, T>,
    start: usize,
    source: &mut ScoreSource<'_, T, S>,
) -> f64 {
    let factor = T::of(entropy.kl_weight * entropy.row_sign);
    let mut value = Lanes::of(T::ZERO);
    for chunk in 0..BLOCK / LANES {
        let at = start + chunk * LANES;
        let weight = lanes_at(rows.weight, at);
        load_right(routes, tape, chunk);
        match source {
            ScoreSource::Terms(terms) => {
                contract_terms(routes, terms.values, rows.weight.len(), at);
            }
            ScoreSource::Leaves(leaves) => {
                leaves.scores(at, &mut routes.leaves);
                contract_scores(routes);
            }
        }
        let (right, gradient) = (&routes.right, &mut routes.gradient);
        let n_upper = routes.upper.n_levels();
        gradient.fill(Lanes::of(T::ZERO));
        let root = routes
            .upper
            .expectations(&right[..n_upper], &mut gradient[..n_upper]);
        routes
            .lower
            .expectations(&right[n_upper..], &mut gradient[n_upper..]);
        for lane in 0..LANES {
            value[lane] = weight[lane].fma(root[lane], value[lane]);
        }
        for (step, (right, gradient)) in right.iter().zip(gradient).enumerate() {
            let mut sum = *gradient;
            for lane in 0..LANES {
                let (h, slope) = binary_entropy(right[lane]);
                value[lane] = (weight[lane] * factor).fma(h, value[lane]);
                sum[lane] = weight[lane] * factor.fma(slope, sum[lane]);
            }
            store(&mut routes.of_right, Tape::<T>::at(step, chunk), &sum);
        }
        if let ScoreSource::Leaves(leaves) = source {
            fill_leaves(routes, &weight);
            leaves.observe(at, &routes.leaves);
        }
    }
    value.iter().map(|value| value.wide()).sum()
}

/// `F v` and `F' u` for scores of few terms.
#[inline(always)]
fn contract_terms<T: Real>(routes: &mut RouteScratch<T>, values: &[T], n_rows: usize, at: usize) {
    for (term, lanes) in routes.terms.iter_mut().enumerate() {
        *lanes = lanes_at(values, term * n_rows + at);
    }
    let (terms, coefficients) = (&routes.terms, &routes.coefficients);
    if let [first, second] = terms[..] {
        HalfRoutes::contract(&mut routes.upper, &mut routes.lower, |leaf| {
            let c = &coefficients[3 * leaf..3 * leaf + 3];
            let mut score = Lanes::of(c[0]);
            for lane in 0..LANES {
                score[lane] = c[1].fma(first[lane], score[lane]);
                score[lane] = c[2].fma(second[lane], score[lane]);
            }
            score
        });
        return;
    }
    let n_terms = terms.len() + 1;
    HalfRoutes::contract(&mut routes.upper, &mut routes.lower, |leaf| {
        let c = &coefficients[leaf * n_terms..(leaf + 1) * n_terms];
        let mut score = Lanes::of(c[0]);
        for (&c, term) in c[1..].iter().zip(terms) {
            for lane in 0..LANES {
                score[lane] = c.fma(term[lane], score[lane]);
            }
        }
        score
    });
}

/// `F v` and `F' u` for the scores of all leaves.
#[inline(always)]
fn contract_scores<T: Real>(routes: &mut RouteScratch<T>) {
    let (scores, rarity) = (&routes.leaves, &routes.rarity);
    HalfRoutes::contract(&mut routes.upper, &mut routes.lower, |leaf| {
        let mut score = scores[leaf];
        for lane in 0..LANES {
            score[lane] += rarity[leaf];
        }
        score
    });
}

/// Fills the probabilities of all leaves of a chunk of rows, times their weight.
#[inline(always)]
fn fill_leaves<T: Real>(routes: &mut RouteScratch<T>, weight: &Lanes<T>) {
    let n_lower = routes.lower.n_leaves();
    let leaves = routes.leaves.chunks_exact_mut(n_lower);
    for (leaves, upper) in leaves.zip(routes.upper.leaves()) {
        for (leaf, lower) in leaves.iter_mut().zip(routes.lower.leaves()) {
            for lane in 0..LANES {
                leaf[lane] = weight[lane] * upper[lane] * lower[lane];
            }
        }
    }
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
