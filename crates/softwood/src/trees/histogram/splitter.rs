//! Scores of the splits of a node on one column.
//!
//! With gradient sums `G_k` and hessian sums `H_k` of output `k`, the score of a set of rows is
//! `sum_k c_k G_k^2 / (H_k + l2_k)`: twice the reduction of the loss by a Newton step of every
//! output. The score of a split is the sum of the scores of both sides; its gain is the score of
//! the split minus that of the unsplit node.

use multiversion::multiversion;

use crate::likelihood::OutputTerms;
use crate::likelihood::categorical::first_hessian;
use crate::numerics::order::sort_bins;
use crate::trees::histogram::chooser::SplitChooser;
use crate::trees::histogram::histogram::{BINS, Bins};
use crate::trees::histogram::output_lanes::{LaneScan, LaneTerms, ascending_bins};
use crate::trees::histogram::quantized_gradients::QuantizedGradients;

/// The terms of the score, and the least weight of a leaf.
#[derive(Debug, Clone)]
pub(crate) struct GainSpec {
    pub(crate) outputs: Vec<OutputTerms>,
    /// The entry that holds the weight of a row.
    pub(crate) weight: usize,
    pub(crate) min_weight: f64,
}

/// A [`GainSpec`] in units of the narrow quantized gradients.
#[derive(Debug, Clone)]
pub(crate) struct ScaledGain {
    outputs: Vec<ScaledOutput>,
    weight: usize,
    min_weight: i32,
    /// The terms by output, if the entries are those of [`output_lanes`](super::output_lanes).
    lanes: Option<LaneTerms>,
}

#[derive(Debug, Clone, Copy)]
struct ScaledOutput {
    gradient: usize,
    hessian: usize,
    factor: f32,
    l2: f32,
}

/// Score of a split that is not allowed.
pub(crate) const REFUSED: f32 = f32::NEG_INFINITY;

impl ScaledGain {
    pub(crate) fn new<const L: usize>(
        gain_spec: &GainSpec,
        quantized: &QuantizedGradients<L>,
    ) -> Self {
        let outputs = gain_spec.outputs.iter().map(|output| {
            let gradient = quantized.narrow_unit(output.gradient);
            let hessian = quantized.narrow_unit(output.hessian);
            ScaledOutput {
                gradient: output.gradient,
                hessian: output.hessian,
                factor: (output.factor * gradient * gradient / hessian) as f32,
                // positive, so that the score of an empty side is 0 and not 0/0
                l2: ((output.l2 / hessian) as f32).max(1e-3),
            }
        });
        let min_weight = gain_spec.min_weight / quantized.narrow_unit(gain_spec.weight);
        let outputs: Vec<ScaledOutput> = outputs.collect();
        Self {
            lanes: lane_terms::<L>(&outputs, gain_spec.weight),
            outputs,
            weight: gain_spec.weight,
            min_weight: min_weight.ceil().min(f64::from(i32::MAX)) as i32,
        }
    }

    /// Orders the categories of a column for the scan: the bins with rows, by the Newton step of
    /// one output. That output is the one whose score rises most if every bin is a leaf of its own.
    pub(crate) fn order_bins<const L: usize>(
        &self,
        bins: &Bins<L>,
        n_bins: usize,
        out: &mut Vec<u8>,
    ) {
        let step = |output: &ScaledOutput, bin: usize| {
            bins[bin][output.gradient] as f32 / (bins[bin][output.hessian] as f32 + output.l2)
        };
        let score = |output: &ScaledOutput| -> f32 {
            let terms =
                (0..n_bins).map(|bin| bins[bin][output.gradient] as f32 * step(output, bin));
            output.factor * terms.sum::<f32>()
        };
        out.clear();
        let Some(best) = self
            .outputs
            .iter()
            .max_by(|a, b| score(a).total_cmp(&score(b)))
        else {
            return;
        };
        out.extend(
            (0..n_bins)
                .filter(|&bin| bins[bin][self.weight] > 0)
                .map(|bin| bin as u8),
        );
        let steps: Vec<f32> = (0..n_bins).map(|bin| step(best, bin)).collect();
        sort_bins(out, &steps);
    }

