//! Scores of splits with one SIMD lane per output, for likelihoods of several outputs.
//!
//! With few outputs it is faster to score many splits at once (`splitter`); with several, the sums
//! of a bin already stand side by side, so that nothing has to be transposed.

use multiversion::multiversion;

use crate::likelihood::categorical::first_hessian;
use crate::trees::histogram::histogram::{BINS, Bins};

/// Outputs that are scored at once.
const WIDTH: usize = 8;

/// All bins but that of missing cells, in ascending order.
const ASCENDING: [u8; BINS - 1] = {
    let mut bins = [0; BINS - 1];
    let mut at = 0;
    while at < BINS - 1 {
        bins[at] = at as u8 + 1;
        at += 1;
    }
    bins
};

/// The bins from 1 to `end`, exclusive.
pub(crate) fn ascending_bins(end: usize) -> &'static [u8] {
    &ASCENDING[..end - 1]
}

/// Terms of the score `sum_k c_k G_k^2 / (H_k + l2_k)`, by output.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaneTerms {
    pub(crate) factor: Vec<f32>,
    pub(crate) l2: Vec<f32>,
}

/// A scan of one column: a split after each of some bins, with the bins so far on the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneScan<'a, const L: usize> {
    pub(crate) bins: &'a Bins<L>,
    /// The bins from left to right.
    pub(crate) order: &'a [u8],
    /// Sums of the rows on the left of every split.
    pub(crate) left: [i32; L],
    /// Sums of all rows of the node.
    pub(crate) total: [i32; L],
    pub(crate) terms: &'a LaneTerms,
    pub(crate) min_weight: i32,
    /// Score of a split with too little weight on one side.
    pub(crate) fallback: f32,
}

impl<const L: usize> LaneScan<'_, L> {
    /// Computes the score of the split after each bin.
    pub(crate) fn run(&self, scores: &mut [f32]) {
        if first_hessian::<L>() < WIDTH {
            score::<L, { WIDTH / 2 }>(self, scores);
        } else {
            score::<L, WIDTH>(self, scores);
        }
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn score<const L: usize, const W: usize>(scan: &LaneScan<'_, L>, scores: &mut [f32]) {
    let hessians = first_hessian::<L>();
    let (factors, _) = scan.terms.factor.as_chunks::<W>();
    let (penalties, _) = scan.terms.l2.as_chunks::<W>();
    let weight = L - 1;
    let mut left = scan.left;
    for (score, &bin) in scores.iter_mut().zip(scan.order) {
        let bin = &scan.bins[bin as usize];
        let mut right = [0; L];
        for entry in 0..L {
            left[entry] = left[entry].wrapping_add(bin[entry]);
            right[entry] = scan.total[entry].wrapping_sub(left[entry]);
        }
        let mut parts = [0.0_f32; W];
        for (block, (factor, l2)) in factors.iter().zip(penalties).enumerate() {
            let first = block * W;
            if hessians + first + W > L {
                break;
            }
            for lane in 0..W {
                let (at, hessian_at) = (first + lane, hessians + first + lane);
                let (g, right_g) = (left[at] as f32, right[at] as f32);
                let h = left[hessian_at] as f32 + l2[lane];
                let right_h = right[hessian_at] as f32 + l2[lane];
                // one division for both sides
                let numerator = g * g * right_h + right_g * right_g * h;
                parts[lane] += factor[lane] * numerator / (h * right_h);
            }
        }
        let lighter = left[weight].min(right[weight]);
        *score = if lighter >= scan.min_weight {
            sum(&parts)
        } else {
            scan.fallback
        };
    }
}

/// The sum of all lanes, by halves.
#[inline(always)]
fn sum<const W: usize>(parts: &[f32; W]) -> f32 {
    let mut parts = *parts;
    let mut n = W;
    while n > 1 {
        n /= 2;
        for lane in 0..n {
            parts[lane] += parts[lane + n];
        }
    }
    parts[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the scores of `n` outputs with the formula in double precision.
    fn check<const L: usize>(n: usize) {
        let first = first_hessian::<L>();
        let mut bins: Box<Bins<L>> = Box::new([[0; L]; BINS]);
        for (bin, sums) in bins.iter_mut().enumerate().take(40) {
            for output in 0..n {
                sums[output] = ((bin * 37 + output * 11) % 101) as i32 - 50;
                sums[first + output] = 1 + ((bin + output) % 7) as i32;
            }
            sums[L - 1] = 2;
        }
        let sum = |range: std::ops::Range<usize>| {
            let mut sums = [0; L];
            for bin in &bins[range] {
                for entry in 0..L {
                    sums[entry] += bin[entry];
                }
            }
            sums
        };
        let mut terms = LaneTerms {
            factor: vec![0.0; first],
            l2: vec![1.0; first],
        };
        for output in 0..n {
            terms.factor[output] = 0.5 + output as f32;
            terms.l2[output] = 0.25;
        }
        let mut scores = [0.0; 39];
        let scan = LaneScan {
            bins: &bins,
            order: ascending_bins(40),
            left: bins[0],
            total: sum(0..40),
            terms: &terms,
            min_weight: 6,
            fallback: -1.0,
        };
        scan.run(&mut scores);
        let part = |sums: [i32; L]| -> f64 {
            let of_output = |output: usize| {
                let (g, h) = (f64::from(sums[output]), f64::from(sums[first + output]));
                (0.5 + output as f64) * g * g / (h + 0.25)
            };
            (0..n).map(of_output).sum()
        };
        for (at, &score) in scores.iter().enumerate() {
            let bin = at + 2;
            let exact = if (3..=37).contains(&bin) {
                part(sum(0..bin)) + part(sum(bin..40))
            } else {
                -1.0
            };
            assert!(
                (f64::from(score) / exact - 1.0).abs() < 1e-5,
                "{n} outputs, bin {bin}: {score} {exact}"
            );
        }
    }

    #[test]
    fn scores_of_any_number_of_outputs_agree_with_the_formula() {
        check::<8>(3);
        check::<12>(4);
        for n in 5..=7 {
            check::<16>(n);
        }
        check::<24>(8);
        check::<32>(15);
        check::<64>(16);
        check::<64>(31);
    }
}
