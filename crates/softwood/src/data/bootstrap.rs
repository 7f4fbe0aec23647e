//! Poisson bootstrap: how often each row is drawn for a tree.
//!
//! A row of weight `w` stands for `w` equal rows. Each of them is drawn a number of times that
//! follows a Poisson distribution with mean one, so the count of the row is Poisson with mean `w`.
//! Drawing `n` rows with replacement has nearly the same distribution, but makes the counts of the
//! rows dependent.

use rand_core::Rng;

use crate::rng::{Key, uniform};

/// Poisson counts with a larger mean are drawn from a Normal distribution.
const MAX_POISSON_MEAN: f64 = 30.0;

/// Bootstrap weight of each row for one tree; 0 for an out-of-bag row. If the mean weight of the
/// rows is below one, weights are scaled to a mean of one for the draw and scaled back, so that the
/// sample does not become empty.
pub(crate) fn bootstrap_weights(weight: &[f32], key: Key) -> Vec<f32> {
    let total: f64 = weight.iter().map(|&weight| f64::from(weight)).sum();
    let unit = (total / weight.len() as f64).min(1.0);
    let mut rng = key.rng();
    let draws = weight.iter().map(|&weight| {
        let count = poisson(&mut rng, f64::from(weight) / unit);
        (count * unit) as f32
    });
    let drawn: Vec<f32> = draws.collect();
    if drawn.iter().all(|&weight| weight <= 0.0) {
        return weight.to_vec();
    }
    drawn
}

fn poisson(rng: &mut impl Rng, mean: f64) -> f64 {
    let u = uniform(rng);
    if mean > MAX_POISSON_MEAN {
        let v = uniform(rng);
        let z = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        return (mean + mean.sqrt() * z).round().max(0.0);
    }
    let mut term = (-mean).exp();
    let (mut sum, mut n) = (term, 0.0);
    while u >= sum && term > 0.0 {
        n += 1.0;
        term *= mean / n;
        sum += term;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_mean_and_variance_of_a_poisson_distribution() {
        for weight in [0.3_f32, 1.0, 3.0, 50.0] {
            let n = 40_000;
            let mut weights = vec![weight; n];
            // a heavy row keeps the mean weight above one
            weights.push(2.0 * n as f32);
            let drawn = bootstrap_weights(&weights, Key::from_seed(1));
            let mean = drawn[..n]
                .iter()
                .map(|&count| f64::from(count))
                .sum::<f64>()
                / n as f64;
            let square = |&count: &f32| (f64::from(count) - mean).powi(2);
            let variance = drawn[..n].iter().map(square).sum::<f64>() / n as f64;
            let weight = f64::from(weight);
            // six standard deviations of the mean, and of the variance (kurtosis below 7)
            assert!(
                (mean - weight).abs() < 6.0 * (weight / n as f64).sqrt(),
                "{weight}: {mean}"
            );
            assert!(
                (variance / weight - 1.0).abs() < 6.0 * (6.0 / n as f64).sqrt(),
                "{weight}: {variance}"
            );
        }
    }

    #[test]
    fn small_weights_do_not_make_the_sample_empty() {
        let drawn = bootstrap_weights(&[1e-3; 1000], Key::from_seed(2));
        let total: f32 = drawn.iter().sum();
        assert!((total - 1.0).abs() < 0.2, "{total}");
        assert_eq!(bootstrap_weights(&[1.0], Key::from_seed(3)).len(), 1);
    }
}
