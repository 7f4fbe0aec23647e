//! Stationary kernels with a length scale per input, and their gradients.
//!
//! With `r² = Σ_j ((x_j - x'_j) / l_j)²` the covariance of two points is `s² k(r)`:
//!
//! | shape | `k(r)` | `h(r) = -2 dk/d(r²)` |
//! |---|---|---|
//! | squared exponential | `e^(-r²/2)` | `e^(-r²/2)` |
//! | Matern 1/2 | `e^-r` | `e^-r / r` |
//! | Matern 3/2 | `(1 + a) e^-a`, `a = √3 r` | `3 e^-a` |
//! | Matern 5/2 | `(1 + a + a²/3) e^-a`, `a = √5 r` | `5/3 (1 + a) e^-a` |
//!
//! so `d(s² k)/d(ln l_j) = s² h(r) ((x_j - x'_j) / l_j)²` and `d(s² k)/d(ln s) = 2 s² k`.

use multiversion::multiversion;

use crate::gaussian_process::points::Points;
use crate::numerics::dot::dot;
use crate::numerics::special::exp;
use crate::params::choices;
use crate::stop::until_cancelled;

/// The diagonal of a covariance matrix is larger by this share, so that it can be factored where
/// points coincide and the noise is small.
const JITTER: f64 = 1e-9;
/// Distances below this one count as zero in the gradient of the Matern 1/2 kernel.
const MIN_DISTANCE: f64 = 1e-150;
/// Number of pairs of points whose covariances are computed at once: they stay in the cache.
const PAIRS_AT_ONCE: usize = 2048;

choices! {
    /// Shape of a kernel: how smooth the functions of a Gaussian process are.
    KernelShape {
        /// Infinitely differentiable functions.
        SquaredExponential = "squared_exponential",
        /// Continuous functions without derivative.
        Matern12 = "matern12",
        /// Functions with one derivative.
        Matern32 = "matern32",
        /// Functions with two derivatives.
        Matern52 = "matern52",
    }
}

/// A kernel with its hyper-parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CovarianceKernel {
    pub(crate) shape: KernelShape,
    /// Logarithm of the length scale of each input.
    pub(crate) log_lengths: Vec<f64>,
    /// Logarithm of the signal's standard deviation `s`.
    pub(crate) log_signal: f64,
}

/// A derivative with respect to the hyper-parameters of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KernelGradient {
    pub(crate) log_lengths: Vec<f64>,
    pub(crate) log_signal: f64,
}

impl KernelGradient {
    pub(crate) fn zero(n_inputs: usize) -> Self {
        Self {
            log_lengths: vec![0.0; n_inputs],
            log_signal: 0.0,
        }
    }

    /// Adds another derivative.
    pub(crate) fn add(&mut self, other: &Self) {
        let pairs = self.log_lengths.iter_mut().zip(&other.log_lengths);
        pairs.for_each(|(sum, other)| *sum += other);
        self.log_signal += other.log_signal;
    }
}

impl CovarianceKernel {
    /// The variance `s²` of a function value.
    pub(crate) fn variance(&self) -> f64 {
        exp(2.0 * self.log_signal)
    }

    /// The points with inputs divided by their length scales, which all functions below take.
    pub(crate) fn scaled(&self, points: &Points) -> Points {
        let factors = self.log_lengths.iter().map(|log_length| exp(-log_length));
        points.times(&factors.collect::<Vec<_>>())
    }

    /// Writes the covariances of all pairs of points to `out` (a x b). Points are scaled.
    pub(crate) fn cross(&self, a: &Points, b: &Points, out: &mut [f64]) {
        let n_b = b.n().max(1);
        let n_at_once = (PAIRS_AT_ONCE / n_b).max(1);
        let parts = out[..a.n() * b.n()].chunks_mut(n_at_once * n_b);
        for (part, out) in until_cancelled(parts.enumerate()) {
            let first = part * n_at_once;
            let points = first..first + out.len() / n_b;
            out.fill(0.0);
            for input in 0..a.n_inputs() {
                add_cross_squares(&a.column(input)[points.clone()], b.column(input), out);
            }
            values(self.shape, self.variance(), out);
        }
    }

    /// Writes the lower triangle of the covariance matrix of scaled points to `out` (n x n).
    pub(crate) fn lower(&self, points: &Points, out: &mut [f64]) {
        let rows = out.chunks_exact_mut(points.n().max(1)).enumerate();
        for (point, out) in until_cancelled(rows) {
            let inputs: Vec<f64> = points.row(point).collect();
            squared_distances(points, &inputs, &mut out[..point]);
            values(self.shape, self.variance(), &mut out[..point]);
            out[point] = self.variance() * (1.0 + JITTER);
        }
    }

