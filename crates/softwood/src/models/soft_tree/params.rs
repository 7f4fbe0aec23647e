//! The parameter table of the incremental soft tree.

use crate::data::target::Target;
use crate::extrapolation::away_from_data;
use crate::models::soft_tree::growth::GrowthOptions;
use crate::params::{choices, params, with_groups};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{Leaf, PosteriorMethod, Prior};
use crate::variational::param_groups::{
    soft_calibration, soft_draws, soft_inputs, soft_members, soft_posterior, soft_training,
};

/// Default number of trees of an ensemble.
const N_ENSEMBLE: usize = 10;
/// Default maximum number of leaves, of a tree with the extensions and of a published one.
const MAX_LEAVES: usize = 32;
const MAX_PUBLISHED_LEAVES: usize = 256;

choices! {
    /// Algorithm by which a soft tree grows.
    Variant {
        /// The published algorithm with the extensions of this library.
        Extended = "extended",
        /// The algorithm of the paper.
        Paper = "paper",
        /// The algorithm of the program that the authors of the paper released.
        Released = "released",
    }
}

choices! {
    /// Order in which the leaves of a growing soft tree are split.
    GrowthOrder {
        /// The leaf with the largest expected gain first.
        BestFirst = "best-first",
        /// The left subtree of a split before the right one.
        DepthFirst = "depth-first",
    }
}

choices! {
    /// Uncertainty of the weights of a soft tree.
    WeightPosterior {
        /// A Gaussian posterior over the weights of the grown tree.
        Variational = "variational",
        /// Draws from the posterior by Hamiltonian Monte Carlo, from the Gaussian one on.
        Hmc = "hmc",
        /// Trees that are grown on bootstrap samples, each a point estimate.
        Ensemble = "ensemble",
    }
}

params! {
    /// Parameters of the incremental soft tree.
    ///
    #[doc = include_str!("soft_tree.md")]
    SoftTreeParams, across = SoftTreeParams::conflict, {
        /// Algorithm: `extended` (all weights of a split are trained together on minibatches, with
        /// the options below), `paper` (as published: constant leaves, depth first, each split
        /// trained row by row with ten step sizes, kept if the validation error falls) or
        /// `released` (the same with the settings of the authors' program).
        variant: Variant = Variant::Extended;
        /// Order in which leaves are split: `best-first` (by expected gain) or `depth-first`; auto:
        /// best-first, depth-first for the published variants.
        growth: Option<GrowthOrder> = None;
        /// Maximum depth of the tree.
        max_depth: usize = 16, [0, 64];
        /// Maximum number of leaves of the tree. Reduce it for a tree that is easier to read; auto:
        /// 32, 256 for the published variants.
        max_leaf_nodes: Option<usize> = None, [1, 1024];
        /// Number of standard errors by which a split must raise the log-likelihood of the
        /// validation rows to be kept. Larger values make smaller trees. The published variants
        /// have rules of their own.
        min_gain: f64 = 1.0, [0.0, 100.0];
        /// Leaf values: `constant`, or `linear` in the inputs; auto: linear, constant for the
        /// published variants.
        leaf_model: Option<Leaf> = None;
        /// Whether all gates and leaves are trained together while the tree grows and after it;
        /// auto: yes, no for the published variants.
        refine: Option<bool> = None;
        /// Whether splits are removed that do not raise the log-likelihood of the validation rows
        /// in the grown tree; auto: yes, no for the published variants.
        prune: Option<bool> = None;
        /// Uncertainty of the weights: `variational` (members are draws from a Gaussian approximation
        /// of the posterior over the weights of the grown tree), `hmc` (draws by Hamiltonian Monte
        /// Carlo, from that approximation on) or `ensemble` (trees that are grown on bootstrap samples,
        /// each a member); auto: `hmc` up to about 4300 training rows, else `variational`, and one
        /// point estimate for the published variants.
        posterior: Option<WeightPosterior> = None;
        /// Number of trees. Several trees are grown on bootstrap samples, and their predictions are
        /// averaged; auto: 10 if `posterior` is given as `ensemble`, else 1.
        n_fits: Option<usize> = None, [1, 100];
        use soft_posterior;
        /// Prior variances of the weights: `ard` learns one per input and kind of weight and so
        /// shrinks irrelevant inputs, `group` learns one per kind of weight, `fixed` uses
        /// `prior_scale` for all weights; auto: `ard`, but `group` for a classification with one or
        /// two leaves.
        prior: Option<Prior> = None;
        use soft_training;
        /// Number of passes over the training rows in the training of the posterior; auto: about
        /// 12000 optimiser steps, but 40 to 1500 epochs.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        use soft_draws;
        use soft_calibration;
        use soft_members;
        use soft_inputs { validation_fraction = 0.2 };
        use away_from_data;
    }
}

