//! Gaussian posterior with covariance `D (I + U U') D`, where `D = diag(sd)` and `U` has `rank`
//! columns: a diagonal part and a low-rank part `V = D U`. Steps in `ln sd` and `U` are relative to
//! the posterior scale of each weight, so that one learning rate suits all weights.
//!
//! With `M = I + U'U`, `A = M^-1` and prior variances `gamma_i`:
//!
//! - `KL = 1/2 [ sum_i ((sd_i^2 (1 + |U_i|^2) + mu_i^2)/gamma_i - ln sd_i^2 + ln gamma_i - 1)`
//!   `- ln det M ]`
//! - `dKL/dmu = mu/gamma`, `dKL/dln sd = sd^2 (1 + |U|^2)/gamma - 1`, `dKL/dU = sd^2 U/gamma - U A`
//!
//! A draw is `mu + sd (eps + U z)`; draws come in antithetic pairs `(eps, z)`, `(-eps, -z)`.
//!
//! The weights may form independent blocks: each block then has a `z` and an `M` of its own, and the
//! KL divergence is a sum over the blocks, which a model may weigh.

use std::ops::Range;

use multiversion::multiversion;

use crate::numerics::cholesky;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::{LANES, Real};
use crate::rng::Key;
use crate::stop::until_cancelled;

/// Initial standard deviation of the posterior for a prior scale of one or more.
pub(crate) const INITIAL_SD: f64 = 0.05;
/// Initial scale of the low-rank part relative to the diagonal; zero would be a saddle point.
const INITIAL_CORRELATION: f64 = 0.1;

/// Number of Normal numbers that are drawn between two checks whether the work is cancelled; a
/// multiple of the chunks of [`Gaussian`].
const NOISE_AT_ONCE: usize = 1 << 20;

/// A low-rank Gaussian posterior over `n_weights` weights.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LowRank {
    pub(crate) n_weights: usize,
    pub(crate) rank: usize,
    /// Variational parameters: means, logarithms of `sd`, then the columns of U.
    pub(crate) values: Vec<f32>,
    /// Ends of the independent blocks of weights; empty if all weights are one block.
    pub(crate) block_ends: Vec<usize>,
}

/// Weights that are accepted from a file. With inputs of at most 1000 standard deviations and
/// [`MAX_LOG_SD`], no activation of a tree overflows in single precision.
const MAX_WEIGHT: f32 = 1e12;
/// Largest entry of `U` that is accepted from a file.
const MAX_FACTOR: f32 = 1e9;
/// Logarithms of standard deviations that are accepted from a file.
const MIN_LOG_SD: f32 = -80.0;
const MAX_LOG_SD: f32 = 20.0;

impl LowRank {
    /// Whether all values of a posterior that was read from a file are in their ranges.
    pub(crate) fn is_in_range(&self) -> bool {
        self.mean().iter().all(|mean| mean.abs() <= MAX_WEIGHT)
            && (self.log_sd().iter()).all(|log_sd| (MIN_LOG_SD..=MAX_LOG_SD).contains(log_sd))
            && self.factors().iter().all(|u| u.abs() <= MAX_FACTOR)
    }

    /// A narrow and almost uncorrelated posterior with these means, to start training from.
    pub(crate) fn initial(means: Vec<f32>, rank: usize, prior_scale: f64, key: Key) -> Self {
        let n_weights = means.len();
        let rank = rank.min(n_weights);
        let sd = INITIAL_SD * prior_scale.min(1.0);
        let mut values = means;
        values.resize(2 * n_weights, sd.ln() as f32);
        let mut factors = vec![0.0; rank * n_weights];
        Gaussian::new(key).fill(&mut factors);
        let factor_scale = (INITIAL_CORRELATION / (rank as f64).sqrt()) as f32;
        values.extend(factors.iter().map(|factor| factor_scale * factor));
        Self {
            n_weights,
            rank,
            values,
            block_ends: Vec::new(),
        }
    }

