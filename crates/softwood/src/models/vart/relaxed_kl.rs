//! The published estimate of the KL divergence: the log ratio of posterior and prior at the draws of
//! a step, with relaxed split indicators in place of their probabilities.
//!
//! For one draw with indicators `s`, log ratios `Lr_i` of the rules and `Ll_i` of the leaves:
//!
//! - `V_i = s_i [ln g_i/p_i + Lr_i + V_left + V_right] + (1 - s_i) [ln (1 - g_i)/(1 - p_i) + Ll_i]`
//! - a node that may not split: `V_i = -ln(1 - p_i) + Ll_i`
//!
//! Under hard indicators its mean is the closed form of `structure_kl`. It needs independent weights
//! (rank 0): the log ratio of a weight `w = mu + sd eps` is `-ln sd - eps^2/2 - ln(p)/2 + p w^2/2`
//! with the prior precision `p`.

use std::ops::Range;

use crate::inference::lowrank_gaussian::LowRank;
use crate::models::vart::spec::{TreeRanges, VartSpec};
use crate::models::vart::structure_kl::SplitPrior;
use crate::numerics::real::{sigmoid, softplus};

/// Draws of a step and the posterior over the structure.
pub(super) struct RelaxedKl<'a> {
    pub(super) spec: &'a VartSpec,
    pub(super) prior: SplitPrior,
    pub(super) logits: &'a [f32],
    /// Logits of the relaxed indicators of each draw.
    pub(super) relaxed: &'a [f32],
    /// Draws of the weights.
    pub(super) draws: &'a [f32],
    pub(super) temperature: f64,
}

