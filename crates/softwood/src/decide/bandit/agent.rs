//! A bandit agent: it chooses arms, observes rewards, and fits its models again at growing intervals.

use crate::data::dataset::Dataset;
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::Target;
use crate::decide::bandit::arm_draws::DrawPairs;
use crate::decide::bandit::refits::RefitRun;
use crate::decide::bandit::reward_model::{RewardDraws, RewardModel, with_arm};
use crate::decide::bandit::settings::{AgentSettings, ArmPooling, BanditPolicy};
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::par::Pool;
use crate::rng::Key;

/// Contexts that are predicted at a time.
const BLOCK: usize = 512;
/// Largest magnitude of a reward: squares and sums stay in range.
pub(super) const MAX_REWARD: f64 = 1e150;
/// Names of the reward and of the arm in the tables of the reward models; underscores are added if a
/// context has such a column.
pub(super) const REWARD: &str = "reward";
pub(super) const ARM: &str = "arm";

/// Random streams of an agent.
pub(super) mod streams {
    pub(super) const CHOICES: u64 = 0;
    pub(in crate::decide::bandit) const FITS: u64 = 1;
    pub(super) const PAIRS: u64 = 2;
}

/// The arm that an agent chose.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArmChoice {
    /// Index of the arm.
    pub arm: usize,
    /// Probability with which this arm was chosen, for estimates from logged choices.
    pub propensity: f64,
    /// Predicted mean reward of each arm; empty before the first fit and for random choices.
    pub means: Vec<f64>,
}

/// The reward of a chosen arm.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ArmOutcome {
    /// Index of the arm.
    pub arm: usize,
    /// Its reward.
    pub reward: f64,
    /// Probability with which the arm was chosen; `None` if it is not known.
    pub propensity: Option<f64>,
}

impl ArmOutcome {
    /// The reward of an arm that was chosen with unknown probability.
    pub fn new(arm: usize, reward: f64) -> Self {
        Self {
            arm,
            reward,
            propensity: None,
        }
    }

    /// The same outcome with the probability of its choice.
    #[must_use]
    pub fn with_propensity(self, propensity: f64) -> Self {
        Self {
            propensity: Some(propensity),
            ..self
        }
    }
}

/// Chooses arms by the predictive distributions of their rewards.
#[derive(Debug)]
pub struct BanditAgent {
    pub(super) settings: AgentSettings,
    pub(super) arms: Vec<String>,
    pub(super) key: Key,
    /// Contexts and rewards so far.
    pub(super) history: Option<Dataset>,
    /// Arm of each row of the history.
    pub(super) chosen: Vec<u32>,
    /// Propensity of each row of the history; NaN where it is not known.
    pub(super) propensities: Vec<f64>,
    /// One per arm, or a single one for all arms; empty before the first fit.
    pub(super) models: Vec<RewardModel>,
    /// Number of rows that each model was fitted to.
    pub(super) n_fitted: Vec<usize>,
    /// Number of observations at which models are fitted next.
    pub(super) next_refit: usize,
    pub(super) n_refits: usize,
    pub(super) n_choices: u64,
}

impl BanditAgent {
    /// An agent without experience. Every random number comes from `key`.
    ///
    /// # Errors
    /// When a setting is out of range or there are fewer than two arms or two of the same name.
    pub fn new(settings: AgentSettings, arms: Vec<String>, key: Key) -> Result<Self> {
        settings.check()?;
        let mut names: Vec<&String> = arms.iter().collect();
        names.sort_unstable();
        let repeated = names.windows(2).find(|pair| pair.first() == pair.last());
        if let Some(name) = repeated.and_then(<[_]>::first) {
            return Err(Error::Parameters(vec![format!(
                "`arms`: two arms are called `{name}`; names must differ"
            )]));
        }
        if arms.len() < 2 {
            return Err(Error::Parameters(vec![format!(
                "`arms`: {} arms; expected at least two",
                arms.len()
            )]));
        }
        Ok(Self {
            next_refit: settings.n_initial.saturating_mul(arms.len()),
            settings,
            arms,
            key,
            history: None,
            chosen: Vec::new(),
            propensities: Vec::new(),
            models: Vec::new(),
            n_fitted: Vec::new(),
            n_refits: 0,
            n_choices: 0,
        })
    }

    /// Names of the arms.
    pub fn arms(&self) -> &[String] {
        &self.arms
    }

    /// Settings of the agent.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// Number of observed rewards.
    pub fn n_observed(&self) -> usize {
        self.chosen.len()
    }

    /// Number of times that models were fitted.
    pub fn n_refits(&self) -> usize {
        self.n_refits
    }

    /// Number of further observations until models are fitted again.
    pub fn n_until_refit(&self) -> usize {
        self.next_refit.saturating_sub(self.n_observed()).max(1)
    }

    /// Observed contexts and rewards; `None` before the first one.
    pub fn history(&self) -> Option<&Dataset> {
        self.history.as_ref()
    }