    /// The entry that holds the weight of a row.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Log marginal likelihood of the rows of a leaf under a Normal prior on its values, without the
    /// terms that are the same for every partition of the rows: see
    /// [`SplitSampling`](crate::trees::histogram::chooser::SplitSampling).
    fn log_marginal<const L: usize>(&self, sums: &[i32; L], noise_variance: f64) -> f64 {
        let of_output = |output: &ScaledOutput| {
            let (gradient, hessian) = (sums[output.gradient], sums[output.hessian]);
            let (gradient, hessian) = (f64::from(gradient), f64::from(hessian));
            let l2 = f64::from(output.l2);
            let score = f64::from(output.factor) * gradient * gradient / (hessian + l2);
            0.5 * (score / noise_variance - (hessian / l2).ln_1p())
        };
        self.outputs.iter().map(of_output).sum()
    }

    /// Score of an unsplit node.
    pub(crate) fn score<const L: usize>(&self, total: &[i32; L]) -> f32 {
        self.outputs
            .iter()
            .map(|output| {
                let gradient = total[output.gradient] as f32;
                output.factor * gradient * gradient / (total[output.hessian] as f32 + output.l2)
            })
            .sum()
    }
}

/// The terms of three outputs or more with one lane each; `None` if the entries of a row are laid
/// out differently.
fn lane_terms<const L: usize>(outputs: &[ScaledOutput], weight: usize) -> Option<LaneTerms> {
    let first = first_hessian::<L>();
    let mut outputs_in_lanes = outputs.iter().enumerate();
    let is_in_lanes = outputs.len() > 2
        && outputs.len() <= first
        && weight == L - 1
        && outputs_in_lanes
            .all(|(at, output)| output.gradient == at && output.hessian == first + at);
    is_in_lanes.then(|| {
        // the entries of further lanes are zero or the weight, and their factor is zero
        let mut terms = LaneTerms {
            factor: vec![0.0; first],
            l2: vec![1.0; first],
        };
        for (at, output) in outputs.iter().enumerate() {
            terms.factor[at] = output.factor;
            terms.l2[at] = output.l2;
        }
        terms
    })
}

/// The bins of a scan, from left to right.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScanOrder<'a> {
    /// From bin 1, which excludes the missing cells, to this bin, exclusive.
    From1To(usize),
    /// These bins.
    Ordered(&'a [u8]),
}

/// A scan of one column: a split after each of some bins, with the bins so far on the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanTask<'a, const L: usize> {
    pub(crate) bins: &'a Bins<L>,
    pub(crate) order: ScanOrder<'a>,
    /// Sums of the rows on the left of every split: the missing cells, or none.
    pub(crate) left: [i32; L],
    /// Sums of all rows of the node.
    pub(crate) total: [i32; L],
    pub(crate) scaled_gain: &'a ScaledGain,
    /// Score of a split with too little weight on one side.
    pub(crate) fallback: f32,
    /// Monotone constraint of the first output: 1 increasing, -1 decreasing, 0 none.
    pub(crate) monotonic_cst: i8,
}

/// Workspace of scans.
#[derive(Debug, Clone)]
pub(crate) struct BinScan<const L: usize> {
    /// Sums on the left of each split, bins x entries.
    running: Box<Bins<L>>,
    /// Sums on the left of each split, entries x bins.
    below: Box<[[i32; BINS]; L]>,
    /// Score of each split.
    scores: [f32; BINS],
}

impl<const L: usize> BinScan<L> {
    pub(crate) fn new() -> Self {
        Self {
            running: Box::new([[0; L]; BINS]),
            below: Box::new([[0; BINS]; L]),
            scores: [REFUSED; BINS],
        }
    }

    /// Score of the split after each bin of the scan, as the chooser compares it: the score, or the
    /// gain of log marginal likelihood.
    pub(crate) fn run_for(&mut self, task: &ScanTask<'_, L>, chooser: &SplitChooser) -> &[f32] {
        match chooser {
            SplitChooser::Best | SplitChooser::Noisy(_) => self.run(task),
            SplitChooser::Sampled(sampling) => {
                self.log_marginal_gains(task, sampling.noise_variance)
            }
        }
    }

    /// Computes the sums on the left of each split; returns their number.
    fn accumulate(&mut self, task: &ScanTask<'_, L>) -> usize {
        match task.order {
            ScanOrder::From1To(end) => {
                accumulate(task.bins[1..end].iter(), task.left, &mut self.running)
            }
            ScanOrder::Ordered(order) => {
                let ordered = order.iter().map(|&bin| &task.bins[bin as usize]);
                accumulate(ordered, task.left, &mut self.running)
            }
        }
    }

