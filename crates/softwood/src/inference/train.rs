//! One training run of any [`Objective`]: minibatch steps on the ELBO with a cosine learning rate
//! and KL annealing, evaluated on the validation set at regular intervals.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::objective::{Objective, ValidationScores};
use crate::inference::optimizer_state::OptimizerState;
use crate::inference::prior::WeightPrior;
use crate::inference::schedule::TrainingSchedule;
use crate::rng::{Key, shuffle};
use crate::stop::{self, Stop};

/// Number of evaluations on the validation set in one run.
const N_EVALUATIONS: usize = 25;

/// Children of the key of a training run.
pub(crate) mod streams {
    /// Posterior draws of the optimiser steps.
    pub(crate) const STEP_DRAWS: u64 = 2;
    /// Order of the rows; epoch `i` has child `i`.
    pub(crate) const ROW_ORDER: u64 = 3;
    /// Posterior draws that score validation rows; epoch `i` has child `i`.
    pub(crate) const EVALUATION: u64 = 4;
}

/// Initial posterior, prior and schedule of a run.
#[derive(Debug, Clone)]
pub(crate) struct PosteriorRun {
    /// Initial posterior.
    pub(crate) start: LowRank,
    pub(crate) prior: WeightPrior,
    /// Factor of the KL term; 1 for the ELBO.
    pub(crate) kl_weight: f64,
    pub(crate) schedule: TrainingSchedule,
    /// Whether the epoch with the best validation score is selected, rather than the last one.
    pub(crate) early_stopping: bool,
    /// Whether the initial posterior is fitted already: the KL term is then not annealed.
    pub(crate) is_warm_start: bool,
    /// Number of evaluations without a better validation score after which the run ends; `None` for
    /// a run of all epochs. Only with `early_stopping`.
    pub(crate) patience: Option<usize>,
}

/// Evaluation of a posterior during a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EpochEvaluation {
    /// Number of epochs so far.
    pub(crate) epoch: usize,
    /// Evidence lower bound per unit of row weight.
    pub(crate) elbo: f64,
    /// Mean log density of the validation rows; `None` without a validation set.
    pub(crate) validation_score: Option<f64>,
}

impl EpochEvaluation {
    /// Before the first evaluation.
    const NONE: Self = Self {
        epoch: 0,
        elbo: f64::NAN,
        validation_score: None,
    };
}

/// A run after an epoch.
pub(crate) struct EpochReport<'a, S> {
    /// Number of epochs so far.
    pub(crate) epoch: usize,
    /// The latest evaluation.
    pub(crate) evaluation: EpochEvaluation,
    /// Copies the best epoch so far, or the present one without a validation set; `None` before the
    /// KL term has its full weight.
    pub(crate) copy_best: Option<&'a dyn Fn() -> TrainedPosterior<S>>,
}