    /// Arm and propensity of each observation; a propensity that is not known is NaN.
    pub fn log(&self) -> (&[u32], &[f64]) {
        (&self.chosen, &self.propensities)
    }

    /// Chooses an arm for each row of a table of contexts.
    ///
    /// # Errors
    /// When the columns are not those of the observed contexts.
    pub fn choose(&mut self, contexts: &Table, pool: &Pool) -> Result<Vec<ArmChoice>> {
        let decisions = self.decisions(contexts, pool)?;
        let choice = |(probabilities, means): (Vec<f64>, Vec<f64>)| {
            let key = self.key.child(streams::CHOICES).child(self.n_choices);
            self.n_choices = self.n_choices.wrapping_add(1);
            let arm = drawn(&probabilities, key.uniforms(1)[0]);
            ArmChoice {
                arm,
                propensity: probabilities[arm],
                means,
            }
        };
        Ok(decisions.into_iter().map(choice).collect())
    }

    /// The probability with which each arm would be chosen for each row (row-major, rows x arms).
    ///
    /// # Errors
    /// As [`BanditAgent::choose`].
    pub fn probabilities(&self, contexts: &Table, pool: &Pool) -> Result<Vec<f64>> {
        let decisions = self.decisions(contexts, pool)?;
        Ok(decisions.into_iter().flat_map(|(p, _)| p).collect())
    }

    /// Probabilities and predicted means of the arms for each row.
    fn decisions(&self, contexts: &Table, pool: &Pool) -> Result<Vec<(Vec<f64>, Vec<f64>)>> {
        let n_rows = contexts.n_rows();
        if let (Some(history), true) = (&self.history, n_rows > 0) {
            // constant rewards and random choices do not look at the columns
            history.schema().align(&contexts.take(&[0]))?;
        }
        let n_arms = self.arms.len();
        if self.models.is_empty() || self.settings.policy == BanditPolicy::Uniform {
            let uniform = vec![1.0 / n_arms as f64; n_arms];
            return Ok(vec![(uniform, Vec::new()); n_rows]);
        }
        let pairs = self.pairs();
        let rows: Vec<usize> = (0..n_rows).collect();
        let mut decisions = Vec::with_capacity(n_rows);
        for rows in rows.chunks(BLOCK) {
            let draws = self.arm_draws(&contexts.take(rows), pool)?;
            decisions.extend((0..rows.len()).map(|row| self.decision(&draws, &pairs, row)));
        }
        Ok(decisions)
    }

    /// Probabilities and means of the arms on a row of a block.
    fn decision(
        &self,
        draws: &[RewardDraws],
        pairs: &DrawPairs,
        row: usize,
    ) -> (Vec<f64>, Vec<f64>) {
        let mean = |draws: &RewardDraws| draws.row(row).iter().sum::<f64>() / draws.n_draws as f64;
        let means: Vec<f64> = draws.iter().map(mean).collect();
        let probabilities = match self.settings.policy {
            BanditPolicy::Thompson => pairs.probabilities(draws, row),
            BanditPolicy::EpsilonGreedy { epsilon } => greedy(&means, epsilon),
            BanditPolicy::Uniform => vec![1.0 / means.len() as f64; means.len()],
        };
        (probabilities, means)
    }

    /// Rewards of every arm under every draw.
    fn arm_draws(&self, contexts: &Table, pool: &Pool) -> Result<Vec<RewardDraws>> {
        // contexts may have more columns than the observed ones, also one of the name of the arms
        let observed = self.history.as_ref().map_or(contexts, Dataset::features);
        let name = unused_name(observed, ARM);
        let draws = |arm: usize| match self.settings.pooling {
            ArmPooling::PerArm => self.models[arm].draws(contexts, pool),
            ArmPooling::ArmColumn => {
                let arm = vec![arm as u32; contexts.n_rows()];
                self.models[0].draws(&with_arm(contexts, &name, &self.arms, &arm)?, pool)
            }
        };
        (0..self.arms.len()).map(draws).collect()
    }

    fn pairs(&self) -> DrawPairs {
        match self.settings.pooling {
            ArmPooling::PerArm => {
                let n_draws: Vec<usize> = self.models.iter().map(RewardModel::n_draws).collect();
                let key = self.key.child(streams::PAIRS).child(self.n_refits as u64);
                DrawPairs::independent(&n_draws, key)
            }
            ArmPooling::ArmColumn => DrawPairs::shared(self.arms.len(), self.models[0].n_draws()),
        }
    }

