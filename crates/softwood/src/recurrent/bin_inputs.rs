//! Inputs of the network from binned columns: a score for each bin. A numeric column gives the
//! scores of its ranks, a categorical column an indicator of each frequent category, and a column
//! with missing cells an indicator of these.

use crate::data::binning::binned::{Binned, Cut, Cuts, MISSING_BIN};
use crate::numerics::order::{descending, sort_descending};
use crate::recurrent::node_splits::NodeSplit;
use crate::stop::until_cancelled;
use crate::trees::cart::CartTarget;
use crate::trees::condition::{BinCondition, RightBins};

/// What an input says about its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BinInputKind {
    /// Uniform scores of the ranks, with mean 0 and variance 1; 0 for a missing cell.
    Rank,
    /// 1 for the category of this bin, -1 for others.
    Level(u8),
    /// 1 for a missing cell, -1 for others.
    Missing,
}

/// One input of the network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BinInput {
    pub(crate) column: usize,
    kind: BinInputKind,
    /// Score of each bin of the column.
    pub(crate) scores: Vec<f32>,
}

/// The inputs of a network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BinInputs {
    pub(crate) inputs: Vec<BinInput>,
}

/// Rows with their targets, which inputs are fitted to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinnedRows<'a> {
    pub(crate) cuts: &'a Cuts,
    pub(crate) binned: &'a Binned,
    pub(crate) weight: &'a [f32],
    /// Standardised numbers, or class codes.
    pub(crate) target: &'a [f32],
    pub(crate) kind: CartTarget,
}

impl BinInputs {
    /// All inputs of the columns, at most `max_categories` per categorical column. Of more than
    /// `max_inputs`, those whose best split separates the targets best are kept.
    pub(crate) fn fit(rows: &BinnedRows<'_>, max_categories: usize, max_inputs: usize) -> Self {
        let mut inputs = Vec::new();
        for (column, cut) in until_cancelled(rows.cuts.columns.iter().enumerate()) {
            let mass = rows.bin_weights(column);
            push_inputs(&mut inputs, column, cut, &mass, max_categories);
        }
        if inputs.len() > max_inputs {
            let gains = until_cancelled(inputs.iter()).map(|input| rows.gain(input));
            let mut gains: Vec<f64> = gains.collect();
            gains.resize(inputs.len(), 0.0);
            let mut order = descending(&gains);
            order.truncate(max_inputs);
            order.sort_unstable();
            inputs = order.iter().map(|&at| inputs[at].clone()).collect();
        }
        Self { inputs }
    }

    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Scores of the given rows, inputs x `n_padded`; padding rows have scores of zero.
    pub(crate) fn scores(&self, binned: &Binned, rows: &[u32], n_padded: usize) -> Vec<f32> {
        let mut out = vec![0.0; self.len() * n_padded];
        for (input, out) in until_cancelled(self.inputs.iter().zip(out.chunks_exact_mut(n_padded)))
        {
            let (cells, at) = binned.place(input.column);
            for (score, &row) in out.iter_mut().zip(rows) {
                *score = input.scores[usize::from(cells[row as usize][at])];
            }
        }
        out
    }

    /// The split of a node with only the input of the largest share.
    pub(crate) fn hard_split(&self, split: &NodeSplit, cuts: &Cuts) -> BinSplit {
        let at = split.input();
        let input = &self.inputs[at];
        let (bias, slope) = (split.biases[at], split.slopes[at]);
        let cut = &cuts.columns[input.column];
        let last = (cut.n_bins().max(2) - 1) as u8;
        let goes_right: Vec<bool> = (input.scores.iter())
            .map(|&score| bias + slope * f64::from(score) > 0.0)
            .collect();
        let split = |right_bins: RightBins, is_swapped: bool| BinSplit {
            input: at,
            condition: BinCondition {
                column: input.column,
                right_bins,
            },
            is_swapped,
            goes_right: goes_right.clone(),
        };
        let missing_alone = RightBins::Above {
            bin: last,
            missing_right: true,
        };
        match input.kind {
            BinInputKind::Rank => {
                // scores ascend with the bins: the bins of one side are the first ones
                let is_low = |&&right: &&bool| right != (slope > 0.0);
                let n_low = goes_right[1..].iter().take_while(is_low).count() as u8;
                if n_low == 0 || n_low == last {
                    return split(missing_alone, goes_right[1]);
                }
                let above = RightBins::Above {
                    bin: n_low,
                    missing_right: goes_right[0] == (slope > 0.0),
                };
                split(above, slope <= 0.0)
            }
            BinInputKind::Level(bin) => {
                let mut set = [0; 4];
                set[usize::from(bin) / 64] |= 1 << (bin % 64);
                split(RightBins::In(set), slope <= 0.0)
            }
            BinInputKind::Missing => split(missing_alone, slope <= 0.0),
        }
    }