    /// The derivative of `Σ_ab weights_ab k_ab` over all pairs of scaled points (a x b).
    pub(crate) fn cross_gradient(&self, a: &Points, b: &Points, weights: &[f64]) -> KernelGradient {
        let mut sum = self.gradient_sum(b.n());
        let rows = weights.chunks_exact(b.n().max(1)).enumerate();
        for (point, weights) in until_cancelled(rows.take(a.n())) {
            sum.add_row(a, point, b, weights);
        }
        sum.gradient
    }

    /// The derivative of `Σ_ab weights_ab k_ab` over all pairs of scaled points, for symmetric
    /// weights (n x n) whose lower triangle is read.
    pub(crate) fn lower_gradient(&self, points: &Points, weights: &[f64]) -> KernelGradient {
        let mut sum = self.gradient_sum(points.n());
        let rows = weights.chunks_exact(points.n().max(1)).enumerate();
        let mut diagonal = 0.0;
        for (point, weights) in until_cancelled(rows) {
            sum.add_row(points, point, points, &weights[..point]);
            diagonal += weights[point];
        }
        let mut gradient = sum.gradient;
        gradient.log_lengths.iter_mut().for_each(|sum| *sum *= 2.0);
        gradient.log_signal *= 2.0;
        gradient.log_signal += 2.0 * self.variance() * (1.0 + JITTER) * diagonal;
        gradient
    }

    fn gradient_sum(&self, n: usize) -> GradientSum<'_> {
        GradientSum {
            kernel: self,
            gradient: KernelGradient::zero(self.log_lengths.len()),
            inputs: Vec::new(),
            distances: vec![0.0; n],
            slopes: vec![0.0; n],
        }
    }
}

/// A derivative that is summed row by row, with buffers for one row.
struct GradientSum<'a> {
    kernel: &'a CovarianceKernel,
    gradient: KernelGradient,
    inputs: Vec<f64>,
    distances: Vec<f64>,
    slopes: Vec<f64>,
}

impl GradientSum<'_> {
    /// Adds the pairs of one point of `a` with the first points of `b`, one for each weight.
    fn add_row(&mut self, a: &Points, point: usize, b: &Points, weights: &[f64]) {
        let Self {
            kernel,
            gradient,
            inputs,
            distances,
            slopes,
        } = self;
        let (distances, slopes) = (
            &mut distances[..weights.len()],
            &mut slopes[..weights.len()],
        );
        inputs.clear();
        inputs.extend(a.row(point));
        squared_distances(b, inputs, distances);
        weighted_slopes(kernel.shape, kernel.variance(), distances, weights, slopes);
        values(kernel.shape, kernel.variance(), distances);
        gradient.log_signal += 2.0 * dot(weights, distances);
        for (input, (sum, &x)) in gradient.log_lengths.iter_mut().zip(&*inputs).enumerate() {
            *sum += weighted_squares(slopes, b.column(input), x);
        }
    }
}

