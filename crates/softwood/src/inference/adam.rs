//! Adam, with the step size given at every step.

use multiversion::multiversion;

/// Decay of the mean of gradients.
const BETA_1: f32 = 0.9;
/// Decay of the mean of squares: short, because the noise of the draws changes quickly while scales are learned.
const BETA_2: f32 = 0.99;
/// Least root mean square of a gradient, squared.
const EPSILON_SQUARED: f32 = 1e-16;

/// State of the optimiser.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    n_steps: i32,
}

impl Adam {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            mean: vec![0.0; len],
            square: vec![0.0; len],
            n_steps: 0,
        }
    }

    /// One descent step along `gradient`.
    pub(crate) fn step(&mut self, values: &mut [f32], gradient: &[f32], learning_rate: f32) {
        self.n_steps += 1;
        let rate = learning_rate / (1.0 - BETA_1.powi(self.n_steps));
        let square_scale = 1.0 / (1.0 - BETA_2.powi(self.n_steps));
        update(
            values,
            gradient,
            &mut self.mean,
            &mut self.square,
            [rate, square_scale],
        );
    }
}

#[multiversion(targets = "simd")]
fn update(
    values: &mut [f32],
    gradient: &[f32],
    mean: &mut [f32],
    square: &mut [f32],
    scales: [f32; 2],
) {
    let [rate, square_scale] = scales;
    let moments = mean.iter_mut().zip(square.iter_mut());
    for ((value, &g), (m, v)) in values.iter_mut().zip(gradient).zip(moments) {
        *m = BETA_1.mul_add(*m, (1.0 - BETA_1) * g);
        *v = BETA_2.mul_add(*v, (1.0 - BETA_2) * g * g);
        *value -= rate * *m * inverse_root(v.mul_add(square_scale, EPSILON_SQUARED));
    }
}

/// 1/sqrt(x) for x > 0, relative error below 1e-5: a guess from the bits and two steps of Newton. Several times the
/// throughput of a square root and a division, and a step size needs no more digits.
#[inline(always)]
fn inverse_root(x: f32) -> f32 {
    let guess = f32::from_bits(0x5f37_59df_u32.wrapping_sub(x.to_bits() >> 1));
    let half = -0.5 * x;
    let once = guess * (half * guess).mul_add(guess, 1.5);
    once * (half * once).mul_add(once, 1.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_root_is_close() {
        for exponent in -36..36 {
            for mantissa in 0..100 {
                let x = (1.0 + mantissa as f32 / 100.0) * 2.0_f32.powi(exponent);
                assert!((inverse_root(x) * x.sqrt() - 1.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn first_steps_follow_the_formula() {
        let (mut values, gradient) = ([1.0_f32, -2.0], [0.5_f32, -0.001]);
        let mut adam = Adam::new(2);
        adam.step(&mut values, &gradient, 0.1);
        // the first step of Adam is the step size times the sign
        assert!(
            (values[0] - 0.9).abs() < 1e-5 && (values[1] + 1.9).abs() < 1e-5,
            "{values:?}"
        );
    }

    #[test]
    fn a_quadratic_is_minimised() {
        let mut values = [3.0_f32, -4.0];
        let mut adam = Adam::new(2);
        for step in 0..2000 {
            let gradient = [2.0 * (values[0] - 1.0), 20.0 * (values[1] - 0.5)];
            adam.step(&mut values, &gradient, 0.1 * (1.0 - step as f32 / 2000.0));
        }
        assert!(
            (values[0] - 1.0).abs() < 1e-3 && (values[1] - 0.5).abs() < 1e-3,
            "{values:?}"
        );
    }
}
