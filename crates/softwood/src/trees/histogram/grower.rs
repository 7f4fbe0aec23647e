//! Growing a tree on bins: symmetric, level by level, or leaf by leaf, with one histogram, one search and one router.
//!
//! Of the two children of a node the smaller one's histogram is counted and the other's is the difference. Work is shared
//! out by groups of columns: each group counts and searches its own columns, and the best of their answers, taken in the
//! order of columns, is the split. All sums are whole numbers, so nothing depends on how it was shared out.

use std::ops::Range;

use crate::data::binning::binned::Binned;
use crate::numerics::prefetch::visit;
use crate::par::Pool;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::histogram::candidate::{ColumnInfo, SplitCandidate, SplitNoise};
use crate::trees::histogram::histogram_builder::HistogramBuilder;
use crate::trees::histogram::partition::Partition;
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::splitter::ScaledGain;
use crate::trees::structure::TreeStructure;

/// How a tree grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// One condition for all nodes of a level.
    Symmetric,
    /// Every node of a level by its own condition.
    Depthwise,
    /// The node that gains most, until there are enough leaves.
    Leafwise,
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) growth: Growth,
    pub(crate) max_depth: usize,
    pub(crate) max_leaves: usize,
}

/// One tree's task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrowTask<'a, const L: usize> {
    pub(crate) binned: &'a Binned,
    pub(crate) columns: &'a ColumnInfo,
    pub(crate) quantized: &'a QuantizedGradients<L>,
    pub(crate) scaled_gain: &'a ScaledGain,
    pub(crate) limits: Limits,
    /// Columns that may be split on.
    pub(crate) open: &'a [bool],
    pub(crate) noise: Option<SplitNoise>,
    pub(crate) pool: &'a Pool,
}

/// A grown tree: its conditions, the rows of its leaves (as runs of the partition), and what each condition gained.
#[derive(Debug, Clone)]
pub(crate) struct HistogramTree {
    pub(crate) structure: TreeStructure,
    pub(crate) leaves: Vec<Range<usize>>,
    pub(crate) gains: Vec<f32>,
}

/// A node while the tree grows.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) rows: Range<usize>,
    pub(crate) depth: usize,
}

/// Two children and where their parent's histogram stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitChildren {
    pub(crate) parent: usize,
    pub(crate) smaller: usize,
    pub(crate) larger: usize,
}

