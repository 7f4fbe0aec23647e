//! Gaussian posterior with covariance diag(sd^2) + V V', V of `rank` columns.
//!
//! With W = diag(sd^-2) V, M = I + V' W, A = M^-1, B = W A and prior variances gamma_i:
//!
//! - KL = 1/2 [ sum_i ((sd_i^2 + |V_i|^2 + mu_i^2)/gamma_i - ln sd_i^2 + ln gamma_i - 1) - ln det M ]
//! - dKL/dmu = mu/gamma,  dKL/dV = V/gamma - B,  dKL/dln sd = sd^2/gamma - 1 + sd^2 sum_j B_j W_j
//!
//! (the sign of ln det M is that of the formula KL = ... - ln det Sigma with ln det Sigma = sum ln sd^2 + ln det M).
//! A draw is mu + sd eps + V z; draws come in antithetic pairs (eps, z), (-eps, -z).

use multiversion::multiversion;

use crate::numerics::cholesky;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::{LANES, Real};

/// The posterior's own parameters, in one vector: means, log standard deviations, then the columns of V.
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

    /// Columns of V, one after the other.
    pub(crate) fn factors(&self) -> &[f32] {
        &self.values[2 * self.n_weights..]
    }

    /// M = I + V' diag(sd^-2) V, rank x rank.
    fn capacitance(&self, inverse_variance: &[f32]) -> Vec<f64> {
        let (n, k) = (self.n_weights, self.rank);
        let factors = self.factors();
        let mut m = vec![0.0; k * k];
        for i in 0..k {
            for j in 0..=i {
                let sum = dot3(&factors[i * n..(i + 1) * n], &factors[j * n..(j + 1) * n], inverse_variance);
                m[i * k + j] = sum + f64::from(u8::from(i == j));
                m[j * k + i] = m[i * k + j];
            }
        }
        m
    }

    /// E[theta_i^2] under the posterior, of every weight.
    pub(crate) fn second_moments(&self, out: &mut [f32]) {
        for (at, value) in out.iter_mut().enumerate() {
            let (mean, sd) = (self.mean()[at], Real::exp(self.log_sd()[at]));
            *value = mean * mean + sd * sd;
        }
        for column in self.factors().chunks_exact(self.n_weights.max(1)) {
            for (value, v) in out.iter_mut().zip(column) {
                *value += v * v;
            }
        }
    }

    /// KL divergence from the prior N(0, diag(1/precision)).
    pub(crate) fn kl(&self, precision: &[f32]) -> f64 {
        let inverse_variance: Vec<f32> = self.log_sd().iter().map(|&l| Real::exp(-2.0 * l)).collect();
        let mut m = self.capacitance(&inverse_variance);
        let positive = cholesky::factor(&mut m, self.rank);
        debug_assert!(positive, "I + V'V is positive definite");
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
    inverse_variance: Vec<f32>,
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
            inverse_variance: vec![0.0; n],
            draws: vec![0.0; n_draws * n],
            gradient: vec![0.0; posterior.values.len()],
        }
    }

    /// Fills `draws` with fresh draws.
    pub(crate) fn draw(&mut self, posterior: &LowRank, gaussian: &mut Gaussian) {
        gaussian.fill(&mut self.noise);
        spread(posterior.log_sd(), &mut self.sd, &mut self.inverse_variance);
        let n = self.n_weights;
        for (pair, noise) in self.noise.chunks_exact(n + self.rank).enumerate() {
            let draws = &mut self.draws[2 * pair * n..];
            let (plus, minus) = draws.split_at_mut(n);
            let minus = if 2 * pair + 1 < self.n_draws { &mut minus[..n] } else { &mut [] };
            draw_pair(posterior, &self.sd, noise, plus, minus);
        }
    }

    /// Fills `gradient` from the draws' log-likelihood gradients (laid out as `draws`).
    pub(crate) fn pull_back(&mut self, posterior: &LowRank, slopes: &[f32], precision: &[f32], scale: LossScale) {
        let k = self.rank;
        let mut m = posterior.capacitance(&self.inverse_variance);
        let positive = cholesky::factor(&mut m, k);
        debug_assert!(positive, "I + V'V is positive definite");
        let inverse: Vec<f32> = cholesky::inverse(&m, k).iter().map(|&x| x as f32).collect();
        let parts = KlParts { sd: &self.sd, inverse_variance: &self.inverse_variance, precision, inverse: &inverse };
        kl_gradient(posterior, &parts, scale.kl, &mut self.gradient);
        let n = self.n_weights;
        for (pair, noise) in self.noise.chunks_exact(n + k).enumerate() {
            let slopes = &slopes[2 * pair * n..];
            let minus = if 2 * pair + 1 < self.n_draws { &slopes[n..2 * n] } else { &[] };
            add_pair(&slopes[..n], minus, noise, &self.sd, scale.likelihood, &mut self.gradient);
        }
    }
}