    /// This posterior with independent blocks that end at these weights; the last one ends at
    /// `n_weights`.
    pub(crate) fn with_blocks(self, block_ends: Vec<usize>) -> Self {
        debug_assert!(block_ends.is_sorted() && block_ends.last() == Some(&self.n_weights));
        Self { block_ends, ..self }
    }

    /// One posterior over the weights of several posteriors. They share the columns of the low-rank
    /// part from then on, unless the result is given blocks.
    pub(crate) fn concatenated(blocks: &[Self]) -> Self {
        let rank = blocks.iter().map(|block| block.rank).max().unwrap_or(0);
        let n_weights = blocks.iter().map(|block| block.n_weights).sum();
        let mut values = Vec::with_capacity(n_weights * (rank + 2));
        for block in blocks {
            values.extend_from_slice(block.mean());
        }
        for block in blocks {
            values.extend_from_slice(block.log_sd());
        }
        for column in 0..rank {
            for block in blocks {
                let n = block.n_weights;
                match block.factors().get(column * n..(column + 1) * n) {
                    Some(factor) => values.extend_from_slice(factor),
                    None => values.extend(std::iter::repeat_n(0.0, n)),
                }
            }
        }
        Self {
            n_weights,
            rank,
            values,
            block_ends: Vec::new(),
        }
    }

    /// Number of independent blocks.
    pub(crate) fn n_blocks(&self) -> usize {
        self.block_ends.len().max(1)
    }

    /// Range of the weights of each block.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Range<usize>> {
        let single = self.block_ends.is_empty().then_some(self.n_weights);
        let mut start = 0;
        single
            .into_iter()
            .chain(self.block_ends.iter().copied())
            .map(move |end| {
                let block = start..end;
                start = end;
                block
            })
    }

    pub(crate) fn mean(&self) -> &[f32] {
        &self.values[..self.n_weights]
    }

    pub(crate) fn log_sd(&self) -> &[f32] {
        &self.values[self.n_weights..2 * self.n_weights]
    }

    /// Columns of U, one after the other.
    pub(crate) fn factors(&self) -> &[f32] {
        &self.values[2 * self.n_weights..]
    }

    /// Writes `M = I + U'U` of a block, rank x rank.
    fn capacitance(&self, block: &Range<usize>, m: &mut [f64]) {
        let (n, k) = (self.n_weights, self.rank);
        let column = |j: usize| &self.factors()[j * n + block.start..j * n + block.end];
        for i in 0..k {
            for j in 0..=i {
                let sum = dot(column(i), column(j));
                m[i * k + j] = sum + f64::from(u8::from(i == j));
                m[j * k + i] = m[i * k + j];
            }
        }
    }

    /// Writes `E[theta_i^2]` under the posterior for every weight.
    pub(crate) fn second_moments(&self, out: &mut [f32]) {
        second_moments(self, out);
    }

    /// Variance of every weight. In double precision: a second moment minus the square of a mean would
    /// cancel.
    pub(crate) fn variances(&self) -> Vec<f64> {
        let mut out = vec![1.0; self.n_weights];
        for column in self.factors().chunks_exact(self.n_weights.max(1)) {
            for (value, &u) in out.iter_mut().zip(column) {
                *value += f64::from(u) * f64::from(u);
            }
        }
        for (value, &log_sd) in out.iter_mut().zip(self.log_sd()) {
            *value *= (2.0 * f64::from(log_sd)).exp();
        }
        out
    }

    /// KL divergence from the prior `N(0, diag(1/precision))`.
    pub(crate) fn kl(&self, precision: &[f32]) -> f64 {
        self.block_kls(precision).iter().sum()
    }

    /// KL divergence of each block from the prior `N(0, diag(1/precision))`.
    pub(crate) fn block_kls(&self, precision: &[f32]) -> Vec<f64> {
        let mut m = vec![0.0; self.rank * self.rank];
        let mut moments = vec![0.0; self.n_weights];
        self.second_moments(&mut moments);
        let kl = |block: Range<usize>| {
            self.capacitance(&block, &mut m);
            let positive = cholesky::factor(&mut m, self.rank);
            debug_assert!(positive, "I + U'U is positive definite");
            let sum: f64 = block
                .map(|i| {
                    let p = f64::from(precision[i]);
                    f64::from(moments[i]) * p - 2.0 * f64::from(self.log_sd()[i]) - p.ln() - 1.0
                })
                .sum();
            0.5 * (sum - cholesky::ln_det(&m, self.rank))
        };
        self.blocks().map(kl).collect()
    }

    /// The covariance matrix, `n_weights x n_weights`.
    pub(crate) fn covariance(&self) -> Vec<f64> {
        let n = self.n_weights;
        let mut out = vec![0.0; n * n];
        for i in 0..n {
            out[i * n + i] = 1.0;
        }
        for block in self.blocks() {
            for column in self.factors().chunks_exact(n.max(1)) {
                for i in block.clone() {
                    for j in block.clone() {
                        out[i * n + j] += f64::from(column[i]) * f64::from(column[j]);
                    }
                }
            }
        }
        for i in 0..n {
            for j in 0..n {
                out[i * n + j] *= f64::from(self.log_sd()[i] + self.log_sd()[j]).exp();
            }
        }
        out
    }
}

