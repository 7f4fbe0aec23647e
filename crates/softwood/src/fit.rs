//! The interface that every model family implements for fitting: parameters and data go in, a
//! fitted model comes out.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use crate::data::dataset::Dataset;
use crate::data::schema::Schema;
use crate::error::{Error, Result};
use crate::extrapolation::Extrapolation;
use crate::model::Model;
use crate::observer::{CancellingObserver, NoObserver, Observer};
use crate::par::Pool;
use crate::params::{Checked, Params};
use crate::rng::Key;
use crate::stop;
use crate::store::record::Record;

/// Random stream of the process for extrapolation; the streams of families are small numbers.
const EXTRAPOLATION: u64 = 1 << 33;

/// Settings of one fit besides its parameters and data.
///
/// ```
/// use softwood::{Key, Pool, Run};
/// use softwood::observer::TimeLimit;
///
/// let pool = Pool::new(2)?;
/// let limit = TimeLimit::new(std::time::Duration::from_secs(60));
/// let run = Run::new(Key::from_seed(7), &pool).observer(&limit);
/// # Ok::<(), softwood::Error>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Run<'a> {
    /// Root key of all random streams of the fit.
    pub key: Key,
    /// Thread pool.
    pub pool: &'a Pool,
    /// Receives progress and may stop the fit.
    pub observer: &'a dyn Observer,
    /// Validation set for early stopping and model selection. `None`: the family splits one off the
    /// training rows.
    pub held_out: Option<&'a Dataset>,
    /// Fitted model of the same family to continue training from; families without warm starts
    /// return an error.
    pub warm_start: Option<&'a dyn Model>,
    /// What widens the predictions of the model away from the training rows.
    pub(crate) extrapolation: Option<&'a Arc<Extrapolation>>,
}

impl<'a> Run<'a> {
    /// A run from scratch without observer and without validation set.
    pub fn new(key: Key, pool: &'a Pool) -> Self {
        Self {
            key,
            pool,
            observer: &NoObserver,
            held_out: None,
            warm_start: None,
            extrapolation: None,
        }
    }

    /// Sets the observer, which receives events and may stop the fit.
    #[must_use]
    pub fn observer(self, observer: &'a dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// Sets the validation set for early stopping and model selection.
    #[must_use]
    pub fn held_out(self, data: &'a Dataset) -> Self {
        Self {
            held_out: Some(data),
            ..self
        }
    }

    /// Sets the fitted model that training continues from.
    #[must_use]
    pub fn warm_start(self, model: &'a dyn Model) -> Self {
        Self {
            warm_start: Some(model),
            ..self
        }
    }

    /// The fitted model that training continues from, as the type of its family.
    ///
    /// # Errors
    /// When it is a model of another family.
    pub(crate) fn fitted<M: Model>(&self, family: &str) -> Result<Option<&'a M>> {
        let Some(model) = self.warm_start else {
            return Ok(None);
        };
        let fitted = (model as &dyn Any).downcast_ref();
        match fitted.filter(|_| model.family() == family) {
            Some(fitted) => Ok(Some(fitted)),
            None => Err(Error::Parameters(vec![format!(
                "a warm start of `{family}` needs a `{family}` model, and this one is a `{}`",
                model.family()
            )])),
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
    /// The fitted model.
    type Fitted: Model + 'static;
    /// Name of the family, on the command line and in model files.
    const FAMILY: &'static str;
    /// Whether a fitted model can be trained further.
    const SUPPORTS_WARM_START: bool = false;
    /// Whether training further takes a small part of the time of a fit. Boosting adds as many trees as a
    /// fit has, so that it does not.
    const WARM_START_IS_SHORT: bool = false;
    /// Whether the target may be classes.
    const SUPPORTS_CLASSES: bool = true;

    /// Whether the knowledge uncertainty of a fitted model grows away from the training rows.
    fn extrapolates(&self) -> bool {
        false
    }

    /// Restores a fitted model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or inconsistent.
    fn restore(record: &Record) -> Result<Self::Fitted>;

    /// Fits with checked parameters.
    ///
    /// # Errors
    /// When the data cannot be used, the observer stops the fit, or training diverges.
    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Self::Fitted>;

    /// Fits with seed 0 on all threads of the machine; [`Fit::fit_with`] takes other settings.
    ///
    /// # Errors
    /// As [`Fit::fit_with`].
    fn fit(&self, data: &Dataset) -> Result<Self::Fitted> {
        self.fit_with(data, &Run::new(Key::from_seed(0), &Pool::new(0)?))
    }

    /// Checks the parameters and the data, then fits.
    ///
    /// # Errors
    /// As [`Fit::learn`], and when a parameter is outside its range.
    fn fit_with(&self, data: &Dataset, run: &Run<'_>) -> Result<Self::Fitted> {
        let params = self.clone().check()?;
        if data.schema().classes().is_some() && !Self::SUPPORTS_CLASSES {
            return Err(no_classes(Self::FAMILY, &data.schema().target));
        }
        data.check_fit()?;
        if run.warm_start.is_some() && !Self::SUPPORTS_WARM_START {
            return Err(no_warm_start(Self::FAMILY));
        }
        let observer = CancellingObserver::new(run.observer);
        stop::cancellable(observer.cancel_tokens(), || {
            stop::check()?;
            let extrapolation = if params.extrapolates() {
                Extrapolation::fit(data, run.key.child(EXTRAPOLATION))?.map(Arc::new)
            } else {
                None
            };
            let run = Run {
                observer: &observer,
                extrapolation: extrapolation.as_ref(),
                ..*run
            };
            Self::learn(&params, data, &run)
        })
    }
}

/// The error of a family that does not support warm starts.
pub(crate) fn no_warm_start(family: &str) -> Error {
    Error::Parameters(vec![format!(
        "a `{family}` model cannot be trained further; fit it to all rows"
    )])
}

/// The error of a family for regression whose target has classes.
fn no_classes(family: &str, target: &str) -> Error {
    let problem = format!(
        "`{family}` predicts numbers, and this target has classes; use `vst`, `sgb` or `sglb` for classes, or a \
         numeric target"
    );
    Error::column(target, problem)
}

/// Returns an error unless the data have the columns, categories and classes of the fitted model,
/// which a warm start requires.
///
/// # Errors
/// When the schemas differ.
pub(crate) fn check_same_schema(fitted: &Schema, data: &Dataset) -> Result<()> {
    if fitted.describes_same_data(data.schema()) {
        return Ok(());
    }
    Err(Error::Table(
        "the columns, categories or classes differ from those of the fitted model; a warm start needs the same ones"
            .to_owned(),
    ))
}

/// Returns an error if a warm start changes a parameter that is fixed once a model is fitted.
///
/// # Errors
/// When one of `names` differs; the message shows both values.
pub(crate) fn check_fixed_params(fitted: &Value, requested: &Value, names: &[&str]) -> Result<()> {
    let Some(name) = names.iter().find(|&&name| fitted[name] != requested[name]) else {
        return Ok(());
    };
    let shown = |value: &Value| match value {
        Value::Null => "auto".to_owned(),
        Value::String(word) => word.clone(),
        value => value.to_string(),
    };
    Err(Error::Parameters(vec![format!(
        "`{name}` cannot change in a warm start: the fitted model has {}, not {}",
        shown(&fitted[name]),
        shown(&requested[name])
    )]))
}
