//! Growth as published by Irsoy et al.: depth first, each split trained row by row with several step
//! sizes, and kept while the validation error falls.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::fit::Run;
use crate::models::soft_tree::growing_tree::{GrowingTree, SplitWeights, TreeOutput};
use crate::models::soft_tree::growth::{Grown, GrowthOptions};
use crate::models::soft_tree::growth_rows::GrowthRows;
use crate::models::soft_tree::hard_split::{HardSplit, SortedInputs, SplitSearch};
use crate::models::soft_tree::online::{LeafRows, N_RESTARTS, PublishedSettings};
use crate::models::soft_tree::streams::growth as streams;
use crate::observer::Event;
use crate::rng::{Key, uniform};
use crate::stop::{self, Stop};
use crate::variational::encoded_rows::EncodedRows;

/// Random weights of a new gate are at most this large.
const GATE_NOISE: f32 = 0.005;
/// Membership weight up to which a leaf has no hard split and its gate begins at random.
const MIN_MEMBERSHIP: f64 = 1.0;
/// Largest squared error that counts: a target far outside of the training range would hide the
/// errors of all other rows.
const MAX_SQUARE: f64 = 1e12;
/// Pseudo-rows of the class frequencies of a leaf.
const CLASS_SHRINKAGE: f64 = 1.0;

/// Growth of a published variant.
pub(super) struct PublishedGrowth<'a> {
    pub(super) rows: GrowthRows<'a>,
    pub(super) settings: PublishedSettings,
    pub(super) options: GrowthOptions,
    pub(super) run: &'a Run<'a>,
    pub(super) key: Key,
}