    /// Log marginal likelihood of both sides of each split minus that of the unsplit node, in double
    /// precision, because the likelihoods of large nodes are far larger than their differences.
    /// Both sides need rows. There are no monotone constraints.
    fn log_marginal_gains(&mut self, task: &ScanTask<'_, L>, noise_variance: f64) -> &[f32] {
        debug_assert_eq!(task.monotonic_cst, 0, "sampled splits have no constraints");
        let n = self.accumulate(task);
        let gain = task.scaled_gain;
        let log_marginal = |sums: &[i32; L]| gain.log_marginal(sums, noise_variance);
        let (unsplit, min_weight) = (log_marginal(&task.total), gain.min_weight.max(1));
        for (score, left) in self.scores.iter_mut().zip(&self.running[..n]) {
            let right = std::array::from_fn(|entry| task.total[entry].wrapping_sub(left[entry]));
            let is_allowed = left[gain.weight].min(right[gain.weight]) >= min_weight;
            *score = if is_allowed {
                (log_marginal(left) + log_marginal(&right) - unsplit) as f32
            } else {
                task.fallback
            };
        }
        &self.scores[..n]
    }

    /// Score of the split after each bin of the scan.
    pub(crate) fn run(&mut self, task: &ScanTask<'_, L>) -> &[f32] {
        if let (Some(terms), 0) = (&task.scaled_gain.lanes, task.monotonic_cst) {
            return self.run_in_lanes(task, terms);
        }
        let n = self.accumulate(task);
        // whole chunks: beyond the last bin stand sums of earlier scans, whose scores are not read
        let scores = &mut self.scores[..n.next_multiple_of(CHUNK)];
        score_all(
            &self.running,
            &mut self.below,
            &task.total,
            task.scaled_gain,
            task.fallback,
            scores,
        );
        if task.monotonic_cst != 0 {
            self.constrain(task, n);
        }
        &self.scores[..n]
    }

    fn run_in_lanes(&mut self, task: &ScanTask<'_, L>, terms: &LaneTerms) -> &[f32] {
        let order = match task.order {
            ScanOrder::From1To(end) => ascending_bins(end),
            ScanOrder::Ordered(order) => order,
        };
        let scan = LaneScan {
            bins: task.bins,
            order,
            left: task.left,
            total: task.total,
            terms,
            min_weight: task.scaled_gain.min_weight,
            fallback: task.fallback,
        };
        let scores = &mut self.scores[..order.len()];
        scan.run(scores);
        scores
    }

    /// Scores the first output as unsplit in every split that violates the monotone constraint.
    fn constrain(&mut self, task: &ScanTask<'_, L>, n: usize) {
        let ScanTask {
            total, scaled_gain, ..
        } = task;
        let Some(output) = scaled_gain.outputs.first() else {
            return;
        };
        let part = |g: f32, h: f32| output.factor * g * g / h;
        let (all_g, all_h) = (total[output.gradient], total[output.hessian]);
        // the split after the last bin separates missing cells, to which no constraint applies
        for at in 0..n.saturating_sub(1) {
            let below = |entry: usize| self.below[entry][at];
            let lighter = below(scaled_gain.weight)
                .min(total[scaled_gain.weight].wrapping_sub(below(scaled_gain.weight)));
            let (g, h) = (below(output.gradient), below(output.hessian));
            let (right_g, right_h) = (all_g.wrapping_sub(g) as f32, all_h.wrapping_sub(h) as f32);
            let (g, h, right_h) = (g as f32, h as f32 + output.l2, right_h + output.l2);
            let is_violated = f32::from(task.monotonic_cst) * (right_g * h - g * right_h) < 0.0;
            if is_violated && lighter >= scaled_gain.min_weight {
                let unsplit = part(all_g as f32, all_h as f32 + output.l2);
                self.scores[at] += unsplit - part(g, h) - part(right_g, right_h);
            }
        }
    }
}

/// Computes cumulative sums that start from `left`; returns their number.
#[inline]
fn accumulate<'a, const L: usize>(
    bins: impl Iterator<Item = &'a [i32; L]>,
    left: [i32; L],
    running: &mut Bins<L>,
) -> usize {
    let (mut sum, mut n) = (left, 0);
    for (bin, running) in bins.zip(running) {
        for entry in 0..L {
            sum[entry] = sum[entry].wrapping_add(bin[entry]);
        }
        *running = sum;
        n += 1;
    }
    n
}

/// The number of computed scores is a multiple of this one.
const CHUNK: usize = 16;

/// `2^-32`: keeps products of four 32-bit integers within the range of `f32`.
const SMALL: f32 = 1.0 / 4_294_967_296.0;

