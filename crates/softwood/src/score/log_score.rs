//! Log score of class probabilities.

/// Floor of probabilities, as in scikit-learn's `log_loss`: otherwise a single row could dominate
/// the mean.
const MIN_PROBABILITY: f64 = f64::EPSILON;

/// Mean negative natural logarithm of the probability of the true class (`probabilities`:
/// row-major, rows x classes).
pub(crate) fn negative_log_likelihood(probabilities: &[f64], n_classes: usize, y: &[u32]) -> f64 {
    let rows = probabilities.chunks_exact(n_classes).zip(y);
    let sum: f64 = rows
        .map(|(row, &class)| -log_probability(row[class as usize]))
        .sum();
    sum / y.len() as f64
}

/// Natural logarithm of the probability of the true class, with the floor.
pub(crate) fn log_probability(probability: f64) -> f64 {
    probability.max(MIN_PROBABILITY).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_of_zero_counts_as_the_floor() {
        let found = negative_log_likelihood(&[0.25, 0.75, 1.0, 0.0], 2, &[1, 1]);
        let expected = -0.5 * (0.75_f64.ln() + f64::EPSILON.ln());
        assert!((found - expected).abs() < 1e-14);
    }
}
