//! Tables and arrays: from Python to the library and back.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use softwood::data::Values;
use softwood::{Column, Table};

use crate::errors::to_python;
use crate::memory::{check_matrix, copied, reserve};

/// A column from Python: the tuple `softwood._arguments.Column` of name, values and levels. Values
/// are numbers with NaN for missing cells if there are no levels, codes into the levels otherwise.
pub(crate) struct RawColumn(Column);

impl<'py> FromPyObject<'_, 'py> for RawColumn {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, values, levels) =
            object.extract::<(String, Bound<'py, PyAny>, Option<Vec<String>>)>()?;
        let values = match levels {
            None => {
                let numbers = values.extract::<PyReadonlyArray1<'_, f64>>()?;
                Values::Numeric(numbers_of(&format!("column `{name}`"), &numbers)?)
            }
            Some(levels) => {
                let codes = values.extract::<PyReadonlyArray1<'_, u32>>()?;
                let codes = codes.as_array();
                Values::Categorical {
                    codes: copied(&format!("column `{name}`"), codes.iter().copied())?,
                    levels: Arc::new(levels),
                }
            }
        };
        Ok(Self(Column { name, values }))
    }
}

/// A copy of an array of numbers; `what` names it in errors.
pub(crate) fn numbers_of(what: &str, array: &PyReadonlyArray1<'_, f64>) -> PyResult<Vec<f64>> {
    copied(what, array.as_array().iter().copied())
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
            Err(_) => {
                let found = object.get_type().name()?;
                let problem = format!("n is a {}: expected a whole number", found.to_cow()?);
                Err(PyTypeError::new_err(problem))
            }
        }
    }
}

/// A table from Python: a list of columns, or the names and the two-dimensional array of
/// `softwood._arguments.ArrayTable`.
pub(crate) enum RawTable<'py> {
    Array {
        names: Vec<String>,
        values: PyReadonlyArray2<'py, f64>,
    },
    Columns(Vec<RawColumn>),
}

impl<'py> FromPyObject<'_, 'py> for RawTable<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // not derived: the error of a column, such as too little memory, is raised as it is
        if object.is_instance_of::<PyList>() {
            return object.extract().map(Self::Columns);
        }
        let (names, values) = (object.getattr("names")?, object.getattr("values")?);
        Ok(Self::Array {
            names: names.extract()?,
            values: values.extract()?,
        })
    }
}

impl RawTable<'_> {
    pub(crate) fn into_table(self) -> PyResult<Table> {
        let columns = match self {
            Self::Columns(columns) => columns.into_iter().map(RawColumn::into_column).collect(),
            Self::Array { names, values } => {
                let columns = names.into_iter().zip(to_columns(&values)?);
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

fn to_columns(array: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<Vec<f64>>> {
    let array = array.as_array();
    let (n_rows, n_columns) = array.dim();
    check_matrix("a copy of X", n_rows, n_columns)?;
    let Some(cells) = array.as_slice().filter(|_| n_columns > 1) else {
        let columns = array.columns().into_iter();
        return columns
            .map(|column| copied("a column of X", column.iter().copied()))
            .collect();
    };
    let mut columns = Vec::with_capacity(n_columns);
    for _ in 0..n_columns {
        columns.push(reserve("a column of X", n_rows)?);
    }
    // block by block of rows: column by column, every column would read the whole array from memory
    let rows_per_block = (CELLS_PER_BLOCK / n_columns).max(8);
    for block in cells.chunks(rows_per_block * n_columns) {
        for (at, column) in columns.iter_mut().enumerate() {
            column.extend(block.chunks_exact(n_columns).map(|row| row[at]));
        }
    }
    Ok(columns)
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
