//! Row and column sampling for the split search of one tree.

use crate::rng::{Key, shuffle, uniform};
use crate::trees::histogram::quantized_gradients::QuantizedGradients;

/// Keeps each row with probability `subsample` and sets the entries of the others to zero.
///
/// These are the narrow gradients that histograms add up. Leaf values use all rows.
pub(super) fn sample_rows<const L: usize>(
    quantized: &mut QuantizedGradients<L>,
    subsample: f64,
    key: Key,
) {
    if subsample >= 1.0 {
        return;
    }
    quantized.is_sampled = true;
    let mut rng = key.rng();
    for row in &mut quantized.narrow {
        if uniform(&mut rng) >= subsample {
            *row = [0; L];
        }
    }
}

/// Whether each column may be split on: a fraction `colsample` of them, at least one.
pub(super) fn sample_columns(n_columns: usize, colsample: f64, key: Key) -> Vec<bool> {
    if colsample >= 1.0 {
        return vec![true; n_columns];
    }
    let n_sampled = ((n_columns as f64 * colsample).round() as usize).clamp(1, n_columns);
    let mut order: Vec<usize> = (0..n_columns).collect();
    shuffle(&mut key.rng(), &mut order);
    let mut is_sampled = vec![false; n_columns];
    for &column in &order[..n_sampled] {
        is_sampled[column] = true;
    }
    is_sampled
}
