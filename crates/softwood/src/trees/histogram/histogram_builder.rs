//! The work of one group of columns in growing a tree: histograms of nodes, and the search for
//! their best splits.

use std::ops::Range;

use crate::trees::condition::RightBins;
use crate::trees::histogram::candidate::SplitCandidate;
use crate::trees::histogram::chooser::{
    BestScore, GumbelScore, NoisyScore, RankCandidates, SplitChooser,
};
use crate::trees::histogram::grower::{GrowTask, Node, SplitChildren};
use crate::trees::histogram::histogram::{BINS, Bins, CountedColumn, CountedColumns, Histogram};
use crate::trees::histogram::splitter::{BinScan, REFUSED, ScanOrder, ScanTask};

const KEPT: &str = "a node keeps its histogram until it is split";

/// Scores of the splits of one column: with missing cells on the left, and on the right.
type ColumnScores = [[f32; BINS]; 2];

/// Histograms and workspace of one group of columns.
#[derive(Debug)]
pub(crate) struct HistogramBuilder<const L: usize> {
    pub(crate) columns: Range<usize>,
    /// The columns whose histograms are computed.
    counted_columns: CountedColumns,
    /// By node; `None` before the histogram is computed and after it is released.
    histograms: Vec<Option<Histogram<L>>>,
    /// Released histograms, to be used again.
    free_histograms: Vec<Histogram<L>>,
    scan: BinScan<L>,
    /// Scores of each column, summed over the nodes of a level.
    level_scores: Vec<ColumnScores>,
    /// Sums of the bins of a categorical column over the nodes of a level.
    pooled: Box<Bins<L>>,
    /// Order of the bins of each categorical column.
    orders: Vec<Vec<u8>>,
    pub(crate) best_of_level: Option<SplitCandidate>,
    pub(crate) best_of_nodes: Vec<Option<SplitCandidate>>,
}

/// Nodes whose histograms have to be computed: the root, or the children of new splits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistogramTask<'a, const L: usize> {
    pub(crate) nodes: &'a [Node],
    /// The new splits; empty for the root.
    pub(crate) splits: &'a [SplitChildren],
    /// The rows to count: those of the root, or of the smaller children, node after node.
    pub(crate) rows: GatheredRows<'a, L>,
}

/// Rows of new nodes with their gradients, node after node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatheredRows<'a, const L: usize> {
    pub(crate) indices: &'a [u32],
    /// Narrow quantized gradients of these rows.
    pub(crate) grad_hess: &'a [[i16; L]],
    /// Number of rows of each node.
    pub(crate) n_rows: &'a [usize],
}

impl<const L: usize> HistogramBuilder<L> {
    pub(crate) fn new(columns: Range<usize>) -> Self {
        let n_columns = columns.len();
        Self {
            columns,
            counted_columns: CountedColumns::default(),
            histograms: Vec::new(),
            free_histograms: Vec::new(),
            scan: BinScan::new(),
            level_scores: vec![[[0.0; BINS]; 2]; n_columns],
            pooled: Box::new([[0; L]; BINS]),
            orders: vec![Vec::new(); n_columns],
            best_of_level: None,
            best_of_nodes: Vec::new(),
        }
    }

    /// Releases the histograms of the previous tree and selects the columns to count: those that
    /// the tree may split on. Histograms that are summed over processes are counted as a whole.
    pub(crate) fn start(&mut self, task: &GrowTask<'_, L>) {
        let histograms = self.histograms.drain(..).flatten();
        self.free_histograms.extend(histograms);
        let columns = self.columns.clone().enumerate();
        self.counted_columns = CountedColumns::new(columns.filter_map(|(slot, column)| {
            if !task.reduce.is_local() {
                return Some(CountedColumn { slot, n_bins: BINS });
            }
            task.allowed[column].then(|| CountedColumn {
                slot,
                n_bins: task.columns.n_bins[column].min(BINS),
            })
        }));
    }

    /// Releases the histogram of a node that will not be split.
    pub(crate) fn release(&mut self, node: usize) {
        self.free_histograms
            .extend(self.histograms.get_mut(node).and_then(Option::take));
    }

    /// Computes the histograms of the root, or of the smaller children of new splits, from the rows
    /// of this process. [`HistogramBuilder::subtract`] follows, after the reduction.
    pub(crate) fn count(
        &mut self,
        task: &GrowTask<'_, L>,
        group: usize,
        new: &HistogramTask<'_, L>,
    ) {
        self.count_each(task, group, new, |_, _| ());
    }