impl PublishedGrowth<'_> {
    /// Grows the tree.
    ///
    /// # Errors
    /// When the observer discards the fit or the work is cancelled.
    pub(super) fn finish(&self) -> Result<Grown> {
        let rows = self.rows;
        let sorted = SortedInputs::new(rows.train, rows.width());
        let mut tree = GrowingTree::of_leaf(rows.shape, rows.root_leaf());
        let mut error = self.error(&tree, rows.scoring_rows());
        let mut open = vec![0];
        let (mut n_leaves, mut n_tried) = (1, 0_u64);
        let mut is_stopped = false;
        while let Some(leaf) = open.pop() {
            if n_leaves == self.options.max_leaves
                || tree.depth_of(leaf) == self.options.max_depth
                || is_stopped
            {
                continue;
            }
            n_tried += 1;
            let key = self.key.child(streams::SPLITS).child(n_tried);
            if let Some((larger, children, found)) = self.split(&tree, leaf, &sorted, key)?
                && found + self.settings.min_decrease < error
            {
                tree = larger;
                error = found;
                n_leaves += 1;
                // the left subtree first
                open.extend([children[1], children[0]]);
            }
            let event = Event::new("growing", n_leaves, self.options.max_leaves);
            match self.run.observer.on_event(&event) {
                ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
                ControlFlow::Break(Stop::Keep) => is_stopped = true,
                ControlFlow::Continue(()) => {}
            }
        }
        let likelihood = rows.likelihood(&tree.root_output(rows.train));
        Ok(Grown {
            row_scores: rows.scores(&tree, likelihood),
            tree,
            is_stopped,
        })
    }

    /// The tree with the best split of a leaf over all restarts, its new leaves and its error;
    /// `None` if all restarts diverge.
    fn split(
        &self,
        tree: &GrowingTree,
        leaf: usize,
        sorted: &SortedInputs,
        key: Key,
    ) -> Result<Option<(GrowingTree, [usize; 2], f64)>> {
        let rows = self.rows;
        let output = tree.evaluate(rows.train);
        let start = self.initial_split(&output, tree, leaf, sorted, key.child(streams::START));
        let with_offset = EncodedRows {
            offset: output.offset_at(leaf),
            ..rows.train.clone()
        };
        let leaf_rows = LeafRows {
            rows: &with_offset,
            width: rows.width(),
            n_channels: rows.shape.n_channels,
            is_classification: rows.is_classification,
        };
        let key = key.child(streams::TRAINING);
        let trained = self.run.pool.map(N_RESTARTS, |restart| {
            let weights = leaf_rows.train(&start, restart, key.child(restart as u64))?;
            let mut larger = tree.clone();
            let children = larger.split(leaf, weights);
            let scoring_rows = if self.settings.chosen_on_validation {
                rows.scoring_rows()
            } else {
                rows.train
            };
            let error = self.error(&larger, scoring_rows);
            error.is_finite().then_some((larger, children, error))
        });
        stop::check()?;
        let best = trained
            .into_iter()
            .flatten()
            .reduce(|best, next| if next.2 < best.2 { next } else { best });
        Ok(best.map(|(larger, children, _)| {
            let error = self.error(&larger, rows.scoring_rows());
            (larger, children, error)
        }))
    }

    /// A gate that begins as the best hard split by soft membership, and the leaves of its sides.
    fn initial_split(
        &self,
        output: &TreeOutput,
        tree: &GrowingTree,
        leaf: usize,
        sorted: &SortedInputs,
        key: Key,
    ) -> SplitWeights {
        let GrowthRows { train, shape, .. } = self.rows;
        let weights: Vec<f64> = (output.reach(leaf).iter().zip(&train.weight))
            .map(|(&reach, &weight)| f64::from(reach) * f64::from(weight))
            .collect();
        let outputs = self.targets();
        let mut rng = key.rng();
        let mut gate: Vec<f32> = (0..=shape.n_inputs)
            .map(|_| GATE_NOISE * (2.0 * uniform(&mut rng) as f32 - 1.0))
            .collect();
        let search = SplitSearch {
            inputs: &train.inputs,
            weights: &weights,
            outputs: &outputs,
            is_linear: false,
            min_weight: f64::MIN_POSITIVE,
        };
        let split = (weights.iter().sum::<f64>() > MIN_MEMBERSHIP)
            .then(|| sorted.best(&search))
            .flatten();
        let Some(HardSplit {
            input,
            threshold,
            sides,
            ..
        }) = split
        else {
            let own = tree.leaf_values(leaf).to_vec();
            return SplitWeights {
                gate,
                leaves: [own.clone(), own],
            };
        };
        gate[input] = self.settings.steepness;
        gate[shape.n_inputs] = -self.settings.steepness * threshold;
        let leaves = sides.map(|side| {
            let means: Vec<f64> = side.iter().map(|&[mean, _]| mean).collect();
            self.leaf_of(&means)
        });
        SplitWeights { gate, leaves }
    }

    /// Leaf values from the means of the targets: the mean, or centred log frequencies.
    fn leaf_of(&self, means: &[f64]) -> Vec<f32> {
        if !self.rows.is_classification {
            return means.iter().map(|&mean| mean as f32).collect();
        }
        let shrinkage = CLASS_SHRINKAGE / self.rows.train.total_weight.max(1.0);
        let logs: Vec<f64> = means
            .iter()
            .map(|p| (p.max(0.0) + shrinkage).ln())
            .collect();
        let centre = logs.iter().sum::<f64>() / logs.len() as f64;
        logs.iter().map(|log| (log - centre) as f32).collect()
    }

    /// Targets of the training rows, or class indicators: rows x channels.
    fn targets(&self) -> Vec<f64> {
        let target = &self.rows.train.target;
        if !self.rows.is_classification {
            return target.iter().map(|&y| f64::from(y)).collect();
        }
        let n_channels = self.rows.shape.n_channels;
        let mut indicators = vec![0.0; target.len() * n_channels];
        for (row, &class) in target.iter().enumerate() {
            indicators[row * n_channels + class as usize] = 1.0;
        }
        indicators
    }

    /// Mean squared error, or rate of wrong classes.
    fn error(&self, tree: &GrowingTree, rows: &EncodedRows) -> f64 {
        let root = tree.root_output(rows);
        let n_channels = self.rows.shape.n_channels;
        let outputs = root.chunks_exact(n_channels);
        let errors: Vec<f64> = outputs
            .zip(&rows.target)
            .map(|(outputs, &target)| {
                if self.rows.is_classification {
                    let own = outputs[target as usize];
                    let is_wrong = (outputs.iter().enumerate()).any(|(class, &output)| {
                        output > own || (output >= own && class < target as usize)
                    });
                    f64::from(u8::from(is_wrong))
                } else {
                    f64::from(outputs[0] - target).powi(2).min(MAX_SQUARE)
                }
            })
            .collect();
        rows.mean(&errors)
    }
}
