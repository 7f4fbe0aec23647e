//! Ours beside the paper's: which is better, by the rule of the table.

use serde::Serialize;
use softwood::evaluate::significance::{f_test_5x2cv, paired_t_test};

use super::published::{PairRule, PublishedFigure, PublishedMetric, TieRule};

/// Level of the tests.
pub(crate) const LEVEL: f64 = 0.05;

/// Number of splits of the 5x2 cv test.
const FIVE_BY_TWO: usize = 10;

/// Whether ours is better than the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ComparisonMark {
    Win,
    Tie,
    Loss,
}

impl ComparisonMark {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Win => "win",
            Self::Tie => "tie",
            Self::Loss => "loss",
        }
    }
}

/// Number of wins, ties and losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct MarkCounts {
    pub(crate) wins: usize,
    pub(crate) ties: usize,
    pub(crate) losses: usize,
}

impl MarkCounts {
    pub(crate) fn of(marks: impl Iterator<Item = ComparisonMark>) -> Self {
        let mut counts = Self::default();
        for mark in marks {
            match mark {
                ComparisonMark::Win => counts.wins += 1,
                ComparisonMark::Tie => counts.ties += 1,
                ComparisonMark::Loss => counts.losses += 1,
            }
        }
        counts
    }
}

/// The mark of our figures, one per split, beside one of the paper.
pub(crate) fn mark(
    rule: TieRule,
    metric: &PublishedMetric,
    ours: &[f64],
    paper: PublishedFigure,
) -> ComparisonMark {
    let (mean, sd) = mean_and_sd(ours);
    let is_tie = match rule {
        TieRule::Mean => is_same_rounded(mean, paper.mean(), metric.digits),
        TieRule::Overlap => {
            let reach = sd + paper.sd().unwrap_or(0.0);
            (mean - paper.mean()).abs() <= reach
                || is_same_rounded(mean, paper.mean(), metric.digits)
        }
        TieRule::TTest => {
            let same = vec![paper.mean(); ours.len()];
            let test = paired_t_test(ours, &same).ok();
            test.is_some_and(|test| test.p_value > LEVEL)
                || is_same_rounded(mean, paper.mean(), metric.digits)
        }
    };
    if is_tie {
        ComparisonMark::Tie
    } else if metric.merit(mean) > metric.merit(paper.mean()) {
        ComparisonMark::Win
    } else {
        ComparisonMark::Loss
    }
}

/// The p-value of a test of two models on the same splits; `None` if the test does not apply to
/// their number.
pub(crate) fn pair_test(rule: PairRule, a: &[f64], b: &[f64]) -> Option<f64> {
    let test = match rule {
        PairRule::PairedT => paired_t_test(a, b),
        PairRule::FiveByTwoF if a.len() == FIVE_BY_TWO => f_test_5x2cv(a, b),
        PairRule::FiveByTwoF => return None,
    };
    test.ok().map(|test| test.p_value)
}

/// Mean and standard deviation (divided by n - 1; 0 for one number).
pub(crate) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = if values.len() > 1 {
        (squares / (n - 1.0)).sqrt()
    } else {
        0.0
    };
    (mean, sd)
}

/// Whether a number is printed like the paper's.
fn is_same_rounded(ours: f64, paper: f64, digits: usize) -> bool {
    // half a unit of the last digit, and the rounding of both numbers
    (ours - paper).abs() <= 0.5 * 10f64.powi(-(digits as i32)) * (1.0 + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(higher: bool) -> PublishedMetric {
        toml::from_str(&format!(
            "name = 'm'\nscore = 's'\nhigher_is_better = {higher}\ndigits = 2"
        ))
        .unwrap()
    }

    #[test]
    fn the_better_mean_wins_unless_it_is_printed_alike() {
        use ComparisonMark::{Loss, Tie, Win};
        let paper = PublishedFigure::Mean(0.14);
        for (higher, ours, expected) in [
            (false, 0.12, Win),
            (true, 0.12, Loss),
            (false, 0.136, Tie),
            (false, 0.144, Tie),
            (false, 0.146, Loss),
        ] {
            let found = mark(TieRule::Mean, &metric(higher), &[ours, ours], paper);
            assert_eq!(found, expected, "{ours}");
        }
    }

    #[test]
    fn overlapping_error_bars_tie() {
        use ComparisonMark::{Loss, Tie, Win};
        let paper = PublishedFigure::MeanSd([1.0, 0.1]);
        // standard deviations 0.1: bars end at 1.1 and 1.05, 1.15 and so on
        for (middle, expected) in [(1.15, Tie), (1.25, Win), (0.85, Tie), (0.75, Loss)] {
            let ours = [middle - 0.1, middle, middle + 0.1];
            assert_eq!(
                mark(TieRule::Overlap, &metric(true), &ours, paper),
                expected
            );
        }
    }

    #[test]
    fn a_difference_that_is_not_significant_ties() {
        use ComparisonMark::{Loss, Tie, Win};
        let paper = PublishedFigure::Mean(1.0);
        for (ours, expected) in [
            ([1.2, 0.7, 1.5, 0.9], Tie),
            ([1.21, 1.22, 1.2, 1.19], Loss),
            ([0.81, 0.82, 0.8, 0.79], Win),
        ] {
            assert_eq!(mark(TieRule::TTest, &metric(false), &ours, paper), expected);
        }
        // one split cannot be tested: the mean decides
        assert_eq!(mark(TieRule::TTest, &metric(false), &[0.9], paper), Win);
    }

    #[test]
    fn the_f_test_needs_ten_splits() {
        let (a, b) = ([0.1; 10], [0.2; 10]);
        assert!(pair_test(PairRule::FiveByTwoF, &a[..4], &b[..4]).is_none());
        assert!(pair_test(PairRule::FiveByTwoF, &a, &b).is_some_and(|p| p < LEVEL));
        assert!(pair_test(PairRule::PairedT, &a[..4], &b[..4]).is_some());
    }

    #[test]
    fn nearer_to_the_truth_is_better() {
        let metric: PublishedMetric =
            toml::from_str("name = 'm'\nscore = 's'\ntruth = 4.0\ndigits = 2").unwrap();
        let paper = PublishedFigure::Mean(3.8);
        let found = [3.9, 4.1, 4.3].map(|ours| mark(TieRule::Mean, &metric, &[ours], paper));
        assert_eq!(found.map(ComparisonMark::word), ["win", "win", "loss"]);
    }
}
