//! One training run: minibatch steps on the ELBO with a cosine learning rate, evaluated on the
//! validation set at regular intervals.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::model::CurvePoint;
use crate::observer::{Event, Observer};
use crate::rng::{Key, shuffle};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::likelihood::SoftLikelihood;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::optimizer_state::OptimizerState;
use crate::variational::streams::fit as streams;

/// Fraction of a run with one noise variance for all rows, if the run has a homoscedastic warm-up.
/// The warm-up ends before KL annealing does, and so before an epoch can be selected.
const HOMOSCEDASTIC_WARMUP: f64 = 0.4;
/// Number of evaluations on the validation set in one run.
const N_EVALUATIONS: usize = 25;

/// A model, its training data and its initial posterior.
pub(crate) struct TrainingRun<'a> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) spec: SoftTreeSpec,
    pub(crate) train: &'a EncodedRows,
    pub(crate) validation: Option<&'a EncodedRows>,
    /// Initial posterior.
    pub(crate) start: LowRank,
    pub(crate) schedule: TrainingSchedule,
    /// Whether the initial posterior is fitted already: the KL term is then not annealed.
    pub(crate) is_warm_start: bool,
    /// Whether the leaves of the scale channel stay fixed.
    pub(crate) freezes_scale: bool,
    /// Draws the offset of an epoch; `None` if the offset of the rows is used in all epochs.
    pub(crate) redraw_offset: Option<&'a dyn Fn(usize) -> Vec<f32>>,
}

impl TrainingRun<'_> {
    /// Number of initial epochs with one noise variance for all rows. A scale that depends on the
    /// inputs from the start would fit as noise what the mean has not learned yet, and so reduce
    /// the gradient of the mean. There is no warm-up for mixtures: their components need different
    /// scales from the start to separate rows by noise.
    pub(crate) fn n_homoscedastic_epochs(&self) -> usize {
        let stack = &self.spec.stack;
        let is_single_blend = stack.first.n_components() == 1 && !stack.has_offset;
        let has_scale = matches!(self.spec.likelihood, SoftLikelihood::Normal { .. });
        if self.config.homoscedastic_warmup && has_scale && is_single_blend && !self.is_warm_start {
            (HOMOSCEDASTIC_WARMUP * self.schedule.n_epochs as f64) as usize
        } else {
            0
        }
    }
}

/// A trained posterior.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) spec: SoftTreeSpec,
    pub(crate) posterior: LowRank,
    /// Mean validation log-likelihood in standard units at the selected epoch; NaN without a
    /// validation set.
    pub(crate) validation_score: f64,
    /// Log-likelihood of each validation row at the selected epoch.
    pub(crate) row_scores: Vec<f64>,
    pub(crate) curve: Vec<CurvePoint>,
}

/// Callback after every epoch, with the latest evaluation; it may stop the run.
pub(crate) type OnEpoch<'a> = &'a mut dyn FnMut(usize, &CurvePoint) -> ControlFlow<()>;

