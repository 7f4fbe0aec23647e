//! The best axis-aligned split of a leaf of a soft tree: rows have the probability of reaching the
//! leaf as weights, and each side is fitted by a constant or by a line in the input of the split.
//!
//! With the sums `W` of weights, `X`, `XX` of the input, `R_k` of output `k` and `XR_k` of their
//! product, a side explains `R_k^2/W + (XR_k - X R_k/W)^2 / (XX - X^2/W)` of the sum of squares of
//! output `k`; the second term only with lines. Inputs are sorted once; a search then takes one pass
//! over the rows per input.

use crate::stop::until_cancelled;
use crate::variational::encoded_rows::EncodedRows;

/// Largest number of cells of the sorted inputs; larger tables are searched on a subset of rows.
const MAX_CELLS: usize = 1 << 24;
/// Largest number of rows of a search.
const MAX_ROWS: usize = 16_384;
/// Smallest number of rows of a subset.
const MIN_ROWS: usize = 256;
/// Gains below this fraction of the sum of squares are rounding errors.
const MIN_GAIN: f64 = 1e-9;
/// Pseudo-rows that keep the slope of a line finite.
const SLOPE_SHRINKAGE: f64 = 0.1;

/// The order of the rows by each input.
#[derive(Debug)]
pub(super) struct SortedInputs {
    /// Rows that are searched.
    rows: Vec<u32>,
    /// For each input the rows in ascending order: inputs x rows.
    order: Vec<u32>,
    width: usize,
}

/// A split: rows with `input > threshold` go right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HardSplit {
    pub(super) input: usize,
    pub(super) threshold: f32,
    /// Decrease of the sum of squares, scaled up to all rows.
    pub(super) gain: f64,
    /// Fit of the outputs on the left and on the right side.
    pub(super) sides: [SideFit; 2],
}

/// For each output the intercept and slope of a line in the input of the split.
pub(super) type SideFit = Vec<[f64; 2]>;

/// A search: membership weights of all rows and their outputs (rows x outputs).
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitSearch<'a> {
    pub(super) inputs: &'a [f32],
    pub(super) weights: &'a [f64],
    pub(super) outputs: &'a [f64],
    /// Whether each side is fitted by a line.
    pub(super) is_linear: bool,
    /// Smallest weight of a side.
    pub(super) min_weight: f64,
}

impl SortedInputs {
    /// Sorts the inputs of the rows, or of every k-th row of a large table.
    pub(super) fn new(rows: &EncodedRows, width: usize) -> Self {
        let n_inputs = width - 1;
        let max_rows = (MAX_CELLS / n_inputs.max(1)).clamp(MIN_ROWS, MAX_ROWS);
        let step = rows.n_rows().div_ceil(max_rows).max(1);
        let rows_used: Vec<u32> = (0..rows.n_rows() as u32).step_by(step).collect();
        let mut order = Vec::with_capacity(n_inputs * rows_used.len());
        for input in until_cancelled(0..n_inputs) {
            let start = order.len();
            order.extend_from_slice(&rows_used);
            let value = |row: u32| rows.inputs[row as usize * width + input];
            order[start..].sort_unstable_by(|&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b)));
        }
        Self {
            rows: rows_used,
            order,
            width,
        }
    }

    /// The best split with enough weight on either side; `None` if no split explains anything.
    pub(super) fn best(&self, search: &SplitSearch<'_>) -> Option<HardSplit> {
        self.best_by_input(search).into_iter().next()
    }

    /// The best split on each input that explains anything, the largest gain first.
    pub(super) fn best_by_input(&self, search: &SplitSearch<'_>) -> Vec<HardSplit> {
        let n_rows = self.rows.len().max(1);
        let inputs = self.order.chunks_exact(n_rows).enumerate();
        let splits = until_cancelled(inputs)
            .filter_map(|(input, order)| self.best_on_input(search, input, order));
        let mut splits: Vec<HardSplit> = splits.collect();
        splits.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.input.cmp(&b.input)));
        splits
    }

    /// The best split on one input, whose rows are in this order.
    fn best_on_input(
        &self,
        search: &SplitSearch<'_>,
        input: usize,
        order: &[u32],
    ) -> Option<HardSplit> {
        let n_outputs = search.outputs.len() / search.weights.len().max(1);
        let scale = search.weights.len() as f64 / order.len().max(1) as f64;
        let min_weight = search.min_weight / scale;
        let value = |row: u32| search.inputs[row as usize * self.width + input];
        let mut total = Sums::new(n_outputs);
        for &row in order {
            total.add(search, row as usize, f64::from(value(row)));
        }
        let whole = total.explained(search.is_linear);
        let mut best_gain = MIN_GAIN * total.squares.max(f64::MIN_POSITIVE);
        let mut best: Option<HardSplit> = None;
        let mut left = Sums::new(n_outputs);
        for pair in order.windows(2) {
            let below = value(pair[0]);
            left.add(search, pair[0] as usize, f64::from(below));
            let above = value(pair[1]);
            let right_weight = total.weight - left.weight;
            if below >= above || left.weight < min_weight || right_weight < min_weight {
                continue;
            }
            let explained =
                left.explained(search.is_linear) + left.explained_by_rest(&total, search.is_linear);
            let gain = (explained - whole) * scale;
            if gain > best_gain {
                let right = total.minus(&left);
                best_gain = gain;
                best = Some(HardSplit {
                    input,
                    threshold: 0.5 * (below + above),
                    gain,
                    sides: [left.fit(search.is_linear), right.fit(search.is_linear)],
                });
            }
        }
        best
    }
}

