//! Gaussian posterior with covariance D (I + U U') D, D = diag(sd), U of `rank` columns: a diagonal and a low-rank part,
//! V = D U. Steps in ln sd and U are relative to the spread of each weight, so that one step size suits all.
//!
//! With `M = I + U'U`, `A = M^-1` and prior variances `gamma_i`:
//!
//! - `KL = 1/2 [ sum_i ((sd_i^2 (1 + |U_i|^2) + mu_i^2)/gamma_i - ln sd_i^2 + ln gamma_i - 1) - ln det M ]`
//! - dKL/dmu = mu/gamma,  dKL/dln sd = sd^2 (1 + |U|^2)/gamma - 1,  dKL/dU = sd^2 U/gamma - U A
//!
//! A draw is mu + sd (eps + U z); draws come in antithetic pairs (eps, z), (-eps, -z).

use multiversion::multiversion;

use crate::numerics::cholesky;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::{LANES, Real};

/// The posterior's own parameters, in one vector: means, log standard deviations, then the columns of U.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LowRank {
    pub(crate) n_weights: usize,
    pub(crate) rank: usize,
    pub(crate) values: Vec<f32>,
}

impl LowRank {
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

    /// M = I + U'U, rank x rank.
    fn capacitance(&self, m: &mut [f64]) {
        let (n, k) = (self.n_weights, self.rank);
        let factors = self.factors();
        for i in 0..k {
            for j in 0..=i {
                let sum = dot(&factors[i * n..(i + 1) * n], &factors[j * n..(j + 1) * n]);
                m[i * k + j] = sum + f64::from(u8::from(i == j));
                m[j * k + i] = m[i * k + j];
            }
        }
    }

    /// `E[theta_i^2]` under the posterior, of every weight.
    pub(crate) fn second_moments(&self, out: &mut [f32]) {
        second_moments(self, out);
    }

    /// KL divergence from the prior N(0, diag(1/precision)).
    pub(crate) fn kl(&self, precision: &[f32]) -> f64 {
        let mut m = vec![0.0; self.rank * self.rank];
        self.capacitance(&mut m);
        let positive = cholesky::factor(&mut m, self.rank);
        debug_assert!(positive, "I + U'U is positive definite");
        let mut moments = vec![0.0; self.n_weights];
        self.second_moments(&mut moments);
        let sum: f64 = (0..self.n_weights)
            .map(|i| {
                let p = f64::from(precision[i]);
                f64::from(moments[i]) * p - 2.0 * f64::from(self.log_sd()[i]) - p.ln() - 1.0
            })
            .sum();
        0.5 * (sum - cholesky::ln_det(&m, self.rank))
    }

