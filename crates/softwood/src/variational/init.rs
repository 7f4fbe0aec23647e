//! Where training starts: gates from a greedy hard tree, leaves from ridge fits shrunk to the global one.

use crate::numerics::cholesky;
use crate::numerics::real::inverse_softplus;
use crate::rng::{Key, shuffle, uniform};
use crate::soft::layout::Layout;
use crate::soft::likelihood::SoftLikelihood;
use crate::trees::dense::best_split::DenseSample;
use crate::trees::dense::complete_tree::{CompleteTree, complete};
use crate::variational::encoded_rows::EncodedRows;

/// Rows the hard tree and the ridge fits look at.
const MAX_ROWS: usize = 8192;
/// Sharpness of a gate at the start: t = SHARPNESS (x - threshold).
const SHARPNESS: f32 = 3.0;
/// Spread of the gate weights that the hard tree leaves at zero.
const GATE_NOISE: f32 = 0.05;
/// Rows' worth of pull of a leaf towards the global fit.
const LEAF_PULL: f64 = 5.0;

/// Weights of a tree at the start: the means of its posterior. `rest` is what the tree is to add to earlier ones, rows x outputs (the
/// target's mean, or the logits of classes); none where it is the first.
pub(crate) fn weights(
    train: &EncodedRows,
    likelihood: SoftLikelihood,
    rest: Option<&[f64]>,
    layout: &Layout,
    beta: f64,
    key: Key,
) -> Vec<f32> {
    let mut part = InitRows::draw(train, layout, key.child(1));
    let outputs = match rest {
        Some(rest) => part.rest(rest, train.n_rows()),
        None => part.outputs(likelihood, layout),
    };
    let sample = DenseSample {
        inputs: &part.inputs,
        width: layout.width(),
        n_inputs: layout.n_inputs,
        outputs: &outputs,
        n_outputs: outputs.len() / part.n_rows().max(1),
        weights: &part.weights,
    };
    let min_rows = (layout.width() / 2).max(5);
    let grown = complete(&sample, layout.depth, min_rows);
    let mut out = vec![0.0; layout.n_weights()];
    gates(&grown, layout, beta as f32, key.child(2), &mut out);
    match (likelihood, rest) {
        (SoftLikelihood::Categorical, Some(_)) => {
            added_classes(&part, &outputs, &grown, layout, &mut out)
        }
        (SoftLikelihood::Categorical, None) => class_leaves(&part, &grown, layout, &mut out),
        (likelihood, rest) => {
            if rest.is_some() {
                part.target.clone_from(&outputs);
            }
            normal_leaves(
                &part,
                &grown,
                layout,
                (likelihood, rest.is_none()),
                &mut out,
            );
        }
    }
    out
}

/// A part of the training rows, small enough for exact searches.
struct InitRows {
    rows: Vec<usize>,
    inputs: Vec<f32>,
    target: Vec<f64>,
    weights: Vec<f64>,
}

impl InitRows {
    fn draw(train: &EncodedRows, layout: &Layout, key: Key) -> Self {
        let EncodedRows {
            inputs,
            target,
            weight,
            ..
        } = train;
        let mut rows: Vec<usize> = (0..target.len()).collect();
        if rows.len() > MAX_ROWS {
            shuffle(&mut key.rng(), &mut rows);
            rows.truncate(MAX_ROWS);
        }
        let width = layout.width();
        Self {
            inputs: rows
                .iter()
                .flat_map(|&row| &inputs[row * width..(row + 1) * width])
                .copied()
                .collect(),
            target: rows.iter().map(|&row| f64::from(target[row])).collect(),
            weights: rows.iter().map(|&row| f64::from(weight[row])).collect(),
            rows,
        }
    }

    fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// Its rows of what earlier trees left of all rows.
    fn rest(&self, rest: &[f64], n_rows: usize) -> Vec<f64> {
        let n_outputs = rest.len() / n_rows.max(1);
        let rows = self.rows.iter();
        rows.flat_map(|&row| &rest[row * n_outputs..(row + 1) * n_outputs])
            .copied()
            .collect()
    }

    /// What the hard tree fits: the target, or class indicators.
    fn outputs(&self, likelihood: SoftLikelihood, layout: &Layout) -> Vec<f64> {
        if likelihood != SoftLikelihood::Categorical {
            return self.target.clone();
        }
        let mut out = vec![0.0; self.n_rows() * layout.n_channels];
        for (row, &class) in self.target.iter().enumerate() {
            out[row * layout.n_channels + class as usize] = 1.0;
        }
        out
    }
}

fn gates(grown: &CompleteTree, layout: &Layout, beta: f32, key: Key, out: &mut [f32]) {
    let mut rng = key.rng();
    for (gate, split) in grown.splits.iter().enumerate() {
        let weights = &mut out[layout.gate(gate)];
        for weight in weights.iter_mut() {
            *weight = GATE_NOISE / beta * (2.0 * uniform(&mut rng) as f32 - 1.0);
        }
        if let Some(split) = split {
            weights[split.input] += SHARPNESS / beta;
            weights[layout.n_inputs] -= SHARPNESS / beta * split.threshold;
        }
    }
}

