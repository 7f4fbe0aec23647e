//! Checks sizes before memory is allocated, so that a request that is too large raises
//! `MemoryError` instead of ending the interpreter.

use std::fs;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Requests below this number of bytes are only reserved. Larger ones are compared with the free
/// memory, too: some systems reserve memory that they do not have, and end the process that uses it.
const MIN_BYTES_TO_COMPARE: u64 = 1 << 30;

/// An empty vector with room for `n` elements; `what` names them in the error.
pub(crate) fn reserve<T>(what: &str, n: usize) -> PyResult<Vec<T>> {
    let bytes = bytes_of::<T>(n);
    if bytes >= MIN_BYTES_TO_COMPARE && free_memory().is_some_and(|free| bytes > free) {
        return Err(too_large(what, bytes));
    }
    let mut values = Vec::new();
    match values.try_reserve_exact(n) {
        Ok(()) => Ok(values),
        Err(_) => Err(too_large(what, bytes)),
    }
}

/// A copy of some values; `what` names them in the error.
pub(crate) fn copied<T: Copy>(
    what: &str,
    values: impl ExactSizeIterator<Item = T>,
) -> PyResult<Vec<T>> {
    let mut copy = reserve(what, values.len())?;
    copy.extend(values);
    Ok(copy)
}

/// Raises `MemoryError` unless a table of numbers (rows x columns) can be allocated.
#[pyfunction]
pub(crate) fn check_matrix(what: &str, n_rows: usize, n_columns: usize) -> PyResult<()> {
    // a product beyond the range is too large to reserve; one row, because a computation may need
    // memory for each column even if there are no rows
    let n_values = n_rows.max(1).saturating_mul(n_columns);
    reserve::<f64>(
        &format!("{what} ({n_rows} x {n_columns} numbers)"),
        n_values,
    )
    .map(drop)
}

fn bytes_of<T>(n: usize) -> u64 {
    (n as u64).saturating_mul(size_of::<T>() as u64)
}

fn too_large(what: &str, bytes: u64) -> PyErr {
    // one decimal digit, without a rounding to zero
    let gigabytes = bytes as f64 / 1e9;
    PyMemoryError::new_err(format!(
        "{what} would take {gigabytes:.1} GB, which is more than the free memory; ask for less at a time"
    ))
}

/// Bytes that the system can still give to processes, where it tells.
fn free_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let entry = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    let system = entry("MemAvailable:")?.saturating_add(entry("SwapFree:").unwrap_or(0));
    Some(container_limit().map_or(system, |limit| limit.min(system)))
}

/// The memory limit of the container, if there is one.
fn container_limit() -> Option<u64> {
    let text = fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    text.trim().parse().ok()
}