/// Weighted sums of some rows.
#[derive(Debug, Clone)]
struct Sums {
    weight: f64,
    x: f64,
    xx: f64,
    /// Sum of each output and of its product with the input.
    outputs: Vec<[f64; 2]>,
    /// Sum of squares of all outputs.
    squares: f64,
}

impl Sums {
    fn new(n_outputs: usize) -> Self {
        Self {
            weight: 0.0,
            x: 0.0,
            xx: 0.0,
            outputs: vec![[0.0; 2]; n_outputs],
            squares: 0.0,
        }
    }

    fn add(&mut self, search: &SplitSearch<'_>, row: usize, x: f64) {
        let weight = search.weights[row];
        let n_outputs = self.outputs.len();
        self.weight += weight;
        self.x += weight * x;
        self.xx += weight * x * x;
        let outputs = &search.outputs[row * n_outputs..(row + 1) * n_outputs];
        for (sums, &output) in self.outputs.iter_mut().zip(outputs) {
            sums[0] += weight * output;
            sums[1] += weight * x * output;
            self.squares += weight * output * output;
        }
    }

    fn minus(&self, other: &Self) -> Self {
        let pairs = self.outputs.iter().zip(&other.outputs);
        Self {
            weight: self.weight - other.weight,
            x: self.x - other.x,
            xx: self.xx - other.xx,
            outputs: pairs.map(|(a, b)| [a[0] - b[0], a[1] - b[1]]).collect(),
            squares: self.squares - other.squares,
        }
    }

    /// Sum of squares that the fit of the side explains.
    fn explained(&self, is_linear: bool) -> f64 {
        let outputs = self.outputs.iter().copied();
        explained([self.weight, self.x, self.xx], outputs, is_linear)
    }

    /// Sum of squares that the fit of the other rows of `total` explains.
    fn explained_by_rest(&self, total: &Self, is_linear: bool) -> f64 {
        let pairs = total.outputs.iter().zip(&self.outputs);
        let inputs = [
            total.weight - self.weight,
            total.x - self.x,
            total.xx - self.xx,
        ];
        let outputs = pairs.map(|(a, b)| [a[0] - b[0], a[1] - b[1]]);
        explained(inputs, outputs, is_linear)
    }

    fn fit(&self, is_linear: bool) -> SideFit {
        let weight = self.weight.max(f64::MIN_POSITIVE);
        let spread = spread([weight, self.x, self.xx]);
        let fits = self.outputs.iter().map(|&[sum, product]| {
            let slope = if is_linear {
                (product - self.x * sum / weight) / spread
            } else {
                0.0
            };
            [(sum - slope * self.x) / weight, slope]
        });
        fits.collect()
    }
}