#[multiversion(targets = "simd")]
fn spread(log_sd: &[f32], sd: &mut [f32], inverse_variance: &mut [f32]) {
    for ((&l, sd), inverse) in log_sd.iter().zip(sd.iter_mut()).zip(inverse_variance.iter_mut()) {
        *sd = Real::exp(l);
        *inverse = Real::exp(-2.0 * l);
    }
}

/// sum_i a_i b_i c_i in a fixed number of lanes.
#[multiversion(targets = "simd")]
fn dot3(a: &[f32], b: &[f32], c: &[f32]) -> f64 {
    let mut sums = [0.0_f32; LANES];
    let n = a.len() / LANES * LANES;
    for start in (0..n).step_by(LANES) {
        for lane in 0..LANES {
            let at = start + lane;
            sums[lane] = (a[at] * b[at]).mul_add(c[at], sums[lane]);
        }
    }
    let head: f64 = sums.iter().map(|&sum| f64::from(sum)).sum();
    let tail: f64 = (n..a.len()).map(|at| f64::from(a[at] * b[at] * c[at])).sum();
    head + tail
}

#[multiversion(targets = "simd")]
fn draw_pair(posterior: &LowRank, sd: &[f32], noise: &[f32], plus: &mut [f32], minus: &mut [f32]) {
    let n = posterior.n_weights;
    let (eps, z) = noise.split_at(n);
    for ((value, &s), &e) in plus.iter_mut().zip(sd).zip(eps) {
        *value = s * e;
    }
    for (column, &z) in posterior.factors().chunks_exact(n.max(1)).zip(z) {
        for (value, &v) in plus.iter_mut().zip(column) {
            *value = v.mul_add(z, *value);
        }
    }
    for ((minus, &plus), &mean) in minus.iter_mut().zip(plus.iter()).zip(posterior.mean()) {
        *minus = mean - plus;
    }
    for (plus, &mean) in plus.iter_mut().zip(posterior.mean()) {
        *plus += mean;
    }
}

struct KlParts<'a> {
    sd: &'a [f32],
    inverse_variance: &'a [f32],
    precision: &'a [f32],
    inverse: &'a [f32],
}

/// kl * dKL into `out`, laid out as `LowRank::values`.
#[multiversion(targets = "simd")]
fn kl_gradient(posterior: &LowRank, parts: &KlParts<'_>, kl: f32, out: &mut [f32]) {
    let (n, k) = (posterior.n_weights, posterior.rank);
    let (d_mean, rest) = out.split_at_mut(n);
    let (d_log_sd, d_factors) = rest.split_at_mut(n);
    let (sd, inverse_variance, precision) = (&parts.sd[..n], &parts.inverse_variance[..n], &parts.precision[..n]);
    for ((out, &mean), &p) in d_mean.iter_mut().zip(posterior.mean()).zip(precision) {
        *out = kl * mean * p;
    }
    for ((out, &s), &p) in d_log_sd.iter_mut().zip(sd).zip(precision) {
        *out = kl * (s * s).mul_add(p, -1.0);
    }
    // in pieces that stay in the first cache: B_j = sum_i A_ji W_i
    const PIECE: usize = 512;
    let mut b = [0.0_f32; PIECE];
    for start in (0..n).step_by(PIECE) {
        let end = (start + PIECE).min(n);
        for j in 0..k {
            let b = &mut b[..end - start];
            b.fill(0.0);
            for i in 0..k {
                let (a, v) = (parts.inverse[j * k + i], &posterior.factors()[i * n + start..i * n + end]);
                for (b, &v) in b.iter_mut().zip(v) {
                    *b = a.mul_add(v, *b);
                }
            }
            let v = &posterior.factors()[j * n + start..j * n + end];
            let out = &mut d_factors[j * n + start..j * n + end];
            let d_log_sd = &mut d_log_sd[start..end];
            for at in 0..end - start {
                let scaled = b[at] * inverse_variance[start + at];
                out[at] = kl * (v[at] * precision[start + at] - scaled);
                d_log_sd[at] = (kl * scaled).mul_add(v[at], d_log_sd[at]);
            }
        }
    }
}

