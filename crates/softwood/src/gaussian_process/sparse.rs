//! A sparse Gaussian process: a variational posterior of the function values at inducing points
//! (Titsias 2009; Hensman et al. 2013).
//!
//! The values at the inducing points are `u = L v` with `k(Z, Z) = L L'` and a standard Normal prior
//! of the whitened values `v`, whose posterior is `q(v) = N(m, Λ^-1)`. With `a_n = L^-1 k(Z, x_n)`,
//!
//! - row n has the mean `μ_n = a_n'm` and the variance `c_n = s² - a_n'a_n + a_n'Λ^-1 a_n`,
//! - the bound is `Σ_n w_n (ln N(y_n | μ_n, v_n) - c_n / (2 v_n)) - KL(q || N(0, I))`,
//! - its optimum is `Λ = I + Σ_n w_n a_n a_n' / v_n`, `Λ m = Σ_n w_n a_n y_n / v_n`. A natural-gradient
//!   step of length ρ with a minibatch moves `Λ` and `Λ m` by the share ρ towards the optimum of the
//!   minibatch.
//!
//! At this optimum the derivative of the bound with respect to anything else is its partial
//! derivative, so one function serves the collapsed bound and minibatches.

use std::f64::consts::TAU;

use crate::gaussian_process::kernel::{CovarianceKernel, KernelGradient};
use crate::gaussian_process::points::{Observations, Points};
use crate::gaussian_process::posterior::GpPosterior;
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::numerics::dot::dot;
use crate::numerics::gemm::{Matrix, product, product_transposed};

/// Inducing points under a kernel.
#[derive(Debug, Clone)]
pub(crate) struct InducingBasis {
    kernel: CovarianceKernel,
    /// Inducing points, divided by the length scales.
    points: Points,
    factor: DenseCholesky,
}

/// Rows under a basis: their projections `a_n`.
#[derive(Debug)]
pub(crate) struct Projected<'a> {
    rows: Observations<'a>,
    /// The points of the rows, divided by the length scales.
    points: Points,
    /// `a` (inducing points x rows).
    projections: Vec<f64>,
}

/// Natural parameters of `q(v)`: the precision `Λ` (lower triangle of m x m) and `Λ m`.
#[derive(Debug, Clone)]
pub(crate) struct NaturalParameters {
    precision: Vec<f64>,
    shift: Vec<f64>,
}

/// The posterior `q(v)`.
#[derive(Debug, Clone)]
pub(crate) struct WhitenedPosterior {
    mean: Vec<f64>,
    /// Factor of the precision `Λ`.
    precision: DenseCholesky,
}

/// The likelihood part of the bound and its partial derivatives.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedLikelihood {
    pub(crate) value: f64,
    pub(crate) kernel: KernelGradient,
    /// Derivative with respect to the noise variance of each row.
    pub(crate) noise: Vec<f64>,
}

impl InducingBasis {
    /// `None` if the covariance of the inducing points cannot be factored.
    pub(crate) fn new(kernel: &CovarianceKernel, inducing: &Points) -> Option<Self> {
        let n = inducing.n();
        let points = kernel.scaled(inducing);
        let mut covariance = vec![0.0; n * n];
        kernel.lower(&points, &mut covariance);
        Some(Self {
            kernel: kernel.clone(),
            points,
            factor: DenseCholesky::factor(covariance, n)?,
        })
    }

