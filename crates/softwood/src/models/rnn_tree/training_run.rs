//! One training run: steps of the optimiser on batches, and the step whose hard tree has the best
//! score.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::schema::Schema;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::inference::radam::RectifiedAdam;
use crate::model::{CurvePoint, Model, Training};
use crate::models::rnn_tree::fitted::{RnnTree, RnnTreeParts};
use crate::models::rnn_tree::leaves::LeafConstants;
use crate::models::rnn_tree::params::{RnnTreeParams, RouteEntropy};
use crate::models::rnn_tree::pruning::fitted_tree;
use crate::models::rnn_tree::rows::RouteRows;
use crate::models::rnn_tree::starts::{Start, StartKind};
use crate::models::rnn_tree::streams;
use crate::models::rnn_tree::train::RESTARTS_PER_FOLD;
use crate::observer::Event;
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::objective::{BatchRows, EntropyTerms, RouteObjective};
use crate::recurrent::unroll::{BLOCK, Sharpness};
use crate::rng::{Key, shuffle, uniform};
use crate::stop::{self, Stop};
use crate::trees::training_set::TreeInputs;

/// Number of times that the hard tree is scored in a run.
const N_SCORES: usize = 75;
/// Default of the largest batch.
const MAX_BATCH: usize = 1024;
/// Learning rate of the leaf constants, relative to that of the network.
const LEAF_RATE: f64 = 3.0;

/// Factor of the logits of the inputs at the end of a run; it is 1 at the beginning.
pub(super) const FINAL_SHARE: f64 = 4.0;

/// The best network of a run.
#[derive(Debug, Clone)]
pub(super) struct TrainedNetwork {
    pub(super) weights: Vec<f32>,
    /// Weights before training.
    pub(super) start_weights: Vec<f32>,
    /// Mean log-likelihood of the validation rows in the hard tree.
    pub(super) score: f64,
    pub(super) start: StartKind,
    /// Index of its rows.
    pub(super) fold: usize,
    pub(super) curve: Vec<CurvePoint>,
}

/// What all runs of a fit share.
#[derive(Debug)]
pub(super) struct TrainingSetup<'a> {
    pub(super) params: &'a RnnTreeParams,
    pub(super) shape: NetworkShape,
    /// Training and validation rows, one entry per fold.
    pub(super) rows: &'a [RouteRows<'a>],
    pub(super) schema: &'a Schema,
    pub(super) run: &'a Run<'a>,
    /// Set when the observer stops the fit and keeps it.
    pub(super) is_stopped: &'a AtomicBool,
}

/// Rows of one step.
struct RouteBatch {
    order: Vec<u32>,
    next: usize,
    scores: Vec<f32>,
    target: Vec<f32>,
    weight: Vec<f32>,
    noise: Vec<f32>,
}

