//! Depth-first growth of deep trees, with a random choice of columns at every node.
//!
//! Without a limit on leaves, the order of splitting does not change the tree. Since the smaller
//! child is grown first, at most `log2(rows)` nodes keep a histogram at a time, whatever the depth
//! of the tree. Nodes with few rows have no histogram and are searched exactly. A threshold is
//! placed midway between the bins of the rows on both sides.

use std::ops::ControlFlow;

use crate::data::binning::binned::{Binned, MISSING_BIN};
use crate::error::{Error, Result};
use crate::rng::{Key, below};
use crate::stop::Stop;
use crate::trees::cart::exact_small_node::ExactSearch;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::SplitCandidate;
use crate::trees::histogram::grower::{
    GeneralTree, GrowTask, Grower, HistogramTree, Node, SplitChildren,
};
use crate::trees::histogram::histogram_builder::{HistogramBuilder, HistogramTask};
use crate::trees::histogram::partition::Partition;
use crate::trees::histogram::splitter::GainSpec;

/// Most rows of a node that is searched exactly, without a histogram.
const MAX_EXACT_ROWS: usize = 64;
/// Least rows of a node whose groups of columns are distributed over threads.
const MIN_PARALLEL_ROWS: usize = 10_000;
/// The observer is called for nodes above this depth.
const OBSERVED_DEPTH: usize = 6;

/// Options of depth-first growth.
pub(crate) struct DepthFirstOptions<'a> {
    /// The terms of the score, in units of value.
    pub(crate) gain_spec: &'a GainSpec,
    /// Targets of all rows: a node with equal targets is not split.
    pub(crate) target: &'a [f32],
    /// Number of columns that a node chooses from, among those with a valid split; `None` for all.
    pub(crate) n_tried: Option<usize>,
    pub(crate) key: Key,
    /// May stop growth.
    pub(crate) observer: &'a (dyn Fn() -> ControlFlow<Stop> + Sync),
}

/// A tree that was grown depth first.
pub(crate) struct DepthFirstTree {
    pub(crate) tree: HistogramTree,
    /// Whether the observer stopped growth before its end.
    pub(crate) is_stopped: bool,
}

/// Random streams of the children of a node.
mod streams {
    pub(super) const LEFT: u64 = 0;
    pub(super) const RIGHT: u64 = 1;
}

impl<const L: usize> Grower<L> {
    /// Grows a tree on some rows, which ascend. Of the limits of the task only the depth applies;
    /// there are no sums over processes, because small nodes are searched without a histogram.
    ///
    /// # Errors
    /// When the observer stops growth and discards the tree. If it keeps the tree, the nodes that
    /// are not split yet become leaves.
    pub(crate) fn grow_depth_first(
        &mut self,
        task: &GrowTask<'_, L>,
        options: &DepthFirstOptions<'_>,
        rows: Vec<u32>,
    ) -> Result<DepthFirstTree> {
        self.nodes = vec![Node {
            rows: 0..rows.len(),
            n_rows: rows.len(),
            depth: 0,
        }];
        self.partition = Partition::of(rows);
        for builder in &mut self.builders {
            builder.start(task);
        }
        let mut exact = ExactSearch::new();
        let mut tree = GeneralTree::default();
        let mut is_stopped = false;
        if self.partition.n_rows() > MAX_EXACT_ROWS {
            self.count(task, None);
        }
        let mut stack = vec![(0, options.key)];
        while let Some((node, key)) = stack.pop() {
            if self.nodes[node].depth < OBSERVED_DEPTH && !is_stopped {
                match (options.observer)() {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(Stop::Keep) => is_stopped = true,
                    ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
                }
            }
            let best = if is_stopped {
                None
            } else {
                self.find_split(task, options, &mut exact, node, key)
            };
            let Some(best) = best else {
                self.release(node);
                continue;
            };
            let rows = self.partition.rows(&self.nodes[node].rows);
            let condition = centred(best.condition(), rows, task.binned);
            let split = self.split(node, &condition, task.binned);
            let (left, right) = (self.nodes.len() - 2, self.nodes.len() - 1);
            tree.push(node, condition, best.gain, [left, right]);
            self.count_children(task, split);
            let key_of = |child: usize| {
                key.child(if child == right {
                    streams::RIGHT
                } else {
                    streams::LEFT
                })
            };
            stack.push((split.larger, key_of(split.larger)));
            stack.push((split.smaller, key_of(split.smaller)));
        }
        Ok(DepthFirstTree {
            tree: tree.finish(&self.nodes),
            is_stopped,
        })
    }

    /// Computes the histograms of those children that have enough rows to need one.
    fn count_children(&mut self, task: &GrowTask<'_, L>, split: SplitChildren) {
        if self.nodes[split.larger].rows.len() <= MAX_EXACT_ROWS {
            self.release(split.parent);
            return;
        }
        self.count(task, Some(split));
        if self.nodes[split.smaller].rows.len() <= MAX_EXACT_ROWS {
            self.release(split.smaller);
        }
    }

