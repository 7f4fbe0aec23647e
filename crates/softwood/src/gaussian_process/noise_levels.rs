//! An exact Gaussian process whose noise has several levels: row `n` has level `l` with probability
//! `P_nl`, and level `l` has the variance `v_l = f² + e^(2 m_l)` with the floor `f`.
//!
//! Given the probabilities, the expectation of the log density of a target is that of one Normal
//! observation with the variance `1 / r_n = Σ_l P_nl / v_l`, plus a constant. So the log marginal
//! likelihood has the lower bound
//!
//! `B = ln p(y | r) + Σ_n w_n (½ ln r_n - ½ Σ_l P_nl ln v_l)`,
//!
//! which is exact if every row has one level. With the posterior expectation `s_n` of
//! `(y_n - f(x_n))²`, its derivative with respect to `v_l` is `Σ_n w_n P_nl (s_n / v_l - 1) / (2 v_l)`.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::gaussian_process::exact::log_marginal_likelihood;
use crate::gaussian_process::exact_training::{HyperEstimate, search};
use crate::gaussian_process::hyperparameters::{EstimationProblem, log_noise_prior};

/// The probabilities of the levels of each row.
#[derive(Debug, Clone)]
pub(crate) enum LevelShares {
    /// The level of each row.
    One(Vec<usize>),
    /// Probabilities, rows x levels.
    Several(Vec<f64>),
}

impl LevelShares {
    /// Calls `take` with the levels of a row and their probabilities.
    fn each(&self, row: usize, n_levels: usize, mut take: impl FnMut(usize, f64)) {
        match self {
            Self::One(levels) => take(levels[row], 1.0),
            Self::Several(shares) => {
                let of_row = &shares[row * n_levels..(row + 1) * n_levels];
                for (level, &share) in of_row.iter().enumerate() {
                    take(level, share);
                }
            }
        }
    }

    /// The variance of the single observation that each of `n` rows stands for.
    pub(crate) fn variances(&self, levels: &[f64], n: usize) -> Vec<f64> {
        let variance = |row: usize| {
            let mut precision = 0.0;
            self.each(row, levels.len(), |level, share| {
                precision += share / levels[level];
            });
            1.0 / precision
        };
        (0..n).map(variance).collect()
    }

    /// The variance of each level under which squared errors are most probable. Its logarithm is
    /// shrunk towards that of all rows, as if a level had `n_pseudo` more rows.
    pub(crate) fn fitted(&self, squares: &[f64], weights: &[f64], fit: LevelFit) -> Vec<f64> {
        let LevelFit { n_levels, n_pseudo } = fit;
        let (mut total, mut sum) = (0.0, 0.0);
        let mut sums = vec![[0.0; 2]; n_levels];
        for (row, (square, weight)) in squares.iter().zip(weights).enumerate() {
            total += weight;
            sum += weight * square;
            self.each(row, n_levels, |level, share| {
                sums[level][0] += weight * share;
                sums[level][1] += weight * share * square;
            });
        }
        let mean = sum / total;
        let level = |&[weight, square]: &[f64; 2]| {
            if weight <= 0.0 || square <= 0.0 {
                return mean;
            }
            let logs = weight * (square / weight).ln() + n_pseudo * mean.ln();
            (logs / (weight + n_pseudo)).exp()
        };
        sums.iter().map(level).collect()
    }
}

/// Number of levels, and number of pseudo-rows of each level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelFit {
    pub(crate) n_levels: usize,
    pub(crate) n_pseudo: f64,
}

/// Rows whose noise has several levels. The space of the hyper-parameters has a noise of 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelProblem<'a> {
    pub(crate) estimation: EstimationProblem<'a>,
    pub(crate) shares: &'a LevelShares,
}

/// Hyper-parameters and the coordinates `m` of the levels.
#[derive(Debug, Clone)]
pub(crate) struct LevelEstimate {
    pub(crate) theta: Vec<f64>,
    pub(crate) log_scales: Vec<f64>,
    /// The bound plus the log density of the priors.
    pub(crate) value: f64,
}

/// Variances of levels with these coordinates above a floor of the standard deviation.
pub(crate) fn level_variances(log_scales: &[f64], min_sd: f64) -> Vec<f64> {
    let level = |m: &f64| min_sd * min_sd + (2.0 * m).exp();
    log_scales.iter().map(level).collect()
}