/// Trains a posterior.
///
/// # Errors
/// When `on_epoch` stops the run, or when the ELBO is not finite.
pub(crate) fn train(
    training_run: &TrainingRun<'_>,
    key: Key,
    on_epoch: OnEpoch<'_>,
) -> Result<Trained> {
    let mut state = OptimizerState::new(training_run, key);
    let schedule = &training_run.schedule;
    let mut order: Vec<usize> = (0..training_run.train.n_rows()).collect();
    let evaluate_every = schedule.n_epochs.div_ceil(N_EVALUATIONS);
    let mut best: Option<BestEpoch> = None;
    let mut curve = Vec::new();
    let mut latest = CurvePoint {
        epoch: 0,
        elbo: f64::NAN,
        held_out: None,
    };
    for epoch in 0..schedule.n_epochs {
        if epoch == training_run.n_homoscedastic_epochs() {
            state.release_noise_scale(training_run.spec.likelihood);
        }
        let order_key = key.child(streams::ROW_ORDER).child(epoch as u64);
        shuffle(&mut order_key.rng(), &mut order);
        if let Some(redraw_offset) = training_run.redraw_offset {
            state.offset = redraw_offset(epoch);
        }
        let score = train_epoch(&mut state, training_run, epoch, &order);
        let is_last = epoch + 1 == schedule.n_epochs;
        if is_last || (epoch + 1) % evaluate_every == 0 {
            let key = key.child(streams::EVALUATION).child(epoch as u64);
            let scores;
            (latest, scores) = state.evaluate(training_run, epoch + 1, score, key);
            if !latest.elbo.is_finite() {
                return Err(Error::Diverged {
                    step: epoch + 1,
                    what: "the ELBO is not finite".to_owned(),
                });
            }
            curve.push(latest);
            // an epoch before the end of KL annealing cannot be selected: its posterior maximises
            // another objective
            let is_eligible =
                training_run.is_warm_start || is_last || schedule.is_annealed(epoch + 1);
            if let Some(validation_score) = latest.held_out
                && is_eligible
                && best.as_ref().is_none_or(|best| {
                    validation_score > best.validation_score || !training_run.config.early_stopping
                })
            {
                best = Some(BestEpoch {
                    validation_score,
                    spec: state.spec,
                    posterior: state.posterior.clone(),
                    scores,
                });
            }
        }
        state.update_noise(training_run.train.total_weight, score);
        if on_epoch(epoch + 1, &latest).is_break() {
            return Err(Error::Cancelled);
        }
    }
    let best = best.unwrap_or(BestEpoch {
        validation_score: f64::NAN,
        spec: state.spec,
        posterior: state.posterior,
        scores: Vec::new(),
    });
    Ok(Trained {
        spec: best.spec,
        posterior: best.posterior,
        validation_score: best.validation_score,
        row_scores: best.scores,
        curve,
    })
}

/// The steps of one epoch; returns the weighted log-likelihood of the training rows during them.
fn train_epoch(
    state: &mut OptimizerState,
    training_run: &TrainingRun<'_>,
    epoch: usize,
    order: &[usize],
) -> f64 {
    let schedule = &training_run.schedule;
    let steps_per_epoch = order.len().div_ceil(schedule.batch_size);
    let n_steps = schedule.n_epochs * steps_per_epoch;
    let mut score = 0.0;
    for (at, rows) in order.chunks(schedule.batch_size).enumerate() {
        let step = epoch * steps_per_epoch + at;
        let progress = step as f64 / n_steps as f64;
        let rate = schedule.learning_rate_at(progress);
        if !training_run.is_warm_start {
            state.anneal(progress);
        }
        score += state.step(training_run.train, rows, rate as f32);
    }
    score
}

/// The epoch with the highest validation score so far.
struct BestEpoch {
    validation_score: f64,
    spec: SoftTreeSpec,
    posterior: LowRank,
    scores: Vec<f64>,
}

/// Reports `done` of `total` epochs of a stage to the observer of a run.
pub(crate) fn report_epoch(
    observer: &dyn Observer,
    stage: &str,
    done: usize,
    total: usize,
    point: &CurvePoint,
) -> ControlFlow<()> {
    let answer = observer.on_event(&Event {
        elbo: Some(point.elbo).filter(|elbo| elbo.is_finite()),
        held_out: point.held_out,
        ..Event::new(stage, done, total)
    });
    match answer {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(_) => ControlFlow::Break(()),
    }
}

/// The fits that did not diverge.
///
/// # Errors
/// When all fits diverged, or when one failed for another reason.
pub(crate) fn converged<T>(fits: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut converged = Vec::with_capacity(fits.len());
    let mut divergence = None;
    for fit in fits {
        match fit {
            Ok(fit) => converged.push(fit),
            Err(error @ Error::Diverged { .. }) => divergence = Some(error),
            Err(error) => return Err(error),
        }
    }
    match divergence {
        Some(error) if converged.is_empty() => Err(error),
        _ => Ok(converged),
    }
}
