//! Runs agents on problems whose rewards are known, and sums their regret.

use std::time::Instant;

use serde::Serialize;

use crate::decide::bandit::agent::BanditAgent;
use crate::decide::bandit::play::PlayRun;
use crate::decide::bandit::problem::BanditProblem;
use crate::decide::bandit::settings::AgentSettings;
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::par::Pool;
use crate::rng::Key;

/// Simple regret is the mean regret of this many last steps.
const LAST_STEPS: usize = 500;
/// Largest number of points of a reported curve.
const CURVE_POINTS: usize = 200;

/// Random streams of simulations over seeds.
mod streams {
    pub(super) const PROBLEM: u64 = 0;
    pub(super) const AGENT: u64 = 1;
}

/// The course of one run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RegretCurve {
    /// Cumulative regret after each step.
    pub cumulative: Vec<f64>,
    /// Expected regret of random choices on the same problem.
    pub uniform_regret: f64,
    /// Sum of the rewards.
    pub reward: f64,
    /// Number of choices of each arm.
    pub n_chosen: Vec<usize>,
    /// Number of times that models were fitted.
    pub n_refits: usize,
    /// Time of the run in seconds.
    pub seconds: f64,
}

impl RegretCurve {
    /// Cumulative regret of all steps.
    pub fn total(&self) -> f64 {
        self.cumulative.last().copied().unwrap_or(0.0)
    }

    /// Simple regret: the mean regret of the last 500 steps, or of the last half of fewer steps.
    pub fn simple(&self) -> f64 {
        let n = self.cumulative.len();
        let last = LAST_STEPS.min(n.div_ceil(2));
        if last == 0 {
            return 0.0;
        }
        let before = if n > last {
            self.cumulative[n - last - 1]
        } else {
            0.0
        };
        (self.total() - before) / last as f64
    }
}

/// Runs of one agent with several seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RegretSummary {
    /// Name of the agent.
    pub agent: String,
    /// Number of seeds.
    pub n_seeds: usize,
    /// Number of steps of a run.
    pub n_steps: usize,
    /// Cumulative regret of each seed.
    pub regrets: Vec<f64>,
    /// Mean of the cumulative regrets.
    pub mean: f64,
    /// Standard deviation of the cumulative regrets over seeds, divided by n - 1; 0 for one seed.
    pub sd: f64,
    /// Mean of the expected regrets of random choices on the same problems.
    pub uniform_regret: f64,
    /// Mean of the simple regrets.
    pub simple_mean: f64,
    /// Standard deviation of the simple regrets.
    pub simple_sd: f64,
    /// Mean share of each arm among the choices.
    pub arm_shares: Vec<f64>,
    /// Mean time of a run in seconds.
    pub seconds: f64,
    /// Mean number of refits of a run.
    pub n_refits: f64,
    /// Steps of the curve.
    pub curve_steps: Vec<usize>,
    /// Mean cumulative regret at these steps.
    pub curve_mean: Vec<f64>,
    /// Standard deviation over seeds at these steps.
    pub curve_sd: Vec<f64>,
}

impl RegretSummary {
    /// The summary of some runs of one agent.
    ///
    /// # Panics
    /// When there are no runs.
    pub fn of(agent: String, runs: &[RegretCurve]) -> Self {
        assert!(!runs.is_empty(), "a summary needs a run");
        let regrets: Vec<f64> = runs.iter().map(RegretCurve::total).collect();
        let simple: Vec<f64> = runs.iter().map(RegretCurve::simple).collect();
        let n_steps = runs[0].cumulative.len();
        let n_points = CURVE_POINTS.min(n_steps);
        let curve_steps: Vec<usize> = (1..=n_points).map(|at| at * n_steps / n_points).collect();
        let at_step =
            |step: usize| -> Vec<f64> { runs.iter().map(|run| run.cumulative[step - 1]).collect() };
        let points = curve_steps.iter().map(|&step| moments(&at_step(step)));
        let (curve_mean, curve_sd) = points.unzip();
        let n_runs = runs.len() as f64;
        let share = |arm: usize| {
            let shares = runs.iter().map(|run| run.n_chosen[arm] as f64);
            shares.sum::<f64>() / (n_runs * n_steps.max(1) as f64)
        };
        let (mean, sd) = moments(&regrets);
        let (simple_mean, simple_sd) = moments(&simple);
        Self {
            agent,
            n_seeds: runs.len(),
            n_steps,
            mean,
            sd,
            uniform_regret: runs.iter().map(|run| run.uniform_regret).sum::<f64>() / n_runs,
            simple_mean,
            simple_sd,
            arm_shares: (0..runs[0].n_chosen.len()).map(share).collect(),
            seconds: runs.iter().map(|run| run.seconds).sum::<f64>() / n_runs,
            n_refits: runs.iter().map(|run| run.n_refits as f64).sum::<f64>() / n_runs,
            regrets,
            curve_steps,
            curve_mean,
            curve_sd,
        }
    }
}

