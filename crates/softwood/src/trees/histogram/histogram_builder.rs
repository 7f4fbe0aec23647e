//! The part of growing a tree that one group of columns does: counting histograms and searching them.

use std::ops::Range;

use crate::numerics::gaussian::Gaussian;
use crate::trees::condition::RightBins;
use crate::trees::histogram::candidate::{SplitCandidate, SplitNoise};
use crate::trees::histogram::grower::{GrowTask, Node, SplitChildren};
use crate::trees::histogram::histogram::{BINS, Bins, Histogram};
use crate::trees::histogram::partition::Partition;
use crate::trees::histogram::splitter::{BinScan, REFUSED, ScanOrder};

/// Memory of one group of columns.
#[derive(Debug)]
pub(crate) struct HistogramBuilder<const L: usize> {
    pub(crate) columns: Range<usize>,
    /// By node; none where it is no longer needed.
    histograms: Vec<Option<Histogram<L>>>,
    spare: Vec<Histogram<L>>,
    scan: BinScan<L>,
    /// Scores of a level, summed over its nodes: per column, missing cells on the left and on the right.
    sums: Vec<[[f32; BINS]; 2]>,
    /// Sums and order of the bins of a categorical column.
    pooled: Box<Bins<L>>,
    orders: Vec<Vec<u8>>,
    pub(crate) best_of_level: Option<SplitCandidate>,
    pub(crate) best_of_nodes: Vec<Option<SplitCandidate>>,
}

impl<const L: usize> HistogramBuilder<L> {
    pub(crate) fn new(columns: Range<usize>) -> Self {
        let n_columns = columns.len();
        Self {
            columns,
            histograms: Vec::new(),
            spare: Vec::new(),
            scan: BinScan::new(),
            sums: vec![[[0.0; BINS]; 2]; n_columns],
            pooled: Box::new([[0; L]; BINS]),
            orders: vec![Vec::new(); n_columns],
            best_of_level: None,
            best_of_nodes: Vec::new(),
        }
    }

    /// Gives up the histograms of the last tree.
    pub(crate) fn clear(&mut self) {
        self.spare.extend(self.histograms.drain(..).flatten());
    }

    /// Gives up the histogram of a node that will not be split.
    pub(crate) fn forget(&mut self, node: usize) {
        self.spare
            .extend(self.histograms.get_mut(node).and_then(Option::take));
    }

    /// Histograms of the root, or of the children just born; `grad_hess` are in line with the rows that they count.
    pub(crate) fn count(
        &mut self,
        task: &GrowTask<'_, L>,
        group: usize,
        (partition, mut grad_hess): (&Partition, &[[i16; L]]),
        nodes: &[Node],
        new_children: &[SplitChildren],
    ) {
        let bins = task.binned.group(group);
        self.histograms.resize_with(nodes.len(), || None);
        if new_children.is_empty() {
            let mut root = self.fresh();
            root.fill(bins, grad_hess, partition.rows(&nodes[0].rows));
            self.histograms[0] = Some(root);
        }
        for split in new_children {
            let rows = partition.rows(&nodes[split.smaller].rows);
            let (own, others) = grad_hess.split_at(rows.len());
            grad_hess = others;
            if nodes[split.larger].rows.is_empty() {
                self.forget(split.parent);
                continue;
            }
            if nodes[split.smaller].rows.is_empty() {
                self.histograms[split.larger] = self.histograms[split.parent].take();
                continue;
            }
            let mut rest = self.histograms[split.parent].take().expect(KEPT);
            let mut part = self.fresh();
            part.fill(bins, own, rows);
            rest.subtract(&part);
            self.histograms[split.smaller] = Some(part);
            self.histograms[split.larger] = Some(rest);
        }
    }

    fn fresh(&mut self) -> Histogram<L> {
        self.spare
            .pop()
            .unwrap_or_else(|| Histogram::new(self.columns.len()))
    }