/// Writes the squared distances between a point and the first points of `to`, one for each value of
/// `out`.
fn squared_distances(to: &Points, inputs: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (input, &x) in inputs.iter().enumerate() {
        add_squares(to.column(input), x, out);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_squares(column: &[f64], x: f64, out: &mut [f64]) {
    for (out, value) in out.iter_mut().zip(column) {
        let difference = value - x;
        *out = difference.mul_add(difference, *out);
    }
}

/// Adds the squared differences of all pairs of values to `out` (a x b).
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn add_cross_squares(a: &[f64], b: &[f64], out: &mut [f64]) {
    for (out, x) in out.chunks_exact_mut(b.len()).zip(a) {
        for (out, value) in out.iter_mut().zip(b) {
            let difference = value - x;
            *out = difference.mul_add(difference, *out);
        }
    }
}

/// `Σ weight (value - x)²`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn weighted_squares(weights: &[f64], column: &[f64], x: f64) -> f64 {
    let column = &column[..weights.len()];
    let (weight_chunks, chunks) = (weights.chunks_exact(8), column.chunks_exact(8));
    let rest = weight_chunks.remainder().iter().zip(chunks.remainder());
    let rest: f64 = rest
        .map(|(weight, value)| weight * (value - x).powi(2))
        .sum();
    let mut sums = [0.0; 8];
    for (weights, values) in weight_chunks.zip(chunks) {
        for lane in 0..8 {
            let difference = values[lane] - x;
            sums[lane] = (weights[lane] * difference).mul_add(difference, sums[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Replaces squared distances by covariances.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn values(shape: KernelShape, variance: f64, distances: &mut [f64]) {
    match shape {
        KernelShape::SquaredExponential => {
            for x in distances {
                *x = variance * exp(-0.5 * *x);
            }
        }
        KernelShape::Matern12 => {
            for x in distances {
                *x = variance * exp(-x.sqrt());
            }
        }
        KernelShape::Matern32 => {
            for x in distances {
                let a = (3.0 * *x).sqrt();
                *x = variance * (1.0 + a) * exp(-a);
            }
        }
        KernelShape::Matern52 => {
            for x in distances {
                let a = (5.0 * *x).sqrt();
                *x = variance * (1.0 + a + a * a / 3.0) * exp(-a);
            }
        }
    }
}

/// Writes `weight s² h(r)` for squared distances `r²`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn weighted_slopes(
    shape: KernelShape,
    variance: f64,
    distances: &[f64],
    weights: &[f64],
    out: &mut [f64],
) {
    let pairs = out.iter_mut().zip(distances).zip(weights);
    match shape {
        KernelShape::SquaredExponential => {
            for ((out, &x), weight) in pairs {
                *out = weight * variance * exp(-0.5 * x);
            }
        }
        KernelShape::Matern12 => {
            for ((out, &x), weight) in pairs {
                let r = x.sqrt();
                *out = weight * variance * exp(-r) / r.max(MIN_DISTANCE);
            }
        }
        KernelShape::Matern32 => {
            for ((out, &x), weight) in pairs {
                *out = weight * variance * 3.0 * exp(-(3.0 * x).sqrt());
            }
        }
        KernelShape::Matern52 => {
            for ((out, &x), weight) in pairs {
                let a = (5.0 * x).sqrt();
                *out = weight * variance * (5.0 / 3.0) * (1.0 + a) * exp(-a);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::{central_difference, close};

    const SHAPES: [KernelShape; 4] = [
        KernelShape::SquaredExponential,
        KernelShape::Matern12,
        KernelShape::Matern32,
        KernelShape::Matern52,
    ];

    fn points(n: usize, step: usize) -> Points {
        let value = |at: usize| (at * step % 23) as f64 / 9.0 - 1.2;
        Points::from_columns((0..3 * n).map(value).collect(), n, 3)
    }

    fn kernel(shape: KernelShape, x: &[f64]) -> CovarianceKernel {
        CovarianceKernel {
            shape,
            log_lengths: x[..3].to_vec(),
            log_signal: x[3],
        }
    }

    const AT: [f64; 4] = [0.3, -0.4, 0.9, 0.2];

    #[test]
    fn covariances_agree_with_their_definitions() {
        let (a, b) = (points(2, 5), points(1, 7));
        let scale = |input: usize| f64::exp(-AT[input]);
        for shape in SHAPES {
            let kernel = kernel(shape, &AT);
            let mut found = [0.0; 2];
            kernel.cross(&kernel.scaled(&a), &kernel.scaled(&b), &mut found);
            for (point, found) in found.iter().enumerate() {
                let pairs = a.row(point).zip(b.row(0)).enumerate();
                let r = pairs
                    .map(|(input, (a, b))| ((a - b) * scale(input)).powi(2))
                    .sum::<f64>()
                    .sqrt();
                let expected = match shape {
                    KernelShape::SquaredExponential => (-r * r / 2.0).exp(),
                    KernelShape::Matern12 => (-r).exp(),
                    KernelShape::Matern32 => (1.0 + 3_f64.sqrt() * r) * (-(3_f64.sqrt()) * r).exp(),
                    KernelShape::Matern52 => {
                        (1.0 + 5_f64.sqrt() * r + 5.0 * r * r / 3.0) * (-(5_f64.sqrt()) * r).exp()
                    }
                };
                close(&[*found], &[f64::exp(0.4) * expected], 1e-12);
            }
        }
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        let (a, b) = (points(5, 5), points(9, 7));
        let weights: Vec<f64> = (0..45).map(|at| (at * 3 % 11) as f64 / 5.0 - 1.0).collect();
        let symmetric: Vec<f64> = (0..81)
            .map(|at| ((at / 9 + at % 9) * 5 % 13) as f64 / 6.0 - 1.0)
            .collect();
        for shape in SHAPES {
            let cross = |x: &[f64]| {
                let kernel = kernel(shape, x);
                let mut out = vec![0.0; 45];
                kernel.cross(&kernel.scaled(&a), &kernel.scaled(&b), &mut out);
                dot(&out, &weights)
            };
            let found = kernel(shape, &AT);
            let gradient = found.cross_gradient(&found.scaled(&a), &found.scaled(&b), &weights);
            let all = [gradient.log_lengths, vec![gradient.log_signal]].concat();
            close(&all, &central_difference(cross, &AT), 1e-7);
            let lower = |x: &[f64]| {
                let kernel = kernel(shape, x);
                let mut out = vec![0.0; 81];
                kernel.lower(&kernel.scaled(&b), &mut out);
                let entry = |at: usize| out[(at / 9).max(at % 9) * 9 + (at / 9).min(at % 9)];
                (0..81).map(|at| symmetric[at] * entry(at)).sum()
            };
            let gradient = found.lower_gradient(&found.scaled(&b), &symmetric);
            let all = [gradient.log_lengths, vec![gradient.log_signal]].concat();
            close(&all, &central_difference(lower, &AT), 1e-7);
        }
    }
}
