//! Sampled functions of a posterior by pathwise conditioning (Wilson et al. 2020): a function drawn
//! from the prior plus the update that makes it a draw from the posterior.
//!
//! A prior draw is a sum of `F` random Fourier features, `φ(x) = s/√F Σ_i (u_i cos ω_i'x + v_i sin ω_i'x)`
//! with standard Normal `u` and `v`; the frequencies `ω_i` follow the spectral density of the kernel: a
//! Normal distribution, or a Student t distribution with 2ν degrees of freedom for a Matern kernel of
//! order ν. The posterior draw minus the posterior mean is
//!
//! - `φ(x) - k'K^-1 (φ(X) + ε)` with noise `ε` after exact conditioning,
//! - `φ(x) - k'L'^-1 (L^-1 φ(Z) - e)` with `e ~ N(0, Λ^-1)` for inducing points `Z`.

use crate::gaussian_process::kernel::{CovarianceKernel, KernelShape};
use crate::gaussian_process::points::Points;
use crate::gaussian_process::posterior::GpPosterior;
use crate::numerics::gaussian::normals;
use crate::numerics::gemm::{Matrix, product, transposed_product};
use crate::rng::Key;

/// Number of frequencies `F`.
const N_FREQUENCIES: usize = 256;

/// Random streams of the draws.
mod streams {
    /// Frequencies of the features.
    pub(super) const FREQUENCIES: u64 = 0;
    /// Weights of the features.
    pub(super) const WEIGHTS: u64 = 1;
    /// Noise of the observations, or deviations of the values at the inducing points.
    pub(super) const NOISE: u64 = 2;
}

/// Functions drawn from the prior of a kernel, the same for the same key.
#[derive(Debug, Clone)]
pub(crate) struct PriorDraws {
    n_draws: usize,
    /// Inputs x [`N_FREQUENCIES`], for inputs divided by the length scales.
    frequencies: Vec<f64>,
    /// Features x draws.
    weights: Vec<f64>,
}

impl PriorDraws {
    pub(crate) fn new(kernel: &CovarianceKernel, n_draws: usize, key: Key) -> Self {
        let n_inputs = kernel.log_lengths.len();
        let key_of = |stream: u64| key.child(stream);
        let mut frequencies = normals(key_of(streams::FREQUENCIES), n_inputs * N_FREQUENCIES);
        // the square root of ν over half a chi-squared number makes a Normal number Student's t
        let degrees = match kernel.shape {
            KernelShape::SquaredExponential => 0,
            KernelShape::Matern12 => 1,
            KernelShape::Matern32 => 3,
            KernelShape::Matern52 => 5,
        };
        let tails = normals(
            key_of(streams::FREQUENCIES).child(1),
            degrees * N_FREQUENCIES,
        );
        for (at, of_frequency) in tails.chunks_exact(degrees.max(1)).enumerate() {
            let chi_squared: f64 = of_frequency.iter().map(|x| x * x).sum();
            let factor = (degrees as f64 / chi_squared.max(f64::MIN_POSITIVE)).sqrt();
            for frequency in frequencies.iter_mut().skip(at).step_by(N_FREQUENCIES) {
                *frequency *= factor;
            }
        }
        let scale = (kernel.variance() / N_FREQUENCIES as f64).sqrt();
        let weights = normals(key_of(streams::WEIGHTS), 2 * N_FREQUENCIES * n_draws);
        Self {
            n_draws,
            frequencies,
            weights: weights.into_iter().map(|weight| scale * weight).collect(),
        }
    }

    pub(crate) fn n_draws(&self) -> usize {
        self.n_draws
    }

    /// The functions at points that are divided by the length scales (points x draws).
    pub(crate) fn values(&self, points: &Points) -> Vec<f64> {
        let n = points.n();
        let mut angles = vec![0.0; n * N_FREQUENCIES];
        if points.n_inputs() > 0 {
            let columns = Matrix::new(points.columns(), points.n_inputs(), n);
            let frequencies = Matrix::new(&self.frequencies, points.n_inputs(), N_FREQUENCIES);
            transposed_product(&mut angles, columns, frequencies);
        }
        let features = angles.iter().flat_map(|angle| {
            let (sine, cosine) = angle.sin_cos();
            [cosine, sine]
        });
        let features: Vec<f64> = features.collect();
        let mut values = vec![0.0; n * self.n_draws];
        let weights = Matrix::new(&self.weights, 2 * N_FREQUENCIES, self.n_draws);
        product(
            &mut values,
            Matrix::new(&features, n, 2 * N_FREQUENCIES),
            weights,
        );
        values
    }
}

/// Weights of the covariances in the update of each draw (points x draws): the draw minus the
/// posterior mean is `φ(x) - k'weights`. After exact conditioning `noise` holds the variances of the
/// observations; for inducing points it is not used.
pub(crate) fn update_weights(
    posterior: &GpPosterior,
    prior: &PriorDraws,
    noise: &[f64],
    key: Key,
) -> Vec<f64> {
    let (n, n_draws) = (posterior.points.n(), prior.n_draws());
    let mut weights = prior.values(&posterior.points);
    let mut deviations = normals(key.child(streams::NOISE), n * n_draws);
    if let Some(precision) = &posterior.precision {
        posterior.factor.solve_lower(&mut weights, n_draws);
        precision.solve_upper(&mut deviations, n_draws);
        for (weight, deviation) in weights.iter_mut().zip(&deviations) {
            *weight -= deviation;
        }
    } else {
        for (at, weight) in weights.iter_mut().enumerate() {
            *weight += noise[at / n_draws].sqrt() * deviations[at];
        }
        posterior.factor.solve_lower(&mut weights, n_draws);
    }
    posterior.factor.solve_upper(&mut weights, n_draws);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    /// The covariance of two values of a draw is the kernel. With 256 frequencies and 4000 draws its
    /// standard deviation is below 0.07.
    #[test]
    fn the_covariance_of_prior_draws_is_the_kernel() {
        let points = Points::from_columns(vec![0.0, 0.3, 1.0, 2.5, 0.0, 0.4, 0.0, -1.0], 4, 2);
        for shape in [
            KernelShape::SquaredExponential,
            KernelShape::Matern12,
            KernelShape::Matern32,
            KernelShape::Matern52,
        ] {
            let kernel = CovarianceKernel {
                shape,
                log_lengths: vec![0.2, -0.1],
                log_signal: 0.1,
            };
            let points = kernel.scaled(&points);
            let draws = PriorDraws::new(&kernel, 4000, Key::from_seed(3)).values(&points);
            let mut expected = vec![0.0; 16];
            kernel.cross(&points, &points, &mut expected);
            let mut found = vec![0.0; 16];
            let draws = Matrix::new(&draws, 4, 4000);
            crate::numerics::gemm::product_transposed(&mut found, draws, draws);
            let found: Vec<f64> = found.iter().map(|sum| sum / 4000.0).collect();
            close(&found, &expected, 0.35);
        }
    }
}
