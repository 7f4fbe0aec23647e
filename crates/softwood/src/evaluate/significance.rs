//! Tests whether two models differ, from scores on the same folds or the same rows.
//!
//! All tests are two-sided. They compare numbers of any kind (errors, log-likelihoods); the sign of
//! [`SignificanceTest::mean_difference`] says which model has the larger ones.
//!
//! ```
//! use softwood::evaluate::significance::paired_t_test;
//!
//! // errors of two models on the same five folds
//! let test = paired_t_test(&[0.31, 0.28, 0.35, 0.40, 0.29], &[0.27, 0.26, 0.33, 0.36, 0.28])?;
//! assert!(test.mean_difference > 0.0 && test.p_value < 0.05);
//! # Ok::<(), softwood::Error>(())
//! ```

use serde::Serialize;

use crate::error::{Error, Result};
use crate::numerics::tail_probability::{two_sided_t, upper_f};

/// Repeats and folds of the 5x2 cv test.
const REPEATS: usize = 5;
const FOLDS_PER_REPEAT: usize = 2;

/// Result of a test of two models.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SignificanceTest {
    /// The test statistic: t, or F for the 5x2 cv test. Infinite if all differences are equal and
    /// not zero.
    pub statistic: f64,
    /// Probability of a statistic at least as extreme if the models do not differ.
    pub p_value: f64,
    /// Mean of the first model's numbers minus those of the second.
    pub mean_difference: f64,
}

/// Paired t-test of scores on the same folds or rows: `t = mean(d) / sqrt(var(d) / n)` of the
/// differences `d`, with `n - 1` degrees of freedom. Folds of a cross-validation share training
/// rows, so their differences are not independent and the p-value is too small.
///
/// # Errors
/// When the numbers are not finite, their counts differ, or there are fewer than two.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> Result<SignificanceTest> {
    let differences = differences(a, b, 2)?;
    let n = differences.len() as f64;
    let mean = mean(&differences);
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let variance_of_mean = squares / (n - 1.0) / n;
    let statistic = ratio(mean, variance_of_mean.sqrt());
    Ok(SignificanceTest {
        statistic,
        p_value: two_sided_t(statistic, n - 1.0),
        mean_difference: mean,
    })
}

/// 5x2 cv paired F test (Alpaydin 1999) of the errors of ten folds: two folds of the first repeat,
/// two of the second, and so on.
///
/// `F = Σ_ij d_ij² / (2 Σ_i s_i²)` with the difference `d_ij` in fold `j` of repeat `i`, and
/// `s_i² = (d_i1 - m_i)² + (d_i2 - m_i)²` around its mean `m_i`; under the hypothesis of equal errors
/// it has the F distribution with 10 and 5 degrees of freedom.
///
/// # Errors
/// When there are not ten numbers of each model, or one is not finite.
pub fn f_test_5x2cv(errors_a: &[f64], errors_b: &[f64]) -> Result<SignificanceTest> {
    let n = REPEATS * FOLDS_PER_REPEAT;
    let differences = differences(errors_a, errors_b, n)?;
    if differences.len() != n {
        return Err(Error::Parameters(vec![format!(
            "{} errors of each model: the 5x2 cv test needs {n}, two folds of each of {REPEATS} repeats",
            differences.len()
        )]));
    }
    let squares: f64 = differences.iter().map(|d| d * d).sum();
    let variances: f64 = differences
        .chunks_exact(FOLDS_PER_REPEAT)
        .map(|pair| 0.5 * (pair[0] - pair[1]).powi(2))
        .sum();
    let statistic = ratio(squares, 2.0 * variances);
    Ok(SignificanceTest {
        statistic,
        p_value: if statistic > 0.0 {
            upper_f(statistic, n as f64, REPEATS as f64)
        } else {
            1.0
        },
        mean_difference: mean(&differences),
    })
}

/// Diebold-Mariano test of scores per row, in the order of time, of forecasts `h` steps ahead.
///
/// `DM = mean(d) / sqrt(V / n)` of the differences `d`; `V` is their long-run variance with the
/// Newey-West (Bartlett) weights `1 - k/h` up to lag `h - 1`. With the small-sample correction of
/// Harvey, Leybourne and Newbold, `sqrt((n + 1 - 2h + h(h - 1)/n) / n)`, the statistic is compared
/// with Student's t of `n - 1` degrees of freedom. With `h = 1` this is the paired t-test.
///
/// # Errors
/// When the numbers are not finite, their counts differ, there are fewer than two, or `h` is 0 or
/// not below the number of rows.
pub fn diebold_mariano(a: &[f64], b: &[f64], h: usize) -> Result<SignificanceTest> {
    let differences = differences(a, b, 2)?;
    let n = differences.len();
    if h == 0 || h >= n {
        return Err(Error::Parameters(vec![format!(
            "`h` = {h}: expected a forecast horizon from 1 to {}, below the number of rows",
            n - 1
        )]));
    }
    let mean = mean(&differences);
    let autocovariance = |lag: usize| {
        let pairs = differences[lag..].iter().zip(&differences);
        pairs
            .map(|(now, before)| (now - mean) * (before - mean))
            .sum::<f64>()
            / n as f64
    };
    let weighted = |lag: usize| 2.0 * (1.0 - lag as f64 / h as f64) * autocovariance(lag);
    // Bartlett weights keep the sum above zero but for rounding
    let variance = (autocovariance(0) + (1..h).map(weighted).sum::<f64>()).max(0.0);
    let (n, h) = (n as f64, h as f64);
    let correction = ((n + 1.0 - 2.0 * h + h * (h - 1.0) / n) / n).sqrt();
    let statistic = correction * ratio(mean, (variance / n).sqrt());
    Ok(SignificanceTest {
        statistic,
        p_value: two_sided_t(statistic, n - 1.0),
        mean_difference: mean,
    })
}

