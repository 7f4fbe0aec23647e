//! Allocations whose size the user chooses, such as rows x samples: they fail with an error instead
//! of ending the process.

use crate::error::{Error, Result};

/// `n_rows` x `width` zeros.
///
/// # Errors
/// [`Error::Memory`] when there is not enough memory.
pub(crate) fn zeros<T: Clone + Default>(n_rows: usize, width: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve(&mut values, n_rows, width)?;
    values.resize(n_rows * width, T::default());
    Ok(values)
}

/// Room for `n_rows` x `width` more values.
///
/// # Errors
/// As [`zeros`].
pub(crate) fn reserve<T>(values: &mut Vec<T>, n_rows: usize, width: usize) -> Result<()> {
    let n_values = n_rows.checked_mul(width);
    if n_values.is_some_and(|n_values| values.try_reserve_exact(n_values).is_ok()) {
        return Ok(());
    }
    let bytes = [n_rows, width, size_of::<T>()]
        .map(|factor| factor as u64)
        .into_iter()
        .fold(1, u64::saturating_mul);
    Err(Error::Memory {
        what: format!("{n_rows} x {width} values"),
        bytes,
    })
}

/// Returns an error unless there is memory for `n_rows` x `width` numbers, for work that allocates them
/// in parts.
///
/// # Errors
/// As [`zeros`].
pub(crate) fn check(n_rows: usize, width: usize) -> Result<()> {
    reserve(&mut Vec::<f64>::new(), n_rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_address_space_are_errors() {
        for (n_rows, width) in [
            (300, usize::MAX / 8),
            (usize::MAX, usize::MAX),
            (1 << 60, 1),
        ] {
            let error = zeros::<f64>(n_rows, width).unwrap_err();
            assert!(matches!(error, Error::Memory { .. }), "{error}");
        }
        assert_eq!(zeros::<f64>(2, 3).unwrap(), [0.0; 6]);
        assert!(zeros::<f64>(0, usize::MAX).unwrap().is_empty());
    }
}
