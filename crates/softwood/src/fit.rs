//! The entrance of every family: parameters and data go in, a posterior comes out.

use serde_json::Value;

use crate::data::dataset::Dataset;
use crate::data::schema::Schema;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::observer::{NoObserver, Observer};
use crate::par::Pool;
use crate::params::{Checked, Params};
use crate::rng::Key;
use crate::store::record::Record;

/// What a fit needs besides parameters and data.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Address of all random numbers.
    pub key: Key,
    /// Threads.
    pub pool: &'a Pool,
    /// Who hears of progress.
    pub observer: &'a dyn Observer,
    /// Rows for early stopping and choices; a part of the training rows is set aside where `None`.
    pub held_out: Option<&'a Dataset>,
    /// A fitted model of the same family to go on from; a family that cannot go on says so.
    pub warm_start: Option<&'a Record>,
}

impl<'a> Run<'a> {
    /// A run that nobody watches, from scratch.
    pub fn new(key: Key, pool: &'a Pool) -> Self {
        Self {
            key,
            pool,
            observer: &NoObserver,
            held_out: None,
            warm_start: None,
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
    type Fitted: Model + 'static;
    /// Name of the family, on the command line and in model files.
    const FAMILY: &'static str;
    /// Whether a fitted model can be trained further.
    const SUPPORTS_WARM_START: bool = false;

    /// Builds a fitted model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    fn restore(record: &Record) -> Result<Self::Fitted>;

    /// Fits with checked parameters.
    ///
    /// # Errors
    /// When the data cannot be used, the observer asked to stop, or training diverged.
    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Self::Fitted>;

    /// Checks the parameters and the data, then fits.
    ///
    /// # Errors
    /// As [`Fit::learn`], and when a parameter breaks its rules.
    fn fit(&self, data: &Dataset, run: &Run<'_>) -> Result<Self::Fitted> {
        let params = self.clone().check()?;
        data.check_fit()?;
        if let (Some(base), false) = (run.warm_start, Self::SUPPORTS_WARM_START) {
            return Err(no_warm_start(&base.family));
        }
        Self::learn(&params, data, run)
    }
}

/// What to say of a family that cannot go on from a fitted model.
pub(crate) fn no_warm_start(family: &str) -> Error {
    Error::Parameters(vec![format!(
        "a `{family}` model cannot be trained further; fit it to all rows"
    )])
}

/// Refuses a warm start from a model of another family.
///
/// # Errors
/// When the record is of another family.
pub(crate) fn check_same_family(family: &str, record: &Record) -> Result<()> {
    if record.family == family {
        return Ok(());
    }
    Err(Error::Parameters(vec![format!(
        "a warm start of `{family}` needs a `{family}` model, and this one is a `{}`",
        record.family
    )]))
}

/// Refuses a warm start on a table with other columns, categories or classes than the fitted model's.
///
/// # Errors
/// When the schemas differ.
pub(crate) fn check_same_schema(fitted: &Schema, data: &Dataset) -> Result<()> {
    if fitted == data.schema() {
        return Ok(());
    }
    Err(Error::Table(
        "the columns, categories or classes differ from those of the fitted model; a warm start needs the same ones"
            .to_owned(),
    ))
}

/// Refuses a warm start with other values of parameters that a fitted model cannot change.
///
/// # Errors
/// When one of `names` differs; the message has both values.
pub(crate) fn check_fixed_params(fitted: &Value, now: &Value, names: &[&str]) -> Result<()> {
    let Some(name) = names.iter().find(|&&name| fitted[name] != now[name]) else {
        return Ok(());
    };
    let word = |value: &Value| match value {
        Value::Null => "auto".to_owned(),
        Value::String(word) => word.clone(),
        value => value.to_string(),
    };
    Err(Error::Parameters(vec![format!(
        "`{name}` cannot change in a warm start: the fitted model has {}, not {}",
        word(&fitted[name]),
        word(&now[name])
    )]))
}
