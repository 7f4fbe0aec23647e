//! Bandit agents, simulations and estimates from logged choices.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use softwood::decide::bandit::{
    AgentSettings, ArmOutcome, ArmPooling, BanditAgent, BanditPolicy, BanditProblem, LoggedChoices,
    cross_fitted_rewards, replay, simulate_seeds,
};
use softwood::{Family, Key, Pool, Result, Run};

use crate::convert::{RawTable, matrix, numbers_of, vector};
use crate::errors::to_python;
use crate::interrupt::{interruptible, outside_gil};

/// Settings of an agent, read from the attributes of `softwood._arguments.AgentOptions`.
#[derive(FromPyObject)]
pub(crate) struct AgentOptions {
    /// `uniform`, `linear` or a model family.
    agent: String,
    /// Parameters of the family, as JSON.
    params: Option<String>,
    /// Probability of a random arm of a greedy agent; none for Thompson sampling.
    epsilon: Option<f64>,
    /// Whether one model has the arm as a column.
    arm_column: bool,
    /// Whether rewards are 0 or 1 and a classifier predicts them.
    classify: bool,
    n_initial: usize,
    refit_growth: f64,
    warm_start: Option<bool>,
}

impl AgentOptions {
    fn settings(self) -> Result<AgentSettings> {
        let mut settings = match &self.params {
            None => AgentSettings::named(&self.agent, &[])?,
            Some(params) => {
                let family = Family::from_name(&self.agent)?;
                AgentSettings::thompson(family.params_from_json(params)?)
            }
        };
        if let Some(epsilon) = self.epsilon {
            settings.policy = BanditPolicy::EpsilonGreedy { epsilon };
        }
        if self.arm_column {
            settings.pooling = ArmPooling::ArmColumn;
        }
        settings.classify = self.classify;
        settings.n_initial = self.n_initial;
        settings.refit_growth = self.refit_growth;
        settings.warm_start = self.warm_start;
        Ok(settings)
    }
}

/// Chosen arms and their rewards, read from the attributes of `softwood._arguments.ObservedArms`.
#[derive(FromPyObject)]
pub(crate) struct ObservedArms<'py> {
    contexts: RawTable<'py>,
    arms: PyReadonlyArray1<'py, u32>,
    rewards: PyReadonlyArray1<'py, f64>,
    /// NaN where it is not known.
    propensities: PyReadonlyArray1<'py, f64>,
}

/// A bandit agent.
#[pyclass(frozen, name = "Agent", module = "softwood._native")]
#[derive(Debug)]
pub(crate) struct PyAgent {
    /// Names of the arms, which do not wait for a fit.
    arms: Vec<String>,
    agent: Mutex<BanditAgent>,
}

impl PyAgent {
    fn wrap(agent: BanditAgent) -> Self {
        Self {
            arms: agent.arms().to_vec(),
            agent: Mutex::new(agent),
        }
    }

    /// The agent, after a fit in another thread; to be called without the interpreter lock.
    fn agent(&self) -> MutexGuard<'_, BanditAgent> {
        // a failed refit leaves the earlier models
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Arms, propensities, and the predicted mean of each arm, which is absent before the first fit.
type Chosen<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Option<Bound<'py, PyArray2<f64>>>,
);

#[pymethods]
impl PyAgent {
    #[new]
    fn new(options: AgentOptions, arms: Vec<String>, seed: u64) -> PyResult<Self> {
        let settings = options.settings().map_err(to_python)?;
        let agent = BanditAgent::new(settings, arms, Key::from_seed(seed));
        agent.map(Self::wrap).map_err(to_python)
    }

    /// Reads an agent's file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        outside_gil(py, || BanditAgent::load(&path)).map(Self::wrap)
    }

    /// Writes an agent's file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        outside_gil(py, || self.agent().save(&path))
    }

    /// Reads an agent from the bytes of its file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        outside_gil(py, || BanditAgent::from_bytes(bytes)).map(Self::wrap)
    }

    /// An agent is pickled as the bytes of its file.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<Self>().getattr("from_bytes")?;
        let bytes = py.detach(|| self.agent().to_bytes());
        Ok((from_bytes, (PyBytes::new(py, &bytes),)))
    }

    /// Names of the arms.
    fn arms(&self) -> Vec<String> {
        self.arms.clone()
    }

    /// Numbers of observed rewards, of refits, and of observations until the next refit.
    fn counts(&self, py: Python<'_>) -> (usize, usize, usize) {
        py.detach(|| {
            let agent = self.agent();
            (agent.n_observed(), agent.n_refits(), agent.n_until_refit())
        })
    }

    /// Chooses an arm for each row.
    fn choose<'py>(
        &self,
        py: Python<'py>,
        contexts: RawTable<'_>,
        n_threads: usize,
    ) -> PyResult<Chosen<'py>> {
        let contexts = contexts.into_table()?;
        let choices = outside_gil(py, || {
            let pool = Pool::new(n_threads)?;
            self.agent().choose(&contexts, &pool)
        })?;
        let n_arms = choices.first().map_or(0, |choice| choice.means.len());
        let arms = choices.iter().map(|choice| choice.arm as u32).collect();
        let propensities = choices.iter().map(|choice| choice.propensity).collect();
        let n_rows = choices.len();
        let means: Vec<f64> = choices
            .into_iter()
            .flat_map(|choice| choice.means)
            .collect();
        let means = match n_arms {
            0 => None,
            _ => Some(matrix(py, means, [n_rows, n_arms])?),
        };
        Ok((vector(py, arms), vector(py, propensities), means))
    }

    /// The probability of each arm on each row.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        contexts: RawTable<'_>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let contexts = contexts.into_table()?;
        let n_rows = contexts.n_rows();
        let (values, n_arms) = outside_gil(py, || {
            let pool = Pool::new(n_threads)?;
            let agent = self.agent();
            Ok((agent.probabilities(&contexts, &pool)?, agent.arms().len()))
        })?;
        matrix(py, values, [n_rows, n_arms])
    }

    /// Records the rewards of chosen arms.
    fn observe(
        &self,
        py: Python<'_>,
        outcomes: ObservedArms<'_>,
        n_threads: usize,
    ) -> PyResult<()> {
        let contexts = outcomes.contexts.into_table()?;
        let rewards = numbers_of("reward", &outcomes.rewards)?;
        let propensities = numbers_of("propensity", &outcomes.propensities)?;
        let arms: Vec<u32> = outcomes.arms.as_array().iter().copied().collect();
        if arms.len() != rewards.len() || arms.len() != propensities.len() {
            return Err(PyValueError::new_err(format!(
                "{} arms, {} rewards and {} propensities: expected one of each for every context",
                arms.len(),
                rewards.len(),
                propensities.len()
            )));
        }
        let outcomes: Vec<ArmOutcome> = (0..arms.len())
            .map(|row| {
                let outcome = ArmOutcome::new(arms[row] as usize, rewards[row]);
                if propensities[row].is_nan() {
                    outcome
                } else {
                    outcome.with_propensity(propensities[row])
                }
            })
            .collect();
        interruptible(py, |interrupt| {
            let pool = Pool::new(n_threads)?;
            self.agent().observe(&contexts, &outcomes, &pool, interrupt)
        })
    }

    /// Fits the models to all rewards so far.
    fn refit(&self, py: Python<'_>, n_threads: usize) -> PyResult<()> {
        interruptible(py, |interrupt| {
            let pool = Pool::new(n_threads)?;
            self.agent().refit(&pool, interrupt)
        })
    }

    /// Arm and propensity of each observation.
    fn log<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>) {
        let (arms, propensities) = py.detach(|| {
            let agent = self.agent();
            let (arms, propensities) = agent.log();
            (arms.to_vec(), propensities.to_vec())
        });
        (vector(py, arms), vector(py, propensities))
    }
}

