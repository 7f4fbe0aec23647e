//! The allocator of this test binary: it counts the bytes that are allocated at a time. Unlike the
//! resident memory of the process, the count does not depend on what the system's allocator keeps.

#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Starts a new peak; returns the bytes that are allocated now.
pub(crate) fn start_peak() -> usize {
    let allocated = ALLOCATED.load(Ordering::Relaxed);
    PEAK.store(allocated, Ordering::Relaxed);
    allocated
}

/// Largest number of bytes that were allocated at a time since [`start_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

fn add(bytes: usize) {
    let allocated = ALLOCATED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(allocated, Ordering::Relaxed);
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // the old bytes may be copied before they are freed
        add(size);
        // SAFETY: as above
        let moved = unsafe { System.realloc(pointer, layout, size) };
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        moved
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above
        unsafe { System.dealloc(pointer, layout) }
    }
}
