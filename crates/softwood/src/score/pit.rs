//! Calibration of predictive distributions, from PIT values.
//!
//! The PIT (probability integral transform) value of a row is the predictive cdf at its target. PIT
//! values of calibrated predictions are uniform between 0 and 1.

use crate::score::coverage::coverage;

/// Number of levels of the grid 1/20, 2/20, ..., 19/20.
const N_LEVELS: u32 = 19;

/// Mean over a grid of levels of the absolute difference between the level and the coverage of the
/// central intervals of that probability: 0 if every interval covers as many rows as it should.
pub(crate) fn calibration_error(pit: &[f64]) -> f64 {
    let gaps = (1..=N_LEVELS).map(|at| {
        let level = f64::from(at) / f64::from(N_LEVELS + 1);
        (coverage(pit, level) - level).abs()
    });
    gaps.sum::<f64>() / f64::from(N_LEVELS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn uniform_values_are_calibrated() {
        let pit: Vec<f64> = (0..2000).map(|at| (f64::from(at) + 0.5) / 2000.0).collect();
        close(&[calibration_error(&pit)], &[0.0], 1e-12);
    }

    #[test]
    fn values_in_the_middle_and_at_the_ends_are_not() {
        // every interval covers all rows, or none: the mean of 1 - level, or of level
        close(&[calibration_error(&[0.5; 7])], &[0.5], 1e-12);
        close(&[calibration_error(&[0.0, 1.0])], &[0.5], 1e-12);
    }
}
