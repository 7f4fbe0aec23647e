//! The predictive distribution on some rows. Every method runs without the interpreter lock and
//! returns arrays.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use softwood::{Distribution, Key, Model, Pool, Result, Table, from_bytes};

use crate::convert::{DrawCount, RawTable, matrix, numbers_of, to_raw, vector};
use crate::errors::to_python;
use crate::interrupt::{interruptible, interruptible_inline, outside_gil};
use crate::memory::check_matrix;

/// Number of rows below which starting threads takes longer than the computation. Results do not
/// depend on the number of threads.
pub(crate) const MIN_ROWS_FOR_THREADS: usize = 512;

/// The predictive distribution of a model on some rows.
#[pyclass(frozen, name = "Distribution", module = "softwood._native")]
#[derive(Debug)]
pub(crate) struct PyDistribution {
    model: Arc<dyn Model>,
    /// The rows, aligned with the schema of the model.
    table: Table,
    n_threads: usize,
}

impl PyDistribution {
    pub(crate) fn new(model: Arc<dyn Model>, table: Table, n_threads: usize) -> PyResult<Self> {
        let table = model.schema().align_owned(table).map_err(to_python)?;
        Ok(Self {
            model,
            table,
            n_threads,
        })
    }

    /// Number of values that a member predicts for a row.
    fn n_outputs(&self) -> usize {
        self.model.schema().classes().map_or(1, <[String]>::len)
    }

    /// The model of `other`: that of `self` if both are copies of one model, as after pickling.
    fn model_of<'a>(&'a self, other: &'a Self) -> &'a dyn Model {
        let is_copy = || {
            Arc::ptr_eq(&self.model, &other.model)
                || self.model.to_bytes() == other.model.to_bytes()
        };
        if is_copy() {
            &*self.model
        } else {
            &*other.model
        }
    }

    /// Computes something from the distribution: `width` numbers for each row. The threads end with
    /// the computation, so that a process may fork between two computations.
    fn compute<T: Send>(
        &self,
        py: Python<'_>,
        width: usize,
        compute: impl FnOnce(&Distribution<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        check_matrix("the result", self.table.n_rows(), width)?;
        if self.table.n_rows() < MIN_ROWS_FOR_THREADS {
            return interruptible_inline(py, |observer| {
                let pool = Pool::new(1)?;
                let distribution = Distribution::borrowing(&*self.model, &self.table, &pool)?;
                compute(&distribution.observed_by(observer))
            });
        }
        interruptible(py, |observer| {
            let pool = Pool::new(self.n_threads)?;
            let distribution = Distribution::borrowing(&*self.model, &self.table, &pool)?;
            compute(&distribution.observed_by(observer))
        })
    }
}

/// A constructor and its arguments, as `pickle` stores them.
type Reduced<'py> = (
    Bound<'py, PyAny>,
    (Bound<'py, PyBytes>, Vec<Bound<'py, PyAny>>, usize),
);
type PyVector<'py> = PyResult<Bound<'py, PyArray1<f64>>>;
type PyMatrix<'py> = PyResult<Bound<'py, PyArray2<f64>>>;

#[pymethods]
impl PyDistribution {
    /// Number of rows.
    fn __len__(&self) -> usize {
        self.table.n_rows()
    }

