//! KL divergence of the posterior over the structure and the weights of one tree.
//!
//! Node `i` splits with probability `g_i` under the posterior and `p_i` under the prior. `Kr_i` and
//! `Kl_i` are the divergences of its rule and its leaf. Only weights that a tree uses count:
//!
//! - a node that cannot split under the posterior: `V_i = -ln(1 - p_i) + Kl_i`
//! - any other node: `V_i = kl(g_i || p_i) + g_i (Kr_i + V_left + V_right) + (1 - g_i) Kl_i`
//! - `KL = V_root`
//!
//! With the probability `rho_i` that node `i` exists (`rho_root = 1`, `rho_child = rho_i g_i`) and
//! the logit `a_i` of `g_i`:
//!
//! - `dKL/da_i = rho_i g_i (1 - g_i) [a_i - logit p_i + Kr_i + V_left + V_right - Kl_i]`
//! - `Kr_i` has the factor `rho_i g_i`, `Kl_i` the factor `rho_i (1 - g_i)`

use crate::numerics::real::{sigmoid, softplus};
use crate::soft::stopping_tree::StoppingTree;

/// Prior probability that a node at a depth splits: `base / (1 + depth)^power`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SplitPrior {
    pub(super) base: f64,
    pub(super) power: f64,
}

impl SplitPrior {
    pub(super) fn probability(self, depth: usize) -> f64 {
        self.base * (1.0 + depth as f64).powf(-self.power)
    }
}

/// A tree with the logits of its split probabilities, for nodes that may split.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreePosterior<'a> {
    pub(super) tree: &'a StoppingTree,
    pub(super) logits: &'a [f32],
}

impl TreePosterior<'_> {
    /// Split probability of a node; 0 for a node that may not split.
    pub(super) fn split_probability(&self, node: usize) -> f64 {
        self.logits
            .get(node)
            .map_or(0.0, |&logit| sigmoid(f64::from(logit)))
    }

    /// Probability that each node exists.
    pub(super) fn existence(&self) -> Vec<f64> {
        let mut out = vec![1.0; self.tree.n_nodes()];
        for node in 0..self.tree.n_splits() {
            for child in self.tree.children(node) {
                out[child] = out[node] * self.split_probability(node);
            }
        }
        out
    }

    /// Factors of the divergences of all rules, then of all leaves.
    pub(super) fn block_weights(&self, out: &mut [f32]) {
        let n_splits = self.tree.n_splits();
        for (node, existence) in self.existence().into_iter().enumerate() {
            let split = self.split_probability(node);
            if node < n_splits {
                out[node] = (existence * split) as f32;
            }
            out[n_splits + node] = (existence * (1.0 - split)) as f32;
        }
    }
}

/// Divergences of the rules and leaves of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockKls<'a> {
    pub(super) rules: &'a [f64],
    pub(super) leaves: &'a [f64],
}

impl<'a> BlockKls<'a> {
    /// Divergences of all rules, then of all leaves.
    pub(super) fn new(tree: &StoppingTree, blocks: &'a [f64]) -> Self {
        let (rules, leaves) = blocks.split_at(tree.n_splits());
        Self { rules, leaves }
    }
}

/// KL divergence of a tree and its gradient with respect to the logits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StructureKl {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
}

