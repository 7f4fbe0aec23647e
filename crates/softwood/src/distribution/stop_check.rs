//! Lets the observer of a prediction stop a computation that takes long within one block of rows,
//! such as a million draws for each row.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::observer::{Event, Observer};

/// Asks the observer between two parts of a computation, and remembers its answer.
pub(super) struct StopCheck<'a> {
    observer: &'a dyn Observer,
    n_rows: usize,
    stopped: AtomicBool,
}

impl<'a> StopCheck<'a> {
    pub(super) fn of(distribution: &'a Distribution<'_>) -> Self {
        Self {
            observer: distribution.observer(),
            n_rows: distribution.n_rows(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Whether the computation has been stopped, on this or another thread; `row` is the first row
    /// of the block that is being computed.
    pub(super) fn is_stopped(&self, row: usize) -> bool {
        let event = Event::new("predicting", row, self.n_rows);
        if self.observer.on_event(&event).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// The result of a computation that was not stopped.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it was stopped.
    pub(super) fn finish<T>(self, result: T) -> Result<T> {
        if self.stopped.into_inner() {
            return Err(Error::Cancelled);
        }
        Ok(result)
    }
}