    /// Computes the histograms of the root, or of both children of new splits, if this process has
    /// all rows: each subtraction finds its histograms in the cache.
    pub(crate) fn count_and_subtract(
        &mut self,
        task: &GrowTask<'_, L>,
        group: usize,
        new: &HistogramTask<'_, L>,
    ) {
        self.count_each(task, group, new, |builder, split| {
            builder.subtract_split(new.nodes, split);
        });
    }

    /// Calls `counted` for every split after the histogram of its smaller child.
    fn count_each(
        &mut self,
        task: &GrowTask<'_, L>,
        group: usize,
        new: &HistogramTask<'_, L>,
        counted: impl Fn(&mut Self, &SplitChildren),
    ) {
        let bins = task.binned.group(group);
        self.histograms.resize_with(new.nodes.len(), || None);
        if self.counted_columns.is_empty() {
            return;
        }
        let mut rows = new.rows;
        if new.splits.is_empty() {
            let mut root = self.allocate();
            root.fill(&self.counted_columns, bins, rows.grad_hess, rows.indices);
            self.histograms[0] = Some(root);
        }
        for (split, &n_rows) in new.splits.iter().zip(new.rows.n_rows) {
            let (indices, grad_hess);
            (indices, rows.indices) = rows.indices.split_at(n_rows);
            (grad_hess, rows.grad_hess) = rows.grad_hess.split_at(n_rows);
            if new.nodes[split.smaller].n_rows > 0 {
                let mut smaller = self.allocate();
                smaller.fill(&self.counted_columns, bins, grad_hess, indices);
                self.histograms[split.smaller] = Some(smaller);
            }
            counted(self, split);
        }
    }

    /// The histograms that [`HistogramBuilder::count`] computed, in the order of the splits.
    pub(crate) fn counted(
        &mut self,
        splits: &[SplitChildren],
    ) -> impl Iterator<Item = &mut Histogram<L>> {
        let first = splits.iter().map(|split| split.smaller).min();
        // nodes ascend in the order of the splits
        self.histograms[first.unwrap_or(0)..]
            .iter_mut()
            .filter_map(Option::as_mut)
    }

    /// Computes the histograms of the larger children of new splits.
    pub(crate) fn subtract(&mut self, new: &HistogramTask<'_, L>) {
        for split in new.splits {
            self.subtract_split(new.nodes, split);
        }
    }

    /// The histogram of the larger child is the parent's minus that of the smaller child.
    fn subtract_split(&mut self, nodes: &[Node], split: &SplitChildren) {
        if nodes[split.larger].n_rows == 0 {
            self.release(split.parent);
            return;
        }
        let mut larger = self.histograms[split.parent].take().expect(KEPT);
        if let Some(smaller) = &self.histograms[split.smaller] {
            larger.subtract(smaller, &self.counted_columns);
        }
        self.histograms[split.larger] = Some(larger);
    }

    fn allocate(&mut self) -> Histogram<L> {
        self.free_histograms
            .pop()
            .unwrap_or_else(|| Histogram::new(self.columns.len()))
    }

    /// Finds the best common condition of all nodes of a level.
    pub(crate) fn search_level(
        &mut self,
        task: &GrowTask<'_, L>,
        depth: usize,
        nodes: &[Node],
        level: &[usize],
    ) {
        for column in self.counted_columns.iter() {
            for scores in &mut self.level_scores[column.slot] {
                scores[..column.n_bins].fill(0.0);
            }
        }
        self.best_of_level = None;
        if self.counted_columns.is_empty() {
            return;
        }
        self.order_categories(task, level);
        let mut unsplit = 0.0;
        for &node in level {
            if nodes[node].n_rows > 0 {
                unsplit += self.add_node_scores(task, node);
            }
        }
        let mut best: Option<SplitCandidate> = None;
        for (slot, column) in self.columns.clone().enumerate() {
            if task.allowed[column] {
                let search = ColumnSearch {
                    slot,
                    column,
                    stream: depth,
                    nodes: level,
                };
                let scores = &self.level_scores[slot];
                let candidate = self.best_candidate(task, search, unsplit, scores);
                best = better(best, candidate);
            }
        }
        self.best_of_level = best;
    }

    /// Adds the scores of a node to those of its level. Returns the score of the unsplit node, which
    /// replaces the score of every split with too little weight on one side.
    fn add_node_scores(&mut self, task: &GrowTask<'_, L>, node: usize) -> f32 {
        let histogram = self.histograms[node].as_ref().expect(KEPT);
        let first = self.counted_columns.iter().next();
        let total = first.map_or([0; L], |column| {
            total(&histogram.column(column.slot)[..column.n_bins])
        });
        let unsplit = task.scaled_gain.score(&total);
        for (slot, column) in self.columns.clone().enumerate() {
            if !task.allowed[column] {
                continue;
            }
            let [missing_left, missing_right] = &mut self.level_scores[slot];
            let order = &self.orders[slot];
            let bins = histogram.column(slot);
            let scan = scan_task(task, column, bins, order, total, unsplit);
            let scores = self.scan.run(&scan);
            add(missing_left, scores);
            if task.columns.has_missing[column] && !task.columns.is_category[column] {
                let scores = if scan.left == [0; L] {
                    scores
                } else {
                    self.scan.run(&ScanTask {
                        left: [0; L],
                        ..scan
                    })
                };
                add(missing_right, scores);
            }
        }
        unsplit
    }

