//! Calibration of the noise of a regression on the validation rows.
//!
//! The trees of a fold have not seen its validation rows; those of the other folds have. The mean of all
//! trees is moved to where its residual is that of the trees of the fold, made smaller as averaging over
//! all trees does ([`ensemble_residual_factor`]). Around it stand the distributions of all trees; scale and
//! tail of their noise suit the validation rows of all folds. (The scale is part of the leaf variances, and so
//! of the variances of the leaf means, which are small beside the noise.)

use crate::models::rnn_tree::fitted::{MixtureScratch, RnnTree, RnnTreeParts};
use crate::models::rnn_tree::rows::{FitRow, RouteRows};
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{
    HeldOutBlock, NoiseCalibration, ensemble_residual_factor, sample_variance,
};
use crate::stop;
use crate::trees::cart::CartTarget;

/// Largest number of validation rows of all folds, of members, and of members of each tree.
const MAX_ROWS: usize = 1000;
const MAX_MEMBERS: usize = 32;
const MAX_DRAWS: usize = 4;
/// Largest number of Normal components of all rows and members, which bounds time and memory.
const MAX_COMPONENTS: usize = 2_000_000;
/// Leaves whose weight is a smaller share of the largest one are left out of a mixture: they cost time and
/// change little.
const MIN_WEIGHT: f64 = 1e-3;

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
    let n_trees = parts.trees.len();
    let n_draws = (parts.inputs.n_members / n_trees).min(MAX_MEMBERS / n_trees);
    let n_draws = n_draws.clamp(1, MAX_DRAWS);
    let held_out = HeldOutTrees {
        model: &RnnTree::new(parts.with_members(n_draws * n_trees)),
        n_draws,
        unseen,
    };
    let n_components = n_draws * n_trees * held_out.model.n_components();
    let n_rows = MAX_ROWS
        .min(MAX_COMPONENTS / n_components)
        .div_ceil(rows.len());
    let blocks = rows.iter().enumerate();
    let blocks = blocks.filter_map(|(fold, rows)| held_out.block(rows, fold, n_rows));
    let blocks: Vec<HeldOutBlock> = blocks.collect();
    let floor = parts.trees[0].active_leaves().smoothing.floor.sqrt();
    let found = NoiseCalibration::learn(&blocks, floor).with_coverage_of(&blocks);
    for tree in &mut parts.trees {
        let smoothing = &mut tree.active_leaves_mut().smoothing;
        smoothing.factor *= found.scale * found.scale;
        smoothing.tail = found.tail;
    }
}

/// The trees of a model, and what they predict for rows that they have not seen.
struct HeldOutTrees<'a> {
    model: &'a RnnTree,
    /// Number of members of each tree.
    n_draws: usize,
    unseen: &'a [UnseenMeans],
}

impl HeldOutTrees<'_> {
    /// The distributions of all trees on the validation rows of a fold, moved to where the trees of the fold
    /// would have them. Members are in the order of the trees. `None` without such rows or trees, and if
    /// the work is cancelled.
    fn block(&self, rows: &RouteRows<'_>, fold: usize, max_rows: usize) -> Option<HeldOutBlock> {
        let of_fold = |tree: &UnseenMeans| tree.fold == fold;
        let validation = rows.validation.as_ref()?;
        let all: Vec<FitRow> = validation.iter().collect();
        if all.is_empty() || !self.unseen.iter().any(of_fold) {
            return None;
        }
        let n_rows = all.len().min(max_rows);
        let n_trees = self.unseen.len();
        let head = Head::Normal {
            components: self.model.n_components(),
        };
        let mut block = Block::new(head, self.n_draws * n_trees, n_rows);
        let stride = block.stride;
        let mut scratch = MixtureScratch::default();
        let (mut target, mut weight) = (Vec::new(), Vec::new());
        for row in 0..n_rows {
            if stop::is_cancelled() {
                return None;
            }
            let at = row * all.len() / n_rows;
            let (index, row_weight, y) = all[at];
            for tree in 0..n_trees {
                let bin = |column| validation.binned.bin(index, column);
                let members = (0..self.n_draws).map(|draw| (tree * self.n_draws + draw, draw));
                (self.model).fill_row(&mut block, (tree, row), members, bin, &mut scratch);
            }
            let mut weights: Vec<&mut f64> =
                block.weight[row..].iter_mut().step_by(stride).collect();
            for of_member in weights.chunks_exact_mut(self.model.n_components()) {
                leave_out_small(of_member);
            }
            let shift = self.shift(&block, row, (fold, at), f64::from(y));
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

    /// The distance by which the means of all trees move on a row, which is the validation row `at` of a fold.
    fn shift(&self, block: &Block, row: usize, (fold, at): (usize, usize), y: f64) -> f64 {
        let (mut left_out, mut n_left_out) = (0.0, 0_usize);
        let mut others = Vec::new();
        let trees = TreeMoments::new(block, self.n_draws, row);
        for (tree, mean) in self.unseen.iter().zip(&trees.means) {
            if tree.fold == fold {
                left_out += tree.means[at];
                n_left_out += 1;
            } else {
                others.push(*mean);
            }
        }
        let n_trees = trees.means.len();
        // two trees have a variance only together
        let between = if others.len() < 2 {
            sample_variance(trees.means.iter().copied())
        } else {
            sample_variance(others.into_iter())
        };
        let residual = (y - left_out / n_left_out as f64)
            * ensemble_residual_factor(trees.noise, between, (n_left_out, n_trees));
        y - residual - trees.means.iter().sum::<f64>() / n_trees as f64
    }
}

/// Sets weights below a share [`MIN_WEIGHT`] of the largest one to zero and gives what they had to the others.
fn leave_out_small(weights: &mut [&mut f64]) {
    let sum = |weights: &[&mut f64]| weights.iter().map(|weight| **weight).sum::<f64>();
    let total = sum(weights);
    let largest = weights.iter().fold(0.0, |a: f64, weight| a.max(**weight));
    for weight in weights.iter_mut().filter(|w| ***w < MIN_WEIGHT * largest) {
        **weight = 0.0;
    }
    let kept = sum(weights);
    for weight in weights {
        **weight *= total / kept;
    }
}

/// Means of the trees on a row, and the mean of their variances.
struct TreeMoments {
    means: Vec<f64>,
    noise: f64,
}

impl TreeMoments {
    /// Members are in the order of the trees.
    fn new(block: &Block, n_draws: usize, row: usize) -> Self {
        let n_trees = block.n_members / n_draws;
        let (mut means, mut squares) = (vec![0.0; n_trees], vec![0.0; n_trees]);
        let normal = block.normal();
        for member in 0..block.n_members {
            for component in 0..block.n_components() {
                let at = block.at(member, component) + row;
                let share = block.weight[at] / n_draws as f64;
                let (mean, sd) = (normal.mean[at], normal.sd[at]);
                means[member / n_draws] += share * mean;
                squares[member / n_draws] += share * (mean * mean + sd * sd);
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

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn small_weights_are_given_to_the_others() {
        let left = |weights: &[f64]| {
            let mut weights = weights.to_vec();
            leave_out_small(&mut weights.iter_mut().collect::<Vec<_>>());
            weights
        };
        close(
            &left(&[0.6, 0.3996, 0.0004]),
            &[0.6 / 0.9996, 0.3996 / 0.9996, 0.0],
            1e-12,
        );
        // many leaves of equal weight are all kept
        close(&left(&[5e-4; 2000]), &[5e-4; 2000], 1e-12);
    }
}