    /// The rows with their projections.
    pub(crate) fn project<'a>(&self, rows: Observations<'a>) -> Projected<'a> {
        let points = self.kernel.scaled(rows.points);
        let mut projections = vec![0.0; self.points.n() * points.n()];
        self.kernel.cross(&self.points, &points, &mut projections);
        self.factor.solve_lower(&mut projections, points.n());
        Projected {
            rows,
            points,
            projections,
        }
    }

    /// The expectation of `(y_n - f(x_n))²` for each row.
    pub(crate) fn expected_squares(
        &self,
        q: &WhitenedPosterior,
        projected: &Projected<'_>,
    ) -> Vec<f64> {
        let Projected {
            rows,
            projections: a,
            ..
        } = projected;
        let (m, n) = (self.points.n(), rows.points.n());
        let mut solved = a.clone();
        q.precision.solve_lower(&mut solved, n);
        let (spread, explained) = (column_squares(&solved, n), column_squares(a, n));
        let mut means = vec![0.0; n];
        product(&mut means, Matrix::new(&q.mean, 1, m), Matrix::new(a, m, n));
        let square = |row: usize| {
            let variance = self.kernel.variance() - explained[row] + spread[row];
            (rows.targets[row] - means[row]).powi(2) + variance.max(0.0)
        };
        (0..n).map(square).collect()
    }

    /// The likelihood part of the bound for projected rows, with derivatives.
    pub(crate) fn expected_likelihood(
        &self,
        q: &WhitenedPosterior,
        projected: &Projected<'_>,
    ) -> ExpectedLikelihood {
        let Projected {
            rows,
            points,
            projections: a,
        } = projected;
        let (m, n) = (self.points.n(), points.n());
        // Λ^-1 a, and for each row a'Λ^-1 a
        let mut solved = a.clone();
        q.precision.solve_lower(&mut solved, n);
        let spread = column_squares(&solved, n);
        q.precision.solve_upper(&mut solved, n);
        let explained = column_squares(a, n);
        let mut means = vec![0.0; n];
        product(&mut means, Matrix::new(&q.mean, 1, m), Matrix::new(a, m, n));
        let prior = self.kernel.variance();
        let (mut value, mut slope_of_signal) = (0.0, 0.0);
        let (mut of_mean, mut of_variance) = (vec![0.0; n], vec![0.0; n]);
        let mut noise_slopes = vec![0.0; n];
        for row in 0..n {
            let (noise, weight) = (rows.noise[row], rows.weights[row]);
            let error = rows.targets[row] - means[row];
            let square = error * error + (prior - explained[row] + spread[row]).max(0.0);
            value -= 0.5 * weight * ((TAU * noise).ln() + square / noise);
            of_mean[row] = weight * error / noise;
            of_variance[row] = -0.5 * weight / noise;
            slope_of_signal += of_variance[row] * 2.0 * prior;
            noise_slopes[row] = 0.5 * weight * (square / noise - 1.0) / noise;
        }
        // derivative with respect to a, in place of Λ^-1 a
        for (inducing, solved) in solved.chunks_exact_mut(n.max(1)).enumerate() {
            let a = &a[inducing * n..(inducing + 1) * n];
            for row in 0..n {
                solved[row] = of_mean[row] * q.mean[inducing]
                    + 2.0 * of_variance[row] * (solved[row] - a[row]);
            }
        }
        let mut kernel = self.backward(solved, projected);
        kernel.log_signal += slope_of_signal;
        ExpectedLikelihood {
            value,
            kernel,
            noise: noise_slopes,
        }
    }

    /// The derivative with respect to the hyper-parameters, from that with respect to the
    /// projections (m x n).
    ///
    /// For `a = L^-1 k(Z, X)` with derivative `G` that of `k(Z, X)` is `L'^-1 G`, and that of `k(Z, Z)` is
    /// the symmetric part of `-L'^-1 P L^-1`, where `P` is the lower triangle of `G a'` with half of its
    /// diagonal.
    fn backward(&self, mut slopes: Vec<f64>, projected: &Projected<'_>) -> KernelGradient {
        let (m, n) = (self.points.n(), projected.points.n());
        let mut lower = vec![0.0; m * m];
        let a = Matrix::new(&projected.projections, m, n);
        product_transposed(&mut lower, Matrix::new(&slopes, m, n), a);
        for (row, lower) in lower.chunks_exact_mut(m.max(1)).enumerate() {
            lower[row] *= 0.5;
            lower[row + 1..].fill(0.0);
        }
        // L'^-1 P L^-1 = (L'^-1 (L'^-1 P)')'
        self.factor.solve_upper(&mut lower, m);
        transpose(&mut lower, m);
        self.factor.solve_upper(&mut lower, m);
        for row in 0..m {
            for column in 0..=row {
                let sum = lower[row * m + column] + lower[column * m + row];
                lower[row * m + column] = -0.5 * sum;
            }
        }
        let mut gradient = self.kernel.lower_gradient(&self.points, &lower);
        self.factor.solve_upper(&mut slopes, n);
        gradient.add(
            &self
                .kernel
                .cross_gradient(&self.points, &projected.points, &slopes),
        );
        gradient
    }

    /// The posterior of the function.
    pub(crate) fn posterior(self, q: WhitenedPosterior) -> GpPosterior {
        let mut alpha = q.mean;
        self.factor.solve_upper(&mut alpha, 1);
        GpPosterior {
            kernel: self.kernel,
            points: self.points,
            alpha,
            factor: self.factor,
            precision: Some(q.precision),
        }
    }
}

