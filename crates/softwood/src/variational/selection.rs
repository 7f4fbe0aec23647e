//! Model selection by validation log-likelihood: short training runs of many candidates, longer
//! runs of the best ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoding;
use crate::data::split::n_raw_rows;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::inference::schedule::TrainingSchedule;
use crate::model::Trial;
use crate::rng::Key;
use crate::soft::layout::TreeLayout as _;
use crate::stop;
use crate::variational::candidate::{
    Candidate, other_encodings, plain_encoding, shapes, small_enough,
};
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::encoding_cache::EncodingCache;
use crate::variational::fit_rows::FitRows;
use crate::variational::streams;
use crate::variational::train::{
    OnSoftTreeEpoch, RunPlace, SoftTreeEpoch, Trained, TrainingRun, train,
};

/// The result of training a candidate.
pub(crate) trait SelectionRun: Clone + Send + Sync {
    /// Mean validation log-likelihood in standard units; NaN without a validation set.
    fn validation_score(&self) -> f64;

    /// Log-likelihood of each validation row.
    fn row_scores(&self) -> &[f64];

    /// Whether the observer stopped the run.
    fn is_stopped(&self) -> bool;
}

impl SelectionRun for Trained {
    fn validation_score(&self) -> f64 {
        self.validation_score
    }

    fn row_scores(&self) -> &[f64] {
        &self.row_scores
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

/// Trains a candidate on encoded rows, and reports its epochs at a place of the fit.
pub(crate) type TrainCandidate<'a, T> = &'a (
        dyn Fn(&EncodedSplit, &Candidate, TrainingSchedule, Key, &RunPlace<'_>) -> Result<T> + Sync
    );

/// Maximum distance from the best validation score of a candidate that is averaged with the best. A
/// useless fit among four would cost ln(4/3) = 0.29 nats.
const MAX_SCORE_GAP: f64 = 0.1;
/// Maximum distance in standard errors of the mean score difference.
const MAX_STANDARD_ERRORS: f64 = 2.0;
/// Maximum number of shapes in the second round.
const MAX_FINALISTS: usize = 3;

/// A round of model selection.
#[derive(Debug, Clone, Copy)]
struct SelectionRound {
    /// Name of the stage for the observer.
    stage: &'static str,
    /// Length of the training runs as a fraction of a full run.
    fraction: f64,
}

/// All shapes in the plain encoding.
const SHAPE_ROUND: SelectionRound = SelectionRound {
    stage: "choosing",
    fraction: 0.1,
};
/// The best shapes, and the best one in other encodings.
const ENCODING_ROUND: SelectionRound = SelectionRound {
    stage: "choosing again",
    fraction: 0.25,
};

/// Configuration and data of model selection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectionContext<'a> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) train: &'a Dataset,
    pub(crate) validation: Option<&'a Dataset>,
    /// These rows in the encodings of the candidates.
    pub(crate) encodings: &'a EncodingCache,
    /// Number of training rows before deduplication.
    pub(crate) n_rows: usize,
    pub(crate) scale: TargetScale,
    /// Schedule of a full training run.
    pub(crate) schedule: TrainingSchedule,
    pub(crate) run: &'a Run<'a>,
}

impl<'a> SelectionContext<'a> {
    pub(crate) fn new(
        config: &'a SoftTreeConfig,
        rows: &'a FitRows<'_>,
        encodings: &'a EncodingCache,
        run: &'a Run<'a>,
    ) -> Self {
        let train = rows.train();
        Self {
            config,
            train,
            validation: rows.validation(),
            encodings,
            n_rows: n_raw_rows(train),
            scale: TargetScale::of(train, config),
            schedule: config.schedule(train),
            run,
        }
    }

    /// Training and validation rows in an encoding.
    pub(crate) fn encode(&self, encoding: Encoding) -> Arc<EncodedSplit> {
        self.encodings.get(encoding, || {
            EncodedSplit::new(self.train, self.validation, self.scale, encoding)
        })
    }
}

/// Trains one tree with the shape of a candidate.
pub(crate) fn train_candidate(
    context: &SelectionContext<'_>,
    split: &EncodedSplit,
    candidate: &Candidate,
    schedule: TrainingSchedule,
    key: Key,
    on_epoch: OnSoftTreeEpoch<'_>,
) -> Result<Trained> {
    stop::check()?;
    let initial_key = key.child(streams::fit::INITIAL_POSTERIOR);
    let (spec, start) = candidate.initialize(context.config, split, initial_key);
    stop::check()?;
    let training_run = TrainingRun {
        config: context.config,
        spec,
        train: &split.train,
        validation: split.validation.as_ref(),
        start,
        schedule,
        is_warm_start: false,
        freezes_scale: false,
        redraw_offset: None,
    };
    train(&training_run, key, on_epoch)
}

/// A candidate and its training run in the last round, if there was one that did not diverge.
#[derive(Debug, Clone)]
pub(crate) struct RankedCandidate<T = Trained> {
    pub(crate) candidate: Candidate,
    pub(crate) short_run: Option<T>,
}

/// The result of model selection.
#[derive(Debug)]
pub(crate) struct Selection<T = Trained> {
    /// The candidates near the best one, best first.
    pub(crate) ranking: Vec<RankedCandidate<T>>,
    /// All trials.
    pub(crate) trials: Vec<Trial>,
    /// Whether the observer stopped the selection and keeps the best candidates. They all have a
    /// short run then.
    pub(crate) is_stopped: bool,
}

impl<T: SelectionRun> RankedCandidate<T> {
    fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            short_run: None,
        }
    }

