//! Exact split search in a node with few rows: the rows are sorted by bin, without a histogram, and
//! the sums are those of the wide quantized gradients.

use crate::data::binning::binned::MISSING_BIN;
use crate::likelihood::OutputTerms;
use crate::numerics::order::ascending;
use crate::trees::condition::RightBins;
use crate::trees::histogram::candidate::SplitCandidate;
use crate::trees::histogram::grower::GrowTask;
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::splitter::GainSpec;

/// Gains below this fraction of the score of a node are rounding errors.
const MIN_GAIN: f64 = 1e-9;
/// Relative tolerance of the least weight, for rounding errors.
const ROUNDING: f64 = 1e-6;

/// Sums of the rows of a node in one bin.
#[derive(Debug, Clone, Copy)]
struct BinSums<const L: usize> {
    bin: u8,
    sums: [i64; L],
}

/// Workspace of exact searches.
#[derive(Debug)]
pub(super) struct ExactSearch<const L: usize> {
    /// Bin and place of each row, sorted by bin.
    sorted: Vec<u32>,
    /// The bins that have rows.
    groups: Vec<BinSums<L>>,
}

/// A split between two groups.
#[derive(Debug, Clone, Copy)]
struct Boundary {
    /// Number of groups before the split.
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

    /// The best condition on one column.
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
            self.order_categories(gain_spec, task.quantized);
        }
        let total = self
            .groups
            .iter()
            .fold([0; L], |sum, group| add(sum, group.sums));
        let unsplit = score(gain_spec, task.quantized, &total);
        let scorer = SplitScorer {
            gain_spec,
            quantized: task.quantized,
            total,
        };
        // missing cells are the first group of a numeric column and may go to either side
        let has_missing = !is_category && self.groups[0].bin == MISSING_BIN;
        let mut best = scorer.best(&self.groups, usize::from(has_missing), false, None);
        if has_missing {
            best = scorer.best(&self.groups, 1, true, best);
        }
        let best = best?;
        let gain = best.score - unsplit;
        if gain <= MIN_GAIN * unsplit.abs() {
            return None;
        }
        let right_bins = if is_category {
            self.category_set(gain_spec, best.n_left)
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
            n_candidates: 0,
        })
    }

    /// Groups the rows by bin.
    fn sort(&mut self, task: &GrowTask<'_, L>, rows: &[u32], column: usize) {
        let (bins, at) = task.binned.place(column);
        self.sorted.clear();
        // with few rows, the bin and the place of a row fit into one integer
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

    /// Orders categories by the Newton step of one output: the one whose score rises most if every
    /// category is a leaf of its own.
    fn order_categories(&mut self, gain_spec: &GainSpec, quantized: &QuantizedGradients<L>) {
        let step = |output: &OutputTerms, group: &BinSums<L>| {
            let weight = group.sums[output.hessian].max(1) as f64 * quantized.unit[output.hessian];
            group.sums[output.gradient] as f64 * quantized.unit[output.gradient]
                / (weight + output.l2)
        };
        let score = |output: &OutputTerms| -> f64 {
            let terms = self
                .groups
                .iter()
                .map(|group| group.sums[output.gradient] as f64 * step(output, group));
            output.factor * quantized.unit[output.gradient] * terms.sum::<f64>()
        };
        let best = gain_spec
            .outputs
            .iter()
            .max_by(|a, b| score(a).total_cmp(&score(b)));
        if let Some(best) = best {
            let steps: Vec<f64> = self.groups.iter().map(|group| step(best, group)).collect();
            let order = ascending(&steps);
            self.groups = order.iter().map(|&at| self.groups[at]).collect();
        }
    }

    /// The set of the groups after the first `n_left`. Bins without rows go to the heavier side.
    fn category_set(&self, gain_spec: &GainSpec, n_left: usize) -> RightBins {
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

/// Scores of the splits of a node with the sums `total`.
struct SplitScorer<'a, const L: usize> {
    gain_spec: &'a GainSpec,
    quantized: &'a QuantizedGradients<L>,
    total: [i64; L],
}

impl<const L: usize> SplitScorer<'_, L> {
    /// The best of `best` and the splits after each group from `first` on. If `first` is 1, group 0
    /// holds the missing cells, which go to the side that `missing_right` names.
    fn best(
        &self,
        groups: &[BinSums<L>],
        first: usize,
        missing_right: bool,
        mut best: Option<Boundary>,
    ) -> Option<Boundary> {
        let min_weight = self.gain_spec.min_weight * (1.0 - ROUNDING);
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
            if weight(&left).min(weight(&right)) < min_weight {
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

/// Score of a set of rows; see [`crate::trees::histogram::splitter`].
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