impl NaturalParameters {
    /// Those of the prior of `n` whitened values.
    pub(crate) fn prior(n: usize) -> Self {
        let mut precision = vec![0.0; n * n];
        precision.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
        Self {
            precision,
            shift: vec![0.0; n],
        }
    }

    /// Adds the likelihood of projected rows, `factor` times.
    pub(crate) fn add(&mut self, projected: &Projected<'_>, factor: f64) {
        let Projected {
            rows, projections, ..
        } = projected;
        let (m, n) = (self.shift.len(), rows.points.n());
        let scales = rows.weights.iter().zip(rows.noise);
        let scales: Vec<f64> = scales
            .map(|(weight, noise)| factor * weight / noise)
            .collect();
        let mut weighted = projections.clone();
        for (row, shift) in weighted.chunks_exact_mut(n.max(1)).zip(&mut self.shift) {
            for (value, scale) in row.iter_mut().zip(&scales) {
                *value *= scale;
            }
            *shift += dot(row, rows.targets);
        }
        let mut products = vec![0.0; m * m];
        let a = Matrix::new(projections, m, n);
        product_transposed(&mut products, Matrix::new(&weighted, m, n), a);
        for (precision, product) in self.precision.iter_mut().zip(&products) {
            *precision += product;
        }
    }

    /// Moves by the share `rate` towards other parameters.
    pub(crate) fn approach(&mut self, other: &Self, rate: f64) {
        let precisions = self.precision.iter_mut().zip(&other.precision);
        let shifts = self.shift.iter_mut().zip(&other.shift);
        for (value, other) in precisions.chain(shifts) {
            *value += rate * (other - *value);
        }
    }

    /// The posterior; `None` if the precision cannot be factored.
    pub(crate) fn posterior(&self) -> Option<WhitenedPosterior> {
        let precision = DenseCholesky::factor(self.precision.clone(), self.shift.len())?;
        let mut mean = self.shift.clone();
        precision.solve_lower(&mut mean, 1);
        precision.solve_upper(&mut mean, 1);
        Some(WhitenedPosterior { mean, precision })
    }
}

impl WhitenedPosterior {
    /// `KL(q || N(0, I)) = ½ (tr Λ^-1 + m'm - n + ln det Λ)`.
    pub(crate) fn kl(&self) -> f64 {
        let n = self.mean.len();
        let inverse = self.precision.clone().into_inverse_lower();
        let trace = dot(&inverse, &inverse);
        0.5 * (trace + dot(&self.mean, &self.mean) - n as f64 + self.precision.ln_det())
    }
}

/// Sums of squares of the columns of a matrix with `n` columns.
fn column_squares(values: &[f64], n: usize) -> Vec<f64> {
    let mut sums = vec![0.0; n];
    for row in values.chunks_exact(n.max(1)) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value * value;
        }
    }
    sums
}

