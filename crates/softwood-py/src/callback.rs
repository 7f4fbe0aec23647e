//! Python callbacks as observers of a fit.

use std::ops::ControlFlow;
use std::sync::Mutex;

use pyo3::prelude::*;
use softwood::observer::{Event, Observer, Stop};

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
    /// A model of the present state of the fit, if the callbacks asked for snapshots.
    snapshot: Option<Py<PyModel>>,
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

/// An observer that calls a Python function with every event. The function returns `True` to stop
/// the fit and keep the best model so far. An exception stops the fit and discards the model.
#[derive(Debug)]
pub(crate) struct Callback {
    function: Py<PyAny>,
    /// Whether each event carries a model of the present state of the fit.
    with_snapshots: bool,
    raised: Mutex<Option<PyErr>>,
}

impl Callback {
    pub(crate) fn new(function: Py<PyAny>, with_snapshots: bool) -> Self {
        Self {
            function,
            with_snapshots,
            raised: Mutex::new(None),
        }
    }

    /// The exception of the function, if it raised one.
    pub(crate) fn take_exception(&self) -> Option<PyErr> {
        self.raised.lock().ok().and_then(|mut raised| raised.take())
    }

    fn call(&self, py: Python<'_>, event: &Event<'_>) -> PyResult<bool> {
        let snapshot = if self.with_snapshots {
            event.snapshot().and_then(Result::ok)
        } else {
            None
        };
        let snapshot = snapshot.map(|model| Py::new(py, PyModel::new(model)));
        let event = PyEvent {
            stage: event.stage.to_owned(),
            done: event.done,
            total: event.total,
            trial: event.trial,
            member: event.member,
            tree: event.tree,
            epoch: event.epoch,
            elbo: event.elbo,
            validation_score: event.held_out,
            snapshot: snapshot.transpose()?,
        };
        self.function.call1(py, (event,))?.is_truthy(py)
    }
}

impl Observer for Callback {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        match Python::attach(|py| self.call(py, event)) {
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