    /// The best condition for all nodes of a level together.
    pub(crate) fn search_level(
        &mut self,
        task: &GrowTask<'_, L>,
        depth: usize,
        nodes: &[Node],
        level: &[usize],
    ) {
        for sums in &mut self.sums {
            *sums = [[0.0; BINS]; 2];
        }
        self.order_categories(task, level);
        let mut unsplit = 0.0;
        for &node in level {
            if nodes[node].rows.is_empty() {
                continue;
            }
            let histogram = self.histograms[node].as_ref().expect(KEPT);
            let total = total(histogram.column(0));
            let own = task.scaled_gain.score(&total);
            unsplit += own;
            for (at, column) in self.columns.clone().enumerate() {
                if !task.open[column] {
                    continue;
                }
                let bins = histogram.column(at);
                let [left, right] = &mut self.sums[at];
                let how = (task.scaled_gain, own);
                if task.columns.is_category[column] {
                    let which = ScanOrder::Ordered(&self.orders[at]);
                    add(left, self.scan.run(bins, which, [0; L], total, how));
                    continue;
                }
                let which = ScanOrder::From1To(task.columns.n_bins[column]);
                let missing = bins[0];
                let how = (task.scaled_gain, own, task.columns.order[column]);
                let scores = self.scan.run_in_order(bins, which, missing, total, how);
                add(left, scores);
                if task.columns.has_missing[column] {
                    let scores = if missing == [0; L] {
                        scores
                    } else {
                        self.scan.run_in_order(bins, which, [0; L], total, how)
                    };
                    add(right, scores);
                }
            }
        }
        let mut best: Option<SplitCandidate> = None;
        for (at, column) in self.columns.clone().enumerate() {
            if !task.open[column] {
                continue;
            }
            let which = Place {
                at,
                column,
                node: depth,
            };
            let found = self.pick(task, which, unsplit, level, &self.sums[at]);
            best = join(best, found);
        }
        self.best_of_level = best;
    }

    /// The best condition of each of some nodes.
    pub(crate) fn search_nodes(&mut self, task: &GrowTask<'_, L>, nodes: &[Node], which: &[usize]) {
        self.best_of_nodes.clear();
        for &node in which {
            let mut best = None;
            if nodes[node].rows.len() > 1 {
                for (at, column) in self.columns.clone().enumerate() {
                    if task.open[column] {
                        let found = self.search_column(task, Place { at, column, node });
                        best = join(best, found);
                    }
                }
            }
            self.best_of_nodes.push(best);
        }
    }

    /// The best condition of one node on one column of the group.
    pub(crate) fn search_one(
        &mut self,
        task: &GrowTask<'_, L>,
        node: usize,
        column: usize,
    ) -> Option<SplitCandidate> {
        let at = column - self.columns.start;
        self.search_column(task, Place { at, column, node })
    }

    fn search_column(&mut self, task: &GrowTask<'_, L>, place: Place) -> Option<SplitCandidate> {
        let Place { at, column, node } = place;
        let level = [node];
        if task.columns.is_category[column] {
            self.order_column(task, at, column, &level);
        }
        let bins = self.histograms[node].as_ref().expect(KEPT).column(at);
        let total = total(bins);
        let own = task.scaled_gain.score(&total);
        let how = (task.scaled_gain, REFUSED);
        let mut sums = [[REFUSED; BINS]; 2];
        if task.columns.is_category[column] {
            let scores = self.scan.run(
                bins,
                ScanOrder::Ordered(&self.orders[at]),
                [0; L],
                total,
                how,
            );
            sums[0][..scores.len()].copy_from_slice(scores);
        } else {
            let which = ScanOrder::From1To(task.columns.n_bins[column]);
            let how = (task.scaled_gain, REFUSED, task.columns.order[column]);
            let scores = self.scan.run_in_order(bins, which, bins[0], total, how);
            sums[0][..scores.len()].copy_from_slice(scores);
            if bins[0] != [0; L] {
                let scores = self.scan.run_in_order(bins, which, [0; L], total, how);
                sums[1][..scores.len()].copy_from_slice(scores);
            }
        }
        self.pick(task, place, own, &level, &sums)
    }

    fn order_categories(&mut self, task: &GrowTask<'_, L>, level: &[usize]) {
        for (at, column) in self.columns.clone().enumerate() {
            if task.columns.is_category[column] && task.open[column] {
                self.order_column(task, at, column, level);
            }
        }
    }

    fn order_column(&mut self, task: &GrowTask<'_, L>, at: usize, column: usize, level: &[usize]) {
        *self.pooled = [[0; L]; BINS];
        for &node in level {
            let Some(histogram) = &self.histograms[node] else {
                continue;
            };
            for (sum, bin) in self.pooled.iter_mut().zip(histogram.column(at)) {
                for entry in 0..L {
                    sum[entry] = sum[entry].wrapping_add(bin[entry]);
                }
            }
        }
        let n_bins = task.columns.n_bins[column];
        task.scaled_gain
            .order(&self.pooled, n_bins, &mut self.orders[at]);
    }

