//! Turns panics of the Arrow and Parquet readers into errors. Those crates panic on some damaged
//! files, which they take for a mistake of their caller.

use std::panic::{AssertUnwindSafe, catch_unwind};

use softwood::{Error, Result};

/// Runs a reader and reports a panic inside it as a damaged file.
pub(crate) fn catch_panic<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    // unwind safe: everything the reader was building is dropped with the panic
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::Table("the file is damaged".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        let message = catch_panic::<()>(|| panic!("unexpected bytes")).unwrap_err();
        assert_eq!(message.to_string(), "the file is damaged");
        assert!(catch_panic(|| Ok(())).is_ok());
    }
}
