//! The posterior of a function: mean, variance and covariance at new points.
//!
//! With the covariances `k` of a new point to the points of the posterior and `a = L^-1 k`,
//!
//! - the mean is `k'α`,
//! - the variance is `s² - a'a` after exact conditioning, and `s² - a'a + a'Λ^-1 a` for inducing points
//!   whose whitened values have the posterior precision `Λ`.

use crate::error::Result;
use crate::gaussian_process::kernel::CovarianceKernel;
use crate::gaussian_process::points::Points;
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::numerics::gemm::{Matrix, transposed_product};
use crate::reserve;
use crate::stop::is_cancelled;

/// Number of new points that are evaluated at once. Blocks always have this size, so that the bits of
/// a prediction do not depend on the points around it.
pub(crate) const BLOCK: usize = 64;

/// The posterior of a function.
#[derive(Debug, Clone)]
pub(crate) struct GpPosterior {
    pub(crate) kernel: CovarianceKernel,
    /// The training points or the inducing points, divided by the length scales.
    pub(crate) points: Points,
    /// Weights of the mean.
    pub(crate) alpha: Vec<f64>,
    /// Factor `L` of the covariance of the noisy targets, or of the values at the inducing points.
    pub(crate) factor: DenseCholesky,
    /// Factor of the posterior precision `Λ` of the whitened values at inducing points.
    pub(crate) precision: Option<DenseCholesky>,
}

/// Mean and variance of the function at new points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latent {
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
}

/// The function at one block of new points.
pub(crate) struct LatentBlock<'a> {
    /// The points, divided by the length scales; the last one fills up the block.
    pub(crate) points: &'a Points,
    /// Number of points that are not filling.
    pub(crate) n: usize,
    /// Covariances with the points of the posterior (points x [`BLOCK`]).
    pub(crate) covariances: &'a [f64],
    /// Variances of all points of the block.
    pub(crate) variance: &'a [f64],
}

impl GpPosterior {
    /// Mean and variance at new points.
    pub(crate) fn latent(&self, points: &Points) -> Latent {
        let mut latent = Latent::default();
        self.each_block(points, |block| {
            let mut mean = vec![0.0; BLOCK];
            let n = self.points.n();
            let covariances = Matrix::new(block.covariances, n, BLOCK);
            transposed_product(&mut mean, covariances, Matrix::new(&self.alpha, n, 1));
            latent.mean.extend(&mean[..block.n]);
            latent.variance.extend(&block.variance[..block.n]);
        });
        // cancelled work has the right shape
        latent.mean.resize(points.n(), 0.0);
        latent.variance.resize(points.n(), 0.0);
        latent
    }

    /// Calls `take` on each block of new points.
    pub(crate) fn each_block(&self, points: &Points, mut take: impl FnMut(&LatentBlock<'_>)) {
        let n = self.points.n();
        let mut covariances = vec![0.0; n * BLOCK];
        let mut solved = vec![0.0; n * BLOCK];
        for start in (0..points.n()).step_by(BLOCK) {
            let last = points.n() - 1;
            let rows: Vec<usize> = (start..start + BLOCK).map(|row| row.min(last)).collect();
            let block = self.kernel.scaled(&points.take(&rows));
            self.kernel.cross(&self.points, &block, &mut covariances);
            solved.copy_from_slice(&covariances);
            let variance = self.variances(&mut solved);
            take(&LatentBlock {
                points: &block,
                n: BLOCK.min(points.n() - start),
                covariances: &covariances,
                variance: &variance,
            });
            if is_cancelled() {
                return;
            }
        }
    }

    /// Variances of one block; replaces the covariances by `L^-1` times them.
    fn variances(&self, covariances: &mut [f64]) -> Vec<f64> {
        let prior = self.kernel.variance();
        let mut variance = vec![prior; BLOCK];
        let mut add_squares = |factor: f64, solved: &[f64]| {
            for row in solved.chunks_exact(BLOCK) {
                for (variance, value) in variance.iter_mut().zip(row) {
                    *variance += factor * value * value;
                }
            }
        };
        self.factor.solve_lower(covariances, BLOCK);
        add_squares(-1.0, covariances);
        if let Some(precision) = &self.precision {
            precision.solve_lower(covariances, BLOCK);
            add_squares(1.0, covariances);
        }
        // rounding, or a damaged file: the data never add to the variance
        for variance in &mut variance {
            *variance = if variance.is_nan() {
                prior
            } else {
                variance.clamp(0.0, prior)
            };
        }
        variance
    }

    /// The covariance matrix of the function at new points (points x points).
    ///
    /// # Errors
    /// When the matrix does not fit into memory.
    pub(crate) fn covariance(&self, points: &Points) -> Result<Vec<f64>> {
        let (n, n_new) = (self.points.n(), points.n());
        let points = self.kernel.scaled(points);
        let mut covariance = reserve::zeros(n_new, n_new)?;
        self.kernel.cross(&points, &points, &mut covariance);
        let mut solved = reserve::zeros(n, n_new)?;
        self.kernel.cross(&self.points, &points, &mut solved);
        let mut products = reserve::zeros(n_new, n_new)?;
        let mut add_products = |factor: f64, solved: &[f64]| {
            let solved = Matrix::new(solved, n, n_new);
            transposed_product(&mut products, solved, solved);
            for (covariance, product) in covariance.iter_mut().zip(&products) {
                *covariance += factor * product;
            }
        };
        self.factor.solve_lower(&mut solved, n_new);
        add_products(-1.0, &solved);
        if let Some(precision) = &self.precision {
            precision.solve_lower(&mut solved, n_new);
            add_products(1.0, &solved);
        }
        for row in 0..n_new {
            let at = row * n_new + row;
            covariance[at] = covariance[at].max(0.0);
            for column in 0..row {
                covariance[column * n_new + row] = covariance[row * n_new + column];
            }
        }
        Ok(covariance)
    }
}
