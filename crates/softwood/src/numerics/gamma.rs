//! Draws from Gamma laws, by the method of Marsaglia and Tsang.

use crate::rng::{Key, uniform};

/// A draw from the Gamma law of this shape and scale 1.
pub(crate) fn gamma(shape: f64, key: Key) -> f64 {
    let mut rng = key.rng();
    // a shape below one is lifted by one and brought back by a power of a uniform draw
    let lifted = if shape < 1.0 { shape + 1.0 } else { shape };
    let d = lifted - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let radius = (-2.0 * (1.0 - uniform(&mut rng)).ln()).sqrt();
        let x = radius * (std::f64::consts::TAU * uniform(&mut rng)).cos();
        let v = (1.0 + c * x).powi(3);
        if v <= 0.0 {
            continue;
        }
        let u = 1.0 - uniform(&mut rng);
        if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            let power = if shape < 1.0 {
                (1.0 - uniform(&mut rng)).powf(1.0 / shape)
            } else {
                1.0
            };
            return d * v * power;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of a Gamma law are both its shape. Bands of 5 standard errors: a false alarm in about 10^6 runs.
    #[test]
    fn moments_are_those_of_the_law() {
        for (at, shape) in [0.3_f64, 1.0, 2.5, 400.0].into_iter().enumerate() {
            let n = 40_000;
            let key = Key::from_seed(at as u64);
            let draws: Vec<f64> = (0..n).map(|i| gamma(shape, key.child(i))).collect();
            let n = n as f64;
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

    /// For shape 1 the law is exponential: its quantiles are known.
    #[test]
    fn shape_one_is_exponential() {
        let n = 20_000;
        let key = Key::from_seed(9);
        let below = (0..n).filter(|&i| gamma(1.0, key.child(i)) < 2.0_f64.ln());
        let share = below.count() as f64 / n as f64;
        assert!((share - 0.5).abs() < 5.0 * 0.5 / (n as f64).sqrt());
    }
}
