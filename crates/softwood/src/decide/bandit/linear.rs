//! Bayesian linear regression of rewards on the encoded context, with the conjugate Normal and
//! inverse-Gamma prior: `w | s² ~ N(0, s²/λ)`, `s² ~ IG(a, b)`. `λ` is that of Riquelme et al. 2018; their
//! prior of the noise counts as twelve rewards and is too strong for rewards with little noise.

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::schema::Schema;
use crate::data::table::Table;
use crate::data::target::{Target, TargetUnits};
use crate::error::Result;
use crate::gaussian_process::points::Points;
use crate::numerics::dense_cholesky::DenseCholesky;
use crate::numerics::gamma::gamma;
use crate::numerics::gaussian::normals;
use crate::rng::Key;

/// Prior precision of a weight in units of the noise variance.
const PRECISION: f64 = 0.25;
/// Shape and scale of the inverse-Gamma prior of the noise variance, for standardised rewards.
const NOISE_SHAPE: f64 = 2.0;
const NOISE_SCALE: f64 = 0.5;
/// Largest number of categories of a column with an input of their own.
const MAX_CATEGORIES: usize = 32;

/// Random streams of the draws.
mod streams {
    pub(super) const WEIGHTS: u64 = 0;
    pub(super) const NOISE: u64 = 1;
}

/// Draws of the weights from their posterior.
#[derive(Debug, Clone)]
pub(super) struct LinearRewards {
    schema: Schema,
    encoder: Encoder,
    units: TargetUnits,
    /// Weights of the inputs and the intercept (row-major, inputs + 1 x draws).
    weights: Vec<f64>,
    n_draws: usize,
}

impl LinearRewards {
    /// The posterior given the rewards; `None` if its covariance cannot be factored.
    pub(super) fn fit(data: &Dataset, n_draws: usize, key: Key) -> Option<Self> {
        let Target::Numeric(rewards) = data.target() else {
            return None;
        };
        let ones = vec![1.0; rewards.len()];
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: MAX_CATEGORIES,
        };
        let encoder = Encoder::fit(data.features(), &ones, encoding);
        let design = Design::new(&encoder, data.features());
        let units = TargetUnits::fit(rewards, None);
        let y: Vec<f64> = rewards.iter().map(|&reward| units.apply(reward)).collect();
        let n = design.n_weights();
        let factor = DenseCholesky::factor(design.precision(), n)?;
        let mut mean = design.products(&y);
        let projected = mean.clone();
        factor.solve_lower(&mut mean, 1);
        factor.solve_upper(&mut mean, 1);
        let explained: f64 = mean.iter().zip(&projected).map(|(a, b)| a * b).sum();
        let total: f64 = y.iter().map(|y| y * y).sum();
        let shape = NOISE_SHAPE + 0.5 * y.len() as f64;
        let scale = NOISE_SCALE + 0.5 * (total - explained).max(0.0);
        let mut rng = key.child(streams::NOISE).rng();
        let mut weights = normals(key.child(streams::WEIGHTS), n * n_draws);
        factor.solve_upper(&mut weights, n_draws);
        for draw in 0..n_draws {
            let sd = (scale / gamma(shape, &mut rng)?).sqrt();
            for (weight, mean) in mean.iter().enumerate() {
                let value = &mut weights[weight * n_draws + draw];
                *value = mean + sd * *value;
            }
        }
        Some(Self {
            schema: data.schema().clone(),
            encoder,
            units,
            weights,
            n_draws,
        })
    }

    pub(super) fn n_draws(&self) -> usize {
        self.n_draws
    }

    /// The rewards of some contexts under every draw (row-major, rows x draws).
    ///
    /// # Errors
    /// When the columns are not those of the fit.
    pub(super) fn draws(&self, contexts: &Table) -> Result<Vec<f64>> {
        let design = Design::new(&self.encoder, &self.schema.align(contexts)?);
        let mut values = vec![0.0; contexts.n_rows() * self.n_draws];
        for (row, out) in values.chunks_exact_mut(self.n_draws).enumerate() {
            let weights = self.weights.chunks_exact(self.n_draws);
            for (input, weights) in design.row(row).zip(weights) {
                for (out, weight) in out.iter_mut().zip(weights) {
                    *out += input * weight;
                }
            }
            for out in out {
                *out = self.units.shift + self.units.scale * *out;
            }
        }
        Ok(values)
    }
}

/// Encoded contexts and a column of ones.
struct Design(Points);

impl Design {
    fn new(encoder: &Encoder, contexts: &Table) -> Self {
        Self(Points::encoded(
            encoder,
            &contexts.rows(0..contexts.n_rows()),
        ))
    }

    fn n_weights(&self) -> usize {
        self.0.n_inputs() + 1
    }

    fn row(&self, row: usize) -> impl Iterator<Item = f64> {
        self.0.row(row).chain(std::iter::once(1.0))
    }

    /// `X'X + λ I`.
    fn precision(&self) -> Vec<f64> {
        let n = self.n_weights();
        let mut matrix = vec![0.0; n * n];
        for row in 0..self.0.n() {
            let inputs: Vec<f64> = self.row(row).collect();
            for (at, a) in inputs.iter().enumerate() {
                for (cell, b) in matrix[at * n..(at + 1) * n].iter_mut().zip(&inputs) {
                    *cell += a * b;
                }
            }
        }
        for at in 0..n {
            matrix[at * n + at] += PRECISION;
        }
        matrix
    }

    /// `X'y`.
    fn products(&self, y: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_weights()];
        for (row, y) in y.iter().enumerate() {
            for (sum, input) in sums.iter_mut().zip(self.row(row)) {
                *sum += input * y;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::dataset::Roles;

    /// Draws concentrate on the regression line, and their spread is that of the posterior: with noise
    /// 0.5 and 400 rows the standard error of the mean at the centre is 0.025.
    #[test]
    fn draws_follow_the_posterior_of_a_line() {
        let key = Key::from_seed(1);
        let x = normals(key.child(0), 400);
        let noise = normals(key.child(1), 400);
        let y = x.iter().zip(&noise).map(|(x, e)| 1.0 + 2.0 * x + 0.5 * e);
        let table = Table::new(vec![
            Column::numeric("x", x.clone()),
            Column::numeric("y", y.collect()),
        ]);
        let roles = Roles {
            target: "y".to_owned(),
            ..Roles::default()
        };
        let data = Dataset::from_table(table.unwrap(), &roles).unwrap();
        let posterior = LinearRewards::fit(&data, 400, key.child(2)).unwrap();
        let contexts = Table::new(vec![Column::numeric("x", vec![0.0, 3.0])]).unwrap();
        let draws = posterior.draws(&contexts).unwrap();
        for (draws, truth, sd) in [(&draws[..400], 1.0, 0.025), (&draws[400..], 7.0, 0.08)] {
            let mean = draws.iter().sum::<f64>() / 400.0;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 400.0;
            assert!((mean - truth).abs() < 5.0 * sd, "{mean}");
            assert!(
                (0.6..1.6).contains(&(variance.sqrt() / sd)),
                "{}",
                variance.sqrt()
            );
        }
    }
}