impl RelaxedKl<'_> {
    fn n_draws(&self) -> usize {
        self.draws.len() / self.spec.n_weights()
    }

    /// Factors of the log ratios of the blocks of a tree in one draw.
    fn block_factors(&self, ranges: &TreeRanges<'_>, draw: usize) -> Vec<f64> {
        let tree = ranges.tree;
        let n_splits = tree.n_splits();
        let indicators = self.indicators(ranges, draw);
        let mut existence = vec![1.0; tree.n_nodes()];
        let mut out = vec![0.0; n_splits + tree.n_nodes()];
        for node in 0..tree.n_nodes() {
            let s = indicators.get(node).copied().unwrap_or(0.0);
            out[n_splits + node] = existence[node] * (1.0 - s);
            if node < n_splits {
                out[node] = existence[node] * s;
                for child in tree.children(node) {
                    existence[child] = existence[node] * s;
                }
            }
        }
        out
    }

    fn indicators(&self, ranges: &TreeRanges<'_>, draw: usize) -> Vec<f64> {
        let relaxed = &self.relaxed[draw * self.logits.len()..][ranges.logits.clone()];
        relaxed.iter().map(|&z| sigmoid(f64::from(z))).collect()
    }

    /// Replaces the gradient of the closed form, which `gradient` holds, by that of the estimate.
    pub(super) fn replace_weight_gradient(
        &self,
        posterior: &LowRank,
        precision: &[f32],
        kl: f32,
        gradient: &mut [f32],
    ) {
        let n = posterior.n_weights;
        let ends = self.spec.block_ends();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let blocks: Vec<Range<usize>> = starts.zip(&ends).map(|(start, &end)| start..end).collect();
        let mut closed = vec![0.0; blocks.len()];
        let mut factors = vec![vec![0.0; blocks.len()]; self.n_draws()];
        for ranges in self.spec.trees() {
            let tree_posterior = ranges.posterior(self.logits);
            tree_posterior.block_weights(&mut closed[ranges.blocks.clone()]);
            for (draw, factors) in factors.iter_mut().enumerate() {
                factors[ranges.blocks.clone()].copy_from_slice(&self.block_factors(&ranges, draw));
            }
        }
        let share = 1.0 / self.n_draws() as f64;
        for (at, block) in blocks.into_iter().enumerate() {
            for i in block {
                let (mean, p) = (f64::from(posterior.mean()[i]), f64::from(precision[i]));
                let variance = (2.0 * f64::from(posterior.log_sd()[i])).exp();
                let closed = f64::from(closed[at]);
                let (mut d_mean, mut d_log_sd) =
                    (-closed * mean * p, -closed * (variance * p - 1.0));
                for (draw, factors) in factors.iter().enumerate() {
                    let w = f64::from(self.draws[draw * n + i]);
                    d_mean += share * factors[at] * p * w;
                    d_log_sd += share * factors[at] * (p * w * (w - mean) - 1.0);
                }
                gradient[i] += kl * d_mean as f32;
                gradient[n + i] += kl * d_log_sd as f32;
            }
        }
    }

    /// Log ratio of the blocks in one draw.
    fn log_ratios(&self, posterior: &LowRank, precision: &[f32], draw: usize) -> Vec<f64> {
        let n = posterior.n_weights;
        let mut start = 0;
        let ends = self.spec.block_ends().into_iter();
        ends.map(|end| {
            let terms = (start..end).map(|i| {
                let w = f64::from(self.draws[draw * n + i]);
                let (log_sd, p) = (f64::from(posterior.log_sd()[i]), f64::from(precision[i]));
                let eps = (w - f64::from(posterior.mean()[i])) * (-log_sd).exp();
                -log_sd - 0.5 * eps * eps - 0.5 * p.ln() + 0.5 * p * w * w
            });
            let sum = terms.sum();
            start = end;
            sum
        })
        .collect()
    }

    /// The estimate, averaged over the draws.
    #[cfg(test)]
    pub(super) fn value(&self, posterior: &LowRank, precision: &[f32]) -> f64 {
        let mut sum = 0.0;
        for draw in 0..self.n_draws() {
            let ratios = self.log_ratios(posterior, precision, draw);
            for ranges in self.spec.trees() {
                let mut gradient = vec![0.0; ranges.logits.len()];
                let blocks = ranges.blocks.clone();
                sum += self.add_tree(&ranges, &ratios[blocks], draw, 0.0, &mut gradient);
            }
        }
        sum / self.n_draws() as f64
    }

    /// Gradient of the estimate with respect to the logits of the split probabilities.
    pub(super) fn logit_gradient(&self, posterior: &LowRank, precision: &[f32]) -> Vec<f64> {
        let mut out = vec![0.0; self.logits.len()];
        let share = 1.0 / self.n_draws() as f64;
        for draw in 0..self.n_draws() {
            let ratios = self.log_ratios(posterior, precision, draw);
            for ranges in self.spec.trees() {
                let tree_out = &mut out[ranges.logits.clone()];
                self.add_tree(
                    &ranges,
                    &ratios[ranges.blocks.clone()],
                    draw,
                    share,
                    tree_out,
                );
            }
        }
        out
    }

    /// Adds `share` times the gradient of one tree in one draw; returns the estimate of the tree.
    fn add_tree(
        &self,
        ranges: &TreeRanges<'_>,
        ratios: &[f64],
        draw: usize,
        share: f64,
        out: &mut [f64],
    ) -> f64 {
        let tree = ranges.tree;
        let n_splits = tree.n_splits();
        let indicators = self.indicators(ranges, draw);
        let factors = self.block_factors(ranges, draw);
        let mut below = vec![0.0; tree.n_nodes()];
        for node in (0..tree.n_nodes()).rev() {
            let p = self.prior.probability(tree.depth(node));
            let stops = -(-p).ln_1p() + ratios[n_splits + node];
            if node >= n_splits {
                below[node] = stops;
                continue;
            }
            let logit = f64::from(self.logits[ranges.logits.start + node]);
            let s = indicators[node];
            let [left, right] = tree.children(node);
            let splits = -softplus(-logit) - p.ln() + ratios[node] + below[left] + below[right];
            let stops = stops - softplus(logit);
            below[node] = s * splits + (1.0 - s) * stops;
            let existence = factors[node] + factors[n_splits + node];
            let relaxed = s * (1.0 - s) / self.temperature * (splits - stops);
            out[node] += share * existence * (relaxed + s - sigmoid(logit));
        }
        below[0]
    }
}
