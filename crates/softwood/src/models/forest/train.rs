//! Fitting: distinct rows, bins, trees on bags of rows, and what rows out of bag say of the noise.

use crate::data::dataset::Dataset;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::forest::bootstrap::bag;
use crate::models::forest::fitted::{Forest, ForestParts, Leaves};
use crate::models::forest::noise_calibration::{ForestNoise, Residual};
use crate::models::forest::params::ForestParams;
use crate::observer::Progress;
use crate::par::Pool;
use crate::params::Checked;
use crate::store::record::Record;
use crate::trees::cart::{Cart, CartLimits, CartTarget, grow};
use crate::trees::column_gains::as_shares;
use crate::trees::routing::RowBins;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::TreeTrainingSet;

/// Trees that are grown before their rows out of bag are looked at.
const BATCH: usize = 32;
/// Most leaves of a tree, where nothing else is asked for.
const MAX_LEAVES: f64 = 50_000.0;
/// Leaf of a row that is in the bag.
const IN_BAG: u32 = u32::MAX;

/// Streams of the run's key besides those of the trees, which are numbered from 0.
mod streams {
    pub(super) const ROW_ORDER: u64 = 1 << 32;
    pub(super) const UNSEEN: u64 = ROW_ORDER + 1;
}

impl Fit for ForestParams {
    type Fitted = Forest;
    const FAMILY: &'static str = "forest";

