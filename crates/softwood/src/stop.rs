//! How a piece of work that is stopped before its end treats what it has so far.

/// What happens to a fit that is stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The fit ends with the best model so far.
    Keep,
    /// The fit ends with [`Error::Cancelled`](crate::Error::Cancelled) and gives no model.
    Discard,
}
