//! Turns panics of the Arrow and Parquet readers into errors. Those crates panic on some damaged
//! files, which they take for a mistake of their caller.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use softwood::{Error, Result};

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a reader of Arrow or Parquet data, whose panics become errors about
/// the file. A program's panic hook should print nothing then.
pub fn is_catching_panics() -> bool {
    IS_CATCHING.get()
}

/// Runs a reader of `format` and reports a panic inside it as a damaged file.
pub(crate) fn catch_panic<T>(format: &str, read: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = IS_CATCHING.replace(true);
    // unwind safe: everything the reader was building is dropped with the panic
    let outcome = catch_unwind(AssertUnwindSafe(read));
    IS_CATCHING.set(before);
    outcome.unwrap_or_else(|panic| {
        let reason = message_of(panic.as_ref());
        Err(Error::Table(format!(
            "the {format} data is damaged{reason}"
        )))
    })
}

/// The first line of a panic message, after a colon.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let line = text.and_then(|text| text.lines().next());
    line.map_or_else(String::new, |line| format!(": {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        let message = catch_panic::<()>("Arrow", || {
            assert!(is_catching_panics());
            panic!("unexpected bytes")
        });
        let message = message.unwrap_err().to_string();
        assert_eq!(message, "the Arrow data is damaged: unexpected bytes");
        assert!(!is_catching_panics());
        assert!(catch_panic("Arrow", || Ok(())).is_ok());
    }
}
