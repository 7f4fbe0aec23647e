//! The rows that a soft tree grows on, and scores of a tree on them.

use crate::likelihood::soft::SoftLikelihood;
use crate::models::soft_tree::growing_tree::GrowingTree;
use crate::models::soft_tree::point_training::Penalty;
use crate::numerics::logspace::softmax_rows;
use crate::numerics::ridge::RidgeSystem;
use crate::soft::additive::AdditiveLayout;
use crate::soft::general_layout::{GeneralLayout, LeafShape};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::minibatch::score_rows;

/// Smallest noise standard deviation during growth, in units of the target.
const MIN_NOISE: f64 = 1e-3;
/// Pseudo-rows of the ridge regression of the root, and of the class frequencies.
const ROOT_SHRINKAGE: f64 = 5.0;
/// Largest number of rows of the ridge regression of the root.
const MAX_RIDGE_ROWS: usize = 8192;
/// Prior standard deviation of the change of the activation of a gate over one standard deviation
/// of the inputs.
const GATE_SCALE: f64 = 3.0;
/// Prior standard deviation of the deviation of a leaf from its parent over one standard deviation
/// of the inputs.
const LEAF_SCALE: f64 = 1.0;
/// Prior standard deviation of a bias.
const BIAS_SCALE: f64 = 10.0;

/// Training and validation rows of a growing tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrowthRows<'a> {
    pub(super) train: &'a EncodedRows,
    pub(super) validation: Option<&'a EncodedRows>,
    pub(super) shape: LeafShape,
    pub(super) is_classification: bool,
}

impl<'a> GrowthRows<'a> {
    /// The rows that score a tree: the validation rows, or the training rows without them.
    pub(super) fn scoring_rows(&self) -> &'a EncodedRows {
        self.validation.unwrap_or(self.train)
    }

    /// Number of inputs, with the bias.
    pub(super) fn width(&self) -> usize {
        self.shape.n_inputs + 1
    }

    /// A leaf of all rows: a ridge regression or the mean; class frequencies as logits.
    pub(super) fn root_leaf(&self) -> Vec<f32> {
        let width = self.width();
        let leaf_width = if self.shape.is_linear { width } else { 1 };
        let mut values = vec![0.0_f32; self.shape.n_channels * leaf_width];
        if self.is_classification {
            for (class, logit) in self.log_frequencies().into_iter().enumerate() {
                values[(class + 1) * leaf_width - 1] = logit as f32;
            }
            return values;
        }
        if !self.shape.is_linear {
            let target: Vec<f64> = self.train.target.iter().map(|&y| f64::from(y)).collect();
            return vec![self.train.mean(&target) as f32];
        }
        let n_rows = self.train.n_rows();
        let step = n_rows.div_ceil(MAX_RIDGE_ROWS).max(1);
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for row in (0..n_rows).step_by(step) {
            let root = self.train.weight[row].sqrt();
            let x = &self.train.inputs[(row + 1) * width - leaf_width..(row + 1) * width];
            inputs.extend(x.iter().map(|&x| root * x));
            targets.push(f64::from(root) * f64::from(self.train.target[row]));
        }
        let fit = RidgeSystem::new(inputs, leaf_width, ROOT_SHRINKAGE).coefficients(&targets);
        for (value, fit) in values.iter_mut().zip(fit) {
            *value = fit as f32;
        }
        values
    }

    /// Centred logarithms of the class frequencies.
    fn log_frequencies(&self) -> Vec<f64> {
        let n_classes = self.shape.n_channels;
        let mut counts = vec![ROOT_SHRINKAGE / n_classes as f64; n_classes];
        for (&class, &weight) in self.train.target.iter().zip(&self.train.weight) {
            counts[class as usize] += f64::from(weight);
        }
        let logs: Vec<f64> = counts.iter().map(|count| count.ln()).collect();
        let mean = logs.iter().sum::<f64>() / n_classes as f64;
        logs.iter().map(|log| log - mean).collect()
    }

    /// Residuals of the training rows, rows x channels, from the output of the root.
    pub(super) fn residuals(&self, root: &[f32]) -> Vec<f64> {
        let n_channels = self.shape.n_channels;
        if !self.is_classification {
            let pairs = self.train.target.iter().zip(root);
            return pairs.map(|(&y, &f)| f64::from(y) - f64::from(f)).collect();
        }
        let mut probabilities = vec![0.0; root.len()];
        softmax_rows(root, n_channels, &mut probabilities);
        let mut residuals: Vec<f64> = probabilities.iter().map(|&p| -f64::from(p)).collect();
        for (row, &class) in self.train.target.iter().enumerate() {
            residuals[row * n_channels + class as usize] += 1.0;
        }
        residuals
    }

    /// The likelihood of the growing tree: a Normal whose standard deviation is that of the
    /// residuals of the training rows, or categorical.
    pub(super) fn likelihood(&self, root: &[f32]) -> SoftLikelihood {
        if self.is_classification {
            return SoftLikelihood::Categorical;
        }
        let squares: Vec<f64> = self.residuals(root).iter().map(|r| r * r).collect();
        let sd = self.train.mean(&squares).sqrt().max(MIN_NOISE);
        SoftLikelihood::KnownNoise { sd }
    }

    /// Log-likelihood of each row that scores the tree.
    pub(super) fn scores(&self, tree: &GrowingTree, likelihood: SoftLikelihood) -> Vec<f64> {
        let layout = tree.layout();
        let weights = tree.weights(&layout);
        let spec = whole_tree(layout, likelihood);
        score_rows(&spec, &weights, self.scoring_rows())
    }

    /// Prior of the weights of a subtree below a leaf with these values: gates around zero, leaves
    /// around the leaf that they replace.
    pub(super) fn penalty<L: TreeLayout>(&self, layout: &L, parent: &[f32]) -> Vec<Penalty> {
        let n_inputs = self.shape.n_inputs.max(1) as f64;
        let precision = |scale: f64| (n_inputs / (scale * scale)) as f32;
        let bias = (1.0 / (BIAS_SCALE * BIAS_SCALE)) as f32;
        let free = Penalty {
            mean: 0.0,
            precision: precision(GATE_SCALE),
        };
        let mut penalty = vec![free; layout.n_weights()];
        for gate in 0..layout.n_gates() {
            penalty[layout.gate(gate).end - 1].precision = bias;
        }
        let leaf_width = layout.leaf_width();
        for leaf in 0..layout.n_leaves() {
            for channel in 0..layout.n_channels() {
                let range = layout.leaf(channel, leaf);
                let parent = &parent[channel * leaf_width..(channel + 1) * leaf_width];
                for (penalty, &mean) in penalty[range.clone()].iter_mut().zip(parent) {
                    *penalty = Penalty {
                        mean,
                        precision: precision(LEAF_SCALE),
                    };
                }
                penalty[range.end - 1].precision = bias;
            }
        }
        penalty
    }
}

/// The model of a whole tree.
pub(super) fn whole_tree(
    layout: GeneralLayout,
    likelihood: SoftLikelihood,
) -> SoftTreeSpec<GeneralLayout> {
    SoftTreeSpec {
        stack: AdditiveLayout::single(layout),
        likelihood,
        beta: 1.0,
    }
}
