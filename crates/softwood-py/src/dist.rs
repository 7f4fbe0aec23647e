//! The predictive distribution on some rows: each question runs outside the lock and comes back as an array.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use softwood::{Distribution, Key, Model, Pool, Result, Table, model_from_bytes, model_to_bytes};

use crate::convert::{Count, RawTable, matrix, raw, vector};
use crate::errors::to_python;
use crate::run::{outside_gil, stoppable};

/// Rows below which starting threads takes longer than answering. Answers do not depend on the number of threads.
const ROWS_FOR_THREADS: usize = 512;

/// What a model says of some rows.
#[pyclass(frozen, module = "softwood._native")]
#[derive(Debug)]
pub(crate) struct PyDistribution {
    posterior: Arc<dyn Model>,
    table: Table,
    threads: usize,
}

impl PyDistribution {
    pub(crate) fn new(posterior: Arc<dyn Model>, table: Table, threads: usize) -> PyResult<Self> {
        let table = posterior.schema().align_owned(table).map_err(to_python)?;
        Ok(Self {
            posterior,
            table,
            threads,
        })
    }

    /// Threads live as long as one question, so that a process that forks between two is safe.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Distribution<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        if self.table.n_rows() < ROWS_FOR_THREADS {
            return outside_gil(py, || {
                let pool = Pool::new(1)?;
                question(&Distribution::borrowing(
                    &*self.posterior,
                    &self.table,
                    &pool,
                )?)
            });
        }
        stoppable(py, |observer| {
            let pool = Pool::new(self.threads)?;
            let answer = Distribution::borrowing(&*self.posterior, &self.table, &pool)?;
            question(&answer.observed_by(observer))
        })
    }
}

/// How an object is made again: by what, from what.
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

    /// An answer from what it pickles as: the bytes of the model's file, the rows, the number of threads.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        model: &[u8],
        columns: RawTable<'_>,
        threads: usize,
    ) -> PyResult<Self> {
        let posterior = outside_gil(py, || model_from_bytes(model))?;
        Self::new(Arc::from(posterior), columns.into_table()?, threads)
    }

    /// Pickles as model and rows.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let model = PyBytes::new(py, &model_to_bytes(&self.posterior.record()));
        let columns = self.table.columns().iter().map(|column| raw(py, column));
        let columns = columns.collect::<PyResult<_>>()?;
        let restore = py.get_type::<Self>().getattr("restore")?;
        Ok((restore, (model, columns, self.threads)))
    }

    /// Mean, sd, total, data and knowledge variance of each row (regression).
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let moments = self.ask(py, |dist| dist.moments())?;
        let found = PyDict::new(py);
        found.set_item("mean", vector(py, moments.mean))?;
        found.set_item("std", vector(py, moments.sd))?;
        found.set_item("total", vector(py, moments.variance.total))?;
        found.set_item("data", vector(py, moments.variance.data))?;
        found.set_item("knowledge", vector(py, moments.variance.knowledge))?;
        Ok(found)
    }

    /// Total, data and knowledge uncertainty of each row: variances, or entropies in nats.
    fn uncertainty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let uncertainty = self.ask(py, |dist| dist.uncertainty())?;
        let found = PyDict::new(py);
        found.set_item("total", vector(py, uncertainty.total))?;
        found.set_item("data", vector(py, uncertainty.data))?;
        found.set_item("knowledge", vector(py, uncertainty.knowledge))?;
        Ok(found)
    }

    /// Mean of each row (regression).
    fn mean<'py>(&self, py: Python<'py>) -> PyVector<'py> {
        Ok(vector(py, self.ask(py, |dist| dist.mean())?))
    }

    /// Quantiles of each row, rows x levels.
    fn quantile<'py>(&self, py: Python<'py>, levels: PyReadonlyArray1<'_, f64>) -> PyMatrix<'py> {
        let levels = levels.as_array().to_vec();
        let values = self.ask(py, |dist| dist.quantile(&levels))?;
        matrix(py, values, [self.table.n_rows(), levels.len()])
    }

    /// Central interval of each row, rows x 2.
    fn interval<'py>(&self, py: Python<'py>, level: f64) -> PyMatrix<'py> {
        let values = self.ask(py, |dist| dist.interval(level))?;
        matrix(py, values, [self.table.n_rows(), 2])
    }

    /// Probability of at most `y` on each row.
    fn cdf<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'_, f64>) -> PyVector<'py> {
        let y = y.as_array().to_vec();
        Ok(vector(py, self.ask(py, |dist| dist.cdf(&y))?))
    }

    /// Log density of `y` on each row.
    fn log_density<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'_, f64>) -> PyVector<'py> {
        let y = y.as_array().to_vec();
        Ok(vector(py, self.ask(py, |dist| dist.log_density(&y))?))
    }

    /// Continuous ranked probability score of `y` on each row.
    fn crps<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'_, f64>) -> PyVector<'py> {
        let y = y.as_array().to_vec();
        Ok(vector(py, self.ask(py, |dist| dist.crps(&y))?))
    }

    /// Independent draws on each row, rows x n: numbers, or class indices.
    fn sample<'py>(&self, py: Python<'py>, n: Count, seed: u64) -> PyMatrix<'py> {
        let Count(n) = n;
        let values = self.ask(py, |dist| dist.sample(n, Key::from_seed(seed)))?;
        matrix(py, values, [self.table.n_rows(), n])
    }

    /// Conditional means of sampled members, the same on every row, rows x n.
    fn sample_functions<'py>(&self, py: Python<'py>, n: Count, seed: u64) -> PyMatrix<'py> {
        let Count(n) = n;
        let values = self.ask(py, |dist| dist.sample_functions(n, Key::from_seed(seed)))?;
        matrix(py, values, [self.table.n_rows(), n])
    }

    /// Class probabilities of each row, rows x classes.
    fn probabilities<'py>(&self, py: Python<'py>) -> PyMatrix<'py> {
        let values = self.ask(py, |dist| dist.probabilities())?;
        let n_classes = self.posterior.head().n_components();
        matrix(py, values, [self.table.n_rows(), n_classes])
    }

    /// Most probable class of each row, as an index.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(vector(py, self.ask(py, |dist| dist.labels())?))
    }
}
