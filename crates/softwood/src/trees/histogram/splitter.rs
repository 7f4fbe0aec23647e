//! What a node would gain from each threshold of one column.
//!
//! A set of rows with gradient sums `G_k` and hessian sums `H_k` lowers the loss by half of `sum_k c_k G_k^2 / (H_k + l2_k)` if
//! each output takes its best step. The score of a split is that sum over both sides; what it gains is the score less
//! that of the node unsplit.

use multiversion::multiversion;

use crate::likelihood::OutputTerms;
use crate::trees::histogram::histogram::{BINS, Bins};
use crate::trees::histogram::quantized_gradients::QuantizedGradients;

/// What the entries mean.
#[derive(Debug, Clone)]
pub(crate) struct GainSpec {
    pub(crate) outputs: Vec<OutputTerms>,
    /// The entry that the least weight of a leaf is counted in.
    pub(crate) weight: usize,
    pub(crate) min_weight: f64,
}

/// The gain_spec in narrow units.
#[derive(Debug, Clone)]
pub(crate) struct ScaledGain {
    outputs: Vec<ScaledOutput>,
    weight: usize,
    min_weight: i32,
}

#[derive(Debug, Clone, Copy)]
struct ScaledOutput {
    gradient: usize,
    hessian: usize,
    factor: f32,
    l2: f32,
}