impl StructureKl {
    pub(super) fn new(
        posterior: &TreePosterior<'_>,
        prior: SplitPrior,
        kls: &BlockKls<'_>,
    ) -> Self {
        let tree = posterior.tree;
        let n_splits = tree.n_splits();
        // divergence of the subtree of each node
        let mut below = vec![0.0; tree.n_nodes()];
        let mut gradient = vec![0.0; n_splits];
        for node in (0..tree.n_nodes()).rev() {
            let p = prior.probability(tree.depth(node));
            let stops = -(-p).ln_1p() + kls.leaves[node];
            below[node] = if node < n_splits {
                let logit = f64::from(posterior.logits[node]);
                let (g, not_g) = (sigmoid(logit), sigmoid(-logit));
                let [left, right] = tree.children(node);
                let splits = -p.ln() + kls.rules[node] + below[left] + below[right];
                // ln g and ln (1 - g)
                let (ln_g, ln_not_g) = (-softplus(-logit), -softplus(logit));
                gradient[node] = g * not_g * (ln_g - ln_not_g + splits - stops);
                g * (ln_g + splits) + not_g * (ln_not_g + stops)
            } else {
                stops
            };
        }
        for (gradient, existence) in gradient.iter_mut().zip(posterior.existence()) {
            *gradient *= existence;
        }
        Self {
            value: below[0],
            gradient,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, uniform};
    use softwood_testkit::{central_difference, close};

    fn logit(p: f64) -> f32 {
        (p / (1.0 - p)).ln() as f32
    }

    /// Golden value 6 of the fact sheet: depth 1, with the prior probability 0.3 at every node.
    #[test]
    fn a_tree_of_depth_one_has_the_golden_divergence() {
        let tree = StoppingTree::new(vec![[1, 2]]);
        let posterior = TreePosterior {
            tree: &tree,
            logits: &[logit(0.6)],
        };
        let kls = BlockKls {
            rules: &[0.8],
            leaves: &[0.5, 0.2, 0.4],
        };
        let prior = SplitPrior {
            base: 0.3,
            power: 0.0,
        };
        let found = StructureKl::new(&posterior, prior, &kls);
        close(&[found.value], &[1.660_051_925_9], 1e-6);
    }

    fn example() -> (StoppingTree, Vec<f32>, Vec<f64>) {
        let (tree, _) = StoppingTree::of_heap(|node| [0, 1, 2, 4, 9].contains(&node));
        let mut rng = Key::from_seed(3).rng();
        let logits = (0..tree.n_splits()).map(|_| 3.0 * uniform(&mut rng) as f32 - 1.0);
        let logits = logits.collect();
        let n_blocks = tree.n_splits() + tree.n_nodes();
        let kls = (0..n_blocks).map(|_| 2.0 * uniform(&mut rng)).collect();
        (tree, logits, kls)
    }

    const PRIOR: SplitPrior = SplitPrior {
        base: 0.9,
        power: 1.3,
    };

    #[test]
    fn the_gradient_and_the_factors_agree_with_differences() {
        let (tree, logits, kls) = example();
        let value = |logits: &[f64], kls: &[f64]| {
            let logits: Vec<f32> = logits.iter().map(|&logit| logit as f32).collect();
            let posterior = TreePosterior {
                tree: &tree,
                logits: &logits,
            };
            StructureKl::new(&posterior, PRIOR, &BlockKls::new(&tree, kls)).value
        };
        let posterior = TreePosterior {
            tree: &tree,
            logits: &logits,
        };
        let found = StructureKl::new(&posterior, PRIOR, &BlockKls::new(&tree, &kls));
        // logits are in single precision: differences need a large step
        let wide: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
        for at in 0..wide.len() {
            let moved = |step: f64| {
                let mut wide = wide.clone();
                wide[at] += step;
                value(&wide, &kls)
            };
            let difference = (moved(1.0 / 128.0) - moved(-1.0 / 128.0)) * 64.0;
            close(&[found.gradient[at]], &[difference], 1e-4);
        }
        let mut factors = vec![0.0; kls.len()];
        posterior.block_weights(&mut factors);
        let factors: Vec<f64> = factors.into_iter().map(f64::from).collect();
        close(
            &factors,
            &central_difference(|kls| value(&wide, kls), &kls),
            1e-6,
        );
    }

    /// The closed form is the mean over trees of the log ratio of their probabilities, plus the
    /// divergences of the weights that they use.
    #[test]
    fn the_closed_form_is_the_mean_over_drawn_trees() {
        let (tree, logits, kls) = example();
        let posterior = TreePosterior {
            tree: &tree,
            logits: &logits,
        };
        let kls = BlockKls::new(&tree, &kls);
        let expected = StructureKl::new(&posterior, PRIOR, &kls).value;
        let mut rng = Key::from_seed(11).rng();
        let n_draws = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n_draws {
            let mut total = 0.0;
            let mut stack = vec![0];
            while let Some(node) = stack.pop() {
                let p = PRIOR.probability(tree.depth(node));
                let g = posterior.split_probability(node);
                if uniform(&mut rng) < g {
                    total += (g / p).ln() + kls.rules[node];
                    stack.extend(tree.children(node));
                } else {
                    total += ((1.0 - g) / (1.0 - p)).ln() + kls.leaves[node];
                }
            }
            sum += total;
            squares += total * total;
        }
        let n = f64::from(n_draws);
        let mean = sum / n;
        let standard_error = ((squares / n - mean * mean) / n).sqrt();
        // five standard errors: a probability of failure below 1e-6
        assert!(
            (mean - expected).abs() < 5.0 * standard_error,
            "{mean} {expected}"
        );
    }
}
