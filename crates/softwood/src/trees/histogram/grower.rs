//! Growing a histogram tree: symmetric, depth-wise or leaf-wise.
//!
//! Of two children, the histogram of the smaller one is computed and that of the larger one is the
//! difference to the parent's. Groups of columns are distributed over threads: each group computes
//! and searches the histograms of its own columns, and the best candidate, in the order of columns,
//! is the split. All sums are integers, so that the tree does not depend on the distribution of
//! work.

use std::ops::Range;

use crate::data::binning::binned::Binned;
use crate::numerics::prefetch::visit;
use crate::par::Pool;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::{ColumnInfo, SplitCandidate};
use crate::trees::histogram::chooser::SplitChooser;
use crate::trees::histogram::histogram_builder::{HistogramBuilder, HistogramTask};
use crate::trees::histogram::partition::Partition;
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::splitter::ScaledGain;
use crate::trees::structure::TreeStructure;

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
    /// Its rows, as a range of the partition.
    pub(crate) rows: Range<usize>,
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

/// Workspace that is reused from tree to tree.
#[derive(Debug)]
pub(crate) struct Grower<const L: usize> {
    pub(crate) partition: Partition,
    /// One builder per group of columns.
    pub(crate) builders: Vec<HistogramBuilder<L>>,
    pub(crate) nodes: Vec<Node>,
    /// Narrow quantized gradients of the rows of new nodes, node after node.
    pub(crate) grad_hess: Vec<[i16; L]>,
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
            grad_hess: Vec::with_capacity(binned.n_rows() / 2),
        }
    }

    /// Grows a tree on all rows.
    pub(crate) fn grow(&mut self, task: &GrowTask<'_, L>) -> HistogramTree {
        self.partition.reset();
        self.nodes.clear();
        self.nodes.push(Node {
            rows: 0..self.partition.n_rows(),
            depth: 0,
        });
        for builder in &mut self.builders {
            builder.clear();
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

    fn grow_symmetric(&mut self, task: &GrowTask<'_, L>) -> HistogramTree {
        let (mut conditions, mut gains) = (Vec::new(), Vec::new());
        // nodes with rows and their indices in the level: in a deep tree on few rows, most nodes
        // have no rows
        let (mut level, mut places): (Vec<usize>, Vec<usize>) = (vec![0], vec![0]);
        let mut splits = Vec::new();
        for depth in 0..task.limits.max_depth {
            self.count_and_search(task, &splits, |builder, nodes| {
                builder.search_level(task, depth, nodes, &level);
            });
            let candidates = self
                .builders
                .iter()
                .filter_map(|builder| builder.best_of_level);
            let Some(best) = task.chooser.choose(candidates, depth, depth) else {
                break;
            };
            let condition = best.condition();
            splits.clear();
            let mut next = Vec::with_capacity(2 * level.len());
            for &node in &level {
                splits.push(self.split(node, &condition, task.binned));
                next.extend([self.nodes.len() - 2, self.nodes.len() - 1]);
            }
            conditions.push(self.with_missing_side(condition, task.columns, &next));
            gains.push(best.gain);
            let child_places = places.iter().flat_map(|&place| [2 * place, 2 * place + 1]);
            let children = next.into_iter().zip(child_places);
            (level, places) = children
                .filter(|&(node, _)| !self.nodes[node].rows.is_empty())
                .unzip();
        }
        let mut leaves = vec![0..0; 1 << conditions.len()];
        for (node, place) in level.into_iter().zip(places) {
            leaves[place] = self.nodes[node].rows.clone();
        }
        HistogramTree {
            structure: TreeStructure::Symmetric(conditions),
            leaves,
            gains,
        }
    }

    /// Computes the histograms of the root or of the children of new splits, then searches them.
    fn count_and_search(
        &mut self,
        task: &GrowTask<'_, L>,
        splits: &[SplitChildren],
        search: impl Fn(&mut HistogramBuilder<L>, &[Node]) + Sync,
    ) {
        self.gather_gradients(task.quantized, splits);
        let new = HistogramTask {
            partition: &self.partition,
            nodes: &self.nodes,
            splits,
            // the root has all rows in table order
            grad_hess: if splits.is_empty() {
                &task.quantized.narrow
            } else {
                &self.grad_hess
            },
        };
        task.pool.each(&mut self.builders, |group, builder| {
            builder.count(task, group, &new);
            search(builder, new.nodes);
        });
    }

    /// Copies the gradients of the rows of smaller children into contiguous memory, once for all
    /// groups of columns.
    pub(crate) fn gather_gradients(
        &mut self,
        quantized: &QuantizedGradients<L>,
        splits: &[SplitChildren],
    ) {
        self.grad_hess.clear();
        for split in splits {
            let rows = self.partition.rows(&self.nodes[split.smaller].rows);
            visit(&quantized.narrow, rows, |&grad_hess| {
                self.grad_hess.push(grad_hess);
            });
        }
    }

    /// Splits a node and appends its children to the nodes, the left one first.
    pub(crate) fn split(
        &mut self,
        node: usize,
        condition: &BinCondition,
        binned: &Binned,
    ) -> SplitChildren {
        let Node { rows, depth } = self.nodes[node].clone();
        let middle = self.partition.split(&rows, condition, binned);
        let (left, right) = (self.nodes.len(), self.nodes.len() + 1);
        let is_left_smaller = 2 * (middle - rows.start) <= rows.len();
        self.nodes.push(Node {
            rows: rows.start..middle,
            depth: depth + 1,
        });
        self.nodes.push(Node {
            rows: middle..rows.end,
            depth: depth + 1,
        });
        let (smaller, larger) = if is_left_smaller {
            (left, right)
        } else {
            (right, left)
        };
        SplitChildren {
            parent: node,
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
                side.map(|&node| self.nodes[node].rows.len()).sum()
            };
            *missing_right = n_rows(1) > n_rows(0);
        }
        condition
    }

    fn grow_general(&mut self, task: &GrowTask<'_, L>) -> HistogramTree {
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
                self.queue_new_nodes(task, &new_nodes, &splits, &mut queue);
            }
            splits.clear();
            new_nodes.clear();
            let n_splits = match limits.growth {
                Growth::Leafwise => queue.len().min(1),
                _ => queue.len(),
            };
            for _ in 0..n_splits.min(limits.max_leaves.saturating_sub(n_leaves)) {
                let QueuedNode { node, best } = queue.remove(next(&queue, limits.growth));
                let condition = best.condition();
                let split = self.split(node, &condition, task.binned);
                let children = [self.nodes.len() - 2, self.nodes.len() - 1];
                let condition = self.with_missing_side(condition, task.columns, &children);
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
        tree.finish(&self.nodes)
    }

    /// Appends the new nodes that have a candidate to the queue.
    fn queue_new_nodes(
        &mut self,
        task: &GrowTask<'_, L>,
        new_nodes: &[usize],
        splits: &[SplitChildren],
        queue: &mut Vec<QueuedNode>,
    ) {
        self.count_and_search(task, splits, |builder, nodes| {
            builder.search_nodes(task, nodes, new_nodes);
        });
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