impl TrainingSetup<'_> {
    /// Trains one network.
    ///
    /// # Errors
    /// When the observer discards the fit, or the fit is cancelled.
    pub(super) fn train(&self, restart: usize) -> Result<TrainedNetwork> {
        let key = self.run.key.child(streams::RESTARTS).child(restart as u64);
        let kind = StartKind::of(restart);
        let Self { params, shape, .. } = self;
        let fold = restart / RESTARTS_PER_FOLD % self.rows.len();
        let rows = &self.rows[fold];
        let start = Start::new(kind, *shape, rows, self.run, key)?;
        stop::check()?;
        let Start {
            mut weights,
            leaf_values,
        } = start;
        let n_leaves = shape.n_leaves();
        let mut leaves = LeafConstants::new(rows.kind(), n_leaves, params.leaf_scale, leaf_values);
        let mut batch = self.first_batch(rows);
        let entropy = EntropyTerms {
            kl_weight: params.kl_weight,
            row_sign: match params.route_entropy {
                RouteEntropy::Elbo => 1.0,
                RouteEntropy::MutualInformation => -1.0,
            },
        };
        RouteObjective::<f32>::check_memory(shape, batch.weight.len())?;
        let mut objective =
            RouteObjective::new(*shape, batch.weight.len(), entropy, sharpness(params, 0.0));
        let mut optimiser = RectifiedAdam::new(weights.len());
        let mut gradient = vec![0.0_f32; weights.len()];
        let mut rng = key.child(streams::STEPS).rng();
        let mut best = TrainedNetwork {
            score: self.score(rows, &weights),
            weights: weights.clone(),
            start_weights: weights.clone(),
            start: kind,
            fold,
            curve: Vec::new(),
        };
        let interval = params.n_steps.div_ceil(N_SCORES);
        for step in 0..params.n_steps {
            let progress = step as f64 / params.n_steps as f64;
            let rate = params.learning_rate * schedule(progress);
            objective.set_sharpness(sharpness(params, progress));
            objective.set_kl_weight(params.kl_weight * (1.0 - progress));
            fill_batch(rows, &mut batch, &mut rng);
            let total: f64 = batch.weight.iter().map(|&w| f64::from(w)).sum();
            let is_whole = batch.order.is_empty();
            let data = BatchRows {
                inputs: if is_whole {
                    &rows.scores
                } else {
                    &batch.scores
                },
                weight: &batch.weight,
                noise: &batch.noise,
            };
            gradient.fill(0.0);
            let (value, sums) = leaves.evaluate(
                &mut objective,
                &weights,
                &data,
                &batch.target,
                &mut gradient,
            );
            for value in &mut gradient {
                *value = (f64::from(*value) / total) as f32;
            }
            optimiser.ascend(&mut weights, &gradient, rate);
            leaves.ascend(&sums, total, LEAF_RATE * rate);
            if stop::is_cancelled() {
                return Err(Error::Cancelled);
            }
            if (step + 1) % interval == 0 || step + 1 == params.n_steps {
                let score = self.score(rows, &weights);
                let point = CurvePoint::new(step + 1, value / total).with_held_out(score);
                best.curve.push(point);
                if score > best.score {
                    best.score = score;
                    best.weights.copy_from_slice(&weights);
                }
                if self.is_ended(restart, step + 1, &point, &best)? {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// Tells the observer of a step; returns whether the run ends here.
    fn is_ended(
        &self,
        restart: usize,
        step: usize,
        point: &CurvePoint,
        best: &TrainedNetwork,
    ) -> Result<bool> {
        let snapshot = || -> Result<Box<dyn Model>> { Ok(Box::new(self.snapshot(best))) };
        let event = Event {
            member: Some(restart),
            epoch: Some(step),
            elbo: Some(point.elbo),
            held_out: self.rows[0].validation.as_ref().and(point.held_out),
            ..Event::new("training", step, self.params.n_steps).with_snapshot(&snapshot)
        };
        match self.run.observer.on_event(&event) {
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
            ControlFlow::Break(Stop::Keep) => self.is_stopped.store(true, Ordering::Relaxed),
            ControlFlow::Continue(()) => {}
        }
        Ok(self.is_stopped.load(Ordering::Relaxed))
    }

    /// A model of the best step so far.
    fn snapshot(&self, best: &TrainedNetwork) -> RnnTree {
        let rows = &self.rows[best.fold];
        let (params, key) = (self.params, self.run.key);
        let floor = params.min_scale.unwrap_or(rows.set.floor);
        let tree = HardTree::new(&self.shape, &best.weights, &rows.inputs, &rows.set.cuts);
        let tree = fitted_tree(rows, &tree, floor, member_key(key, 0)).tree;
        RnnTree::new(RnnTreeParts {
            inputs: TreeInputs::new(rows.set, self.schema, params.n_members, key),
            params: params.clone(),
            training: Training {
                curve: best.curve.clone(),
                target_sd: rows.set.target_sd(),
                is_stopped: true,
                ..Training::default()
            },
            trees: vec![tree],
        })
    }

    fn score(&self, rows: &RouteRows<'_>, weights: &[f32]) -> f64 {
        let tree = HardTree::new(&self.shape, weights, &rows.inputs, &rows.set.cuts);
        let score = rows.score(&tree);
        if score.is_finite() { score } else { f64::MIN }
    }

    fn first_batch(&self, rows: &RouteRows<'_>) -> RouteBatch {
        let n_padded = rows.target.len();
        let n_rows = rows.train.rows.len();
        let size = self.params.batch_size.unwrap_or(MAX_BATCH);
        let is_whole = size >= n_rows;
        let n_batch = if is_whole {
            n_padded
        } else {
            size.next_multiple_of(BLOCK)
        };
        let empty = |n: usize| vec![0.0; if is_whole { 0 } else { n }];
        RouteBatch {
            order: if is_whole {
                Vec::new()
            } else {
                (0..n_rows as u32).collect()
            },
            next: n_rows,
            scores: empty(n_batch * self.shape.n_inputs),
            target: if is_whole {
                rows.target.clone()
            } else {
                empty(n_batch)
            },
            weight: if is_whole {
                rows.weight.clone()
            } else {
                empty(n_batch)
            },
            noise: vec![0.0; n_batch * self.shape.depth],
        }
    }
}

/// Draws the rows and the noise of a step.
fn fill_batch(rows: &RouteRows<'_>, batch: &mut RouteBatch, rng: &mut impl rand_core::Rng) {
    for noise in &mut batch.noise {
        *noise = uniform(rng) as f32 - 0.5;
    }
    if batch.order.is_empty() {
        return;
    }
    let n_batch = batch.weight.len();
    if batch.next + n_batch > batch.order.len() {
        shuffle(rng, &mut batch.order);
        batch.next = 0;
    }
    // the last rows of an epoch that do not fill a batch wait for the next shuffle
    let chosen = &batch.order[batch.next..(batch.next + n_batch).min(batch.order.len())];
    batch.next += n_batch;
    let n_padded = rows.target.len();
    for (input, scores) in batch.scores.chunks_exact_mut(n_batch).enumerate() {
        let from = &rows.scores[input * n_padded..(input + 1) * n_padded];
        for (score, &row) in scores.iter_mut().zip(chosen) {
            *score = from[row as usize];
        }
    }
    batch.weight.fill(0.0);
    for (at, &row) in chosen.iter().enumerate() {
        batch.target[at] = rows.target[row as usize];
        batch.weight[at] = rows.weight[row as usize];
    }
}

/// Sharpness over the run.
fn sharpness(params: &RnnTreeParams, progress: f64) -> Sharpness {
    let grown = params.final_sharpness / params.initial_sharpness;
    Sharpness {
        share: FINAL_SHARE.powf(progress),
        threshold: params.initial_sharpness * grown.powf(progress),
        decision: params.decision_sharpness,
    }
}

/// Learning rate over the run, relative to the largest: constant, then falling to zero as a cosine.
fn schedule(progress: f64) -> f64 {
    const CONSTANT: f64 = 0.5;
    if progress < CONSTANT {
        return 1.0;
    }
    let falling = (progress - CONSTANT) / (1.0 - CONSTANT);
    0.5 * (1.0 + (std::f64::consts::PI * falling).cos())
}

/// Key of the posterior draws of a tree.
pub(super) fn member_key(key: Key, tree: usize) -> Key {
    key.child(streams::MEMBERS).child(tree as u64)
}