/// The bound at an estimate.
#[derive(Debug)]
pub(crate) struct LevelBound {
    pub(crate) value: f64,
    /// Derivatives with respect to the hyper-parameters and the coordinates of the levels.
    pub(crate) gradient: Vec<f64>,
    /// Expected squared error of each row.
    pub(crate) squares: Vec<f64>,
}

impl LevelProblem<'_> {
    /// Variances of the levels.
    fn levels(&self, log_scales: &[f64]) -> Vec<f64> {
        level_variances(log_scales, self.estimation.space.min_noise_sd)
    }

    /// The bound without priors; `None` if the covariance cannot be factored.
    ///
    /// # Errors
    /// When the covariance matrix does not fit into memory.
    pub(crate) fn bound(&self, theta: &[f64], log_scales: &[f64]) -> Result<Option<LevelBound>> {
        let EstimationProblem { space, rows } = self.estimation;
        let Some(found) = space.at(theta) else {
            return Ok(None);
        };
        let levels = self.levels(log_scales);
        let noise = self.shares.variances(&levels, rows.points.n());
        let Some(evidence) = log_marginal_likelihood(&found.kernel, &rows.observations(&noise))?
        else {
            return Ok(None);
        };
        let mut gradient = space.gradient(theta, &evidence.kernel, 0.0);
        let mut of_levels = vec![0.0; levels.len()];
        let mut value = evidence.value;
        let mut squares = Vec::with_capacity(noise.len());
        let largest = rows
            .targets
            .iter()
            .fold(0.0, |max: f64, y| max.max(y.abs()));
        for (row, (&noise, &weight)) in noise.iter().zip(rows.weights).enumerate() {
            // rounding errors of rows with very small weights are larger than any error can be
            let most = (rows.targets[row].abs() + largest).powi(2) + found.kernel.variance();
            let square = expected_square(noise, weight, evidence.noise[row]).min(most);
            squares.push(square);
            let mut mean_log = 0.0;
            self.shares.each(row, levels.len(), |level, share| {
                let v = levels[level];
                mean_log += share * v.ln();
                of_levels[level] += 0.5 * weight * share * (square / v - 1.0) / v;
            });
            value += 0.5 * weight * (noise.ln() - mean_log);
        }
        let chained = of_levels.iter().zip(log_scales);
        gradient.extend(chained.map(|(slope, m)| slope * 2.0 * (2.0 * m).exp()));
        Ok(Some(LevelBound {
            value,
            gradient,
            squares,
        }))
    }

    /// Maximises the bound times the priors from `start`; `on_iteration` hears of every iteration and
    /// may stop the search.
    ///
    /// # Errors
    /// As [`maximise`](crate::gaussian_process::exact_training::maximise).
    pub(crate) fn maximise(
        &self,
        start: &LevelEstimate,
        max_iterations: usize,
        on_iteration: &mut dyn FnMut(usize, &HyperEstimate) -> ControlFlow<()>,
    ) -> Result<LevelEstimate> {
        let n_theta = start.theta.len();
        let space = self.estimation.space;
        let joined = [&start.theta[..], &start.log_scales].concat();
        let mut evaluate = |x: &[f64]| {
            let (theta, log_scales) = x.split_at(n_theta);
            let Some(bound) = self.bound(theta, log_scales)? else {
                return Ok(None);
            };
            let (mut prior, mut slopes) = space.log_prior(theta);
            for &m in log_scales {
                let (value, slope) = log_noise_prior(m);
                prior += value;
                slopes.push(slope);
            }
            let gradient = bound.gradient.iter().zip(&slopes);
            let gradient = gradient.map(|(slope, prior)| -slope - prior).collect();
            Ok(Some((-bound.value - prior, gradient)))
        };
        let found = search(joined, max_iterations, &mut evaluate, on_iteration)?;
        let (theta, log_scales) = found.theta.split_at(n_theta);
        Ok(LevelEstimate {
            theta: theta.to_vec(),
            log_scales: log_scales.to_vec(),
            value: found.value,
        })
    }
}