/// Memory that is used for tree after tree.
#[derive(Debug)]
pub(crate) struct Grower<const L: usize> {
    pub(crate) partition: Partition,
    pub(crate) builders: Vec<HistogramBuilder<L>>,
    pub(crate) nodes: Vec<Node>,
    /// Narrow numbers of the rows that are being counted, node after node.
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
            // of two children the smaller is counted
            grad_hess: Vec::with_capacity(binned.n_rows() / 2),
        }
    }

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
        match task.limits.growth {
            Growth::Symmetric => self.grow_symmetric(task),
            Growth::Depthwise | Growth::Leafwise => self.grow_freely(task),
        }
    }

    fn grow_symmetric(&mut self, task: &GrowTask<'_, L>) -> HistogramTree {
        let (mut conditions, mut gains) = (Vec::new(), Vec::new());
        // nodes with rows, and the leaf that each would be: of a deep tree on few rows most leaves are empty
        let (mut level, mut places): (Vec<usize>, Vec<usize>) = (vec![0], vec![0]);
        let mut new_children = Vec::new();
        for depth in 0..task.limits.max_depth {
            self.line_up(task.quantized, &new_children);
            // all rows are in the order of the table
            let grad_hess = if new_children.is_empty() {
                &task.quantized.narrow
            } else {
                &self.grad_hess
            };
            let (counted, nodes) = ((&self.partition, &**grad_hess), &self.nodes);
            task.pool.each(&mut self.builders, |group, builder| {
                builder.count(task, group, counted, nodes, &new_children);
                builder.search_level(task, depth, nodes, &level);
            });
            let best = self
                .builders
                .iter()
                .filter_map(|builder| builder.best_of_level)
                .reduce(SplitCandidate::better);
            let Some(best) = best else { break };
            let condition = best.condition();
            new_children.clear();
            let mut next = Vec::with_capacity(2 * level.len());
            for &node in &level {
                new_children.push(self.split(node, &condition, task.binned));
                next.extend([self.nodes.len() - 2, self.nodes.len() - 1]);
            }
            conditions.push(self.settled(condition, task.columns, &next));
            gains.push(best.gain);
            let halves = places.iter().flat_map(|&place| [2 * place, 2 * place + 1]);
            let children = next.into_iter().zip(halves);
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

    /// Lines up the numbers of the rows that will be counted: once, before every group of columns reads them.
    pub(crate) fn line_up(
        &mut self,
        quantized: &QuantizedGradients<L>,
        new_children: &[SplitChildren],
    ) {
        self.grad_hess.clear();
        for split in new_children {
            let rows = self.partition.rows(&self.nodes[split.smaller].rows);
            visit(&quantized.narrow, rows, |&grad_hess| {
                self.grad_hess.push(grad_hess)
            });
        }
    }

    /// Children of a node, appended to the list: left, then right.
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

    /// The condition with its answer for missing cells: where training had none, they follow the larger side. `children` are
    /// left and right in turn.
    fn settled(
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

    fn grow_freely(&mut self, task: &GrowTask<'_, L>) -> HistogramTree {
        let limits = task.limits;
        let mut free = FreeTree::default();
        // candidates by node; leaf-wise growth takes the best of all, depth-wise growth the earliest
        let mut waiting: Vec<(usize, SplitCandidate)> = Vec::new();
        let mut fresh: Vec<usize> = if limits.max_depth > 0 {
            vec![0]
        } else {
            Vec::new()
        };
        let mut new_children: Vec<SplitChildren> = Vec::new();
        let mut n_leaves = 1;
        loop {
            if !fresh.is_empty() {
                self.line_up(task.quantized, &new_children);
                // all rows are in the order of the table
                let grad_hess = if new_children.is_empty() {
                    &task.quantized.narrow
                } else {
                    &self.grad_hess
                };
                let (counted, nodes) = ((&self.partition, &**grad_hess), &self.nodes);
                task.pool.each(&mut self.builders, |group, builder| {
                    builder.count(task, group, counted, nodes, &new_children);
                    builder.search_nodes(task, nodes, &fresh);
                });
                for (at, &node) in fresh.iter().enumerate() {
                    let found = self
                        .builders
                        .iter()
                        .filter_map(|builder| builder.best_of_nodes[at]);
                    match found.reduce(SplitCandidate::better) {
                        Some(best) => waiting.push((node, best)),
                        None => self.forget(node),
                    }
                }
            }
            new_children.clear();
            fresh.clear();
            let together = match limits.growth {
                Growth::Leafwise => 1,
                _ => waiting.len(),
            };
            for _ in 0..together {
                if n_leaves >= limits.max_leaves || waiting.is_empty() {
                    break;
                }
                let (node, best) = waiting.remove(next(&waiting, limits.growth));
                let condition = best.condition();
                let split = self.split(node, &condition, task.binned);
                let (left, right) = (self.nodes.len() - 2, self.nodes.len() - 1);
                let condition = self.settled(condition, task.columns, &[left, right]);
                free.push(node, condition, best.gain, [left, right]);
                n_leaves += 1;
                if self.nodes[left].depth < limits.max_depth {
                    new_children.push(split);
                    fresh.extend([left, right]);
                } else {
                    self.forget(node);
                }
            }
            if fresh.is_empty() && (waiting.is_empty() || n_leaves >= limits.max_leaves) {
                break;
            }
        }
        free.finish(&self.nodes)
    }

    pub(crate) fn forget(&mut self, node: usize) {
        for builder in &mut self.builders {
            builder.forget(node);
        }
    }
}

/// ScanOrder of the waiting nodes is split next.
fn next(waiting: &[(usize, SplitCandidate)], growth: Growth) -> usize {
    if growth == Growth::Depthwise {
        return 0;
    }
    (1..waiting.len()).fold(0, |best, at| {
        if waiting[at].1.gain > waiting[best].1.gain {
            at
        } else {
            best
        }
    })
}

/// Tests in the order of splitting, so that children stand after their parents.
#[derive(Debug, Default)]
pub(crate) struct FreeTree {
    conditions: Vec<BinCondition>,
    gains: Vec<f32>,
    /// Node that each condition stands in, and its children.
    places: Vec<(usize, [usize; 2])>,
}

impl FreeTree {
    pub(crate) fn push(
        &mut self,
        node: usize,
        condition: BinCondition,
        gain: f32,
        children: [usize; 2],
    ) {
        self.conditions.push(condition);
        self.gains.push(gain);
        self.places.push((node, children));
    }

    pub(crate) fn finish(self, nodes: &[Node]) -> HistogramTree {
        let mut place_of = vec![None; nodes.len()];
        for (at, &(node, _)) in self.places.iter().enumerate() {
            place_of[node] = Some(at as i32);
        }
        let mut leaves = Vec::new();
        let mut child = |node: usize| {
            place_of[node].unwrap_or_else(|| {
                leaves.push(nodes[node].rows.clone());
                !(leaves.len() as i32 - 1)
            })
        };
        let children: Vec<[i32; 2]> = self
            .places
            .iter()
            .map(|&(_, [left, right])| [child(left), child(right)])
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
