//! The configuration that the parameters of both boosted families are turned into.

use serde::{Deserialize, Serialize};

use crate::boosting::inputs::{BoostingSettings, Patience};
use crate::boosting::langevin::Sampling;
use crate::likelihood::NoiseModel;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::params::{
    GrowPolicy, SgbParams, SglbParams, boosted_trees, boosted_validation,
};
use crate::params::{ClassWeight, Directions, with_groups};
use crate::trees::histogram::grower::Limits;
use crate::trees::param_groups::{hard_bins, hard_min_scale};

/// Patience of a Langevin chain: the rounds after its best point outnumber those before it by 200.
const LANGEVIN_PATIENCE: Patience = Patience {
    fraction: 1.0,
    rounds: 200,
};

/// Patience of a candidate for three classes or more, in rounds times the learning rate.
const MULTICLASS_PATIENCE: f64 = 4.0;
/// Default fraction of the rows that the splits of a tree are chosen on.
const SUBSAMPLE: f64 = 0.5;
/// Total weight below which the trees of a Langevin classifier are grown on a part of the rows too.
const SUBSAMPLED_WEIGHT: f64 = 5000.0;
/// Default temperature of the Langevin noise for classification.
const CLASS_TEMPERATURE: f64 = 0.1;

/// Number of ensemble members, and the chains that they are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Members {
    /// Number of members.
    pub(super) total: usize,
    /// Number of chains; the members are distributed evenly among them.
    pub(super) chains: usize,
    /// Fraction of a chain before its first member, if the chain has several members.
    pub(super) burn_in: f64,
}

/// Learning rate and maximum depth of the trees. Model files store them as an array of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, usize)", into = "(f64, usize)")]
pub(super) struct Hyperparameters {
    pub(super) learning_rate: f64,
    pub(super) max_depth: usize,
}

impl From<(f64, usize)> for Hyperparameters {
    fn from((learning_rate, max_depth): (f64, usize)) -> Self {
        Self {
            learning_rate,
            max_depth,
        }
    }
}

impl From<Hyperparameters> for (f64, usize) {
    fn from(hyperparameters: Hyperparameters) -> Self {
        (hyperparameters.learning_rate, hyperparameters.max_depth)
    }
}

/// Checked parameters of a boosted family; the fields of shared parameters have the names of the
/// parameters. A learning rate, a depth or category crosses of `None` are selected on the
/// validation set.
#[derive(Debug, Clone)]
pub(super) struct BoostingConfig {
    pub(super) family: &'static str,
    pub(super) n_estimators: usize,
    pub(super) learning_rate: Option<f64>,
    pub(super) max_depth: Option<usize>,
    pub(super) grow_policy: GrowPolicy,
    pub(super) max_leaf_nodes: usize,
    pub(super) l2_regularization: f64,
    pub(super) min_child_weight: f64,
    /// Fraction of the rows that splits are chosen on; `None`: [`Self::with_defaults`].
    pub(super) subsample: Option<f64>,
    pub(super) colsample_bytree: f64,
    pub(super) max_bins: usize,
    pub(super) category_crosses: Option<bool>,
    pub(super) noise: NoiseModel,
    pub(super) monotonic_cst: Option<Directions>,
    pub(super) class_weight: Option<ClassWeight>,
    pub(super) sampling: Sampling,
    /// Temperature of the Langevin noise; `None`: [`Self::with_defaults`].
    pub(super) temperature: Option<f64>,
    /// Model shrink rate; `None`: [`BoostingLikelihood::shrink_rate`].
    pub(super) shrink_rate: Option<f64>,
    pub(super) members: Members,
    /// Trees without a better validation score after which to stop.
    pub(super) patience: Option<usize>,
    pub(super) validation_fraction: f64,
    /// Whether chains leave out rows by which the noise of a regression is calibrated.
    pub(super) calibrate_noise: bool,
    /// Floor of the standard deviation in standard units; `None`: by the resolution of the target.
    pub(super) min_scale: Option<f64>,
}

impl From<&SgbParams> for BoostingConfig {
    fn from(params: &SgbParams) -> Self {
        with_groups!(params, [boosted_trees, boosted_validation, hard_min_scale] => BoostingConfig {
            family: "sgb",
            sampling: Sampling::Off,
            temperature: Some(1.0),
            shrink_rate: Some(0.0),
            members: Members {
                total: params.n_members,
                chains: params.n_members,
                burn_in: 0.0,
            },
            patience: params.early_stopping_rounds,
        })
    }
}

impl From<&SglbParams> for BoostingConfig {
    fn from(params: &SglbParams) -> Self {
        let chains = if params.virtual_ensemble {
            params.n_chains.unwrap_or(1).min(params.n_members)
        } else {
            params.n_members
        };
        with_groups!(params, [boosted_trees, boosted_validation, hard_min_scale] => BoostingConfig {
            family: "sglb",
            sampling: params.langevin_noise.into(),
            temperature: params.langevin_temperature,
            shrink_rate: params.model_shrink_rate,
            members: Members {
                total: params.n_members,
                chains,
                burn_in: params.burn_in,
            },
            patience: None,
        })
    }
}

