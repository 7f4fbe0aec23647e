//! Which Python exception each of the library's errors becomes.

use std::path::Path;

use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyKeyboardInterrupt, PyOSError, PyRuntimeError,
    PyValueError,
};
use softwood::Error;

/// The exception a Python user would expect, with the library's own words.
pub(crate) fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Cancelled => PyKeyboardInterrupt::new_err(text),
        Error::File { path, .. } => file_error(&path, text),
        error if error.is_user_error() => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// The class `open` would have raised.
fn file_error(path: &Path, text: String) -> PyErr {
    if path.is_dir() {
        PyIsADirectoryError::new_err(text)
    } else if path.exists() {
        PyOSError::new_err(text)
    } else {
        PyFileNotFoundError::new_err(text)
    }
}
