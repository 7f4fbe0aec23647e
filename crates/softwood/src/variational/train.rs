//! One training run: minibatch steps on the ELBO with a cosine step size, watched on held-out rows.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::model::CurvePoint;
use crate::rng::{Key, shuffle};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::likelihood::SoftLikelihood;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::optimizer_state::OptimizerState;

/// What a run trains, and where it starts.
pub(crate) struct TrainingRun<'a> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) spec: SoftTreeSpec,
    pub(crate) train: &'a EncodedRows,
    pub(crate) held_out: Option<&'a EncodedRows>,
    pub(crate) start: LowRank,
    pub(crate) schedule: TrainingSchedule,
    /// Whether the start is a fitted posterior: then the KL term counts in full at once.
    pub(crate) is_warm: bool,
    /// Whether the scale channel stays as it is.
    pub(crate) keeps_scale: bool,
    /// What earlier trees say, drawn anew for every epoch; none where it stays as the rows have it.
    pub(crate) redraw_offset: Option<&'a dyn Fn(usize) -> Vec<f32>>,
}

impl TrainingRun<'_> {
    /// Epochs at the beginning that have one noise for all rows, which is then set free: a scale of its own for every row would explain what the mean
    /// has not learned yet as noise, and hide it from the mean. Components part rows by their noise from the start.
    pub(crate) fn n_homoscedastic_epochs(&self) -> usize {
        let stack = &self.spec.stack;
        let is_one_blend = stack.first.n_components() == 1 && !stack.has_offset;
        let has_scale = matches!(self.spec.likelihood, SoftLikelihood::Normal { .. });
        if self.config.homoscedastic_warmup && has_scale && is_one_blend && !self.is_warm {
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
    /// Mean held-out log-likelihood in standard units at the epoch kept; NaN where nothing is held out.
    pub(crate) held_out: f64,
    /// Log-likelihood of each held-out row at the epoch kept.
    pub(crate) row_scores: Vec<f64>,
    pub(crate) curve: Vec<CurvePoint>,
}

/// Part of a run that one noise for all rows takes, where it comes first: it ends before held-out rows are looked at.
const HOMOSCEDASTIC_WARMUP: f64 = 0.4;
/// Looks at the held-out rows in one run.
const N_LOOKS: usize = 25;

/// Hears of every epoch, with the latest look; may ask to stop.
pub(crate) type OnEpoch<'a> = &'a mut dyn FnMut(usize, &CurvePoint) -> ControlFlow<()>;

/// Trains a posterior.
///
/// # Errors
/// When asked to stop, or when the ELBO leaves the finite numbers.
pub(crate) fn train(
    training_run: &TrainingRun<'_>,
    key: Key,
    on_epoch: OnEpoch<'_>,
) -> Result<Trained> {
    let mut state = OptimizerState::new(training_run, key);
    let schedule = &training_run.schedule;
    let n_rows = training_run.train.n_rows();
    let mut order: Vec<usize> = (0..n_rows).collect();
    let steps_per_epoch = n_rows.div_ceil(schedule.batch_size);
    let n_steps = schedule.n_epochs * steps_per_epoch;
    let look_every = schedule.n_epochs.div_ceil(N_LOOKS);
    let mut best: Option<BestEpoch> = None;
    let mut curve = Vec::new();
    let mut latest = CurvePoint {
        epoch: 0,
        elbo: f64::NAN,
        held_out: None,
    };
    for epoch in 0..schedule.n_epochs {
        if epoch == training_run.n_homoscedastic_epochs() {
            state.free_noise(training_run.spec.likelihood);
        }
        shuffle(&mut key.child(3).child(epoch as u64).rng(), &mut order);
        if let Some(redraw_offset) = training_run.redraw_offset {
            state.offset = redraw_offset(epoch);
        }
        let mut score = 0.0;
        for (at, rows) in order.chunks(schedule.batch_size).enumerate() {
            let step = epoch * steps_per_epoch + at;
            let progress = step as f64 / n_steps as f64;
            let rate = schedule.learning_rate_at(progress);
            if !training_run.is_warm {
                state.anneal(progress);
            }
            score += state.step(training_run.train, rows, rate as f32);
        }
        let is_last = epoch + 1 == schedule.n_epochs;
        if is_last || (epoch + 1) % look_every == 0 {
            let scores;
            (latest, scores) = state.look(
                training_run,
                epoch + 1,
                score,
                key.child(4).child(epoch as u64),
            );
            if !latest.elbo.is_finite() {
                let what = "the ELBO is not finite".to_owned();
                return Err(Error::Diverged {
                    step: epoch + 1,
                    what,
                });
            }
            curve.push(latest);
            // before the end of the warm-up the posterior is not yet that of the full KL term
            let is_warm = training_run.is_warm || is_last || schedule.is_annealed(epoch + 1);
            if let Some(held_out) = latest.held_out
                && is_warm
                && best.as_ref().is_none_or(|best| {
                    held_out > best.held_out || !training_run.config.early_stopping
                })
            {
                best = Some(BestEpoch {
                    held_out,
                    spec: state.spec,
                    posterior: state.posterior.clone(),
                    scores,
                });
            }
        }
        state.learn_noise(training_run.train.total_weight, score);
        if on_epoch(epoch + 1, &latest).is_break() {
            return Err(Error::Cancelled);
        }
    }
    let best = best.unwrap_or(BestEpoch {
        held_out: f64::NAN,
        spec: state.spec,
        posterior: state.posterior,
        scores: Vec::new(),
    });
    Ok(Trained {
        spec: best.spec,
        posterior: best.posterior,
        held_out: best.held_out,
        row_scores: best.scores,
        curve,
    })
}

/// The fits that did not diverge; an error where all did, or where one was stopped.
///
/// # Errors
/// As said.
pub(crate) fn converged<T>(fits: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut kept = Vec::with_capacity(fits.len());
    let mut failure = None;
    for fit in fits {
        match fit {
            Ok(fit) => kept.push(fit),
            Err(error @ Error::Diverged { .. }) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failure {
        Some(error) if kept.is_empty() => Err(error),
        _ => Ok(kept),
    }
}

/// Where held-out rows were foretold best.
struct BestEpoch {
    held_out: f64,
    spec: SoftTreeSpec,
    posterior: LowRank,
    scores: Vec<f64>,
}