/// Transposes the sums on the left of each split into `below` and computes the scores.
#[multiversion(targets("x86_64+avx2+fma"))]
fn score_all<const L: usize>(
    running: &Bins<L>,
    below: &mut [[i32; BINS]; L],
    total: &[i32; L],
    scaled_gain: &ScaledGain,
    fallback: f32,
    scores: &mut [f32],
) {
    // plain loops of one length, which the compiler vectorises
    let n = scores.len().min(BINS);
    let scores = &mut scores[..n];
    for at in 0..n {
        for entry in 0..L {
            below[entry][at] = running[at][entry];
        }
    }
    let below = &*below;
    let sums = |output: &ScaledOutput| {
        let (gradients, hessians) = (&below[output.gradient][..n], &below[output.hessian][..n]);
        move |at: usize| GradHess {
            gradient: gradients[at],
            hessian: hessians[at],
        }
    };
    let (pairs, single) = scaled_gain.outputs.as_chunks::<2>();
    scores.fill(0.0);
    for [a, b] in pairs {
        let (left_a, left_b) = (sums(a), sums(b));
        let (all_a, all_b) = (a.sums(total), b.sums(total));
        for at in 0..n {
            // one division for both sides of both outputs
            let (top_a, bottom_a) = a.fraction(left_a(at), all_a);
            let (top_b, bottom_b) = b.fraction(left_b(at), all_b);
            scores[at] += (top_a * bottom_b + top_b * bottom_a) / (bottom_a * bottom_b);
        }
    }
    for output in single {
        let (left, all) = (sums(output), output.sums(total));
        for at in 0..n {
            let (top, bottom) = output.fraction(left(at), all);
            scores[at] += top / bottom;
        }
    }
    let (weights, all) = (&below[scaled_gain.weight][..n], total[scaled_gain.weight]);
    let min_weight = scaled_gain.min_weight;
    for at in 0..n {
        let lighter = weights[at].min(all.wrapping_sub(weights[at]));
        scores[at] = if lighter >= min_weight {
            scores[at]
        } else {
            fallback
        };
    }
}

/// Sums of the gradients and of the hessians of one output.
#[derive(Debug, Clone, Copy)]
struct GradHess {
    gradient: i32,
    hessian: i32,
}

impl ScaledOutput {
    /// The sums of this output.
    fn sums<const L: usize>(&self, entries: &[i32; L]) -> GradHess {
        GradHess {
            gradient: entries[self.gradient],
            hessian: entries[self.hessian],
        }
    }

    /// The score of a split as numerator and denominator.
    #[inline(always)]
    fn fraction(&self, left: GradHess, all: GradHess) -> (f32, f32) {
        let g = left.gradient as f32;
        let right_g = all.gradient.wrapping_sub(left.gradient) as f32;
        let h = left.hessian as f32 + self.l2;
        let right_h = all.hessian.wrapping_sub(left.hessian) as f32 + self.l2;
        let numerator = self.factor * SMALL * (g * g * right_h + right_g * right_g * h);
        (numerator, h * SMALL * right_h)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_agree_with_the_formula() {
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
        let mut quantized = QuantizedGradients::<4>::new(200);
        quantized.set(&values, 3);
        let gain_spec = GainSpec {
            outputs: vec![
                OutputTerms {
                    gradient: 0,
                    hessian: 1,
                    factor: 1.0,
                    l2: 2.0,
                },
                OutputTerms {
                    gradient: 2,
                    hessian: 3,
                    factor: 1.0,
                    l2: 1.0,
                },
            ],
            weight: 3,
            min_weight: 5.0,
        };
        let scaled_gain = ScaledGain::new(&gain_spec, &quantized);
        let mut bins = [[0; 4]; BINS];
        let bin_of = |row: usize| 1 + row * 7 % 40;
        let mut total = [0; 4];
        for row in 0..200 {
            for entry in 0..4 {
                bins[bin_of(row)][entry] += i32::from(quantized.narrow[row][entry]);
                total[entry] += i32::from(quantized.narrow[row][entry]);
            }
        }
        let mut scan = BinScan::new();
        let scores = scan.run(&ScanTask {
            bins: &bins,
            order: ScanOrder::From1To(41),
            left: [0; 4],
            total,
            scaled_gain: &scaled_gain,
            fallback: REFUSED,
            monotonic_cst: 0,
        });
        let part = |side: &dyn Fn(usize) -> bool| {
            let sum = |entry: usize| -> f64 {
                (0..200)
                    .filter(|&row| side(row))
                    .map(|row| f64::from(values[row][entry]))
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
        assert!((f64::from(scaled_gain.score(&total)) / whole - 1.0).abs() < 1e-3);
    }
}
