//! Training: deduplicate and bin the rows, grow trees on bootstrap samples, and calibrate the noise
//! on the out-of-bag rows.

use std::ops::{ControlFlow, Range};

use crate::data::bootstrap::bootstrap_weights;
use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::forest::fitted::{Forest, ForestTree};
use crate::models::forest::noise_calibration::{ForestNoise, OutOfBagClass, Residual};
use crate::models::forest::params::ForestParams;
use crate::observer::Event;
use crate::par::Pool;
use crate::params::Checked;
use crate::stop::{self, Stop};
use crate::store::record::Record;
use crate::trees::cart::{Cart, CartLimits, CartTarget, grow};
use crate::trees::column_gains::as_shares;
use crate::trees::routing::RowBins;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::{TreeInputs, TreeTrainingSet};

/// Number of trees that are grown before their out-of-bag predictions are added up.
const BATCH: usize = 32;
/// Largest number of leaves of a tree if `min_child_weight` is automatic.
const MAX_LEAVES: f64 = 50_000.0;
/// Leaf of a row that is in the bootstrap sample.
const IN_BAG: u32 = u32::MAX;

/// Random streams of a tree. The key of tree `i` is child `i` of the key of the run.
mod streams {
    /// Bootstrap sample.
    pub(super) const BOOTSTRAP: u64 = 0;
    /// Growing the tree.
    pub(super) const TREE: u64 = 1;
}

impl Fit for ForestParams {
    type Fitted = Forest;
    const FAMILY: &'static str = "forest";

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Forest> {
        Forest::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Forest> {
        let training_set = TreeTrainingSet::new(data, params.max_bins, run.key);
        stop::check()?;
        let limits = CartLimits {
            max_depth: params.max_depth,
            min_weight: params
                .min_child_weight
                .unwrap_or_else(|| default_min_weight(&training_set)),
            n_tried: Some(n_tried(params, &training_set)),
        };
        let grower = ForestGrower {
            training_set: &training_set,
            bins: RowBins::new(&training_set.binned),
            limits,
            n_estimators: params.n_estimators,
            run,
        };
        let mut trees: Vec<ForestTree> = Vec::new();
        let mut out_of_bag = OutOfBag::new(&training_set);
        let mut gains = vec![0.0; training_set.binned.n_columns()];
        let mut is_stopped = false;
        for first in (0..params.n_estimators).step_by(BATCH) {
            if is_stopped {
                break;
            }
            let end = params.n_estimators.min(first + BATCH);
            for grown in grower.grow(first..end)? {
                let Some(grown) = grown else {
                    is_stopped = true;
                    continue;
                };
                is_stopped |= grown.is_stopped;
                for (condition, gain) in grown.structure.conditions().iter().zip(&grown.gains) {
                    gains[condition.column] += f64::from(*gain);
                }
                out_of_bag.add(training_set.kind, &grown.values, &grown.out_of_bag_leaves);
                trees.push(ForestTree {
                    structure: grown.structure,
                    values: grown.values,
                });
            }
        }
        let floor = params.min_scale.unwrap_or(training_set.floor);
        let Calibration { noise, error } = out_of_bag.calibrate(&training_set, floor, params);
        let n_leaves: usize = trees.iter().map(|tree| tree.structure.n_leaves()).sum();
        let training = Training {
            chosen: format!(
                "{} trees with {} leaves on average{error}",
                trees.len(),
                n_leaves / trees.len()
            ),
            target_sd: training_set.target_sd(),
            is_stopped,
            ..Training::default()
        };
        let n_members = params.n_members.min(trees.len());
        Ok(Forest {
            inputs: TreeInputs::new(&training_set, data.schema(), n_members, run.key)
                .extrapolating(run.extrapolation),
            params: (**params).clone(),
            training,
            trees,
            gains: as_shares(gains),
            noise,
        })
    }
}

/// One row; more if trees of large tables would need too much memory.
fn default_min_weight(training_set: &TreeTrainingSet) -> f64 {
    let total: f64 = training_set
        .weight
        .iter()
        .map(|&weight| f64::from(weight))
        .sum();
    (total / MAX_LEAVES).max(1.0)
}

/// Number of columns that each split is chosen from.
fn n_tried(params: &ForestParams, training_set: &TreeTrainingSet) -> usize {
    let n_columns = training_set.binned.n_columns() as f64;
    let n = match (params.max_features, training_set.kind) {
        (Some(fraction), _) => (fraction * n_columns).round(),
        (None, CartTarget::Number) => (0.6 * n_columns).ceil(),
        (None, CartTarget::Classes(_)) => n_columns.sqrt().ceil(),
    };
    (n as usize).clamp(1, training_set.binned.n_columns().max(1))
}

/// Grows the trees of a forest in parallel.
struct ForestGrower<'a> {
    training_set: &'a TreeTrainingSet,
    /// Bins of the training rows.
    bins: RowBins,
    limits: CartLimits,
    n_estimators: usize,
    run: &'a Run<'a>,
}

