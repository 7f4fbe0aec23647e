//! Python's columns to the library's, and numbers back.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use softwood::{Column, Table, Values};

use crate::errors::to_python;

/// A column as `softwood._frame` hands it over: numbers with NaN for missing cells and no levels, or codes into levels.
pub(crate) struct RawColumn(Column);

impl<'py> FromPyObject<'_, 'py> for RawColumn {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, cells, levels) =
            object.extract::<(String, Bound<'py, PyAny>, Option<Vec<String>>)>()?;
        let values = match levels {
            None => Values::Numeric(numbers(&cells)?),
            Some(levels) => Values::Categorical {
                codes: cells
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

/// A column as it was handed over.
pub(crate) fn raw<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    let tuple = match &column.values {
        Values::Numeric(numbers) => (&column.name, vector(py, numbers.clone()).into_any(), None),
        Values::Categorical { codes, levels } => {
            let codes = vector(py, codes.clone()).into_any();
            (&column.name, codes, Some(levels.to_vec()))
        }
    };
    Ok(tuple.into_pyobject(py)?.into_any())
}

/// A number of things, as Python's whole numbers give it.
pub(crate) struct Count(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for Count {
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

/// A table as `softwood._frame` hands it over: columns one by one, or names and an array of numbers.
#[derive(FromPyObject)]
pub(crate) enum RawTable<'py> {
    Array(Vec<String>, PyReadonlyArray2<'py, f64>),
    #[pyo3(transparent)]
    Columns(Vec<RawColumn>),
}

impl RawTable<'_> {
    pub(crate) fn into_table(self) -> PyResult<Table> {
        let columns = match self {
            Self::Columns(columns) => columns.into_iter().map(RawColumn::into_column).collect(),
            Self::Array(names, array) => {
                let columns = names.into_iter().zip(by_column(&array));
                columns
                    .map(|(name, numbers)| Column::numeric(name, numbers))
                    .collect()
            }
        };
        Table::new(columns).map_err(to_python)
    }
}

/// A table of one column.
pub(crate) fn lone(column: RawColumn) -> PyResult<Table> {
    Table::new(vec![column.into_column()]).map_err(to_python)
}

/// Cells of an array that stay in the cache while they go to their columns.
const CELLS_AT_ONCE: usize = 4096;

fn by_column(array: &PyReadonlyArray2<'_, f64>) -> Vec<Vec<f64>> {
    let array = array.as_array();
    let (n_rows, n_columns) = array.dim();
    let Some(cells) = array.as_slice().filter(|_| n_columns > 1) else {
        return array.columns().into_iter().map(|c| c.to_vec()).collect();
    };
    let mut columns: Vec<Vec<f64>> = (0..n_columns).map(|_| vec![0.0; n_rows]).collect();
    // some rows at a time: each column alone would fetch all of the array from memory
    let rows_at_once = (CELLS_AT_ONCE / n_columns).max(8);
    let blocks = cells.chunks(rows_at_once * n_columns);
    for (block, first) in blocks.zip((0..).step_by(rows_at_once)) {
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

/// A one-dimensional array of 64-bit floats.
pub(crate) fn numbers(array: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    Ok(array
        .extract::<PyReadonlyArray1<'_, f64>>()?
        .as_array()
        .to_vec())
}

/// One number per row.
pub(crate) fn vector<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_vec(py, values)
}

/// Several numbers per row, row-major.
pub(crate) fn matrix(
    py: Python<'_>,
    values: Vec<f64>,
    shape: [usize; 2],
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    PyArray1::from_vec(py, values).reshape(shape)
}
