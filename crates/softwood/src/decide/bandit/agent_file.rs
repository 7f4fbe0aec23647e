//! Agents in files: settings, observations and fitted models, in the container of model files.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::data::column::{Column, UNSEEN, Values};
use crate::data::dataset::Dataset;
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::Target;
use crate::decide::bandit::agent::{BanditAgent, MAX_REWARD};
use crate::decide::bandit::reward_model::{ConstantReward, RewardModel};
use crate::decide::bandit::settings::{AgentSettings, ArmPooling, BanditPolicy, RewardFamily};
use crate::error::{Error, Result};
use crate::models::{Family, from_bytes};
use crate::rng::Key;
use crate::store::record::{Array, Record};
use crate::store::{container, file};

/// The name in place of a model family.
const KIND: &str = "bandit-agent";
/// Bytes of a word of an array.
const WORD: usize = 4;

/// What the header of a file says besides settings and columns.
#[derive(Serialize, Deserialize)]
struct AgentState {
    arms: Vec<String>,
    key: Key,
    next_refit: usize,
    n_refits: usize,
    n_choices: u64,
    n_fitted: Vec<usize>,
    models: Vec<StoredReward>,
}

/// A reward model in the header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredReward {
    Constant(ConstantReward),
    /// A linear regression, which is fitted again.
    Linear,
    /// A model, whose bytes are an array.
    Fitted {
        n_bytes: usize,
        n_scratch_rows: usize,
    },
}

/// Settings in the header.
#[derive(Serialize, Deserialize)]
struct StoredSettings {
    /// A model family, `linear` or `nothing`.
    rewards: String,
    params: Value,
    policy: BanditPolicy,
    pooling: ArmPooling,
    classify: bool,
    n_initial: usize,
    refit_growth: f64,
    min_refit_interval: usize,
    warm_start: Option<bool>,
}

/// A column of contexts in the header.
#[derive(Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    /// Names of the categories; `None` for numbers.
    levels: Option<Vec<String>>,
}

impl BanditAgent {
    /// Writes the agent to a file, completely or not at all. The agent is read back before it
    /// replaces an earlier file.
    ///
    /// # Errors
    /// When the file cannot be written, or the agent cannot be read back.
    pub fn save(&self, path: &Path) -> Result<()> {
        let bytes = self.to_bytes();
        Self::from_bytes(&bytes).map_err(|error| error.within(path))?;
        file::write(path, &bytes)
    }

    /// Reads an agent from a file. It continues as the saved agent would.
    ///
    /// # Errors
    /// When the file cannot be read or is not an agent.
    pub fn load(path: &Path) -> Result<Self> {
        Self::from_bytes(&file::read(path)?).map_err(|error| error.within(path))
    }

