//! Stops panics of the Arrow readers at our door: they take some damaged bytes for a mistake of their caller.

use std::panic::{AssertUnwindSafe, catch_unwind};

use softwood::{Error, Result};

/// Runs a reader; a panic inside it says that the file is damaged.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    // Nothing the reader was building outlives the panic, so no broken state can be seen.
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::Table("the file is damaged".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        let message = guarded::<()>(|| panic!("odd bytes")).unwrap_err();
        assert_eq!(message.to_string(), "the file is damaged");
        assert!(guarded(|| Ok(())).is_ok());
    }
}