    /// Finds the best condition of each of some nodes.
    pub(crate) fn search_nodes(&mut self, task: &GrowTask<'_, L>, nodes: &[Node], which: &[usize]) {
        self.best_of_nodes.clear();
        for &node in which {
            let mut best = None;
            if nodes[node].n_rows > 1 {
                for column in self.columns.clone() {
                    if task.allowed[column] {
                        best = better(best, self.search_column(task, node, column));
                    }
                }
            }
            self.best_of_nodes.push(best);
        }
    }

    /// The best condition of one node on one column of the group.
    pub(crate) fn search_column(
        &mut self,
        task: &GrowTask<'_, L>,
        node: usize,
        column: usize,
    ) -> Option<SplitCandidate> {
        let search = ColumnSearch {
            slot: column - self.columns.start,
            column,
            stream: node,
            nodes: &[node],
        };
        if task.columns.is_category[column] {
            self.order_column(task, search.slot, column, search.nodes);
        }
        let histogram = self.histograms[node].as_ref().expect(KEPT);
        let bins = histogram.column(search.slot);
        let n_bins = task.columns.n_bins[column].min(BINS);
        let (total, order) = (total(&bins[..n_bins]), &self.orders[search.slot]);
        let scan = scan_task(task, column, bins, order, total, REFUSED);
        let unsplit = match task.chooser {
            SplitChooser::Sampled(_) => 0.0,
            SplitChooser::Best | SplitChooser::Noisy(_) => task.scaled_gain.score(&total),
        };
        let mut scores = [[REFUSED; BINS]; 2];
        let missing_left = self.scan.run_for(&scan, &task.chooser);
        scores[0][..missing_left.len()].copy_from_slice(missing_left);
        if scan.left != [0; L] {
            let missing_right = ScanTask {
                left: [0; L],
                ..scan
            };
            let missing_right = self.scan.run_for(&missing_right, &task.chooser);
            scores[1][..missing_right.len()].copy_from_slice(missing_right);
        }
        self.best_candidate(task, search, unsplit, &scores)
    }

    fn order_categories(&mut self, task: &GrowTask<'_, L>, level: &[usize]) {
        for (slot, column) in self.columns.clone().enumerate() {
            if task.columns.is_category[column] && task.allowed[column] {
                self.order_column(task, slot, column, level);
            }
        }
    }

    /// Orders the categories of a column by their sums over some nodes.
    fn order_column(
        &mut self,
        task: &GrowTask<'_, L>,
        slot: usize,
        column: usize,
        nodes: &[usize],
    ) {
        let n_bins = task.columns.n_bins[column].min(BINS);
        self.pooled[..n_bins].fill([0; L]);
        for &node in nodes {
            let Some(histogram) = &self.histograms[node] else {
                continue;
            };
            let bins = &histogram.column(slot)[..n_bins];
            for (sum, bin) in self.pooled.iter_mut().zip(bins) {
                for entry in 0..L {
                    sum[entry] = sum[entry].wrapping_add(bin[entry]);
                }
            }
        }
        task.scaled_gain
            .order_bins(&self.pooled, n_bins, &mut self.orders[slot]);
    }

    /// The split of highest rank among those that were scored, if the chooser accepts it.
    fn best_candidate(
        &self,
        task: &GrowTask<'_, L>,
        search: ColumnSearch<'_>,
        unsplit: f32,
        scores: &ColumnScores,
    ) -> Option<SplitCandidate> {
        let (stream, column) = (search.stream, search.column);
        // one instance for each strategy, so that none costs a call or a branch per candidate
        match task.chooser {
            SplitChooser::Best => self.ranked(task, search, unsplit, scores, BestScore),
            SplitChooser::Noisy(noise) => {
                let noisy = NoisyScore::new(noise, stream, column);
                self.ranked(task, search, unsplit, scores, noisy)
            }
            SplitChooser::Sampled(sampling) => {
                let gumbel = GumbelScore::new(sampling, stream, column);
                self.ranked(task, search, unsplit, scores, gumbel)
            }
        }
    }