/// Sum of squares of the input around its mean, with pseudo-rows.
fn spread([weight, x, xx]: [f64; 3]) -> f64 {
    (xx - x * x / weight).max(0.0) + SLOPE_SHRINKAGE
}

/// Sum of squares of the outputs that constants or lines explain, from the sums of the weights, of
/// the input and its square, and of each output and its product with the input.
fn explained(inputs: [f64; 3], outputs: impl Iterator<Item = [f64; 2]>, is_linear: bool) -> f64 {
    let [weight, x, _] = inputs;
    if weight <= 0.0 {
        return 0.0;
    }
    let spread = spread(inputs);
    let explained = outputs.map(|[sum, product]| {
        let level = sum * sum / weight;
        if is_linear {
            level + (product - x * sum / weight).powi(2) / spread
        } else {
            level
        }
    });
    explained.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn rows(inputs: Vec<f32>, width: usize) -> EncodedRows {
        let n_rows = inputs.len() / width;
        EncodedRows {
            inputs: Arc::new(inputs),
            target: vec![0.0; n_rows],
            weight: vec![1.0; n_rows],
            total_weight: n_rows as f64,
            offset: Vec::new(),
        }
    }

    fn search<'a>(
        rows: &'a EncodedRows,
        weights: &'a [f64],
        outputs: &'a [f64],
    ) -> SplitSearch<'a> {
        SplitSearch {
            inputs: &rows.inputs,
            weights,
            outputs,
            is_linear: false,
            min_weight: 1.0,
        }
    }

    #[test]
    fn constants_split_a_step_and_lines_split_a_kink() {
        let x = |row: usize| row as f32 / 20.0 - 1.0;
        let inputs: Vec<f32> = (0..41)
            .flat_map(|row| [((row * 17) % 41) as f32 / 20.0 - 1.0, x(row), 1.0])
            .collect();
        let rows = rows(inputs, 3);
        let weights = vec![1.0; 41];
        let sorted = SortedInputs::new(&rows, 3);
        let step: Vec<f64> = (0..41).map(|row| f64::from(u8::from(row >= 30))).collect();
        let found = sorted.best(&search(&rows, &weights, &step)).unwrap();
        assert_eq!(found.input, 1);
        assert!(x(29) < found.threshold && found.threshold < x(30));
        assert!((found.gain - 30.0 * 11.0 / 41.0).abs() < 1e-9);
        let kink: Vec<f64> = (0..41).map(|row| f64::from(x(row)).abs()).collect();
        let lines = SplitSearch {
            is_linear: true,
            min_weight: 3.0,
            ..search(&rows, &weights, &kink)
        };
        let found = sorted.best(&lines).unwrap();
        assert_eq!(found.input, 1);
        assert!(found.threshold.abs() < 0.06, "{found:?}");
        let [left, right] = &found.sides;
        assert!(left[0][1] < -0.7 && right[0][1] > 0.7, "{found:?}");
    }

    #[test]
    fn weights_act_as_repetitions() {
        let inputs = [0.0, 1.0, 2.0, 3.0].map(|x| [x, 1.0]).concat();
        let one = rows(inputs, 2);
        let repeated = rows([0.0, 1.0, 1.0, 2.0, 3.0, 3.0].map(|x| [x, 1.0]).concat(), 2);
        let a = SortedInputs::new(&one, 2)
            .best(&search(&one, &[1.0, 2.0, 1.0, 2.0], &[0.0, 0.5, 2.0, 1.0]))
            .unwrap();
        let outputs = [0.0, 0.5, 0.5, 2.0, 1.0, 1.0];
        let b = SortedInputs::new(&repeated, 2)
            .best(&search(&repeated, &[1.0; 6], &outputs))
            .unwrap();
        assert!((a.threshold - b.threshold).abs() < 1e-9 && (a.gain - b.gain).abs() < 1e-9);
    }
}