/// A grown tree and its leaves.
struct GrownTree {
    structure: TreeStructure,
    /// Gain of each condition.
    gains: Vec<f32>,
    /// Values of the leaves, see [`leaf_values`].
    values: Vec<f32>,
    /// Leaf of every row that is out of bag; [`IN_BAG`] for the other rows.
    out_of_bag_leaves: Vec<u32>,
    /// Whether growth was stopped before its end.
    is_stopped: bool,
}

impl ForestGrower<'_> {
    /// Grows some trees. After the observer has stopped the fit, trees that are not complete are
    /// `None`, but for the first.
    fn grow(&self, trees: Range<usize>) -> Result<Vec<Option<GrownTree>>> {
        let single_thread = Pool::new(1)?;
        let grown = self.run.pool.map(trees.len(), |at| {
            self.grow_tree(trees.start + at, &single_thread)
        });
        let mut grown = grown
            .into_iter()
            .collect::<Result<Vec<Option<GrownTree>>>>()?;
        let is_complete =
            |tree: &Option<GrownTree>| tree.as_ref().is_some_and(|tree| !tree.is_stopped);
        if grown.iter().any(is_complete) {
            // a first tree that is not complete is needed only if it is alone
            grown = (grown.into_iter())
                .map(|tree| tree.filter(|tree| !tree.is_stopped))
                .collect();
        }
        Ok(grown)
    }

    fn grow_tree(&self, tree: usize, pool: &Pool) -> Result<Option<GrownTree>> {
        let Self {
            training_set, run, ..
        } = self;
        let step = || {
            run.observer.on_event(&Event {
                tree: Some(tree),
                ..Event::new("growing", tree, self.n_estimators)
            })
        };
        match step() {
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
            ControlFlow::Break(Stop::Keep) if tree > 0 => return Ok(None),
            _ => {}
        }
        let key = run.key.child(tree as u64);
        let weight = bootstrap_weights(&training_set.weight, key.child(streams::BOOTSTRAP));
        let data = training_set.cart_data(pool);
        let cart = grow(
            &data,
            &weight,
            &self.limits,
            key.child(streams::TREE),
            &step,
        )?;
        if cart.is_stopped && tree > 0 {
            return Ok(None);
        }
        let out_of_bag_leaf = |row: usize| {
            if weight[row] > 0.0 {
                IN_BAG
            } else {
                self.bins.leaf(&cart.structure, row) as u32
            }
        };
        Ok(Some(GrownTree {
            out_of_bag_leaves: (0..training_set.n_rows()).map(out_of_bag_leaf).collect(),
            values: leaf_values(training_set.kind, &cart),
            structure: cart.structure,
            gains: cart.gains,
            is_stopped: cart.is_stopped,
        }))
    }
}

/// Mean and variance of each leaf, or its class frequencies.
fn leaf_values(kind: CartTarget, cart: &Cart) -> Vec<f32> {
    let mut values = Vec::new();
    for stats in cart.leaves.chunks_exact(kind.n_stats()) {
        match kind {
            CartTarget::Number => values.extend([stats[1] as f32, (stats[2] / stats[0]) as f32]),
            CartTarget::Classes(_) => {
                let total: f64 = stats.iter().sum();
                values.extend(stats.iter().map(|weight| (weight / total) as f32));
            }
        }
    }
    values
}

/// Sums over the trees for which a row is out of bag, for each row: the number of these trees, then
/// the leaf means, their squares and the leaf variances; or the number and the class frequencies.
struct OutOfBag {
    /// Number of sums of a row.
    width: usize,
    sums: Vec<f64>,
}

/// The calibrated noise, and the out-of-bag error as a user reads it (after a comma).
struct Calibration {
    noise: ForestNoise,
    error: String,
}

impl OutOfBag {
    fn new(training_set: &TreeTrainingSet) -> Self {
        let width = match training_set.kind {
            CartTarget::Number => 4,
            CartTarget::Classes(n) => 1 + n,
        };
        Self {
            width,
            sums: vec![0.0; width * training_set.n_rows()],
        }
    }

