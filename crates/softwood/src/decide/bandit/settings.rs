//! Settings of a bandit agent: what predicts rewards, how arms are chosen, and when models are
//! fitted again.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::models::{Family, ModelSpec};

/// Name of the agent that chooses at random.
const UNIFORM: &str = "uniform";
/// Name of the agent with Bayesian linear regressions.
const LINEAR: &str = "linear";
/// Prefix of the name of an agent that takes the largest mean instead of a draw.
const GREEDY: &str = "greedy-";

/// What predicts the reward of an arm.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RewardFamily {
    /// A model family with its parameters.
    Family(Box<ModelSpec>),
    /// Bayesian linear regression with a conjugate prior.
    Linear,
    /// Nothing: for agents that do not look at rewards.
    Nothing,
}

/// How an arm is chosen from the predictions of all arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BanditPolicy {
    /// Thompson sampling: the arm with the largest reward under one draw of all reward functions.
    Thompson,
    /// The arm with the largest predicted mean, or with probability `epsilon` a random arm.
    EpsilonGreedy {
        /// Probability of a random arm.
        epsilon: f64,
    },
    /// A random arm.
    Uniform,
}

/// Whether arms have models of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ArmPooling {
    /// One model per arm.
    PerArm,
    /// One model of all arms, which has the arm as a categorical column.
    ArmColumn,
}

/// Settings of a bandit agent. The constructors give the defaults; fields can be changed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentSettings {
    /// What predicts rewards.
    pub rewards: RewardFamily,
    /// How an arm is chosen.
    pub policy: BanditPolicy,
    /// One model per arm, or one for all arms.
    pub pooling: ArmPooling,
    /// Whether rewards are 0 or 1 and a classifier predicts the probability of 1.
    pub classify: bool,
    /// Number of random choices per arm before models choose.
    pub n_initial: usize,
    /// A model is fitted again when the number of its rewards has grown by this factor, or earlier if new
    /// rewards are far from its predictions. Linear models take no time: they are fitted whenever
    /// the number of all rewards has grown by a tenth.
    pub refit_growth: f64,
    /// Smallest number of observed rewards between two fits.
    pub min_refit_interval: usize,
    /// Whether models are trained further instead of fitted anew, where the family supports that and
    /// the rows are at most one and a half times those of the last fit from scratch. `None`: where
    /// training further is short.
    pub warm_start: Option<bool>,
}

impl AgentSettings {
    /// Thompson sampling with a model family.
    pub fn thompson(spec: ModelSpec) -> Self {
        Self::with(RewardFamily::Family(Box::new(spec)), BanditPolicy::Thompson)
    }

    /// Thompson sampling with Bayesian linear regressions.
    pub fn linear() -> Self {
        Self::with(RewardFamily::Linear, BanditPolicy::Thompson)
    }

    /// Random choices.
    pub fn uniform() -> Self {
        Self::with(RewardFamily::Nothing, BanditPolicy::Uniform)
    }

    fn with(rewards: RewardFamily, policy: BanditPolicy) -> Self {
        Self {
            rewards,
            policy,
            pooling: ArmPooling::PerArm,
            classify: false,
            n_initial: 3,
            refit_growth: 1.3,
            min_refit_interval: 10,
            warm_start: None,
        }
    }

    /// Settings by the name of an agent: `uniform`, `linear`, a model family (Thompson sampling), or
    /// `greedy-` before `linear` or a family. `pairs` are parameters of the family.
    ///
    /// # Errors
    /// When there is no such agent, or a parameter is unknown or out of range.
    pub fn named(name: &str, pairs: &[(String, String)]) -> Result<Self> {
        let (greedy, name) = match name.strip_prefix(GREEDY) {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let mut settings = match name {
            UNIFORM | LINEAR if !pairs.is_empty() => {
                return Err(Error::Parameters(vec![format!(
                    "the agent `{name}` has no parameter `{}`",
                    pairs[0].0
                )]));
            }
            UNIFORM if !greedy => Self::uniform(),
            LINEAR => Self::linear(),
            name => Self::thompson(family(name)?.params(pairs)?),
        };
        if greedy {
            settings.policy = BanditPolicy::EpsilonGreedy { epsilon: 0.05 };
        }
        Ok(settings)
    }

    /// The name of the agent, as [`AgentSettings::named`] takes it.
    pub fn name(&self) -> String {
        let rewards = match &self.rewards {
            RewardFamily::Family(spec) => spec.family().name(),
            RewardFamily::Linear => LINEAR,
            RewardFamily::Nothing => UNIFORM,
        };
        match self.policy {
            BanditPolicy::EpsilonGreedy { .. } => format!("{GREEDY}{rewards}"),
            BanditPolicy::Thompson | BanditPolicy::Uniform => rewards.to_owned(),
        }
    }

    /// Returns an error that names every setting that is out of range.
    pub(super) fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        let mut require = |is_valid: bool, problem: String| {
            if !is_valid {
                problems.push(problem);
            }
        };
        require(
            (1..=1_000_000).contains(&self.n_initial),
            format!("`n_initial` is {}; expected 1 to 1000000", self.n_initial),
        );
        require(
            self.refit_growth >= 1.0 && self.refit_growth <= 1e6,
            format!(
                "`refit_growth` is {}; expected a number from 1 to 1e6",
                self.refit_growth
            ),
        );
        require(
            (1..=1_000_000_000).contains(&self.min_refit_interval),
            format!(
                "`min_refit_interval` is {}; expected 1 to 1e9",
                self.min_refit_interval
            ),
        );
        if let BanditPolicy::EpsilonGreedy { epsilon } = self.policy {
            require(
                (0.0..=1.0).contains(&epsilon),
                format!("`epsilon` is {epsilon}; expected a number from 0 to 1"),
            );
        }
        let needs_rewards = self.policy != BanditPolicy::Uniform;
        require(
            !(needs_rewards && self.rewards == RewardFamily::Nothing),
            "only the uniform policy works without a model of the rewards".to_owned(),
        );
        if let (RewardFamily::Family(spec), true) = (&self.rewards, self.classify) {
            require(
                spec.family().supports_classes(),
                format!(
                    "`{}` predicts numbers only; use another model or leave rewards numeric",
                    spec.family().name()
                ),
            );
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::Parameters(problems))
        }
    }
}

/// The family of an agent's name.
fn family(name: &str) -> Result<Family> {
    Family::from_name(name).map_err(|error| {
        Error::Parameters(vec![format!(
            "no agent is called `{name}`: agents are `{UNIFORM}`, `{LINEAR}`, the models, and `{GREEDY}` before \
             `{LINEAR}` or a model; {error}"
        )])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["uniform", "linear", "vst", "greedy-linear", "greedy-tree"] {
            assert_eq!(AgentSettings::named(name, &[]).unwrap().name(), name);
        }
        let error = AgentSettings::named("vxt", &[]).unwrap_err().to_string();
        assert!(error.contains("vxt") && error.contains("linear"), "{error}");
        assert!(AgentSettings::named("greedy-uniform", &[]).is_err());
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let settings = AgentSettings {
            n_initial: 0,
            refit_growth: 0.5,
            ..AgentSettings::linear()
        };
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains("n_initial") && error.contains("refit_growth"));
    }
}
