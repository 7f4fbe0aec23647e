//! A Gaussian process on few inducing points in a form that predicts fast: with the covariances `k` of a
//! new point to the inducing points, the mean is `k'α` and the variance `s² - |F'k|²`.

use crate::gaussian_process::kernel::CovarianceKernel;
use crate::gaussian_process::points::Points;
use crate::gaussian_process::posterior::{GpPosterior, Latent};
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::numerics::gemm::{Matrix, product, transposed_product};
use crate::predictive::block::LANES;

/// Number of new points that are evaluated at once. Blocks always have this size, so that the bits of
/// a prediction do not depend on the points around it. It is the smallest number of rows of a block of
/// predictions: with more, models of many members would evaluate points that nobody asked for.
const BLOCK: usize = LANES;
/// Number of rows of `F'` whose products are computed at once; `F` is triangular, so they skip the
/// points before their own.
const PANEL: usize = 32;
/// Shares of the largest diagonal value that are added to the diagonal until `F` exists.
const JITTERS: [f64; 4] = [0.0, 1e-15, 1e-13, 1e-11];

/// The process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) kernel: CovarianceKernel,
    /// Inducing points.
    pub(super) points: Points,
    /// Inducing points, divided by the length scales.
    scaled: Points,
    pub(super) alpha: Vec<f64>,
    /// The lower triangle `F` (n x n), zero above the diagonal.
    factor: Vec<f64>,
}

impl Process {
    /// The process of a posterior at inducing points; `None` if `F` does not exist.
    ///
    /// For the posterior precision `Λ` of the whitened values, `F F' = L'^-1 (I - Λ^-1) L^-1`.
    pub(super) fn new(posterior: GpPosterior, points: Points) -> Option<Self> {
        let n = points.n();
        let inverse = posterior.factor.into_inverse_lower();
        let of_precision = posterior.precision?.into_inverse_lower();
        let mut known = vec![0.0; n * n];
        let g = Matrix::new(&of_precision, n, n);
        transposed_product(&mut known, g, g);
        for (at, value) in known.iter_mut().enumerate() {
            *value = f64::from(u8::from(at % (n + 1) == 0)) - *value;
        }
        let inverse = Matrix::new(&inverse, n, n);
        let mut half = vec![0.0; n * n];
        product(&mut half, Matrix::new(&known, n, n), inverse);
        let mut explained = vec![0.0; n * n];
        transposed_product(&mut explained, inverse, Matrix::new(&half, n, n));
        let largest = explained
            .iter()
            .step_by(n + 1)
            .fold(0.0, |a: f64, &b| a.max(b));
        let factor = JITTERS.iter().find_map(|jitter| {
            let mut shifted = explained.clone();
            let diagonal = shifted.iter_mut().step_by(n + 1);
            diagonal.for_each(|value| *value += jitter * largest);
            DenseCholesky::factor(shifted, n)
        })?;
        Self::from_parts(posterior.kernel, points, posterior.alpha, &factor.packed())
    }

    /// The process from its parts; `factor` is the lower triangle of `F`, row by row. `None` if lengths
    /// do not match.
    pub(super) fn from_parts(
        kernel: CovarianceKernel,
        points: Points,
        alpha: Vec<f64>,
        packed: &[f64],
    ) -> Option<Self> {
        let n = points.n();
        if alpha.len() != n || packed.len() != n * (n + 1) / 2 {
            return None;
        }
        let mut factor = vec![0.0; n * n];
        for row in 0..n {
            let start = row * (row + 1) / 2;
            factor[row * n..=row * n + row].copy_from_slice(&packed[start..=start + row]);
        }
        Some(Self {
            scaled: kernel.scaled(&points),
            kernel,
            points,
            alpha,
            factor,
        })
    }

