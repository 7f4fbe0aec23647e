//! Cross-fitting: folds with rows of both arms, and models of the outcome and of the treatment that
//! have not seen the rows they are applied to.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::decide::causal::arm_models::ArmModels;
use crate::decide::causal::config::{CausalConfig, CausalMethod};
use crate::decide::causal::treated_rows::TreatedRows;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::observer::{CancelToken, Event, Observer};
use crate::par::Pool;
use crate::rng::{Key, shuffle};
use crate::stop::Stop;

/// Random streams of an estimation.
const FOLDS: u64 = 1;
const OUTCOME_FITS: u64 = 2;
const PROPENSITY_FITS: u64 = 3;

/// Models of the outcome and propensities of all rows.
#[derive(Debug)]
pub(super) struct CrossFit {
    /// Fold of each row.
    pub(super) fold_of: Vec<usize>,
    pub(super) n_folds: usize,
    /// One model of the outcome for all rows, or one for each fold, fitted to the other folds.
    pub(super) outcome: Vec<ArmModels>,
    /// Probability of treatment of each row, by a model that was fitted to the other folds.
    pub(super) propensity: Vec<f64>,
}

/// The result of one fit.
enum FoldFit {
    Outcome(ArmModels),
    /// Propensities of the rows of a fold.
    Propensity(Vec<f64>),
}

impl CrossFit {
    /// Fits all models; the fits of doubly robust estimation run in parallel, one thread each.
    pub(super) fn fit(data: &TreatedRows, config: &CausalConfig, run: &Run<'_>) -> Result<Self> {
        let n_folds = n_folds(data, config);
        let fold_of = folds(data, n_folds, run.key.child(FOLDS));
        let is_cross_fitted = config.method == CausalMethod::DoublyRobust;
        let single_thread = Pool::new(1)?;
        let jobs = FitJobs {
            data,
            config,
            fold_of: &fold_of,
            run: Run {
                pool: &single_thread,
                ..*run
            },
            n_jobs: if is_cross_fitted { 2 } else { 1 } * n_folds + usize::from(!is_cross_fitted),
            n_done: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
        };
        let mut outcome = Vec::new();
        if !is_cross_fitted {
            let all: Vec<usize> = (0..data.n_rows()).collect();
            outcome.push(jobs.fit_outcome(&all, run.key.child(OUTCOME_FITS), run.pool)?);
            jobs.report_done()?;
        }
        let n_parallel = jobs.n_jobs - outcome.len();
        let work = |index: usize| {
            let fold = index % n_folds;
            if index < n_folds {
                jobs.attempt(|| jobs.propensities(fold).map(FoldFit::Propensity))
            } else {
                jobs.attempt(|| jobs.outcome_without(fold).map(FoldFit::Outcome))
            }
        };
        let mut propensity = vec![0.0; data.n_rows()];
        for (index, fitted) in in_order(run.pool.map(n_parallel, work))?
            .into_iter()
            .enumerate()
        {
            match fitted {
                FoldFit::Outcome(models) => outcome.push(models),
                FoldFit::Propensity(values) => {
                    let rows = rows_of(&fold_of, |fold| fold == index);
                    for (row, value) in rows.into_iter().zip(values) {
                        propensity[row] = value;
                    }
                }
            }
        }
        Ok(Self {
            fold_of,
            n_folds,
            outcome,
            propensity,
        })
    }

    /// For each model of the outcome, the rows that it predicts: those that it has not seen, or all
    /// rows if there is one model.
    pub(super) fn predicted_rows(&self) -> Vec<Vec<usize>> {
        if self.outcome.len() == 1 {
            return vec![(0..self.fold_of.len()).collect()];
        }
        let folds = 0..self.n_folds;
        folds
            .map(|own| rows_of(&self.fold_of, |fold| fold == own))
            .collect()
    }
}

/// Number of folds for this table: each has at least two rows of both arms.
pub(super) fn n_folds(data: &TreatedRows, config: &CausalConfig) -> usize {
    let n_treated = data.arm(true).len();
    let smallest = n_treated.min(data.n_rows() - n_treated);
    config.n_folds.min(smallest / 2)
}

