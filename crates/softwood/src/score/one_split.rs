//! How well a single threshold on a score separates two kinds of rows, on whichever side each kind
//! lies.
//!
//! A classification tree with one split is fitted to the scores by Gini impurity, and its two leaf
//! probabilities are scored by AUROC: one half plus half the difference between the shares of the
//! two kinds below the threshold.

use crate::numerics::order::ascending;

/// The best threshold and its AUROC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OneSplit {
    /// Area under the ROC curve of the two leaves.
    pub(crate) auroc: f64,
    /// Midpoint between the scores on its two sides; `None` if all scores are equal.
    pub(crate) threshold: Option<f64>,
}

/// The split of smallest Gini impurity, the lowest one among equals; `None` without rows of both
/// kinds.
pub(crate) fn one_split(scores: &[f64], is_positive: impl Fn(usize) -> bool) -> Option<OneSplit> {
    let n_positive = (0..scores.len()).filter(|&row| is_positive(row)).count() as f64;
    let n_negative = scores.len() as f64 - n_positive;
    if n_positive == 0.0 || n_negative == 0.0 {
        return None;
    }
    let order = ascending(scores);
    let mut best = OneSplit {
        auroc: 0.5,
        threshold: None,
    };
    let (mut smallest, mut positive, mut negative) = (f64::INFINITY, 0.0, 0.0);
    for pair in order.windows(2) {
        if is_positive(pair[0]) {
            positive += 1.0;
        } else {
            negative += 1.0;
        }
        let (below, above) = (scores[pair[0]], scores[pair[1]]);
        let impurity =
            impurity(positive, negative) + impurity(n_positive - positive, n_negative - negative);
        if below < above && impurity < smallest {
            smallest = impurity;
            best = OneSplit {
                auroc: 0.5 + 0.5 * (positive / n_positive - negative / n_negative).abs(),
                threshold: Some(0.5 * below + 0.5 * above),
            };
        }
    }
    Some(best)
}

/// Half the Gini impurity of a leaf times its number of rows.
fn impurity(positive: f64, negative: f64) -> f64 {
    positive * negative / (positive + negative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn one_threshold_separates_where_ranks_are_inverted() {
        // by hand: three of the first four lie above 0.65, none of the last four does
        let scores = [0.1, 0.8, 0.9, 0.95, 0.2, 0.3, 0.4, 0.5];
        let found = one_split(&scores, |row| row >= 4).unwrap();
        close(
            &[found.auroc, found.threshold.unwrap()],
            &[0.875, 0.65],
            1e-15,
        );
    }

    #[test]
    fn equal_scores_have_no_threshold_and_one_kind_has_no_auroc() {
        let none = OneSplit {
            auroc: 0.5,
            threshold: None,
        };
        assert_eq!(one_split(&[0.5; 4], |row| row > 1), Some(none));
        assert_eq!(one_split(&[0.1, 0.2], |_| true), None);
        assert_eq!(one_split(&[], |_| true), None);
    }

    #[test]
    fn tied_rows_stay_on_one_side() {
        let found = one_split(&[1.0, 2.0, 2.0, 2.0], |row| row >= 2).unwrap();
        assert_eq!((found.auroc, found.threshold), (0.75, Some(1.5)));
    }

    #[test]
    fn scores_near_the_largest_number_have_a_threshold() {
        let found = one_split(&[0.9 * f64::MAX, f64::MAX], |row| row == 1).unwrap();
        assert!(found.threshold.unwrap().is_finite());
        close(&[found.auroc], &[1.0], 1e-15);
    }
}
