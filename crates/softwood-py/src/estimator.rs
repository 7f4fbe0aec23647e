//! Fitting, and the fitted model: made by `fit` or read from a file, asked through `answer`.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use softwood::{
    Column, Dataset, Distribution, Family, Key, Labels, Model, PermutationOptions, Pool, Result,
    Run, Schema, Table, Target, Task, Values, importances, model_from_bytes, model_to_bytes, ood,
    read_model, write_model,
};

use crate::convert::{RawColumn, RawTable, lone, vector};
use crate::dist::PyDistribution;
use crate::errors::to_python;
use crate::run::{outside_gil, stoppable};

/// The families with their parameter tables, as JSON.
#[pyfunction]
pub(crate) fn families() -> String {
    let all = Family::ALL.iter().map(|family| {
        json!({"name": family.name(), "summary": family.summary(), "params": family.table(),
               "supports_warm_start": family.supports_warm_start()})
    });
    Value::Array(all.collect()).to_string()
}

/// A labelled table as Python hands it over: feature columns, target column, row weights, and what the names of classes
/// stand for (`text`, `number`, `boolean`).
#[derive(FromPyObject)]
pub(crate) struct Labelled<'py>(
    RawTable<'py>,
    RawColumn,
    Option<PyReadonlyArray1<'py, f64>>,
    String,
);

impl Labelled<'_> {
    fn into_parts(self) -> PyResult<FitParts> {
        let unknown = |error: serde_json::Error| PyValueError::new_err(error.to_string());
        Ok(FitParts {
            labels: serde_json::from_value(self.3.into()).map_err(unknown)?,
            features: self.0.into_table()?,
            target: lone(self.1)?,
            weights: self.2.map(|weights| weights.as_array().to_vec()),
        })
    }
}

struct FitParts {
    features: Table,
    target: Table,
    weights: Option<Vec<f64>>,
    labels: Labels,
}

impl FitParts {
    /// A training set; a categorical target makes it classification.
    fn into_training(self) -> Result<Dataset> {
        let column = &self.target.columns()[0];
        let task = match &column.values {
            Values::Numeric(_) => Task::Regression,
            Values::Categorical { levels, .. } => Task::Classification {
                classes: levels.to_vec(),
            },
        };
        let schema = Schema::of(&self.features, &column.name, task).with_labels(self.labels);
        let target = schema.target_of(&self.target)?;
        Dataset::new(schema, self.features, target, self.weights)
    }

    /// Further rows of a kind that is known, coded as the first ones were.
    fn to_more_rows(&self, schema: &Schema) -> Result<Dataset> {
        let target = target_of(schema, &self.target)?;
        let features = schema.align(&self.features)?;
        Dataset::new(schema.clone(), features, target, self.weights.clone())
    }
}

/// The target in a table of one column: it goes by its place, since an array has no name.
fn target_of(schema: &Schema, target: &Table) -> Result<Target> {
    let column = Column {
        name: schema.target.clone(),
        values: target.columns()[0].values.clone(),
    };
    schema.target_of(&Table::new(vec![column])?)
}