/// The expected squared error of a row, from its noise variance, its weight and the derivative of the
/// log marginal likelihood with respect to the variance.
fn expected_square(noise: f64, weight: f64, slope: f64) -> f64 {
    (noise + 2.0 * noise * noise * slope / weight).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_process::exact;
    use crate::gaussian_process::hyperparameters::{FixedHyperparameters, HyperSpace, MODEL_PRIOR};
    use crate::gaussian_process::kernel::KernelShape;
    use crate::gaussian_process::points::{Points, TargetRows};
    use softwood_testkit::{central_difference, close};

    const N: usize = 9;

    fn space() -> HyperSpace {
        HyperSpace {
            shape: KernelShape::Matern52,
            n_inputs: 2,
            fixed: FixedHyperparameters {
                noise_sd: Some(1.0),
                ..FixedHyperparameters::default()
            },
            min_noise_sd: 0.05,
            prior: MODEL_PRIOR,
        }
    }

    struct Rows {
        points: Points,
        targets: Vec<f64>,
        weights: Vec<f64>,
        ones: Vec<f64>,
    }

    impl Rows {
        fn new() -> Self {
            let value = |at: usize| (at * at * 7 % 31) as f64 / 9.0 - 1.7;
            Self {
                points: Points::from_columns((0..2 * N).map(value).collect(), N, 2),
                targets: (0..N).map(|row| (row * 5 % 7) as f64 / 2.0 - 1.0).collect(),
                weights: (0..N).map(|row| (row % 3) as f64 + 0.5).collect(),
                ones: vec![1.0; N],
            }
        }

        fn problem<'a>(
            &'a self,
            space: &'a HyperSpace,
            shares: &'a LevelShares,
        ) -> LevelProblem<'a> {
            let rows = TargetRows {
                points: &self.points,
                targets: &self.targets,
                weights: &self.weights,
                noise_factors: &self.ones,
            };
            LevelProblem {
                estimation: EstimationProblem { space, rows },
                shares,
            }
        }
    }

    fn shares() -> [LevelShares; 2] {
        let soft = |row: usize| [0.1 * row as f64, 0.05, 0.95 - 0.1 * row as f64];
        [
            LevelShares::One((0..N).map(|row| row % 3).collect()),
            LevelShares::Several((0..N).flat_map(soft).collect()),
        ]
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        let (rows, space) = (Rows::new(), space());
        let x = [0.3, -0.2, 0.1, -1.0, -0.4, 0.2];
        for shares in shares() {
            let problem = rows.problem(&space, &shares);
            let bound = |x: &[f64]| problem.bound(&x[..3], &x[3..]).unwrap().unwrap();
            let difference = central_difference(|x| bound(x).value, &x);
            close(&bound(&x).gradient, &difference, 1e-6);
        }
    }

    #[test]
    fn expected_squares_are_those_of_the_posterior() {
        let (rows, space) = (Rows::new(), space());
        let shares = &shares()[1];
        let problem = rows.problem(&space, shares);
        let (theta, log_scales) = ([0.3, -0.2, 0.1], [-1.0, -0.4, 0.2]);
        let found = problem.bound(&theta, &log_scales).unwrap().unwrap();
        let noise = shares.variances(&problem.levels(&log_scales), N);
        let observations = problem.estimation.rows.observations(&noise);
        let kernel = space.at(&theta).unwrap().kernel;
        let posterior = exact::posterior(&kernel, &observations).unwrap().unwrap();
        let latent = posterior.latent(&rows.points);
        let terms = latent.mean.iter().zip(&latent.variance).zip(&rows.targets);
        let squares: Vec<f64> = terms.map(|((mean, v), y)| (y - mean).powi(2) + v).collect();
        close(&found.squares, &squares, 1e-8);
    }

    /// Rows with one level each have the marginal likelihood of their variances, and the bound of a
    /// mixture of levels is the expectation of the log densities plus the evidence of the function.
    #[test]
    fn the_bound_of_one_level_is_the_marginal_likelihood() {
        let (rows, space) = (Rows::new(), space());
        let shares = &shares()[0];
        let problem = rows.problem(&space, shares);
        let (theta, log_scales) = ([0.3, -0.2, 0.1], [-1.0, -0.4, 0.2]);
        let noise = shares.variances(&problem.levels(&log_scales), N);
        let observations = problem.estimation.rows.observations(&noise);
        let kernel = space.at(&theta).unwrap().kernel;
        let evidence = log_marginal_likelihood(&kernel, &observations);
        let bound = problem.bound(&theta, &log_scales).unwrap().unwrap();
        close(&[bound.value], &[evidence.unwrap().unwrap().value], 1e-10);
    }
}
