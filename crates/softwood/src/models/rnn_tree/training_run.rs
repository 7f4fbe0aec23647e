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
use crate::recurrent::batches::{RouteBatches, RouteInputs, gather};
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::objective::{EntropyTerms, RouteObjective};
use crate::recurrent::schedule::RouteSchedule;
use crate::rng::Key;
use crate::stop::{self, Stop};
use crate::trees::training_set::TreeInputs;

/// Number of times that the hard tree is scored in a run.
const N_SCORES: usize = 75;
/// Default of the largest batch.
const MAX_BATCH: usize = 1024;
/// Learning rate of the leaf constants, relative to that of the network.
const LEAF_RATE: f64 = 3.0;

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
        let inputs = RouteInputs {
            scores: &rows.scores,
            weight: &rows.weight,
            n_rows: rows.train.rows.len(),
        };
        let size = params.batch_size.unwrap_or(MAX_BATCH);
        let mut batches = RouteBatches::new(inputs, size, shape.depth)?;
        let n_batch = batches.rows().weight.len();
        let mut of_batch = vec![0.0_f32; n_batch];
        let schedule = schedule(params);
        let entropy = EntropyTerms {
            kl_weight: params.kl_weight,
            row_sign: match params.route_entropy {
                RouteEntropy::Elbo => 1.0,
                RouteEntropy::MutualInformation => -1.0,
            },
        };
        RouteObjective::<f32>::check_memory(shape, n_batch)?;
        let mut objective = RouteObjective::new(*shape, n_batch, entropy, schedule.sharpness(0.0));
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
            let rate = schedule.learning_rate(progress);
            objective.set_sharpness(schedule.sharpness(progress));
            objective.set_kl_weight(schedule.kl_weight(progress));
            let chosen = batches.draw(&mut rng);
            let target = if chosen.is_empty() {
                &rows.target
            } else {
                gather(&rows.target, chosen, &mut of_batch);
                &of_batch
            };
            let data = batches.rows();
            let total: f64 = data.weight.iter().map(|&w| f64::from(w)).sum();
            gradient.fill(0.0);
            let (value, sums) =
                leaves.evaluate(&mut objective, &weights, &data, target, &mut gradient);
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
            inputs: TreeInputs::new(rows.set, self.schema, params.n_members, key)
                .extrapolating(self.run.extrapolation),
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
}

/// Learning rate, KL weight and sharpness of a run.
fn schedule(params: &RnnTreeParams) -> RouteSchedule {
    RouteSchedule {
        learning_rate: params.learning_rate,
        kl_weight: params.kl_weight,
        initial_sharpness: params.initial_sharpness,
        final_sharpness: params.final_sharpness,
        decision_sharpness: params.decision_sharpness,
    }
}

/// Key of the posterior draws of a tree.
pub(super) fn member_key(key: Key, tree: usize) -> Key {
    key.child(streams::MEMBERS).child(tree as u64)
}
