//! The parameter table of the variational regression tree.

use crate::extrapolation::away_from_data;
use crate::models::vart::structure_kl::SplitPrior;
use crate::params::{choices, params, with_groups};
use crate::variational::config::{NoiseSpec, SoftTreeConfig};
use crate::variational::options::{Leaf, LeafMixing, check_mixing_levels};
use crate::variational::param_groups::{
    soft_draws, soft_inputs, soft_members, soft_prior, soft_training,
};

/// Default number of fits, and that below [`MANY_ROWS`] rows, where single fits scatter and cost little.
const N_FITS: usize = 4;
const N_FITS_OF_FEW_ROWS: usize = 8;
const MANY_ROWS: usize = 500;

choices! {
    /// Estimate of the KL divergence between posterior and prior.
    KlEstimate {
        /// The exact divergence.
        ClosedForm = "closed-form",
        /// The log ratio of posterior and prior at the draws of a step, with relaxed split
        /// indicators, as in the paper. It needs independent weights.
        SingleDraw = "single-draw",
    }
}

choices! {
    /// How the log-likelihoods of the rows enter the objective beside the KL term.
    LikelihoodReduction {
        /// Their sum: with `kl_weight` 1 the objective is the ELBO.
        Sum = "sum",
        /// Their mean: a row counts 1/n, and the KL term counts n times more.
        Mean = "mean",
    }
}

params! {
    /// Parameters of the variational regression tree.
    ///
    #[doc = include_str!("vart.md")]
    VartParams, across = |params: &VartParams| params.conflict(), {
        /// Maximum depth of the trees of the posterior. A deeper limit costs little: nodes that do
        /// not split carry no cost. 0 is one leaf, a Bayesian linear regression.
        max_depth: usize = 10, [0, 10];
        /// Depth of the tree that training begins with; structure moves then grow and prune it.
        /// Auto: chosen on the validation set.
        start_depth: Option<usize> = None, [0, 10];
        /// Prior probability that the root splits.
        split_prior: f64 = 0.95, [0.001, 0.999];
        /// How fast the prior probability of a split falls with the depth of the node:
        /// `split_prior / (1 + depth)^split_power`.
        split_power: f64 = 1.0, [0.0, 10.0];
        /// Probability that the nodes of the initial tree split, at the beginning of training. A
        /// smaller value trains the leaves of inner nodes too, so that splits that the data do not
        /// need are given up.
        initial_split: f64 = 0.98, [0.001, 0.999];
        /// Learning rate of the split probabilities relative to that of the weights. With 1, few
        /// splits are given up, which predicts best; with 5 and `initial_split` = 0.73, splits that
        /// the data do not need are given up more readily.
        split_rate: f64 = 1.0, [0.01, 100.0];
        /// Leaf values: `constant`, or `linear` in the inputs. Linear leaves suit smooth functions
        /// and extrapolate linearly; auto: linear if `start_depth` or `leaf_mixing` is given, else
        /// chosen on the validation set.
        leaf_model: Option<Leaf> = None;
        /// Noise scale in a leaf: `constant`, or `linear` in the inputs (heteroskedastic leaves);
        /// auto: as `leaf_model`.
        scale_model: Option<Leaf> = None;
        /// How leaves combine into one distribution: `mixture` (each leaf is a component, as in the
        /// paper), `blend` (one distribution with averaged parameters) or `hybrid` (the top levels
        /// mix, the lower levels blend); auto: chosen on the validation set, a blend for a sum of
        /// trees.
        leaf_mixing: Option<LeafMixing> = None;
        /// Number of top levels of a hybrid tree that mix; auto: half of `start_depth`, rounded up.
        mixing_levels: Option<usize> = None, [0, 10];
        /// Number of trees whose sum is the model. Trees after the first are added one by one to
        /// what the others leave, and all are trained together after each.
        n_estimators: usize = 1, [1, 50];
        /// Number of rounds of structure moves after training: busy leaves split, idle nodes are
        /// removed, and the new tree is trained further. A round that does not raise the
        /// log-likelihood of the validation rows (the ELBO without validation rows) is undone. A sum
        /// of trees has no moves.
        n_moves: usize = 1, [0, 20];
        /// Inverse temperature of the gates. Larger values give sharper splits under the same prior
        /// on the weights.
        beta: f64 = 1.0, [0.01, 100.0];
        /// Rank of the low-rank part of the posterior covariance of each rule and each leaf. 0 means
        /// independent weights, as in the paper; larger values model correlations within a node and
        /// take longer.
        rank: usize = 0, [0, 1000];
        /// Temperature of the relaxed split indicators at the beginning of training.
        initial_temperature: f64 = 1.0, [0.01, 10.0];
        /// Temperature of the relaxed split indicators after 70% of training. Predictions use hard
        /// indicators.
        temperature: f64 = 0.1, [0.01, 10.0];
        /// KL divergence in the objective: `closed-form`, or the paper's `single-draw` estimate,
        /// which has more variance and needs `rank` = 0.
        kl_estimate: KlEstimate = KlEstimate::ClosedForm;
        /// Whether the objective has the `sum` of the log-likelihoods of the rows (with `kl_weight`
        /// 1 it is the ELBO) or their `mean`.
        reduction: LikelihoodReduction = LikelihoodReduction::Sum;
        use soft_prior;
        use soft_training;
        /// Number of passes over the training rows; auto: about 12000 optimiser steps, but 40 to
        /// 1500 epochs.
        n_epochs: Option<usize> = None, [1, 1_000_000];
        use soft_draws;
        /// Number of fits whose posteriors are averaged: of the candidates near the best on the
        /// validation set, in turn, each with other validation rows. More fits predict better and
        /// take longer in proportion; auto: 8 below 500 rows, else 4.
        n_fits: Option<usize> = None, [1, 100];
        /// Whether the noise scale is calibrated: by a factor from the validation rows, and by a
        /// correction for the average of several fits.
        calibrate_noise: bool = true;
        use soft_members;
        use soft_inputs;
        /// Known standard deviation of the noise for regression, in the units of the target; auto:
        /// learned.
        noise_scale: Option<f64> = None, [1e-12, 1e12];
        use away_from_data;
    }
}