    fn restore(record: &Record) -> Result<Forest> {
        Forest::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Forest> {
        let training_set =
            TreeTrainingSet::new(data, params.max_bins, run.key.child(streams::ROW_ORDER));
        let limits = CartLimits {
            max_depth: params.max_depth,
            min_weight: params
                .min_child_weight
                .unwrap_or_else(|| least_weight(&training_set)),
            n_tried: Some(n_tried(params, &training_set)),
        };
        let mut trees: Vec<Leaves> = Vec::new();
        let mut out_of_bag = OutOfBag::new(&training_set);
        let mut gains = vec![0.0; training_set.binned.n_columns()];
        let bins = RowBins::new(&training_set.binned);
        for first in (0..params.n_estimators).step_by(BATCH) {
            let n = BATCH.min(params.n_estimators - first);
            for grown in grow_batch(
                &training_set,
                &bins,
                &limits,
                (first, n, params.n_estimators),
                run,
            )? {
                for (test, gain) in grown.structure.conditions().iter().zip(&grown.gains) {
                    gains[test.column] += f64::from(*gain);
                }
                out_of_bag.add(training_set.kind, &grown.leaves, &grown.places);
                trees.push(Leaves {
                    structure: grown.structure,
                    values: grown.leaves,
                });
            }
        }
        let trees_per_member = params.n_estimators / params.n_members;
        let floor = params.min_scale.unwrap_or(training_set.floor);
        let (noise, chosen) = out_of_bag.noise(&training_set, floor, trees_per_member, params);
        let gains = as_shares(gains);
        let n_leaves: usize = trees.iter().map(|tree| tree.structure.n_leaves()).sum();
        let training = Training {
            chosen: format!(
                "{} trees of {} leaves in the mean{chosen}",
                trees.len(),
                n_leaves / trees.len()
            ),
            target_sd: data
                .schema()
                .classes()
                .is_none()
                .then_some(training_set.standard.scale),
            ..Training::default()
        };
        Ok(Forest::new(ForestParts {
            schema: data.schema().clone(),
            params: (**params).clone(),
            training,
            standard: training_set.standard,
            cuts: training_set.cuts,
            trees,
            gains,
            noise,
            n_members: params.n_members,
            substitutes: UnseenSubstitutes::new(run.key.child(streams::UNSEEN)),
        }))
    }
}

/// One row, or more where a forest would not fit into memory.
fn least_weight(training_set: &TreeTrainingSet) -> f64 {
    let total: f64 = training_set
        .weight
        .iter()
        .map(|&weight| f64::from(weight))
        .sum();
    (total / MAX_LEAVES).max(1.0)
}

/// Columns that each split is chosen from.
fn n_tried(params: &ForestParams, training_set: &TreeTrainingSet) -> usize {
    let n_columns = training_set.binned.n_columns() as f64;
    let n = match (params.max_features, training_set.kind) {
        (Some(part), _) => (part * n_columns).round(),
        (None, CartTarget::Number) => (0.6 * n_columns).ceil(),
        (None, CartTarget::Classes(_)) => n_columns.sqrt().ceil(),
    };
    (n as usize).clamp(1, training_set.binned.n_columns().max(1))
}

/// A grown tree: its leaves' values, and the leaf of every row out of its bag.
struct GrownTree {
    structure: TreeStructure,
    gains: Vec<f32>,
    leaves: Vec<f32>,
    places: Vec<u32>,
}

fn grow_batch(
    training_set: &TreeTrainingSet,
    bins: &RowBins,
    limits: &CartLimits,
    (first, n, total): (usize, usize, usize),
    run: &Run<'_>,
) -> Result<Vec<GrownTree>> {
    let alone = Pool::new(1)?;
    let field = training_set.cart_data(&alone);
    let grown = run.pool.map(n, |at| {
        let key = run.key.child((first + at) as u64);
        let step = || {
            run.observer.step(&Progress {
                stage: "growing",
                done: first + at,
                total,
                elbo: None,
                held_out: None,
            })
        };
        if step().is_break() {
            return Err(Error::Cancelled);
        }
        let weight = bag(&training_set.weight, key.child(0));
        let cart = grow(&field, &weight, limits, key.child(1), &step)?;
        let place = |row: usize| {
            if weight[row] > 0.0 {
                IN_BAG
            } else {
                bins.leaf(&cart.structure, row) as u32
            }
        };
        Ok(GrownTree {
            places: (0..training_set.n_rows()).map(place).collect(),
            leaves: values(training_set.kind, &cart),
            structure: cart.structure,
            gains: cart.gains,
        })
    });
    grown.into_iter().collect()
}

/// Mean and variance of each leaf, or its shares of the classes.
fn values(kind: CartTarget, cart: &Cart) -> Vec<f32> {
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

/// Sums over the trees that do not know a row: their number, then means, squared means and variances; or shares.
struct OutOfBag {
    width: usize,
    sums: Vec<f64>,
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

    fn add(&mut self, kind: CartTarget, leaves: &[f32], places: &[u32]) {
        for (sums, &leaf) in self.sums.chunks_exact_mut(self.width).zip(places) {
            if leaf == IN_BAG {
                continue;
            }
            sums[0] += 1.0;
            match kind {
                CartTarget::Number => {
                    let [mean, variance] =
                        [0, 1].map(|at| f64::from(leaves[2 * leaf as usize + at]));
                    sums[1] += mean;
                    sums[2] += mean * mean;
                    sums[3] += variance;
                }
                CartTarget::Classes(n) => {
                    let shares = &leaves[leaf as usize * n..][..n];
                    for (sum, &share) in sums[1..].iter_mut().zip(shares) {
                        *sum += f64::from(share);
                    }
                }
            }
        }
    }

    /// The noise, and the error out of bag in words.
    fn noise(
        &self,
        training_set: &TreeTrainingSet,
        floor: f64,
        trees_per_member: usize,
        params: &ForestParams,
    ) -> (ForestNoise, String) {
        match training_set.kind {
            CartTarget::Number => {
                let per_member = trees_per_member as f64;
                let members = params.n_members as f64;
                let rows = self.residuals(training_set, |between, n_trees| {
                    // members differ, and fewer trees know nothing of a row than will be asked of a new one
                    let knowledge = between / per_member * (members - 1.0) / members;
                    knowledge + between * (1.0 / n_trees - 1.0 / params.n_estimators as f64)
                });
                let total: f64 = rows.iter().map(|row| row.weight).sum();
                let error = rows.iter().map(|row| row.weight * row.square).sum::<f64>() / total;
                let words = if rows.is_empty() {
                    String::new()
                } else {
                    format!(
                        ", error out of bag {:.4} of the target's deviation",
                        error.sqrt()
                    )
                };
                (
                    ForestNoise::fit_number(&rows, floor, trees_per_member > 1),
                    words,
                )
            }
            CartTarget::Classes(n) => {
                let mut weights = vec![0.0; n];
                for (&class, &weight) in training_set.target.iter().zip(&training_set.weight) {
                    weights[class as usize] += f64::from(weight);
                }
                let rows = self.shares(training_set);
                let wrong = rows.iter().filter(|(shares, class, _)| {
                    shares.iter().any(|share| *share > shares[*class])
                });
                let wrong: f64 = wrong.map(|row| row.2).sum();
                let total: f64 = rows.iter().map(|row| row.2).sum();
                let words = if rows.is_empty() {
                    String::new()
                } else {
                    format!(", error out of bag {:.4}", wrong / total)
                };
                (
                    ForestNoise::plain_classes(&weights).fit_classes(&rows),
                    words,
                )
            }
        }
    }

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

    fn shares(&self, training_set: &TreeTrainingSet) -> Vec<(Vec<f64>, usize, f64)> {
        let rows = self.sums.chunks_exact(self.width).enumerate();
        let rows = rows.filter(|(_, sums)| sums[0] >= 1.0);
        rows.map(|(row, sums)| {
            let shares = sums[1..].iter().map(|sum| sum / sums[0]).collect();
            (
                shares,
                training_set.target[row] as usize,
                f64::from(training_set.weight[row]),
            )
        })
        .collect()
    }
}
