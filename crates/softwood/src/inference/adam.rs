//! The Adam optimiser. The caller passes the learning rate at every step.

use multiversion::multiversion;

/// Decay of the mean of the gradients.
const BETA_1: f32 = 0.9;
/// Decay of the mean of the squared gradients. It is shorter than the usual 0.999 because the
/// variance of the gradients changes quickly while posterior scales are learned.
const BETA_2: f32 = 0.99;
/// Square of the floor of a gradient's root mean square.
const EPSILON_SQUARED: f32 = 1e-16;

/// State of the optimiser: moments of the gradients and number of steps.
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
        let bias_corrected = BiasCorrected {
            rate: learning_rate / (1.0 - BETA_1.powi(self.n_steps)),
            square_scale: 1.0 / (1.0 - BETA_2.powi(self.n_steps)),
        };
        update(
            values,
            gradient,
            &mut self.mean,
            &mut self.square,
            bias_corrected,
        );
    }
}

/// Factors of one step, corrected for the zero start of the moments.
#[derive(Clone, Copy)]
struct BiasCorrected {
    /// Learning rate, times the correction of the mean.
    rate: f32,
    /// Correction of the mean square.
    square_scale: f32,
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn update(
    values: &mut [f32],
    gradient: &[f32],
    mean: &mut [f32],
    square: &mut [f32],
    bias_corrected: BiasCorrected,
) {
    let BiasCorrected { rate, square_scale } = bias_corrected;
    let moments = mean.iter_mut().zip(square.iter_mut());
    for ((value, &g), (m, v)) in values.iter_mut().zip(gradient).zip(moments) {
        *m = BETA_1.mul_add(*m, (1.0 - BETA_1) * g);
        *v = BETA_2.mul_add(*v, (1.0 - BETA_2) * g * g);
        *value -= rate * *m * inverse_root(v.mul_add(square_scale, EPSILON_SQUARED));
    }
}

/// 1/sqrt(x) for x > 0 with relative error below 1e-5: an estimate from the bits and two Newton
/// steps. It has several times the throughput of a square root and a division, and a step of the
/// optimiser needs no more digits.
#[inline(always)]
fn inverse_root(x: f32) -> f32 {
    let estimate = f32::from_bits(0x5f37_59df_u32.wrapping_sub(x.to_bits() >> 1));
    let half = -0.5 * x;
    let once = estimate * (half * estimate).mul_add(estimate, 1.5);
    once * (half * once).mul_add(once, 1.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_root_has_a_relative_error_below_1e_5() {
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
        // the first step of Adam is the learning rate times the sign of the gradient
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
