//! Tables and arrays: from Python to the library and back.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use softwood::data::Values;
use softwood::{Column, Table};

use crate::errors::to_python;

/// A column from Python: the tuple `softwood._arguments.Column` of name, values and levels. Values
/// are numbers with NaN for missing cells if there are no levels, codes into the levels otherwise.
pub(crate) struct RawColumn(Column);

impl<'py> FromPyObject<'_, 'py> for RawColumn {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, values, levels) =
            object.extract::<(String, Bound<'py, PyAny>, Option<Vec<String>>)>()?;
        let values = match levels {
            None => Values::Numeric(
                values
                    .extract::<PyReadonlyArray1<'_, f64>>()?
                    .as_array()
                    .to_vec(),
            ),
            Some(levels) => Values::Categorical {
                codes: values
                    .extract::<PyReadonlyArray1<'_, u32>>()?
                    .as_array()
                    .to_vec(),
                levels: Arc::new(levels),
            },
        };
        Ok(Self(Column { name, values }))
    }
}

impl RawColumn {
    pub(crate) fn into_column(self) -> Column {
        self.0
    }
}

/// The tuple that [`RawColumn`] reads. It is a plain tuple, so that a pickle names no Python class.
pub(crate) fn to_raw<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    let tuple = match &column.values {
        Values::Numeric(numbers) => (&column.name, vector(py, numbers.clone()).into_any(), None),
        Values::Categorical { codes, levels } => {
            let codes = vector(py, codes.clone()).into_any();
            (&column.name, codes, Some(levels.to_vec()))
        }
    };
    Ok(tuple.into_pyobject(py)?.into_any())
}

/// The number `n` of draws, from a Python integer.
pub(crate) struct DrawCount(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for DrawCount {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u32>() {
            Ok(count) => Ok(Self(count as usize)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                let found = object.str()?;
                let problem = format!(
                    "n = {}: expected a whole number from 0 to {}",
                    found.to_cow()?,
                    u32::MAX
                );
                Err(PyValueError::new_err(problem))
            }
            Err(error) => Err(error),
        }
    }
}

/// A table from Python: a list of columns, or the names and the two-dimensional array of
/// `softwood._arguments.ArrayTable`.
#[derive(FromPyObject)]
pub(crate) enum RawTable<'py> {
    Array {
        names: Vec<String>,
        values: PyReadonlyArray2<'py, f64>,
    },
    #[pyo3(transparent)]
    Columns(Vec<RawColumn>),
}

impl RawTable<'_> {
    pub(crate) fn into_table(self) -> PyResult<Table> {
        let columns = match self {
            Self::Columns(columns) => columns.into_iter().map(RawColumn::into_column).collect(),
            Self::Array { names, values } => {
                let columns = names.into_iter().zip(to_columns(&values));
                columns
                    .map(|(name, values)| Column::numeric(name, values))
                    .collect()
            }
        };
        Table::new(columns).map_err(to_python)
    }
}

/// Cells of an array that are transposed at a time; they fit into the cache.
const CELLS_PER_BLOCK: usize = 4096;

fn to_columns(array: &PyReadonlyArray2<'_, f64>) -> Vec<Vec<f64>> {
    let array = array.as_array();
    let (n_rows, n_columns) = array.dim();
    let Some(cells) = array.as_slice().filter(|_| n_columns > 1) else {
        return array.columns().into_iter().map(|c| c.to_vec()).collect();
    };
    let mut columns: Vec<Vec<f64>> = (0..n_columns).map(|_| vec![0.0; n_rows]).collect();
    // block by block of rows: column by column, every column would read the whole array from memory
    let rows_per_block = (CELLS_PER_BLOCK / n_columns).max(8);
    let blocks = cells.chunks(rows_per_block * n_columns);
    for (block, first) in blocks.zip((0..).step_by(rows_per_block)) {
        for (at, column) in columns.iter_mut().enumerate() {
            for (cell, row) in column[first..]
                .iter_mut()
                .zip(block.chunks_exact(n_columns))
            {
                *cell = row[at];
            }
        }
    }
    columns
}

/// A one-dimensional array.
pub(crate) fn vector<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_vec(py, values)
}

/// A two-dimensional array from row-major values.
pub(crate) fn matrix(
    py: Python<'_>,
    values: Vec<f64>,
    shape: [usize; 2],
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    PyArray1::from_vec(py, values).reshape(shape)
}
