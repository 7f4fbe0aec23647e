//! A bandit agent: it chooses arms, observes rewards, and fits its models again at growing intervals.

use crate::data::dataset::Dataset;
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::Target;
use crate::decide::bandit::arm_draws::DrawPairs;
use crate::decide::bandit::linear::LinearRewards;
use crate::decide::bandit::reward_model::{
    ConstantReward, N_DRAWS, RewardDraws, RewardFit, RewardModel, with_arm,
};
use crate::decide::bandit::settings::{AgentSettings, ArmPooling, BanditPolicy};
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::par::Pool;
use crate::rng::Key;

/// Contexts that are predicted at a time.
const BLOCK: usize = 512;
/// Predictions are compared with new rewards when the number of rewards has grown by this factor.
const CHECK_GROWTH: f64 = 1.1;
/// Largest magnitude of a reward: squares and sums stay in range.
const MAX_REWARD: f64 = 1e150;
/// Names of the reward and of the arm in the tables of the reward models; underscores are added if a
/// context has such a column.
const REWARD: &str = "reward";
const ARM: &str = "arm";

/// Random streams of an agent.
mod streams {
    pub(super) const CHOICES: u64 = 0;
    pub(super) const FITS: u64 = 1;
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
    fn reward_problem(&self, reward: f64) -> Option<String> {
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

    fn fit_models(&mut self, run: &RefitRun<'_>) -> Result<()> {
        let Some(history) = &self.history else {
            return Ok(());
        };
        if self.settings.policy != BanditPolicy::Uniform {
            let (models, n_fitted) = match self.settings.pooling {
                ArmPooling::PerArm => self.fit_arms(history, run)?,
                ArmPooling::ArmColumn => self.fit_all(history, run)?,
            };
            let fitted = models.iter().zip(&n_fitted);
            let has_fitted = fitted
                .into_iter()
                .any(|(model, &n)| model.is_some() && n > 0);
            self.n_refits = self.n_refits.saturating_add(usize::from(has_fitted));
            // models that are not due keep their place
            for (arm, model) in models.into_iter().enumerate() {
                match model {
                    Some(model) if arm < self.models.len() => self.models[arm] = model,
                    Some(model) => self.models.push(model),
                    None => {}
                }
            }
            self.n_fitted = n_fitted;
        }
        let n = self.n_observed();
        let growth = self.settings.refit_growth.min(CHECK_GROWTH);
        let grown = (n as f64 * growth).ceil() as usize;
        self.next_refit = grown.max(n.saturating_add(self.settings.min_refit_interval));
        Ok(())
    }

    /// The linear model of an arm, or of all arms, as it was fitted; `None` if it has no such rows.
    pub(super) fn linear_again(&self, at: usize) -> Result<Option<RewardModel>> {
        let Some(history) = &self.history else {
            return Ok(None);
        };
        let n_rows = self.n_fitted[at];
        let rows = match self.settings.pooling {
            ArmPooling::PerArm => self.rows_of(at),
            ArmPooling::ArmColumn => (0..self.n_observed()).collect(),
        };
        let Some(rows) = rows.get(..n_rows).filter(|rows| !rows.is_empty()) else {
            return Ok(None);
        };
        let data = match self.settings.pooling {
            ArmPooling::PerArm => history.take(rows),
            ArmPooling::ArmColumn => self.with_arms(history)?.take(rows),
        };
        let key = self.fit_key(at, n_rows);
        let linear = LinearRewards::fit(&data, N_DRAWS, key);
        Ok(linear.map(|linear| RewardModel::Linear(Box::new(linear))))
    }

    /// Models of the arms that need one, and the number of rows of every arm's model.
    fn fit_arms(&self, history: &Dataset, run: &RefitRun<'_>) -> Result<FittedArms> {
        let mut rows_of_arms = vec![Vec::new(); self.arms.len()];
        for (row, &arm) in self.chosen.iter().enumerate() {
            rows_of_arms[arm as usize].push(row);
        }
        let overall = overall(history);
        let mut models = Vec::with_capacity(self.arms.len());
        let mut n_fitted = Vec::with_capacity(self.arms.len());
        for (arm, rows) in rows_of_arms.iter().enumerate() {
            let n_before = self.n_fitted.get(arm).copied();
            let fit = self.reward_fit(overall, (arm, rows.len()), run);
            let (model, n_rows) = if rows.is_empty() {
                (Some(RewardModel::Constant(fit.overall)), 0)
            } else if let Some(n_before) = n_before.filter(|&n_before| n_before >= rows.len()) {
                (None, n_before)
            } else {
                self.refitted(arm, &history.take(rows), &fit, run.is_forced)?
            };
            models.push(model);
            n_fitted.push(n_rows);
        }
        Ok((models, n_fitted))
    }

    /// The model of all arms.
    fn fit_all(&self, history: &Dataset, run: &RefitRun<'_>) -> Result<FittedArms> {
        let n_rows = history.n_rows();
        if let Some(&n_before) = self
            .n_fitted
            .first()
            .filter(|&&n_before| n_before >= n_rows)
        {
            return Ok((vec![None], vec![n_before]));
        }
        let data = self.with_arms(history)?;
        let fit = self.reward_fit(overall(history), (0, n_rows), run);
        let (model, n_rows) = self.refitted(0, &data, &fit, run.is_forced)?;
        Ok((vec![model], vec![n_rows]))
    }

    /// A new model of rows and rewards, and the number of rows of the model; `None` if the earlier model
    /// is recent enough and its predictions of the new rewards were not wrong.
    fn refitted(
        &self,
        at: usize,
        data: &Dataset,
        fit: &RewardFit<'_>,
        is_forced: bool,
    ) -> Result<(Option<RewardModel>, usize)> {
        let n_rows = data.n_rows();
        let (Some(&n_before), Some(earlier)) = (self.n_fitted.get(at), self.models.get(at)) else {
            return Ok((Some(RewardModel::fit(data, fit)?), n_rows));
        };
        let new_rows: Vec<usize> = (n_before..n_rows).collect();
        let is_wrong = earlier.contradicts(&data.take(&new_rows), fit.overall, fit.pool)?;
        let has_grown = n_rows as f64 >= n_before as f64 * self.settings.refit_growth;
        if !has_grown && !is_wrong && !is_forced {
            return Ok((None, n_before));
        }
        let earlier = fit.earlier.filter(|_| !is_wrong);
        let model = RewardModel::fit(data, &RewardFit { earlier, ..*fit })?;
        Ok((Some(model), n_rows))
    }

    /// Rows of the history with this arm.
    fn rows_of(&self, arm: usize) -> Vec<usize> {
        (0..self.chosen.len())
            .filter(|&row| self.chosen[row] as usize == arm)
            .collect()
    }

    /// The history with the arm as a column.
    fn with_arms(&self, history: &Dataset) -> Result<Dataset> {
        let contexts = history.features();
        let name = unused_name(contexts, ARM);
        let features = with_arm(contexts, &name, &self.arms, &self.chosen)?;
        let schema = Schema::of(&features, &history.schema().target, Task::Regression);
        Dataset::new(schema, features, history.target().clone(), None)
    }

    /// Random stream of the fit of an arm to this many rows.
    fn fit_key(&self, arm: usize, n_rows: usize) -> Key {
        let key = self.key.child(streams::FITS).child(arm as u64);
        key.child(n_rows as u64)
    }

    fn reward_fit<'a>(
        &'a self,
        overall: ConstantReward,
        (arm, n_rows): (usize, usize),
        run: &RefitRun<'a>,
    ) -> RewardFit<'a> {
        let key = self.fit_key(arm, n_rows);
        RewardFit {
            settings: &self.settings,
            overall: ConstantReward { key, ..overall },
            earlier: self.models.get(arm),
            key,
            pool: run.pool,
            observer: run.observer,
        }
    }
}

/// How models are fitted again.
struct RefitRun<'a> {
    /// Whether models with new rewards are fitted even if they need not be.
    is_forced: bool,
    pool: &'a Pool,
    observer: &'a dyn Observer,
}

/// Mean and standard deviation of all rewards of a history.
fn overall(history: &Dataset) -> ConstantReward {
    let rewards = match history.target() {
        Target::Numeric(rewards) => &rewards[..],
        Target::Classes(_) => &[],
    };
    ConstantReward::overall(rewards, Key::from_seed(0))
}

/// New models, `None` where the earlier one stays, and the rows of every model.
type FittedArms = (Vec<Option<RewardModel>>, Vec<usize>);

/// The name, with underscores until no column has it.
fn unused_name(table: &Table, name: &str) -> String {
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
