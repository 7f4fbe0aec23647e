//! Growing a histogram tree: symmetric, depth-wise or leaf-wise.
//!
//! Of two children, the histogram of the smaller one is computed and that of the larger one is the
//! difference to the parent's. Groups of columns are distributed over threads: each group computes
//! and searches the histograms of its own columns, and the best candidate, in the order of columns,
//! is the split. Between counting and searching, histograms may be summed over processes that have
//! different rows. All sums are integers, so that the tree does not depend on the distribution of
//! work.

use std::ops::Range;

use crate::data::binning::binned::Binned;
use crate::error::Result;
use crate::numerics::prefetch::visit;
use crate::par::Pool;
use crate::stop;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::{ColumnInfo, SplitCandidate};
use crate::trees::histogram::chooser::SplitChooser;
use crate::trees::histogram::histogram::Histogram;
use crate::trees::histogram::histogram_builder::{GatheredRows, HistogramBuilder, HistogramTask};
use crate::trees::histogram::partition::Partition;
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::reduce::Reduce;
use crate::trees::histogram::splitter::ScaledGain;
use crate::trees::structure::TreeStructure;

/// Number of groups of columns after which the search for splits asks whether the work is cancelled.
const GROUPS_PER_CHECK: usize = 256;

/// The order in which nodes are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Level by level, with one condition for all nodes of a level.
    Symmetric,
    /// Level by level, with one condition per node.
    Depthwise,
    /// The node with the largest gain first, up to `max_leaves` leaves.
    Leafwise,
}

/// The shape and size of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) growth: Growth,
    pub(crate) max_depth: usize,
    pub(crate) max_leaves: usize,
}

/// The rows, gradients and limits of one tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrowTask<'a, const L: usize> {
    pub(crate) binned: &'a Binned,
    pub(crate) columns: &'a ColumnInfo,
    pub(crate) quantized: &'a QuantizedGradients<L>,
    pub(crate) scaled_gain: &'a ScaledGain,
    pub(crate) limits: Limits,
    /// Whether each column may be split on.
    pub(crate) allowed: &'a [bool],
    /// How one of the candidate splits is chosen. Sampled splits need [`Growth::Depthwise`] or
    /// [`Growth::Leafwise`].
    pub(crate) chooser: SplitChooser,
    pub(crate) pool: &'a Pool,
    /// Sums over the processes of the fit.
    pub(crate) reduce: &'a dyn Reduce,
}

/// A grown tree.
#[derive(Debug, Clone)]
pub(crate) struct HistogramTree {
    pub(crate) structure: TreeStructure,
    /// Rows of each leaf, as ranges of the partition.
    pub(crate) leaves: Vec<Range<usize>>,
    /// Gain of each condition.
    pub(crate) gains: Vec<f32>,
}

/// A node of a growing tree.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Its rows in this process, as a range of the partition.
    pub(crate) rows: Range<usize>,
    /// Number of its rows in all processes.
    pub(crate) n_rows: usize,
    pub(crate) depth: usize,
}

/// The nodes of a split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitChildren {
    pub(crate) parent: usize,
    /// The child with fewer rows.
    pub(crate) smaller: usize,
    pub(crate) larger: usize,
}

impl SplitChildren {
    /// The left child is appended to the nodes before the right one.
    fn left_and_right(self) -> [usize; 2] {
        [self.smaller.min(self.larger), self.smaller.max(self.larger)]
    }
}

/// Workspace that is reused from tree to tree.
#[derive(Debug)]
pub(crate) struct Grower<const L: usize> {
    pub(crate) partition: Partition,
    /// One builder per group of columns.
    pub(crate) builders: Vec<HistogramBuilder<L>>,
    pub(crate) nodes: Vec<Node>,
    /// Rows of new nodes.
    pub(crate) gathered: Gathered<L>,
}

/// Rows of new nodes with their gradients, in contiguous memory for all groups of columns.
#[derive(Debug)]
pub(crate) struct Gathered<const L: usize> {
    indices: Vec<u32>,
    grad_hess: Vec<[i16; L]>,
    /// Number of rows of each node.
    n_rows: Vec<usize>,
}

impl<const L: usize> Gathered<L> {
    pub(crate) fn clear(&mut self) {
        self.indices.clear();
        self.grad_hess.clear();
        self.n_rows.clear();
    }

    /// Appends the rows of a node that histograms count.
    pub(crate) fn push_node(&mut self, quantized: &QuantizedGradients<L>, rows: &[u32]) {
        let n_before = self.indices.len();
        let Self {
            indices, grad_hess, ..
        } = self;
        let mut at = 0;
        visit(&quantized.narrow, rows, |narrow| {
            if !(quantized.is_sampled && *narrow == [0; L]) {
                indices.push(rows[at]);
                grad_hess.push(*narrow);
            }
            at += 1;
        });
        self.n_rows.push(self.indices.len() - n_before);
    }

