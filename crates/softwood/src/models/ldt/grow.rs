//! Growth of the full tree, level by level: the groups of a node, their discriminant and its
//! threshold.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::models::ldt::class_groups::{exchange, farthest_classes};
use crate::models::ldt::node_scatter::NodeScatter;
use crate::models::ldt::oblique_tree::{ObliqueTree, project};
use crate::models::ldt::rows::InputRows;
use crate::models::ldt::threshold::best_threshold;
use crate::par::Pool;
use crate::stop::{self, Stop, is_cancelled};
use crate::trees::cart::CartTarget;

/// A node whose loss is below this fraction of its weight is pure: the rest is rounding.
const PURE_LOSS: f64 = 1e-10;

/// Limits of the growth.
#[derive(Debug, Clone, Copy)]
pub(super) struct LdtLimits {
    pub(super) max_depth: usize,
    /// Smallest weight of a leaf.
    pub(super) min_weight: f64,
    pub(super) shrinkage: f64,
}

/// The full tree.
#[derive(Debug)]
pub(super) struct GrownLdt {
    pub(super) tree: ObliqueTree,
    /// Statistics of the leaves, leaves x statistics.
    pub(super) leaves: Vec<f64>,
    /// Whether the observer stopped growth before its end.
    pub(super) is_stopped: bool,
}

/// A split of a node.
#[derive(Debug)]
struct ObliqueSplit {
    weights: Vec<f32>,
    threshold: f64,
}

/// A node that is not split yet.
#[derive(Debug)]
struct OpenNode {
    rows: Vec<u32>,
    /// Node and side that the node is the child of; `None` for the root.
    parent: Option<(usize, usize)>,
}

/// Grows a tree on all rows. `observer` hears of every node with the number of rows in leaves so
/// far.
///
/// # Errors
/// When the observer discards the tree, or the fit is cancelled.
pub(super) fn grow(
    data: &InputRows,
    limits: &LdtLimits,
    pool: &Pool,
    observer: &dyn Fn(usize) -> ControlFlow<Stop>,
) -> Result<GrownLdt> {
    let mut grown = GrownLdt {
        tree: ObliqueTree::new(data.n_inputs),
        leaves: Vec::new(),
        is_stopped: false,
    };
    let mut n_settled = 0;
    let mut level = vec![OpenNode {
        rows: (0..data.n_rows() as u32).collect(),
        parent: None,
    }];
    let mut depth = 0;
    while !level.is_empty() {
        stop::check()?;
        let n_open = n_open(level.len(), || observer(n_settled))?;
        grown.is_stopped |= n_open < level.len();
        let splits = pool.map(level.len(), |at| {
            let is_open = at < n_open && depth < limits.max_depth;
            is_open
                .then(|| find_split(data, &level[at].rows, limits))
                .flatten()
        });
        stop::check()?;
        let mut next = Vec::new();
        for (node, split) in level.into_iter().zip(splits) {
            if let Some(split) = split {
                next.extend(grown.split(data, node, split));
            } else {
                n_settled += node.rows.len();
                grown.close(data, &node);
            }
        }
        level = next;
        depth += 1;
    }
    Ok(grown)
}

/// Number of nodes of a level that the observer lets grow.
fn n_open(n_nodes: usize, observer: impl Fn() -> ControlFlow<Stop>) -> Result<usize> {
    for node in 0..n_nodes {
        match observer() {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(Stop::Keep) => return Ok(node),
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
        }
    }
    Ok(n_nodes)
}

impl GrownLdt {
    /// Splits a node and returns its children.
    fn split(&mut self, data: &InputRows, node: OpenNode, split: ObliqueSplit) -> [OpenNode; 2] {
        let tree = &mut self.tree;
        let at = tree.children.len();
        tree.children.push([0; 2]);
        tree.weights.extend(split.weights);
        tree.thresholds.push(split.threshold);
        self.connect(node.parent, at as i32);
        let goes_left = |&row: &u32| !self.tree.goes_right(at, data.row(row as usize));
        let (left, right): (Vec<u32>, Vec<u32>) = node.rows.into_iter().partition(goes_left);
        let child = |(side, rows): (usize, Vec<u32>)| OpenNode {
            rows,
            parent: Some((at, side)),
        };
        [(0, left), (1, right)].map(child)
    }

    /// Makes a node a leaf.
    fn close(&mut self, data: &InputRows, node: &OpenNode) {
        let leaf = self.leaves.len() / data.kind.n_stats();
        self.leaves.extend(data.stats(&node.rows));
        self.connect(node.parent, !(leaf as i32));
    }

    fn connect(&mut self, parent: Option<(usize, usize)>, child: i32) {
        if let Some((parent, side)) = parent {
            self.tree.children[parent][side] = child;
        }
    }
}

/// The split of a node; `None` for a leaf.
fn find_split(data: &InputRows, rows: &[u32], limits: &LdtLimits) -> Option<ObliqueSplit> {
    let stats = data.stats(rows);
    let weight = data.kind.weight(&stats);
    let is_small = rows.len() < 2 || weight < 2.0 * limits.min_weight;
    if is_small || data.kind.loss(&stats) <= PURE_LOSS * weight || is_cancelled() {
        return None;
    }
    let evaluate = |scatter: &NodeScatter, response: &[f64]| {
        let weights = scatter.direction(response)?;
        let projections: Vec<f64> = (rows.iter())
            .map(|&row| project(&weights, data.row(row as usize)))
            .collect();
        let choice = best_threshold(data, rows, &projections, limits.min_weight)?;
        let split = ObliqueSplit {
            weights,
            threshold: choice.threshold,
        };
        Some((choice.gain, split))
    };
    let target = rows.iter().map(|&row| data.target[row as usize]);
    match data.kind {
        CartTarget::Number => {
            let response: Vec<f64> = target.map(f64::from).collect();
            let is_above = |&y: &f64| u32::from(y > stats[1]);
            let labels: Vec<u32> = response.iter().map(is_above).collect();
            let scatter = NodeScatter::new(data, rows, &labels, limits.shrinkage);
            evaluate(&scatter, &response).map(|(_, split)| split)
        }
        CartTarget::Classes(n) => {
            let labels: Vec<u32> = target.map(|class| class as u32).collect();
            let present: Vec<usize> = (0..n).filter(|&class| stats[class] > 0.0).collect();
            let scatter = NodeScatter::new(data, rows, &labels, limits.shrinkage);
            let start = farthest_classes(data, rows, n, &present);
            exchange(start, &present, |groups| {
                let is_right = |&label: &u32| f64::from(u8::from(groups[label as usize]));
                let response: Vec<f64> = labels.iter().map(is_right).collect();
                evaluate(&scatter, &response)
            })
        }
    }
}
