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
