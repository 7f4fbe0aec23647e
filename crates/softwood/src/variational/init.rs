//! Initial weights of a soft tree: gates from a greedy hard tree, leaves from ridge regressions
//! that are shrunk towards the regression on all rows.

use crate::likelihood::soft::SoftLikelihood;
use crate::numerics::cholesky;
use crate::numerics::real::inverse_softplus;
use crate::numerics::ridge::RidgeSystem;
use crate::rng::{Key, shuffle, uniform};
use crate::soft::layout::{Layout, TreeLayout};
use crate::stop::until_cancelled;
use crate::trees::dense::best_split::DenseSample;
use crate::trees::dense::complete_tree::{CompleteTree, complete};
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::streams::initial_weights as streams;

/// Maximum number of rows of the hard tree and the ridge regressions.
const MAX_ROWS: usize = 8192;
/// Initial sharpness of a gate: `t = SHARPNESS (x - threshold)`.
const SHARPNESS: f32 = 3.0;
/// Scale of the random gate weights of inputs that the hard tree does not split on.
const GATE_NOISE: f32 = 0.05;
/// Number of pseudo-rows by which a leaf is shrunk towards the fit on all rows.
const LEAF_SHRINKAGE: f64 = 5.0;
/// Largest number of inputs of a ridge regression in f64, row by row.
const MAX_NARROW: usize = 64;
/// Largest size of the linear system of a ridge regression: with more inputs, the regression uses at
/// most that many rows.
const MAX_SYSTEM: usize = 1024;
/// Floor of the initial scale above its lower bound.
const MIN_INITIAL_SCALE: f64 = 0.02;

/// Training rows, likelihood and gate temperature that the initial weights of a tree depend on.
pub(crate) struct WeightInitializer<'a> {
    pub(crate) train: &'a EncodedRows,
    pub(crate) likelihood: SoftLikelihood,
    /// Residuals of the earlier trees, rows x outputs (of the mean, or of class probabilities);
    /// `None` for the first tree.
    pub(crate) residuals: Option<&'a [f64]>,
    /// Inverse temperature of the gates.
    pub(crate) beta: f64,
}

impl WeightInitializer<'_> {
    /// Weights of a tree with this layout, the means of its initial posterior.
    pub(crate) fn weights(&self, layout: &Layout, key: Key) -> Vec<f32> {
        self.weights_and_splits(layout, key).0
    }

    /// Weights of a tree with this layout, and whether the hard tree splits at each gate.
    pub(crate) fn weights_and_splits(&self, layout: &Layout, key: Key) -> (Vec<f32>, Vec<bool>) {
        let mut subset = InitRows::draw(self.train, layout, key.child(streams::ROWS));
        let outputs = match self.residuals {
            Some(residuals) => subset.take(residuals, self.train.n_rows()),
            None => subset.outputs(self.likelihood, layout),
        };
        let sample = DenseSample {
            inputs: &subset.inputs,
            width: layout.width(),
            n_inputs: layout.n_inputs,
            outputs: &outputs,
            n_outputs: outputs.len() / subset.n_rows().max(1),
            weights: &subset.weights,
        };
        let min_rows = (layout.width() / 2).max(5);
        let hard_tree = complete(&sample, layout.depth, min_rows);
        let mut out = vec![0.0; layout.n_weights()];
        let gates_key = key.child(streams::GATES);
        gates(&hard_tree, layout, self.beta as f32, gates_key, &mut out);
        let is_first = self.residuals.is_none();
        match self.likelihood {
            SoftLikelihood::Categorical if is_first => {
                class_leaves(&subset, &hard_tree, layout, &mut out);
            }
            SoftLikelihood::Categorical => {
                added_class_leaves(&subset, &outputs, &hard_tree, layout, &mut out);
            }
            SoftLikelihood::Normal { .. } | SoftLikelihood::KnownNoise { .. } => {
                let floor = match self.likelihood {
                    SoftLikelihood::Normal { floor } => floor,
                    _ => 0.0,
                };
                let scale_floor = (is_first && layout.n_channels > 1).then_some(floor);
                subset.target = outputs;
                normal_leaves(&subset, &hard_tree, layout, scale_floor, &mut out);
            }
        }
        (out, hard_tree.splits.iter().map(Option::is_some).collect())
    }
}