    pub(crate) fn rows(&self) -> GatheredRows<'_, L> {
        GatheredRows {
            indices: &self.indices,
            grad_hess: &self.grad_hess,
            n_rows: &self.n_rows,
        }
    }
}

impl<const L: usize> Grower<L> {
    pub(crate) fn new(binned: &Binned) -> Self {
        let builders =
            (0..binned.n_groups()).map(|group| HistogramBuilder::new(binned.columns(group)));
        Self {
            partition: Partition::new(binned.n_rows()),
            builders: builders.collect(),
            nodes: Vec::new(),
            // the smaller children of a level have at most half of the rows
            gathered: Gathered {
                indices: Vec::with_capacity(binned.n_rows() / 2),
                grad_hess: Vec::with_capacity(binned.n_rows() / 2),
                n_rows: Vec::new(),
            },
        }
    }

    /// Grows a tree on all rows.
    ///
    /// # Errors
    /// When the sums over processes fail.
    pub(crate) fn grow(&mut self, task: &GrowTask<'_, L>) -> Result<HistogramTree> {
        self.partition.reset();
        self.nodes.clear();
        let mut n_rows = [self.partition.n_rows()];
        task.reduce.sum_counts(&mut n_rows)?;
        self.nodes.push(Node {
            rows: 0..self.partition.n_rows(),
            n_rows: n_rows[0],
            depth: 0,
        });
        for builder in &mut self.builders {
            builder.start(task);
        }
        let is_sampled = matches!(task.chooser, SplitChooser::Sampled(_));
        assert!(
            !is_sampled || task.limits.growth != Growth::Symmetric,
            "sampled splits are those of single nodes"
        );
        match task.limits.growth {
            Growth::Symmetric => self.grow_symmetric(task),
            Growth::Depthwise | Growth::Leafwise => self.grow_general(task),
        }
    }

    fn grow_symmetric(&mut self, task: &GrowTask<'_, L>) -> Result<HistogramTree> {
        let (mut conditions, mut gains) = (Vec::new(), Vec::new());
        // nodes with rows and their indices in the level: in a deep tree on few rows, most nodes
        // have no rows
        let (mut level, mut places): (Vec<usize>, Vec<usize>) = (vec![0], vec![0]);
        let mut splits = Vec::new();
        for depth in 0..task.limits.max_depth {
            self.count_and_search(task, &splits, |builder, nodes| {
                builder.search_level(task, depth, nodes, &level);
            })?;
            let candidates = self
                .builders
                .iter()
                .filter_map(|builder| builder.best_of_level);
            let Some(best) = task.chooser.choose(candidates, depth, depth) else {
                break;
            };
            let condition = best.condition();
            splits = self.split_all(task, level.iter().map(|&node| (node, condition)))?;
            let children = splits.iter().flat_map(|split| split.left_and_right());
            let next: Vec<usize> = children.collect();
            conditions.push(self.with_missing_side(condition, task.columns, &next));
            gains.push(best.gain);
            let child_places = places.iter().flat_map(|&place| [2 * place, 2 * place + 1]);
            let children = next.into_iter().zip(child_places);
            (level, places) = children
                .filter(|&(node, _)| self.nodes[node].n_rows > 0)
                .unzip();
        }
        let mut leaves = vec![0..0; 1 << conditions.len()];
        for (node, place) in level.into_iter().zip(places) {
            leaves[place] = self.nodes[node].rows.clone();
        }
        Ok(HistogramTree {
            structure: TreeStructure::Symmetric(conditions),
            leaves,
            gains,
        })
    }