/// Draws from a posterior, one after the other.
pub(crate) fn draw_block(posterior: &LowRank, n_draws: usize, key: Key) -> Vec<f32> {
    let mut sampler = Sampler::new(posterior, n_draws);
    sampler.draw(posterior, &mut Gaussian::new(key));
    sampler.draws
}

/// Weights of the two terms of the loss:
/// `- likelihood * (sum of the log-likelihoods of the draws) + kl * KL`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LossScale {
    pub(crate) likelihood: f32,
    pub(crate) kl: f32,
}

/// Draws from a posterior and gradients of the loss; all memory is allocated once.
#[derive(Debug)]
pub(crate) struct Sampler {
    n_weights: usize,
    rank: usize,
    n_draws: usize,
    /// Number of Normal numbers of an antithetic pair: `eps`, then the `z` of each block.
    n_noise: usize,
    /// Standard Normal numbers of each antithetic pair.
    noise: Vec<f32>,
    sd: Vec<f32>,
    /// `M` and its inverse, rank x rank.
    capacitance: Vec<f64>,
    wide_inverse: Vec<f64>,
    inverse: Vec<f32>,
    /// Draws, one after the other.
    pub(crate) draws: Vec<f32>,
    /// Gradient of the loss with respect to `LowRank::values`.
    pub(crate) gradient: Vec<f32>,
}

impl Sampler {
    pub(crate) fn new(posterior: &LowRank, n_draws: usize) -> Self {
        let (n, k) = (posterior.n_weights, posterior.rank);
        let n_noise = n + k * posterior.n_blocks();
        Self {
            n_weights: n,
            rank: k,
            n_draws,
            n_noise,
            noise: vec![0.0; n_draws.div_ceil(2) * n_noise],
            sd: vec![0.0; n],
            capacitance: vec![0.0; k * k],
            wide_inverse: vec![0.0; k * k],
            inverse: vec![0.0; k * k],
            draws: vec![0.0; n_draws * n],
            gradient: vec![0.0; posterior.values.len()],
        }
    }