    /// The input and the threshold score of a condition on the bins, for the start from a given
    /// tree; `None` if the condition is not one of a single input.
    pub(crate) fn of_condition(&self, condition: &BinCondition) -> Option<(usize, f64, bool)> {
        let found = |kind: &dyn Fn(&BinInput) -> bool| {
            (self.inputs.iter()).position(|input| input.column == condition.column && kind(input))
        };
        match condition.right_bins {
            RightBins::Above { bin, .. } => {
                let at = found(&|input| input.kind == BinInputKind::Rank);
                let above = |at: usize| self.inputs[at].scores.get(usize::from(bin) + 1);
                if let Some((at, above)) = at.and_then(|at| Some((at, above(at)?))) {
                    let below = self.inputs[at].scores[usize::from(bin)];
                    return Some((at, f64::from(below + above) / 2.0, true));
                }
                found(&|input| input.kind == BinInputKind::Missing).map(|at| (at, 0.0, true))
            }
            RightBins::In(set) => {
                let bins = |complement: bool| {
                    (1..=255_u8).filter(move |&bin| {
                        (set[usize::from(bin) / 64] >> (bin % 64) & 1 == 1) != complement
                    })
                };
                // the first single category on either side that has an input
                let level = |bin: u8| found(&|input| input.kind == BinInputKind::Level(bin));
                (bins(false).find_map(level).map(|at| (at, 0.0, true)))
                    .or_else(|| bins(true).find_map(level).map(|at| (at, 0.0, false)))
            }
        }
    }
}

/// A split that sends every bin of one column to one side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BinSplit {
    pub(crate) input: usize,
    pub(crate) condition: BinCondition,
    /// Whether the rows that the condition sends right go left.
    pub(crate) is_swapped: bool,
    /// Side of each bin of the column.
    goes_right: Vec<bool>,
}

impl BinSplit {
    #[inline]
    pub(crate) fn goes_right(&self, bin: u8) -> bool {
        self.goes_right[usize::from(bin)]
    }
}

/// Adds the inputs of a column; `mass` is the weight of each bin.
fn push_inputs(
    inputs: &mut Vec<BinInput>,
    column: usize,
    cut: &Cut,
    mass: &[f64],
    max_categories: usize,
) {
    let indicator = |bin: usize| -> Vec<f32> {
        let score = |at| if at == bin { 1.0 } else { -1.0 };
        (0..mass.len()).map(score).collect()
    };
    let total: f64 = mass.iter().sum();
    let varies = |bin: usize| mass[bin] > 0.0 && mass[bin] < total;
    if cut.is_category() {
        let mut bins: Vec<usize> = (1..mass.len()).filter(|&bin| varies(bin)).collect();
        sort_descending(&mut bins, mass);
        // of two categories one indicator tells all
        let n = if bins.len() == 2 && !varies(0) {
            1
        } else {
            max_categories
        };
        for &bin in bins.iter().take(n) {
            inputs.push(BinInput {
                column,
                kind: BinInputKind::Level(bin as u8),
                scores: indicator(bin),
            });
        }
    } else if mass[1..].iter().filter(|&&mass| mass > 0.0).count() > 1 {
        inputs.push(BinInput {
            column,
            kind: BinInputKind::Rank,
            scores: rank_scores(mass),
        });
    }
    if varies(usize::from(MISSING_BIN)) {
        inputs.push(BinInput {
            column,
            kind: BinInputKind::Missing,
            scores: indicator(usize::from(MISSING_BIN)),
        });
    }
}

/// Middle ranks of the bins, scaled to mean 0 and variance 1 (of a uniform distribution).
fn rank_scores(mass: &[f64]) -> Vec<f32> {
    let total: f64 = mass[1..].iter().sum();
    let mut below = 0.0;
    let mut scores = vec![0.0];
    for &mass in &mass[1..] {
        let rank = (below + 0.5 * mass) / total;
        scores.push(((rank - 0.5) * f64::sqrt(12.0)) as f32);
        below += mass;
    }
    scores
}

impl BinnedRows<'_> {
    /// Weight of the rows in each bin of a column.
    fn bin_weights(&self, column: usize) -> Vec<f64> {
        let mut mass = vec![0.0; self.cuts.columns[column].n_bins().max(2)];
        let (cells, at) = self.binned.place(column);
        for (cells, &weight) in cells.iter().zip(self.weight) {
            mass[usize::from(cells[at])] += f64::from(weight);
        }
        mass
    }

    /// Largest reduction of the loss by one split on an input.
    fn gain(&self, input: &BinInput) -> f64 {
        let n_stats = self.kind.n_stats();
        let mut bins = vec![0.0; input.scores.len() * n_stats];
        let (cells, at) = self.binned.place(input.column);
        for (row, cells) in cells.iter().enumerate() {
            let stats = &mut bins[usize::from(cells[at]) * n_stats..][..n_stats];
            self.kind
                .push(stats, self.target[row], f64::from(self.weight[row]));
        }
        let mut order: Vec<usize> = (0..input.scores.len()).collect();
        order.sort_by(|&a, &b| input.scores[a].total_cmp(&input.scores[b]));
        let stats = |bin: usize| &bins[bin * n_stats..(bin + 1) * n_stats];
        let sums = |order: &mut dyn Iterator<Item = usize>| -> Vec<f64> {
            let mut sum = vec![0.0; n_stats];
            let mut losses = Vec::new();
            for bin in order {
                self.kind.merge(&mut sum, stats(bin));
                losses.push(self.kind.loss(&sum));
            }
            losses
        };
        let low = sums(&mut order.iter().copied());
        let high = sums(&mut order.iter().rev().copied());
        let n = order.len();
        let best = (1..n).map(|split| low[split - 1] + high[n - split - 1]);
        low[n - 1] - best.fold(f64::INFINITY, f64::min)
    }
}
