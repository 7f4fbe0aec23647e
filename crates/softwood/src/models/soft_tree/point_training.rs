//! Training of the weights of a soft tree as point estimates: Adam on the penalised log-likelihood
//! of minibatches, with a cosine learning rate, keeping the weights with the best validation score.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::inference::adam::Adam;
use crate::rng::{Key, shuffle};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::soft::tree::{Workspace, log_likelihood};
use crate::stop::{self, Stop};
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::minibatch::{Minibatch, score_rows};

/// Number of evaluations on the validation set in one run.
const N_EVALUATIONS: usize = 12;

/// Length, minibatches and learning rate of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PointSchedule {
    pub(super) n_epochs: usize,
    pub(super) batch_size: usize,
    /// Peak learning rate.
    pub(super) learning_rate: f64,
}

impl PointSchedule {
    /// A run of about `n_steps` steps on `n_rows` rows.
    pub(super) fn new(n_rows: usize, n_steps: usize, learning_rate: f64) -> Self {
        let batch_size = match n_rows {
            ..2_000 => 64,
            2_000..10_000 => 128,
            _ => 256,
        };
        let n_epochs = n_steps.div_ceil(n_rows.div_ceil(batch_size).max(1));
        Self {
            n_epochs: n_epochs.max(2),
            batch_size,
            learning_rate,
        }
    }
}

/// A tree, its rows and the Normal penalty on its weights.
pub(super) struct PointRun<'a, L> {
    pub(super) spec: &'a SoftTreeSpec<L>,
    pub(super) train: &'a EncodedRows,
    pub(super) validation: Option<&'a EncodedRows>,
    pub(super) schedule: PointSchedule,
    /// Mean and precision of the Normal prior of each weight.
    pub(super) penalty: &'a [Penalty],
}

/// Normal prior of a weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Penalty {
    pub(super) mean: f32,
    pub(super) precision: f32,
}

/// Trained weights.
#[derive(Debug, Clone)]
pub(super) struct PointFit {
    pub(super) weights: Vec<f32>,
    /// Log-likelihood of each validation row; of each training row without a validation set.
    pub(super) row_scores: Vec<f64>,
    /// Whether the callback stopped the run.
    pub(super) is_stopped: bool,
}

/// Trains from these weights; they are kept if nothing better is found. `on_epoch` may stop the
/// run.
///
/// # Errors
/// When `on_epoch` discards the run or the work is cancelled.
pub(super) fn train<L: TreeLayout>(
    run: &PointRun<'_, L>,
    start: Vec<f32>,
    key: Key,
    on_epoch: &mut dyn FnMut(usize) -> ControlFlow<Stop>,
) -> Result<PointFit> {
    let PointSchedule {
        n_epochs,
        batch_size,
        ..
    } = run.schedule;
    let judged = run.validation.unwrap_or(run.train);
    let score = |weights: &[f32]| {
        let of_rows = score_rows(run.spec, weights, judged);
        let penalty = if run.validation.is_none() {
            run.penalty_of(weights) / run.train.total_weight
        } else {
            0.0
        };
        (judged.mean(&of_rows) - penalty, of_rows)
    };
    let (mut best_score, mut row_scores) = score(&start);
    let mut best = start.clone();
    let mut weights = start;
    let mut steps = Steps::new(run);
    let mut order: Vec<usize> = (0..run.train.n_rows()).collect();
    let steps_per_epoch = order.len().div_ceil(batch_size);
    let n_steps = (n_epochs * steps_per_epoch) as f64;
    let evaluate_every = n_epochs.div_ceil(N_EVALUATIONS);
    let mut is_stopped = false;
    for epoch in 0..n_epochs {
        shuffle(&mut key.child(epoch as u64).rng(), &mut order);
        for (at, rows) in order.chunks(batch_size).enumerate() {
            stop::check()?;
            let progress = (epoch * steps_per_epoch + at) as f64 / n_steps;
            steps.step(run, &mut weights, rows, progress);
        }
        let decision = on_epoch(epoch + 1);
        if decision == ControlFlow::Break(Stop::Discard) {
            return Err(Error::Cancelled);
        }
        is_stopped = decision.is_break();
        if is_stopped || epoch + 1 == n_epochs || (epoch + 1) % evaluate_every == 0 {
            let (mean, of_rows) = score(&weights);
            stop::check()?;
            if mean > best_score {
                best_score = mean;
                best.copy_from_slice(&weights);
                row_scores = of_rows;
            }
        }
        if is_stopped {
            break;
        }
    }
    Ok(PointFit {
        weights: best,
        row_scores,
        is_stopped,
    })
}

impl<L: TreeLayout> PointRun<'_, L> {
    /// Negative log density of the prior, up to a constant.
    fn penalty_of(&self, weights: &[f32]) -> f64 {
        let terms = self.penalty.iter().zip(weights).map(|(penalty, &weight)| {
            0.5 * f64::from(penalty.precision) * f64::from(weight - penalty.mean).powi(2)
        });
        terms.sum()
    }
}

/// Buffers and optimiser state of a run.
struct Steps {
    batch: Minibatch,
    workspace: Workspace<f32>,
    adam: Adam,
    gradient: Vec<f32>,
}

impl Steps {
    fn new<L: TreeLayout>(run: &PointRun<'_, L>) -> Self {
        let n_weights = run.spec.stack.n_weights();
        let batch_size = run.schedule.batch_size.min(run.train.n_rows());
        Self {
            batch: Minibatch::new(batch_size, &run.spec.stack),
            workspace: Workspace::new(run.spec, batch_size, 1),
            adam: Adam::new(n_weights),
            gradient: vec![0.0; n_weights],
        }
    }

    /// One step on these rows after a fraction `progress` of the run.
    fn step<L: TreeLayout>(
        &mut self,
        run: &PointRun<'_, L>,
        weights: &mut [f32],
        rows: &[usize],
        progress: f64,
    ) {
        let batch = self.batch.gather(run.train, &run.train.offset, rows);
        log_likelihood(
            run.spec,
            &batch,
            weights,
            &mut self.gradient,
            &mut self.workspace,
        );
        let total = run.train.total_weight;
        let likelihood = (run.train.n_rows() as f64 / (rows.len() as f64 * total)) as f32;
        let prior = (1.0 / total) as f32;
        for ((gradient, penalty), &weight) in
            self.gradient.iter_mut().zip(run.penalty).zip(&*weights)
        {
            *gradient =
                prior * penalty.precision * (weight - penalty.mean) - likelihood * *gradient;
        }
        let rate =
            run.schedule.learning_rate * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos());
        self.adam.step(weights, &self.gradient, rate as f32);
    }
}