    /// Computes the histograms of the children of a split, or of the root.
    fn count(&mut self, task: &GrowTask<'_, L>, split: Option<SplitChildren>) {
        let splits = split.as_slice();
        self.gather_rows(task.quantized, splits);
        if split.is_none() {
            let rows = self.partition.rows(&self.nodes[0].rows);
            self.gathered.push_node(task.quantized, rows);
        }
        let new = HistogramTask {
            nodes: &self.nodes,
            splits,
            rows: self.gathered.rows(),
        };
        let parent = split.map_or(0, |split| split.parent);
        let work = |group: usize, builder: &mut HistogramBuilder<L>| {
            builder.count_and_subtract(task, group, &new);
        };
        if self.nodes[parent].rows.len() >= MIN_PARALLEL_ROWS {
            task.pool.each(&mut self.builders, work);
        } else {
            for (group, builder) in self.builders.iter_mut().enumerate() {
                work(group, builder);
            }
        }
    }

    fn find_split(
        &mut self,
        task: &GrowTask<'_, L>,
        options: &DepthFirstOptions<'_>,
        exact: &mut ExactSearch<L>,
        node: usize,
        key: Key,
    ) -> Option<SplitCandidate> {
        let Node { rows, depth, .. } = self.nodes[node].clone();
        let rows = self.partition.rows(&rows);
        let first = options.target[*rows.first()? as usize];
        let is_pure = rows
            .iter()
            .all(|&row| options.target[row as usize].to_bits() == first.to_bits());
        if depth >= task.limits.max_depth || is_pure {
            return None;
        }
        let n_columns = task.binned.n_columns();
        let Some(n_tried) = options.n_tried.filter(|&n_tried| n_tried < n_columns) else {
            return self.find_among_all(task, options, exact, node);
        };
        // columns in random order, until `n_tried` of them have a valid split
        let mut order: Vec<usize> = (0..n_columns).collect();
        let mut rng = key.rng();
        let (mut best, mut n_valid): (Option<SplitCandidate>, usize) = (None, 0);
        let width = self.builders[0].columns.len();
        for at in 0..n_columns {
            order.swap(at, at + below(&mut rng, n_columns - at));
            let column = order[at];
            let candidate = if rows.len() <= MAX_EXACT_ROWS {
                exact.search(task, options.gain_spec, rows, column)
            } else {
                self.builders[column / width].search_column(task, node, column)
            };
            if let Some(candidate) = candidate {
                best = Some(best.map_or(candidate, |best| best.better(candidate)));
                n_valid += 1;
                if n_valid == n_tried {
                    break;
                }
            }
        }
        best
    }

    fn find_among_all(
        &mut self,
        task: &GrowTask<'_, L>,
        options: &DepthFirstOptions<'_>,
        exact: &mut ExactSearch<L>,
        node: usize,
    ) -> Option<SplitCandidate> {
        let rows = self.partition.rows(&self.nodes[node].rows);
        if rows.len() <= MAX_EXACT_ROWS {
            return (0..task.binned.n_columns())
                .filter_map(|column| exact.search(task, options.gain_spec, rows, column))
                .reduce(SplitCandidate::better);
        }
        let (nodes, which) = (&self.nodes, [node]);
        if rows.len() >= MIN_PARALLEL_ROWS {
            task.pool.each(&mut self.builders, |_, builder| {
                builder.search_nodes(task, nodes, &which);
            });
        } else {
            for builder in &mut self.builders {
                builder.search_nodes(task, nodes, &which);
            }
        }
        let candidates = self
            .builders
            .iter()
            .filter_map(|builder| builder.best_of_nodes[0]);
        candidates.reduce(SplitCandidate::better)
    }
}

/// Moves the threshold of a condition midway between the bins of the rows on both sides. If the
/// node has no missing cells, they go to the larger side.
fn centred(mut condition: BinCondition, rows: &[u32], binned: &Binned) -> BinCondition {
    let (bins, at) = binned.place(condition.column);
    if let RightBins::Above { bin, missing_right } = &mut condition.right_bins {
        let (mut below, mut above) = (0, u8::MAX);
        let (mut n_missing, mut n_right) = (0, 0);
        for &row in rows {
            let cell = bins[row as usize][at];
            if cell == MISSING_BIN {
                n_missing += 1;
            } else if cell <= *bin {
                below = below.max(cell);
            } else {
                above = above.min(cell);
                n_right += 1;
            }
        }
        if n_right > 0 && below > 0 {
            // a threshold at bin `b` separates `b` from `b + 1`
            *bin = below + (above - below - 1) / 2;
        }
        if n_missing == 0 {
            *missing_right = 2 * n_right > rows.len();
        }
    }
    condition
}
