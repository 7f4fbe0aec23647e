//! Constant noise: one posterior draw of its variance for each draw of the trees.

use crate::models::vsgbm::offset::{predict_offset, residuals};
use crate::models::vsgbm::params::{NoiseUpdate, VsgbmParams};
use crate::models::vsgbm::stages::AdditiveModel;
use crate::numerics::gamma::gamma;
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::ensemble::FitDraws;
use crate::variational::fitted::draw_weights;
use crate::variational::streams::posterior_draws as streams;

/// An inverse-Gamma distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InverseGamma {
    pub(super) shape: f64,
    pub(super) scale: f64,
}

impl InverseGamma {
    /// The posterior of a variance after `n` residuals with this sum of squares.
    pub(super) fn update(self, n: f64, sum_of_squares: f64, update: NoiseUpdate) -> Self {
        let factor = match update {
            NoiseUpdate::Exact => 0.5,
            NoiseUpdate::Paper => 1.0,
        };
        Self {
            shape: self.shape + factor * n,
            scale: self.scale + factor * sum_of_squares,
        }
    }

    /// Prior on a constant noise variance, in standard units.
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

/// Standard deviations of the noise under the draws of the trees, in standard units.
pub(super) fn draw(
    params: &VsgbmParams,
    model: &AdditiveModel,
    rows: &EncodedRows,
    draws: FitDraws,
) -> Vec<f64> {
    let prior = InverseGamma::prior(params);
    let noise_key = draws.key.child(streams::NOISE_VARIANCES);
    let weights = draw_weights(&model.blocks, draws.n_draws, draws.key);
    let weights = weights.chunks_exact(model.spec.stack.n_weights());
    weights
        .enumerate()
        .map(|(at, weights)| {
            let squares = sum_of_squares(&model.spec, weights, rows);
            let posterior = prior.update(rows.total_weight, squares, params.noise_update);
            posterior.draw(noise_key.child(at as u64)).sqrt()
        })
        .collect()
}

/// Weighted sum of the squared residuals of trees with these weights.
pub(super) fn sum_of_squares(spec: &SoftTreeSpec, weights: &[f32], rows: &EncodedRows) -> f64 {
    let residuals = residuals(spec, &predict_offset(spec, weights, rows), rows);
    let squares = residuals.iter().zip(&rows.weight);
    squares.map(|(r, &w)| f64::from(w) * r * r).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_update_follows_bayes_rule_or_the_paper() {
        let prior = InverseGamma {
            shape: 3.0,
            scale: 0.5,
        };
        let exact = prior.update(10.0, 4.0, NoiseUpdate::Exact);
        assert_eq!(
            exact,
            InverseGamma {
                shape: 8.0,
                scale: 2.5
            }
        );
        let paper = prior.update(10.0, 4.0, NoiseUpdate::Paper);
        assert_eq!(
            paper,
            InverseGamma {
                shape: 13.0,
                scale: 4.5
            }
        );
    }

    /// The mean of an inverse-Gamma distribution is `scale / (shape - 1)`; its variance is the
    /// squared mean divided by `shape - 2`. The test allows five standard errors.
    #[test]
    fn draws_have_the_mean_of_the_distribution() {
        let distribution = InverseGamma {
            shape: 12.0,
            scale: 5.0,
        };
        let n = 20_000;
        let key = Key::from_seed(3);
        let mean = (0..n)
            .map(|at| distribution.draw(key.child(at)))
            .sum::<f64>()
            / n as f64;
        let expected = distribution.scale / (distribution.shape - 1.0);
        let error = expected / (distribution.shape - 2.0).sqrt() / (n as f64).sqrt();
        assert!((mean - expected).abs() < 5.0 * error, "{mean} {expected}");
    }
}
