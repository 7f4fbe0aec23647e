//! Hyper-parameters of a Gaussian process with constant noise, and their estimation: starting points,
//! weak priors, maximisation of the marginal likelihood.
//!
//! Free hyper-parameters are coordinates of a vector `θ`: the logarithms of the length scales, of the
//! signal's standard deviation `s`, and of `e` in the noise variance `v = f² + e²` with the floor `f`.
//! Priors are Normal distributions of these logarithms:
//!
//! - the median of a length scale grows with `√d` for `d` inputs, since distances do,
//! - `s` has the median 1, in units of the standardised target.

use crate::gaussian_process::kernel::{CovarianceKernel, KernelGradient, KernelShape};
use crate::gaussian_process::points::{Points, TargetRows};

/// The prior of hyper-parameters: Normal distributions of their logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HyperPrior {
    /// Median of a length scale in units of `√d`, and standard deviation of its logarithm.
    pub(crate) length_median: f64,
    pub(crate) length_spread: f64,
    /// Standard deviation of the logarithm of the signal, whose median is 1.
    pub(crate) signal_spread: f64,
    /// Median of the noise's standard deviation above its floor, and standard deviation of its
    /// logarithm.
    pub(crate) noise_median: f64,
    pub(crate) noise_spread: f64,
}

/// The prior of Gaussian processes that are models of their own.
pub(crate) const MODEL_PRIOR: HyperPrior = HyperPrior {
    length_median: 2.0,
    length_spread: 1.0,
    signal_spread: 1.5,
    noise_median: 0.1,
    noise_spread: 1.0,
};

/// Bounds of every coordinate of `θ`; estimates stay far inside because of the priors.
const MAX_COORDINATE: f64 = 12.0;
/// Smallest noise variance above its floor that is set.
const MIN_EXCESS: f64 = 1e-8;
/// Points whose distances give the start of the length scales.
const N_DISTANCES: usize = 200;

/// A kernel and the standard deviation of the noise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GpHyperparameters {
    pub(crate) kernel: CovarianceKernel,
    pub(crate) noise_sd: f64,
}

impl GpHyperparameters {
    /// Variance of the noise.
    pub(crate) fn noise(&self) -> f64 {
        self.noise_sd * self.noise_sd
    }
}

/// Hyper-parameters that are given instead of estimated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct FixedHyperparameters {
    /// Length scale of every input.
    pub(crate) length: Option<f64>,
    pub(crate) signal_sd: Option<f64>,
    pub(crate) noise_sd: Option<f64>,
}

/// The free hyper-parameters of a problem.
#[derive(Debug, Clone)]
pub(crate) struct HyperSpace {
    pub(crate) shape: KernelShape,
    pub(crate) n_inputs: usize,
    pub(crate) fixed: FixedHyperparameters,
    /// Floor of the noise's standard deviation, if it is estimated.
    pub(crate) min_noise_sd: f64,
    pub(crate) prior: HyperPrior,
}

impl HyperSpace {
    /// Number of free length scales.
    pub(crate) fn n_lengths(&self) -> usize {
        if self.fixed.length.is_some() {
            0
        } else {
            self.n_inputs
        }
    }

    /// Number of coordinates of `θ`.
    pub(crate) fn n_free(&self) -> usize {
        self.n_lengths()
            + usize::from(self.fixed.signal_sd.is_none())
            + usize::from(self.fixed.noise_sd.is_none())
    }

    /// The hyper-parameters at `θ`; `None` outside of the bounds.
    pub(crate) fn at(&self, theta: &[f64]) -> Option<GpHyperparameters> {
        if theta.iter().any(|x| x.is_nan() || x.abs() > MAX_COORDINATE) {
            return None;
        }
        let (lengths, rest) = theta.split_at(self.n_lengths());
        let mut rest = rest.iter();
        let log_lengths = match self.fixed.length {
            Some(length) => vec![length.ln(); self.n_inputs],
            None => lengths.to_vec(),
        };
        let log_signal = match self.fixed.signal_sd {
            Some(sd) => sd.ln(),
            None => *rest.next()?,
        };
        let noise_sd = match self.fixed.noise_sd {
            Some(sd) => sd,
            None => self.min_noise_sd.hypot(rest.next()?.exp()),
        };
        Some(GpHyperparameters {
            kernel: CovarianceKernel {
                shape: self.shape,
                log_lengths,
                log_signal,
            },
            noise_sd,
        })
    }

    /// `θ` with the noise variance `noise`, if the noise is free.
    pub(crate) fn with_noise(&self, mut theta: Vec<f64>, noise: f64) -> Vec<f64> {
        if let (None, Some(log_excess)) = (self.fixed.noise_sd, theta.last_mut()) {
            let excess = noise - self.min_noise_sd * self.min_noise_sd;
            *log_excess = 0.5 * excess.max(MIN_EXCESS).ln();
        }
        theta
    }

    /// The derivative with respect to `θ`, from those with respect to the kernel and to the variance
    /// of the noise.
    pub(crate) fn gradient(&self, theta: &[f64], kernel: &KernelGradient, noise: f64) -> Vec<f64> {
        let mut gradient = kernel.log_lengths[..self.n_lengths()].to_vec();
        if self.fixed.signal_sd.is_none() {
            gradient.push(kernel.log_signal);
        }
        if let (None, Some(log_excess)) = (self.fixed.noise_sd, theta.last()) {
            gradient.push(noise * 2.0 * (2.0 * log_excess).exp());
        }
        gradient
    }

