//! How work is stopped before its end: the decision of an observer, and tokens that cancel work
//! between two events.
//!
//! Long loops call [`is_cancelled`] after every piece of work of some milliseconds and leave early
//! if it holds. What they then return has the right shape and a meaningless content; [`cancellable`]
//! surrounds all such work and replaces its result by [`Error::Cancelled`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// What happens to a fit that is stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The fit ends with the best model so far.
    Keep,
    /// The fit ends with [`Error::Cancelled`](crate::Error::Cancelled) and gives no model.
    Discard,
}

/// Cancels a fit or a prediction from any thread, also between two events. Copies of a token cancel
/// the same work.
///
/// ```
/// use std::ops::ControlFlow;
/// use softwood::models::TreeParams;
/// use softwood::observer::{CancelToken, Event, Observer, Stop};
/// use softwood::{Column, Dataset, Error, Fit, Key, Pool, Roles, Run, Table};
///
/// struct Button(CancelToken);
///
/// impl Observer for Button {
///     fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
///         ControlFlow::Continue(())
///     }
///
///     fn cancel_tokens(&self) -> Vec<CancelToken> {
///         vec![self.0.clone()]
///     }
/// }
///
/// let table = Table::new(vec![
///     Column::numeric("x", vec![1.0, 2.0, 3.0]),
///     Column::numeric("y", vec![2.0, 4.0, 5.0]),
/// ])?;
/// let data = Dataset::from_table(&table, &Roles { target: "y".to_owned(), ..Roles::default() })?;
/// let button = Button(CancelToken::new());
/// button.0.cancel(); // usually by another thread
/// let pool = Pool::new(1)?;
/// let run = Run::new(Key::from_seed(0), &pool).observer(&button);
/// let result = TreeParams::default().fit_with(&data, &run);
/// assert!(matches!(result, Err(Error::Cancelled)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<TokenState>);

#[derive(Debug, Default)]
struct TokenState {
    is_cancelled: AtomicBool,
    n_checks: AtomicUsize,
    /// Number of checks after which the token cancels itself; 0 for never.
    max_checks: usize,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that cancels itself when the work checks it for the `n`-th time: a stop at a given
    /// place of the work, for tests.
    pub fn at_check(n: usize) -> Self {
        Self(Arc::new(TokenState {
            max_checks: n,
            ..TokenState::default()
        }))
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the work is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }

    /// How often the work has checked the token so far.
    pub fn n_checks(&self) -> usize {
        self.0.n_checks.load(Ordering::Relaxed)
    }

    /// Counts a check.
    fn check(&self) -> bool {
        let n_checks = self.0.n_checks.fetch_add(1, Ordering::Relaxed) + 1;
        if n_checks == self.0.max_checks {
            self.cancel();
        }
        self.is_cancelled()
    }
}

thread_local! {
    /// The tokens of the work that this thread does.
    static CURRENT: RefCell<CancelScope> = const { RefCell::new(CancelScope(None)) };
}

/// The tokens of a piece of work. The thread pool hands them on to the threads that help with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelScope(Option<Arc<[CancelToken]>>);

impl CancelScope {
    /// The tokens of the work that this thread does.
    pub(crate) fn current() -> Self {
        CURRENT.with_borrow(Clone::clone)
    }

    /// These tokens and some more.
    fn with(&self, tokens: Vec<CancelToken>) -> Self {
        if tokens.is_empty() {
            return self.clone();
        }
        let outer = self.0.iter().flat_map(|tokens| tokens.iter().cloned());
        Self(Some(outer.chain(tokens).collect()))
    }

    /// Runs `work` as a part of the work of these tokens.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the scope of the thread, also after a panic.
        struct Restore(CancelScope);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(std::mem::take(&mut self.0));
            }
        }
        let _restore = Restore(CURRENT.replace(self.clone()));
        work()
    }

    fn check(&self) -> bool {
        let tokens = self.0.as_deref().unwrap_or_default();
        tokens.iter().any(CancelToken::check)
    }

    fn is_cancelled(&self) -> bool {
        let tokens = self.0.as_deref().unwrap_or_default();
        tokens.iter().any(CancelToken::is_cancelled)
    }
}

/// Whether the work of this thread is cancelled. Takes some nanoseconds.
pub(crate) fn is_cancelled() -> bool {
    CURRENT.with_borrow(CancelScope::check)
}

/// Fails if the work of this thread is cancelled.
pub(crate) fn check() -> Result<()> {
    if is_cancelled() {
        return Err(Error::Cancelled);
    }
    Ok(())
}

/// The items up to the one at which the work of this thread is found cancelled.
pub(crate) fn until_cancelled<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    items.into_iter().take_while(|_| !is_cancelled())
}

/// Runs `work`, which these tokens cancel besides those of the work around it.
///
/// # Errors
/// When a token was cancelled, whatever `work` has returned, or as `work` does.
pub(crate) fn cancellable<T>(
    tokens: Vec<CancelToken>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let scope = CancelScope::current().with(tokens);
    let result = scope.enter(work);
    if scope.is_cancelled() {
        return Err(Error::Cancelled);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_cancels_the_work_inside_its_scope_and_none_outside() {
        let (outer, inner) = (CancelToken::new(), CancelToken::new());
        let result = cancellable(vec![outer.clone()], || {
            let result = cancellable(vec![inner.clone()], || {
                inner.cancel();
                assert!(is_cancelled());
                Ok(1)
            });
            assert!(matches!(result, Err(Error::Cancelled)));
            check()?;
            Ok(2)
        });
        assert!(matches!(result, Ok(2)));
        assert!(!is_cancelled());
        outer.cancel();
        assert!(cancellable(vec![outer], || cancellable(vec![], || Ok(()))).is_err());
    }

    #[test]
    fn a_panic_leaves_no_token_behind() {
        let token = CancelToken::new();
        token.cancel();
        let work = || cancellable(vec![token], || -> Result<()> { panic!("expected") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        assert!(!is_cancelled());
    }

    #[test]
    fn a_token_cancels_itself_at_the_given_check() {
        let token = CancelToken::at_check(3);
        let result = cancellable(vec![token.clone()], || {
            assert_eq!(until_cancelled(0..10).collect::<Vec<_>>(), [0, 1]);
            Ok(())
        });
        assert!(result.is_err());
        assert_eq!(token.n_checks(), 3);
    }
}