    /// The best place of a column's scores, as a condition.
    fn pick(
        &self,
        task: &GrowTask<'_, L>,
        place: Place,
        unsplit: f32,
        level: &[usize],
        sums: &[[f32; BINS]; 2],
    ) -> Option<SplitCandidate> {
        let Place { at, column, node } = place;
        let is_category = task.columns.is_category[column];
        let n = if is_category {
            self.orders[at].len().saturating_sub(1)
        } else {
            task.columns.n_bins[column] - 1
        };
        let n_sides = if is_category || !task.columns.has_missing[column] {
            1
        } else {
            2
        };
        let mut noise = task.noise.map(|noise| ScoreNoise::new(noise, node, column));
        let (mut best, mut best_rank) = (None, f32::NEG_INFINITY);
        for side in 0..n_sides {
            // with missing cells on the right, the last bin parts them from all others
            let n = if side == 1 || is_category {
                n
            } else {
                n.saturating_sub(1)
            };
            for (after, &score) in sums[side][..n].iter().enumerate() {
                let rank = match &mut noise {
                    Some(noise) => score.max(0.0).sqrt() + noise.next(),
                    None => score,
                };
                if rank > best_rank && score > REFUSED {
                    best_rank = rank;
                    best = Some((side, after, score));
                }
            }
        }
        let (side, after, score) = best?;
        let gain = score - unsplit;
        let rank = match &mut noise {
            Some(noise) => score.max(0.0).sqrt() + noise.next(),
            None => gain,
        };
        if noise.is_none() && gain <= MIN_GAIN * unsplit.abs() {
            return None;
        }
        let right_bins = if is_category {
            self.set_rule(task, place, level, after)
        } else {
            RightBins::Above {
                bin: after as u8 + 1,
                missing_right: side == 1,
            }
        };
        Some(SplitCandidate {
            column,
            right_bins,
            gain,
            rank,
        })
    }

    /// The last of the ordered bins go right; bins without rows follow the heavier side.
    fn set_rule(
        &self,
        task: &GrowTask<'_, L>,
        place: Place,
        level: &[usize],
        after: usize,
    ) -> RightBins {
        let order = &self.orders[place.at];
        let (left, right) = order.split_at(after + 1);
        let weight = |bins: &[u8]| -> i64 {
            bins.iter()
                .map(|&bin| self.weight(task, place.at, level, bin as usize))
                .sum()
        };
        let empty_right = weight(right) > weight(left);
        let mut set = if empty_right { [u64::MAX; 4] } else { [0; 4] };
        for &bin in left {
            set[bin as usize / 64] &= !(1 << (bin % 64));
        }
        for &bin in right {
            set[bin as usize / 64] |= 1 << (bin % 64);
        }
        RightBins::In(set)
    }

    fn weight(&self, task: &GrowTask<'_, L>, at: usize, level: &[usize], bin: usize) -> i64 {
        let of_node = |&node: &usize| {
            let histogram = self.histograms[node].as_ref();
            histogram.map_or(0, |histogram| {
                i64::from(histogram.column(at)[bin][task.scaled_gain.weight()])
            })
        };
        level.iter().map(of_node).sum()
    }
}

/// Part of a node's score below which a gain is no more than rounding.
const MIN_GAIN: f32 = 1e-5;
const KEPT: &str = "a node keeps its histogram until it is split";

/// A column, its place in the group, and the node (or level) in question.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    column: usize,
    node: usize,
}

struct ScoreNoise {
    stream: Gaussian,
    sd: f32,
    ready: [f32; 32],
    used: usize,
}

impl ScoreNoise {
    fn new(noise: SplitNoise, node: usize, column: usize) -> Self {
        Self {
            stream: Gaussian::new(noise.key.child(node as u64).child(column as u64)),
            sd: noise.sd,
            ready: [0.0; 32],
            used: 32,
        }
    }

    fn next(&mut self) -> f32 {
        if self.used == self.ready.len() {
            self.stream.fill(&mut self.ready);
            self.used = 0;
        }
        self.used += 1;
        self.sd * self.ready[self.used - 1]
    }
}

fn join(a: Option<SplitCandidate>, b: Option<SplitCandidate>) -> Option<SplitCandidate> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.better(b)),
        (a, b) => a.or(b),
    }
}

fn add(sums: &mut [f32; BINS], scores: &[f32]) {
    for (sum, score) in sums.iter_mut().zip(scores) {
        *sum += score;
    }
}

/// Sums over all bins.
fn total<const L: usize>(bins: &Bins<L>) -> [i32; L] {
    let mut total = [0_i32; L];
    for bin in bins {
        for entry in 0..L {
            total[entry] = total[entry].wrapping_add(bin[entry]);
        }
    }
    total
}
