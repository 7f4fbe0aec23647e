//! Bin lookup: the bin of a number is one plus the number of ascending edges below it.

use multiversion::multiversion;

use crate::data::binning::cuts::{MAX_BINS, MISSING_BIN};

/// Up to this many edges, every value is compared with every edge; a binary search would have to
/// gather edges from different addresses for each value.
const MAX_COMPARED_EDGES: usize = 48;
/// Number of values processed at once.
const LANES: usize = 32;
/// With many edges, every value is first compared with every edge of this stride.
const STRIDE: usize = 16;

/// The edges of a column, prepared for lookups of several values at once. NaN gets the bin of
/// missing cells.
#[derive(Debug, Clone)]
pub(crate) enum BinLookup {
    /// Each edge and the increment of the bin above it.
    Few(Vec<(f64, u32)>),
    /// All edges, padded with infinity.
    Many(Box<[f64; MAX_BINS + 1]>),
}

impl BinLookup {
    /// Bin 1 lies below the first edge, and each edge begins the next bin.
    pub(crate) fn new(edges: &[f64]) -> Self {
        if edges.len() <= MAX_COMPARED_EDGES {
            return Self::Few(edges.iter().map(|&edge| (edge, 1)).collect());
        }
        let mut all = [f64::INFINITY; MAX_BINS + 1];
        all[..edges.len()].copy_from_slice(edges);
        Self::Many(Box::new(all))
    }

    /// A lookup for a subset of the edges, given by ascending indices: the bin of a value is only
    /// correct relative to these edges, so that it lies on the right side of each of them.
    pub(crate) fn of_some(edges: &[f64], indices: &[usize]) -> Self {
        if indices.len() > MAX_COMPARED_EDGES {
            return Self::new(edges);
        }
        let mut passed = 0;
        let increments = indices.iter().map(|&index| {
            let increment = index + 1 - passed;
            passed = index + 1;
            (edges[index], increment as u32)
        });
        Self::Few(increments.collect())
    }

    /// The bin of each value.
    pub(crate) fn bins(&self, values: &[f64], bins: &mut [u8]) {
        match self {
            Self::Few(edges) => compare_all(edges, values, bins),
            Self::Many(edges) => search_strided(edges, values, bins),
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn compare_all(edges: &[(f64, u32)], values: &[f64], bins: &mut [u8]) {
    for_chunks(values, bins, |values| {
        let mut found = [1_u64; LANES];
        for &(edge, increment) in edges {
            for lane in 0..LANES {
                found[lane] += if edge < values[lane] {
                    u64::from(increment)
                } else {
                    0
                };
            }
        }
        found
    });
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn search_strided(edges: &[f64; MAX_BINS + 1], values: &[f64], bins: &mut [u8]) {
    for_chunks(values, bins, |values| {
        let mut below = [0_u64; LANES];
        for &edge in edges.iter().skip(STRIDE - 1).step_by(STRIDE) {
            for lane in 0..LANES {
                below[lane] += if edge < values[lane] {
                    STRIDE as u64
                } else {
                    0
                };
            }
        }
        for half in [8, 4, 2, 1] {
            for lane in 0..LANES {
                // the bits below `half` are not set yet
                let next = edges[(below[lane] | (half - 1)) as usize % edges.len()];
                below[lane] |= half * u64::from(next < values[lane]);
            }
        }
        below.map(|below| below + 1)
    });
}

/// Applies `search` to the values in chunks; NaN becomes the missing bin.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "the instruction set of a loop reaches only what is inlined into it"
)]
fn for_chunks(values: &[f64], bins: &mut [u8], search: impl Fn(&[f64; LANES]) -> [u64; LANES]) {
    let search = |values: &[f64; LANES]| {
        let found = search(values);
        let mut bins = [MISSING_BIN; LANES];
        for lane in 0..LANES {
            bins[lane] = if values[lane].is_nan() {
                MISSING_BIN
            } else {
                found[lane] as u8
            };
        }
        bins
    };
    let (chunks, last) = values.as_chunks();
    let (bin_chunks, last_bins) = bins.as_chunks_mut();
    for (values, bins) in chunks.iter().zip(bin_chunks) {
        *bins = search(values);
    }
    if !last.is_empty() {
        let mut padded = [0.0; LANES];
        padded[..last.len()].copy_from_slice(last);
        last_bins.copy_from_slice(&search(&padded)[..last.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 - 7.0) * 0.3).collect()
    }

    /// Values on, next to and far from the edges, and a missing one.
    fn values(edges: &[f64]) -> Vec<f64> {
        let next = |value: f64| [value.next_down(), value, value.next_up(), -value];
        let extremes = [0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE];
        let values = edges.iter().chain(&extremes).copied().flat_map(next);
        let finite = values.filter(|value| value.is_finite());
        finite.chain([f64::NAN]).collect()
    }

    #[test]
    fn a_bin_counts_the_edges_below_a_value() {
        for n_edges in 0..MAX_BINS {
            let edges = edges(n_edges);
            let values = values(&edges);
            let mut bins = vec![77; values.len()];
            BinLookup::new(&edges).bins(&values, &mut bins);
            for (&value, &bin) in values.iter().zip(&bins) {
                let below = edges.partition_point(|&edge| edge < value);
                let expected = if value.is_nan() { 0 } else { 1 + below };
                assert_eq!(usize::from(bin), expected, "{value} among {n_edges}");
            }
        }
    }

    #[test]
    fn with_a_subset_of_edges_a_bin_is_on_the_right_side_of_each() {
        let edges = edges(254);
        let values = values(&edges);
        for step in [1, 2, 5, 6, 40, 300] {
            let indices: Vec<usize> = (0..edges.len()).skip(step / 2).step_by(step).collect();
            let mut bins = vec![77; values.len()];
            BinLookup::of_some(&edges, &indices).bins(&values, &mut bins);
            for (&value, &bin) in values.iter().zip(&bins) {
                let missing = value.is_nan();
                assert_eq!(bin == MISSING_BIN, missing);
                for &index in indices.iter().filter(|_| !missing) {
                    assert_eq!(usize::from(bin) > index + 1, edges[index] < value);
                }
            }
        }
    }
}