/// Adds - likelihood * (slopes of one pair) mapped to the posterior's parameters.
#[multiversion(targets = "simd")]
fn add_pair(plus: &[f32], minus: &[f32], noise: &[f32], sd: &[f32], likelihood: f32, out: &mut [f32]) {
    let n = plus.len();
    let (eps, z) = noise.split_at(n);
    let (d_mean, rest) = out.split_at_mut(n);
    let (d_log_sd, d_factors) = rest.split_at_mut(n);
    let is_pair = !minus.is_empty();
    let minus = if is_pair { &minus[..n] } else { plus };
    let (sum_of_minus, difference_of_minus) = if is_pair { (1.0, 1.0) } else { (0.0, 0.0) };
    for at in 0..n {
        let sum = minus[at].mul_add(sum_of_minus, plus[at]);
        let difference = minus[at].mul_add(-difference_of_minus, plus[at]);
        d_mean[at] -= likelihood * sum;
        d_log_sd[at] -= likelihood * difference * eps[at] * sd[at];
    }
    for (column, &z) in d_factors.chunks_exact_mut(n.max(1)).zip(z) {
        for at in 0..n {
            let difference = minus[at].mul_add(-difference_of_minus, plus[at]);
            column[at] -= likelihood * z * difference;
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
        let (log_sd, v) = rest.split_at(n);
        let mut sigma = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let diagonal = if i == j { (2.0 * log_sd[i]).exp() } else { 0.0 };
                sigma[i * n + j] = diagonal + (0..k).map(|c| v[c * n + i] * v[c * n + j]).sum::<f64>();
            }
        }
        let trace: f64 = (0..n).map(|i| (sigma[i * n + i] + mean[i] * mean[i]) / gamma[i] + gamma[i].ln() - 1.0).sum();
        assert!(cholesky::factor(&mut sigma, n));
        0.5 * (trace - cholesky::ln_det(&sigma, n))
    }

    fn example() -> (LowRank, Vec<f32>) {
        let (n, k) = (37, 3);
        let mut values = vec![0.0; n * (2 + k)];
        Gaussian::new(Key::from_seed(2)).fill(&mut values);
        values.iter_mut().for_each(|value| *value *= 0.4);
        let precision = (0..n).map(|i| 0.5 + i as f32 / 10.0).collect();
        (LowRank { n_weights: n, rank: k, values }, precision)
    }

    #[test]
    fn golden_kl() {
        let values = [0.5, -1.0, 0.3_f32.ln(), 0.7_f32.ln(), 0.2, -0.4].to_vec();
        let posterior = LowRank { n_weights: 2, rank: 1, values };
        let precision = [1.0 / 0.64; 2];
        close(&[posterior.kl(&precision)], &[1.414_533_008_4], 1e-6);
        let mut sampler = Sampler::new(&posterior, 1);
        sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(0)));
        sampler.pull_back(&posterior, &[0.0; 2], &precision, LossScale { likelihood: 1.0, kl: 1.0 });
        let expected = [0.78125, -1.5625, -2.028_048_975_7 * 0.3, -0.071_422_855_3 * 0.7, -0.942_301_536_5, -0.164_052_496_8];
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
        sampler.pull_back(&posterior, &vec![0.0; 2 * n], &precision, LossScale { likelihood: 1.0, kl: 1.0 });
        close(&wide(&sampler.gradient), &central_difference(reference, &values), 1e-5);
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
            let slopes: Vec<f32> = sampler.draws.iter().enumerate().map(|(at, x)| c[at % n] * x).collect();
            let noise = sampler.noise.clone();
            let loss = |values: &[f64]| {
                let mut sum = 0.0;
                for draw in 0..n_draws {
                    let noise = &noise[draw / 2 * (n + posterior.rank)..];
                    let sign = if draw % 2 == 0 { 1.0 } else { -1.0 };
                    for i in 0..n {
                        let low: f64 = (0..posterior.rank).map(|j| values[(2 + j) * n + i] * f64::from(noise[n + j])).sum();
                        let theta = values[i] + sign * (values[n + i].exp() * f64::from(noise[i]) + low);
                        sum -= 0.5 * f64::from(c[i]) * theta * theta;
                    }
                }
                sum
            };
            sampler.pull_back(&posterior, &slopes, &precision, LossScale { likelihood: 1.0, kl: 0.0 });
            close(&wide(&sampler.gradient), &central_difference(loss, &wide(&posterior.values)), 2e-5);
        }
    }

    #[test]
    fn draws_have_the_covariance_of_the_posterior() {
        let values = [1.0, -1.0, 0.5_f32.ln(), 0.2_f32.ln(), 0.6, -0.3].to_vec();
        let posterior = LowRank { n_weights: 2, rank: 1, values };
        let mut gaussian = Gaussian::new(Key::from_seed(4));
        let mut sampler = Sampler::new(&posterior, 1);
        let n = 100_000;
        let mut sums = [0.0_f64; 3];
        for _ in 0..n {
            sampler.draw(&posterior, &mut gaussian);
            let (a, b) = (f64::from(sampler.draws[0]) - 1.0, f64::from(sampler.draws[1]) + 1.0);
            sums[0] += a * a;
            sums[1] += a * b;
            sums[2] += b * b;
        }
        let found: Vec<f64> = sums.iter().map(|sum| sum / f64::from(n)).collect();
        // six standard errors of a covariance of n draws: 6 * 0.61 * sqrt(2/n) < 0.017
        close(&found, &[0.25 + 0.36, -0.18, 0.04 + 0.09], 0.017);
    }
}
