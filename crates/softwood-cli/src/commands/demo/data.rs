//! Synthetic data of the demonstration: `y = f(x) + s(x) e`, `e ~ N(0, 1)`, with `x` uniform on two
//! intervals.
//!
//! The noise depends on `x`. Between the two intervals and to the right of them there are no
//! training rows, so knowledge uncertainty should be large there.

use std::f64::consts::{E, PI};
use std::ops::RangeInclusive;

use softwood::{Column, Key, Result, Table};

/// Intervals with training rows.
pub(crate) const TRAINING_RANGES: [RangeInclusive<f64>; 2] = [-5.0..=-1.5, 1.8..=3.4];
/// Intervals without training rows: the gap, and the region beyond the largest `x`.
pub(crate) const EMPTY_RANGES: [RangeInclusive<f64>; 2] = [-1.5..=1.8, 3.4..=5.0];

/// The true mean `f(x)`, which rises most steeply in the gap.
pub(crate) fn mean(x: f64) -> f64 {
    1.4 * (0.9 * x).sin() + 0.8 * x.tanh()
}

/// The standard deviation `s(x)` of the noise, largest in the middle of the left interval.
pub(crate) fn noise(x: f64) -> f64 {
    0.06 + 0.25 * (-(x + 3.4).powi(2)).exp()
}

/// A table of columns `x` and `y`, with `x` uniform on the union of `ranges`.
pub(crate) fn draw(n_rows: usize, ranges: &[RangeInclusive<f64>], key: Key) -> Result<Table> {
    let mut numbers = key.uniforms(3 * n_rows).into_iter();
    let mut next = || numbers.next().unwrap_or(0.5);
    let length: f64 = ranges.iter().map(|range| range.end() - range.start()).sum();
    let mut xs = Vec::with_capacity(n_rows);
    let mut ys = Vec::with_capacity(n_rows);
    for _ in 0..n_rows {
        let x = rounded(place(next() * length, ranges));
        xs.push(x);
        ys.push(rounded(mean(x) + noise(x) * normal(next(), next())));
    }
    Table::new(vec![Column::numeric("x", xs), Column::numeric("y", ys)])
}

/// The expected log-likelihood per row of the true distribution: minus the entropy of the noise.
pub(crate) fn true_log_likelihood(xs: &[f64]) -> f64 {
    let entropy = |x: &f64| 0.5 * (2.0 * PI * E).ln() + noise(*x).ln();
    -xs.iter().map(entropy).sum::<f64>() / xs.len() as f64
}

/// The point at distance `along` from the start of the concatenated ranges.
fn place(mut along: f64, ranges: &[RangeInclusive<f64>]) -> f64 {
    for range in ranges {
        let length = range.end() - range.start();
        if along <= length {
            return range.start() + along;
        }
        along -= length;
    }
    ranges.last().map_or(0.0, |range| *range.end())
}

/// Rounds to four decimals, so that the written files are short and equal to the fitted tables.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// A Normal number from two uniform numbers (Box-Muller transform).
pub(crate) fn normal(u: f64, v: f64) -> f64 {
    (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * PI * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::data::Values;

    #[test]
    fn rows_lie_in_the_ranges_and_have_the_stated_noise() {
        let table = draw(4000, &TRAINING_RANGES, Key::from_seed(3)).unwrap();
        let (Values::Numeric(xs), Values::Numeric(ys)) =
            (&table.columns()[0].values, &table.columns()[1].values)
        else {
            panic!("numbers expected")
        };
        assert!(
            xs.iter()
                .all(|x| TRAINING_RANGES.iter().any(|range| range.contains(x)))
        );
        let squares = xs
            .iter()
            .zip(ys)
            .map(|(x, y)| ((y - mean(*x)) / noise(*x)).powi(2));
        let variance = squares.sum::<f64>() / xs.len() as f64;
        // standard deviation of the estimate: sqrt(2 / 4000) = 0.022; the limit is six of them
        assert!((variance - 1.0).abs() < 0.13, "{variance}");
    }
}
