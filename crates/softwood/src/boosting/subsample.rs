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

/// Number of the columns of a set of encodings that a tree may split on.
const DRAWN_ENCODINGS: usize = 3;

/// Of every set of columns that encode the same categories, leaves some at random.
pub(super) fn draw_encodings(allowed: &mut [bool], encodings: &[Vec<usize>], key: Key) {
    let mut rng = key.rng();
    for set in encodings {
        let mut order = set.clone();
        shuffle(&mut rng, &mut order);
        for &column in order.iter().skip(DRAWN_ENCODINGS) {
            allowed[column] = false;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_sees_some_encodings_of_every_set_and_all_other_columns() {
        let encodings = [vec![1, 4, 5, 6, 7], vec![2, 8]];
        let mut seen = [false; 9];
        for round in 0..100 {
            let mut allowed = vec![true; 9];
            draw_encodings(&mut allowed, &encodings, Key::from_seed(round));
            let n_allowed = |set: &[usize]| set.iter().filter(|&&column| allowed[column]).count();
            assert_eq!(n_allowed(&encodings[0]), DRAWN_ENCODINGS);
            assert_eq!(n_allowed(&[0, 2, 3, 8]), 4);
            for (seen, allowed) in seen.iter_mut().zip(allowed) {
                *seen |= allowed;
            }
        }
        // an encoding is not drawn in 100 rounds with probability 0.4^100
        assert_eq!(seen, [true; 9]);
    }
}