    /// Fills `draws` with new draws.
    pub(crate) fn draw(&mut self, posterior: &LowRank, gaussian: &mut Gaussian) {
        for noise in until_cancelled(self.noise.chunks_mut(NOISE_AT_ONCE)) {
            gaussian.fill(noise);
        }
        exp_sd(posterior.log_sd(), &mut self.sd);
        let n = self.n_weights;
        let pairs = self.noise.chunks_exact(self.n_noise.max(1));
        for (pair, noise) in until_cancelled(pairs.enumerate()) {
            let draws = &mut self.draws[2 * pair * n..];
            let (plus, minus) = draws.split_at_mut(n);
            let minus = if 2 * pair + 1 < self.n_draws {
                &mut minus[..n]
            } else {
                &mut []
            };
            draw_pair(posterior, &self.sd, noise, plus, minus);
        }
    }

    /// Fills `gradient` from the gradients of the draws' log-likelihoods, which have the layout of
    /// `draws`. `kl_weights` has a factor of the KL term of each block; without any, all are 1.
    pub(crate) fn loss_gradient(
        &mut self,
        posterior: &LowRank,
        draw_gradients: &[f32],
        precision: &[f32],
        kl_weights: &[f32],
        scale: LossScale,
    ) {
        let k = self.rank;
        for (at, block) in posterior.blocks().enumerate() {
            posterior.capacitance(&block, &mut self.capacitance);
            let positive = cholesky::factor(&mut self.capacitance, k);
            debug_assert!(positive, "I + U'U is positive definite");
            cholesky::inverse(&self.capacitance, k, &mut self.wide_inverse);
            for (narrow, &wide) in self.inverse.iter_mut().zip(&self.wide_inverse) {
                *narrow = wide as f32;
            }
            let parts = KlParts {
                sd: &self.sd,
                precision,
                inverse: &self.inverse,
            };
            let kl = scale.kl * kl_weights.get(at).copied().unwrap_or(1.0);
            kl_gradient(posterior, &block, &parts, kl, &mut self.gradient);
        }
        let n = self.n_weights;
        for (pair, noise) in self.noise.chunks_exact(self.n_noise.max(1)).enumerate() {
            let draw_gradients = &draw_gradients[2 * pair * n..];
            let minus = if 2 * pair + 1 < self.n_draws {
                &draw_gradients[n..2 * n]
            } else {
                &[]
            };
            let pair = DrawPair {
                plus: &draw_gradients[..n],
                minus,
                noise,
                sd: &self.sd,
            };
            add_pair_gradient(posterior, &pair, scale.likelihood, &mut self.gradient);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn exp_sd(log_sd: &[f32], sd: &mut [f32]) {
    for (&l, sd) in log_sd.iter().zip(sd.iter_mut()) {
        *sd = Real::exp(l);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn second_moments(posterior: &LowRank, out: &mut [f32]) {
    out.fill(1.0);
    for column in posterior.factors().chunks_exact(posterior.n_weights.max(1)) {
        for (value, &u) in out.iter_mut().zip(column) {
            *value = u.mul_add(u, *value);
        }
    }
    for ((value, &mean), &log_sd) in out.iter_mut().zip(posterior.mean()).zip(posterior.log_sd()) {
        *value = mean.mul_add(mean, *value * Real::exp(2.0 * log_sd));
    }
}

/// `sum_i a_i b_i`, summed in a fixed number of lanes.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn dot(a: &[f32], b: &[f32]) -> f64 {
    const WIDTH: usize = 4 * LANES;
    let mut sums = [0.0_f32; WIDTH];
    let (a_chunks, b_chunks) = (a.chunks_exact(WIDTH), b.chunks_exact(WIDTH));
    let tail: f64 = a_chunks
        .remainder()
        .iter()
        .zip(b_chunks.remainder())
        .map(|(&a, &b)| f64::from(a) * f64::from(b))
        .sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..WIDTH {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    sums.iter().map(|&sum| f64::from(sum)).sum::<f64>() + tail
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn draw_pair(posterior: &LowRank, sd: &[f32], noise: &[f32], plus: &mut [f32], minus: &mut [f32]) {
    let n = posterior.n_weights;
    let (eps, z) = noise.split_at(n);
    plus.copy_from_slice(eps);
    for (block, z) in posterior
        .blocks()
        .zip(z.chunks_exact(posterior.rank.max(1)))
    {
        for (column, &z) in posterior.factors().chunks_exact(n.max(1)).zip(z) {
            for (value, &u) in plus[block.clone()].iter_mut().zip(&column[block.clone()]) {
                *value = u.mul_add(z, *value);
            }
        }
    }
    for (((minus, &plus), &mean), &sd) in minus
        .iter_mut()
        .zip(plus.iter())
        .zip(posterior.mean())
        .zip(sd)
    {
        *minus = (-sd).mul_add(plus, mean);
    }
    for ((plus, &mean), &sd) in plus.iter_mut().zip(posterior.mean()).zip(sd) {
        *plus = sd.mul_add(*plus, mean);
    }
}

/// Inputs of the gradient of the KL term besides the posterior; `inverse` is `M^-1`.
struct KlParts<'a> {
    sd: &'a [f32],
    precision: &'a [f32],
    inverse: &'a [f32],
}

/// Number of weights per block of the loops over columns; a block fits in the first-level cache.
const CACHE_BLOCK: usize = 512;

/// Writes `kl * dKL` of a block to `out`, which has the layout of `LowRank::values`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn kl_gradient(
    posterior: &LowRank,
    block: &Range<usize>,
    parts: &KlParts<'_>,
    kl: f32,
    out: &mut [f32],
) {
    let (n, k) = (posterior.n_weights, posterior.rank);
    let (d_mean, scales) = out.split_at_mut(n);
    let (d_log_sd, d_factors) = scales.split_at_mut(n);
    for ((out, &mean), &p) in d_mean[block.clone()]
        .iter_mut()
        .zip(&posterior.mean()[block.clone()])
        .zip(&parts.precision[block.clone()])
    {
        *out = kl * mean * p;
    }
    let mut variance_ratio = [0.0_f32; CACHE_BLOCK];
    for start in block.clone().step_by(CACHE_BLOCK) {
        let end = (start + CACHE_BLOCK).min(block.end);
        let variance_ratio = &mut variance_ratio[..end - start];
        for ((variance_ratio, &sd), &p) in variance_ratio
            .iter_mut()
            .zip(&parts.sd[start..end])
            .zip(&parts.precision[start..end])
        {
            *variance_ratio = kl * sd * sd * p;
        }
        let d_log_sd = &mut d_log_sd[start..end];
        for (out, &variance_ratio) in d_log_sd.iter_mut().zip(variance_ratio.iter()) {
            *out = variance_ratio - kl;
        }
        for j in 0..k {
            let u = &posterior.factors()[j * n + start..j * n + end];
            let out = &mut d_factors[j * n + start..j * n + end];
            for (((out, &u), &variance_ratio), d_log_sd) in out
                .iter_mut()
                .zip(u)
                .zip(variance_ratio.iter())
                .zip(d_log_sd.iter_mut())
            {
                *out = variance_ratio * u;
                *d_log_sd = (variance_ratio * u).mul_add(u, *d_log_sd);
            }
            for i in 0..k {
                let (a, u) = (
                    -kl * parts.inverse[j * k + i],
                    &posterior.factors()[i * n + start..i * n + end],
                );
                for (out, &u) in out.iter_mut().zip(u) {
                    *out = a.mul_add(u, *out);
                }
            }
        }
    }
}

/// Log-likelihood gradients of an antithetic pair of draws and their standard Normal numbers;
/// `minus` is empty for a single draw.
struct DrawPair<'a> {
    plus: &'a [f32],
    minus: &'a [f32],
    noise: &'a [f32],
    sd: &'a [f32],
}

/// Adds `- likelihood *` the gradients of one pair, mapped to the variational parameters.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_pair_gradient(posterior: &LowRank, pair: &DrawPair<'_>, likelihood: f32, out: &mut [f32]) {
    let n = posterior.n_weights;
    let (eps, z) = pair.noise.split_at(n);
    let (d_mean, scales) = out.split_at_mut(n);
    let (d_log_sd, d_factors) = scales.split_at_mut(n);
    let is_pair = !pair.minus.is_empty();
    let minus = if is_pair { &pair.minus[..n] } else { pair.plus };
    let minus_weight = f32::from(u8::from(is_pair));
    let mut d_unit = [0.0_f32; CACHE_BLOCK];
    for (at_block, block) in posterior.blocks().enumerate() {
        let z = &z[at_block * posterior.rank..(at_block + 1) * posterior.rank];
        for start in block.clone().step_by(CACHE_BLOCK) {
            let end = (start + CACHE_BLOCK).min(block.end);
            let d_unit = &mut d_unit[..end - start];
            for (at, d_unit) in (start..end).zip(d_unit.iter_mut()) {
                d_mean[at] -= likelihood * minus[at].mul_add(minus_weight, pair.plus[at]);
                *d_unit =
                    likelihood * pair.sd[at] * minus[at].mul_add(-minus_weight, pair.plus[at]);
                d_log_sd[at] -= *d_unit * eps[at];
            }
            for (j, &z) in z.iter().enumerate() {
                let u = &posterior.factors()[j * n + start..j * n + end];
                let column = &mut d_factors[j * n + start..j * n + end];
                let d_log_sd = &mut d_log_sd[start..end];
                for (((out, &u), &d_unit), d_log_sd) in column
                    .iter_mut()
                    .zip(u)
                    .zip(d_unit.iter())
                    .zip(d_log_sd.iter_mut())
                {
                    *out = (-d_unit).mul_add(z, *out);
                    *d_log_sd = (-d_unit * z).mul_add(u, *d_log_sd);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::{central_difference, close};

    fn wide(values: &[f32]) -> Vec<f64> {
        values.iter().map(|&x| f64::from(x)).collect()
    }

    /// KL divergence in f64 from the definition, with an explicit covariance matrix.
    fn kl_reference(values: &[f64], n: usize, k: usize, gamma: &[f64]) -> f64 {
        let (mean, scales) = values.split_at(n);
        let (log_sd, u) = scales.split_at(n);
        let mut sigma = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let unit = f64::from(u8::from(i == j))
                    + (0..k).map(|c| u[c * n + i] * u[c * n + j]).sum::<f64>();
                sigma[i * n + j] = (log_sd[i] + log_sd[j]).exp() * unit;
            }
        }
        let trace: f64 = (0..n)
            .map(|i| (sigma[i * n + i] + mean[i] * mean[i]) / gamma[i] + gamma[i].ln() - 1.0)
            .sum();
        assert!(cholesky::factor(&mut sigma, n));
        0.5 * (trace - cholesky::ln_det(&sigma, n))
    }

    fn example() -> (LowRank, Vec<f32>) {
        let (n, k) = (37, 3);
        let mut values = vec![0.0; n * (2 + k)];
        Gaussian::new(Key::from_seed(2)).fill(&mut values);
        for value in &mut values {
            *value *= 0.4;
        }
        let precision = (0..n).map(|i| 0.5 + i as f32 / 10.0).collect();
        (
            LowRank {
                n_weights: n,
                rank: k,
                values,
                block_ends: Vec::new(),
            },
            precision,
        )
    }

    #[test]
    fn the_kl_and_its_gradient_have_the_golden_values() {
        let values = [0.5, -1.0, 0.3_f32.ln(), 0.7_f32.ln(), 0.2 / 0.3, -0.4 / 0.7].to_vec();
        let posterior = LowRank {
            n_weights: 2,
            rank: 1,
            values,
            block_ends: Vec::new(),
        };
        let precision = [1.0 / 0.64; 2];
        close(&[posterior.kl(&precision)], &[1.414_533_008_4], 1e-6);
        let mut sampler = Sampler::new(&posterior, 1);
        sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(0)));
        sampler.loss_gradient(
            &posterior,
            &[0.0; 2],
            &precision,
            &[],
            LossScale {
                likelihood: 1.0,
                kl: 1.0,
            },
        );
        // V = sd U: d/dU = sd d/dV, and d/dln sd at fixed U = sd d/dsd + V d/dV
        let (d_sd, d_v) = (
            [-2.028_048_975_7, -0.071_422_855_3],
            [-0.942_301_536_5, -0.164_052_496_8],
        );
        let d_log_sd = [d_sd[0] * 0.3 + d_v[0] * 0.2, d_sd[1] * 0.7 - d_v[1] * 0.4];
        let expected = [
            0.78125,
            -1.5625,
            d_log_sd[0],
            d_log_sd[1],
            d_v[0] * 0.3,
            d_v[1] * 0.7,
        ];
        close(&wide(&sampler.gradient), &expected, 2e-6);
    }

    #[test]
    fn kl_and_its_gradient_agree_with_differences() {
        let (posterior, precision) = example();
        let gamma: Vec<f64> = precision.iter().map(|&p| 1.0 / f64::from(p)).collect();
        let (n, k) = (posterior.n_weights, posterior.rank);
        let reference = |values: &[f64]| kl_reference(values, n, k, &gamma);
        let values = wide(&posterior.values);
        close(&[posterior.kl(&precision)], &[reference(&values)], 1e-5);
        let mut sampler = Sampler::new(&posterior, 2);
        sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(0)));
        sampler.loss_gradient(
            &posterior,
            &vec![0.0; 2 * n],
            &precision,
            &[],
            LossScale {
                likelihood: 1.0,
                kl: 1.0,
            },
        );
        close(
            &wide(&sampler.gradient),
            &central_difference(reference, &values),
            1e-5,
        );
    }