    fn ranked(
        &self,
        task: &GrowTask<'_, L>,
        search: ColumnSearch<'_>,
        unsplit: f32,
        scores: &ColumnScores,
        mut ranking: impl RankCandidates,
    ) -> Option<SplitCandidate> {
        let column = search.column;
        let (best, best_rank) = self.best_split(task, search, scores, &mut ranking)?;
        let rank = ranking.among_columns(best.score, unsplit, best_rank)?;
        let right_bins = if task.columns.is_category[column] {
            self.category_set(task, search, best.after)
        } else {
            RightBins::Above {
                bin: best.after as u8 + 1,
                missing_right: best.missing_right,
            }
        };
        Some(SplitCandidate {
            column,
            right_bins,
            gain: best.score - unsplit,
            rank,
            n_candidates: ranking.n_candidates(),
        })
    }

    /// The split of highest rank, and its rank.
    fn best_split(
        &self,
        task: &GrowTask<'_, L>,
        search: ColumnSearch<'_>,
        scores: &ColumnScores,
        ranking: &mut impl RankCandidates,
    ) -> Option<(ScoredSplit, f32)> {
        let is_category = task.columns.is_category[search.column];
        let n_splits = if is_category {
            self.orders[search.slot].len().saturating_sub(1)
        } else {
            task.columns.n_bins[search.column] - 1
        };
        let has_both_sides = !is_category && task.columns.has_missing[search.column];
        let (mut best, mut best_rank) = (None, f32::NEG_INFINITY);
        for (side, scores) in scores
            .iter()
            .enumerate()
            .take(1 + usize::from(has_both_sides))
        {
            // only with missing cells on the right, rows remain on the right of the last bin
            let n = if side == 1 || is_category {
                n_splits
            } else {
                n_splits.saturating_sub(1)
            };
            for (after, &score) in scores[..n].iter().enumerate() {
                let rank = ranking.rank(score);
                if rank > best_rank && score > REFUSED {
                    best_rank = rank;
                    best = Some(ScoredSplit {
                        after,
                        missing_right: side == 1,
                        score,
                    });
                }
            }
        }
        best.map(|best| (best, best_rank))
    }

    /// The set of the ordered bins after `after`. Bins without rows go to the heavier side.
    fn category_set(
        &self,
        task: &GrowTask<'_, L>,
        search: ColumnSearch<'_>,
        after: usize,
    ) -> RightBins {
        let (left, right) = self.orders[search.slot].split_at(after + 1);
        let weight = |bins: &[u8]| -> i64 {
            let weights = bins.iter().map(|&bin| self.weight(task, search, bin));
            weights.sum()
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

    /// Weight of the rows in one bin.
    fn weight(&self, task: &GrowTask<'_, L>, search: ColumnSearch<'_>, bin: u8) -> i64 {
        let of_node = |&node: &usize| {
            let histogram = self.histograms[node].as_ref();
            histogram.map_or(0, |histogram| {
                let entries = histogram.column(search.slot)[bin as usize];
                i64::from(entries[task.scaled_gain.weight()])
            })
        };
        search.nodes.iter().map(of_node).sum()
    }
}

/// One column of the group, and the nodes to find a common condition for.
#[derive(Debug, Clone, Copy)]
struct ColumnSearch<'a> {
    /// Index of the column within its group.
    slot: usize,
    column: usize,
    /// Random stream of the chooser: the node, or the depth of the level.
    stream: usize,
    nodes: &'a [usize],
}

/// The split after the bin at place `after` of the scan.
#[derive(Debug, Clone, Copy)]
struct ScoredSplit {
    after: usize,
    missing_right: bool,
    score: f32,
}

/// The scan of a column. Missing cells of a numeric column go left; those of a categorical column
/// are a category of their own.
fn scan_task<'a, const L: usize>(
    task: &GrowTask<'a, L>,
    column: usize,
    bins: &'a Bins<L>,
    order: &'a [u8],
    total: [i32; L],
    fallback: f32,
) -> ScanTask<'a, L> {
    let is_category = task.columns.is_category[column];
    ScanTask {
        bins,
        order: if is_category {
            ScanOrder::Ordered(order)
        } else {
            ScanOrder::From1To(task.columns.n_bins[column])
        },
        left: if is_category { [0; L] } else { bins[0] },
        total,
        scaled_gain: task.scaled_gain,
        fallback,
        monotonic_cst: if is_category {
            0
        } else {
            task.columns.monotonic_cst[column]
        },
    }
}

fn better(a: Option<SplitCandidate>, b: Option<SplitCandidate>) -> Option<SplitCandidate> {
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

/// Sums over some bins.
fn total<const L: usize>(bins: &[[i32; L]]) -> [i32; L] {
    let mut total = [0_i32; L];
    for bin in bins {
        for entry in 0..L {
            total[entry] = total[entry].wrapping_add(bin[entry]);
        }
    }
    total
}