impl BoostingConfig {
    /// Whether a regression model has one noise variance for all rows.
    pub(super) fn has_constant_noise(&self) -> bool {
        self.noise == NoiseModel::Constant
    }

    /// Whether trees are grown on random subsets of the rows or columns.
    pub(super) fn has_subsampling(&self) -> bool {
        self.subsample.is_some_and(|fraction| fraction < 1.0) || self.colsample_bytree < 1.0
    }

    /// The parameters with defaults of `subsample` and `temperature` for rows of this total weight.
    ///
    /// The noise of a Langevin chain makes members differ, and all rows give better splits. But with few
    /// rows and the small noise of classification, members that choose splits on different rows have a
    /// better mean. At temperature 1 the logits of nearly separable classes are almost without bounds, and
    /// the mean over a few members is far from that over many.
    pub(super) fn with_defaults(self, likelihood: BoostingLikelihood, total_weight: f64) -> Self {
        let is_classification = likelihood.is_classification();
        let is_small = is_classification && total_weight < SUBSAMPLED_WEIGHT;
        let subsample = match self.sampling {
            Sampling::Off => SUBSAMPLE,
            _ if is_small => SUBSAMPLE,
            _ => 1.0,
        };
        let is_cold = is_classification && self.sampling.has_leaf_noise();
        let temperature = if is_cold { CLASS_TEMPERATURE } else { 1.0 };
        Self {
            subsample: self.subsample.or(Some(subsample)),
            temperature: self.temperature.or(Some(temperature)),
            ..self
        }
    }

    /// When the training of a candidate stops. Without Langevin noise only many classes, whose
    /// rounds are expensive, and `early_stopping_rounds` stop it before the last round.
    fn patience_of(
        &self,
        likelihood: BoostingLikelihood,
        hyperparameters: Hyperparameters,
    ) -> Option<Patience> {
        if let Some(rounds) = self.patience {
            return Some(Patience {
                fraction: 0.0,
                rounds,
            });
        }
        match likelihood {
            BoostingLikelihood::Multiclass { .. } => Some(Patience {
                fraction: 0.5,
                rounds: (MULTICLASS_PATIENCE / hyperparameters.learning_rate) as usize,
            }),
            _ if self.sampling != Sampling::Off => Some(LANGEVIN_PATIENCE),
            _ => None,
        }
    }

    /// Settings of a chain that is trained on rows of total weight `total_weight`.
    pub(super) fn settings(
        &self,
        likelihood: BoostingLikelihood,
        hyperparameters: Hyperparameters,
        total_weight: f64,
    ) -> BoostingSettings {
        BoostingSettings {
            n_trees: self.n_estimators,
            learning_rate: hyperparameters.learning_rate,
            l2: self.l2_regularization,
            min_child_weight: self.min_child_weight,
            limits: Limits {
                growth: self.grow_policy.into(),
                max_depth: hyperparameters.max_depth,
                max_leaves: if self.grow_policy == GrowPolicy::Leafwise {
                    self.max_leaf_nodes
                } else {
                    usize::MAX
                },
            },
            subsample: self.subsample.unwrap_or(1.0),
            colsample: self.colsample_bytree,
            sampling: self.sampling,
            temperature: self.temperature.unwrap_or(1.0),
            shrink_rate: self
                .shrink_rate
                .unwrap_or(likelihood.shrink_rate(total_weight)),
            patience: self.patience_of(likelihood, hyperparameters),
        }
    }
}

impl Members {
    /// The members of a model that keeps the first `n` chains.
    pub(super) fn of_chains(self, n: usize) -> Self {
        Self {
            total: (self.total * n / self.chains).max(n),
            chains: n,
            ..self
        }
    }

    /// Number of trees of each member of chain `chain`, ascending; the last member is the whole
    /// chain.
    pub(super) fn snapshots(&self, n_trees: usize, chain: usize) -> Vec<usize> {
        let n = self.total / self.chains + usize::from(chain < self.total % self.chains);
        let first = (self.burn_in * n_trees as f64).floor() as usize;
        // members have equal distances after the burn-in; short chains repeat their first members
        let period = ((n_trees - first) / n.max(1)).max(1);
        (0..n)
            .map(|j| n_trees.saturating_sub(period * (n - 1 - j)).max(1))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_members_have_the_numbers_of_trees_of_the_paper() {
        let members = Members {
            total: 10,
            chains: 1,
            burn_in: 0.5,
        };
        let expected: Vec<usize> = (1..=10).map(|j| 500 + 50 * j).collect();
        assert_eq!(members.snapshots(1000, 0), expected);
        let shared = Members {
            chains: 4,
            ..members
        };
        let n: Vec<usize> = (0..4)
            .map(|chain| shared.snapshots(1000, chain).len())
            .collect();
        assert_eq!(n, [3, 3, 2, 2]);
    }
}