impl SoftTreeParams {
    /// The problem with parameters of which one excludes the other, if there is one.
    fn conflict(&self) -> Option<String> {
        if !self.is_published() {
            return None;
        }
        if self.leaf_model == Some(Leaf::Linear) {
            return Some("`leaf_model` = linear needs `variant` = extended".to_owned());
        }
        (self.growth == Some(GrowthOrder::BestFirst))
            .then(|| "`growth` = best-first needs `variant` = extended".to_owned())
    }

    pub(super) fn is_published(&self) -> bool {
        self.variant != Variant::Extended
    }

    pub(super) fn is_linear(&self) -> bool {
        !self.is_published() && self.leaf_model != Some(Leaf::Constant)
    }

    /// Whether the members are trees without a posterior.
    pub(super) fn is_ensemble(&self) -> bool {
        match self.posterior {
            Some(posterior) => posterior == WeightPosterior::Ensemble,
            None => self.is_published(),
        }
    }

    /// How members are drawn from the posterior of a tree.
    pub(super) fn posterior_method(&self) -> Option<PosteriorMethod> {
        match self.posterior? {
            WeightPosterior::Hmc => Some(PosteriorMethod::Hmc),
            WeightPosterior::Variational | WeightPosterior::Ensemble => {
                Some(PosteriorMethod::Variational)
            }
        }
    }

    /// Number of trees.
    pub(super) fn n_trees(&self) -> usize {
        let default = match self.posterior {
            Some(WeightPosterior::Ensemble) => N_ENSEMBLE,
            _ => 1,
        };
        let n_trees = self.n_fits.unwrap_or(default);
        if self.is_ensemble() {
            n_trees
        } else {
            n_trees.min(self.n_members)
        }
    }

    pub(super) fn growth_options(&self) -> GrowthOptions {
        let is_extended = !self.is_published();
        let max_leaves = if is_extended {
            MAX_LEAVES
        } else {
            MAX_PUBLISHED_LEAVES
        };
        GrowthOptions {
            best_first: is_extended && self.growth != Some(GrowthOrder::DepthFirst),
            min_gain: self.min_gain,
            max_leaves: self.max_leaf_nodes.unwrap_or(max_leaves),
            max_depth: self.max_depth,
            refines: self.refine.unwrap_or(is_extended),
            prunes: self.prune.unwrap_or(is_extended),
        }
    }

    /// Configuration of the training of the posterior of a tree with this number of leaves.
    pub(super) fn config(&self, target: &Target, n_leaves: usize) -> SoftTreeConfig {
        let is_small_classifier = matches!(target, Target::Classes(_)) && n_leaves <= 2;
        let default_prior = if is_small_classifier {
            Prior::Group
        } else {
            Prior::Ard
        };
        with_groups!(self, [soft_posterior, soft_training, soft_inputs] => SoftTreeConfig {
            // the number of leaves is selected, which needs a validation set
            depth: None,
            max_depth: usize::MAX,
            leaf: self.leaf_model,
            leaf_mixing: None,
            mixing_levels: None,
            prefers_blend: true,
            homoscedastic_warmup: false,
            prior: self.prior.unwrap_or(default_prior),
            n_epochs: self.n_epochs,
            n_draws: self.n_draws,
            noise: NoiseSpec::Varying,
        })
    }
}