/// Differences of the numbers of two models, which must be finite and at least `min` each.
fn differences(a: &[f64], b: &[f64], min: usize) -> Result<Vec<f64>> {
    let problem = if a.len() != b.len() {
        Some(format!(
            "{} numbers of one model and {} of the other; give one of each for the same folds or rows",
            a.len(),
            b.len()
        ))
    } else if a.len() < min {
        Some(format!(
            "{} numbers of each model: expected at least {min}",
            a.len()
        ))
    } else {
        let at = a.iter().zip(b).position(|(a, b)| !(a - b).is_finite());
        at.map(|at| format!("the numbers at position {at} are not finite"))
    };
    match problem {
        Some(problem) => Err(Error::Parameters(vec![problem])),
        None => Ok(a.iter().zip(b).map(|(a, b)| a - b).collect()),
    }
}

/// A quotient whose denominator is not negative: 0/0 is 0, because equal numbers show no difference.
fn ratio(numerator: f64, denominator: f64) -> f64 {
    if numerator.abs() > 0.0 || denominator > 0.0 {
        numerator / denominator
    } else {
        0.0
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    const A: [f64; 10] = [0.31, 0.28, 0.35, 0.40, 0.29, 0.33, 0.30, 0.37, 0.36, 0.32];
    const B: [f64; 10] = [0.27, 0.26, 0.33, 0.36, 0.30, 0.31, 0.25, 0.35, 0.30, 0.31];

    fn numbers(test: SignificanceTest) -> [f64; 3] {
        [test.statistic, test.p_value, test.mean_difference]
    }

    #[test]
    fn a_paired_t_test_agrees_with_scipy() {
        // the test of related samples of scipy.stats, scipy 1.17.1
        let expected = [4.149_755_708_586_337, 0.002_485_286_229_174_293, 0.027];
        close(&numbers(paired_t_test(&A, &B).unwrap()), &expected, 1e-10);
    }

    #[test]
    fn a_5x2cv_test_agrees_with_its_formula() {
        // the formula in numpy, and scipy.stats.f.sf(F, 10, 5), scipy 1.17.1
        let expected = [2.176_470_588_235_294, 0.202_137_641_341_887_3, 0.027];
        close(&numbers(f_test_5x2cv(&A, &B).unwrap()), &expected, 1e-10);
    }

    #[test]
    fn a_diebold_mariano_test_agrees_with_its_formula() {
        // the formula in numpy, and 2 * scipy.stats.t.sf(|DM|, 9), scipy 1.17.1
        for (h, statistic, p_value) in [
            (1, 4.149_755_708_586_336, 0.002_485_286_229_174_296),
            (3, 4.644_304_764_855_041, 0.001_211_849_506_884_938),
        ] {
            let found = numbers(diebold_mariano(&A, &B, h).unwrap());
            close(&found, &[statistic, p_value, 0.027], 1e-10);
        }
    }

    #[test]
    fn equal_numbers_do_not_differ_and_a_constant_difference_is_certain() {
        let shifted = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5];
        let whole = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        for (a, b, expected) in [(&A, &A, [1.0, 0.0]), (&shifted, &whole, [0.0, 0.5])] {
            for test in [
                paired_t_test(a, b),
                f_test_5x2cv(a, b),
                diebold_mariano(a, b, 2),
            ] {
                let test = test.unwrap();
                close(&[test.p_value, test.mean_difference], &expected, 1e-12);
            }
        }
    }

    #[test]
    fn counts_that_do_not_fit_are_errors() {
        for (result, part) in [
            (paired_t_test(&A, &B[1..]), "10 numbers of one model and 9"),
            (paired_t_test(&A[..1], &B[..1]), "at least 2"),
            (paired_t_test(&[1.0, f64::NAN], &[1.0, 2.0]), "position 1"),
            (f_test_5x2cv(&A[..8], &B[..8]), "at least 10"),
            (f_test_5x2cv(&[1.0; 12], &[2.0; 12]), "12 errors"),
            (diebold_mariano(&A, &B, 0), "`h` = 0"),
            (diebold_mariano(&A, &B, 10), "from 1 to 9"),
        ] {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
