//! Native work runs without the interpreter lock and stops on Ctrl-C.

use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use softwood::Result;
use softwood::observer::{CancelToken, Event, Observer, Stop};

use crate::errors::to_python;

/// Time between two checks for pending signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter lock.
pub(crate) fn outside_gil<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(to_python)
}

/// Runs `work` on the calling thread without the interpreter lock and asks it to stop when a signal
/// handler raises: for work that is mostly shorter than the start of a thread. The observer must
/// only be called on the calling thread, because Python handles signals on its main thread only.
pub(crate) fn interruptible_inline<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Observer) -> Result<T> + Send,
) -> PyResult<T> {
    let signals = SignalCheck::new();
    let result = py.detach(|| work(&signals));
    match signals.into_exception() {
        Some(exception) => Err(exception),
        None => result.map_err(to_python),
    }
}

/// An observer that checks for pending signals at intervals and stops the work when a handler
/// raises.
struct SignalCheck(Mutex<SignalState>);

struct SignalState {
    last_check: Instant,
    /// The exception of a signal handler.
    raised: Option<PyErr>,
}

impl SignalCheck {
    fn new() -> Self {
        Self(Mutex::new(SignalState {
            last_check: Instant::now(),
            raised: None,
        }))
    }

    fn into_exception(self) -> Option<PyErr> {
        let state = self.0.into_inner();
        state.unwrap_or_else(PoisonError::into_inner).raised
    }
}

impl Observer for SignalCheck {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.raised.is_none() && state.last_check.elapsed() >= SIGNAL_INTERVAL {
            state.raised = Python::attach(|py| py.check_signals()).err();
            state.last_check = Instant::now();
        }
        if state.raised.is_some() {
            ControlFlow::Break(Stop::Discard)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Runs `work` without the interpreter lock and asks it to stop when a signal handler raises.
///
/// Python handles signals on its main thread only, and an observer may be called from any thread.
/// So a worker thread does the work, and the calling thread checks for signals.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Observer) -> Result<T> + Send,
) -> PyResult<T> {
    let stop = StopFlag(CancelToken::new());
    let (result, raised) = py.detach(|| run_on_worker(&stop, work));
    match raised {
        Some(exception) => Err(exception),
        None => result.map_err(to_python),
    }
}

/// The result of `work`, and the exception that a signal handler raised meanwhile.
fn run_on_worker<T: Send>(
    stop: &StopFlag,
    work: impl FnOnce(&dyn Observer) -> Result<T> + Send,
) -> (Result<T>, Option<PyErr>) {
    thread::scope(|scope| {
        // the worker drops its end when it ends, even by a panic: that wakes the receiver
        let (running, ended) = channel::<()>();
        let worker = scope.spawn(move || {
            let _running = running;
            work(stop)
        });
        let mut raised = None;
        while ended.recv_timeout(SIGNAL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if raised.is_none()
                && let Err(exception) = Python::attach(|py| py.check_signals())
            {
                raised = Some(exception);
                stop.0.cancel();
            }
        }
        match worker.join() {
            Ok(result) => (result, raised),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// An observer that cancels the work once the token is cancelled.
struct StopFlag(CancelToken);

impl Observer for StopFlag {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        if self.0.is_cancelled() {
            ControlFlow::Break(Stop::Discard)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        vec![self.0.clone()]
    }
}
