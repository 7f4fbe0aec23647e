//! Draws from Gamma distributions, with the sampler of `rand_distr` (Marsaglia and Tsang 2000).

use rand_core::Rng;
use rand_distr::{Distribution, Gamma};

/// A draw from the Gamma distribution with this shape and scale 1; `None` unless the shape is
/// positive and finite.
pub(crate) fn gamma(shape: f64, rng: &mut impl Rng) -> Option<f64> {
    Gamma::new(shape, 1.0).ok().map(|gamma| gamma.sample(rng))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;

    /// The mean and the variance of a Gamma distribution equal its shape. The tolerance is 5
    /// standard errors: a false alarm has probability 6e-7.
    #[test]
    fn moments_are_those_of_the_distribution() {
        for (at, shape) in [0.3_f64, 1.0, 2.5, 400.0].into_iter().enumerate() {
            let n = 40_000;
            let mut rng = Key::from_seed(at as u64).rng();
            let draws: Vec<f64> = (0..n).map(|_| gamma(shape, &mut rng).unwrap()).collect();
            let n = f64::from(n);
            let mean = draws.iter().sum::<f64>() / n;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            assert!(
                (mean - shape).abs() < 5.0 * (shape / n).sqrt(),
                "{shape}: {mean}"
            );
            // the fourth central moment is 3 shape^2 + 6 shape
            let error = ((2.0 * shape * shape + 6.0 * shape) / n).sqrt();
            assert!(
                (variance - shape).abs() < 5.0 * error,
                "{shape}: {variance}"
            );
        }
    }

    #[test]
    fn impossible_shapes_give_no_draw() {
        let mut rng = Key::from_seed(0).rng();
        for shape in [0.0, -1.0, f64::NAN] {
            assert!(gamma(shape, &mut rng).is_none(), "{shape}");
        }
    }
}
