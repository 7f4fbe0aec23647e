//! Observers of a fit, for every family: events, stopping with and without a model, snapshots, time
//! limits.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::problems::FitJson as _;
use crate::problems::{fit, mixed, numbers, prediction_bits, quick, targets_of, with_target};
use softwood::observer::{Event, NoObserver, Observer, Observers, Stop, TimeLimit};
use softwood::{Dataset, Distribution, Error, Family, Key, Model, Pool, Result, Run, from_bytes};

/// Stops the fit after some events.
struct StopAfter {
    after: usize,
    stop: Stop,
    calls: AtomicUsize,
}

impl StopAfter {
    fn new(after: usize, stop: Stop) -> Self {
        Self {
            after,
            stop,
            calls: AtomicUsize::new(0),
        }
    }
}

impl Observer for StopAfter {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < self.after {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(self.stop)
        }
    }
}

fn observed_fit(family: Family, data: &Dataset, observer: &dyn Observer) -> Result<Box<dyn Model>> {
    let pool = Pool::new(2).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).observer(observer);
    family.fit_with(&quick(family), data, &run)
}

/// Fits that are stopped after so many events: in model selection, early and late in training.
const STOPS: [usize; 5] = [0, 1, 7, 30, 90];

#[test]
fn a_fit_that_is_stopped_and_kept_gives_a_valid_model() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(14, 80);
            let data = with_target(&table, target);
            for after in STOPS {
                let observer = StopAfter::new(after, Stop::Keep);
                let model = observed_fit(family, &data, &observer)
                    .unwrap_or_else(|error| panic!("{} after {after}: {error}", family.name()));
                let was_stopped = observer.calls.into_inner() > after;
                assert_eq!(
                    model.training().is_stopped,
                    was_stopped,
                    "{} {target} after {after}",
                    family.name()
                );
                let bits = prediction_bits(&*model, &table);
                let read = from_bytes(&model.to_bytes()).unwrap();
                assert_eq!(prediction_bits(&*read, &table), bits);
                assert_eq!(read.training(), model.training());
            }
        }
    }
}

#[test]
fn a_fit_that_is_stopped_and_discarded_gives_no_model() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let data = with_target(&mixed(14, 80), target);
            let counter = StopAfter::new(usize::MAX, Stop::Discard);
            observed_fit(family, &data, &counter).unwrap();
            let n_events = counter.calls.into_inner();
            for after in [0, 1, n_events.min(31) - 1] {
                let result = observed_fit(family, &data, &StopAfter::new(after, Stop::Discard));
                assert!(
                    matches!(result, Err(Error::Cancelled)),
                    "after {after}: {result:?}"
                );
            }
        }
    }
}

#[test]
fn a_warm_start_can_continue_a_stopped_fit() {
    for &family in Family::ALL {
        if !family.supports_warm_start() {
            continue;
        }
        let table = mixed(15, 120);
        for &target in targets_of(family) {
            let data = with_target(&table, target);
            for after in STOPS {
                let observer = StopAfter::new(after, Stop::Keep);
                let stopped = observed_fit(family, &data, &observer).unwrap();
                let pool = Pool::new(2).unwrap();
                let run = Run::new(Key::from_seed(1), &pool).warm_start(&*stopped);
                let model = family.fit_with(&quick(family), &data, &run);
                let model = model.unwrap_or_else(|error| {
                    panic!("{} {target} after {after}: {error}", family.name())
                });
                assert!(!model.training().is_stopped);
                prediction_bits(&*model, &table);
                // and once more, with the same parameters
                let run = Run::new(Key::from_seed(2), &pool).warm_start(&*model);
                let again = family.fit_with(&quick(family), &data, &run).unwrap();
                assert_eq!(again.n_members(), model.n_members());
            }
        }
    }
}

#[test]
fn a_warm_start_from_a_model_of_another_family_is_refused() {
    let data = with_target(&mixed(15, 60), "y");
    let pool = Pool::new(1).unwrap();
    let tree = fit(Family::Tree, &quick(Family::Tree), &data, 0);
    for &family in Family::ALL {
        let run = Run::new(Key::from_seed(1), &pool).warm_start(&*tree);
        let error = family.fit_with(&quick(family), &data, &run).unwrap_err();
        let message = error.to_string();
        let expected = if family.supports_warm_start() {
            "this one is a `tree`"
        } else {
            "cannot be trained further"
        };
        assert!(message.contains(expected), "{}: {message}", family.name());
    }
}

/// Stops at the first event of a stage.
struct StopAtStage<'a>(&'a str);

impl Observer for StopAtStage<'_> {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        if event.stage == self.0 {
            ControlFlow::Break(Stop::Keep)
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn a_fit_that_is_stopped_after_its_selection_is_nearly_as_good_as_the_best_trial() {
    let table = mixed(20, 400);
    let data = with_target(&table, "y");
    let pool = Pool::new(2).unwrap();
    let score = |model: &dyn Model| {
        let prediction = Distribution::new(model, &table, &pool).unwrap();
        let y = numbers(&table, "y");
        prediction.logpdf(&y).unwrap().iter().sum::<f64>() / 400.0
    };
    for &family in Family::ALL {
        let recorder = Recorder::default();
        let whole = score(&*observed_fit(family, &data, &recorder).unwrap());
        let stages = recorder.stages.into_inner().unwrap();
        // hard trees have nothing before their growth, and model selection starts with nothing
        for stage in stages.iter().skip(1) {
            if matches!(family, Family::Forest | Family::Tree | Family::Ldt) {
                continue;
            }
            let model = observed_fit(family, &data, &StopAtStage(stage)).unwrap();
            let stopped = score(&*model);
            assert!(
                stopped > whole - 1.0,
                "{} stopped at `{stage}`: {stopped} after {whole}",
                family.name()
            );
        }
    }
}

