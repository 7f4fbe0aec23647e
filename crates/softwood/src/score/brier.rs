//! Brier score of class probabilities.

/// Mean over rows of `Σ_c (p_c - 1[c is the true class])²`, the sum over all classes as Brier
/// defined it: from 0 to 2, and for two classes twice the squared error of one probability
/// (`probabilities`: row-major, rows x classes).
pub(crate) fn brier(probabilities: &[f64], n_classes: usize, y: &[u32]) -> f64 {
    let rows = probabilities.chunks_exact(n_classes).zip(y);
    let squares = rows.map(|(row, &class)| {
        let deviation = |(at, p): (usize, &f64)| p - f64::from(u8::from(at == class as usize));
        row.iter()
            .enumerate()
            .map(deviation)
            .map(|d| d * d)
            .sum::<f64>()
    });
    squares.sum::<f64>() / y.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn squared_deviations_are_summed_over_classes() {
        // by hand: 0.3² + 0.2² + 0.1² = 0.14; 0.5² + 0.5² + 1² = 1.5
        let found = brier(&[0.7, 0.2, 0.1, 0.5, 0.5, 0.0], 3, &[0, 2]);
        close(&[found], &[0.5 * (0.14 + 1.5)], 1e-12);
        close(&[brier(&[1.0, 0.0, 0.0, 1.0], 2, &[0, 0])], &[1.0], 1e-12);
    }
}
