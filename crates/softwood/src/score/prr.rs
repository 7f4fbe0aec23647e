//! Prediction-rejection ratio (PRR): how well uncertainty ranks errors; 1 for an oracle and 0 for a
//! random ranking.
//!
//! The most uncertain rows are rejected first. Rows of equal uncertainty have their mean error,
//! which is the expectation over their order. Both forms follow the definitions of Malinin et al.
//! 2021, as fractions (their tables multiply by 100).

use crate::numerics::order::ascending;

/// PRR of squared errors (regression); `None` if all errors are equal or there are too few rows.
///
/// With the share `c_i` of the total error among the `i` most uncertain of `n` rows, `i = 0..n-1`,
/// the trapezoid sum `AUC` of `c` at steps of `1/n`, and `AUC_random = ((n-1)/n)² / 2`:
/// `PRR = (AUC_model - AUC_random) / (AUC_oracle - AUC_random)`.
pub(crate) fn regression(errors: &[f64], uncertainty: &[f64]) -> Option<f64> {
    let n = errors.len() as f64;
    let random = 0.5 * ((n - 1.0) / n).powi(2);
    let model = rejection_area(errors, uncertainty)?;
    let oracle = rejection_area(errors, errors)?;
    ratio(model - random, oracle - random)
}

fn rejection_area(errors: &[f64], uncertainty: &[f64]) -> Option<f64> {
    let total: f64 = errors.iter().sum();
    let sorted = by_uncertainty(errors, uncertainty);
    let (mut rejected, mut area, mut before) = (0.0, 0.0, 0.0);
    for error in sorted.iter().skip(1).rev() {
        rejected += error / total;
        area += 0.5 * (before + rejected);
        before = rejected;
    }
    (total > 0.0 && total.is_finite()).then(|| area / errors.len() as f64)
}

/// PRR of classification errors; `None` if no row or every row is wrong, or there are too few rows.
///
/// With the number `e_i` of errors among the `i` least uncertain of `n` rows, `i = 0..n-1`, and
/// `b = e_{n-1}`, the areas are trapezoid sums over `(i + 1) / n` of `e_{n-1-i}` (model),
/// `b (1 - i/n)` (random) and `b (1 - i / b)` down to zero (oracle):
/// `PRR = (A_random - A_model) / (A_random - A_oracle)`.
pub(crate) fn classification(is_wrong: &[bool], uncertainty: &[f64]) -> Option<f64> {
    let wrong: Vec<f64> = is_wrong
        .iter()
        .map(|&wrong| f64::from(u8::from(wrong)))
        .collect();
    let n = wrong.len();
    if n < 2 {
        return None;
    }
    let sorted = by_uncertainty(&wrong, uncertainty);
    // the most uncertain row is never counted
    let mut kept = Vec::with_capacity(n);
    let mut sum = 0.0;
    for error in &sorted {
        kept.push(sum);
        sum += error;
    }
    let base = kept[n - 1];
    let random = |at: usize| base * (1.0 - at as f64 / n as f64);
    // the tolerance compensates the rounding of tied shares
    let last = (base + 1e-9).floor() as usize;
    let oracle = |at: usize| {
        if at < last {
            base * (1.0 - at as f64 / base)
        } else {
            0.0
        }
    };
    let model = trapezoid(n, |at| kept[n - 1 - at]);
    let random = trapezoid(n, random);
    ratio(random - model, random - trapezoid(n, oracle))
}

fn trapezoid(n: usize, curve: impl Fn(usize) -> f64) -> f64 {
    let inner: f64 = (1..n - 1).map(&curve).sum();
    inner + 0.5 * (curve(0) + curve(n - 1))
}

fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator.abs() > 1e-12 && numerator.is_finite()).then(|| numerator / denominator)
}

/// Errors in the order of increasing uncertainty; rows of equal uncertainty have their mean error.
fn by_uncertainty(errors: &[f64], uncertainty: &[f64]) -> Vec<f64> {
    let order = ascending(uncertainty);
    let mut sorted = Vec::with_capacity(order.len());
    for tied in order.chunk_by(|&a, &b| uncertainty[a] >= uncertainty[b]) {
        let mean = tied.iter().map(|&row| errors[row]).sum::<f64>() / tied.len() as f64;
        sorted.extend(std::iter::repeat_n(mean, tied.len()));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn regression_of_six_rows() {
        // computed by hand from the definition above
        let errors = [4.0, 1.0, 0.25, 9.0, 0.01, 2.25];
        let uncertainty = [0.9, 0.2, 0.3, 0.8, 0.1, 0.4];
        let areas = [
            rejection_area(&errors, &uncertainty).unwrap(),
            rejection_area(&errors, &errors).unwrap(),
            regression(&errors, &uncertainty).unwrap(),
        ];
        close(
            &areas,
            &[0.565_313_951_1, 0.623_359_580_1, 0.789_794_364_1],
            1e-9,
        );
    }

    #[test]
    fn classification_of_ten_rows() {
        // computed by hand from the definition above
        let wrong = [2, 5, 9].map(|row| row).to_vec();
        let is_wrong: Vec<bool> = (0..10).map(|row| wrong.contains(&row)).collect();
        let uncertainty = [0.1, 0.2, 0.9, 0.15, 0.3, 0.8, 0.25, 0.5, 0.05, 0.4];
        let found = classification(&is_wrong, &uncertainty).unwrap();
        close(&[found], &[0.873_417_721_519], 1e-11);
    }

    #[test]
    fn an_oracle_scores_one_and_a_constant_zero() {
        let errors = [3.0, 1.0, 2.0, 5.0];
        close(&[regression(&errors, &errors).unwrap()], &[1.0], 1e-12);
        let constant = regression(&errors, &[1.0; 4]).unwrap();
        close(&[constant], &[0.0], 1e-12);
    }

    #[test]
    fn without_errors_there_is_no_ratio() {
        assert_eq!(regression(&[0.0; 4], &[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(classification(&[false; 4], &[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(classification(&[true], &[1.0]), None);
        assert_eq!(regression(&[1.0], &[1.0]), None);
    }
}