    /// Mean and standard deviation of each coordinate of `θ` under the prior.
    fn priors(&self) -> Vec<(f64, f64)> {
        let prior = self.prior;
        let median_length = prior.length_median * (self.n_inputs.max(1) as f64).sqrt();
        let mut priors = vec![(median_length.ln(), prior.length_spread); self.n_lengths()];
        if self.fixed.signal_sd.is_none() {
            priors.push((0.0, prior.signal_spread));
        }
        if self.fixed.noise_sd.is_none() {
            priors.push((prior.noise_median.ln(), prior.noise_spread));
        }
        priors
    }

    /// Log density of the prior, up to a constant, and its gradient.
    pub(crate) fn log_prior(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let mut value = 0.0;
        let terms = theta.iter().zip(self.priors());
        let gradient = terms
            .map(|(x, (mean, sd))| {
                let score = (x - mean) / sd;
                value -= 0.5 * score * score;
                -score / sd
            })
            .collect();
        (value, gradient)
    }

    /// The starting point with the median distance of the points, times `length_factor`, as length
    /// scales, the signal of the target, and a standard deviation `noise_sd` of the noise.
    pub(crate) fn start(&self, points: &Points, length_factor: f64, noise_sd: f64) -> Vec<f64> {
        let log_length = (length_factor * median_distance(points)).ln();
        let mut theta = vec![log_length.clamp(-5.0, 8.0); self.n_lengths()];
        if self.fixed.signal_sd.is_none() {
            theta.push(0.0);
        }
        if self.fixed.noise_sd.is_none() {
            theta.push(noise_sd.ln());
        }
        theta
    }
}

/// Log density of the prior of the logarithm of a noise's standard deviation above its floor, up to a
/// constant, and its derivative.
pub(crate) fn log_noise_prior(log_excess: f64) -> (f64, f64) {
    let HyperPrior {
        noise_median,
        noise_spread,
        ..
    } = MODEL_PRIOR;
    let score = (log_excess - noise_median.ln()) / noise_spread;
    (-0.5 * score * score, -score / noise_spread)
}

/// The hyper-parameters that are estimated, and the rows that they are estimated from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EstimationProblem<'a> {
    pub(crate) space: &'a HyperSpace,
    pub(crate) rows: TargetRows<'a>,
}

/// The median distance of pairs of points; the square root of the number of inputs if most points
/// coincide.
fn median_distance(points: &Points) -> f64 {
    let step = points.n().div_ceil(N_DISTANCES).max(1);
    let rows: Vec<Vec<f64>> = (0..points.n())
        .step_by(step)
        .map(|point| points.row(point).collect())
        .collect();
    let mut squares = Vec::new();
    for (at, a) in rows.iter().enumerate() {
        for b in &rows[..at] {
            let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            squares.push(square);
        }
    }
    squares.sort_unstable_by(f64::total_cmp);
    match squares.get(squares.len() / 2) {
        Some(&square) if square > 0.0 => square.sqrt(),
        _ => (points.n_inputs().max(1) as f64).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::{central_difference, close};

    fn space(fixed: FixedHyperparameters) -> HyperSpace {
        HyperSpace {
            shape: KernelShape::Matern52,
            n_inputs: 2,
            fixed,
            min_noise_sd: 0.05,
            prior: MODEL_PRIOR,
        }
    }

    #[test]
    fn gradients_follow_the_free_coordinates() {
        let all = space(FixedHyperparameters::default());
        let theta = [0.3, -0.4, 0.2, -1.5];
        close(
            &all.log_prior(&theta).1,
            &central_difference(|x| all.log_prior(x).0, &theta),
            1e-6,
        );
        // a function of all hyper-parameters with simple derivatives
        let value = |space: &HyperSpace, theta: &[f64]| {
            let found = space.at(theta).unwrap();
            let lengths = &found.kernel.log_lengths;
            lengths[0] + 2.0 * lengths[1] + 3.0 * found.kernel.log_signal + 4.0 * found.noise()
        };
        let of_kernel = KernelGradient {
            log_lengths: vec![1.0, 2.0],
            log_signal: 3.0,
        };
        let fixed = FixedHyperparameters {
            length: Some(2.0),
            signal_sd: Some(0.5),
            noise_sd: None,
        };
        let noiseless = FixedHyperparameters {
            noise_sd: Some(0.1),
            ..FixedHyperparameters::default()
        };
        for (space, theta) in [
            (all, &theta[..]),
            (space(fixed), &theta[3..]),
            (space(noiseless), &theta[..3]),
        ] {
            assert_eq!(space.n_free(), theta.len());
            let found = space.gradient(theta, &of_kernel, 4.0);
            close(
                &found,
                &central_difference(|x| value(&space, x), theta),
                1e-6,
            );
        }
    }

    #[test]
    fn fixed_values_are_kept_and_bounds_are_refused() {
        let space = space(FixedHyperparameters {
            length: Some(2.0),
            signal_sd: Some(0.5),
            noise_sd: Some(0.1),
        });
        let found = space.at(&[]).unwrap();
        close(
            &[found.noise_sd, found.kernel.variance()],
            &[0.1, 0.25],
            1e-15,
        );
        assert_eq!(space.n_free(), 0);
        let free = self::space(FixedHyperparameters::default());
        assert!(free.at(&[0.0, 0.0, 0.0, -13.0]).is_none());
    }
}
