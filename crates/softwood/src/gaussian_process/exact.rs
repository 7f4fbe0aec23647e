//! The exact Gaussian process: marginal likelihood with gradients, and the posterior.
//!
//! `w` observations of the same value `y` with noise variance `v` have the likelihood of one
//! observation with variance `v / w`, times `(2π v)^(-(w-1)/2) w^(-1/2)`. So a row of weight `w` has the
//! noise `v / w`, and the marginal likelihood has this factor. With
//! `K = k(X, X) + diag(v / w)` and `α = K^-1 y`,
//!
//! `ln p(y) = -½ y'α - ½ ln det K - ½ n ln 2π - ½ Σ_n ((w_n - 1) ln(2π v_n) + ln w_n)`,
//!
//! its derivative with respect to `K` is `½ (α α' - K^-1)`, and with respect to `v_n` it is
//! `½ (α_n² - [K^-1]_nn) / w_n - ½ (w_n - 1) / v_n`.

use std::f64::consts::TAU;

use crate::error::Result;
use crate::gaussian_process::kernel::{CovarianceKernel, KernelGradient};
use crate::gaussian_process::points::Observations;
use crate::gaussian_process::posterior::GpPosterior;
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::numerics::dot::dot;
use crate::reserve;

/// Log marginal likelihood and its derivatives.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) value: f64,
    pub(crate) kernel: KernelGradient,
    /// Derivative with respect to the noise variance of each row.
    pub(crate) noise: Vec<f64>,
}

/// The factored covariance of the targets and the weights `α = K^-1 y`.
struct Conditioned {
    factor: DenseCholesky,
    alpha: Vec<f64>,
    value: f64,
}

/// The factored covariance matrix of the rows; `None` if it is not positive definite.
///
/// # Errors
/// When the matrix does not fit into memory.
fn condition(kernel: &CovarianceKernel, rows: &Observations<'_>) -> Result<Option<Conditioned>> {
    let n = rows.points.n();
    let points = kernel.scaled(rows.points);
    let mut covariance = reserve::zeros(n, n)?;
    kernel.lower(&points, &mut covariance);
    for (row, (noise, weight)) in rows.noise.iter().zip(rows.weights).enumerate() {
        covariance[row * n + row] += noise / weight;
    }
    let Some(factor) = DenseCholesky::factor(covariance, n) else {
        return Ok(None);
    };
    let mut alpha = rows.targets.to_vec();
    factor.solve_lower(&mut alpha, 1);
    let quadratic = dot(&alpha, &alpha);
    factor.solve_upper(&mut alpha, 1);
    let repeated = rows.noise.iter().zip(rows.weights);
    let repeated: f64 = repeated
        .map(|(noise, weight)| (weight - 1.0) * (TAU * noise).ln() + weight.ln())
        .sum();
    let value = -0.5 * (quadratic + factor.ln_det() + n as f64 * TAU.ln() + repeated);
    Ok(Some(Conditioned {
        factor,
        alpha,
        value,
    }))
}

/// The log marginal likelihood of the rows with its gradient; `None` if the covariance matrix is not
/// positive definite.
///
/// # Errors
/// When the covariance matrix does not fit into memory.
pub(crate) fn log_marginal_likelihood(
    kernel: &CovarianceKernel,
    rows: &Observations<'_>,
) -> Result<Option<Evidence>> {
    let n = rows.points.n();
    let Some(Conditioned {
        factor,
        alpha,
        value,
    }) = condition(kernel, rows)?
    else {
        return Ok(None);
    };
    // the derivative ½ (α α' - K^-1) in place of the inverse
    let mut derivative = factor.into_inverse();
    for (row, derivative) in derivative.chunks_exact_mut(n.max(1)).enumerate() {
        for (column, derivative) in derivative[..=row].iter_mut().enumerate() {
            *derivative = 0.5 * alpha[row].mul_add(alpha[column], -*derivative);
        }
    }
    let scales = rows.noise.iter().zip(rows.weights).enumerate();
    let noise = scales
        .map(|(row, (noise, weight))| {
            derivative[row * n + row] / weight - 0.5 * (weight - 1.0) / noise
        })
        .collect();
    Ok(Some(Evidence {
        value,
        kernel: kernel.lower_gradient(&kernel.scaled(rows.points), &derivative),
        noise,
    }))
}

