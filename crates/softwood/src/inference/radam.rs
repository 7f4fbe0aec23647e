//! The rectified Adam optimiser (Liu et al. 2020): Adam whose step is shortened while the mean
//! square of the gradients rests on few of them.

/// Decay of the mean of the gradients.
const BETA_1: f64 = 0.9;
/// Decay of the mean of the squared gradients.
const BETA_2: f64 = 0.999;
/// Floor of the root mean square of a gradient.
const EPSILON: f32 = 1e-8;
/// Length of the average from which its variance is tractable; below it the step is that of momentum.
const MIN_LENGTH: f64 = 5.0;

/// State of the optimiser: moments of the gradients and number of steps.
#[derive(Debug, Clone)]
pub(crate) struct RectifiedAdam {
    mean: Vec<f32>,
    square: Vec<f32>,
    n_steps: i32,
}

impl RectifiedAdam {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            mean: vec![0.0; len],
            square: vec![0.0; len],
            n_steps: 0,
        }
    }

    /// One ascent step along `gradient`.
    pub(crate) fn ascend(&mut self, values: &mut [f32], gradient: &[f32], learning_rate: f64) {
        self.n_steps += 1;
        let (decay_1, decay_2) = (BETA_1.powi(self.n_steps), BETA_2.powi(self.n_steps));
        let rate = learning_rate / (1.0 - decay_1);
        let factor = rectification(self.n_steps);
        let square_scale = (1.0 / (1.0 - decay_2)) as f32;
        let (beta_1, beta_2) = (BETA_1 as f32, BETA_2 as f32);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((value, &g), (m, v)) in values.iter_mut().zip(gradient).zip(moments) {
            *m = beta_1 * *m + (1.0 - beta_1) * g;
            *v = beta_2 * *v + (1.0 - beta_2) * g * g;
            *value += match factor {
                Some(factor) => {
                    (rate * factor) as f32 * *m / ((*v * square_scale).sqrt() + EPSILON)
                }
                None => rate as f32 * *m,
            };
        }
    }
}

/// Factor of a step; `None` while the variance of the average is not tractable.
fn rectification(n_steps: i32) -> Option<f64> {
    let longest = 2.0 / (1.0 - BETA_2) - 1.0;
    let decay = BETA_2.powi(n_steps);
    let length = longest - 2.0 * f64::from(n_steps) * decay / (1.0 - decay);
    let ratio =
        (length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length);
    (length > MIN_LENGTH).then(|| ratio.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_grows_from_few_steps_to_one() {
        assert_eq!(rectification(5), None);
        let factors: Vec<f64> = [6, 20, 200, 20_000]
            .map(|n| rectification(n).unwrap())
            .to_vec();
        assert!(factors.is_sorted(), "{factors:?}");
        assert!(
            factors[0] < 0.05 && (factors[3] - 1.0).abs() < 1e-6,
            "{factors:?}"
        );
    }

    #[test]
    fn a_quadratic_is_maximised() {
        let mut values = [3.0_f32, -4.0];
        let mut optimiser = RectifiedAdam::new(2);
        for step in 0..4000 {
            let gradient = [-2.0 * (values[0] - 1.0), -20.0 * (values[1] - 0.5)];
            optimiser.ascend(
                &mut values,
                &gradient,
                0.05 * (1.0 - f64::from(step) / 4000.0),
            );
        }
        assert!(
            (values[0] - 1.0).abs() < 1e-3 && (values[1] - 0.5).abs() < 1e-3,
            "{values:?}"
        );
    }
}
