//! Runs all folds of an evaluation in parallel.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::data::dataset::Dataset;
use crate::data::target::Target;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::evaluate::protocol::{Split, check};
use crate::evaluate::report::{FoldReport, ModelReport};
use crate::evaluate::scores::score;
use crate::fit::Run;
use crate::model::Model;
use crate::models::registry::ModelSpec;
use crate::observer::{CancelToken, Event, Observer};
use crate::par::Pool;
use crate::predictive::block::Head;
use crate::rng::Key;
use crate::stop::{self, Stop};

/// Fits and scores every model on every split. Folds run in parallel, one thread each; a single
/// fold gets all threads.
///
/// Fold `k` draws its random numbers from `Key::from_seed(seed).child(k)`, so that no result
/// depends on the number of threads.
///
/// # Errors
/// The first error, in the order of models and folds; errors about the table name the fold.
pub fn evaluate(
    models: &[ModelSpec],
    data: &Dataset,
    splits: &[Split],
    seed: u64,
    pool: &Pool,
    observer: &dyn Observer,
) -> Result<Vec<ModelReport>> {
    check(splits, data.n_rows())?;
    let n_jobs = models.len() * splits.len();
    let single_thread = Pool::new(1)?;
    let job = FoldJob {
        data,
        key: Key::from_seed(seed),
        pool: if n_jobs == 1 { pool } else { &single_thread },
        observer,
        n_jobs,
        n_done: AtomicUsize::new(0),
        has_failed: AtomicBool::new(false),
    };
    let work = |index: usize| {
        let (model, fold) = (index / splits.len(), index % splits.len());
        job.run(&models[model], &splits[fold], fold)
    };
    // the predictions and scores of a fold are cancelled as its fit is
    let folds = stop::cancellable(observer.cancel_tokens(), || {
        in_order(if n_jobs == 1 {
            vec![work(0)]
        } else {
            pool.map(n_jobs, work)
        })
    });
    let mut folds = folds?.into_iter();
    let report = |model_spec: &ModelSpec| {
        let folds = folds.by_ref().take(splits.len()).collect();
        ModelReport::new(model_spec.clone(), folds)
    };
    Ok(models.iter().map(report).collect())
}

/// A model fitted to the training rows of one fold, with the test rows that it is scored on.
#[derive(Debug)]
#[non_exhaustive]
pub struct FittedFold {
    /// The model.
    pub model: Box<dyn Model>,
    /// The test rows.
    pub test: Dataset,
    /// Standard deviation of the training target, divided by n; `None` for classes.
    pub target_sd: Option<f64>,
    /// Wall time of the fit.
    pub fit_seconds: f64,
}

impl FittedFold {
    /// The prediction for the test rows.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    pub fn predict<'a>(&'a self, pool: &'a Pool) -> Result<Distribution<'a>> {
        Distribution::new(self.model.as_ref(), self.test.features(), pool)
    }
}

/// Fits a model to the training rows of one fold; the validation rows of the fold replace those of
/// `run`. [`evaluate`] runs fold `k` of a seed with the key `Key::from_seed(seed).child(k)`.
///
/// # Errors
/// As [`ModelSpec::fit_with`].
pub fn fit_fold(
    model_spec: &ModelSpec,
    data: &Dataset,
    split: &Split,
    run: &Run<'_>,
) -> Result<FittedFold> {
    let train = data.try_take(&split.train)?;
    let held_out = (!split.held_out.is_empty()).then(|| data.try_take(&split.held_out));
    let held_out = held_out.transpose()?;
    let test = data.try_take(&split.test)?;
    let run = Run {
        held_out: held_out.as_ref(),
        ..*run
    };
    let start = Instant::now();
    let model = model_spec.fit_with(&train, &run)?;
    Ok(FittedFold {
        model,
        test,
        target_sd: target_sd(train.target()),
        fit_seconds: start.elapsed().as_secs_f64(),
    })
}

/// All reports, or the first error other than a cancellation, which may follow from another error.
fn in_order(results: Vec<Result<FoldReport>>) -> Result<Vec<FoldReport>> {
    let mut reports = Vec::with_capacity(results.len());
    let mut cancelled = None;
    for result in results {
        match result {
            Ok(report) => reports.push(report),
            Err(Error::Cancelled) => cancelled = Some(Error::Cancelled),
            Err(error) => return Err(error),
        }
    }
    cancelled.map_or(Ok(reports), Err)
}

/// State that all folds share.
struct FoldJob<'a> {
    data: &'a Dataset,
    key: Key,
    pool: &'a Pool,
    observer: &'a dyn Observer,
    n_jobs: usize,
    n_done: AtomicUsize,
    /// Set by the first error; folds that have not started are then skipped.
    has_failed: AtomicBool,
}

impl FoldJob<'_> {
    fn run(&self, model_spec: &ModelSpec, split: &Split, fold: usize) -> Result<FoldReport> {
        if self.has_failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let result = self.fit_and_score(model_spec, split, fold);
        if result.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result.map_err(|error| in_fold(error, fold))
    }

    fn fit_and_score(
        &self,
        model_spec: &ModelSpec,
        split: &Split,
        fold: usize,
    ) -> Result<FoldReport> {
        let observer = FoldObserver {
            outer: self.observer,
            name: format!("{} fold {fold}", model_spec.family().name()),
        };
        let run = Run::new(self.key.child(fold as u64), self.pool).observer(&observer);
        let fitted = fit_fold(model_spec, self.data, split, &run)?;
        let distribution = fitted.predict(self.pool)?;
        let start = Instant::now();
        predict(&distribution)?;
        let predict_seconds = start.elapsed().as_secs_f64();
        let scores = score(&distribution, fitted.test.target(), fitted.target_sd)?;
        self.report_fold()?;
        Ok(FoldReport {
            fold,
            scores,
            fit_seconds: fitted.fit_seconds,
            predict_seconds,
            peak_rss_bytes: peak_rss_bytes(),
            n_nodes: fitted.model.n_nodes(),
            chosen: fitted.model.training().chosen.clone(),
        })
    }

    fn report_fold(&self) -> Result<()> {
        let n_done = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
        let event = Event::new("folds", n_done, self.n_jobs);
        match self.observer.on_event(&event) {
            ControlFlow::Break(Stop::Discard) if n_done < self.n_jobs => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

/// Predicts moments or probabilities: the work that `predict_seconds` measures.
fn predict(distribution: &Distribution<'_>) -> Result<()> {
    match distribution.head() {
        Head::Normal { .. } => distribution.moments().map(drop),
        Head::Categorical { .. } => distribution.probabilities().map(drop),
    }
}

fn in_fold(error: Error, fold: usize) -> Error {
    match error {
        Error::Table(_) | Error::Column { .. } | Error::Cell { .. } => {
            Error::Table(format!("fold {fold}: {error}"))
        }
        other => other,
    }
}

/// Passes on the events of a fold under its name.
struct FoldObserver<'a> {
    outer: &'a dyn Observer,
    name: String,
}

impl Observer for FoldObserver<'_> {
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

/// Standard deviation of a numeric target, divided by n.
fn target_sd(target: &Target) -> Option<f64> {
    let Target::Numeric(values) = target else {
        return None;
    };
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / n).sqrt())
}

/// Peak resident memory of the process; 0 if the operating system does not report it.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| {
            rest.trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<u64>()
                .ok()
        });
    kibibytes.map_or(0, |number| number * 1024)
}
