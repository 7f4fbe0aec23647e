//! The allocator of this test binary: it refuses a request beyond a bound and names the seeds that
//! were being tried, because the process ends then.

#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Largest allocation that a mutant may cause; the files have some kilobytes.
const MAX_BYTES: usize = 1 << 28;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
/// The seeds that are being tried, by thread, with the time of their start.
static RUNNING: Mutex<Vec<(u64, Instant)>> = Mutex::new(Vec::new());

thread_local! {
    /// Place of this thread in [`RUNNING`].
    static PLACE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Tells that this thread starts with a seed.
pub(crate) fn set_seed(seed: u64) {
    let mut running = RUNNING.lock().unwrap();
    let entry = (seed, Instant::now());
    if let Some(place) = PLACE.get() {
        running[place] = entry;
    } else {
        PLACE.set(Some(running.len()));
        running.push(entry);
    }
}

/// The last seed of each thread and the time since its start.
pub(crate) fn running() -> Vec<(u64, Duration)> {
    let running = RUNNING.lock().unwrap();
    running
        .iter()
        .map(|(seed, start)| (*seed, start.elapsed()))
        .collect()
}

/// Largest allocation so far, in bytes.
pub(crate) fn largest() -> usize {
    LARGEST.load(Ordering::Relaxed)
}

struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// Whether a request is within the bound.
fn is_allowed(bytes: usize) -> bool {
    LARGEST.fetch_max(bytes, Ordering::Relaxed);
    if bytes <= MAX_BYTES {
        return true;
    }
    let seeds = RUNNING.try_lock().map(|running| running.clone());
    eprintln!("an allocation of {bytes} bytes was refused, by one of {seeds:?}");
    false
}

// SAFETY: every call is passed on to the system's allocator, or refused with a null pointer.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are those of the system's allocator
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_allowed(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above
        unsafe { System.dealloc(pointer, layout) }
    }
}