/// Mean and standard deviation, divided by n - 1.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = if values.len() > 1 {
        (squares / (n - 1.0)).sqrt()
    } else {
        0.0
    };
    (mean, sd)
}

/// Runs an agent on all steps of a problem.
///
/// # Errors
/// When the settings are not valid, a fit fails, or the observer stops it.
pub fn simulate(
    problem: &BanditProblem,
    settings: &AgentSettings,
    key: Key,
    pool: &Pool,
    observer: &dyn Observer,
) -> Result<RegretCurve> {
    let start = Instant::now();
    let mut agent = BanditAgent::new(settings.clone(), problem.arms.clone(), key)?;
    let (n_steps, n_arms) = (problem.n_steps(), problem.n_arms());
    let mut run = RegretCurve {
        cumulative: Vec::with_capacity(n_steps),
        uniform_regret: problem.uniform_regret(),
        reward: 0.0,
        n_chosen: vec![0; n_arms],
        n_refits: 0,
        seconds: 0.0,
    };
    let mut regret = 0.0;
    let mut reward = |step: usize, arm: usize| {
        let reward = problem.rewards[step * n_arms + arm];
        regret += problem.regret(step, arm);
        run.cumulative.push(regret);
        run.reward += reward;
        run.n_chosen[arm] += 1;
        Ok(reward)
    };
    let play = PlayRun {
        contexts: &problem.contexts,
        pool,
        observer,
    };
    let mut step = 0;
    while step < n_steps {
        let rows = play.rows_until_refit(&mut agent, step, &mut reward)?;
        step += rows.outcomes.len();
        if let Some(failure) = rows.failure {
            return Err(failure);
        }
        // no model is fitted after the last choice
        if step < n_steps {
            agent.observe(&rows.contexts, &rows.outcomes, pool, observer)?;
        }
    }
    run.n_refits = agent.n_refits();
    run.seconds = start.elapsed().as_secs_f64();
    Ok(run)
}

/// Runs an agent with several seeds side by side, one thread each. `problem` draws the problem of a
/// seed; agents with the same seeds meet the same problems.
///
/// # Errors
/// As [`simulate`], and when a problem cannot be drawn.
pub fn simulate_seeds(
    problem: impl Fn(Key) -> Result<BanditProblem> + Sync,
    settings: &AgentSettings,
    seeds: &[u64],
    pool: &Pool,
    observer: &dyn Observer,
) -> Result<RegretSummary> {
    if seeds.is_empty() {
        return Err(Error::Parameters(vec![
            "a simulation needs at least one seed".to_owned(),
        ]));
    }
    let runs = pool.map(seeds.len(), |at| {
        let key = Key::from_seed(seeds[at]);
        let problem = problem(key.child(streams::PROBLEM))?;
        let key = key.child(streams::AGENT);
        simulate(&problem, settings, key, &Pool::new(1)?, observer)
    });
    let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(RegretSummary::of(settings.name(), &runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn summaries_are_means_over_runs() {
        let run = |cumulative: &[f64]| RegretCurve {
            cumulative: cumulative.to_vec(),
            uniform_regret: 8.0,
            reward: 0.0,
            n_chosen: vec![1, 3],
            n_refits: 2,
            seconds: 1.0,
        };
        let runs = [run(&[1.0, 2.0, 2.0, 2.0]), run(&[1.0, 2.0, 3.0, 4.0])];
        close(&[runs[0].simple(), runs[1].simple()], &[0.0, 1.0], 1e-12);
        let summary = RegretSummary::of("a".to_owned(), &runs);
        close(&[summary.mean, summary.sd], &[3.0, 2.0_f64.sqrt()], 1e-12);
        assert_eq!(summary.curve_steps, [1, 2, 3, 4]);
        close(&summary.curve_mean, &[1.0, 2.0, 2.5, 3.0], 1e-12);
        close(&summary.arm_shares, &[0.25, 0.75], 1e-12);
    }
}