    /// Adds the leaf values of a tree.
    fn add(&mut self, kind: CartTarget, values: &[f32], leaves: &[u32]) {
        for (sums, &leaf) in self.sums.chunks_exact_mut(self.width).zip(leaves) {
            if leaf == IN_BAG {
                continue;
            }
            sums[0] += 1.0;
            match kind {
                CartTarget::Number => {
                    let [mean, variance] =
                        [0, 1].map(|at| f64::from(values[2 * leaf as usize + at]));
                    sums[1] += mean;
                    sums[2] += mean * mean;
                    sums[3] += variance;
                }
                CartTarget::Classes(n) => {
                    let frequencies = &values[leaf as usize * n..][..n];
                    for (sum, &frequency) in sums[1..].iter_mut().zip(frequencies) {
                        *sum += f64::from(frequency);
                    }
                }
            }
        }
    }

    fn calibrate(
        &self,
        training_set: &TreeTrainingSet,
        floor: f64,
        params: &ForestParams,
    ) -> Calibration {
        match training_set.kind {
            CartTarget::Number => self.calibrate_number(training_set, floor, params),
            CartTarget::Classes(n) => self.calibrate_classes(training_set, n),
        }
    }

    fn calibrate_number(
        &self,
        training_set: &TreeTrainingSet,
        floor: f64,
        params: &ForestParams,
    ) -> Calibration {
        let trees_per_member = params.n_estimators / params.n_members;
        let members = params.n_members as f64;
        let rows = self.residuals(training_set, |between, n_trees| {
            // the members predict this variance themselves, and a new row is predicted by all
            // trees, not only by those for which it is out of bag
            let knowledge = between / trees_per_member as f64 * (members - 1.0) / members;
            knowledge + between * (1.0 / n_trees - 1.0 / params.n_estimators as f64)
        });
        let total: f64 = rows.iter().map(|row| row.weight).sum();
        let square = rows.iter().map(|row| row.weight * row.square).sum::<f64>() / total;
        let error = if rows.is_empty() {
            String::new()
        } else {
            format!(
                ", out-of-bag RMSE {:.4} standard deviations of the target",
                square.sqrt()
            )
        };
        Calibration {
            noise: ForestNoise::fit_number(&rows, floor, trees_per_member > 1),
            error,
        }
    }

    fn calibrate_classes(&self, training_set: &TreeTrainingSet, n_classes: usize) -> Calibration {
        let mut weights = vec![0.0; n_classes];
        for (&class, &weight) in training_set.target.iter().zip(&training_set.weight) {
            weights[class as usize] += f64::from(weight);
        }
        let rows = self.class_rows(training_set);
        let wrong = rows.iter().filter(|row| {
            let mut probabilities = row.probabilities.iter();
            probabilities.any(|p| *p > row.probabilities[row.class])
        });
        let wrong: f64 = wrong.map(|row| row.weight).sum();
        let total: f64 = rows.iter().map(|row| row.weight).sum();
        let error = if rows.is_empty() {
            String::new()
        } else {
            format!(", out-of-bag error rate {:.4}", wrong / total)
        };
        Calibration {
            noise: ForestNoise::plain_classes(&weights).fit_classes(&rows),
            error,
        }
    }

    /// Rows that are out of bag for at least two trees. `known` gives the variance that is not
    /// noise from the variance between trees and the number of trees.
    fn residuals(
        &self,
        training_set: &TreeTrainingSet,
        known: impl Fn(f64, f64) -> f64,
    ) -> Vec<Residual> {
        let rows = self.sums.chunks_exact(self.width).enumerate();
        let rows = rows.filter(|(_, sums)| sums[0] >= 2.0);
        rows.map(|(row, sums)| {
            let n = sums[0];
            let mean = sums[1] / n;
            let between = ((sums[2] / n - mean * mean) * n / (n - 1.0)).max(0.0);
            Residual {
                square: (f64::from(training_set.target[row]) - mean).powi(2),
                within: sums[3] / n,
                between,
                known: known(between, n),
                weight: f64::from(training_set.weight[row]),
            }
        })
        .collect()
    }

    /// Rows that are out of bag for at least one tree.
    fn class_rows(&self, training_set: &TreeTrainingSet) -> Vec<OutOfBagClass> {
        let rows = self.sums.chunks_exact(self.width).enumerate();
        let rows = rows.filter(|(_, sums)| sums[0] >= 1.0);
        rows.map(|(row, sums)| OutOfBagClass {
            probabilities: sums[1..].iter().map(|sum| sum / sums[0]).collect(),
            class: training_set.target[row] as usize,
            weight: f64::from(training_set.weight[row]),
        })
        .collect()
    }
}
