//! The demonstration's data and their truth: `y = f(x) + s(x) e`, `e ~ N(0, 1)`, with `x` drawn from two stretches.
//!
//! The noise depends on `x`; between the stretches and beyond the right one there are no training rows, so
//! that a model has every reason to be unsure there.

use std::f64::consts::{E, PI};
use std::ops::RangeInclusive;

use rand_core::Rng;
use softwood::{Column, Key, Result, Table};

/// Where training rows lie.
pub(crate) const STRETCHES: [RangeInclusive<f64>; 2] = [-5.0..=-1.5, 1.8..=3.4];
/// Where there are none: a gap, and what lies beyond the right edge.
pub(crate) const EMPTY: [RangeInclusive<f64>; 2] = [-1.5..=1.8, 3.4..=5.0];

/// The mean at `x`: a wave whose steepest rise lies in the gap.
pub(crate) fn mean(x: f64) -> f64 {
    1.4 * (0.9 * x).sin() + 0.8 * x.tanh()
}

/// The standard deviation of the noise at `x`: greatest in the middle of the left stretch.
pub(crate) fn noise(x: f64) -> f64 {
    0.06 + 0.25 * (-(x + 3.4).powi(2)).exp()
}

/// Rows with `x` uniform over `ranges`, in columns `x` and `y`.
pub(crate) fn draw(n_rows: usize, ranges: &[RangeInclusive<f64>], key: Key) -> Result<Table> {
    let mut rng = key.rng();
    let length: f64 = ranges.iter().map(|range| range.end() - range.start()).sum();
    let mut xs = Vec::with_capacity(n_rows);
    let mut ys = Vec::with_capacity(n_rows);
    for _ in 0..n_rows {
        let x = rounded(place(uniform(&mut rng) * length, ranges));
        xs.push(x);
        ys.push(rounded(mean(x) + noise(x) * normal(&mut rng)));
    }
    Table::new(vec![Column::numeric("x", xs), Column::numeric("y", ys)])
}

/// The log-likelihood a row that the truth itself reaches on average: minus the entropy of its noise.
pub(crate) fn best_log_likelihood(xs: &[f64]) -> f64 {
    let entropy = |x: &f64| 0.5 * (2.0 * PI * E).ln() + noise(*x).ln();
    -xs.iter().map(entropy).sum::<f64>() / xs.len() as f64
}

/// The point that lies `along` the ranges put end to end.
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

/// Four decimals, so that the files are short and the tables in them the ones that were fitted.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Box and Muller's Normal draw.
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (2.0 * PI * uniform(rng)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Values;

    #[test]
    fn rows_lie_where_they_should_and_have_the_stated_noise() {
        let table = draw(4000, &STRETCHES, Key::from_seed(3)).unwrap();
        let (Values::Numeric(xs), Values::Numeric(ys)) =
            (&table.columns()[0].values, &table.columns()[1].values)
        else {
            panic!("numbers expected")
        };
        assert!(
            xs.iter()
                .all(|x| STRETCHES.iter().any(|range| range.contains(x)))
        );
        let squares = xs
            .iter()
            .zip(ys)
            .map(|(x, y)| ((y - mean(*x)) / noise(*x)).powi(2));
        let variance = squares.sum::<f64>() / xs.len() as f64;
        // sd of the estimate: sqrt(2 / 4000) = 0.022; 0.13 is six of them
        assert!((variance - 1.0).abs() < 0.13, "{variance}");
    }
}