/// A random subset of the training rows, small enough for an exact split search.
struct InitRows {
    /// Indices of the rows in the training set.
    rows: Vec<usize>,
    /// Number of inputs, with the bias.
    width: usize,
    inputs: Vec<f32>,
    /// Target in standard units, or class; replaced by the residuals for an added tree.
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
            width,
        }
    }

    fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// The values of these rows out of those of all `n_rows` training rows.
    fn take(&self, values: &[f64], n_rows: usize) -> Vec<f64> {
        let n_outputs = values.len() / n_rows.max(1);
        let rows = self.rows.iter();
        rows.flat_map(|&row| &values[row * n_outputs..(row + 1) * n_outputs])
            .copied()
            .collect()
    }

    /// Outputs that the hard tree fits: the target, or class indicators.
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

/// Gates that split where the hard tree splits.
fn gates(hard_tree: &CompleteTree, layout: &Layout, beta: f32, key: Key, out: &mut [f32]) {
    let mut rng = key.rng();
    for (gate, split) in hard_tree.splits.iter().enumerate() {
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

/// Centred log probabilities of the classes in each leaf.
fn class_leaves(subset: &InitRows, hard_tree: &CompleteTree, layout: &Layout, out: &mut [f32]) {
    let (n_leaves, n_classes) = (layout.n_leaves(), layout.n_channels);
    let mut overall = vec![1.0; n_classes];
    let mut counts = vec![0.0; n_leaves * n_classes];
    for (row, &class) in subset.target.iter().enumerate() {
        overall[class as usize] += subset.weights[row];
        counts[hard_tree.leaf_of_row[row] * n_classes + class as usize] += subset.weights[row];
    }
    let total: f64 = overall.iter().sum();
    for leaf in 0..n_leaves {
        let logs: Vec<f64> = (0..n_classes)
            .map(|class| {
                (counts[leaf * n_classes + class] + LEAF_SHRINKAGE * overall[class] / total).ln()
            })
            .collect();
        let mean = logs.iter().sum::<f64>() / n_classes as f64;
        for class in 0..n_classes {
            let bias = layout.leaf(class, leaf).end - 1;
            out[bias] = (logs[class] - mean) as f32;
        }
    }
}

/// Logits of an added tree: the mean residual of each leaf, divided by the largest derivative of a
/// probability with respect to its logit.
fn added_class_leaves(
    subset: &InitRows,
    residuals: &[f64],
    hard_tree: &CompleteTree,
    layout: &Layout,
    out: &mut [f32],
) {
    const MAX_DERIVATIVE: f64 = 0.25;
    let n_classes = layout.n_channels;
    let mut sums = vec![0.0; layout.n_leaves() * n_classes];
    let mut totals = vec![LEAF_SHRINKAGE; layout.n_leaves()];
    for (row, residuals) in residuals.chunks_exact(n_classes).enumerate() {
        let leaf = hard_tree.leaf_of_row[row];
        totals[leaf] += subset.weights[row];
        for (sum, residual) in sums[leaf * n_classes..].iter_mut().zip(residuals) {
            *sum += subset.weights[row] * residual;
        }
    }
    for leaf in 0..layout.n_leaves() {
        for class in 0..n_classes {
            let bias = layout.leaf(class, leaf).end - 1;
            let step = sums[leaf * n_classes + class] / (MAX_DERIVATIVE * totals[leaf]);
            out[bias] = step as f32;
        }
    }
}

/// Mean leaves from ridge regressions, and scale leaves from the residuals of each leaf. Without a
/// `scale_floor` the scale channel, if there is one, stays zero: an added tree starts with no
/// effect on the scale.
fn normal_leaves(
    subset: &InitRows,
    hard_tree: &CompleteTree,
    layout: &Layout,
    scale_floor: Option<f64>,
    out: &mut [f32],
) {
    let all: Vec<usize> = (0..subset.n_rows()).collect();
    let zero = vec![0.0; layout.leaf_width()];
    let global = ridge_fit(subset, &all, &zero);
    let global_variance = variance(subset, &all, &global, 0.0, 0.0);
    let mut rows_of_leaf = vec![Vec::new(); layout.n_leaves()];
    for (row, &leaf) in hard_tree.leaf_of_row.iter().enumerate() {
        rows_of_leaf[leaf].push(row);
    }
    for (leaf, rows) in until_cancelled(rows_of_leaf.iter().enumerate()) {
        let fit = ridge_fit(subset, rows, &global);
        for (out, &value) in out[layout.leaf(0, leaf)].iter_mut().zip(&fit) {
            *out = value as f32;
        }
        let Some(floor) = scale_floor else {
            continue;
        };
        let sd = variance(subset, rows, &fit, LEAF_SHRINKAGE, global_variance).sqrt();
        let bias = layout.leaf(1, leaf).end - 1;
        out[bias] = inverse_softplus((sd - floor).max(MIN_INITIAL_SCALE)) as f32;
    }
}

/// Weighted ridge regression on the last `center.len()` inputs of each row (all of them, or the
/// bias alone), shrunk towards the coefficients `center`.
fn ridge_fit(subset: &InitRows, rows: &[usize], center: &[f64]) -> Vec<f64> {
    let change = if center.len() > MAX_NARROW {
        wide_change(subset, rows, center)
    } else {
        narrow_change(subset, rows, center)
    };
    let pairs = change.iter().zip(center);
    pairs.map(|(change, center)| center + change).collect()
}

/// The difference of the ridge coefficients from `center`, for many inputs.
fn wide_change(subset: &InitRows, rows: &[usize], center: &[f64]) -> Vec<f64> {
    let (width, n_used) = (subset.width, center.len());
    let step = if n_used > MAX_SYSTEM {
        rows.len().div_ceil(MAX_SYSTEM).max(1)
    } else {
        1
    };
    let mut inputs = Vec::with_capacity(rows.len().div_ceil(step) * n_used);
    let mut residuals = Vec::with_capacity(rows.len().div_ceil(step));
    for &row in rows.iter().step_by(step) {
        let x = &subset.inputs[(row + 1) * width - n_used..(row + 1) * width];
        let root = subset.weights[row].sqrt();
        residuals.push(root * (subset.target[row] - dot(x, center)));
        inputs.extend(x.iter().map(|&x| root as f32 * x));
    }
    RidgeSystem::new(inputs, n_used, LEAF_SHRINKAGE).coefficients(&residuals)
}

/// The difference of the ridge coefficients from `center`, for few inputs.
fn narrow_change(subset: &InitRows, rows: &[usize], center: &[f64]) -> Vec<f64> {
    let (width, n_used) = (subset.width, center.len());
    let mut gram = vec![0.0; n_used * n_used];
    let mut moment = vec![0.0; n_used];
    for i in 0..n_used {
        gram[i * n_used + i] = LEAF_SHRINKAGE;
    }
    for &row in rows {
        let x = &subset.inputs[(row + 1) * width - n_used..(row + 1) * width];
        let residual = subset.weights[row] * (subset.target[row] - dot(x, center));
        for i in 0..n_used {
            let scaled = subset.weights[row] * f64::from(x[i]);
            for j in 0..=i {
                gram[i * n_used + j] += scaled * f64::from(x[j]);
            }
            moment[i] += residual * f64::from(x[i]);
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
}

fn dot(x: &[f32], weights: &[f64]) -> f64 {
    x.iter().zip(weights).map(|(&x, w)| f64::from(x) * w).sum()
}

/// Mean squared residual, shrunk towards `prior` by a number of pseudo-rows.
fn variance(subset: &InitRows, rows: &[usize], fit: &[f64], pseudo_rows: f64, prior: f64) -> f64 {
    let width = subset.width;
    let mut sum = pseudo_rows * prior;
    let mut total = pseudo_rows;
    for &row in rows {
        let x = &subset.inputs[(row + 1) * width - fit.len()..(row + 1) * width];
        sum += subset.weights[row] * (subset.target[row] - dot(x, fit)).powi(2);
        total += subset.weights[row];
    }
    if total > 0.0 { sum / total } else { 1.0 }
}
