//! The entrance of every family: parameters and data go in, a posterior comes out.

use std::ops::ControlFlow;

use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::par::Pool;
use crate::params::{Checked, Params};
use crate::rng::Key;
use crate::store::record::Record;

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
pub trait Watch: Sync {
    /// Called at least once per epoch or round of a fit, and per block of rows of a question, from any thread.
    fn step(&self, progress: &Progress<'_>) -> ControlFlow<()>;
}

/// A watch that lets everything run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Watch for Silent {
    fn step(&self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What a fit needs besides parameters and data.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Address of all random numbers.
    pub key: Key,
    /// Threads.
    pub pool: &'a Pool,
    /// Who hears of progress.
    pub watch: &'a dyn Watch,
    /// Rows for early stopping and choices; a part of the training rows is set aside where `None`.
    pub held_out: Option<&'a Dataset>,
    /// A fitted model of the same family to go on from; a family that cannot go on says so.
    pub base: Option<&'a Record>,
}

impl<'a> Run<'a> {
    /// A run that nobody watches, from scratch.
    pub fn new(key: Key, pool: &'a Pool) -> Self {
        Self {
            key,
            pool,
            watch: &Silent,
            held_out: None,
            base: None,
        }
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("key", &self.key)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// Parameters that can be fitted.
pub trait Fit: Params {
    /// What comes out.
    type Fitted: Model;
    /// Whether it can go on from a fitted model.
    const GOES_ON: bool = false;

    /// Fits with checked parameters.
    ///
    /// # Errors
    /// When the data cannot be used, the watch asked to stop, or training diverged.
    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Self::Fitted>;

    /// Checks the parameters and the data, then fits.
    ///
    /// # Errors
    /// As [`Fit::learn`], and when a parameter breaks its rules.
    fn fit(&self, data: &Dataset, run: &Run<'_>) -> Result<Self::Fitted> {
        let params = self.clone().check()?;
        data.check_fit()?;
        if let (Some(base), false) = (run.base, Self::GOES_ON) {
            return Err(cannot_go_on(&base.family));
        }
        Self::learn(&params, data, run)
    }
}

/// What to say of a family that cannot go on from a fitted model.
pub(crate) fn cannot_go_on(family: &str) -> Error {
    Error::Parameters(vec![format!(
        "a `{family}` model cannot be trained further; fit it to all rows"
    )])
}