    /// The covariance, `n_weights x n_weights`.
    pub(crate) fn covariance(&self) -> Vec<f64> {
        let n = self.n_weights;
        let mut out = vec![0.0; n * n];
        for i in 0..n {
            out[i * n + i] = 1.0;
        }
        for column in self.factors().chunks_exact(n.max(1)) {
            for i in 0..n {
                for j in 0..n {
                    out[i * n + j] += f64::from(column[i]) * f64::from(column[j]);
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

/// The weight of the two parts of the loss: - likelihood * (sum of draws' log-likelihoods) + kl * KL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LossScale {
    pub(crate) likelihood: f32,
    pub(crate) kl: f32,
}

/// Draws and gradients of a posterior; all memory is made once.
#[derive(Debug)]
pub(crate) struct Sampler {
    n_weights: usize,
    rank: usize,
    n_draws: usize,
    /// Standard Normal numbers of each pair: eps then z.
    noise: Vec<f32>,
    sd: Vec<f32>,
    /// M and its inverse, rank x rank.
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
        Self {
            n_weights: n,
            rank: k,
            n_draws,
            noise: vec![0.0; n_draws.div_ceil(2) * (n + k)],
            sd: vec![0.0; n],
            capacitance: vec![0.0; k * k],
            wide_inverse: vec![0.0; k * k],
            inverse: vec![0.0; k * k],
            draws: vec![0.0; n_draws * n],
            gradient: vec![0.0; posterior.values.len()],
        }
    }

    /// Fills `draws` with fresh draws.
    pub(crate) fn draw(&mut self, posterior: &LowRank, gaussian: &mut Gaussian) {
        gaussian.fill(&mut self.noise);
        spread(posterior.log_sd(), &mut self.sd);
        let n = self.n_weights;
        for (pair, noise) in self.noise.chunks_exact(n + self.rank).enumerate() {
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

    /// Fills `gradient` from the draws' log-likelihood gradients (laid out as `draws`).
    pub(crate) fn pull_back(
        &mut self,
        posterior: &LowRank,
        slopes: &[f32],
        precision: &[f32],
        scale: LossScale,
    ) {
        let k = self.rank;
        posterior.capacitance(&mut self.capacitance);
        let positive = cholesky::factor(&mut self.capacitance, k);
        debug_assert!(positive, "I + U'U is positive definite");
        cholesky::inverse(&self.capacitance, k, &mut self.wide_inverse);
        for (narrow, &wide) in self.inverse.iter_mut().zip(&self.wide_inverse) {
            *narrow = wide as f32;
        }
        kl_gradient(
            posterior,
            &KlParts {
                sd: &self.sd,
                precision,
                inverse: &self.inverse,
            },
            scale.kl,
            &mut self.gradient,
        );
        let n = self.n_weights;
        for (pair, noise) in self.noise.chunks_exact(n + k).enumerate() {
            let slopes = &slopes[2 * pair * n..];
            let minus = if 2 * pair + 1 < self.n_draws {
                &slopes[n..2 * n]
            } else {
                &[]
            };
            let pair = Pair {
                plus: &slopes[..n],
                minus,
                noise,
                sd: &self.sd,
            };
            add_pair(posterior, &pair, scale.likelihood, &mut self.gradient);
        }
    }
}

#[multiversion(targets = "simd")]
fn spread(log_sd: &[f32], sd: &mut [f32]) {
    for (&l, sd) in log_sd.iter().zip(sd.iter_mut()) {
        *sd = Real::exp(l);
    }
}

#[multiversion(targets = "simd")]
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

/// `sum_i a_i b_i` in a fixed number of lanes.
#[multiversion(targets = "simd")]
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

#[multiversion(targets = "simd")]
fn draw_pair(posterior: &LowRank, sd: &[f32], noise: &[f32], plus: &mut [f32], minus: &mut [f32]) {
    let n = posterior.n_weights;
    let (eps, z) = noise.split_at(n);
    plus.copy_from_slice(eps);
    for (column, &z) in posterior.factors().chunks_exact(n.max(1)).zip(z) {
        for (value, &u) in plus.iter_mut().zip(column) {
            *value = u.mul_add(z, *value);
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

struct KlParts<'a> {
    sd: &'a [f32],
    precision: &'a [f32],
    inverse: &'a [f32],
}

/// Weights handled at once by the loops over columns, so that they stay in the first cache.
const PIECE: usize = 512;

/// kl * dKL into `out`, laid out as `LowRank::values`.
#[multiversion(targets = "simd")]
fn kl_gradient(posterior: &LowRank, parts: &KlParts<'_>, kl: f32, out: &mut [f32]) {
    let (n, k) = (posterior.n_weights, posterior.rank);
    let (d_mean, rest) = out.split_at_mut(n);
    let (d_log_sd, d_factors) = rest.split_at_mut(n);
    for ((out, &mean), &p) in d_mean.iter_mut().zip(posterior.mean()).zip(parts.precision) {
        *out = kl * mean * p;
    }
    let mut pull = [0.0_f32; PIECE];
    for start in (0..n).step_by(PIECE) {
        let end = (start + PIECE).min(n);
        let pull = &mut pull[..end - start];
        for ((pull, &sd), &p) in pull
            .iter_mut()
            .zip(&parts.sd[start..end])
            .zip(&parts.precision[start..end])
        {
            *pull = kl * sd * sd * p;
        }
        let d_log_sd = &mut d_log_sd[start..end];
        for (out, &pull) in d_log_sd.iter_mut().zip(pull.iter()) {
            *out = pull - kl;
        }
        for j in 0..k {
            let u = &posterior.factors()[j * n + start..j * n + end];
            let out = &mut d_factors[j * n + start..j * n + end];
            for (((out, &u), &pull), d_log_sd) in out
                .iter_mut()
                .zip(u)
                .zip(pull.iter())
                .zip(d_log_sd.iter_mut())
            {
                *out = pull * u;
                *d_log_sd = (pull * u).mul_add(u, *d_log_sd);
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

/// Slopes of a pair of draws and the noise that made them; `minus` is empty for a single draw.
struct Pair<'a> {
    plus: &'a [f32],
    minus: &'a [f32],
    noise: &'a [f32],
    sd: &'a [f32],
}

/// Adds - likelihood * (slopes of one pair) mapped to the posterior's parameters.
#[multiversion(targets = "simd")]
fn add_pair(posterior: &LowRank, pair: &Pair<'_>, likelihood: f32, out: &mut [f32]) {
    let n = posterior.n_weights;
    let (eps, z) = pair.noise.split_at(n);
    let (d_mean, rest) = out.split_at_mut(n);
    let (d_log_sd, d_factors) = rest.split_at_mut(n);
    let is_pair = !pair.minus.is_empty();
    let minus = if is_pair { &pair.minus[..n] } else { pair.plus };
    let presence = f32::from(u8::from(is_pair));
    let mut pull = [0.0_f32; PIECE];
    for start in (0..n).step_by(PIECE) {
        let end = (start + PIECE).min(n);
        let pull = &mut pull[..end - start];
        for (at, pull) in (start..end).zip(pull.iter_mut()) {
            d_mean[at] -= likelihood * minus[at].mul_add(presence, pair.plus[at]);
            *pull = likelihood * pair.sd[at] * minus[at].mul_add(-presence, pair.plus[at]);
            d_log_sd[at] -= *pull * eps[at];
        }
        for (j, &z) in z.iter().enumerate() {
            let u = &posterior.factors()[j * n + start..j * n + end];
            let column = &mut d_factors[j * n + start..j * n + end];
            let d_log_sd = &mut d_log_sd[start..end];
            for (((out, &u), &pull), d_log_sd) in column
                .iter_mut()
                .zip(u)
                .zip(pull.iter())
                .zip(d_log_sd.iter_mut())
            {
                *out = (-pull).mul_add(z, *out);
                *d_log_sd = (-pull * z).mul_add(u, *d_log_sd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;
    use softwood_testkit::{central_difference, close};

    fn wide(values: &[f32]) -> Vec<f64> {
        values.iter().map(|&x| f64::from(x)).collect()
    }

    /// KL in f64 straight from the formula, with an explicit determinant.
    fn kl_reference(values: &[f64], n: usize, k: usize, gamma: &[f64]) -> f64 {
        let (mean, rest) = values.split_at(n);
        let (log_sd, u) = rest.split_at(n);
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
            },
            precision,
        )
    }

    #[test]
    fn golden_kl() {
        let values = [0.5, -1.0, 0.3_f32.ln(), 0.7_f32.ln(), 0.2 / 0.3, -0.4 / 0.7].to_vec();
        let posterior = LowRank {
            n_weights: 2,
            rank: 1,
            values,
        };
        let precision = [1.0 / 0.64; 2];
        close(&[posterior.kl(&precision)], &[1.414_533_008_4], 1e-6);
        let mut sampler = Sampler::new(&posterior, 1);
        sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(0)));
        sampler.pull_back(
            &posterior,
            &[0.0; 2],
            &precision,
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
        sampler.pull_back(
            &posterior,
            &vec![0.0; 2 * n],
            &precision,
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
            // f(theta) = sum_i c_i theta_i^2 / 2 has slope c theta
            let c: Vec<f32> = (0..n).map(|i| 1.0 + i as f32 / 20.0).collect();
            let slopes: Vec<f32> = sampler
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
            sampler.pull_back(
                &posterior,
                &slopes,
                &precision,
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

    #[test]
    fn draws_have_the_covariance_of_the_posterior() {
        let values = [1.0, -1.0, 0.5_f32.ln(), 0.2_f32.ln(), 1.2, -1.5].to_vec();
        let posterior = LowRank {
            n_weights: 2,
            rank: 1,
            values,
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
