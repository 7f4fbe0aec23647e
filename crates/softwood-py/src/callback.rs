//! Python callbacks as observers of a fit.

use std::ops::ControlFlow;
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use softwood::observer::{Event, Observer, Stop};

use crate::errors::to_python;
use crate::model::PyModel;

/// A step of a fit, as callbacks receive it.
#[pyclass(frozen, get_all, name = "Event", module = "softwood")]
#[derive(Debug)]
pub(crate) struct PyEvent {
    /// Current stage, in a word or two.
    stage: String,
    /// Steps done in this stage.
    done: usize,
    /// Steps of this stage in total.
    total: usize,
    /// Index of the configuration that model selection tries.
    trial: Option<usize>,
    /// Index of the chain, fit or fold that is trained.
    member: Option<usize>,
    /// Number of trees of this trial or member so far.
    tree: Option<usize>,
    /// Number of epochs of this training run so far.
    epoch: Option<usize>,
    /// Evidence lower bound per row, in units of the standardised target.
    elbo: Option<f64>,
    /// Mean log-likelihood of the validation rows, in units of the standardised target.
    validation_score: Option<f64>,
    /// A fitted estimator of the present state of the fit, if a callback asked for it at this event.
    snapshot: Option<Py<PyAny>>,
}

impl PyEvent {
    fn new(event: &Event<'_>, snapshot: Option<Py<PyAny>>) -> Self {
        Self {
            stage: event.stage.to_owned(),
            done: event.done,
            total: event.total,
            trial: event.trial,
            member: event.member,
            tree: event.tree,
            epoch: event.epoch,
            elbo: event.elbo,
            validation_score: event.held_out,
            snapshot,
        }
    }
}

#[pymethods]
impl PyEvent {
    fn __repr__(&self) -> String {
        let number = |name: &str, value: Option<f64>| {
            value.map_or_else(String::new, |value| format!(", {name}={value:.4}"))
        };
        let index = |name: &str, value: Option<usize>| {
            value.map_or_else(String::new, |value| format!(", {name}={value}"))
        };
        format!(
            "Event(stage='{}', done={}, total={}{}{}{}{}{}{})",
            self.stage,
            self.done,
            self.total,
            index("trial", self.trial),
            index("member", self.member),
            index("tree", self.tree),
            index("epoch", self.epoch),
            number("elbo", self.elbo),
            number("validation_score", self.validation_score),
        )
    }
}

/// An observer that calls a Python object with every event: `softwood._callbacks.Dispatcher`. The
/// object returns `True` to stop the fit and keep the best model so far. An exception stops the fit
/// and discards the model.
#[derive(Debug)]
pub(crate) struct Callback {
    dispatcher: Py<PyAny>,
    /// Whether the method `wants_snapshot` is asked at each event.
    with_snapshots: bool,
    raised: Mutex<Option<PyErr>>,
}

impl Callback {
    pub(crate) fn new(dispatcher: Py<PyAny>, with_snapshots: bool) -> Self {
        Self {
            dispatcher,
            with_snapshots,
            raised: Mutex::new(None),
        }
    }

    /// The exception of a callback, if one was raised.
    pub(crate) fn take_exception(&self) -> Option<PyErr> {
        self.raised.lock().ok().and_then(|mut raised| raised.take())
    }

    /// Builds a snapshot without the interpreter lock, which other threads of the fit may wait for.
    fn call(&self, event: &Event<'_>) -> PyResult<bool> {
        let is_wanted = self.with_snapshots && Python::attach(|py| self.wants_snapshot(py, event))?;
        let model = is_wanted.then(|| event.snapshot()).flatten();
        let model = model.transpose().map_err(to_python)?;
        Python::attach(|py| self.dispatch(py, event, model.map(PyModel::new)))
    }

    fn wants_snapshot(&self, py: Python<'_>, event: &Event<'_>) -> PyResult<bool> {
        let event = PyEvent::new(event, None);
        let method = intern!(py, "wants_snapshot");
        let answer = self.dispatcher.call_method1(py, method, (event,))?;
        answer.is_truthy(py)
    }

    fn dispatch(
        &self,
        py: Python<'_>,
        event: &Event<'_>,
        model: Option<PyModel>,
    ) -> PyResult<bool> {
        let method = intern!(py, "to_estimator");
        let snapshot = model.map(|model| self.dispatcher.call_method1(py, method, (model,)));
        let event = PyEvent::new(event, snapshot.transpose()?);
        self.dispatcher.call1(py, (event,))?.is_truthy(py)
    }
}

impl Observer for Callback {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        match self.call(event) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(Stop::Keep),
            Err(exception) => {
                if let Ok(mut raised) = self.raised.lock() {
                    raised.get_or_insert(exception);
                }
                ControlFlow::Break(Stop::Discard)
            }
        }
    }
}