    fn is_blend(&self) -> bool {
        self.candidate.is_blend()
    }

    /// Validation score of the short run; negative infinity without one.
    fn validation_score(&self) -> f64 {
        let score = self.short_run.as_ref().map(T::validation_score);
        score
            .filter(|score| !score.is_nan())
            .unwrap_or(f64::NEG_INFINITY)
    }

    /// The better of a full run and the short one: on few rows, a shorter run may generalise
    /// better.
    pub(crate) fn better(&self, full: T) -> T {
        match &self.short_run {
            Some(short) if short.validation_score() > full.validation_score() => short.clone(),
            _ => full,
        }
    }
}

/// Selects the candidates near the best one.
///
/// # Errors
/// When the observer discards the fit, or stops it before a candidate has converged.
pub(crate) fn select(context: &SelectionContext<'_>) -> Result<Selection> {
    select_by(context, &|split, candidate, schedule, key, place| {
        let on_epoch = &mut |report: &SoftTreeEpoch<'_>| place.report(context.run, report, None);
        train_candidate(context, split, candidate, schedule, key, on_epoch)
    })
}

/// Selects the candidates near the best one, whose training is given.
///
/// # Errors
/// As [`select`].
pub(crate) fn select_by<T: SelectionRun>(
    context: &SelectionContext<'_>,
    train: TrainCandidate<'_, T>,
) -> Result<Selection<T>> {
    let config = context.config;
    let encoding = plain_encoding(config);
    let mut shapes = shapes(config, context.n_rows, context.validation.is_some());
    if shapes.len() > 1 {
        let split = context.encode(encoding);
        stop::check()?;
        shapes = small_enough(shapes, context.n_rows, |shape| {
            shape.layout(&split).n_weights()
        });
    }
    let mut candidates: Vec<RankedCandidate<T>> = shapes
        .into_iter()
        .map(|shape| RankedCandidate::new(Candidate { shape, encoding }))
        .collect();
    let mut trials = Vec::new();
    if context.validation.is_none() {
        return Ok(Selection {
            ranking: candidates,
            trials,
            is_stopped: false,
        });
    }
    let mut is_stopped = false;
    if candidates.len() > 1 {
        (candidates, is_stopped) = rank(context, candidates, train, SHAPE_ROUND, &mut trials)?;
        if config.prefers_blend {
            candidates = blends_first(candidates);
        }
        candidates.truncate(MAX_FINALISTS);
    }
    let encodings = other_encodings(config, context.train.features());
    if !is_stopped && (!encodings.is_empty() || candidates.len() > 1) {
        let best = candidates[0].candidate;
        let others = encodings.into_iter();
        candidates
            .extend(others.map(|encoding| RankedCandidate::new(Candidate { encoding, ..best })));
        (candidates, is_stopped) = rank(context, candidates, train, ENCODING_ROUND, &mut trials)?;
        candidates = near_best(candidates);
        if config.prefers_blend && candidates.iter().any(RankedCandidate::is_blend) {
            candidates.retain(RankedCandidate::is_blend);
        }
    }
    if is_stopped {
        candidates = near_best(candidates);
        candidates.retain(|ranked| ranked.short_run.is_some());
        if candidates.is_empty() {
            return Err(Error::Cancelled);
        }
    }
    Ok(Selection {
        ranking: candidates,
        trials,
        is_stopped,
    })
}

