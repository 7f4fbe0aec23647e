//! Log-likelihood of class probabilities.

/// Least probability that is taken at its word, as in scikit-learn's `log_loss`: a smaller one would let a single
/// row decide the mean.
const LEAST: f64 = f64::EPSILON;

/// Mean negative natural logarithm of the probability of the true class (`probabilities`: row-major, rows x classes).
pub(crate) fn negative_log_likelihood(probabilities: &[f64], n_classes: usize, y: &[u32]) -> f64 {
    let rows = probabilities.chunks_exact(n_classes).zip(y);
    let sum: f64 = rows
        .map(|(row, &class)| -log_probability(row[class as usize]))
        .sum();
    sum / y.len() as f64
}

/// Natural logarithm of the probability of what came true.
pub(crate) fn log_probability(probability: f64) -> f64 {
    probability.max(LEAST).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_classes_cost_no_more_than_the_floor() {
        let found = negative_log_likelihood(&[0.25, 0.75, 1.0, 0.0], 2, &[1, 1]);
        let expected = -0.5 * (0.75_f64.ln() + f64::EPSILON.ln());
        assert!((found - expected).abs() < 1e-14);
    }
}