    /// The content of the agent's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut arrays = vec![
            ("chosen".to_owned(), Array::U32(self.chosen.clone())),
            (
                "propensities".to_owned(),
                Array::F64(self.propensities.clone()),
            ),
        ];
        let mut columns = Vec::new();
        let mut reward = None;
        if let Some(history) = &self.history {
            for (at, column) in history.features().columns().iter().enumerate() {
                let (array, levels) = match &column.values {
                    Values::Numeric(values) => (Array::F64(values.clone()), None),
                    Values::Categorical { codes, levels } => {
                        (Array::U32(codes.clone()), Some(levels.to_vec()))
                    }
                };
                arrays.push((format!("column{at}"), array));
                let name = column.name.clone();
                columns.push(StoredColumn { name, levels });
            }
            if let Target::Numeric(rewards) = history.target() {
                arrays.push(("rewards".to_owned(), Array::F64(rewards.clone())));
            }
            reward = Some(history.schema().target.clone());
        }
        let mut models = Vec::new();
        for (at, model) in self.models.iter().enumerate() {
            models.push(match model {
                RewardModel::Constant(constant) => StoredReward::Constant(*constant),
                RewardModel::Linear(_) => StoredReward::Linear,
                RewardModel::Fitted {
                    model,
                    n_scratch_rows,
                } => {
                    let bytes = model.to_bytes();
                    arrays.push((format!("model{at}"), Array::U32(words_of(&bytes))));
                    StoredReward::Fitted {
                        n_bytes: bytes.len(),
                        n_scratch_rows: *n_scratch_rows,
                    }
                }
            });
        }
        let state = AgentState {
            arms: self.arms.clone(),
            key: self.key,
            next_refit: self.next_refit,
            n_refits: self.n_refits,
            n_choices: self.n_choices,
            n_fitted: self.n_fitted.clone(),
            models,
        };
        let settings = StoredSettings::of(&self.settings);
        container::to_bytes(&Record {
            family: KIND.to_owned(),
            meta: json!({"settings": settings, "state": state, "columns": columns, "reward": reward}),
            arrays,
        })
    }

    /// Reads an agent from the content of its file.
    ///
    /// # Errors
    /// When the bytes are not an agent.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_container(bytes).map_err(|error| match error {
            Error::Format(_) | Error::Memory { .. } | Error::Cancelled => error,
            // settings, names or cells that an agent cannot have
            other => damaged(&other.to_string()),
        })
    }

    fn from_container(bytes: &[u8]) -> Result<Self> {
        let record = container::from_bytes(bytes)?;
        if record.family != KIND {
            return Err(damaged(&format!(
                "it holds a `{}` model, not a bandit agent",
                record.family
            )));
        }
        let state: AgentState = record.part("state")?;
        let settings = record.part::<StoredSettings>("settings")?.settings()?;
        let chosen = record.u32s("chosen")?.to_vec();
        let n = chosen.len();
        let propensities = record.f64s("propensities", n)?.to_vec();
        let is_probability = |p: &f64| p.is_nan() || (*p > 0.0 && *p <= 1.0);
        let is_valid = chosen.iter().all(|&arm| (arm as usize) < state.arms.len())
            && state.n_fitted.iter().all(|&rows| rows <= n)
            && propensities.iter().all(is_probability);
        if !is_valid {
            return Err(damaged(
                "an arm, a propensity or a number of rows is out of range",
            ));
        }
        let mut agent = Self::new(settings, state.arms, state.key)?;
        agent.history = history_of(&record, n)?;
        agent.chosen = chosen;
        agent.propensities = propensities;
        agent.n_fitted = state.n_fitted;
        agent.n_refits = state.n_refits;
        agent.n_choices = state.n_choices;
        agent.next_refit = state.next_refit;
        let n_models = match agent.settings.pooling {
            ArmPooling::PerArm => agent.arms.len(),
            ArmPooling::ArmColumn => 1,
        };
        let n_stored = state.models.len();
        if n_stored != agent.n_fitted.len() || (n_stored != 0 && n_stored != n_models) {
            return Err(damaged("there is not one model for each arm"));
        }
        agent.check_rewards()?;
        for (at, stored) in state.models.iter().enumerate() {
            let model = agent.restored(&record, at, stored)?;
            agent.models.push(model);
        }
        Ok(agent)
    }

    /// Rewards of a file must be such as an agent observes.
    fn check_rewards(&self) -> Result<()> {
        let rewards = match self.history.as_ref().map(Dataset::target) {
            Some(Target::Numeric(rewards)) => &rewards[..],
            _ => &[],
        };
        match rewards
            .iter()
            .find_map(|&reward| self.reward_problem(reward))
        {
            Some(problem) => Err(damaged(&format!("reward {problem}"))),
            None => Ok(()),
        }
    }

    /// The reward model at a place.
    fn restored(&self, record: &Record, at: usize, stored: &StoredReward) -> Result<RewardModel> {
        match stored {
            StoredReward::Constant(constant) => {
                let is_valid = constant.mean.abs() <= MAX_REWARD
                    && (0.0..=2.0 * MAX_REWARD).contains(&constant.sd);
                if !is_valid {
                    return Err(damaged("a constant reward is out of range"));
                }
                Ok(RewardModel::Constant(*constant))
            }
            StoredReward::Linear => self
                .linear_again(at)?
                .ok_or_else(|| damaged("a linear model cannot be fitted again")),
            StoredReward::Fitted {
                n_bytes,
                n_scratch_rows,
            } => {
                let words = record.u32s(&format!("model{at}"))?;
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let bytes = bytes
                    .get(..*n_bytes)
                    .ok_or_else(|| damaged("a model is too short"))?;
                Ok(RewardModel::Fitted {
                    model: from_bytes(bytes)?,
                    n_scratch_rows: *n_scratch_rows,
                })
            }
        }
    }
}

