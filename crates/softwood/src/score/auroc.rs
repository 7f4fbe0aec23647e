//! Area under the ROC curve, by ranks.

use crate::numerics::order::ascending;

/// Probability that a positive row scores above a negative one, ties counting one half; `None`
/// without rows of both kinds.
pub(crate) fn auroc(scores: &[f64], is_positive: impl Fn(usize) -> bool) -> Option<f64> {
    let order = ascending(scores);
    let (mut negative_below, mut wins, mut n_positive) = (0.0, 0.0, 0.0);
    for tied in order.chunk_by(|&a, &b| scores[a] >= scores[b]) {
        let positive = tied.iter().filter(|&&row| is_positive(row)).count() as f64;
        let negative = tied.len() as f64 - positive;
        wins += positive * (negative_below + 0.5 * negative);
        negative_below += negative;
        n_positive += positive;
    }
    (n_positive > 0.0 && negative_below > 0.0).then(|| wins / (n_positive * negative_below))
}

/// AUROC of the second class for two classes, otherwise the mean over classes of one-vs-rest
/// AUROCs; classes without rows are skipped (`probabilities`: row-major, rows x classes).
pub(crate) fn class_auroc(probabilities: &[f64], n_classes: usize, y: &[u32]) -> Option<f64> {
    let classes = if n_classes == 2 { 1..2 } else { 0..n_classes };
    let aurocs: Vec<f64> = classes
        .filter_map(|class| {
            let scores: Vec<f64> = probabilities
                .chunks_exact(n_classes)
                .map(|row| row[class])
                .collect();
            auroc(&scores, |row| y[row] as usize == class)
        })
        .collect();
    (!aurocs.is_empty()).then(|| aurocs.iter().sum::<f64>() / aurocs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_follows_from_ranks() {
        // by hand: each of the last four exceeds one of the first four: 4 pairs of 16
        let scores = [0.1, 0.8, 0.9, 0.95, 0.2, 0.3, 0.4, 0.5];
        assert_eq!(auroc(&scores, |row| row >= 4), Some(0.25));
    }

    #[test]
    fn ties_count_one_half_and_one_class_has_no_area() {
        assert_eq!(auroc(&[0.5, 0.5], |row| row == 0), Some(0.5));
        assert_eq!(auroc(&[0.1, 0.2], |_| true), None);
    }

    #[test]
    fn absent_classes_are_skipped() {
        let probabilities = [0.8, 0.1, 0.1, 0.2, 0.7, 0.1];
        assert_eq!(class_auroc(&probabilities, 3, &[0, 1]), Some(1.0));
    }
}
