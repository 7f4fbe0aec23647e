//! Shares of the added variance: a Normal distribution whose variance is drawn from `4 / χ²(4)` is
//! Student's t with 4 degrees of freedom; members get the quantiles of that distribution.

/// Number of halvings of the interval that contains a quantile.
const N_HALVINGS: usize = 60;

/// Factors of the variance for `n` members, with mean 1. Neighbouring members have factors from the
/// whole range, so that every run of members is a fair sample.
pub(crate) fn variance_factors(n: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&member| (member as u64).reverse_bits());
    let mut factors = vec![0.0; n];
    for (rank, &member) in order.iter().enumerate() {
        factors[member] = 4.0 / chi_squared_quantile((rank as f64 + 0.5) / n as f64);
    }
    let mean = factors.iter().sum::<f64>() / n as f64;
    factors.iter().map(|factor| factor / mean).collect()
}

/// The quantile of the chi-squared distribution with 4 degrees of freedom, whose cdf is
/// `1 - (1 + x/2) e^{-x/2}`.
fn chi_squared_quantile(level: f64) -> f64 {
    let above = |x: f64| (1.0 + 0.5 * x) * (-0.5 * x).exp();
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..N_HALVINGS {
        let middle = 0.5 * (low + high);
        if 1.0 - above(middle) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn quantiles_of_the_chi_squared_distribution() {
        // scipy.stats.chi2.ppf([.05, .5, .95], 4)
        let expected = [0.710_723_021, 3.356_693_980, 9.487_729_037];
        close(
            &[0.05, 0.5, 0.95].map(chi_squared_quantile),
            &expected,
            1e-8,
        );
    }

    #[test]
    fn factors_have_mean_one_in_every_run_of_members() {
        assert_eq!(variance_factors(1), [1.0]);
        let factors = variance_factors(128);
        let mean = |run: &[f64]| run.iter().sum::<f64>() / run.len() as f64;
        close(&[mean(&factors)], &[1.0], 1e-12);
        for run in factors.chunks_exact(32) {
            assert!((0.7..1.5).contains(&mean(run)), "{}", mean(run));
        }
        // a heavy tail: the largest factor is far above the mean
        assert!(factors.iter().fold(0.0, |a: f64, &b| a.max(b)) > 8.0);
    }
}
