//! Growing a options tree depth first, with a choice of columns of its own at every node.
//!
//! Without a limit on leaves the order of splitting does not change the tree. Going into the smaller child first, at most
//! `log2(rows)` siblings wait with their histograms, however options the tree is; nodes of few rows have none and are searched row
//! by row. A threshold stands in the middle between the rows of its node.

use std::ops::ControlFlow;

use crate::data::binning::binned::{Binned, MISSING_BIN};
use crate::error::{Error, Result};
use crate::rng::{Key, below};
use crate::trees::cart::exact_small_node::ExactSearch;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::SplitCandidate;
use crate::trees::histogram::grower::{
    FreeTree, GrowTask, Grower, HistogramTree, Node, SplitChildren,
};
use crate::trees::histogram::histogram_builder::HistogramBuilder;
use crate::trees::histogram::partition::Partition;
use crate::trees::histogram::splitter::GainSpec;

/// Most rows of a node that is searched row by row.
const FEW: usize = 64;
/// Rows from which on a node is shared out among threads.
const MANY: usize = 10_000;
/// The observer hears of nodes above this depth.
const WATCHED_DEPTH: usize = 6;

/// What a options tree needs besides its task.
pub(crate) struct DepthFirstOptions<'a> {
    /// The gain_spec that the task has in narrow units.
    pub(crate) gain_spec: &'a GainSpec,
    /// Equal targets need no split.
    pub(crate) target: &'a [f32],
    /// Columns that a node chooses from, among those that offer it a split; all where `None`.
    pub(crate) n_tried: Option<usize>,
    pub(crate) key: Key,
    /// Hears of the first levels.
    pub(crate) observer: &'a (dyn Fn() -> ControlFlow<()> + Sync),
}

impl<const L: usize> Grower<L> {
    /// Grows a tree on some rows (ascending); of the task's limits only the depth counts.
    ///
    /// # Errors
    /// When the observer asks to stop.
    pub(crate) fn grow_depth_first(
        &mut self,
        task: &GrowTask<'_, L>,
        options: &DepthFirstOptions<'_>,
        rows: Vec<u32>,
    ) -> Result<HistogramTree> {
        self.nodes = vec![Node {
            rows: 0..rows.len(),
            depth: 0,
        }];
        self.partition = Partition::of(rows);
        for builder in &mut self.builders {
            builder.clear();
        }
        let mut small = ExactSearch::new();
        let mut free = FreeTree::default();
        if self.partition.n_rows() > FEW {
            self.count(task, &[], 0);
        }
        let mut waiting = vec![(0, options.key)];
        while let Some((node, key)) = waiting.pop() {
            if self.nodes[node].depth < WATCHED_DEPTH && (options.observer)().is_break() {
                return Err(Error::Cancelled);
            }
            let Some(best) = self.find(task, options, &mut small, (node, key)) else {
                self.forget(node);
                continue;
            };
            let condition = settled(
                best.condition(),
                self.partition.rows(&self.nodes[node].rows),
                task.binned,
            );
            let split = self.split(node, &condition, task.binned);
            let (left, right) = (self.nodes.len() - 2, self.nodes.len() - 1);
            free.push(node, condition, best.gain, [left, right]);
            if self.nodes[split.larger].rows.len() > FEW {
                self.count(task, &[split], node);
                if self.nodes[split.smaller].rows.len() <= FEW {
                    self.forget(split.smaller);
                }
            } else {
                self.forget(node);
            }
            let key_of = |child: usize| key.child((child == right).into());
            waiting.push((split.larger, key_of(split.larger)));
            waiting.push((split.smaller, key_of(split.smaller)));
        }
        Ok(free.finish(&self.nodes))
    }

    /// Histograms of the root or of two children; `of` is the root or their parent.
    fn count(&mut self, task: &GrowTask<'_, L>, new_children: &[SplitChildren], of: usize) {
        self.line_up(task.quantized, new_children);
        if new_children.is_empty() {
            let rows = self.partition.rows(&self.nodes[of].rows);
            let grad_hess = rows.iter().map(|&row| task.quantized.narrow[row as usize]);
            self.grad_hess.extend(grad_hess);
        }
        let (counted, nodes) = ((&self.partition, &*self.grad_hess), &self.nodes);
        let work = |group: usize, builder: &mut HistogramBuilder<L>| {
            builder.count(task, group, counted, nodes, new_children);
        };
        if nodes[of].rows.len() >= MANY {
            task.pool.each(&mut self.builders, work);
        } else {
            for (group, builder) in self.builders.iter_mut().enumerate() {
                work(group, builder);
            }
        }
    }

    fn find(
        &mut self,
        task: &GrowTask<'_, L>,
        options: &DepthFirstOptions<'_>,
        small: &mut ExactSearch<L>,
        (node, key): (usize, Key),
    ) -> Option<SplitCandidate> {
        let Node { rows, depth } = self.nodes[node].clone();
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
            return self.find_among_all(task, options, small, node);
        };
        let mut order: Vec<usize> = (0..n_columns).collect();
        let mut rng = key.rng();
        let (mut best, mut n_found): (Option<SplitCandidate>, usize) = (None, 0);
        let width = self.builders[0].columns.len();
        for at in 0..n_columns {
            order.swap(at, at + below(&mut rng, n_columns - at));
            let column = order[at];
            let found = if rows.len() <= FEW {
                small.search(task, options.gain_spec, rows, column)
            } else {
                self.builders[column / width].search_one(task, node, column)
            };
            if let Some(found) = found {
                best = Some(best.map_or(found, |best| best.better(found)));
                n_found += 1;
                if n_found == n_tried {
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
        small: &mut ExactSearch<L>,
        node: usize,
    ) -> Option<SplitCandidate> {
        let rows = self.partition.rows(&self.nodes[node].rows);
        if rows.len() <= FEW {
            return (0..task.binned.n_columns())
                .filter_map(|column| small.search(task, options.gain_spec, rows, column))
                .reduce(SplitCandidate::better);
        }
        let is_large = rows.len() >= MANY;
        let (nodes, which) = (&self.nodes, [node]);
        if is_large {
            task.pool.each(&mut self.builders, |_, builder| {
                builder.search_nodes(task, nodes, &which);
            });
        } else {
            for builder in &mut self.builders {
                builder.search_nodes(task, nodes, &which);
            }
        }
        let found = self
            .builders
            .iter()
            .filter_map(|builder| builder.best_of_nodes[0]);
        found.reduce(SplitCandidate::better)
    }
}

/// The condition with its threshold in the middle between the rows on both sides; missing cells follow the larger side where the node
/// has none.
fn settled(mut condition: BinCondition, rows: &[u32], binned: &Binned) -> BinCondition {
    let (bins, at) = binned.place(condition.column);
    if let RightBins::Above { bin, missing_right } = &mut condition.right_bins {
        let (mut below, mut above) = (0, u8::MAX);
        let (mut n_missing, mut n_right) = (0, 0);
        for &row in rows {
            let found = bins[row as usize][at];
            if found == MISSING_BIN {
                n_missing += 1;
            } else if found <= *bin {
                below = below.max(found);
            } else {
                above = above.min(found);
                n_right += 1;
            }
        }
        if n_right > 0 && below > 0 {
            // the edge above bin `b` parts `b` from `b + 1`
            *bin = below + (above - below - 1) / 2;
        }
        if n_missing == 0 {
            *missing_right = 2 * n_right > rows.len();
        }
    }
    condition
}
