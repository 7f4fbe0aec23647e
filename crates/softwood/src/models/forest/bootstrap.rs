//! Rows of a tree: how often each is drawn.
//!
//! A row of weight `w` stands for `w` equal rows, each drawn a number of times that follows Poisson's law of mean one: together `w`.
//! Drawing `n` rows with replacement has nearly the same law, but there a row's count depends on all others'.

use rand_core::Rng;

use crate::rng::{Key, uniform};

/// Means above this are drawn from a Normal law.
const MANY: f64 = 30.0;

/// Weight of each row in one tree. Weights below one in the mean are drawn as if they were one, and scaled back.
pub(super) fn bag(weight: &[f32], key: Key) -> Vec<f32> {
    let total: f64 = weight.iter().map(|&weight| f64::from(weight)).sum();
    let unit = (total / weight.len() as f64).min(1.0);
    let mut rng = key.rng();
    let draws = weight.iter().map(|&weight| {
        let drawn = poisson(&mut rng, f64::from(weight) / unit);
        (drawn * unit) as f32
    });
    let bag: Vec<f32> = draws.collect();
    if bag.iter().all(|&weight| weight <= 0.0) {
        return weight.to_vec();
    }
    bag
}

fn poisson(rng: &mut impl Rng, mean: f64) -> f64 {
    let u = uniform(rng);
    if mean > MANY {
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
    fn counts_have_mean_and_variance_of_their_weight() {
        for weight in [0.3_f32, 1.0, 3.0, 50.0] {
            let n = 40_000;
            let mut weights = vec![weight; n];
            // a heavy row keeps the mean weight above one
            weights.push(2.0 * n as f32);
            let bag = bag(&weights, Key::from_seed(1));
            let mean = bag[..n].iter().map(|&count| f64::from(count)).sum::<f64>() / n as f64;
            let square = |&count: &f32| (f64::from(count) - mean).powi(2);
            let variance = bag[..n].iter().map(square).sum::<f64>() / n as f64;
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
    fn small_weights_do_not_empty_the_bag() {
        let bag = bag(&[1e-3; 1000], Key::from_seed(2));
        let total: f32 = bag.iter().sum();
        assert!((total - 1.0).abs() < 0.2, "{total}");
        assert_eq!(super::bag(&[1.0], Key::from_seed(3)).len(), 1);
    }
}