/// Fits a family. `params` is a JSON object; the last argument is the seed, the number of threads (0: one per core) and a
/// fitted model to go on from.
#[pyfunction]
pub(crate) fn fit(
    py: Python<'_>,
    family: &str,
    params: &str,
    data: Labelled<'_>,
    held_out: Option<Labelled<'_>>,
    run: (u64, usize, Option<Bound<'_, PyModel>>),
) -> PyResult<PyModel> {
    let (seed, threads, base) = run;
    let family = Family::from_name(family).map_err(to_python)?;
    let spec = family.params_from_json(params).map_err(to_python)?;
    let base = base.as_ref().map(|base| &base.get().posterior);
    let parts = data.into_parts()?;
    let data = match base {
        None => parts.into_training(),
        Some(base) => parts.to_more_rows(base.schema()),
    };
    let data = data.map_err(to_python)?;
    let record = base.map(|base| base.record());
    let held_out = held_out.map(Labelled::into_parts).transpose()?;
    let held_out = held_out.map(|parts| parts.to_more_rows(data.schema()));
    let held_out = held_out.transpose().map_err(to_python)?;
    let posterior = stoppable(py, |observer| {
        let run = Run {
            key: Key::from_seed(seed),
            pool: &Pool::new(threads)?,
            observer,
            held_out: held_out.as_ref(),
            warm_start: record.as_ref(),
        };
        spec.fit(&data, &run)
    })?;
    Ok(PyModel::new(posterior))
}

/// A fitted model of any family.
#[pyclass(frozen, module = "softwood._native")]
#[derive(Debug)]
pub(crate) struct PyModel {
    posterior: Arc<dyn Model>,
}

impl PyModel {
    fn new(posterior: Box<dyn Model>) -> Self {
        Self {
            posterior: Arc::from(posterior),
        }
    }
}

#[pymethods]
impl PyModel {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        outside_gil(py, || read_model(&path)).map(Self::new)
    }

    /// Writes a model file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        outside_gil(py, || write_model(&path, &self.posterior.record()))
    }

    /// Reads a model from the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        outside_gil(py, || model_from_bytes(bytes)).map(Self::new)
    }

    /// The bytes of its model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &model_to_bytes(&self.posterior.record()))
    }

    /// Pickles as the bytes of its model file.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let read = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((read, (self.to_bytes(py),)))
    }

    /// Family, parameters, schema, training report and shape, as JSON.
    fn describe(&self) -> String {
        let record = self.posterior.record();
        json!({
            "family": record.family,
            "params": serde_json::from_str::<Value>(&self.posterior.params_json()).unwrap_or_default(),
            "schema": self.posterior.schema(),
            "training": self.posterior.training(),
            "n_members": self.posterior.n_members(),
        })
        .to_string()
    }

    /// Why its knowledge uncertainty should not be trusted, if so.
    fn warning(&self) -> Option<&str> {
        let members = self.posterior.training().members.as_ref()?;
        members.warning.as_deref()
    }

    /// The predictive distribution on these rows.
    fn answer(&self, columns: RawTable<'_>, threads: usize) -> PyResult<PyDistribution> {
        PyDistribution::new(Arc::clone(&self.posterior), columns.into_table()?, threads)
    }
    /// How well uncertainty tells two tables apart, as JSON.
    fn ood(
        &self,
        py: Python<'_>,
        inside: RawTable<'_>,
        outside: RawTable<'_>,
        threads: usize,
    ) -> PyResult<String> {
        let (inside, outside) = (inside.into_table()?, outside.into_table()?);
        let found = stoppable(py, |observer| {
            let pool = Pool::new(threads)?;
            let answer = |table| Distribution::new(&*self.posterior, table, &pool);
            ood(
                &answer(&inside)?.observed_by(observer),
                &answer(&outside)?.observed_by(observer),
            )
        })?;
        Ok(json!(found).to_string())
    }

    /// What the splits on each column gained in training; none for a family that does not split on columns.
    fn gains<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.posterior.gains().map(|gains| vector(py, gains))
    }

    /// The model as `text`, `svg` or `json`, where it is a single tree.
    fn tree_export(&self, form: &str) -> PyResult<Option<String>> {
        let outline = self.posterior.tree_export();
        outline
            .map(|outline| match form {
                "text" => Ok(outline.text()),
                "svg" => Ok(outline.svg()),
                "json" => Ok(json!(outline).to_string()),
                _ => Err(PyValueError::new_err(format!("no form is called {form}"))),
            })
            .transpose()
    }

    /// What columns are worth on some rows, as JSON; the last argument is repeats, seed and the number of threads.
    fn importances(
        &self,
        py: Python<'_>,
        columns: RawTable<'_>,
        target: Option<RawColumn>,
        reference: Option<RawTable<'_>>,
        run: (usize, u64, usize),
    ) -> PyResult<String> {
        let (repeats, seed, threads) = run;
        let rows = columns.into_table()?;
        let reference = reference.map(RawTable::into_table).transpose()?;
        let target = target.map(lone).transpose()?;
        let target = target.map(|target| target_of(self.posterior.schema(), &target));
        let target = target.transpose().map_err(to_python)?;
        let found = stoppable(py, |observer| {
            let pool = Pool::new(threads)?;
            let answer = Distribution::new(&*self.posterior, &rows, &pool)?;
            let shuffling = PermutationOptions {
                repeats,
                key: Key::from_seed(seed),
                reference: reference.as_ref(),
            };
            importances(&answer.observed_by(observer), target.as_ref(), &shuffling)
        })?;
        Ok(json!(found).to_string())
    }
}
