//! Coverage of central intervals.

/// Share of rows whose target lies in the central interval of probability `level`, from the cdf at
/// the targets: a target lies in the interval exactly if its cdf lies between `(1 - level) / 2` and
/// `(1 + level) / 2`.
pub(crate) fn coverage(cdf: &[f64], level: f64) -> f64 {
    let inside = cdf.iter().filter(|&&p| (p - 0.5).abs() <= 0.5 * level);
    inside.count() as f64 / cdf.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_in_either_tail_are_not_covered() {
        let cdf = [0.01, 0.06, 0.5, 0.94, 0.99];
        assert!((coverage(&cdf, 0.9) - 0.6).abs() < 1e-15);
        assert!((coverage(&cdf, 0.99) - 1.0).abs() < 1e-15);
    }
}
