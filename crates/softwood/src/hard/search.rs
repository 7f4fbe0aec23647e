//! What a node would gain from each threshold of one column.
//!
//! A set of rows with gradient sums `G_k` and curvature sums `H_k` lowers the loss by half of `sum_k c_k G_k^2 / (H_k + l2_k)` if
//! each output takes its best step. The score of a split is that sum over both sides; what it gains is the score less
//! that of the node unsplit.

use multiversion::multiversion;

use crate::hard::fixed::Fixed;
use crate::hard::histogram::{BINS, Bins};

/// One output: where its gradient and its curvature stand among the lanes, and its regularisation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) gradient: usize,
    pub(crate) curvature: usize,
    /// Weight of this output's score.
    pub(crate) factor: f64,
    /// Added to the curvature of every leaf.
    pub(crate) l2: f64,
}

/// What the lanes mean.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) outputs: Vec<Output>,
    /// The lane that the least weight of a leaf is counted in.
    pub(crate) weight: usize,
    pub(crate) min_weight: f64,
}

/// The form in coarse units.
#[derive(Debug, Clone)]
pub(crate) struct Scaled {
    outputs: Vec<ScaledOutput>,
    weight: usize,
    min_weight: i32,
}

#[derive(Debug, Clone, Copy)]
struct ScaledOutput {
    gradient: usize,
    curvature: usize,
    factor: f32,
    l2: f32,
}

/// Score where a split is not allowed.
pub(crate) const REFUSED: f32 = f32::NEG_INFINITY;

impl Scaled {
    pub(crate) fn new<const L: usize>(form: &Form, fixed: &Fixed<L>) -> Self {
        let outputs = form.outputs.iter().map(|output| {
            let gradient = fixed.coarse_unit(output.gradient);
            let curvature = fixed.coarse_unit(output.curvature);
            ScaledOutput {
                gradient: output.gradient,
                curvature: output.curvature,
                factor: (output.factor * gradient * gradient / curvature) as f32,
                // never zero: an empty side scores nothing instead of 0/0
                l2: ((output.l2 / curvature) as f32).max(1e-3),
            }
        });
        let min_weight = form.min_weight / fixed.coarse_unit(form.weight);
        Self {
            outputs: outputs.collect(),
            weight: form.weight,
            min_weight: min_weight.ceil().min(f64::from(i32::MAX)) as i32,
        }
    }

    /// Bins that hold rows, by the step that the output which tells them apart best would take.
    pub(crate) fn order<const L: usize>(&self, bins: &Bins<L>, n_bins: usize, out: &mut Vec<u8>) {
        let step = |output: &ScaledOutput, bin: usize| {
            bins[bin][output.gradient] as f32 / (bins[bin][output.curvature] as f32 + output.l2)
        };
        let spread = |output: &ScaledOutput| -> f32 {
            let terms =
                (0..n_bins).map(|bin| bins[bin][output.gradient] as f32 * step(output, bin));
            output.factor * terms.sum::<f32>()
        };
        out.clear();
        let Some(leader) = self
            .outputs
            .iter()
            .max_by(|a, b| spread(a).total_cmp(&spread(b)))
        else {
            return;
        };
        out.extend(
            (0..n_bins)
                .filter(|&bin| bins[bin][self.weight] > 0)
                .map(|bin| bin as u8),
        );
        out.sort_by(|&a, &b| {
            step(leader, a.into())
                .total_cmp(&step(leader, b.into()))
                .then(a.cmp(&b))
        });
    }

    /// The lane that weights stand in.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Score of a node that is not split.
    pub(crate) fn score<const L: usize>(&self, total: &[i32; L]) -> f32 {
        self.outputs
            .iter()
            .map(|output| {
                let gradient = total[output.gradient] as f32;
                output.factor * gradient * gradient / (total[output.curvature] as f32 + output.l2)
            })
            .sum()
    }
}

/// Room for one search.
#[derive(Debug, Clone)]
pub(crate) struct Scan<const L: usize> {
    /// Sums over the bins up to each, lane by lane.
    below: Box<[[i32; BINS]; L]>,
    /// Score of the split after each bin.
    scores: [f32; BINS],
}

impl<const L: usize> Scan<L> {
    pub(crate) fn new() -> Self {
        Self {
            below: Box::new([[0; BINS]; L]),
            scores: [REFUSED; BINS],
        }
    }

    /// Scores of the splits after each of some bins, with what comes before on the left. `start` is on the left from the
    /// beginning; `fallback` stands where a side would be too light.
    pub(crate) fn run(
        &mut self,
        bins: &Bins<L>,
        which: Which<'_>,
        start: [i32; L],
        total: [i32; L],
        (scaled, fallback): (&Scaled, f32),
    ) -> &[f32] {
        let n = match which {
            Which::From1To(end) => accumulate(bins[1..end].iter(), start, &mut self.below),
            Which::Ordered(order) => {
                let ordered = order.iter().map(|&bin| &bins[bin as usize]);
                accumulate(ordered, start, &mut self.below)
            }
        };
        // whole chunks: what lies beyond the last bin is of earlier searches and not read
        let scores = &mut self.scores[..n.next_multiple_of(CHUNK)];
        score_all(&self.below, &total, scaled, fallback, scores);
        &self.scores[..n]
    }