/// The blends near the best candidate, then all others; both in the order of their scores.
fn blends_first<T: SelectionRun>(candidates: Vec<RankedCandidate<T>>) -> Vec<RankedCandidate<T>> {
    let near = near_best(candidates.clone());
    let is_near_blend = |ranked: &RankedCandidate<T>| {
        let candidate = &ranked.candidate;
        ranked.is_blend() && near.iter().any(|near| near.candidate == *candidate)
    };
    let (mut blends, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_near_blend);
    blends.extend(others);
    blends
}

/// The candidates whose validation scores are near those of the first one.
fn near_best<T: SelectionRun>(mut candidates: Vec<RankedCandidate<T>>) -> Vec<RankedCandidate<T>> {
    let Some(best) = candidates.first().and_then(|first| first.short_run.clone()) else {
        return candidates;
    };
    candidates.retain(|ranked| {
        (ranked.short_run.as_ref()).is_some_and(|run| is_near(best.row_scores(), run.row_scores()))
    });
    candidates
}

/// Whether the mean score of a candidate is within [`MAX_SCORE_GAP`] and [`MAX_STANDARD_ERRORS`] of
/// the best one.
fn is_near(best: &[f64], scores: &[f64]) -> bool {
    let n = best.len() as f64;
    let gap = |at: usize| best[at] - scores[at];
    let mean = (0..best.len()).map(gap).sum::<f64>() / n;
    let square = |at: usize| (gap(at) - mean).powi(2);
    let variance = (0..best.len()).map(square).sum::<f64>() / n;
    let standard_error = (variance / n).sqrt();
    mean <= (MAX_STANDARD_ERRORS * standard_error).min(MAX_SCORE_GAP)
}

/// Candidates after the training runs of a round, best first, and whether the observer stopped the
/// round. A run that diverges or was not started comes last.
fn rank<T: SelectionRun>(
    context: &SelectionContext<'_>,
    candidates: Vec<RankedCandidate<T>>,
    train: TrainCandidate<'_, T>,
    round: SelectionRound,
    trials: &mut Vec<Trial>,
) -> Result<(Vec<RankedCandidate<T>>, bool)> {
    let n_candidates = candidates.len();
    let schedule = context.schedule.part(round.fraction);
    // all candidates of a round share their random numbers: differences are due to the candidates
    let key = context.run.key.child(streams::run::SELECTION);
    let is_stopped = AtomicBool::new(false);
    let runs = context.run.pool.map(n_candidates, |at| {
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let candidate = &candidates[at].candidate;
        let split = context.encode(candidate.encoding);
        let place = RunPlace {
            at,
            n_runs: n_candidates,
            trial: Some(at),
            ..RunPlace::new(round.stage, schedule.n_epochs)
        };
        let trained = train(&split, candidate, schedule, key, &place)?;
        is_stopped.fetch_or(trained.is_stopped(), Ordering::Relaxed);
        Ok(Some(trained))
    });
    let is_stopped = is_stopped.into_inner();
    let mut ranked = Vec::with_capacity(n_candidates);
    for (earlier, run) in candidates.into_iter().zip(runs) {
        let candidate = earlier.candidate;
        let short_run = match run {
            Ok(trained) => trained,
            Err(Error::Diverged { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(trained) = &short_run {
            trials.push(Trial {
                what: candidate.describe(),
                held_out: trained.validation_score(),
            });
        }
        // the runs of a stopped round may be worse than those of the round before
        let short_run = match short_run {
            Some(trained) if is_stopped => Some(earlier.better(trained)),
            None if is_stopped => earlier.short_run,
            short_run => short_run,
        };
        ranked.push(RankedCandidate {
            candidate,
            short_run,
        });
    }
    ranked.sort_by(|a, b| b.validation_score().total_cmp(&a.validation_score()));
    Ok((ranked, is_stopped))
}