/// The posterior of the function given the rows; `None` if the covariance matrix is not positive
/// definite.
///
/// # Errors
/// When the covariance matrix does not fit into memory.
pub(crate) fn posterior(
    kernel: &CovarianceKernel,
    rows: &Observations<'_>,
) -> Result<Option<GpPosterior>> {
    let conditioned = condition(kernel, rows)?;
    Ok(conditioned.map(|conditioned| GpPosterior {
        points: kernel.scaled(rows.points),
        kernel: kernel.clone(),
        alpha: conditioned.alpha,
        factor: conditioned.factor,
        precision: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::kernel::KernelShape;
    use crate::gaussian_process::points::Points;
    use softwood_testkit::{central_difference, close};

    fn points(n: usize) -> Points {
        let value = |at: usize| (at * at * 7 % 31) as f64 / 9.0 - 1.7;
        Points::from_columns((0..2 * n).map(value).collect(), n, 2)
    }

    fn kernel(x: &[f64]) -> CovarianceKernel {
        CovarianceKernel {
            shape: KernelShape::Matern52,
            log_lengths: x[..2].to_vec(),
            log_signal: x[2],
        }
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        let points = points(9);
        let targets: Vec<f64> = (0..9).map(|row| f64::from(row * 5 % 7) - 3.0).collect();
        let weights: Vec<f64> = (0..9).map(|row| f64::from(row % 3) + 0.5).collect();
        let evidence = |x: &[f64]| {
            let rows = Observations {
                points: &points,
                targets: &targets,
                weights: &weights,
                noise: &x[3..],
            };
            log_marginal_likelihood(&kernel(x), &rows).unwrap().unwrap()
        };
        let mut x = vec![0.3, -0.2, 0.1];
        x.extend((0..9).map(|row| 0.05 + 0.02 * f64::from(row)));
        let found = evidence(&x);
        let kernel = found.kernel;
        let all = [kernel.log_lengths, vec![kernel.log_signal], found.noise].concat();
        close(&all, &central_difference(|x| evidence(x).value, &x), 1e-6);
    }

    #[test]
    fn a_weight_is_a_number_of_observations() {
        let once = points(6);
        let counts = [1, 3, 2, 1, 4, 1];
        let order: Vec<usize> = (0..6).flat_map(|row| vec![row; counts[row]]).collect();
        let repeated = once.take(&order);
        let y = [0.3, -1.0, 0.7, 1.1, -0.4, 0.2];
        let weights = counts.map(|count| count as f64);
        let noise: Vec<f64> = (0..6).map(|row| 0.1 + 0.05 * f64::from(row)).collect();
        let of = |values: &[f64]| order.iter().map(|&row| values[row]).collect::<Vec<f64>>();
        let (all_y, all_noise, ones) = (of(&y), of(&noise), vec![1.0; order.len()]);
        let short = Observations {
            points: &once,
            targets: &y,
            weights: &weights,
            noise: &noise,
        };
        let long = Observations {
            points: &repeated,
            targets: &all_y,
            weights: &ones,
            noise: &all_noise,
        };
        let kernel = kernel(&[0.2, 0.4, 0.1]);
        let [short_evidence, long_evidence] =
            [&short, &long].map(|rows| log_marginal_likelihood(&kernel, rows).unwrap().unwrap());
        close(&[short_evidence.value], &[long_evidence.value], 1e-6);
        let mut summed = [0.0; 6];
        for (&row, noise) in order.iter().zip(&long_evidence.noise) {
            summed[row] += noise;
        }
        close(&short_evidence.noise, &summed, 1e-5);
        let [a, b] = [&short, &long].map(|rows| {
            let posterior = posterior(&kernel, rows).unwrap().unwrap();
            posterior.latent(&points(9))
        });
        close(&a.mean, &b.mean, 1e-6);
        close(&a.variance, &b.variance, 1e-6);
    }
}
