//! Squared error: `raw = (m)`, loss `(y - m)^2 / 2`: a Normal likelihood with one variance for all
//! rows, the mean square of the residuals.

use crate::likelihood::{Likelihood, OutputNames, OutputTerms, target_mean};

/// The gradient of the log-likelihood with respect to `m`, `y - m`.
#[inline(always)]
pub(crate) fn residual(y: f32, mean: f32) -> f32 {
    y - mean
}

/// Squared error. The entries of a row are gradient `y - m` and weight, which is also the hessian.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Squared;

impl Squared {
    pub(crate) const OUTPUT_NAMES: OutputNames = OutputNames::Each(&["mean"]);
}

impl Likelihood<2> for Squared {
    fn outputs(&self, l2: f64, _: &[f64; 2]) -> Vec<OutputTerms> {
        vec![OutputTerms {
            gradient: 0,
            hessian: 1,
            factor: 1.0,
            l2,
        }]
    }

    fn weight_entry(&self) -> usize {
        1
    }

    fn dispersion(&self, raw: &[f32], target: &[f32], weight: &[f32]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for ((&mean, &y), &w) in raw.iter().zip(target).zip(weight) {
            sum += f64::from(w * (y - mean).powi(2));
            total += f64::from(w);
        }
        sum / total
    }

    fn start(&self, target: &[f32], weight: &[f32]) -> Vec<f64> {
        vec![target_mean(target, weight)]
    }

    fn grad_hess(&self, raw: &[f32], target: &[f32], weight: &[f32], out: &mut [[f32; 2]]) {
        for (((out, &mean), &y), &w) in out.iter_mut().zip(raw).zip(target).zip(weight) {
            *out = [w * residual(y, mean), w];
        }
    }

    fn step_limit(&self, _: usize) -> f64 {
        f64::INFINITY
    }

    fn log_densities(&self, raw: &[f32], target: &[f32], out: &mut [f64]) {
        for ((out, &mean), &y) in out.iter_mut().zip(raw).zip(target) {
            *out = -0.5 * f64::from(y - mean).powi(2);
        }
    }
}