/// The observed contexts and rewards; `None` if there are none.
fn history_of(record: &Record, n: usize) -> Result<Option<Dataset>> {
    if n == 0 {
        return Ok(None);
    }
    let stored: Vec<StoredColumn> = record.part("columns")?;
    let reward: String = record.part("reward")?;
    let column = |(at, column): (usize, StoredColumn)| {
        let name = format!("column{at}");
        let values = match column.levels {
            None => Values::Numeric(record.f64s(&name, n)?.to_vec()),
            Some(levels) => {
                let codes = record.u32s(&name)?.to_vec();
                let n_levels = levels.len() as u32;
                let in_range = |code: &u32| *code < n_levels || *code >= UNSEEN;
                if codes.len() != n || !codes.iter().all(in_range) {
                    return Err(damaged("a category is out of range"));
                }
                let levels = Arc::new(levels);
                Values::Categorical { codes, levels }
            }
        };
        Ok(Column {
            name: column.name,
            values,
        })
    };
    let columns = stored.into_iter().enumerate().map(column);
    let features = Table::new(columns.collect::<Result<Vec<_>>>()?)?;
    let rewards = record.f64s("rewards", n)?.to_vec();
    let schema = Schema::of(&features, reward, Task::Regression);
    Dataset::new(schema, features, Target::Numeric(rewards), None).map(Some)
}

impl StoredSettings {
    fn of(settings: &AgentSettings) -> Self {
        let (rewards, params) = match &settings.rewards {
            RewardFamily::Family(spec) => (spec.family().name(), json!(spec)),
            RewardFamily::Linear => ("linear", Value::Null),
            RewardFamily::Nothing => ("nothing", Value::Null),
        };
        Self {
            rewards: rewards.to_owned(),
            params,
            policy: settings.policy,
            pooling: settings.pooling,
            classify: settings.classify,
            n_initial: settings.n_initial,
            refit_growth: settings.refit_growth,
            min_refit_interval: settings.min_refit_interval,
            warm_start: settings.warm_start,
        }
    }

    fn settings(self) -> Result<AgentSettings> {
        let rewards = match self.rewards.as_str() {
            "linear" => RewardFamily::Linear,
            "nothing" => RewardFamily::Nothing,
            name => {
                let family = Family::from_name(name)?;
                RewardFamily::Family(Box::new(family.params_from_json(&self.params.to_string())?))
            }
        };
        Ok(AgentSettings {
            rewards,
            policy: self.policy,
            pooling: self.pooling,
            classify: self.classify,
            n_initial: self.n_initial,
            refit_growth: self.refit_growth,
            min_refit_interval: self.min_refit_interval,
            warm_start: self.warm_start,
        })
    }
}

/// Bytes as words; the last one is padded with zeros.
fn words_of(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        let mut word = [0; WORD];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    bytes.chunks(WORD).map(word).collect()
}

fn damaged(problem: &str) -> Error {
    Error::Format(format!("the bandit agent is damaged: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::bandit::agent::ArmOutcome;
    use crate::observer::NoObserver;
    use crate::par::Pool;

    #[test]
    fn rewards_that_no_agent_observes_are_refused() {
        let arms = vec!["left".to_owned(), "right".to_owned()];
        let mut agent = BanditAgent::new(AgentSettings::linear(), arms, Key::from_seed(1)).unwrap();
        let contexts = Table::new(vec![Column::numeric("x", vec![0.0, 1.0])]).unwrap();
        let outcomes = [ArmOutcome::new(0, 0.5), ArmOutcome::new(1, 1.0)];
        let pool = Pool::new(1).unwrap();
        let observed = agent.observe(&contexts, &outcomes, &pool, &NoObserver);
        observed.unwrap();
        let read = |reward: f64| {
            let mut record = container::from_bytes(&agent.to_bytes()).unwrap();
            for (name, array) in &mut record.arrays {
                if name == "rewards" {
                    *array = Array::F64(vec![0.5, reward]);
                }
            }
            BanditAgent::from_bytes(&container::to_bytes(&record))
        };
        assert!(read(2.0).is_ok());
        for reward in [1e308, f64::INFINITY, f64::NAN] {
            assert!(matches!(read(reward), Err(Error::Format(_))), "{reward}");
        }
    }
}
