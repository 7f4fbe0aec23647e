//! Targets in standard units: the mean goes to 0, the standard deviation to 1. Also their resolution.

/// An affine map of the target: y = shift + scale * z.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct TargetUnits {
    pub(crate) shift: f64,
    pub(crate) scale: f64,
}

/// A target is a coarse grid where this many rows, on average, share each value, ...
const ROWS_PER_VALUE: usize = 8;
/// ... and there are at most this many values. A finer grid (a measurement rounded to three digits) resolves more than
/// any model and needs no floor.
const MAX_VALUES: usize = 32;

impl TargetUnits {
    /// The weighted mean and standard deviation of `values`.
    pub(crate) fn fit(values: &[f64], weights: Option<&[f64]>) -> Self {
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        let unit = values
            .iter()
            .fold(f64::MIN_POSITIVE, |unit, value| unit.max(value.abs()));
        let total: f64 = (0..values.len()).map(weight).sum();
        let mean = unit
            * (values
                .iter()
                .enumerate()
                .map(|(at, v)| weight(at) * (v / unit))
                .sum::<f64>()
                / total);
        let square = |(at, value): (usize, &f64)| weight(at) * ((value - mean) / unit).powi(2);
        let sd = unit * (values.iter().enumerate().map(square).sum::<f64>() / total).sqrt();
        Self {
            shift: mean,
            scale: if sd > 0.0 && sd.is_finite() { sd } else { 1.0 },
        }
    }

    pub(crate) fn apply(&self, value: f64) -> f64 {
        (value - self.shift) / self.scale
    }
}

/// The step of the coarse grid that the values stand on, or `None` where they are a matter of degree.
///
/// A density can be made arbitrarily high on repeated values; half the step is the finest scale that means anything.
pub(crate) fn resolution(values: &[f64], weights: Option<&[f64]>) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut gaps: Vec<f64> = sorted
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 0.0)
        .collect();
    let n_values = gaps.len() + 1;
    // repeated rows may arrive as one row of their summed weight
    let n_rows = weights.map_or(values.len() as f64, |weights| weights.iter().sum());
    let is_coarse = n_values <= MAX_VALUES && n_rows >= (ROWS_PER_VALUE * n_values) as f64;
    if gaps.is_empty() || !is_coarse {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    Some(gaps[gaps.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_have_a_resolution_and_measurements_have_none() {
        let scores: Vec<f64> = (0..100).map(|i| f64::from(i * 7 % 5)).collect();
        assert_eq!(resolution(&scores, None), Some(1.0));
        let measured: Vec<f64> = (0..100).map(|i| f64::from(i).sqrt()).collect();
        assert_eq!(resolution(&measured, None), None);
    }

    #[test]
    fn weights_count_as_rows_for_the_resolution() {
        let values = [3.0, 4.0, 5.0];
        assert_eq!(resolution(&values, None), None);
        assert_eq!(resolution(&values, Some(&[10.0; 3])), Some(1.0));
    }

    #[test]
    fn standard_units_survive_huge_numbers() {
        let standard = TargetUnits::fit(&[1e300, -1e300, 0.0], None);
        assert!(
            standard.shift.abs() < 1e290 && standard.scale.is_finite() && standard.scale > 1e299
        );
    }
}
