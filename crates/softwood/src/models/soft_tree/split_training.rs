//! Training of one new split: its gate and its two leaves, while the rest of the tree is frozen. The
//! output of the rest and the reach of the split leaf are cached, so that an epoch costs rows x
//! inputs whatever the size of the tree.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::likelihood::soft::SoftLikelihood;
use crate::models::soft_tree::growing_tree::{GrowingTree, SplitWeights, TreeOutput};
use crate::models::soft_tree::growth_rows::GrowthRows;
use crate::models::soft_tree::hard_split::{HardSplit, SortedInputs, SplitSearch};
use crate::models::soft_tree::point_training::{PointRun, PointSchedule, train};
use crate::rng::{Key, uniform};
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::Layout;
use crate::variational::encoded_rows::EncodedRows;

/// Steepness of a new gate: its activation is this many times the distance to the threshold, in
/// standard deviations of the input.
const STEEPNESS: f32 = 3.0;
/// Scale of the random weights of the other inputs.
const GATE_NOISE: f32 = 0.05;
/// Logits per unit of a mean residual of class probabilities.
const LOGITS_PER_RESIDUAL: f64 = 2.0;
/// Number of optimiser steps.
const N_STEPS: usize = 500;
/// Peak learning rate.
const LEARNING_RATE: f64 = 0.03;

/// A tree with its outputs on the training and validation rows.
pub(super) struct FrozenTree<'a> {
    pub(super) rows: GrowthRows<'a>,
    pub(super) tree: &'a GrowingTree,
    pub(super) train: &'a TreeOutput,
    pub(super) validation: Option<&'a TreeOutput>,
    pub(super) likelihood: SoftLikelihood,
}

/// A trained split of a leaf.
#[derive(Debug, Clone)]
pub(super) struct TrainedSplit {
    pub(super) leaf: usize,
    pub(super) weights: SplitWeights,
    /// Log-likelihood of each row that scores the tree, with this split.
    pub(super) row_scores: Vec<f64>,
}

impl FrozenTree<'_> {
    /// The best hard split of a leaf on each input, for the residuals of the tree by soft
    /// membership; the largest gain first.
    pub(super) fn hard_splits(
        &self,
        sorted: &SortedInputs,
        residuals: &[f64],
        leaf: usize,
    ) -> Vec<HardSplit> {
        let GrowthRows { train, shape, .. } = self.rows;
        let weights: Vec<f64> = (self.train.reach(leaf).iter().zip(&train.weight))
            .map(|(&reach, &weight)| f64::from(reach) * f64::from(weight))
            .collect();
        sorted.best_by_input(&SplitSearch {
            inputs: &train.inputs,
            weights: &weights,
            outputs: residuals,
            is_linear: shape.is_linear,
            min_weight: min_side_weight(shape.is_linear, shape.n_inputs),
        })
    }

    /// Weights of a split that begins as a hard split, moderately steep.
    pub(super) fn initial_split(&self, leaf: usize, split: &HardSplit, key: Key) -> SplitWeights {
        let GrowthRows { shape, .. } = self.rows;
        let mut rng = key.rng();
        let mut gate: Vec<f32> = (0..=shape.n_inputs)
            .map(|_| GATE_NOISE * (2.0 * uniform(&mut rng) as f32 - 1.0))
            .collect();
        gate[split.input] = STEEPNESS;
        gate[shape.n_inputs] = -STEEPNESS * split.threshold;
        let leaf_width = self.tree.leaf_width();
        let factor = if self.rows.is_classification {
            LOGITS_PER_RESIDUAL
        } else {
            1.0
        };
        let leaves = split.sides.each_ref().map(|side| {
            let mut values = self.tree.leaf_values(leaf).to_vec();
            for (values, [intercept, slope]) in values.chunks_exact_mut(leaf_width).zip(side) {
                values[leaf_width - 1] += (factor * intercept) as f32;
                if shape.is_linear {
                    values[split.input] += (factor * slope) as f32;
                }
            }
            values
        });
        SplitWeights { gate, leaves }
    }

    /// Trains the gate and the leaves of a split from these weights.
    ///
    /// # Errors
    /// When the work is cancelled.
    pub(super) fn train_split(
        &self,
        leaf: usize,
        start: &SplitWeights,
        key: Key,
    ) -> Result<TrainedSplit> {
        let GrowthRows {
            train: train_rows,
            validation,
            shape,
            ..
        } = self.rows;
        let layout = |depth: usize| Layout {
            n_inputs: shape.n_inputs,
            depth,
            mixing_levels: 0,
            n_channels: shape.n_channels,
            is_linear: shape.is_linear,
        };
        let split = layout(1);
        let spec = SoftTreeSpec {
            stack: AdditiveLayout::at_node(layout(0), split),
            likelihood: self.likelihood,
            beta: 1.0,
        };
        let with_offset = |rows: &EncodedRows, output: &TreeOutput| EncodedRows {
            offset: output.offset_at(leaf),
            ..rows.clone()
        };
        let local_train = with_offset(train_rows, self.train);
        let local_validation = validation
            .zip(self.validation)
            .map(|(rows, output)| with_offset(rows, output));
        let run = PointRun {
            spec: &spec,
            train: &local_train,
            validation: local_validation.as_ref(),
            schedule: PointSchedule::new(train_rows.n_rows(), N_STEPS, LEARNING_RATE),
            penalty: &self.rows.penalty(&split, self.tree.leaf_values(leaf)),
        };
        let fit = train(&run, start.to_flat(&split), key, &mut |_| {
            ControlFlow::Continue(())
        })?;
        Ok(TrainedSplit {
            leaf,
            weights: SplitWeights::from_flat(&split, &fit.weights),
            row_scores: fit.row_scores,
        })
    }
}

/// Smallest membership weight of a side of a hard split.
fn min_side_weight(is_linear: bool, n_inputs: usize) -> f64 {
    if is_linear {
        (n_inputs as f64 / 2.0).clamp(5.0, 25.0)
    } else {
        5.0
    }
}
