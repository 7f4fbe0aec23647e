//! A constant noise: draws of its variance, one for each draw of the trees.

use crate::models::vsgbm::offset::{predict_raw, residuals};
use crate::models::vsgbm::params::{NoiseUpdate, VsgbmParams};
use crate::models::vsgbm::stages::AdditiveModel;
use crate::numerics::gamma::gamma;
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::fitted::draw_weights;

/// An inverse-Gamma distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InverseGamma {
    pub(super) shape: f64,
    pub(super) scale: f64,
}

impl InverseGamma {
    /// The posterior of a variance after residuals of this number and sum of squares.
    pub(super) fn after(self, n: f64, squares: f64, update: NoiseUpdate) -> Self {
        let part = match update {
            NoiseUpdate::Exact => 0.5,
            NoiseUpdate::Paper => 1.0,
        };
        Self {
            shape: self.shape + part * n,
            scale: self.scale + part * squares,
        }
    }

    /// That of a constant noise before any rows, in standard units.
    pub(super) fn prior(params: &VsgbmParams) -> Self {
        Self {
            shape: params.noise_shape_prior,
            scale: params.noise_scale_prior,
        }
    }

    pub(super) fn mode(self) -> f64 {
        self.scale / (self.shape + 1.0)
    }

    pub(super) fn draw(self, key: Key) -> f64 {
        let draw = gamma(self.shape, &mut key.rng());
        self.scale / draw.expect("the shape is positive: parameters are checked")
    }
}

/// Standard deviations of the noise under draws of the trees, in standard units; `key` is that of the draws.
pub(super) fn draw(
    params: &VsgbmParams,
    sum: &AdditiveModel,
    rows: &EncodedRows,
    n_draws: usize,
    key: Key,
) -> Vec<f64> {
    let prior = InverseGamma::prior(params);
    let draws = draw_weights(&sum.blocks, n_draws, key);
    let draws = draws.chunks_exact(sum.spec.stack.n_weights()).enumerate();
    draws
        .map(|(at, weights)| {
            let squares = squares(&sum.spec, weights, rows);
            let posterior = prior.after(rows.total_weight, squares, params.noise_update);
            posterior.draw(key.child(2).child(at as u64)).sqrt()
        })
        .collect()
}

/// Weighted sum of the squares that trees of these weights leave.
pub(super) fn squares(spec: &SoftTreeSpec, weights: &[f32], rows: &EncodedRows) -> f64 {
    let residuals = residuals(spec, &predict_raw(spec, weights, rows), rows);
    let squares = residuals.iter().zip(&rows.weight);
    squares.map(|(r, &w)| f64::from(w) * r * r).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_update_is_that_of_bayes_or_the_one_in_print() {
        let prior = InverseGamma {
            shape: 3.0,
            scale: 0.5,
        };
        let exact = prior.after(10.0, 4.0, NoiseUpdate::Exact);
        assert_eq!(
            exact,
            InverseGamma {
                shape: 8.0,
                scale: 2.5
            }
        );
        let printed = prior.after(10.0, 4.0, NoiseUpdate::Paper);
        assert_eq!(
            printed,
            InverseGamma {
                shape: 13.0,
                scale: 4.5
            }
        );
    }

    /// The mean of an inverse-Gamma distribution is `scale / (shape - 1)`, its variance that squared over `shape - 2`.
    #[test]
    fn draws_follow_the_closed_form() {
        let likelihood = InverseGamma {
            shape: 12.0,
            scale: 5.0,
        };
        let n = 20_000;
        let key = Key::from_seed(3);
        let mean = (0..n).map(|at| likelihood.draw(key.child(at))).sum::<f64>() / n as f64;
        let expected = likelihood.scale / (likelihood.shape - 1.0);
        let error = expected / (likelihood.shape - 2.0).sqrt() / (n as f64).sqrt();
        assert!((mean - expected).abs() < 5.0 * error, "{mean} {expected}");
    }
}