    /// Rebuilds a pickled distribution from the bytes of the model file, the rows and the number of
    /// threads.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        model: &[u8],
        table: RawTable<'_>,
        n_threads: usize,
    ) -> PyResult<Self> {
        let model = outside_gil(py, || from_bytes(model))?;
        Self::new(Arc::from(model), table.into_table()?, n_threads)
    }

    /// A distribution is pickled as the bytes of the model file and the rows.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let model = PyBytes::new(py, &self.model.to_bytes());
        let columns = self.table.columns().iter().map(|column| to_raw(py, column));
        let columns = columns.collect::<PyResult<_>>()?;
        let restore = py.get_type::<Self>().getattr("restore")?;
        Ok((restore, (model, columns, self.n_threads)))
    }

    /// Mean, standard deviation, and total, data (aleatoric) and knowledge (epistemic) variance of
    /// each row (regression).
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let moments = self.compute(py, 5, |dist| dist.moments())?;
        let found = PyDict::new(py);
        found.set_item("mean", vector(py, moments.mean))?;
        found.set_item("std", vector(py, moments.std))?;
        found.set_item("total", vector(py, moments.variance.total))?;
        found.set_item("data", vector(py, moments.variance.data))?;
        found.set_item("knowledge", vector(py, moments.variance.knowledge))?;
        Ok(found)
    }

    /// Total, data (aleatoric) and knowledge (epistemic) uncertainty of each row: variances, or
    /// entropies in nats.
    fn uncertainty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let uncertainty = self.compute(py, 3, |dist| dist.uncertainty())?;
        let found = PyDict::new(py);
        found.set_item("total", vector(py, uncertainty.total))?;
        found.set_item("data", vector(py, uncertainty.data))?;
        found.set_item("knowledge", vector(py, uncertainty.knowledge))?;
        Ok(found)
    }

    /// Mean of each row (regression).
    fn mean<'py>(&self, py: Python<'py>) -> PyVector<'py> {
        Ok(vector(py, self.compute(py, 1, |dist| dist.mean())?))
    }

    /// Quantiles of each row (rows x levels).
    fn quantile<'py>(&self, py: Python<'py>, levels: PyReadonlyArray1<'_, f64>) -> PyMatrix<'py> {
        let levels = numbers_of("a copy of q", &levels)?;
        let values = self.compute(py, levels.len(), |dist| dist.quantile(&levels))?;
        matrix(py, values, [self.table.n_rows(), levels.len()])
    }

    /// Central interval of each row (rows x 2).
    fn interval<'py>(&self, py: Python<'py>, level: f64) -> PyMatrix<'py> {
        let values = self.compute(py, 2, |dist| dist.interval(level))?;
        matrix(py, values, [self.table.n_rows(), 2])
    }

    /// Cumulative distribution function of each row at `y`.
    fn cdf<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'_, f64>) -> PyVector<'py> {
        let y = numbers_of("a copy of y", &y)?;
        Ok(vector(py, self.compute(py, 1, |dist| dist.cdf(&y))?))
    }

    /// Log density of each row at `y`.
    fn logpdf<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'_, f64>) -> PyVector<'py> {
        let y = numbers_of("a copy of y", &y)?;
        Ok(vector(py, self.compute(py, 1, |dist| dist.logpdf(&y))?))
    }

    /// Continuous ranked probability score (CRPS) of each row at `y`.
    fn crps<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'_, f64>) -> PyVector<'py> {
        let y = numbers_of("a copy of y", &y)?;
        Ok(vector(py, self.compute(py, 1, |dist| dist.crps(&y))?))
    }

    /// Independent draws of each row (rows x n): numbers, or class indices.
    fn sample<'py>(&self, py: Python<'py>, n: DrawCount, seed: u64) -> PyMatrix<'py> {
        let DrawCount(n) = n;
        let values = self.compute(py, n, |dist| dist.sample(n, Key::from_seed(seed)))?;
        matrix(py, values, [self.table.n_rows(), n])
    }

    /// Conditional means of `n` sampled members, each used for all rows (rows x n), or their class
    /// probabilities (rows x (n x classes)).
    fn sample_functions<'py>(&self, py: Python<'py>, n: DrawCount, seed: u64) -> PyMatrix<'py> {
        let DrawCount(n) = n;
        let width = n.saturating_mul(self.n_outputs());
        let key = Key::from_seed(seed);
        let values = self.compute(py, width, |dist| dist.sample_functions(n, key))?;
        matrix(py, values, [self.table.n_rows(), width])
    }

    /// Conditional means of all members (rows x members), or their class probabilities (rows x
    /// (members x classes)).
    fn members<'py>(&self, py: Python<'py>) -> PyMatrix<'py> {
        let width = self.model.n_members() * self.n_outputs();
        let values = self.compute(py, width, |dist| dist.members())?;
        matrix(py, values, [self.table.n_rows(), width])
    }

    /// Mean (rows) and covariance (rows x rows) of the joint Normal distribution of the regression
    /// function at all rows; `None` for families without one in closed form.
    fn joint<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let n_rows = self.table.n_rows();
        let Some(joint) = self.compute(py, n_rows, |dist| dist.joint())? else {
            return Ok(None);
        };
        let found = PyDict::new(py);
        found.set_item("mean", vector(py, joint.mean))?;
        let covariance = matrix(py, joint.covariance, [n_rows, n_rows])?;
        found.set_item("covariance", covariance)?;
        Ok(Some(found))
    }

    /// The prediction minus that of `other`, which is of the same model for as many rows: mean,
    /// standard deviation and quantiles over the members (rows x outputs, rows x outputs, rows x
    /// (outputs x levels)), and the mean over the rows for each member (members x outputs).
    fn contrast<'py>(
        &self,
        py: Python<'py>,
        other: &Self,
        levels: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let levels = numbers_of("a copy of levels", &levels)?;
        let width = self.n_outputs().saturating_mul(levels.len() + 2);
        let contrast = self.compute(py, width, |dist| {
            let pool = Pool::new(1)?;
            let other = Distribution::borrowing(self.model_of(other), &other.table, &pool)?;
            dist.contrast(&other, &levels)
        })?;
        let (n_rows, n) = (self.table.n_rows(), contrast.n_outputs);
        let found = PyDict::new(py);
        found.set_item("mean", matrix(py, contrast.mean, [n_rows, n])?)?;
        found.set_item("std", matrix(py, contrast.std, [n_rows, n])?)?;
        let shape = [n_rows, n * levels.len()];
        found.set_item("quantiles", matrix(py, contrast.quantiles, shape)?)?;
        let shape = [self.model.n_members(), n];
        found.set_item("member_means", matrix(py, contrast.member_means, shape)?)?;
        Ok(found)
    }

    /// Class probabilities (rows x classes), index of the most probable class, and entropies of each
    /// row, in one pass over the model.
    fn class_summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = self.compute(py, self.n_outputs() + 3, |dist| dist.class_summary())?;
        let found = PyDict::new(py);
        let shape = [self.table.n_rows(), self.n_outputs()];
        found.set_item("probabilities", matrix(py, summary.probabilities, shape)?)?;
        found.set_item("labels", vector(py, summary.labels))?;
        found.set_item("total", vector(py, summary.uncertainty.total))?;
        found.set_item("data", vector(py, summary.uncertainty.data))?;
        found.set_item("knowledge", vector(py, summary.uncertainty.knowledge))?;
        Ok(found)
    }

    /// Class probabilities of each row (rows x classes).
    fn probabilities<'py>(&self, py: Python<'py>) -> PyMatrix<'py> {
        let values = self.compute(py, self.n_outputs(), |dist| dist.probabilities())?;
        let n_classes = self.model.head().n_components();
        matrix(py, values, [self.table.n_rows(), n_classes])
    }

    /// Index of the most probable class of each row.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(vector(py, self.compute(py, 1, |dist| dist.labels())?))
    }
}