impl VartParams {
    /// The problem with parameters of which one excludes the other, if there is one.
    fn conflict(&self) -> Option<String> {
        if let Some(start) = self.start_depth.filter(|&start| start > self.max_depth) {
            return Some(format!(
                "`start_depth` = {start} exceeds `max_depth` = {}",
                self.max_depth
            ));
        }
        if self.initial_temperature < self.temperature {
            return Some(format!(
                "`initial_temperature` = {} is below `temperature` = {}",
                self.initial_temperature, self.temperature
            ));
        }
        if self.kl_estimate == KlEstimate::SingleDraw && self.rank > 0 {
            return Some("`kl_estimate` = single-draw needs `rank` = 0".to_owned());
        }
        if self.n_estimators > 1 && !matches!(self.leaf_mixing, None | Some(LeafMixing::Blend)) {
            return Some("`n_estimators` above 1 needs `leaf_mixing` = blend".to_owned());
        }
        check_mixing_levels(self.mixing_levels, self.leaf_mixing, self.fixed_depth())
            .map(|problem| problem.replace("max_depth", "start_depth"))
    }

    /// Initial depth, if there is no choice.
    fn fixed_depth(&self) -> Option<usize> {
        self.start_depth
            .or((self.max_depth <= 1).then_some(self.max_depth))
    }

    /// Number of fits on this number of rows.
    pub(super) fn n_fits(&self, n_rows: usize) -> usize {
        let default = if n_rows < MANY_ROWS {
            N_FITS_OF_FEW_ROWS
        } else {
            N_FITS
        };
        self.n_fits.unwrap_or(default).min(self.n_members)
    }

    /// Initial logit of the probability of a split.
    pub(super) fn initial_logit(&self) -> f32 {
        (self.initial_split / (1.0 - self.initial_split)).ln() as f32
    }

    pub(super) fn split_prior(&self) -> SplitPrior {
        SplitPrior {
            base: self.split_prior,
            power: self.split_power,
        }
    }

    /// Factor of the KL divergence beside the sum of the log-likelihoods.
    pub(super) fn kl_factor(&self, total_weight: f64) -> f64 {
        match self.reduction {
            LikelihoodReduction::Sum => self.kl_weight,
            LikelihoodReduction::Mean => self.kl_weight * total_weight,
        }
    }

    pub(super) fn config(&self) -> SoftTreeConfig {
        let leaf_mixing = if self.n_estimators > 1 {
            Some(LeafMixing::Blend)
        } else {
            self.leaf_mixing
        };
        with_groups!(self, [soft_prior, soft_training, soft_inputs] => SoftTreeConfig {
            depth: self.fixed_depth(),
            max_depth: self.max_depth,
            leaf: self.leaf_model,
            leaf_mixing,
            mixing_levels: self.mixing_levels,
            prefers_blend: false,
            homoscedastic_warmup: false,
            beta: self.beta,
            rank: self.rank,
            n_epochs: self.n_epochs,
            n_draws: self.n_draws,
            noise: self.noise_scale.map_or(NoiseSpec::Varying, NoiseSpec::Known),
        })
    }
}