    #[test]
    fn draws_and_their_pull_back_agree_with_the_reparametrisation() {
        let (posterior, precision) = example();
        let n = posterior.n_weights;
        for n_draws in [1, 2, 4] {
            let mut sampler = Sampler::new(&posterior, n_draws);
            sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(3)));
            // f(theta) = sum_i c_i theta_i^2 / 2 has gradient c theta
            let c: Vec<f32> = (0..n).map(|i| 1.0 + i as f32 / 20.0).collect();
            let draw_gradients: Vec<f32> = sampler
                .draws
                .iter()
                .enumerate()
                .map(|(at, x)| c[at % n] * x)
                .collect();
            let noise = sampler.noise.clone();
            let loss = |values: &[f64]| {
                let mut sum = 0.0;
                for draw in 0..n_draws {
                    let noise = &noise[draw / 2 * (n + posterior.rank)..];
                    let sign = if draw % 2 == 0 { 1.0 } else { -1.0 };
                    for i in 0..n {
                        let low: f64 = (0..posterior.rank)
                            .map(|j| values[(2 + j) * n + i] * f64::from(noise[n + j]))
                            .sum();
                        let theta =
                            values[i] + sign * values[n + i].exp() * (f64::from(noise[i]) + low);
                        sum -= 0.5 * f64::from(c[i]) * theta * theta;
                    }
                }
                sum
            };
            sampler.loss_gradient(
                &posterior,
                &draw_gradients,
                &precision,
                &[],
                LossScale {
                    likelihood: 1.0,
                    kl: 0.0,
                },
            );
            close(
                &wide(&sampler.gradient),
                &central_difference(loss, &wide(&posterior.values)),
                2e-5,
            );
        }
    }

    /// The posterior of one block of [`example`].
    fn block_of(posterior: &LowRank, block: Range<usize>) -> LowRank {
        let columns = posterior.values.chunks_exact(posterior.n_weights);
        LowRank {
            n_weights: block.len(),
            rank: posterior.rank,
            values: columns
                .flat_map(|column| &column[block.clone()])
                .copied()
                .collect(),
            block_ends: Vec::new(),
        }
    }

    #[test]
    fn blocks_are_independent_and_their_kl_terms_are_weighed() {
        let (posterior, precision) = example();
        let posterior = posterior.with_blocks(vec![10, 11, 37]);
        let kl_weights = [0.5, 2.0, 1.25];
        let scale = LossScale {
            likelihood: 1.0,
            kl: 1.0,
        };
        let n = posterior.n_weights;
        let mut sampler = Sampler::new(&posterior, 2);
        sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(0)));
        let zeros = vec![0.0; 2 * n];
        sampler.loss_gradient(&posterior, &zeros, &precision, &kl_weights, scale);
        let kls = posterior.block_kls(&precision);
        for (at, block) in posterior.blocks().enumerate() {
            let alone = block_of(&posterior, block.clone());
            let precision = &precision[block.clone()];
            close(&[kls[at]], &[alone.kl(precision)], 1e-6);
            let mut alone_sampler = Sampler::new(&alone, 2);
            alone_sampler.draw(&alone, &mut Gaussian::new(Key::from_seed(0)));
            alone_sampler.loss_gradient(&alone, &zeros, precision, &kl_weights[at..], scale);
            let columns = sampler.gradient.chunks_exact(n);
            let found: Vec<f32> = columns
                .flat_map(|column| &column[block.clone()])
                .copied()
                .collect();
            close(&wide(&found), &wide(&alone_sampler.gradient), 1e-5);
        }
        let covariance = posterior.covariance();
        assert!(covariance[9 * n + 10].abs() <= 0.0 && covariance[8 * n + 9].abs() > 0.0);
        // draws of the two blocks are uncorrelated, draws within a block are not
        let mut sums = [0.0_f64; 2];
        let mut gaussian = Gaussian::new(Key::from_seed(7));
        let n_draws = 40_000;
        for _ in 0..n_draws {
            sampler.draw(&posterior, &mut gaussian);
            let unit = |at: usize| {
                f64::from(sampler.draws[at] - posterior.values[at]) / covariance[at * n + at].sqrt()
            };
            sums[0] += unit(9) * unit(10);
            sums[1] += unit(8) * unit(9);
        }
        let expected =
            covariance[8 * n + 9] / (covariance[8 * n + 8] * covariance[9 * n + 9]).sqrt();
        // six standard errors of a correlation: 6 / sqrt(40,000)
        close(
            &sums.map(|sum| sum / f64::from(n_draws)),
            &[0.0, expected],
            0.03,
        );
    }

    #[test]
    fn draws_have_the_covariance_of_the_posterior() {
        let values = [1.0, -1.0, 0.5_f32.ln(), 0.2_f32.ln(), 1.2, -1.5].to_vec();
        let posterior = LowRank {
            n_weights: 2,
            rank: 1,
            values,
            block_ends: Vec::new(),
        };
        let mut gaussian = Gaussian::new(Key::from_seed(4));
        let mut sampler = Sampler::new(&posterior, 1);
        let n = 100_000;
        let mut sums = [0.0_f64; 3];
        for _ in 0..n {
            sampler.draw(&posterior, &mut gaussian);
            let (a, b) = (
                f64::from(sampler.draws[0]) - 1.0,
                f64::from(sampler.draws[1]) + 1.0,
            );
            sums[0] += a * a;
            sums[1] += a * b;
            sums[2] += b * b;
        }
        let found: Vec<f64> = sums.iter().map(|sum| sum / f64::from(n)).collect();
        // six standard errors of a covariance of n draws: 6 * 0.61 * sqrt(2/n) < 0.017
        close(&found, &[0.25 + 0.36, -0.18, 0.04 + 0.09], 0.017);
        let covariance = posterior.covariance();
        close(
            &[covariance[0], covariance[1], covariance[3]],
            &[0.61, -0.18, 0.13],
            1e-6,
        );
    }
}