fn transpose(a: &mut [f64], n: usize) {
    for row in 0..n {
        for column in 0..row {
            a.swap(row * n + column, column * n + row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::exact;
    use crate::gaussian_process::kernel::KernelShape;
    use softwood_testkit::{central_difference, close};

    fn points(n: usize, step: usize) -> Points {
        let value = |at: usize| (at * at * step % 31) as f64 / 9.0 - 1.7;
        Points::from_columns((0..2 * n).map(value).collect(), n, 2)
    }

    fn kernel(x: &[f64]) -> CovarianceKernel {
        CovarianceKernel {
            shape: KernelShape::Matern32,
            log_lengths: x[..2].to_vec(),
            log_signal: x[2],
        }
    }

    struct Problem {
        points: Points,
        targets: Vec<f64>,
        weights: Vec<f64>,
    }

    impl Problem {
        fn new(n: usize) -> Self {
            Self {
                points: points(n, 7),
                targets: (0..n).map(|row| (row * 5 % 7) as f64 / 3.0 - 1.0).collect(),
                weights: (0..n).map(|row| (row % 3) as f64 + 0.5).collect(),
            }
        }

        fn rows<'a>(&'a self, noise: &'a [f64]) -> Observations<'a> {
            Observations {
                points: &self.points,
                targets: &self.targets,
                weights: &self.weights,
                noise,
            }
        }
    }

    fn optimum(basis: &InducingBasis, rows: Observations<'_>) -> WhitenedPosterior {
        let mut natural = NaturalParameters::prior(basis.points.n());
        natural.add(&basis.project(rows), 1.0);
        natural.posterior().unwrap()
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        let (problem, inducing) = (Problem::new(9), points(4, 5));
        let mut x = vec![0.3, -0.2, 0.1];
        x.extend((0..9).map(|row| 0.05 + 0.02 * f64::from(row)));
        let q = {
            let basis = InducingBasis::new(&kernel(&x), &inducing).unwrap();
            optimum(&basis, problem.rows(&[0.3; 9]))
        };
        let part = |x: &[f64]| {
            let basis = InducingBasis::new(&kernel(x), &inducing).unwrap();
            let projected = basis.project(problem.rows(&x[3..]));
            basis.expected_likelihood(&q, &projected)
        };
        let found = part(&x);
        let kernel_part = found.kernel;
        let all = [
            kernel_part.log_lengths,
            vec![kernel_part.log_signal],
            found.noise,
        ]
        .concat();
        close(&all, &central_difference(|x| part(x).value, &x), 1e-6);
    }

    /// With the training points as inducing points the bound is the marginal likelihood.
    #[test]
    fn all_training_points_as_inducing_points_give_the_exact_process() {
        let problem = Problem::new(12);
        let distinct = Points::from_columns(
            (0..24)
                .map(|at| (at * 11 % 24) as f64 / 5.0 - 2.0)
                .collect(),
            12,
            2,
        );
        let problem = Problem {
            points: distinct,
            ..problem
        };
        let kernel = kernel(&[0.1, 0.3, -0.1]);
        let noise = [0.2; 12];
        let rows = problem.rows(&noise);
        let basis = InducingBasis::new(&kernel, rows.points).unwrap();
        let q = optimum(&basis, rows);
        let part = basis.expected_likelihood(&q, &basis.project(rows));
        let bound = part.value - q.kl();
        let evidence = exact::log_marginal_likelihood(&kernel, &rows)
            .unwrap()
            .unwrap();
        close(&[bound], &[evidence.value], 1e-5);
        close(&part.kernel.log_lengths, &evidence.kernel.log_lengths, 1e-4);
        close(&part.noise, &evidence.noise, 1e-4);
        let sparse = basis.posterior(q);
        let exact = exact::posterior(&kernel, &rows).unwrap().unwrap();
        let new = points(20, 3);
        let (a, b) = (sparse.latent(&new), exact.latent(&new));
        close(&a.mean, &b.mean, 1e-6);
        close(&a.variance, &b.variance, 1e-6);
        let [a, b] = [&sparse, &exact].map(|posterior| posterior.covariance(&new).unwrap());
        close(&a, &b, 1e-6);
    }

    #[test]
    fn the_collapsed_bound_is_below_the_marginal_likelihood_and_q_is_its_maximum() {
        let (problem, inducing) = (Problem::new(20), points(5, 5));
        let kernel = kernel(&[0.4, 0.3, 0.1]);
        let noise = [0.3; 20];
        let rows = problem.rows(&noise);
        let basis = InducingBasis::new(&kernel, &inducing).unwrap();
        let bound = |q: &WhitenedPosterior| {
            basis.expected_likelihood(q, &basis.project(rows)).value - q.kl()
        };
        let q = optimum(&basis, rows);
        let evidence = exact::log_marginal_likelihood(&kernel, &rows)
            .unwrap()
            .unwrap();
        assert!(bound(&q) < evidence.value);
        let mut other = NaturalParameters::prior(5);
        other.add(&basis.project(rows), 1.0);
        let mut prior = NaturalParameters::prior(5);
        prior.approach(&other, 0.9);
        assert!(bound(&prior.posterior().unwrap()) < bound(&q));
    }
}
