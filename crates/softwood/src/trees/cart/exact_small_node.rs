//! The search in a node of few rows: no histogram, the rows themselves, sorted by bin; sums are exact.

use crate::data::binning::binned::MISSING_BIN;
use crate::likelihood::OutputTerms;
use crate::trees::condition::RightBins;
use crate::trees::histogram::candidate::SplitCandidate;
use crate::trees::histogram::grower::GrowTask;
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::splitter::GainSpec;

/// Part of a node's score below which a gain is no more than rounding.
const MIN_GAIN: f64 = 1e-9;
/// Part of the least weight that rounding may take away.
const ROUNDING: f64 = 1e-6;

/// The rows of one bin, summed.
#[derive(Debug, Clone, Copy)]
struct BinSums<const L: usize> {
    bin: u8,
    sums: [i64; L],
}

/// HistogramBuilder for one search.
#[derive(Debug)]
pub(super) struct ExactSearch<const L: usize> {
    sorted: Vec<u32>,
    groups: Vec<BinSums<L>>,
}

/// A place between two groups: how many stand on the left, and whether missing cells stand on the right.
#[derive(Debug, Clone, Copy)]
struct Boundary {
    n_left: usize,
    missing_right: bool,
    score: f64,
}

impl<const L: usize> ExactSearch<L> {
    pub(super) fn new() -> Self {
        Self {
            sorted: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// The best condition of the rows on one column.
    pub(super) fn search(
        &mut self,
        task: &GrowTask<'_, L>,
        gain_spec: &GainSpec,
        rows: &[u32],
        column: usize,
    ) -> Option<SplitCandidate> {
        let is_category = task.columns.is_category[column];
        self.sort(task, rows, column);
        if self.groups.len() < 2 {
            return None;
        }
        if is_category {
            self.order(gain_spec, task.quantized);
        }
        let total = self
            .groups
            .iter()
            .fold([0; L], |sum, group| add(sum, group.sums));
        let unsplit = score(gain_spec, task.quantized, &total);
        let judge = SplitScorer {
            gain_spec,
            quantized: task.quantized,
            total,
        };
        // missing cells are the first group of a column of numbers; they can stand on either side
        let has_missing = !is_category && self.groups[0].bin == MISSING_BIN;
        let mut best = judge.best(&self.groups, usize::from(has_missing), false, None);
        if has_missing {
            best = judge.best(&self.groups, 1, true, best);
        }
        let best = best?;
        let gain = best.score - unsplit;
        if gain <= MIN_GAIN * unsplit.abs() {
            return None;
        }
        let right_bins = if is_category {
            self.set_rule(gain_spec, best.n_left)
        } else {
            RightBins::Above {
                bin: self.groups[best.n_left - 1].bin,
                missing_right: best.missing_right,
            }
        };
        Some(SplitCandidate {
            column,
            right_bins,
            gain: gain as f32,
            rank: gain as f32,
        })
    }

    fn sort(&mut self, task: &GrowTask<'_, L>, rows: &[u32], column: usize) {
        let (bins, at) = task.binned.place(column);
        self.sorted.clear();
        // few rows: a bin and the place of its row fit into one number
        let keys = rows.iter().zip(0..);
        self.sorted
            .extend(keys.map(|(&row, place)| u32::from(bins[row as usize][at]) << 16 | place));
        self.sorted.sort_unstable();
        self.groups.clear();
        for &key in &self.sorted {
            let (bin, row) = ((key >> 16) as u8, rows[(key & 0xffff) as usize]);
            let grad_hess = task.quantized.wide[row as usize].map(i64::from);
            match self.groups.last_mut() {
                Some(last) if last.bin == bin => last.sums = add(last.sums, grad_hess),
                _ => self.groups.push(BinSums {
                    bin,
                    sums: grad_hess,
                }),
            }
        }
    }

    /// Categories by the step of the output that tells them apart best.
    fn order(&mut self, gain_spec: &GainSpec, quantized: &QuantizedGradients<L>) {
        let step = |output: &OutputTerms, group: &BinSums<L>| {
            let weight = group.sums[output.hessian].max(1) as f64 * quantized.unit[output.hessian];
            group.sums[output.gradient] as f64 * quantized.unit[output.gradient]
                / (weight + output.l2)
        };
        let spread = |output: &OutputTerms| -> f64 {
            let terms = self
                .groups
                .iter()
                .map(|group| group.sums[output.gradient] as f64 * step(output, group));
            output.factor * quantized.unit[output.gradient] * terms.sum::<f64>()
        };
        let leader = gain_spec
            .outputs
            .iter()
            .max_by(|a, b| spread(a).total_cmp(&spread(b)));
        if let Some(leader) = leader {
            self.groups.sort_by(|a, b| {
                step(leader, a)
                    .total_cmp(&step(leader, b))
                    .then(a.bin.cmp(&b.bin))
            });
        }
    }

    /// The last groups go right; bins without rows follow the heavier side.
    fn set_rule(&self, gain_spec: &GainSpec, n_left: usize) -> RightBins {
        let (left, right) = self.groups.split_at(n_left);
        let weight = |groups: &[BinSums<L>]| -> i64 {
            groups
                .iter()
                .map(|group| group.sums[gain_spec.weight])
                .sum()
        };
        let empty_right = weight(right) > weight(left);
        let mut set = if empty_right { [u64::MAX; 4] } else { [0; 4] };
        for group in left {
            set[group.bin as usize / 64] &= !(1 << (group.bin % 64));
        }
        for group in right {
            set[group.bin as usize / 64] |= 1 << (group.bin % 64);
        }
        RightBins::In(set)
    }
}

struct SplitScorer<'a, const L: usize> {
    gain_spec: &'a GainSpec,
    quantized: &'a QuantizedGradients<L>,
    total: [i64; L],
}

impl<const L: usize> SplitScorer<'_, L> {
    /// The best place after at least `first + 1` groups; with missing cells on the right the first group is not on the left.
    fn best(
        &self,
        groups: &[BinSums<L>],
        first: usize,
        missing_right: bool,
        mut best: Option<Boundary>,
    ) -> Option<Boundary> {
        let least = self.gain_spec.min_weight * (1.0 - ROUNDING);
        let mut left = if first == 1 && !missing_right {
            groups[0].sums
        } else {
            [0; L]
        };
        let end = if missing_right {
            groups.len()
        } else {
            groups.len() - 1
        };
        for (at, group) in groups.iter().enumerate().take(end).skip(first) {
            left = add(left, group.sums);
            let right: [i64; L] = std::array::from_fn(|entry| self.total[entry] - left[entry]);
            let weight = |sums: &[i64; L]| {
                sums[self.gain_spec.weight] as f64 * self.quantized.unit[self.gain_spec.weight]
            };
            if weight(&left).min(weight(&right)) < least {
                continue;
            }
            let score = score(self.gain_spec, self.quantized, &left)
                + score(self.gain_spec, self.quantized, &right);
            if best.is_none_or(|best| score > best.score) {
                best = Some(Boundary {
                    n_left: at + 1,
                    missing_right,
                    score,
                });
            }
        }
        best
    }
}

fn add<const L: usize>(a: [i64; L], b: [i64; L]) -> [i64; L] {
    std::array::from_fn(|entry| a[entry] + b[entry])
}

/// Score of a set of rows; see `search.rs`.
#[inline]
fn score<const L: usize>(
    gain_spec: &GainSpec,
    quantized: &QuantizedGradients<L>,
    sums: &[i64; L],
) -> f64 {
    let mut score = 0.0;
    for output in &gain_spec.outputs {
        let gradient = sums[output.gradient] as f64 * quantized.unit[output.gradient];
        let hessian = sums[output.hessian] as f64 * quantized.unit[output.hessian] + output.l2;
        if hessian > 0.0 {
            score += output.factor * gradient * gradient / hessian;
        }
    }
    score
}
