//! The fitted model: files, predictive distributions, explanations.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use softwood::evaluate::{ood, score};
use softwood::explain::{PermutationOptions, importances};
use softwood::{Distribution, Key, Model, Pool, from_bytes, load};

use crate::convert::{RawColumn, RawTable, vector};
use crate::distribution::PyDistribution;
use crate::errors::to_python;
use crate::fit::target_of;
use crate::interrupt::{interruptible, outside_gil};

/// A fitted model of any family.
#[pyclass(frozen, name = "Model", module = "softwood._native")]
#[derive(Debug)]
pub(crate) struct PyModel {
    model: Arc<dyn Model>,
}

impl PyModel {
    pub(crate) fn new(model: Box<dyn Model>) -> Self {
        Self {
            model: Arc::from(model),
        }
    }

    pub(crate) fn model(&self) -> &dyn Model {
        &*self.model
    }
}

/// How columns are permuted for their importances, read from the attributes of
/// `softwood._arguments.ImportanceRun`.
#[derive(FromPyObject)]
pub(crate) struct ImportanceRun<'py> {
    /// Rows whose cells replace those of the permuted column; without them the column is permuted
    /// among its own rows.
    reference: Option<RawTable<'py>>,
    /// Permutations of each column.
    n_repeats: usize,
    seed: u64,
    /// Number of threads; 0: one per core.
    n_threads: usize,
}

#[pymethods]
impl PyModel {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        outside_gil(py, || load(&path)).map(Self::new)
    }

    /// Writes a model file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        outside_gil(py, || self.model.save(&path))
    }

    /// Reads a model from the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        outside_gil(py, || from_bytes(bytes)).map(Self::new)
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.model.to_bytes())
    }

    /// A model is pickled as the bytes of its file.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((from_bytes, (self.to_bytes(py),)))
    }

    /// Family, parameters, schema, whether the features have names, training report and number of
    /// members, as JSON.
    fn describe(&self) -> String {
        let params = serde_json::from_str::<Value>(&self.model.params_json());
        json!({
            "family": self.model.family(),
            "params": params.unwrap_or_default(),
            "schema": self.model.schema(),
            "has_names": self.model.schema().has_names(),
            "training": self.model.training(),
            "n_members": self.model.n_members(),
        })
        .to_string()
    }

    /// Why the knowledge (epistemic) uncertainty of this model is unreliable; none if there is no
    /// such reason.
    fn warning(&self) -> Option<&str> {
        let members = self.model.training().members.as_ref()?;
        members.warning.as_deref()
    }

    /// The predictive distribution on these rows.
    fn distribution(&self, table: RawTable<'_>, n_threads: usize) -> PyResult<PyDistribution> {
        PyDistribution::new(Arc::clone(&self.model), table.into_table()?, n_threads)
    }

    /// How well uncertainty separates in-domain rows from out-of-domain rows, as JSON.
    fn ood(
        &self,
        py: Python<'_>,
        inside: RawTable<'_>,
        outside: RawTable<'_>,
        n_threads: usize,
    ) -> PyResult<String> {
        let (inside, outside) = (inside.into_table()?, outside.into_table()?);
        let report = interruptible(py, |observer| {
            let pool = Pool::new(n_threads)?;
            let distribution = |table| Distribution::new(&*self.model, table, &pool);
            ood(
                &distribution(&inside)?.observed_by(observer),
                &distribution(&outside)?.observed_by(observer),
            )
        })?;
        Ok(json!(report).to_string())
    }

    /// Scores of the predictions on labelled rows, as JSON.
    fn score(
        &self,
        py: Python<'_>,
        table: RawTable<'_>,
        target: RawColumn,
        n_threads: usize,
    ) -> PyResult<String> {
        let table = table.into_table()?;
        let target = target_of(self.model.schema(), target.into_column()).map_err(to_python)?;
        let scores = interruptible(py, |observer| {
            let pool = Pool::new(n_threads)?;
            let distribution = Distribution::new(&*self.model, &table, &pool)?;
            let target_sd = self.model.training().target_sd;
            score(&distribution.observed_by(observer), &target, target_sd)
        })?;
        Ok(json!(scores).to_string())
    }

    /// Total gain of the splits on each column, as a fraction of the sum; none if the family does
    /// not split on columns.
    fn gains<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.gains().map(|gains| vector(py, gains))
    }

    /// The tree as `text`, `svg` or `json`; none if the model is not a single tree.
    fn tree_export(&self, format: &str) -> PyResult<Option<String>> {
        let tree = self.model.tree_export();
        tree.map(|tree| match format {
            "text" => Ok(tree.text()),
            "svg" => Ok(tree.svg()),
            "json" => Ok(json!(tree).to_string()),
            _ => Err(PyValueError::new_err(format!(
                "format = `{format}`: expected text, svg or json"
            ))),
        })
        .transpose()
    }

    /// The posterior over the structure of the tree as JSON; none if the family has none.
    fn structure(&self) -> Option<String> {
        let structure = self.model.structure();
        structure.map(|structure| json!(structure).to_string())
    }

    /// Permutation importances of the columns on some rows, as JSON.
    fn importances(
        &self,
        py: Python<'_>,
        table: RawTable<'_>,
        target: Option<RawColumn>,
        run: ImportanceRun<'_>,
    ) -> PyResult<String> {
        let table = table.into_table()?;
        let reference = run.reference.map(RawTable::into_table).transpose()?;
        let target = target.map(|target| target_of(self.model.schema(), target.into_column()));
        let target = target.transpose().map_err(to_python)?;
        let (n_repeats, seed, n_threads) = (run.n_repeats, run.seed, run.n_threads);
        let found = interruptible(py, |observer| {
            let pool = Pool::new(n_threads)?;
            let distribution = Distribution::new(&*self.model, &table, &pool)?;
            let options = PermutationOptions {
                repeats: n_repeats,
                key: Key::from_seed(seed),
                reference: reference.as_ref(),
            };
            importances(
                &distribution.observed_by(observer),
                target.as_ref(),
                &options,
            )
        })?;
        Ok(json!(found).to_string())
    }
}