    /// Records rewards, one for each row of `contexts`, and fits the models again if it is time.
    ///
    /// # Errors
    /// When there is not one outcome per row, an arm does not exist, a reward or a propensity is not
    /// valid, or the columns are not those of earlier contexts: nothing is recorded then. When a fit
    /// fails or is stopped: the rewards are recorded then, and the next observation tries again.
    pub fn observe(
        &mut self,
        contexts: &Table,
        outcomes: &[ArmOutcome],
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<()> {
        self.check_outcomes(contexts, outcomes)?;
        if outcomes.is_empty() {
            return Ok(());
        }
        self.record(contexts, outcomes)?;
        if self.n_observed() >= self.next_refit {
            self.fit_models(&RefitRun {
                is_forced: false,
                pool,
                observer,
            })?;
        }
        Ok(())
    }

    fn check_outcomes(&self, contexts: &Table, outcomes: &[ArmOutcome]) -> Result<()> {
        if contexts.n_rows() != outcomes.len() {
            return Err(Error::Table(format!(
                "{} outcomes for {} contexts; expected one for each",
                outcomes.len(),
                contexts.n_rows()
            )));
        }
        for (row, outcome) in outcomes.iter().enumerate() {
            if outcome.arm >= self.arms.len() {
                return Err(Error::Table(format!(
                    "row {}: there is no arm {}; there are {} arms, the first of which is 0",
                    row + 1,
                    outcome.arm,
                    self.arms.len()
                )));
            }
            if let Some(problem) = self.reward_problem(outcome.reward) {
                return Err(Error::cell(REWARD, row + 1, problem));
            }
            if let Some(propensity) = outcome.propensity
                && !(propensity > 0.0 && propensity <= 1.0)
            {
                return Err(Error::cell(
                    "propensity",
                    row + 1,
                    format!("{propensity} is not a probability above 0"),
                ));
            }
        }
        Ok(())
    }

    /// Why a reward cannot be used.
    pub(super) fn reward_problem(&self, reward: f64) -> Option<String> {
        let is_zero_or_one = reward.abs() <= 0.0 || (reward - 1.0).abs() <= 0.0;
        if !reward.is_finite() {
            Some(format!("{reward} is not a finite number"))
        } else if reward.abs() > MAX_REWARD {
            Some(format!(
                "{reward} is larger than {MAX_REWARD:e} in magnitude"
            ))
        } else if self.settings.classify && !is_zero_or_one {
            Some(format!(
                "{reward} is neither 0 nor 1, and rewards are classes"
            ))
        } else {
            None
        }
    }

    fn record(&mut self, contexts: &Table, outcomes: &[ArmOutcome]) -> Result<()> {
        let rewards = outcomes.iter().map(|outcome| outcome.reward).collect();
        let target = Target::Numeric(rewards);
        if let Some(history) = &mut self.history {
            let schema = Schema::of(contexts, &history.schema().target, Task::Regression);
            history.append(&Dataset::new(schema, contexts.clone(), target, None)?)?;
        } else {
            let schema = Schema::of(contexts, unused_name(contexts, REWARD), Task::Regression);
            self.history = Some(Dataset::new(schema, contexts.clone(), target, None)?);
        }
        for outcome in outcomes {
            self.chosen.push(outcome.arm as u32);
            self.propensities
                .push(outcome.propensity.unwrap_or(f64::NAN));
        }
        Ok(())
    }

    /// Fits the models to all rewards so far. [`BanditAgent::observe`] does this at growing intervals, for the
    /// arms that need it.
    ///
    /// # Errors
    /// When a fit fails or the observer stops it; the earlier models stay.
    pub fn refit(&mut self, pool: &Pool, observer: &dyn Observer) -> Result<()> {
        self.fit_models(&RefitRun {
            is_forced: true,
            pool,
            observer,
        })
    }
}

/// The name, with underscores until no column has it.
pub(super) fn unused_name(table: &Table, name: &str) -> String {
    let mut name = name.to_owned();
    while table.names().any(|other| other == name) {
        name.push('_');
    }
    name
}

/// The probability of each arm if the best mean is taken but for a random arm with probability
/// `epsilon`.
fn greedy(means: &[f64], epsilon: f64) -> Vec<f64> {
    let mut probabilities = vec![epsilon / means.len() as f64; means.len()];
    let mut best = 0;
    for (arm, mean) in means.iter().enumerate() {
        if *mean > means[best] {
            best = arm;
        }
    }
    probabilities[best] += 1.0 - epsilon;
    probabilities
}

/// The arm at a uniform number; an arm of probability 0 is never chosen.
fn drawn(probabilities: &[f64], uniform: f64) -> usize {
    let mut below = 0.0;
    let mut last = 0;
    for (arm, probability) in probabilities.iter().enumerate() {
        if *probability > 0.0 {
            last = arm;
            below += probability;
            if uniform < below {
                return arm;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn greedy_probabilities_leave_epsilon_to_all_arms() {
        close(&greedy(&[0.0, 2.0, 1.0], 0.3), &[0.1, 0.8, 0.1], 1e-12);
    }

    #[test]
    fn arms_are_drawn_by_their_probabilities() {
        let probabilities = [0.25, 0.0, 0.75];
        assert_eq!(drawn(&probabilities, 0.0), 0);
        assert_eq!(drawn(&probabilities, 0.24), 0);
        assert_eq!(drawn(&probabilities, 0.25), 2);
        assert_eq!(drawn(&probabilities, 1.0), 2);
    }
}