    /// Computes the histograms of the root or of the children of new splits, sums them over
    /// processes, then searches them.
    fn count_and_search(
        &mut self,
        task: &GrowTask<'_, L>,
        splits: &[SplitChildren],
        search: impl Fn(&mut HistogramBuilder<L>, &[Node]) + Sync,
    ) -> Result<()> {
        self.gather_rows(task.quantized, splits);
        let new = HistogramTask {
            nodes: &self.nodes,
            splits,
            rows: if splits.is_empty() && !task.quantized.is_sampled {
                // the root has all rows in table order
                GatheredRows {
                    indices: self.partition.rows(&self.nodes[0].rows),
                    grad_hess: &task.quantized.narrow,
                    n_rows: &[],
                }
            } else {
                self.gathered.rows()
            },
        };
        if task.reduce.is_local() {
            for (at, builders) in self.builders.chunks_mut(GROUPS_PER_CHECK).enumerate() {
                stop::check()?;
                task.pool.each(builders, |group, builder| {
                    builder.count_and_subtract(task, at * GROUPS_PER_CHECK + group, &new);
                    search(builder, new.nodes);
                });
            }
            return Ok(());
        }
        task.pool.each(&mut self.builders, |group, builder| {
            builder.count(task, group, &new);
        });
        let counted = self.builders.iter_mut();
        let mut counted: Vec<&mut [i32]> = counted
            .flat_map(|builder| builder.counted(splits).map(Histogram::sums_mut))
            .collect();
        task.reduce.sum_histograms(&mut counted)?;
        task.pool.each(&mut self.builders, |_, builder| {
            builder.subtract(&new);
            search(builder, new.nodes);
        });
        Ok(())
    }

    /// Copies the gradients of the rows of smaller children into contiguous memory, once for all
    /// groups of columns; for the root, those of the sampled rows if rows are sampled.
    pub(crate) fn gather_rows(
        &mut self,
        quantized: &QuantizedGradients<L>,
        splits: &[SplitChildren],
    ) {
        self.gathered.clear();
        if splits.is_empty() && quantized.is_sampled {
            let rows = self.partition.rows(&self.nodes[0].rows);
            self.gathered.push_node(quantized, rows);
        }
        for split in splits {
            let rows = self.partition.rows(&self.nodes[split.smaller].rows);
            self.gathered.push_node(quantized, rows);
        }
    }

    /// Splits a node and appends its children to the nodes, the left one first.
    pub(crate) fn split(
        &mut self,
        node: usize,
        condition: &BinCondition,
        binned: &Binned,
    ) -> SplitChildren {
        let Node { rows, depth, .. } = self.nodes[node].clone();
        let middle = self.partition.split(&rows, condition, binned);
        for rows in [rows.start..middle, middle..rows.end] {
            self.nodes.push(Node {
                n_rows: rows.len(),
                rows,
                depth: depth + 1,
            });
        }
        self.children_of(node, self.nodes.len() - 2)
    }

    /// Splits nodes and appends their children to the nodes, with their numbers of rows in all
    /// processes.
    fn split_all(
        &mut self,
        task: &GrowTask<'_, L>,
        splits: impl Iterator<Item = (usize, BinCondition)>,
    ) -> Result<Vec<SplitChildren>> {
        let first_child = self.nodes.len();
        let mut children: Vec<SplitChildren> = splits
            .map(|(node, condition)| self.split(node, &condition, task.binned))
            .collect();
        if task.reduce.is_local() {
            return Ok(children);
        }
        let new = &mut self.nodes[first_child..];
        let mut counts: Vec<usize> = new.iter().map(|node| node.n_rows).collect();
        task.reduce.sum_counts(&mut counts)?;
        for (node, n_rows) in new.iter_mut().zip(counts) {
            node.n_rows = n_rows;
        }
        for split in &mut children {
            *split = self.children_of(split.parent, split.left_and_right()[0]);
        }
        Ok(children)
    }

    /// The children of a split, of which `left` is the left one and the right one follows.
    fn children_of(&self, parent: usize, left: usize) -> SplitChildren {
        let right = left + 1;
        let (smaller, larger) = if self.nodes[left].n_rows <= self.nodes[right].n_rows {
            (left, right)
        } else {
            (right, left)
        };
        SplitChildren {
            parent,
            smaller,
            larger,
        }
    }

    /// Sets the side of missing cells to the larger side if the column has none in training.
    /// `children` are left and right in turn.
    fn with_missing_side(
        &self,
        mut condition: BinCondition,
        columns: &ColumnInfo,
        children: &[usize],
    ) -> BinCondition {
        if let RightBins::Above { missing_right, .. } = &mut condition.right_bins
            && !columns.has_missing[condition.column]
        {
            let n_rows = |first: usize| -> usize {
                let side = children.iter().skip(first).step_by(2);
                side.map(|&node| self.nodes[node].n_rows).sum()
            };
            *missing_right = n_rows(1) > n_rows(0);
        }
        condition
    }

