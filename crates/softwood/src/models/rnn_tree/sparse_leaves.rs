//! Leaf values with few interactions: the values of the leaves as a sparse sum of Walsh functions.
//!
//! The decisions on the route to a leaf are signs. A Walsh function is the product of the signs of
//! some levels; together they are a basis of all leaf values. In leaves with few or noisy rows,
//! values that few Walsh functions explain are estimated far better from all rows at once than leaf
//! by leaf. The features of a row are the expectations of the Walsh functions over its soft route:
//! the Walsh-Hadamard transform of its leaf probabilities.

use crate::models::rnn_tree::rows::{FitRow, RouteRows};
use crate::numerics::cholesky;
use crate::recurrent::bin_inputs::BinInputs;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::soft_gates::SoftGates;
use crate::recurrent::unroll::Sharpness;
use crate::stop::until_cancelled;
use crate::trees::cart::CartTarget;

/// Sharpness of the thresholds that are compared.
const THRESHOLDS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 20.0];
/// Sharpness of the shares: a node has the input of the hard tree alone.
const SHARE: f64 = 1e6;
/// Largest number of functions that are selected in one pass.
const MAX_SELECTED: usize = 24;
/// Passes of the selection: functions that explain what is left join the earlier ones.
const N_PASSES: usize = 2;
/// How much the squared standardised coefficient of a function must exceed `2 ln n`, what noise reaches
/// among `n` functions: several networks, sharpnesses and passes are compared.
const SIGNIFICANCE: f64 = 12.0;
/// The same for a tree that has not seen the targets.
const BLIND_SIGNIFICANCE: f64 = 6.0;
/// Largest number of rows times leaves: the features of more rows are not computed.
const MAX_FEATURES: usize = 1 << 22;
/// Ridge penalty, in rows.
const PENALTY: f64 = 1.0;
/// Smallest probability of a class.
const MIN_PROBABILITY: f64 = 1e-3;

/// Values of the leaves of the complete tree.
#[derive(Debug, Clone)]
pub(super) struct SparseLeaves {
    kind: CartTarget,
    /// Leaves x outputs: means, or class probabilities.
    values: Vec<f64>,
    n_outputs: usize,
}

impl SparseLeaves {
    /// Selects and fits the functions on some rows; of several ways to route them, the one that explains
    /// most is used. A tree that has not seen their targets (`is_blind`) needs less significance.
    /// `hard` returns the leaf of a row. `None` if no function is significant.
    pub(super) fn fit(
        rows: &RouteRows<'_>,
        n_leaves: usize,
        routes: &[LeafRoutes<'_>],
        hard: impl Fn(usize) -> usize,
        (mut fit_rows, is_blind): (Vec<FitRow>, bool),
    ) -> Option<Self> {
        // rows are in random order, so that the first ones are a sample
        fit_rows.truncate((MAX_FEATURES / n_leaves).max(1));
        let responses = Responses::new(rows.kind(), &fit_rows);
        let significance = if is_blind {
            BLIND_SIGNIFICANCE
        } else {
            SIGNIFICANCE
        };
        let limit = 2.0 * (n_leaves as f64).ln() + significance;
        let mut best: Option<WalshFit> = None;
        for routes in until_cancelled(routes) {
            let features = routes.features(rows, &fit_rows, n_leaves);
            let fit = WalshFit::new(&features, &responses, n_leaves, limit);
            if best
                .as_ref()
                .is_none_or(|best| fit.explained > best.explained)
            {
                best = Some(fit);
            }
        }
        let fit = best.filter(|fit| !fit.selected.is_empty())?;
        let deviations = fit.leaf_values(n_leaves);
        // a row in a hard leaf is less certain of its route than the leaf itself
        let n = responses.n_outputs;
        let (mut cross, mut square) = (0.0, f64::MIN_POSITIVE);
        for (at, &(row, weight, _)) in fit_rows.iter().enumerate() {
            let leaf = hard(row);
            for output in 0..n {
                let value = deviations[leaf * n + output];
                cross += weight * value * responses.values[at * n + output];
                square += weight * value * value;
            }
        }
        let shrinkage = (cross / square).clamp(0.0, 1.0);
        let value =
            |(at, deviation): (usize, &f64)| responses.means[at % n] + shrinkage * deviation;
        let mut values: Vec<f64> = deviations.iter().enumerate().map(value).collect();
        if matches!(rows.kind(), CartTarget::Classes(_)) {
            for leaf in values.chunks_exact_mut(n) {
                for p in &mut *leaf {
                    *p = p.clamp(MIN_PROBABILITY, 1.0);
                }
                let total: f64 = leaf.iter().sum();
                for p in leaf {
                    *p /= total;
                }
            }
        }
        Some(Self {
            kind: rows.kind(),
            values,
            n_outputs: n,
        })
    }

    fn values(&self, leaf: usize) -> &[f64] {
        &self.values[leaf * self.n_outputs..(leaf + 1) * self.n_outputs]
    }

    /// Replaces the values of the statistics of a leaf of the complete tree.
    pub(super) fn replace(&self, leaf: usize, stats: &mut [f64]) {
        let values = self.values(leaf);
        match self.kind {
            CartTarget::Number => {
                // deviations are taken from the new value
                stats[2] += stats[0] * (stats[1] - values[0]).powi(2);
                stats[1] = values[0];
            }
            CartTarget::Classes(_) => {
                let total: f64 = stats.iter().sum();
                for (weight, p) in stats.iter_mut().zip(values) {
                    *weight = total * p;
                }
            }
        }
    }
}

/// Centred targets: one output for a number, one per class for classes.
struct Responses {
    n_outputs: usize,
    /// Rows x outputs.
    values: Vec<f64>,
    means: Vec<f64>,
    weights: Vec<f64>,
}

impl Responses {
    fn new(kind: CartTarget, rows: &[FitRow]) -> Self {
        let n_outputs = match kind {
            CartTarget::Number => 1,
            CartTarget::Classes(n) => n,
        };
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        let mut means = vec![0.0; n_outputs];
        for &(_, weight, target) in rows {
            for (output, mean) in means.iter_mut().enumerate() {
                let value = match kind {
                    CartTarget::Number => f64::from(target),
                    CartTarget::Classes(_) => f64::from(u8::from(target as usize == output)),
                };
                values.push(value);
                *mean += weight * value;
            }
            weights.push(weight);
        }
        let total: f64 = weights.iter().sum();
        for mean in &mut means {
            *mean /= total;
        }
        for row in values.chunks_exact_mut(n_outputs) {
            for (value, mean) in row.iter_mut().zip(&means) {
                *value -= mean;
            }
        }
        Self {
            n_outputs,
            values,
            means,
            weights,
        }
    }
}

/// Routes of rows to the leaves of the complete tree.
pub(super) enum LeafRoutes<'a> {
    Soft(SoftGates),
    /// The leaf of a row.
    Hard(&'a dyn Fn(usize) -> usize),
}

impl LeafRoutes<'_> {
    /// The routes of a network, for each of [`THRESHOLDS`].
    pub(super) fn of_network(
        shape: &NetworkShape,
        weights: &[f32],
        inputs: &BinInputs,
    ) -> Vec<Self> {
        let sharpness = |threshold: f64| Sharpness {
            share: SHARE,
            threshold,
            decision: 0.0,
        };
        let gates = |threshold| SoftGates::new(shape, weights, inputs, sharpness(threshold));
        let routes = THRESHOLDS.into_iter();
        routes
            .map(|threshold| Self::Soft(gates(threshold)))
            .collect()
    }

