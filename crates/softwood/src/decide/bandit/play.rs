//! Runs an agent through a table of contexts, with rewards from a function.

use crate::data::table::Table;
use crate::decide::bandit::agent::{ArmOutcome, BanditAgent};
use crate::error::{Error, Result};
use crate::observer::{Event, Observer};
use crate::par::Pool;

/// Lets an agent choose an arm for each row of a table, in order. `reward` gives the reward of an arm,
/// for the index of the row and of the chosen arm; the agent observes it and fits its models when it is
/// time. Returns the outcome of each row.
///
/// The policy is fixed between two fits, so the arms of the rows up to the next fit are chosen at once,
/// before their rewards are asked for.
///
/// # Errors
/// As [`BanditAgent::choose`] and [`BanditAgent::observe`], when `reward` fails, or when the observer
/// stops the run. Rewards up to the last fit are observed then.
///
/// # Examples
/// ```
/// use softwood::decide::bandit::{AgentSettings, BanditAgent, play};
/// use softwood::observer::NoObserver;
/// use softwood::{Column, Key, Pool, Table};
///
/// let x = Key::from_seed(1).uniforms(200);
/// let contexts = Table::new(vec![Column::numeric("x", x.clone())])?;
/// let arms = vec!["stay".to_owned(), "go".to_owned()];
/// let mut agent = BanditAgent::new(AgentSettings::linear(), arms, Key::from_seed(0))?;
/// let reward = |row: usize, arm: usize| Ok(if arm == 1 { x[row] - 0.5 } else { 0.0 });
/// let outcomes = play(&mut agent, &contexts, reward, &Pool::new(1)?, &NoObserver)?;
/// assert!(outcomes.iter().map(|outcome| outcome.reward).sum::<f64>() > 10.0);
/// # Ok::<(), softwood::Error>(())
/// ```
pub fn play(
    agent: &mut BanditAgent,
    contexts: &Table,
    reward: impl FnMut(usize, usize) -> Result<f64>,
    pool: &Pool,
    observer: &dyn Observer,
) -> Result<Vec<ArmOutcome>> {
    let steps = PlayedSteps {
        contexts,
        observes_last: true,
    };
    steps.run(agent, reward, pool, observer)
}

/// The contexts of a run.
pub(super) struct PlayedSteps<'a> {
    pub(super) contexts: &'a Table,
    /// Whether the agent observes the rewards after its last choice, which may end in a fit.
    pub(super) observes_last: bool,
}

impl PlayedSteps<'_> {
    pub(super) fn run(
        &self,
        agent: &mut BanditAgent,
        mut reward: impl FnMut(usize, usize) -> Result<f64>,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<Vec<ArmOutcome>> {
        let n_steps = self.contexts.n_rows();
        let mut all = Vec::with_capacity(n_steps);
        while all.len() < n_steps {
            let step = all.len();
            let event = Event::new("steps", step, n_steps);
            if observer.on_event(&event).is_break() {
                return Err(Error::Cancelled);
            }
            // the policy is fixed until the next fit, so these steps are one question
            let rows: Vec<usize> = (step..n_steps.min(step + agent.n_until_refit())).collect();
            let contexts = self.contexts.take(&rows);
            let choices = agent.choose(&contexts, pool)?;
            let mut outcomes = Vec::with_capacity(choices.len());
            for (&row, choice) in rows.iter().zip(&choices) {
                let outcome = ArmOutcome::new(choice.arm, reward(row, choice.arm)?);
                outcomes.push(outcome.with_propensity(choice.propensity));
            }
            all.extend_from_slice(&outcomes);
            if self.observes_last || all.len() < n_steps {
                agent.observe(&contexts, &outcomes, pool, observer)?;
            }
        }
        Ok(all)
    }
}