/// Score where a split is not allowed.
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
                // never zero: an empty side scores nothing instead of 0/0
                l2: ((output.l2 / hessian) as f32).max(1e-3),
            }
        });
        let min_weight = gain_spec.min_weight / quantized.narrow_unit(gain_spec.weight);
        Self {
            outputs: outputs.collect(),
            weight: gain_spec.weight,
            min_weight: min_weight.ceil().min(f64::from(i32::MAX)) as i32,
        }
    }

    /// Bins that hold rows, by the step that the output which tells them apart best would take.
    pub(crate) fn order<const L: usize>(&self, bins: &Bins<L>, n_bins: usize, out: &mut Vec<u8>) {
        let step = |output: &ScaledOutput, bin: usize| {
            bins[bin][output.gradient] as f32 / (bins[bin][output.hessian] as f32 + output.l2)
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

    /// The entry that weights stand in.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Score of a node that is not split.
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

/// HistogramBuilder for one search.
#[derive(Debug, Clone)]
pub(crate) struct BinScan<const L: usize> {
    /// Sums over the bins up to each.
    running: Box<Bins<L>>,
    /// The same, entry by entry.
    below: Box<[[i32; BINS]; L]>,
    /// Score of the split after each bin.
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

    /// Scores of the splits after each of some bins, with what comes before on the left. `start` is on the left from the
    /// beginning; `fallback` stands where a side would be too light.
    pub(crate) fn run(
        &mut self,
        bins: &Bins<L>,
        which: ScanOrder<'_>,
        start: [i32; L],
        total: [i32; L],
        (scaled_gain, fallback): (&ScaledGain, f32),
    ) -> &[f32] {
        let n = match which {
            ScanOrder::From1To(end) => accumulate(bins[1..end].iter(), start, &mut self.running),
            ScanOrder::Ordered(order) => {
                let ordered = order.iter().map(|&bin| &bins[bin as usize]);
                accumulate(ordered, start, &mut self.running)
            }
        };
        // whole chunks: what lies beyond the last bin is of earlier searches and not read
        let scores = &mut self.scores[..n.next_multiple_of(CHUNK)];
        let sums = (&*self.running, &mut *self.below);
        score_all(sums, &total, scaled_gain, fallback, scores);
        &self.scores[..n]
    }

    /// As [`BinScan::run`]; where the first output would break an order, it counts as not split.
    pub(crate) fn run_in_order(
        &mut self,
        bins: &Bins<L>,
        which: ScanOrder<'_>,
        start: [i32; L],
        total: [i32; L],
        (scaled_gain, fallback, order): (&ScaledGain, f32, i8),
    ) -> &[f32] {
        let n = self
            .run(bins, which, start, total, (scaled_gain, fallback))
            .len();
        let (Some(output), true) = (scaled_gain.outputs.first(), order != 0) else {
            return &self.scores[..n];
        };
        let part = |g: f32, h: f32| output.factor * g * g / h;
        let (all_g, all_h) = (total[output.gradient], total[output.hessian]);
        // after the last bin only missing cells are left, which have no place in the order
        for at in 0..n.saturating_sub(1) {
            let below = |entry: usize| self.below[entry][at];
            let least = below(scaled_gain.weight)
                .min(total[scaled_gain.weight].wrapping_sub(below(scaled_gain.weight)));
            let (g, h) = (below(output.gradient), below(output.hessian));
            let (rest_g, rest_h) = (all_g.wrapping_sub(g) as f32, all_h.wrapping_sub(h) as f32);
            let (g, h, rest_h) = (g as f32, h as f32 + output.l2, rest_h + output.l2);
            if f32::from(order) * (rest_g * h - g * rest_h) < 0.0 && least >= scaled_gain.min_weight
            {
                let whole = part(all_g as f32, all_h as f32 + output.l2);
                self.scores[at] += whole - part(g, h) - part(rest_g, rest_h);
            }
        }
        &self.scores[..n]
    }
}

/// Bins that take part in a search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScanOrder<'a> {
    /// From the first that is no missing cell to before this one.
    From1To(usize),
    /// These, in this order.
    Ordered(&'a [u8]),
}

/// Running sums; returns how many.
#[inline]
fn accumulate<'a, const L: usize>(
    bins: impl Iterator<Item = &'a [i32; L]>,
    start: [i32; L],
    running: &mut Bins<L>,
) -> usize {
    let (mut sum, mut n) = (start, 0);
    for (bin, running) in bins.zip(running) {
        for entry in 0..L {
            sum[entry] = sum[entry].wrapping_add(bin[entry]);
        }
        *running = sum;
        n += 1;
    }
    n
}

/// Scores are computed for a multiple of so many bins.
const CHUNK: usize = 16;

/// Keeps products of four whole numbers of 32 bits within the range of an `f32`.
const SMALL: f32 = 1.0 / 4_294_967_296.0;

#[multiversion(targets = "simd")]
fn score_all<const L: usize>(
    (running, below): (&Bins<L>, &mut [[i32; BINS]; L]),
    total: &[i32; L],
    scaled_gain: &ScaledGain,
    fallback: f32,
    scores: &mut [f32],
) {
    // plain loops over one length: these the compiler turns into vector instructions
    let n = scores.len().min(BINS);
    let scores = &mut scores[..n];
    for at in 0..n {
        for entry in 0..L {
            below[entry][at] = running[at][entry];
        }
    }
    let below = &*below;
    let sums = |output: &ScaledOutput| (&below[output.gradient][..n], &below[output.hessian][..n]);
    let (pairs, single) = scaled_gain.outputs.as_chunks::<2>();
    scores.fill(0.0);
    for [a, b] in pairs {
        let ((g_a, h_a), (g_b, h_b)) = (sums(a), sums(b));
        let (all_a, all_b) = (a.of(total), b.of(total));
        for at in 0..n {
            // one division for both sides of both outputs
            let (above_a, under_a) = a.fraction((g_a[at], h_a[at]), all_a);
            let (above_b, under_b) = b.fraction((g_b[at], h_b[at]), all_b);
            scores[at] += (above_a * under_b + above_b * under_a) / (under_a * under_b);
        }
    }
    for output in single {
        let ((g, h), all) = (sums(output), output.of(total));
        for at in 0..n {
            let (above, under) = output.fraction((g[at], h[at]), all);
            scores[at] += above / under;
        }
    }
    let (weights, all) = (&below[scaled_gain.weight][..n], total[scaled_gain.weight]);
    let min_weight = scaled_gain.min_weight;
    for at in 0..n {
        let least = weights[at].min(all.wrapping_sub(weights[at]));
        scores[at] = if least >= min_weight {
            scores[at]
        } else {
            fallback
        };
    }
}

impl ScaledOutput {
    /// Its gradient and hessian among the gradient and hessian entries.
    fn of<const L: usize>(&self, grad_hess: &[i32; L]) -> (i32, i32) {
        (grad_hess[self.gradient], grad_hess[self.hessian])
    }

    /// The score of a side and of what is left of the whole, as one fraction.
    #[inline(always)]
    fn fraction(&self, (side_g, side_h): (i32, i32), (all_g, all_h): (i32, i32)) -> (f32, f32) {
        let (g, rest_g) = (side_g as f32, all_g.wrapping_sub(side_g) as f32);
        let h = side_h as f32 + self.l2;
        let rest_h = all_h.wrapping_sub(side_h) as f32 + self.l2;
        let above = self.factor * SMALL * (g * g * rest_h + rest_g * rest_g * h);
        (above, h * SMALL * rest_h)
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
        let scores = scan.run(
            &bins,
            ScanOrder::From1To(41),
            [0; 4],
            total,
            (&scaled_gain, REFUSED),
        );
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