#[test]
fn a_stopped_warm_start_keeps_at_least_the_fitted_model() {
    for &family in Family::ALL {
        if !family.supports_warm_start() {
            continue;
        }
        let table = mixed(16, 120);
        let data = with_target(&table, "y");
        let fitted = fit(family, &quick(family), &data, 0);
        let pool = Pool::new(2).unwrap();
        for after in [0, 1, 7] {
            for held_out in [None, Some(&data)] {
                let observer = StopAfter::new(after, Stop::Keep);
                let mut run = Run::new(Key::from_seed(1), &pool)
                    .warm_start(&*fitted)
                    .observer(&observer);
                run.held_out = held_out;
                let model = family.fit_with(&quick(family), &data, &run).unwrap();
                assert_eq!(model.n_members(), fitted.n_members(), "{}", family.name());
                prediction_bits(&*model, &table);
                // its chains may differ in length; snapshots of all of them are models
                let recorder = Recorder::default();
                let run = Run::new(Key::from_seed(2), &pool)
                    .warm_start(&*model)
                    .observer(&recorder);
                family.fit_with(&quick(family), &data, &run).unwrap();
                for snapshot in recorder.snapshots.into_inner().unwrap() {
                    let chosen = &snapshot.training().chosen;
                    assert!(chosen.len() < 100, "{}: {chosen}", family.name());
                    prediction_bits(&*snapshot, &table);
                }
            }
        }
    }
}

/// Collects events and checks snapshots.
#[derive(Default)]
struct Recorder {
    n_events: AtomicUsize,
    stages: Mutex<Vec<String>>,
    snapshots: Mutex<Vec<Box<dyn Model>>>,
}

impl Observer for Recorder {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        assert!(event.done <= event.total, "{event:?}");
        self.n_events.fetch_add(1, Ordering::Relaxed);
        let mut stages = self.stages.lock().unwrap();
        if !stages.iter().any(|stage| stage == event.stage) {
            stages.push(event.stage.to_owned());
        }
        let mut snapshots = self.snapshots.lock().unwrap();
        if snapshots.len() < 5 {
            snapshots.extend(event.snapshot().map(Result::unwrap));
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn snapshots_are_models_and_do_not_change_the_fit() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(17, 120);
            let data = with_target(&table, target);
            let recorder = Recorder::default();
            let model = observed_fit(family, &data, &recorder).unwrap();
            let alone = observed_fit(family, &data, &NoObserver).unwrap();
            assert!(model.to_bytes() == alone.to_bytes());
            let snapshots = recorder.snapshots.into_inner().unwrap();
            for snapshot in &snapshots {
                assert_eq!(snapshot.family(), family.name());
                assert_eq!(snapshot.schema(), model.schema());
                assert!(snapshot.training().is_stopped);
                prediction_bits(&**snapshot, &table);
            }
            assert!(!recorder.stages.into_inner().unwrap().is_empty());
            let trains_in_steps = !matches!(family, Family::Forest | Family::Tree | Family::Ldt);
            assert_eq!(!snapshots.is_empty(), trains_in_steps, "{}", family.name());
        }
    }
}

#[test]
fn a_time_limit_that_is_over_stops_the_fit_and_keeps_a_model() {
    for &family in Family::ALL {
        let table = mixed(18, 120);
        let data = with_target(&table, "y");
        let limit = TimeLimit::new(Duration::ZERO);
        let model = observed_fit(family, &data, &limit).unwrap();
        assert!(model.training().is_stopped, "{}", family.name());
        prediction_bits(&*model, &table);
        let unlimited = TimeLimit::new(Duration::MAX);
        let model = observed_fit(family, &data, &unlimited).unwrap();
        assert!(!model.training().is_stopped);
    }
}

#[test]
fn an_observer_that_discards_prevails_over_one_that_keeps() {
    let data = with_target(&mixed(19, 80), "y");
    let (keep, discard) = (
        StopAfter::new(0, Stop::Keep),
        StopAfter::new(0, Stop::Discard),
    );
    let both = Observers(vec![&keep, &discard, &NoObserver]);
    let result = observed_fit(Family::Sgb, &data, &both);
    assert!(matches!(result, Err(Error::Cancelled)));
    // every observer receives the event
    assert!(keep.calls.into_inner() > 0 && discard.calls.into_inner() > 0);
}

/// The trials and trees of the selection.
#[derive(Default)]
struct Trials(Mutex<Vec<(usize, usize)>>);

impl Observer for Trials {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        assert!(event.done <= event.total, "{event:?}");
        if let (Some(trial), Some(tree), "choosing") = (event.trial, event.tree, event.stage) {
            self.0.lock().unwrap().push((trial, tree));
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn trials_of_a_selection_in_several_steps_are_numbered_on() {
    let data = with_target(&mixed(18, 300), "three");
    let (pool, trials) = (Pool::new(1).unwrap(), Trials::default());
    let run = Run::new(Key::from_seed(0), &pool).observer(&trials);
    let params = serde_json::json!({"n_estimators": 40, "n_members": 2});
    Family::Sgb.fit_with(&params, &data, &run).unwrap();
    let mut seen = trials.0.into_inner().unwrap();
    seen.sort_unstable();
    let n_trials = seen.last().unwrap().0 + 1;
    assert!(n_trials > 2, "{n_trials}");
    let n_events = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), n_events);
}