    fn grow_general(&mut self, task: &GrowTask<'_, L>) -> Result<HistogramTree> {
        let limits = task.limits;
        let mut tree = GeneralTree::default();
        let mut queue: Vec<QueuedNode> = Vec::new();
        let mut new_nodes: Vec<usize> = Vec::new();
        if limits.max_depth > 0 {
            new_nodes.push(0);
        }
        let mut splits: Vec<SplitChildren> = Vec::new();
        let mut n_leaves = 1;
        loop {
            if !new_nodes.is_empty() {
                self.queue_new_nodes(task, &new_nodes, &splits, &mut queue)?;
            }
            splits.clear();
            new_nodes.clear();
            let n_splits = match limits.growth {
                Growth::Leafwise => queue.len().min(1),
                _ => queue.len(),
            };
            let n_splits = n_splits.min(limits.max_leaves.saturating_sub(n_leaves));
            let batch: Vec<QueuedNode> = (0..n_splits)
                .map(|_| queue.remove(next(&queue, limits.growth)))
                .collect();
            let conditions = batch.iter().map(|queued| queued.best.condition());
            let which = batch.iter().map(|queued| queued.node).zip(conditions);
            let new_splits = self.split_all(task, which)?;
            for (QueuedNode { node, best }, split) in batch.into_iter().zip(new_splits) {
                let children = split.left_and_right();
                let condition = self.with_missing_side(best.condition(), task.columns, &children);
                tree.push(node, condition, best.gain, children);
                n_leaves += 1;
                if self.nodes[children[0]].depth < limits.max_depth {
                    splits.push(split);
                    new_nodes.extend(children);
                } else {
                    self.release(node);
                }
            }
            if new_nodes.is_empty() && (queue.is_empty() || n_leaves >= limits.max_leaves) {
                break;
            }
        }
        Ok(tree.finish(&self.nodes))
    }

    /// Appends the new nodes that have a candidate to the queue.
    fn queue_new_nodes(
        &mut self,
        task: &GrowTask<'_, L>,
        new_nodes: &[usize],
        splits: &[SplitChildren],
        queue: &mut Vec<QueuedNode>,
    ) -> Result<()> {
        self.count_and_search(task, splits, |builder, nodes| {
            builder.search_nodes(task, nodes, new_nodes);
        })?;
        for (at, &node) in new_nodes.iter().enumerate() {
            let candidates = self
                .builders
                .iter()
                .filter_map(|builder| builder.best_of_nodes[at]);
            match task
                .chooser
                .choose(candidates, self.nodes[node].depth, node)
            {
                Some(best) => queue.push(QueuedNode { node, best }),
                None => self.release(node),
            }
        }
        Ok(())
    }

    /// Releases the histograms of a node that will not be split.
    pub(crate) fn release(&mut self, node: usize) {
        for builder in &mut self.builders {
            builder.release(node);
        }
    }
}

/// A node that waits to be split.
#[derive(Debug, Clone, Copy)]
struct QueuedNode {
    node: usize,
    best: SplitCandidate,
}

/// Place in the queue of the node to split next: the earliest, or leaf-wise the one with the
/// largest gain.
fn next(queue: &[QueuedNode], growth: Growth) -> usize {
    if growth == Growth::Depthwise {
        return 0;
    }
    (1..queue.len()).fold(0, |best, at| {
        if queue[at].best.gain > queue[best].best.gain {
            at
        } else {
            best
        }
    })
}

/// A general tree under construction, with conditions in the order of splitting: children stand
/// after their parents.
#[derive(Debug, Default)]
pub(crate) struct GeneralTree {
    conditions: Vec<BinCondition>,
    gains: Vec<f32>,
    /// Node of each condition.
    nodes: Vec<usize>,
    /// Child nodes of each condition, left and right.
    children: Vec<[usize; 2]>,
}

impl GeneralTree {
    /// Adds the condition of a node.
    pub(crate) fn push(
        &mut self,
        node: usize,
        condition: BinCondition,
        gain: f32,
        children: [usize; 2],
    ) {
        self.conditions.push(condition);
        self.gains.push(gain);
        self.nodes.push(node);
        self.children.push(children);
    }

    /// The finished tree; nodes without a condition become its leaves.
    pub(crate) fn finish(self, nodes: &[Node]) -> HistogramTree {
        let mut condition_of = vec![None; nodes.len()];
        for (at, &node) in self.nodes.iter().enumerate() {
            condition_of[node] = Some(at as i32);
        }
        let mut leaves = Vec::new();
        let mut child = |node: usize| {
            condition_of[node].unwrap_or_else(|| {
                leaves.push(nodes[node].rows.clone());
                !(leaves.len() as i32 - 1)
            })
        };
        let children: Vec<[i32; 2]> = self
            .children
            .iter()
            .map(|&[left, right]| [child(left), child(right)])
            .collect();
        if children.is_empty() {
            leaves.push(nodes[0].rows.clone());
        }
        HistogramTree {
            structure: TreeStructure::General {
                conditions: self.conditions,
                children,
            },
            leaves,
            gains: self.gains,
        }
    }
}
