//! The shape of a fit: trees whose nodes may stop, the positions of their weights and logits, and
//! their form for the kernels.

use std::ops::Range;

use crate::likelihood::soft::SoftLikelihood;
use crate::models::vart::structure_kl::TreePosterior;
use crate::numerics::real::Real;
use crate::soft::additive::AdditiveLayout;
use crate::soft::general_layout::GeneralLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::stopping_tree::StoppingTree;
use crate::soft::stopping_weights::{ActivePart, NodeShape};

/// Logit of a split indicator that is 0 or 1 in single precision.
const HARD_LOGIT: f32 = 60.0;

/// One tree, or a sum of trees that all blend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VartSpec {
    pub(super) first: StoppingTree,
    /// Each of the trees that are added to the first one.
    pub(super) added: StoppingTree,
    pub(super) n_added: usize,
    pub(super) shape: NodeShape,
    /// Number of top levels of the first tree that choose a component of a mixture.
    pub(super) mixing_levels: usize,
    pub(super) likelihood: SoftLikelihood,
    /// Inverse temperature of the gates.
    pub(super) beta: f64,
}

/// A tree of a sum, with the ranges of its weights, its logits and its blocks.
#[derive(Debug, Clone)]
pub(super) struct TreeRanges<'a> {
    pub(super) tree: &'a StoppingTree,
    pub(super) weights: Range<usize>,
    pub(super) logits: Range<usize>,
    /// Blocks of the posterior: the rules and the leaves.
    pub(super) blocks: Range<usize>,
}

impl TreeRanges<'_> {
    /// The tree with its part of the logits of all trees.
    pub(super) fn posterior<'a>(&'a self, logits: &'a [f32]) -> TreePosterior<'a> {
        TreePosterior {
            tree: self.tree,
            logits: &logits[self.logits.clone()],
        }
    }
}

impl VartSpec {
    /// The trees, in order.
    pub(super) fn trees(&self) -> impl Iterator<Item = TreeRanges<'_>> {
        let mut start = [0; 3];
        let trees = std::iter::once(&self.first);
        let trees = trees.chain(std::iter::repeat_n(&self.added, self.n_added));
        trees.map(move |tree| {
            let n_splits = tree.n_splits();
            let sizes = [
                self.shape.n_weights(tree),
                n_splits,
                n_splits + tree.n_nodes(),
            ];
            let from = start;
            for (start, size) in start.iter_mut().zip(sizes) {
                *start += size;
            }
            let [weights, logits, blocks] = [0, 1, 2].map(|at| from[at]..start[at]);
            TreeRanges {
                tree,
                weights,
                logits,
                blocks,
            }
        })
    }

    /// Number of weights with a Gaussian posterior.
    pub(super) fn n_weights(&self) -> usize {
        self.trees().map(|tree| tree.weights.len()).sum()
    }

    /// Number of nodes that may split, in all trees.
    pub(super) fn n_logits(&self) -> usize {
        self.trees().map(|tree| tree.logits.len()).sum()
    }

    /// Ends of the blocks of the posterior.
    pub(super) fn block_ends(&self) -> Vec<usize> {
        let trees = self.trees();
        trees
            .flat_map(|tree| {
                let ends = self.shape.block_ends(tree.tree).into_iter();
                ends.map(move |end| tree.weights.start + end)
            })
            .collect()
    }

    /// The trees as the kernels see them. In a single tree, only nodes with `keeps` may split.
    pub(super) fn active(&self, keeps: impl Fn(usize) -> bool) -> ActiveTrees {
        let (shape, levels) = (self.shape, self.mixing_levels);
        let first = if self.n_added == 0 {
            ActivePart::new(&self.first, shape, levels, keeps)
        } else {
            ActivePart::new(&self.first, shape, levels, |_| true)
        };
        let added = ActivePart::new(&self.added, shape, 0, |_| true);
        ActiveTrees {
            kernel: SoftTreeSpec {
                stack: AdditiveLayout {
                    first: first.layout.clone(),
                    has_offset: false,
                    has_reach: false,
                    added: added.layout.clone(),
                    n_added: self.n_added,
                },
                likelihood: self.likelihood,
                beta: self.beta,
            },
            first,
            added,
        }
    }
}

/// The active parts of the trees of a sum.
#[derive(Debug, Clone)]
pub(super) struct ActiveTrees {
    pub(super) kernel: SoftTreeSpec<GeneralLayout>,
    pub(super) first: ActivePart,
    added: ActivePart,
}

impl ActiveTrees {
    fn part(&self, tree: usize) -> &ActivePart {
        if tree == 0 { &self.first } else { &self.added }
    }

    /// Writes the weights of the kernels for one draw of the weights and of the logits of the split
    /// indicators.
    pub(super) fn expand<T: Real>(
        &self,
        spec: &VartSpec,
        weights: &[T],
        stop_logits: &[T],
        out: &mut [T],
    ) {
        let kernel = self.kernel.stack.ranges();
        for (at, (ranges, (_, range))) in spec.trees().zip(kernel).enumerate() {
            self.part(at).expand(
                &weights[ranges.weights],
                &stop_logits[ranges.logits],
                &mut out[range],
            );
        }
    }

    /// Writes the gradient of the weights for one draw, and adds that of the logits.
    pub(super) fn collect<T: Real>(
        &self,
        spec: &VartSpec,
        kernel_gradient: &[T],
        gradient: &mut [T],
        stop_gradient: &mut [T],
    ) {
        let kernel = self.kernel.stack.ranges();
        for (at, (ranges, (_, range))) in spec.trees().zip(kernel).enumerate() {
            self.part(at).collect(
                &kernel_gradient[range],
                &mut gradient[ranges.weights],
                &mut stop_gradient[ranges.logits],
            );
        }
    }

    /// The weights of the kernels of several draws with hard split indicators.
    pub(super) fn expand_hard(&self, spec: &VartSpec, draws: &[f32], splits: &[bool]) -> Vec<f32> {
        let n_kernel = self.kernel.stack.n_weights();
        let n_draws = draws.len() / spec.n_weights();
        let n_logits = spec.n_logits();
        let mut out = vec![0.0; n_draws * n_kernel];
        let mut logits = vec![0.0; n_logits];
        for (draw, out) in out.chunks_exact_mut(n_kernel).enumerate() {
            for (logit, &splits) in logits.iter_mut().zip(&splits[draw * n_logits..]) {
                *logit = if splits { HARD_LOGIT } else { -HARD_LOGIT } / spec.beta as f32;
            }
            let weights = &draws[draw * spec.n_weights()..(draw + 1) * spec.n_weights()];
            self.expand(spec, weights, &logits, out);
        }
        out
    }
}
