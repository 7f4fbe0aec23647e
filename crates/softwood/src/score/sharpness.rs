//! Sharpness: how narrow predictive intervals are, whether or not they cover their targets.

/// Mean width of intervals given as pairs of lower and upper end, in the units of the target. A sum
/// that overflows gives the largest number.
pub(crate) fn mean_width(intervals: impl ExactSizeIterator<Item = (f64, f64)>) -> f64 {
    let n = intervals.len() as f64;
    let mean: f64 = intervals.map(|(lower, upper)| upper / n - lower / n).sum();
    mean.min(f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn widths_are_averaged_and_do_not_overflow() {
        close(
            &[mean_width([(-1.0, 2.0), (0.5, 0.5)].into_iter())],
            &[1.5],
            1e-12,
        );
        assert!(mean_width([(f64::MIN, f64::MAX)].into_iter()).is_finite());
    }
}
