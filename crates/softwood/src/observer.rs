//! Observers: callbacks that receive the events of a fit or a prediction and may stop it.

use std::fmt::{self, Debug};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::Model;
use crate::stop;

pub use crate::stop::{CancelToken, Stop};

/// Builds a model from the present state of a fit.
pub(crate) type TakeSnapshot<'a> = &'a dyn Fn() -> Result<Box<dyn Model>>;

/// A step of a fit or a prediction: an epoch, a boosting round, a tree or a block of rows.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Current stage, in a word or two.
    pub stage: &'a str,
    /// Epochs, boosting rounds, trees or rows done in this stage.
    pub done: usize,
    /// Epochs, boosting rounds, trees or rows in this stage in total.
    pub total: usize,
    /// Index of the configuration that model selection tries; `None` outside of model selection.
    pub trial: Option<usize>,
    /// Index of the chain, fit or fold that is trained, for ensembles.
    pub member: Option<usize>,
    /// Number of new trees of this trial or member so far, for families that add trees; for a forest
    /// the index of the tree.
    pub tree: Option<usize>,
    /// Number of epochs of this training run so far, for families that train in epochs.
    pub epoch: Option<usize>,
    /// Evidence lower bound per row in units of the standardised target; `None` for families
    /// without one.
    pub elbo: Option<f64>,
    /// Mean log-likelihood of the validation rows in units of the standardised target; `None`
    /// without a validation set.
    pub held_out: Option<f64>,
    pub(crate) snapshot: Option<TakeSnapshot<'a>>,
}

impl<'a> Event<'a> {
    /// An event without scores: `done` of `total` steps of a stage.
    pub fn new(stage: &'a str, done: usize, total: usize) -> Self {
        Self {
            stage,
            done,
            total,
            trial: None,
            member: None,
            tree: None,
            epoch: None,
            elbo: None,
            held_out: None,
            snapshot: None,
        }
    }

    /// The same event with a function that builds a model from the present state of the fit.
    pub(crate) fn with_snapshot(self, snapshot: TakeSnapshot<'a>) -> Self {
        Self {
            snapshot: Some(snapshot),
            ..self
        }
    }

    /// A model of the present state of the fit, for checkpoints. An ensemble gives a model of the
    /// member that is being trained. `None` while there is nothing that predicts: in model
    /// selection, and for families that build a model in one step.
    ///
    /// # Errors
    /// When the state of the fit is no valid model, or the fit is cancelled meanwhile.
    pub fn snapshot(&self) -> Option<Result<Box<dyn Model>>> {
        self.snapshot
            .map(|snapshot| stop::cancellable(Vec::new(), snapshot))
    }
}

impl Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("stage", &self.stage)
            .field("done", &self.done)
            .field("total", &self.total)
            .field("trial", &self.trial)
            .field("member", &self.member)
            .field("tree", &self.tree)
            .field("epoch", &self.epoch)
            .field("elbo", &self.elbo)
            .field("held_out", &self.held_out)
            .finish_non_exhaustive()
    }
}

/// Receives events and may stop the work: for progress bars, time limits, checkpoints and Ctrl-C.
///
/// ```
/// use std::ops::ControlFlow;
/// use softwood::models::SgbParams;
/// use softwood::observer::{Event, Observer, Stop};
/// use softwood::{Column, Dataset, Fit, Key, Model, Pool, Roles, Run, Table};
///
/// /// Stops at the first chain of 20 trees and keeps it.
/// struct TwentyTrees;
///
/// impl Observer for TwentyTrees {
///     fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
///         match event.tree {
///             Some(20..) if event.member.is_some() => ControlFlow::Break(Stop::Keep),
///             _ => ControlFlow::Continue(()),
///         }
///     }
/// }
///
/// let x: Vec<f64> = (0..200).map(f64::from).collect();
/// let y = x.iter().map(|x| (x / 20.0).sin()).collect();
/// let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)])?;
/// let data = Dataset::from_table(&table, &Roles { target: "y".to_owned(), ..Roles::default() })?;
/// let pool = Pool::new(1)?;
/// let run = Run::new(Key::from_seed(0), &pool).observer(&TwentyTrees);
/// let params = SgbParams { n_estimators: 100, max_depth: Some(3), learning_rate: Some(0.1), ..SgbParams::default() };
/// let model = params.fit_with(&data, &run)?;
/// assert!(model.training().is_stopped);
///
/// // the fit can go on from there
/// let model = params.fit_with(&data, &Run::new(Key::from_seed(1), &pool).warm_start(&model))?;
/// assert!(!model.training().is_stopped);
/// # Ok::<(), softwood::Error>(())
/// ```
pub trait Observer: Sync {
    /// Called at least once per epoch or round of a fit and at least once per block of rows of a
    /// prediction, from any thread. `ControlFlow::Break` stops the work: a fit ends with the best
    /// model so far or without one, as [`Stop`] says; a prediction ends with an error in both cases.
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop>;

    /// Tokens that cancel the work between two events, for Ctrl-C and the like: the work ends with
    /// [`Error::Cancelled`](crate::Error::Cancelled) well within a second. Called once per fit or
    /// prediction, before it starts.
    fn cancel_tokens(&self) -> Vec<CancelToken> {
        Vec::new()
    }
}

/// An observer that never stops anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        ControlFlow::Continue(())
    }
}

/// Several observers as one. All of them receive every event; one that discards the fit prevails
/// over one that keeps it.
#[allow(missing_debug_implementations)]
pub struct Observers<'a>(pub Vec<&'a dyn Observer>);

impl Observer for Observers<'_> {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        let mut decision = ControlFlow::Continue(());
        for observer in &self.0 {
            decision = match (decision, observer.on_event(event)) {
                (ControlFlow::Continue(()), answer) => answer,
                (_, ControlFlow::Break(Stop::Discard)) => ControlFlow::Break(Stop::Discard),
                (stop, _) => stop,
            };
        }
        decision
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        let observers = self.0.iter();
        observers
            .flat_map(|observer| observer.cancel_tokens())
            .collect()
    }
}

/// The observer of a fit, as the fit sees it: once the work is cancelled it discards the fit at every
/// event, and when it discards the fit it cancels the work on all threads.
pub(crate) struct CancellingObserver<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) token: CancelToken,
}

impl<'a> CancellingObserver<'a> {
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        Self {
            observer,
            token: CancelToken::new(),
        }
    }
}

impl Observer for CancellingObserver<'_> {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        if stop::is_cancelled() {
            return ControlFlow::Break(Stop::Discard);
        }
        let decision = self.observer.on_event(event);
        if decision == ControlFlow::Break(Stop::Discard) {
            self.token.cancel();
        }
        decision
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        let mut tokens = self.observer.cancel_tokens();
        tokens.push(self.token.clone());
        tokens
    }
}

/// Stops a fit when its time is over; the fit ends with the best model so far.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    end: Option<Instant>,
}

impl TimeLimit {
    /// A limit from now on.
    pub fn new(limit: Duration) -> Self {
        Self {
            // a limit beyond the range of the clock is none
            end: Instant::now().checked_add(limit),
        }
    }
}

impl Observer for TimeLimit {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        match self.end {
            Some(end) if Instant::now() >= end => ControlFlow::Break(Stop::Keep),
            _ => ControlFlow::Continue(()),
        }
    }
}