fn class_leaves(part: &InitRows, grown: &CompleteTree, layout: &Layout, out: &mut [f32]) {
    let (n_leaves, n_classes) = (layout.n_leaves(), layout.n_channels);
    let mut overall = vec![1.0; n_classes];
    let mut counts = vec![0.0; n_leaves * n_classes];
    for (row, &class) in part.target.iter().enumerate() {
        overall[class as usize] += part.weights[row];
        counts[grown.leaf_of_row[row] * n_classes + class as usize] += part.weights[row];
    }
    let total: f64 = overall.iter().sum();
    for leaf in 0..n_leaves {
        let logs: Vec<f64> = (0..n_classes)
            .map(|class| {
                (counts[leaf * n_classes + class] + LEAF_PULL * overall[class] / total).ln()
            })
            .collect();
        let mean = logs.iter().sum::<f64>() / n_classes as f64;
        for class in 0..n_classes {
            let bias = layout.leaf(class, leaf).end - 1;
            out[bias] = (logs[class] - mean) as f32;
        }
    }
}

/// Logits that a tree adds: the mean of what is left, in units of the steepest slope of a probability.
fn added_classes(
    part: &InitRows,
    rest: &[f64],
    grown: &CompleteTree,
    layout: &Layout,
    out: &mut [f32],
) {
    const STEEPEST: f64 = 0.25;
    let n_classes = layout.n_channels;
    let mut sums = vec![0.0; layout.n_leaves() * n_classes];
    let mut totals = vec![LEAF_PULL; layout.n_leaves()];
    for (row, rest) in rest.chunks_exact(n_classes).enumerate() {
        let leaf = grown.leaf_of_row[row];
        totals[leaf] += part.weights[row];
        for (sum, rest) in sums[leaf * n_classes..].iter_mut().zip(rest) {
            *sum += part.weights[row] * rest;
        }
    }
    for leaf in 0..layout.n_leaves() {
        for class in 0..n_classes {
            let bias = layout.leaf(class, leaf).end - 1;
            let step = sums[leaf * n_classes + class] / (STEEPEST * totals[leaf]);
            out[bias] = step as f32;
        }
    }
}

/// Leaves from ridge fits; the scale of what a tree adds starts at zero, that of the first at the spread of its residuals.
fn normal_leaves(
    part: &InitRows,
    grown: &CompleteTree,
    layout: &Layout,
    (likelihood, is_first): (SoftLikelihood, bool),
    out: &mut [f32],
) {
    let floor = if let SoftLikelihood::Normal { floor } = likelihood {
        floor
    } else {
        0.0
    };
    let all: Vec<usize> = (0..part.n_rows()).collect();
    let width = layout.width();
    let n_used = layout.leaf_width();
    let nothing = vec![0.0; n_used];
    let global = ridge(part, &all, (width, n_used), &nothing);
    let global_variance = variance(part, &all, width, &global, (0.0, 0.0));
    let mut rows_of_leaf = vec![Vec::new(); layout.n_leaves()];
    for (row, &leaf) in grown.leaf_of_row.iter().enumerate() {
        rows_of_leaf[leaf].push(row);
    }
    for (leaf, rows) in rows_of_leaf.iter().enumerate() {
        let fit = ridge(part, rows, (width, n_used), &global);
        for (out, &value) in out[layout.leaf(0, leaf)].iter_mut().zip(&fit) {
            *out = value as f32;
        }
        if !is_first || layout.n_channels == 1 {
            continue;
        }
        let sd = variance(part, rows, width, &fit, (LEAF_PULL, global_variance)).sqrt();
        let bias = layout.leaf(1, leaf).end - 1;
        out[bias] = inverse_softplus((sd - floor).max(0.02)) as f32;
    }
}

/// Weighted ridge fit of the last `n_used` inputs of each row (all of them, or the bias alone), shrunk towards `start`.
fn ridge(
    part: &InitRows,
    rows: &[usize],
    (width, n_used): (usize, usize),
    start: &[f64],
) -> Vec<f64> {
    let mut gram = vec![0.0; n_used * n_used];
    let mut moment = vec![0.0; n_used];
    for i in 0..n_used {
        gram[i * n_used + i] = LEAF_PULL;
    }
    for &row in rows {
        let x = &part.inputs[(row + 1) * width - n_used..(row + 1) * width];
        let rest = part.weights[row] * (part.target[row] - dot(x, start));
        for i in 0..n_used {
            let scaled = part.weights[row] * f64::from(x[i]);
            for j in 0..=i {
                gram[i * n_used + j] += scaled * f64::from(x[j]);
            }
            moment[i] += rest * f64::from(x[i]);
        }
    }
    for i in 0..n_used {
        for j in 0..i {
            gram[j * n_used + i] = gram[i * n_used + j];
        }
    }
    if cholesky::factor(&mut gram, n_used) {
        cholesky::solve(&gram, n_used, &mut moment);
    } else {
        moment.fill(0.0);
    }
    moment
        .iter()
        .zip(start)
        .map(|(change, start)| start + change)
        .collect()
}

fn dot(x: &[f32], weights: &[f64]) -> f64 {
    x.iter().zip(weights).map(|(&x, w)| f64::from(x) * w).sum()
}

/// Mean squared residual, leaning to `prior` by as many rows as `pull`.
fn variance(
    part: &InitRows,
    rows: &[usize],
    width: usize,
    fit: &[f64],
    (pull, prior): (f64, f64),
) -> f64 {
    let mut sum = pull * prior;
    let mut total = pull;
    for &row in rows {
        let x = &part.inputs[(row + 1) * width - fit.len()..(row + 1) * width];
        sum += part.weights[row] * (part.target[row] - dot(x, fit)).powi(2);
        total += part.weights[row];
    }
    if total > 0.0 { sum / total } else { 1.0 }
}