    /// As [`Scan::run`]; where the first output would break an order, it counts as not split.
    pub(crate) fn run_in_order(
        &mut self,
        bins: &Bins<L>,
        which: Which<'_>,
        start: [i32; L],
        total: [i32; L],
        (scaled, fallback, order): (&Scaled, f32, i8),
    ) -> &[f32] {
        let n = self
            .run(bins, which, start, total, (scaled, fallback))
            .len();
        let (Some(output), true) = (scaled.outputs.first(), order != 0) else {
            return &self.scores[..n];
        };
        let part = |g: f32, h: f32| output.factor * g * g / h;
        let (all_g, all_h) = (total[output.gradient], total[output.curvature]);
        // after the last bin only missing cells are left, which have no place in the order
        for at in 0..n.saturating_sub(1) {
            let below = |lane: usize| self.below[lane][at];
            let least =
                below(scaled.weight).min(total[scaled.weight].wrapping_sub(below(scaled.weight)));
            let (g, h) = (below(output.gradient), below(output.curvature));
            let (rest_g, rest_h) = (all_g.wrapping_sub(g) as f32, all_h.wrapping_sub(h) as f32);
            let (g, h, rest_h) = (g as f32, h as f32 + output.l2, rest_h + output.l2);
            if f32::from(order) * (rest_g * h - g * rest_h) < 0.0 && least >= scaled.min_weight {
                let whole = part(all_g as f32, all_h as f32 + output.l2);
                self.scores[at] += whole - part(g, h) - part(rest_g, rest_h);
            }
        }
        &self.scores[..n]
    }
}

/// Bins that take part in a search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    /// From the first that is no missing cell to before this one.
    From1To(usize),
    /// These, in this order.
    Ordered(&'a [u8]),
}

/// Running sums, lane by lane; returns how many.
#[inline]
fn accumulate<'a, const L: usize>(
    bins: impl Iterator<Item = &'a [i32; L]>,
    start: [i32; L],
    below: &mut [[i32; BINS]; L],
) -> usize {
    let (mut sum, mut n) = (start, 0);
    for (at, bin) in bins.enumerate().take(BINS) {
        for lane in 0..L {
            sum[lane] = sum[lane].wrapping_add(bin[lane]);
            below[lane][at] = sum[lane];
        }
        n = at + 1;
    }
    n
}

/// Scores are computed so many at a time.
const CHUNK: usize = 16;

#[multiversion(targets = "simd")]
fn score_all<const L: usize>(
    below: &[[i32; BINS]; L],
    total: &[i32; L],
    scaled: &Scaled,
    fallback: f32,
    scores: &mut [f32],
) {
    scores.fill(0.0);
    for output in &scaled.outputs {
        let gradient = below[output.gradient].as_chunks::<CHUNK>().0;
        let curvature = below[output.curvature].as_chunks::<CHUNK>().0;
        let (all_g, all_h) = (total[output.gradient], total[output.curvature]);
        let scores = scores.as_chunks_mut::<CHUNK>().0;
        for ((scores, gradient), curvature) in scores.iter_mut().zip(gradient).zip(curvature) {
            for at in 0..CHUNK {
                let g = gradient[at] as f32;
                let rest_g = all_g.wrapping_sub(gradient[at]) as f32;
                let h = curvature[at] as f32 + output.l2;
                let rest_h = all_h.wrapping_sub(curvature[at]) as f32 + output.l2;
                // one division for both sides
                scores[at] += output.factor * (g * g * rest_h + rest_g * rest_g * h) / (h * rest_h);
            }
        }
    }
    let weights = below[scaled.weight].as_chunks::<CHUNK>().0;
    let all = total[scaled.weight];
    for (scores, weights) in scores.as_chunks_mut::<CHUNK>().0.iter_mut().zip(weights) {
        for at in 0..CHUNK {
            let least = weights[at].min(all.wrapping_sub(weights[at]));
            scores[at] = if least >= scaled.min_weight {
                scores[at]
            } else {
                fallback
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_agree_with_their_formula() {
        let values: Vec<[f32; 4]> = (0..200_i16)
            .map(|i| {
                [
                    f32::from(i * 37 % 101 - 50),
                    1.0 + f32::from(i % 3),
                    f32::from(i % 11 - 5),
                    1.0,
                ]
            })
            .collect();
        let mut fixed = Fixed::<4>::new(200);
        fixed.set(&values, 3);
        let form = Form {
            outputs: vec![
                Output {
                    gradient: 0,
                    curvature: 1,
                    factor: 1.0,
                    l2: 2.0,
                },
                Output {
                    gradient: 2,
                    curvature: 3,
                    factor: 1.0,
                    l2: 1.0,
                },
            ],
            weight: 3,
            min_weight: 5.0,
        };
        let scaled = Scaled::new(&form, &fixed);
        let mut bins = [[0; 4]; BINS];
        let bin_of = |row: usize| 1 + row * 7 % 40;
        let mut total = [0; 4];
        for row in 0..200 {
            for lane in 0..4 {
                bins[bin_of(row)][lane] += fixed.coarse[row][lane];
                total[lane] += fixed.coarse[row][lane];
            }
        }
        let mut scan = Scan::new();
        let scores = scan.run(&bins, Which::From1To(41), [0; 4], total, (&scaled, REFUSED));
        let part = |side: &dyn Fn(usize) -> bool| {
            let sum = |lane: usize| -> f64 {
                (0..200)
                    .filter(|&row| side(row))
                    .map(|row| f64::from(values[row][lane]))
                    .sum()
            };
            sum(0).powi(2) / (sum(1) + 2.0) + sum(2).powi(2) / (sum(3) + 1.0)
        };
        for bin in 1..40 {
            let exact = part(&|row| bin_of(row) <= bin) + part(&|row| bin_of(row) > bin);
            assert!(
                (f64::from(scores[bin - 1]) / exact - 1.0).abs() < 1e-3,
                "{bin}"
            );
        }
        assert!(scores[39].is_infinite());
        let whole = part(&|_| true);
        assert!((f64::from(scaled.score(&total)) / whole - 1.0).abs() < 1e-3);
    }
}