/// Callback after every epoch; it may stop the run and keep or discard its best epoch so far.
pub(crate) type OnEpoch<'a, S> = &'a mut dyn FnMut(&EpochReport<'_, S>) -> ControlFlow<Stop>;

/// A trained posterior and the state of its objective.
#[derive(Debug, Clone)]
pub(crate) struct TrainedPosterior<S> {
    pub(crate) posterior: LowRank,
    pub(crate) state: S,
    /// Scores of the validation rows at the selected epoch; `None` without a validation set.
    pub(crate) scores: Option<ValidationScores>,
    /// All evaluations of the run.
    pub(crate) curve: Vec<EpochEvaluation>,
    /// Whether the callback stopped the run.
    pub(crate) is_stopped: bool,
    /// Whether the run had all its epochs.
    pub(crate) is_complete: bool,
}

impl<S> TrainedPosterior<S> {
    /// A posterior of a stopped run, without its curve.
    fn stopped(posterior: LowRank, state: S, scores: Option<ValidationScores>) -> Self {
        Self {
            posterior,
            state,
            scores,
            curve: Vec::new(),
            is_stopped: true,
            is_complete: false,
        }
    }
}

/// Trains a posterior.
///
/// # Errors
/// When `on_epoch` discards the run, the work is cancelled, or the ELBO is not finite.
pub(crate) fn train<O: Objective>(
    objective: &mut O,
    run: PosteriorRun,
    key: Key,
    on_epoch: OnEpoch<'_, O::State>,
) -> Result<TrainedPosterior<O::State>> {
    let PosteriorRun {
        schedule,
        early_stopping,
        is_warm_start,
        patience,
        ..
    } = run;
    let mut state = OptimizerState::new(objective, run, key);
    let mut order: Vec<usize> = (0..objective.n_rows()).collect();
    let evaluate_every = schedule.n_epochs.div_ceil(N_EVALUATIONS);
    let mut best: Option<BestEpoch<O::State>> = None;
    let mut curve = Vec::new();
    let mut n_worse = 0;
    let (mut is_stopped, mut is_complete) = (false, true);
    let mut latest = EpochEvaluation::NONE;
    for epoch in 0..schedule.n_epochs {
        objective.start_epoch(epoch, &mut state.posterior);
        let order_key = key.child(streams::ROW_ORDER);
        shuffle(&mut order_key.child(epoch as u64).rng(), &mut order);
        let steps = EpochSteps {
            schedule: &schedule,
            epoch,
            is_annealed: !is_warm_start,
        };
        let log_likelihood = steps.run(&mut state, objective, &order)?;
        let is_last = epoch + 1 == schedule.n_epochs;
        let evaluation_key = key.child(streams::EVALUATION).child(epoch as u64);
        if is_last || (epoch + 1) % evaluate_every == 0 {
            let scores;
            (latest, scores) = state.evaluate(objective, epoch + 1, log_likelihood, evaluation_key);
            stop::check()?;
            check_finite(&latest)?;
            curve.push(latest);
            // an epoch before the end of KL annealing cannot be selected: its posterior maximises
            // another objective
            let is_eligible = is_warm_start || is_last || schedule.is_annealed(epoch + 1);
            if let Some(scores) = scores
                && is_eligible
                && best
                    .as_ref()
                    .is_none_or(|best| scores.mean > best.scores.mean || !early_stopping)
            {
                best = Some(BestEpoch {
                    state: objective.state(),
                    posterior: state.posterior.clone(),
                    scores,
                });
                n_worse = 0;
            } else if best.is_some() {
                n_worse += 1;
            }
        }
        objective.end_epoch(log_likelihood);
        let is_annealed = is_warm_start || schedule.is_annealed(epoch + 1);
        let copy_best = || match &best {
            Some(best) => best.clone().trained(Vec::new()),
            None => TrainedPosterior::stopped(state.posterior.clone(), objective.state(), None),
        };
        let report = EpochReport {
            epoch: epoch + 1,
            evaluation: latest,
            copy_best: is_annealed.then_some(&copy_best),
        };
        match on_epoch(&report) {
            ControlFlow::Continue(()) if early_stopping && patience == Some(n_worse) => break,
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
            ControlFlow::Break(Stop::Keep) if best.is_some() || is_last => {
                is_stopped = true;
                is_complete = is_last;
                break;
            }
            ControlFlow::Break(Stop::Keep) => {
                objective.end_early(&mut state.posterior);
                let (evaluation, scores) =
                    state.evaluate(objective, epoch + 1, log_likelihood, evaluation_key);
                check_finite(&evaluation)?;
                curve.retain(|point| point.epoch <= epoch);
                curve.push(evaluation);
                return Ok(TrainedPosterior {
                    curve,
                    ..TrainedPosterior::stopped(state.posterior, objective.state(), scores)
                });
            }
        }
    }
    Ok(match best {
        Some(best) => TrainedPosterior {
            is_stopped,
            is_complete,
            ..best.trained(curve)
        },
        None => TrainedPosterior {
            curve,
            is_stopped,
            is_complete,
            ..TrainedPosterior::stopped(state.posterior, objective.state(), None)
        },
    })
}

/// The epoch with the highest validation score so far.
#[derive(Clone)]
struct BestEpoch<S> {
    state: S,
    posterior: LowRank,
    scores: ValidationScores,
}

impl<S> BestEpoch<S> {
    /// The posterior of this epoch as the result of a stopped run.
    fn trained(self, curve: Vec<EpochEvaluation>) -> TrainedPosterior<S> {
        TrainedPosterior {
            curve,
            ..TrainedPosterior::stopped(self.posterior, self.state, Some(self.scores))
        }
    }
}

/// Fails if the ELBO is not finite.
fn check_finite(evaluation: &EpochEvaluation) -> Result<()> {
    if evaluation.elbo.is_finite() {
        return Ok(());
    }
    Err(Error::Diverged {
        step: evaluation.epoch,
        what: "the ELBO is not finite".to_owned(),
    })
}

/// The steps of one epoch.
struct EpochSteps<'a> {
    schedule: &'a TrainingSchedule,
    epoch: usize,
    /// Whether the KL term is annealed in this run.
    is_annealed: bool,
}

impl EpochSteps<'_> {
    /// Runs the steps on all rows in this order; returns the weighted log-likelihood of the rows
    /// during them.
    ///
    /// # Errors
    /// When the work is cancelled.
    fn run<O: Objective>(
        &self,
        state: &mut OptimizerState,
        objective: &mut O,
        order: &[usize],
    ) -> Result<f64> {
        let schedule = self.schedule;
        let steps_per_epoch = order.len().div_ceil(schedule.batch_size);
        let n_steps = schedule.n_epochs * steps_per_epoch;
        let mut log_likelihood = 0.0;
        for (at, rows) in order.chunks(schedule.batch_size).enumerate() {
            stop::check()?;
            let step = self.epoch * steps_per_epoch + at;
            let progress = step as f64 / n_steps as f64;
            let rate = schedule.learning_rate_at(progress);
            if self.is_annealed {
                state.anneal(progress);
            }
            log_likelihood += state.step(objective, rows, rate as f32);
        }
        Ok(log_likelihood)
    }
}
