//! Bins of numbers: how many of some ascending edges lie below each.

use multiversion::multiversion;

use crate::data::binning::binned::{MAX_BINS, MISSING_BIN};

/// Most edges that a value is compared with one by one; a search in steps has to fetch edges from places that differ by value.
const FEW: usize = 48;
/// Values taken at once.
const LANES: usize = 32;
/// Edges between two that every value is compared with, where they are many.
const STRIDE: usize = 16;

/// The edges of a column, ready for several values at once. What is no number gets the bin of missing cells.
#[derive(Debug, Clone)]
pub(crate) enum BinLookup {
    /// Each edge, and by how much the bin is higher above it.
    Few(Vec<(f64, u32)>),
    /// All edges; the rest is infinite.
    Many(Box<[f64; MAX_BINS + 1]>),
}

impl BinLookup {
    /// Bin 1 is below the first edge, and each edge begins the next.
    pub(crate) fn new(edges: &[f64]) -> Self {
        if edges.len() <= FEW {
            return Self::Few(edges.iter().map(|&edge| (edge, 1)).collect());
        }
        let mut all = [f64::INFINITY; MAX_BINS + 1];
        all[..edges.len()].copy_from_slice(edges);
        Self::Many(Box::new(all))
    }

    /// The same where only some edges count (ascending places): a value may get any bin that the same of these lie below.
    pub(crate) fn of_some(edges: &[f64], which: &[usize]) -> Self {
        if which.len() > FEW {
            return Self::new(edges);
        }
        let mut passed = 0;
        let some = which.iter().map(|&at| {
            let higher = at + 1 - passed;
            passed = at + 1;
            (edges[at], higher as u32)
        });
        Self::Few(some.collect())
    }

    /// The bin of each value.
    pub(crate) fn bins(&self, values: &[f64], bins: &mut [u8]) {
        match self {
            Self::Few(edges) => pass(edges, values, bins),
            Self::Many(edges) => climb(edges, values, bins),
        }
    }
}

#[multiversion(targets(
    "x86_64+avx512f+avx512vl+avx512dq+avx512bw",
    "x86_64+avx2",
    "aarch64+neon"
))]
fn pass(edges: &[(f64, u32)], values: &[f64], bins: &mut [u8]) {
    for_chunks(values, bins, |values| {
        let mut found = [1_u64; LANES];
        for &(edge, higher) in edges {
            for lane in 0..LANES {
                found[lane] += if edge < values[lane] {
                    u64::from(higher)
                } else {
                    0
                };
            }
        }
        found
    });
}

#[multiversion(targets(
    "x86_64+avx512f+avx512vl+avx512dq+avx512bw",
    "x86_64+avx2",
    "aarch64+neon"
))]
fn climb(edges: &[f64; MAX_BINS + 1], values: &[f64], bins: &mut [u8]) {
    for_chunks(values, bins, |values| {
        let mut below = [0_u64; LANES];
        for &mark in edges.iter().skip(STRIDE - 1).step_by(STRIDE) {
            for lane in 0..LANES {
                below[lane] += if mark < values[lane] {
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

/// Takes values a chunk at a time; those that are no numbers are missing.
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
    let (places, last_places) = bins.as_chunks_mut();
    for (values, bins) in chunks.iter().zip(places) {
        *bins = search(values);
    }
    if !last.is_empty() {
        let mut padded = [0.0; LANES];
        padded[..last.len()].copy_from_slice(last);
        last_places.copy_from_slice(&search(&padded)[..last.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 - 7.0) * 0.3).collect()
    }

    /// Values on, next to and far from the edges, and one that is missing.
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
    fn with_some_edges_a_bin_is_on_the_same_side_of_each() {
        let edges = edges(254);
        let values = values(&edges);
        for step in [1, 2, 5, 6, 40, 300] {
            let which: Vec<usize> = (0..edges.len()).skip(step / 2).step_by(step).collect();
            let mut bins = vec![77; values.len()];
            BinLookup::of_some(&edges, &which).bins(&values, &mut bins);
            for (&value, &bin) in values.iter().zip(&bins) {
                let missing = value.is_nan();
                assert_eq!(bin == MISSING_BIN, missing);
                for &at in which.iter().filter(|_| !missing) {
                    assert_eq!(usize::from(bin) > at + 1, edges[at] < value);
                }
            }
        }
    }
}
