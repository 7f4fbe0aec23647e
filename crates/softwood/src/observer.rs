//! The observer of a fit or of a prediction: it hears of progress and may ask to stop.

use std::ops::ControlFlow;

/// How far a fit, or the answer to a question, has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// What is being done, in a word or two.
    pub stage: &'a str,
    /// Epochs (or rounds, or rows) done in this stage.
    pub done: usize,
    /// Epochs (or rounds, or rows) in this stage.
    pub total: usize,
    /// Evidence lower bound per row, in the target's standardised units, where there is one.
    pub elbo: Option<f64>,
    /// Mean log-likelihood of the held-out rows, in the target's standardised units, where there are any.
    pub held_out: Option<f64>,
}

/// Hears of progress and may ask to stop: progress bar, time limit and Ctrl-C in one.
pub trait Observer: Sync {
    /// Called at least once per epoch or round of a fit, and per block of rows of a question, from any thread.
    fn step(&self, progress: &Progress<'_>) -> ControlFlow<()>;
}

/// A observer that lets everything run.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn step(&self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
