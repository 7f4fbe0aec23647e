//! Library errors as Python exceptions.

use std::path::Path;

use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyMemoryError, PyOSError, PyRuntimeError,
    PyValueError,
};
use softwood::Error;

/// The exception class that a Python user expects, with the message of the library. Work that Ctrl-C
/// stopped raises the exception of the signal handler instead.
pub(crate) fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Cancelled => PyRuntimeError::new_err(text),
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::File { path, .. } => file_error(&path, text),
        error if error.is_user_error() => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// The class that Python's `open` raises for this path.
fn file_error(path: &Path, text: String) -> PyErr {
    if path.is_dir() {
        PyIsADirectoryError::new_err(text)
    } else if path.exists() {
        PyOSError::new_err(text)
    } else {
        PyFileNotFoundError::new_err(text)
    }
}