/// Contexts with the rewards of all arms, read from the attributes of
/// `softwood._arguments.RewardTable`.
#[derive(FromPyObject)]
pub(crate) struct RewardTable<'py> {
    contexts: RawTable<'py>,
    /// Rewards (row-major, rows x arms).
    rewards: PyReadonlyArray1<'py, f64>,
    arms: Vec<String>,
    /// Number of steps of a run; none: all rows.
    n_steps: Option<usize>,
}

/// Regret of an agent over seeds, as JSON.
#[pyfunction]
pub(crate) fn simulate_bandit(
    py: Python<'_>,
    table: RewardTable<'_>,
    options: AgentOptions,
    seeds: Vec<u64>,
    n_threads: usize,
) -> PyResult<String> {
    let settings = options.settings().map_err(to_python)?;
    let rewards = numbers_of("rewards", &table.rewards)?;
    let contexts = table.contexts.into_table()?;
    let problem = BanditProblem::new("own", table.arms, contexts, rewards).map_err(to_python)?;
    let n_steps = table.n_steps.unwrap_or(usize::MAX);
    let summary = interruptible(py, |interrupt| {
        let pool = Pool::new(n_threads)?;
        let draw = |key: Key| Ok(problem.shuffled(n_steps, key));
        simulate_seeds(draw, &settings, &seeds, &pool, interrupt)
    })?;
    Ok(json!(summary).to_string())
}

/// Logged choices, read from the attributes of `softwood._arguments.ReplayLog`.
#[derive(FromPyObject)]
pub(crate) struct ReplayLog<'py> {
    contexts: RawTable<'py>,
    n_arms: usize,
    arms: PyReadonlyArray1<'py, u32>,
    rewards: PyReadonlyArray1<'py, f64>,
    propensities: PyReadonlyArray1<'py, f64>,
    /// Probabilities of the policy (row-major, rows x arms).
    policy: PyReadonlyArray1<'py, f64>,
    /// Family and parameters (JSON) of the models of the rewards; none: no doubly robust estimate.
    model: Option<(String, String)>,
    n_folds: usize,
    level: f64,
    seed: u64,
    n_threads: usize,
}

/// Estimates of the value of a policy, as JSON.
#[pyfunction]
pub(crate) fn replay_bandit(py: Python<'_>, log: ReplayLog<'_>) -> PyResult<String> {
    let arms: Vec<u32> = log.arms.as_array().iter().copied().collect();
    let rewards = numbers_of("rewards", &log.rewards)?;
    let propensities = numbers_of("propensities", &log.propensities)?;
    let policy = numbers_of("policy", &log.policy)?;
    let contexts = log.contexts.into_table()?;
    let spec = log.model.map(|(family, params)| {
        let family = Family::from_name(&family)?;
        family.params_from_json(&params)
    });
    let spec = spec.transpose().map_err(to_python)?;
    let (n_arms, n_folds, level) = (log.n_arms, log.n_folds, log.level);
    let (seed, n_threads) = (log.seed, log.n_threads);
    let values = interruptible(py, |interrupt| {
        let choices = LoggedChoices {
            n_arms,
            arms: &arms,
            rewards: &rewards,
            propensities: &propensities,
        };
        let pool = Pool::new(n_threads)?;
        let run = Run::new(Key::from_seed(seed), &pool).observer(interrupt);
        let fitted = |spec| cross_fitted_rewards(&contexts, &choices, spec, n_folds, &run);
        let predicted = spec.as_ref().map(fitted).transpose()?;
        replay(&choices, &policy, predicted.as_deref(), level)
    })?;
    Ok(json!(values).to_string())
}