    /// Expected Walsh functions of rows, rows x leaves.
    fn features(&self, rows: &RouteRows<'_>, fit_rows: &[FitRow], n_leaves: usize) -> Vec<f32> {
        let mut nodes = vec![0.0; 2 * n_leaves - 1];
        let mut features = vec![0.0; fit_rows.len() * n_leaves];
        let chunks = features.chunks_exact_mut(n_leaves).zip(fit_rows);
        for (out, &(row, ..)) in until_cancelled(chunks) {
            match self {
                Self::Soft(gates) => {
                    gates.fill(|column| rows.train.binned.bin(row, column), &mut nodes);
                    for (out, &p) in out.iter_mut().zip(&nodes[n_leaves - 1..]) {
                        *out = p as f32;
                    }
                }
                Self::Hard(leaf) => out[leaf(row)] = 1.0,
            }
            walsh_hadamard(out);
        }
        features
    }
}

/// The Walsh-Hadamard transform in place: entry `S` becomes `sum_l (-1)^(bits of S and l) x_l`.
fn walsh_hadamard(values: &mut [f32]) {
    let mut width = 1;
    while width < values.len() {
        for pair in values.chunks_exact_mut(2 * width) {
            let (low, high) = pair.split_at_mut(width);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        width *= 2;
    }
}

/// A sparse regression on Walsh functions.
struct WalshFit {
    selected: Vec<usize>,
    /// Selected functions x outputs.
    coefficients: Vec<f64>,
    n_outputs: usize,
    /// Sum of squares that the functions explain.
    explained: f64,
}

impl WalshFit {
    fn new(features: &[f32], responses: &Responses, n_leaves: usize, limit: f64) -> Self {
        let n = responses.n_outputs;
        let mut fit = Self {
            selected: Vec::new(),
            coefficients: Vec::new(),
            n_outputs: n,
            explained: 0.0,
        };
        let mut residuals = responses.values.clone();
        for _ in 0..N_PASSES {
            let found = significant(features, &residuals, responses, n_leaves, limit);
            let found: Vec<usize> = (found.into_iter())
                .filter(|function| !fit.selected.contains(function))
                .collect();
            if found.is_empty() {
                break;
            }
            fit.selected.extend(found);
            let Some(solved) = least_squares(features, responses, n_leaves, &fit.selected) else {
                break;
            };
            fit.coefficients = solved;
            residuals.copy_from_slice(&responses.values);
            for (row, out) in residuals.chunks_exact_mut(n).enumerate() {
                for (at, &function) in fit.selected.iter().enumerate() {
                    let x = f64::from(features[row * n_leaves + function]);
                    for (output, out) in out.iter_mut().enumerate() {
                        *out -= x * fit.coefficients[at * n + output];
                    }
                }
            }
        }
        fit.selected.truncate(fit.coefficients.len() / n);
        fit.explained =
            sum_of_squares(&responses.values, responses) - sum_of_squares(&residuals, responses);
        fit
    }

    /// Deviation of each leaf from the mean, leaves x outputs.
    fn leaf_values(&self, n_leaves: usize) -> Vec<f64> {
        let n = self.n_outputs;
        let mut values = vec![0.0; n_leaves * n];
        for leaf in 0..n_leaves {
            for (at, &function) in self.selected.iter().enumerate() {
                let sign = if (function & leaf).count_ones().is_multiple_of(2) {
                    1.0
                } else {
                    -1.0
                };
                for output in 0..n {
                    values[leaf * n + output] += sign * self.coefficients[at * n + output];
                }
            }
        }
        values
    }
}

fn sum_of_squares(values: &[f64], responses: &Responses) -> f64 {
    let rows = values
        .chunks_exact(responses.n_outputs)
        .zip(&responses.weights);
    rows.map(|(row, weight)| weight * row.iter().map(|x| x * x).sum::<f64>())
        .sum()
}

/// Functions whose squared standardised coefficient on the residuals exceeds what noise reaches among
/// all functions; the strongest first.
fn significant(
    features: &[f32],
    residuals: &[f64],
    responses: &Responses,
    n_leaves: usize,
    limit: f64,
) -> Vec<usize> {
    let n = responses.n_outputs;
    let mut cross = vec![0.0; n_leaves * n];
    let mut square = vec![f64::MIN_POSITIVE; n_leaves];
    for (row, x) in features.chunks_exact(n_leaves).enumerate() {
        let weight = responses.weights[row];
        for (function, &x) in x.iter().enumerate() {
            let x = f64::from(x);
            square[function] += weight * x * x;
            for output in 0..n {
                cross[function * n + output] += weight * x * residuals[row * n + output];
            }
        }
    }
    let total: f64 = responses.weights.iter().sum();
    let variance = (sum_of_squares(residuals, responses) / total).max(f64::MIN_POSITIVE);
    let strength = |function: usize| {
        let cross = &cross[function * n..(function + 1) * n];
        cross.iter().map(|x| x * x).sum::<f64>() / (square[function] * variance)
    };
    let mut found: Vec<(f64, usize)> = (1..n_leaves)
        .map(|function| (strength(function), function))
        .filter(|(strength, _)| *strength > limit)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(MAX_SELECTED);
    found.into_iter().map(|(_, function)| function).collect()
}

/// Ridge regression of the responses on the selected functions, functions x outputs.
fn least_squares(
    features: &[f32],
    responses: &Responses,
    n_leaves: usize,
    selected: &[usize],
) -> Option<Vec<f64>> {
    let (n, m) = (responses.n_outputs, selected.len());
    let mut matrix = vec![0.0; m * m];
    let mut right = vec![0.0; m * n];
    let mut x = vec![0.0; m];
    for (row, features) in features.chunks_exact(n_leaves).enumerate() {
        let weight = responses.weights[row];
        for (x, &function) in x.iter_mut().zip(selected) {
            *x = f64::from(features[function]);
        }
        for i in 0..m {
            for j in 0..=i {
                matrix[i * m + j] += weight * x[i] * x[j];
            }
            for output in 0..n {
                right[i * n + output] += weight * x[i] * responses.values[row * n + output];
            }
        }
    }
    for i in 0..m {
        matrix[i * m + i] += PENALTY;
        for j in 0..i {
            matrix[j * m + i] = matrix[i * m + j];
        }
    }
    if !cholesky::factor(&mut matrix, m) {
        return None;
    }
    let mut solution = vec![0.0; m * n];
    for output in 0..n {
        let mut column: Vec<f64> = (0..m).map(|i| right[i * n + output]).collect();
        cholesky::solve(&matrix, m, &mut column);
        for (i, value) in column.into_iter().enumerate() {
            solution[i * n + output] = value;
        }
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_that_of_its_definition() {
        let mut values: Vec<f32> = (0..8).map(|x| (x * x) as f32).collect();
        let given = values.clone();
        walsh_hadamard(&mut values);
        for (function, value) in values.iter().enumerate() {
            let term = |leaf: usize| {
                let sign = if (function & leaf).count_ones().is_multiple_of(2) {
                    1.0
                } else {
                    -1.0
                };
                sign * given[leaf]
            };
            assert!((value - (0..8).map(term).sum::<f32>()).abs() < 1e-4);
        }
    }
}