/// Assigns the rows of each arm to folds at random, equally many to each.
fn folds(data: &TreatedRows, n_folds: usize, key: Key) -> Vec<usize> {
    let mut fold_of = vec![0; data.n_rows()];
    for is_treated in [true, false] {
        let mut rows = data.arm(is_treated);
        shuffle(&mut key.child(u64::from(is_treated)).rng(), &mut rows);
        for (at, row) in rows.into_iter().enumerate() {
            fold_of[row] = at % n_folds;
        }
    }
    fold_of
}

fn rows_of(fold_of: &[usize], is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..fold_of.len())
        .filter(|&row| is_wanted(fold_of[row]))
        .collect()
}

/// What the fits share.
struct FitJobs<'a> {
    data: &'a TreatedRows,
    config: &'a CausalConfig,
    fold_of: &'a [usize],
    run: Run<'a>,
    n_jobs: usize,
    n_done: AtomicUsize,
    /// Set by the first error; fits that have not started are then skipped.
    has_failed: AtomicBool,
}

impl FitJobs<'_> {
    fn attempt<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.has_failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let result = work().and_then(|value| self.report_done().map(|()| value));
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result
    }

    /// The model of the outcome that has not seen a fold.
    fn outcome_without(&self, fold: usize) -> Result<ArmModels> {
        let train = rows_of(self.fold_of, |other| other != fold);
        let key = self.run.key.child(OUTCOME_FITS).child(fold as u64);
        self.fit_outcome(&train, key, self.run.pool)
    }

    fn fit_outcome(&self, rows: &[usize], key: Key, pool: &Pool) -> Result<ArmModels> {
        let observer = StageObserver {
            outer: self.run.observer,
            name: "outcome",
        };
        let run = Run {
            key,
            pool,
            observer: &observer,
            ..self.run
        };
        let spec = &self.config.outcome;
        match self.config.method {
            CausalMethod::PerArm => ArmModels::fit_per_arm(spec, self.data, rows, &run),
            CausalMethod::Single | CausalMethod::DoublyRobust => {
                ArmModels::fit_single(spec, self.data, rows, &run)
            }
        }
    }

    /// The propensities of the rows of a fold, by a model that has not seen them.
    fn propensities(&self, fold: usize) -> Result<Vec<f64>> {
        let observer = StageObserver {
            outer: self.run.observer,
            name: "propensity",
        };
        let run = Run {
            key: self.run.key.child(PROPENSITY_FITS).child(fold as u64),
            observer: &observer,
            ..self.run
        };
        let train = rows_of(self.fold_of, |other| other != fold);
        let train = self.data.treatments_at(&train)?;
        let model = self.config.propensity.fit_with(&train, &run)?;
        let rows = rows_of(self.fold_of, |other| other == fold);
        let covariates = self.data.covariates.take(&rows);
        let rows = Distribution::new(model.as_ref(), &covariates, run.pool)?;
        // classes are in numeric order: control, then treated
        let probabilities = rows.observed_by(run.observer).probabilities()?;
        Ok(probabilities.chunks_exact(2).map(|row| row[1]).collect())
    }

    fn report_done(&self) -> Result<()> {
        let n_done = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
        let event = Event::new("folds", n_done, self.n_jobs);
        match self.run.observer.on_event(&event) {
            ControlFlow::Break(Stop::Discard) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

/// All results, or the first error other than a cancellation, which may follow from another error.
fn in_order(results: Vec<Result<FoldFit>>) -> Result<Vec<FoldFit>> {
    let mut cancelled = None;
    let mut fitted = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(value) => fitted.push(value),
            Err(Error::Cancelled) => cancelled = Some(Error::Cancelled),
            Err(error) => return Err(error),
        }
    }
    cancelled.map_or(Ok(fitted), Err)
}

/// Passes on the events of a fit under the name of the model.
struct StageObserver<'a> {
    outer: &'a dyn Observer,
    name: &'a str,
}

impl Observer for StageObserver<'_> {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        let stage = format!("{}: {}", self.name, event.stage);
        self.outer.on_event(&Event {
            stage: &stage,
            ..*event
        })
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        self.outer.cancel_tokens()
    }
}
