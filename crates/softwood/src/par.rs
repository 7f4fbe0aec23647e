//! The thread pool: maps over items and row blocks. This is the only file that uses rayon. Block
//! bounds depend on the row count alone and results keep their order, so no result depends on the
//! number of threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::stop::CancelScope;

/// A pool of threads; a pool of one thread runs everything on the calling thread.
#[derive(Debug)]
pub struct Pool(Option<rayon::ThreadPool>);

impl Pool {
    /// A pool of `threads` threads; 0 means one per available core.
    ///
    /// # Errors
    /// When the operating system cannot start a thread.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = if threads == 0 { available() } else { threads };
        if threads == 1 {
            return Ok(Self(None));
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map(|pool| Self(Some(pool)))
            .map_err(|error| Error::Table(format!("cannot start {threads} threads: {error}")))
    }

    /// Number of threads.
    pub fn n_threads(&self) -> usize {
        self.0
            .as_ref()
            .map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Results of `work` for each of `0..n`, in order.
    pub fn map<T: Send>(&self, n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        match &self.0 {
            None => (0..n).map(work).collect(),
            Some(pool) => {
                let results: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
                run(pool, n, &|index| {
                    let result = work(index);
                    *results[index]
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner) = Some(result);
                });
                results.into_iter().map(finished).collect()
            }
        }
    }

    /// Calls `work` on each item with its index; `work` may modify the item.
    pub(crate) fn each<T: Send>(&self, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        match &self.0 {
            Some(pool) if items.len() > 1 => {
                let items: Vec<Mutex<&mut T>> = items.iter_mut().map(Mutex::new).collect();
                run(pool, items.len(), &|index| {
                    let mut item = items[index].lock().unwrap_or_else(PoisonError::into_inner);
                    work(index, &mut item);
                });
            }
            _ => items
                .iter_mut()
                .enumerate()
                .for_each(|(index, item)| work(index, item)),
        }
    }

    /// Results of `work` for each block of at most `block` rows, in order.
    pub fn map_blocks<T: Send>(
        &self,
        n_rows: usize,
        block: usize,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        self.map(n_rows.div_ceil(block), |index| {
            work(index * block..((index + 1) * block).min(n_rows))
        })
    }
}

/// Calls `work` on each of `0..n`; the threads check the cancel tokens of the calling thread. Not
/// generic: rayon is compiled for this function alone.
fn run(pool: &rayon::ThreadPool, n: usize, work: &(dyn Fn(usize) + Sync)) {
    let scope = CancelScope::current();
    let work = |index: usize| scope.enter(|| work(index));
    pool.install(|| (0..n).into_par_iter().with_max_len(1).for_each(work));
}

/// The result of a call that `run` has made.
fn finished<T>(result: Mutex<Option<T>>) -> T {
    result
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .expect("every index has been run")
}

/// Number of cores that this process may use.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::{CancelToken, cancellable, until_cancelled};

    #[test]
    fn all_threads_check_the_tokens_of_the_caller() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let token = CancelToken::at_check(20);
            let result = cancellable(vec![token.clone()], || {
                let found = pool.map(8, |_| until_cancelled(0..1000).count());
                assert!(found.iter().sum::<usize>() < 20 + threads);
                Ok(())
            });
            assert!(result.is_err());
            assert_eq!(pool.map(8, |_| until_cancelled(0..10).count()), [10; 8]);
        }
    }

    #[test]
    fn blocks_come_back_in_order_on_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            let blocks = Pool::new(threads)
                .unwrap()
                .map_blocks(1000, 64, |rows| rows);
            assert_eq!(blocks.len(), 16);
            assert_eq!(
                blocks.iter().map(ExactSizeIterator::len).sum::<usize>(),
                1000
            );
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
