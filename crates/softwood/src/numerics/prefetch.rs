//! Hints to the processor about memory that will be read soon.

/// Asks for a place of a slice to be brought near. A hint only: any place is allowed, beyond the end it is of no use.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let place = slice.as_ptr().wrapping_add(at);
        #[expect(
            unsafe_code,
            reason = "the instruction has no safe form; it reads nothing and cannot fault"
        )]
        // SAFETY: SSE is part of every x86-64 processor, and a prefetch of any address is harmless.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// So many rows ahead their cells are asked for: about as long as memory beyond the second-level cache takes to answer.
pub(crate) const AHEAD: usize = 64;

/// Visits rows that stand apart in a slice, where the processor cannot guess which come next.
#[inline(always)]
pub(crate) fn visit<T>(slice: &[T], rows: &[u32], mut act: impl FnMut(&T)) {
    let (soon, last) = rows.split_at(rows.len().saturating_sub(AHEAD));
    let later = &rows[rows.len() - soon.len()..];
    for (&row, &later) in soon.iter().zip(later) {
        prefetch(slice, later as usize);
        act(&slice[row as usize]);
    }
    for &row in last {
        act(&slice[row as usize]);
    }
}
