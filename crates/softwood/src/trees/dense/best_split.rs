//! The best axis-aligned split of a set of rows: the one with the largest reduction of the weighted
//! squared error.
//!
//! With the sums `W` of weights and `S_k` of weighted outputs, the reduction is
//! `sum_k S_left,k^2/W_left + S_right,k^2/W_right - S_k^2/W`. With class indicators as outputs this
//! is the Gini criterion.

use crate::stop::until_cancelled;

/// Dense inputs (`n_rows x width`) with outputs (`n_rows x n_outputs`) and weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseSample<'a> {
    pub(crate) inputs: &'a [f32],
    pub(crate) width: usize,
    /// Inputs that may be split on: the first `n_inputs` of each row.
    pub(crate) n_inputs: usize,
    pub(crate) outputs: &'a [f64],
    pub(crate) n_outputs: usize,
    pub(crate) weights: &'a [f64],
}

/// A split: rows with `input <= threshold` go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DenseSplit {
    pub(crate) input: usize,
    pub(crate) threshold: f32,
    pub(crate) gain: f64,
}

/// Scratch memory of split searches.
#[derive(Debug, Default)]
pub(crate) struct SplitScratch {
    /// Values of one input with their rows, sorted.
    order: Vec<(f32, usize)>,
    /// Sums of the rows on the left.
    left: Vec<f64>,
    /// Sums of all rows.
    total: Vec<f64>,
}

/// Gains below this one are rounding errors.
const MIN_GAIN: f64 = 1e-12;

/// The best split of `rows` with at least `min_rows` rows on either side.
pub(crate) fn best(
    sample: &DenseSample<'_>,
    rows: &[usize],
    min_rows: usize,
    scratch: &mut SplitScratch,
) -> Option<DenseSplit> {
    let k = sample.n_outputs;
    scratch.total.clear();
    scratch.total.resize(k + 1, 0.0);
    for &row in rows {
        add(&mut scratch.total, sample, row);
    }
    let mut best: Option<DenseSplit> = None;
    for input in until_cancelled(0..sample.n_inputs) {
        scratch.order.clear();
        scratch.order.extend(
            rows.iter()
                .map(|&row| (sample.inputs[row * sample.width + input], row)),
        );
        scratch
            .order
            .sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        scratch.left.clear();
        scratch.left.resize(k + 1, 0.0);
        for at in 1..scratch.order.len() {
            let (below, row) = scratch.order[at - 1];
            add(&mut scratch.left, sample, row);
            let above = scratch.order[at].0;
            if below >= above || at < min_rows || scratch.order.len() - at < min_rows {
                continue;
            }
            let gain = gain(&scratch.left, &scratch.total);
            if gain > best.map_or(MIN_GAIN, |best| best.gain) {
                best = Some(DenseSplit {
                    input,
                    threshold: 0.5 * (below + above),
                    gain,
                });
            }
        }
    }
    best
}

/// Adds a row to sums: first the weight, then the weighted outputs.
fn add(sums: &mut [f64], sample: &DenseSample<'_>, row: usize) {
    let weight = sample.weights[row];
    sums[0] += weight;
    let outputs = &sample.outputs[row * sample.n_outputs..(row + 1) * sample.n_outputs];
    for (sum, output) in sums[1..].iter_mut().zip(outputs) {
        *sum += weight * output;
    }
}

fn gain(left: &[f64], total: &[f64]) -> f64 {
    let right_weight = total[0] - left[0];
    if left[0] <= 0.0 || right_weight <= 0.0 {
        return 0.0;
    }
    left[1..]
        .iter()
        .zip(&total[1..])
        .map(|(l, t)| l * l / left[0] + (t - l).powi(2) / right_weight - t * t / total[0])
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_split_of_a_step_function_is_its_jump() {
        let inputs: Vec<f32> = (0..20)
            .flat_map(|i| [(i * 7 % 20) as f32, i as f32])
            .collect();
        let outputs: Vec<f64> = (0..20).map(|i| if i < 13 { -1.0 } else { 2.0 }).collect();
        let weights = vec![1.0; 20];
        let sample = DenseSample {
            inputs: &inputs,
            width: 2,
            n_inputs: 2,
            outputs: &outputs,
            n_outputs: 1,
            weights: &weights,
        };
        let rows: Vec<usize> = (0..20).collect();
        let split = best(&sample, &rows, 1, &mut SplitScratch::default()).unwrap();
        assert_eq!((split.input, split.threshold), (1, 12.5));
        assert!((split.gain - 13.0 * 7.0 / 20.0 * 9.0).abs() < 1e-9);
        assert!(best(&sample, &rows[..13], 1, &mut SplitScratch::default()).is_none());
    }
}
