//! Expected calibration error of the most probable class.

/// Number of bins of equal width.
const N_BINS: usize = 15;

/// `Σ_b n_b/n |accuracy_b - confidence_b|` over bins of the largest probability (`probabilities`:
/// row-major, rows x classes; `labels`: the most probable classes).
pub(crate) fn expected_calibration_error(
    probabilities: &[f64],
    n_classes: usize,
    labels: &[u32],
    y: &[u32],
) -> f64 {
    let mut gaps = [0.0; N_BINS];
    let rows = probabilities.chunks_exact(n_classes).zip(labels).zip(y);
    for ((row, &label), &class) in rows {
        let confidence = row[label as usize];
        let bin = ((confidence * N_BINS as f64).ceil() as usize).clamp(1, N_BINS) - 1;
        gaps[bin] += f64::from(u8::from(label == class)) - confidence;
    }
    gaps.iter().map(|gap| gap.abs()).sum::<f64>() / y.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overconfidence_does_not_cancel_between_bins() {
        // two rows at 0.9, one of them right; two rows at 0.55, both right
        let probabilities = [0.9, 0.1, 0.9, 0.1, 0.55, 0.45, 0.55, 0.45];
        let found = expected_calibration_error(&probabilities, 2, &[0; 4], &[0, 1, 0, 0]);
        assert!((found - (0.8 + 0.9) / 4.0).abs() < 1e-12, "{found}");
    }
}
