//! Runs an agent through a table of contexts, with rewards from a function.

use crate::data::table::Table;
use crate::decide::bandit::agent::{ArmOutcome, BanditAgent, REWARD};
use crate::error::{Error, Result};
use crate::observer::{Event, Observer};
use crate::par::Pool;

impl BanditAgent {
    /// Chooses an arm for each row of a table, in order, and learns from the rewards that a function
    /// returns. `reward` gives the reward of an arm, for the index of the row and of the arm. Returns
    /// the outcome of each row.
    ///
    /// The policy is fixed between two fits: the arms of the rows up to the next fit are chosen at
    /// once, before their rewards are asked for.
    ///
    /// # Errors
    /// As [`BanditAgent::choose`] and [`BanditAgent::observe`], when `reward` fails, or when the
    /// observer stops the run. The rewards before the failure are recorded.
    ///
    /// # Examples
    /// ```
    /// use softwood::decide::bandit::{AgentSettings, BanditAgent};
    /// use softwood::observer::NoObserver;
    /// use softwood::{Column, Key, Pool, Table};
    ///
    /// let x = Key::from_seed(1).uniforms(200);
    /// let contexts = Table::new(vec![Column::numeric("x", x.clone())])?;
    /// let arms = vec!["stay".to_owned(), "go".to_owned()];
    /// let mut agent = BanditAgent::new(AgentSettings::linear(), arms, Key::from_seed(0))?;
    /// let mut reward = |row: usize, arm: usize| Ok(if arm == 1 { x[row] - 0.5 } else { 0.0 });
    /// let outcomes = agent.play(&contexts, &mut reward, &Pool::new(1)?, &NoObserver)?;
    /// assert!(outcomes.iter().map(|outcome| outcome.reward).sum::<f64>() > 10.0);
    /// # Ok::<(), softwood::Error>(())
    /// ```
    pub fn play(
        &mut self,
        contexts: &Table,
        reward: &mut dyn FnMut(usize, usize) -> Result<f64>,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<Vec<ArmOutcome>> {
        let run = PlayRun {
            contexts,
            pool,
            observer,
        };
        let mut all = Vec::with_capacity(contexts.n_rows());
        while all.len() < contexts.n_rows() {
            let rows = run.rows_until_refit(self, all.len(), reward)?;
            let observed = self.observe(&rows.contexts, &rows.outcomes, pool, observer);
            observed.map_err(|error| in_table(error, all.len()))?;
            all.extend(rows.outcomes);
            if let Some(failure) = rows.failure {
                return Err(failure);
            }
        }
        Ok(all)
    }
}

/// Rows with one policy, from some row on.
pub(super) struct PlayedRows {
    pub(super) contexts: Table,
    pub(super) outcomes: Vec<ArmOutcome>,
    /// Why the reward of the next row is missing, if a reward failed.
    pub(super) failure: Option<Error>,
}

/// What the steps of a run share.
pub(super) struct PlayRun<'a> {
    pub(super) contexts: &'a Table,
    pub(super) pool: &'a Pool,
    pub(super) observer: &'a dyn Observer,
}

impl PlayRun<'_> {
    /// Chooses arms for the rows from `first` on up to the next fit, and asks for their rewards.
    pub(super) fn rows_until_refit(
        &self,
        agent: &mut BanditAgent,
        first: usize,
        reward: &mut dyn FnMut(usize, usize) -> Result<f64>,
    ) -> Result<PlayedRows> {
        let n_rows = self.contexts.n_rows();
        let event = Event::new("steps", first, n_rows);
        if self.observer.on_event(&event).is_break() {
            return Err(Error::Cancelled);
        }
        let rows: Vec<usize> = (first..n_rows.min(first + agent.n_until_refit())).collect();
        let mut part = self.contexts.take(&rows);
        let choices = agent.choose(&part, self.pool);
        let choices = choices.map_err(|error| in_table(error, first))?;
        let (mut outcomes, mut failure) = (Vec::with_capacity(choices.len()), None);
        for (&row, choice) in rows.iter().zip(&choices) {
            match reward(row, choice.arm).and_then(|value| agent.checked_reward(row, value)) {
                Ok(value) => {
                    let outcome = ArmOutcome::new(choice.arm, value);
                    outcomes.push(outcome.with_propensity(choice.propensity));
                }
                Err(error) => {
                    failure = Some(error);
                    part = self.contexts.take(&rows[..outcomes.len()]);
                    break;
                }
            }
        }
        Ok(PlayedRows {
            contexts: part,
            outcomes,
            failure,
        })
    }
}

impl BanditAgent {
    fn checked_reward(&self, row: usize, reward: f64) -> Result<f64> {
        match self.reward_problem(reward) {
            Some(problem) => Err(Error::cell(REWARD, row + 1, problem)),
            None => Ok(reward),
        }
    }
}

/// An error about a part of a table that begins at row `first`, with the row of the whole table.
fn in_table(error: Error, first: usize) -> Error {
    match error {
        Error::Cell {
            column,
            row,
            problem,
        } => Error::cell(column, row + first, problem),
        other => other,
    }
}
