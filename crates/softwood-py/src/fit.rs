//! Fitting: families, parameters and labelled tables from Python to the library.

use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use softwood::data::{Labels, Schema, Target, Task, Values};
use softwood::observer::{Observer, Observers, TimeLimit};
use softwood::{Column, Dataset, Family, Key, Pool, Result, Run, Table};

use crate::callback::Callback;
use crate::convert::{RawColumn, RawTable, numbers_of};
use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::model::PyModel;

/// The families with their parameter tables, as JSON.
#[pyfunction]
pub(crate) fn families() -> String {
    let all = Family::ALL.iter().map(|family| {
        json!({"name": family.name(), "summary": family.summary(), "params": family.table(),
               "supports_warm_start": family.supports_warm_start(),
               "supports_classes": family.supports_classes()})
    });
    Value::Array(all.collect()).to_string()
}

/// Notes on former names among parameters and their values; each note gives the current name.
#[pyfunction]
pub(crate) fn former_names(family: &str, params: Vec<(String, String)>) -> PyResult<Vec<String>> {
    let family = Family::from_name(family).map_err(to_python)?;
    Ok(family.former_names(&params))
}

/// A table with a target, read from the attributes of `softwood._arguments.LabelledTable`.
#[derive(FromPyObject)]
pub(crate) struct LabelledTable<'py> {
    features: RawTable<'py>,
    target: RawColumn,
    /// Row weights.
    weights: Option<PyReadonlyArray1<'py, f64>>,
    /// Type of the class labels: `text`, `number` or `boolean`.
    labels: String,
    /// NumPy type of the class labels.
    label_dtype: Option<String>,
    /// Whether the features have column names.
    is_named: bool,
}

impl LabelledTable<'_> {
    /// A training set with a schema of its own.
    pub(crate) fn into_training_set(self) -> PyResult<Dataset> {
        self.into_rows()?.into_training_set().map_err(to_python)
    }

    fn into_rows(self) -> PyResult<LabelledRows> {
        let weights = self.weights.as_ref();
        let weights = weights.map(|weights| numbers_of("sample_weight", weights));
        let unknown = |error: serde_json::Error| PyValueError::new_err(error.to_string());
        Ok(LabelledRows {
            labels: serde_json::from_value(self.labels.into()).map_err(unknown)?,
            features: self.features.into_table()?,
            target: self.target.into_column(),
            weights: weights.transpose()?,
            label_dtype: self.label_dtype,
            is_named: self.is_named,
        })
    }
}

/// A [`LabelledTable`] in the types of the library.
struct LabelledRows {
    features: Table,
    target: Column,
    weights: Option<Vec<f64>>,
    labels: Labels,
    label_dtype: Option<String>,
    is_named: bool,
}

impl LabelledRows {
    /// A training set with a schema of its own; a categorical target makes it classification.
    fn into_training_set(self) -> Result<Dataset> {
        let task = match &self.target.values {
            Values::Numeric(_) => Task::Regression,
            Values::Categorical { levels, .. } => Task::Classification {
                classes: levels.to_vec(),
            },
        };
        let schema = Schema::of(&self.features, &self.target.name, task)
            .with_labels(self.labels)
            .with_label_dtype(self.label_dtype);
        let schema = if self.is_named {
            schema
        } else {
            schema.without_names()
        };
        let target = schema.target_of(&Table::new(vec![self.target])?)?;
        Dataset::new(schema, self.features, target, self.weights)
    }

    /// A dataset with an existing schema: its columns, categories and classes.
    fn into_dataset(self, schema: &Schema) -> Result<Dataset> {
        let target = target_of(schema, self.target)?;
        let features = schema.align_owned(self.features)?;
        Dataset::new(schema.clone(), features, target, self.weights)
    }
}

/// The target in the coding of the schema. The name of the column does not matter, since arrays
/// have no names.
pub(crate) fn target_of(schema: &Schema, column: Column) -> Result<Target> {
    let column = Column {
        name: schema.target.clone(),
        values: column.values,
    };
    schema.target_of(&Table::new(vec![column])?)
}

/// Everything that a fit needs besides parameters and training data, read from the attributes of
/// `softwood._arguments.FitRun`.
#[derive(FromPyObject)]
pub(crate) struct FitRun<'py> {
    seed: u64,
    /// Number of threads; 0: one per core.
    n_threads: usize,
    /// Validation set.
    validation: Option<LabelledTable<'py>>,
    /// A fitted model to train further.
    warm_start: Option<Bound<'py, PyModel>>,
    /// Seconds after which the fit stops and keeps the best model so far.
    time_limit: Option<f64>,
    /// The `softwood._callbacks.Dispatcher` that receives every event and returns whether to stop.
    callback: Option<Bound<'py, PyAny>>,
    /// Whether some callback may want a model of the present state of the fit.
    with_snapshots: bool,
}

fn duration(seconds: f64) -> PyResult<Duration> {
    let positive = Some(seconds).filter(|seconds| *seconds > 0.0);
    positive
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "time_limit = {seconds}: expected a positive number of seconds"
            ))
        })
}

/// Fits a model of a family; `params` is a JSON object.
#[pyfunction]
pub(crate) fn fit(
    py: Python<'_>,
    family: &str,
    params: &str,
    data: LabelledTable<'_>,
    run: FitRun<'_>,
) -> PyResult<PyModel> {
    let family = Family::from_name(family).map_err(to_python)?;
    let spec = family.params_from_json(params).map_err(to_python)?;
    let earlier = run.warm_start.as_ref().map(|model| model.get().model());
    let rows = data.into_rows()?;
    let data = match earlier {
        None => rows.into_training_set(),
        Some(earlier) => rows.into_dataset(earlier.schema()),
    };
    let data = data.map_err(to_python)?;
    let validation = run.validation.map(LabelledTable::into_rows).transpose()?;
    let validation = validation.map(|rows| rows.into_dataset(data.schema()));
    let validation = validation.transpose().map_err(to_python)?;
    let (seed, n_threads) = (run.seed, run.n_threads);
    let limit = run.time_limit.map(duration).transpose()?;
    let callback = (run.callback).map(|call| Callback::new(call.unbind(), run.with_snapshots));
    let model = interruptible(py, |interrupt| {
        let limit = limit.map(TimeLimit::new);
        let mut observers = vec![interrupt];
        observers.extend(limit.as_ref().map(|limit| limit as &dyn Observer));
        observers.extend(callback.as_ref().map(|callback| callback as &dyn Observer));
        let observers = Observers(observers);
        let pool = Pool::new(n_threads)?;
        let mut run = Run::new(Key::from_seed(seed), &pool).observer(&observers);
        run.held_out = validation.as_ref();
        run.warm_start = earlier;
        spec.fit_with(&data, &run)
    });
    match callback.and_then(|callback| callback.take_exception()) {
        Some(exception) => Err(exception),
        None => Ok(PyModel::new(model?)),
    }
}
