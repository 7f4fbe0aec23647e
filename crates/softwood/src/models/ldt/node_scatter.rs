//! Fisher's discriminant at a node. With the within-group scatter `S_W`, the group means `m_L` and
//! `m_R` and a ridge `λ`, the direction is
//!
//! `w = (S_W + λ I)^-1 (m_R - m_L)`.
//!
//! The total scatter `S_T` differs from `S_W` by a multiple of `(m_R - m_L)(m_R - m_L)'`, so that
//! `(S_T + λ I)^-1 (m_R - m_L)` has the same direction. It is that of the ridge regression of the
//! group indicator on the inputs, whose matrix is the same for every choice of groups. The direction
//! of a number is that of the ridge regression of the number itself.

use crate::models::ldt::rows::InputRows;
use crate::numerics::ridge::RidgeSystem;

/// Largest size of the linear system: of more inputs and rows, the inputs that separate the classes
/// best are used.
const MAX_SYSTEM: usize = 512;

/// The scatter of the rows of a node.
#[derive(Debug)]
pub(super) struct NodeScatter {
    system: RidgeSystem,
    /// Indices of the inputs of the system.
    inputs: Vec<usize>,
    n_inputs: usize,
    /// Weight of each row and its square root.
    weights: Vec<[f64; 2]>,
}

impl NodeScatter {
    /// `labels` are the classes or groups of the rows; of many inputs, those that separate the
    /// labels best are used.
    pub(super) fn new(data: &InputRows, rows: &[u32], labels: &[u32], shrinkage: f64) -> Self {
        let n_inputs = data.n_inputs;
        let mut inputs: Vec<usize> = (0..n_inputs).collect();
        if n_inputs.min(rows.len()) > MAX_SYSTEM {
            inputs = separating_inputs(data, rows, labels);
        }
        let weights: Vec<[f64; 2]> = rows
            .iter()
            .map(|&row| data.weight[row as usize])
            .map(|weight| [weight, weight.sqrt()])
            .collect();
        let total: f64 = weights.iter().map(|[weight, _]| weight).sum();
        let mut means = vec![0.0; inputs.len()];
        for (&row, [weight, _]) in rows.iter().zip(&weights) {
            let row = data.row(row as usize);
            for (mean, &input) in means.iter_mut().zip(&inputs) {
                *mean += weight * f64::from(row[input]) / total;
            }
        }
        let mut centred = Vec::with_capacity(rows.len() * inputs.len());
        let mut trace = 0.0;
        for (&row, [_, root]) in rows.iter().zip(&weights) {
            let row = data.row(row as usize);
            for (mean, &input) in means.iter().zip(&inputs) {
                let value = root * (f64::from(row[input]) - mean);
                trace += value * value;
                centred.push(value as f32);
            }
        }
        // a multiple of the shrunk matrix (1 - s) S + s trace(S) / d I
        let penalty = shrinkage / (1.0 - shrinkage) * trace / inputs.len().max(1) as f64;
        Self {
            system: RidgeSystem::new(centred, inputs.len(), penalty.max(f64::MIN_POSITIVE)),
            inputs,
            n_inputs,
            weights,
        }
    }

    /// The direction of length one that predicts the response of the rows: a group indicator or a
    /// number. `None` if the response does not depend on the inputs.
    pub(super) fn direction(&self, response: &[f64]) -> Option<Vec<f32>> {
        let weighted = self.weights.iter().zip(response);
        let sum: f64 = weighted.clone().map(|([weight, _], y)| weight * y).sum();
        let total: f64 = self.weights.iter().map(|[weight, _]| weight).sum();
        let mean = sum / total;
        let residuals: Vec<f64> = weighted.map(|([_, root], y)| root * (y - mean)).collect();
        let coefficients = self.system.coefficients(&residuals);
        let length = coefficients.iter().map(|w| w * w).sum::<f64>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        let mut direction = vec![0.0; self.n_inputs];
        for (&input, coefficient) in self.inputs.iter().zip(coefficients) {
            direction[input] = (coefficient / length) as f32;
        }
        Some(direction)
    }
}

/// The inputs with the largest ratio of the variance between the labels to the total variance, in
/// order.
fn separating_inputs(data: &InputRows, rows: &[u32], labels: &[u32]) -> Vec<usize> {
    let n_inputs = data.n_inputs;
    let n_labels = labels.iter().max().map_or(0, |&label| label as usize + 1);
    let mut sums = vec![0.0; n_labels * n_inputs];
    let mut squares = vec![0.0; n_inputs];
    let mut totals = vec![0.0; n_labels];
    for (&row, &label) in rows.iter().zip(labels) {
        let (weight, start) = (data.weight[row as usize], label as usize * n_inputs);
        totals[label as usize] += weight;
        let sums = &mut sums[start..start + n_inputs];
        for ((sum, square), &x) in sums
            .iter_mut()
            .zip(&mut squares)
            .zip(data.row(row as usize))
        {
            let x = f64::from(x);
            *sum += weight * x;
            *square += weight * x * x;
        }
    }
    let total: f64 = totals.iter().sum();
    let ratio = |input: usize| {
        let of_label = |label: usize| sums[label * n_inputs + input];
        let sum: f64 = (0..n_labels).map(of_label).sum();
        let correction = sum * sum / total;
        let between: f64 = (0..n_labels)
            .filter(|&label| totals[label] > 0.0)
            .map(|label| of_label(label).powi(2) / totals[label])
            .sum();
        let spread = squares[input] - correction;
        if spread > 0.0 {
            (between - correction) / spread
        } else {
            0.0
        }
    };
    let mut order: Vec<(f64, usize)> = (0..n_inputs).map(|input| (ratio(input), input)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<usize> = order.iter().take(MAX_SYSTEM).map(|pair| pair.1).collect();
    chosen.sort_unstable();
    chosen
}