    /// The lower triangle of `F`, row by row.
    pub(super) fn packed_factor(&self) -> Vec<f64> {
        let rows = self.factor.chunks_exact(self.points.n().max(1)).enumerate();
        rows.flat_map(|(row, values)| values[..=row].iter().copied())
            .collect()
    }

    /// Mean and variance of the function at new points, which are divided by the length scales.
    pub(super) fn latent(&self, scaled: &Points) -> Latent {
        let (n, n_new) = (self.points.n(), scaled.n());
        let mut latent = Latent::default();
        let mut covariances = vec![0.0; n * BLOCK];
        let mut products = vec![0.0; PANEL * BLOCK];
        let mut mean = vec![0.0; BLOCK];
        let prior = self.kernel.variance();
        for start in (0..n_new).step_by(BLOCK) {
            let rows: Vec<usize> = (start..start + BLOCK)
                .map(|row| row.min(n_new - 1))
                .collect();
            self.kernel
                .cross(&self.scaled, &scaled.take(&rows), &mut covariances);
            let alpha = Matrix::new(&self.alpha, 1, n);
            product(&mut mean, alpha, Matrix::new(&covariances, n, BLOCK));
            let mut explained = [0.0; BLOCK];
            for first in (0..n).step_by(PANEL) {
                let width = PANEL.min(n - first);
                let part = Matrix::part(&self.factor[first * n + first..], n - first, width, n);
                let below = Matrix::new(&covariances[first * BLOCK..], n - first, BLOCK);
                transposed_product(&mut products, part, below);
                for row in products.chunks_exact(BLOCK).take(width) {
                    for (sum, value) in explained.iter_mut().zip(row) {
                        // not fused: without a processor feature that is a function call
                        *sum += value * value;
                    }
                }
            }
            let n_rows = BLOCK.min(n_new - start);
            latent.mean.extend(&mean[..n_rows]);
            // rounding, or a damaged file: the data never add to the variance
            let variances = explained[..n_rows].iter().map(|explained| {
                let variance = prior - explained;
                if variance.is_nan() {
                    prior
                } else {
                    variance.clamp(0.0, prior)
                }
            });
            latent.variance.extend(variances);
        }
        latent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::kernel::KernelShape;
    use crate::gaussian_process::points::Observations;
    use crate::gaussian_process::sparse::{InducingBasis, NaturalParameters};
    use softwood_testkit::close;

    fn points(n: usize, step: usize) -> Points {
        // distinct points, since 101 is a prime
        let value = |at: usize| ((at * 37 + at / 50 + step * 11) % 101) as f64 / 30.0 - 1.7;
        Points::from_columns((0..2 * n).map(value).collect(), n, 2)
    }

    #[test]
    fn mean_and_variance_are_those_of_the_posterior() {
        let kernel = CovarianceKernel {
            shape: KernelShape::Matern52,
            log_lengths: vec![0.3, -0.2],
            log_signal: 0.4,
        };
        let (rows, inducing, new) = (points(60, 7), points(40, 3), points(70, 5));
        let targets: Vec<f64> = (0..60).map(|row| f64::from(row % 7) - 3.0).collect();
        let basis = InducingBasis::new(&kernel, &inducing).unwrap();
        let mut natural = NaturalParameters::prior(inducing.n());
        natural.add(
            &basis.project(Observations {
                points: &rows,
                targets: &targets,
                weights: &[1.0; 60],
                noise: &[0.04; 60],
            }),
            1.0,
        );
        let posterior = basis.posterior(natural.posterior().unwrap());
        let expected = posterior.latent(&new);
        let process = Process::new(posterior, inducing).unwrap();
        let found = process.latent(&kernel.scaled(&new));
        close(&found.mean, &expected.mean, 1e-9);
        close(&found.variance, &expected.variance, 1e-7);
        // a point alone has the bits that it has among others
        let alone = process.latent(&kernel.scaled(&new.take(&[66])));
        assert_eq!(alone.variance[0].to_bits(), found.variance[66].to_bits());
    }
}
