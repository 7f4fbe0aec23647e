//! Prefetching: hints to the processor about memory that is read soon.

/// Prefetches the cache line of `slice[index]`. This is only a hint: any index is allowed, and one
/// beyond the end has no effect.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = slice.as_ptr().wrapping_add(index);
        #[expect(
            unsafe_code,
            reason = "the instruction has no safe form; it reads nothing and cannot fault"
        )]
        // SAFETY: SSE is part of every x86-64 processor, and a prefetch of any address is harmless.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Number of rows between a prefetch and its use: about the latency of memory beyond the
/// second-level cache.
pub(crate) const AHEAD: usize = 64;

/// Calls `act` on the given rows of a slice and prefetches ahead, because the processor cannot
/// predict scattered rows.
#[inline(always)]
pub(crate) fn visit<T>(slice: &[T], rows: &[u32], mut act: impl FnMut(&T)) {
    let (first, last) = rows.split_at(rows.len().saturating_sub(AHEAD));
    let ahead = &rows[rows.len() - first.len()..];
    for (&row, &row_ahead) in first.iter().zip(ahead) {
        prefetch(slice, row_ahead as usize);
        act(&slice[row as usize]);
    }
    for &row in last {
        act(&slice[row as usize]);
    }
}
