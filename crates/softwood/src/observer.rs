//! Observers: callbacks that receive the progress of a fit or a prediction and may stop it.

use std::ops::ControlFlow;

/// Progress of a fit or a prediction.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Current stage, in a word or two.
    pub stage: &'a str,
    /// Epochs, boosting rounds or rows done in this stage.
    pub done: usize,
    /// Epochs, boosting rounds or rows in this stage in total.
    pub total: usize,
    /// Evidence lower bound per row in units of the standardised target; `None` for families
    /// without one.
    pub elbo: Option<f64>,
    /// Mean log-likelihood of the validation rows in units of the standardised target; `None`
    /// without a validation set.
    pub held_out: Option<f64>,
}

/// Receives progress and may stop the work: for progress bars, time limits and Ctrl-C.
pub trait Observer: Sync {
    /// Called at least once per epoch or round of a fit and once per block of rows of a prediction,
    /// from any thread. `ControlFlow::Break` stops the work.
    fn step(&self, progress: &Progress<'_>) -> ControlFlow<()>;
}

/// An observer that never stops anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn step(&self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
