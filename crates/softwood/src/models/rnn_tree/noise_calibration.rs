//! Calibration of the noise of a regression on the validation rows.
//!
//! The trees of a fold have not seen its validation rows; those of the other folds have. The mean of all
//! trees is moved to where its residual is that of the trees of the fold, made smaller as averaging over
//! all trees does ([`ensemble_residual_factor`]). Around it stand the distributions of all trees; scale and
//! tail of their noise suit the validation rows of all folds.

use crate::models::rnn_tree::fitted::{RnnTree, RnnTreeParts, RouteScratch};
use crate::models::rnn_tree::rows::{FitRow, RouteRows};
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{
    HeldOutBlock, NoiseCalibration, ensemble_residual_factor, sample_variance,
};
use crate::trees::cart::CartTarget;

/// Largest number of validation rows of all folds.
const MAX_ROWS: usize = 1000;
/// Number of members of each tree.
const DRAWS_PER_TREE: usize = 4;

/// Means that a tree predicts for the validation rows of its fold.
pub(super) struct UnseenMeans {
    pub(super) fold: usize,
    pub(super) means: Vec<f64>,
}

/// Scales the noise of all trees and gives it the tail of the validation rows.
pub(super) fn calibrate(parts: &mut RnnTreeParts, rows: &[RouteRows<'_>], unseen: &[UnseenMeans]) {
    if parts.inputs.kind != CartTarget::Number || unseen.is_empty() {
        return;
    }
    let few = RnnTree::new(parts.with_members(DRAWS_PER_TREE * parts.trees.len()));
    let n_rows = MAX_ROWS.div_ceil(rows.len());
    let blocks = rows.iter().enumerate();
    let blocks = blocks.filter_map(|(fold, rows)| {
        let own: Vec<usize> = (0..unseen.len())
            .filter(|&tree| unseen[tree].fold == fold)
            .collect();
        held_out_block(&few, rows, (&own, unseen), n_rows)
    });
    let blocks: Vec<HeldOutBlock> = blocks.collect();
    let floor = parts.trees[0].active_leaves().smoothing.floor.sqrt();
    let found = NoiseCalibration::learn(&blocks, floor).with_coverage_of(&blocks);
    for tree in &mut parts.trees {
        let smoothing = &mut tree.active_leaves_mut().smoothing;
        smoothing.factor *= found.scale * found.scale;
        smoothing.tail = found.tail;
    }
}

/// The distributions of all trees on the validation rows of a fold, moved to where the trees `own` of the fold
/// would have them; `None` without such rows or trees.
fn held_out_block(
    model: &RnnTree,
    rows: &RouteRows<'_>,
    (own, unseen): (&[usize], &[UnseenMeans]),
    max_rows: usize,
) -> Option<HeldOutBlock> {
    let validation = rows.validation.as_ref()?;
    let all: Vec<FitRow> = validation.iter().collect();
    if own.is_empty() || all.is_empty() {
        return None;
    }
    let n_rows = all.len().min(max_rows);
    let (n_trees, n_members) = (unseen.len(), DRAWS_PER_TREE * unseen.len());
    let Head::Normal { components } = model.component_head() else {
        return None;
    };
    let mut block = Block::new(Head::Normal { components }, n_members, n_rows);
    let mut scratch = RouteScratch::default();
    let (mut target, mut weight) = (Vec::new(), Vec::new());
    for row in 0..n_rows {
        let at = row * all.len() / n_rows;
        let (index, row_weight, y) = all[at];
        for tree in 0..n_trees {
            let bin = |column| validation.binned.bin(index, column);
            let members = (tree..n_members).step_by(n_trees);
            model.fill_row(&mut block, (tree, members, row), bin, &mut scratch);
        }
        let trees = TreeMoments::new(&block, n_trees, row);
        let left_out = own.iter().map(|&tree| unseen[tree].means[at]);
        let mean = left_out.sum::<f64>() / own.len() as f64;
        let others = (0..n_trees).filter(|tree| own.len() == n_trees || !own.contains(tree));
        let between = sample_variance(others.map(|tree| trees.means[tree]));
        let residual = (f64::from(y) - mean)
            * ensemble_residual_factor(trees.noise, between, (own.len(), n_trees));
        let shift = f64::from(y) - residual - trees.means.iter().sum::<f64>() / n_trees as f64;
        let stride = block.stride;
        for mean in block.normal_mut().mean[row..].iter_mut().step_by(stride) {
            *mean += shift;
        }
        target.push(f64::from(y));
        weight.push(row_weight);
    }
    Some(HeldOutBlock {
        block,
        added: Vec::new(),
        target,
        weight,
    })
}

/// Means of the trees on a row, and the mean of their variances.
struct TreeMoments {
    means: Vec<f64>,
    noise: f64,
}

impl TreeMoments {
    fn new(block: &Block, n_trees: usize, row: usize) -> Self {
        let (mut means, mut squares) = (vec![0.0; n_trees], vec![0.0; n_trees]);
        let normal = block.normal();
        for member in 0..block.n_members {
            for component in 0..block.n_components() {
                let at = block.at(member, component) + row;
                let share = block.weight[at] / DRAWS_PER_TREE as f64;
                let (mean, sd) = (normal.mean[at], normal.sd[at]);
                means[member % n_trees] += share * mean;
                squares[member % n_trees] += share * (mean * mean + sd * sd);
            }
        }
        let variances = means.iter().zip(&squares);
        let variances = variances.map(|(mean, square)| (square - mean * mean).max(0.0));
        Self {
            noise: variances.sum::<f64>() / n_trees as f64,
            means,
        }
    }
}
