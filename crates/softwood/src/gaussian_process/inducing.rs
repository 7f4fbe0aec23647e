//! The choice of inducing points: those of a sample of the rows that are uncertain given the points
//! chosen before (greedy conditional variance, Burt et al. 2020).

use crate::gaussian_process::kernel::CovarianceKernel;
use crate::gaussian_process::points::Points;
use crate::numerics::dot::dot;
use crate::rng::{Key, shuffle};
use crate::stop::until_cancelled;

/// Rows in the sample for each inducing point.
const CANDIDATES_PER_POINT: usize = 8;
/// A point whose conditional variance is below this share of its variance is not chosen: it would
/// make the covariance of the inducing points singular.
const MIN_VARIANCE: f64 = 1e-6;

/// At most `n_inducing` of the points, as indices.
pub(crate) fn choose(
    kernel: &CovarianceKernel,
    points: &Points,
    n_inducing: usize,
    key: Key,
) -> Vec<usize> {
    let mut candidates: Vec<usize> = (0..points.n()).collect();
    shuffle(&mut key.rng(), &mut candidates);
    candidates.truncate(n_candidates(n_inducing, points.n()));
    let chosen = choose_among(kernel, &points.take(&candidates), n_inducing);
    chosen.into_iter().map(|at| candidates[at]).collect()
}

/// At most `n_inducing` of the points, each the one whose value the earlier ones determine least.
pub(crate) fn choose_among(
    kernel: &CovarianceKernel,
    candidates: &Points,
    n_inducing: usize,
) -> Vec<usize> {
    let scaled = kernel.scaled(candidates);
    let n = scaled.n();
    let prior = kernel.variance();
    let mut variances = vec![prior; n];
    // rows of the partial Cholesky factor of the covariance, candidates x chosen
    let mut factors: Vec<Vec<f64>> = vec![Vec::new(); n];
    let mut chosen = Vec::new();
    let mut covariances = vec![0.0; n];
    for _ in until_cancelled(0..n_inducing.min(n)) {
        let best = (0..n).fold(0, |best, at| {
            if variances[at] > variances[best] {
                at
            } else {
                best
            }
        });
        if variances[best] < MIN_VARIANCE * prior {
            break;
        }
        kernel.cross(&scaled.take(&[best]), &scaled, &mut covariances);
        let pivot = variances[best].sqrt();
        let row = factors[best].clone();
        for (at, factor) in factors.iter_mut().enumerate() {
            let value = (covariances[at] - dot(&row, factor)) / pivot;
            factor.push(value);
            variances[at] -= value * value;
        }
        variances[best] = 0.0;
        chosen.push(best);
    }
    chosen
}

/// Number of points that inducing points are chosen from.
pub(crate) fn n_candidates(n_inducing: usize, n_points: usize) -> usize {
    n_inducing
        .saturating_mul(CANDIDATES_PER_POINT)
        .min(n_points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::kernel::KernelShape;

    #[test]
    fn chosen_points_spread_and_repeated_points_are_chosen_once() {
        let values: Vec<f64> = (0..300).map(|row| f64::from(row % 30)).collect();
        let points = Points::from_columns(values.clone(), 300, 1);
        let kernel = CovarianceKernel {
            shape: KernelShape::Matern32,
            log_lengths: vec![1.0],
            log_signal: 0.0,
        };
        let chosen = choose(&kernel, &points, 200, Key::from_seed(1));
        let mut found: Vec<i64> = chosen.iter().map(|&row| values[row] as i64).collect();
        found.sort_unstable();
        assert_eq!(found, (0..30).collect::<Vec<i64>>());
        let few = choose(&kernel, &points, 4, Key::from_seed(1));
        let mut found: Vec<f64> = few.iter().map(|&row| values[row]).collect();
        found.sort_by(f64::total_cmp);
        assert!(
            found.windows(2).all(|pair| pair[1] - pair[0] > 3.0),
            "{found:?}"
        );
    }
}
