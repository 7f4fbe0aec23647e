//! Models of the reward of an arm: a fitted model of any family, a linear regression, or a constant
//! while there are too few rewards.

use std::borrow::Cow;
use std::sync::Arc;

use crate::data::column::{Column, Values};
use crate::data::dataset::Dataset;
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::Target;
use crate::decide::bandit::linear::LinearRewards;
use crate::decide::bandit::settings::{AgentSettings, RewardFamily};
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::model::Model;
use crate::models::ModelSpec;
use crate::numerics::gaussian::normals;
use crate::observer::Observer;
use crate::par::Pool;
use crate::rng::Key;

/// Number of draws of reward models without members of their own.
pub(super) const N_DRAWS: usize = 100;
/// Below this number of rewards an arm has a constant reward.
const MIN_ROWS: usize = 10;
/// An arm has shown nothing but noise if its rewards have less than this part of the standard deviation
/// of all rewards, and none of them is far from their mean.
const MAX_NOISE: f64 = 0.1;
/// A warm start is replaced by a fit from scratch when the rows have grown by this factor since.
const MAX_WARM_GROWTH: f64 = 1.5;
/// A model is fitted again if one of its new rewards is less probable than this, divided by their
/// number, ...
const MAX_SURPRISE: f64 = 1e-3;
/// ... and its error is larger than this part of the standard deviation of all rewards.
const MIN_ERROR: f64 = 0.25;
/// Names of the classes of rewards that are 0 or 1.
const CLASSES: [&str; 2] = ["0", "1"];

/// Predicts the reward of one arm.
#[derive(Debug)]
pub(super) enum RewardModel {
    /// The same reward for every context.
    Constant(ConstantReward),
    /// A fitted model, and the number of rows of its last fit from scratch.
    Fitted {
        model: Box<dyn Model>,
        n_scratch_rows: usize,
    },
    Linear(Box<LinearRewards>),
}

/// A Normal distribution of the reward of an arm that does not depend on the context.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct ConstantReward {
    pub(super) mean: f64,
    pub(super) sd: f64,
    pub(super) key: Key,
}

/// Rewards under every draw.
#[derive(Debug)]
pub(super) struct RewardDraws {
    pub(super) n_draws: usize,
    /// Row-major, rows x draws.
    pub(super) values: Vec<f64>,
}

/// What a fit of a reward model needs besides its rows.
#[derive(Clone, Copy)]
pub(super) struct RewardFit<'a> {
    pub(super) settings: &'a AgentSettings,
    /// Mean and standard deviation of the rewards of all arms so far.
    pub(super) overall: ConstantReward,
    pub(super) earlier: Option<&'a RewardModel>,
    pub(super) key: Key,
    pub(super) pool: &'a Pool,
    pub(super) observer: &'a dyn Observer,
}

impl ConstantReward {
    /// The reward of an arm without a model. The mean is that of its rewards and of one more at the
    /// overall mean. Few rewards say little of how the reward depends on the context, so they keep the
    /// spread of the rewards of all arms. More rewards that differ by little may still have missed the
    /// contexts that matter: their spread falls slowly. Many equal rewards are a constant.
    fn without_model(rewards: &[f64], overall: Self, key: Key) -> Self {
        let n = rewards.len() as f64;
        let sum: f64 = rewards.iter().sum();
        let shrinkage = if rewards.len() < MIN_ROWS {
            1.0
        } else if varies(rewards) {
            n / MIN_ROWS as f64
        } else {
            n + 1.0
        };
        Self {
            mean: (sum + overall.mean) / (n + 1.0),
            sd: overall.sd / shrinkage.sqrt(),
            key,
        }
    }

    /// Mean and standard deviation of the rewards of all arms; the standard deviation is 1 if they
    /// are all equal.
    pub(super) fn overall(rewards: &[f64], key: Key) -> Self {
        let n = rewards.len().max(1) as f64;
        let mean = rewards.iter().sum::<f64>() / n;
        let variance = rewards.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n;
        let sd = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        Self { mean, sd, key }
    }

    fn draws(&self, n_rows: usize) -> RewardDraws {
        let draws = normals(self.key, N_DRAWS).into_iter();
        let row: Vec<f64> = draws.map(|z| self.mean + self.sd * z).collect();
        RewardDraws {
            n_draws: N_DRAWS,
            values: row.repeat(n_rows),
        }
    }
}

impl RewardModel {
    /// Fits a model to the rewards of an arm.
    ///
    /// # Errors
    /// When the observer stops the fit, or training diverges.
    pub(super) fn fit(data: &Dataset, fit: &RewardFit<'_>) -> Result<Self> {
        let Target::Numeric(rewards) = data.target() else {
            return Err(Error::Table("rewards must be numbers".to_owned()));
        };
        let constant = || {
            let constant = ConstantReward::without_model(rewards, fit.overall, fit.key);
            Ok(Self::Constant(constant))
        };
        if rewards.len() < MIN_ROWS || is_noise(rewards, fit.overall) {
            return constant();
        }
        match &fit.settings.rewards {
            RewardFamily::Nothing => constant(),
            RewardFamily::Linear => match LinearRewards::fit(data, N_DRAWS, fit.key) {
                Some(linear) => Ok(Self::Linear(Box::new(linear))),
                None => constant(),
            },
            RewardFamily::Family(spec) => {
                let data = if fit.settings.classify {
                    Cow::Owned(as_classes(data, rewards)?)
                } else {
                    Cow::Borrowed(data)
                };
                Self::fit_family(spec, &data, fit)
            }
        }
    }

    fn fit_family(spec: &ModelSpec, data: &Dataset, fit: &RewardFit<'_>) -> Result<Self> {
        let run = || Run::new(fit.key, fit.pool).observer(fit.observer);
        if let Some((earlier, n_scratch_rows)) = fit.warm_start(data) {
            match spec.fit_with(data, &run().warm_start(earlier)) {
                Err(Error::Diverged { .. }) => {}
                model => {
                    return Ok(Self::Fitted {
                        model: model?,
                        n_scratch_rows,
                    });
                }
            }
        }
        Ok(Self::Fitted {
            model: spec.fit_with(data, &run())?,
            n_scratch_rows: data.n_rows(),
        })
    }

    /// Whether rewards that the model was not fitted to are far from its predictions: one is less probable
    /// than chance explains and, if it is a number, so far off that it could change a choice. Constant
    /// and linear rewards cost little to fit, so every new reward counts for them.
    ///
    /// # Errors
    /// When the columns are not those of the fit.
    pub(super) fn contradicts(
        &self,
        new: &Dataset,
        overall: ConstantReward,
        pool: &Pool,
    ) -> Result<bool> {
        let model = match self {
            Self::Constant(_) | Self::Linear(_) => return Ok(true),
            Self::Fitted { model, .. } => model,
        };
        let Target::Numeric(rewards) = new.target() else {
            return Ok(false);
        };
        let distribution = Distribution::new(model.as_ref(), new.features(), pool)?;
        let max_probability = MAX_SURPRISE / rewards.len() as f64;
        if let Some(classes) = model.schema().classes() {
            // the classes are rewards of 0 and 1, in this order
            let probabilities = distribution.probabilities()?;
            let rows = probabilities.chunks_exact(classes.len()).zip(rewards);
            return Ok(rows
                .into_iter()
                .any(|(row, &reward)| row[usize::from(reward > 0.5)] < max_probability));
        }
        let (means, cdf) = (distribution.mean()?, distribution.cdf(rewards)?);
        let min_error = MIN_ERROR * overall.sd;
        Ok((0..rewards.len()).any(|row| {
            2.0 * cdf[row].min(1.0 - cdf[row]) < max_probability
                && (rewards[row] - means[row]).abs() > min_error
        }))
    }

    /// Number of draws.
    pub(super) fn n_draws(&self) -> usize {
        match self {
            Self::Constant(_) => N_DRAWS,
            Self::Fitted { model, .. } => model.n_members(),
            Self::Linear(linear) => linear.n_draws(),
        }
    }

    /// The rewards of some contexts under every draw.
    ///
    /// # Errors
    /// When the columns are not those of the fit.
    pub(super) fn draws(&self, contexts: &Table, pool: &Pool) -> Result<RewardDraws> {
        match self {
            Self::Constant(constant) => Ok(constant.draws(contexts.n_rows())),
            Self::Linear(linear) => Ok(RewardDraws {
                n_draws: linear.n_draws(),
                values: linear.draws(contexts)?,
            }),
            Self::Fitted { model, .. } => {
                let distribution = Distribution::new(model.as_ref(), contexts, pool)?;
                let mut values = distribution.members()?;
                if let Some(classes) = model.schema().classes() {
                    // the probability of the last class, which is a reward of 1
                    let last = classes.len() - 1;
                    let rows = values.chunks_exact(classes.len());
                    values = rows.map(|probabilities| probabilities[last]).collect();
                }
                Ok(RewardDraws {
                    n_draws: model.n_members(),
                    values,
                })
            }
        }
    }
}

impl<'a> RewardFit<'a> {
    /// The model to continue from and the rows of its last fit from scratch, if a warm start is wanted
    /// and possible.
    fn warm_start(&self, data: &Dataset) -> Option<(&'a dyn Model, usize)> {
        let RewardFamily::Family(spec) = &self.settings.rewards else {
            return None;
        };
        let Some(RewardModel::Fitted {
            model,
            n_scratch_rows,
        }) = self.earlier
        else {
            return None;
        };
        let family = spec.family();
        let is_wanted = self
            .settings
            .warm_start
            .unwrap_or(family.warm_start_is_short());
        let is_possible = is_wanted
            && family.supports_warm_start()
            && data.n_rows() as f64 <= MAX_WARM_GROWTH * *n_scratch_rows as f64
            && model.schema().describes_same_data(data.schema());
        is_possible.then_some((model.as_ref(), *n_scratch_rows))
    }
}

impl RewardDraws {
    /// The draws of a row.
    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.n_draws..(row + 1) * self.n_draws]
    }
}

/// Whether rewards are equal, or differ by so little that no choice between arms depends on it.
fn is_noise(rewards: &[f64], overall: ConstantReward) -> bool {
    let own = ConstantReward::overall(rewards, overall.key);
    let is_near = |reward: &f64| (reward - own.mean).abs() <= MIN_ERROR * overall.sd;
    !varies(rewards) || (own.sd < MAX_NOISE * overall.sd && rewards.iter().all(is_near))
}

/// Whether rewards differ at all.
fn varies(rewards: &[f64]) -> bool {
    rewards
        .iter()
        .any(|reward| (reward - rewards[0]).abs() > 0.0)
}

/// The dataset with rewards of 0 and 1 as classes.
fn as_classes(data: &Dataset, rewards: &[f64]) -> Result<Dataset> {
    let class = |(row, &reward): (usize, &f64)| {
        if reward.abs() <= 0.0 {
            Ok(0)
        } else if (reward - 1.0).abs() <= 0.0 {
            Ok(1)
        } else {
            let problem = format!("the reward is {reward}; a classifier needs rewards of 0 and 1");
            Err(Error::cell(&data.schema().target, row + 1, problem))
        }
    };
    let codes = rewards.iter().enumerate().map(class);
    let codes = codes.collect::<Result<Vec<u32>>>()?;
    let task = Task::Classification {
        classes: CLASSES.map(str::to_owned).to_vec(),
    };
    let schema = Schema::of(data.features(), &data.schema().target, task);
    Dataset::new(
        schema,
        data.features().clone(),
        Target::Classes(codes),
        None,
    )
}

/// The contexts with the arm as a column, in place of a column of that name.
pub(super) fn with_arm(
    contexts: &Table,
    column: &str,
    arms: &[String],
    arm: &[u32],
) -> Result<Table> {
    contexts.clone().with_column(Column {
        name: column.to_owned(),
        values: Values::Categorical {
            codes: arm.to_vec(),
            levels: Arc::new(arms.to_vec()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dataset::Roles;
    use crate::models::Family;
    use crate::observer::NoObserver;

    fn rewards(n: usize) -> Dataset {
        dataset((0..n).map(|row| (4.0 * context(row)).sin()).collect())
    }

    fn context(row: usize) -> f64 {
        (row % 17) as f64 / 17.0
    }

    fn dataset(y: Vec<f64>) -> Dataset {
        let x = (0..y.len()).map(context).collect();
        let columns = vec![Column::numeric("x", x), Column::numeric("reward", y)];
        let roles = Roles {
            target: "reward".to_owned(),
            ..Roles::default()
        };
        Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
    }

    /// Rows of the last fit from scratch, after fits to 40 rows and to `n` rows.
    fn n_scratch_rows(family: Family, warm_start: Option<bool>, n: usize) -> usize {
        let pairs = match family {
            Family::Vst => [("max_depth", "1"), ("n_epochs", "10")],
            _ => [("max_depth", "1"), ("n_estimators", "5")],
        };
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut settings = AgentSettings::thompson(family.params(&pairs).unwrap());
        settings.warm_start = warm_start;
        let (key, pool) = (Key::from_seed(1), Pool::new(1).unwrap());
        let fit = RewardFit {
            settings: &settings,
            overall: ConstantReward::overall(&[0.0, 1.0], key),
            earlier: None,
            key,
            pool: &pool,
            observer: &NoObserver,
        };
        let first = RewardModel::fit(&rewards(40), &fit).unwrap();
        let earlier = Some(&first);
        match RewardModel::fit(&rewards(n), &RewardFit { earlier, ..fit }).unwrap() {
            RewardModel::Fitted { n_scratch_rows, .. } => n_scratch_rows,
            other => panic!("{other:?}"),
        }
    }

    /// The model of 40 rewards of 0 with noise of standard deviation 0.01, or with one reward of 1 among
    /// them, if the rewards of all arms have the standard deviation 0.4.
    fn model_of_noise(has_hit: bool) -> RewardModel {
        let noise = normals(Key::from_seed(4), 40);
        let mut rewards: Vec<f64> = noise.iter().map(|z| 0.01 * z).collect();
        if has_hit {
            rewards[7] = 1.0;
        }
        let settings = AgentSettings::thompson(Family::Tree.params(&[]).unwrap());
        let (key, pool) = (Key::from_seed(1), Pool::new(1).unwrap());
        let fit = RewardFit {
            settings: &settings,
            overall: ConstantReward {
                mean: 0.2,
                sd: 0.4,
                key,
            },
            earlier: None,
            key,
            pool: &pool,
            observer: &NoObserver,
        };
        RewardModel::fit(&dataset(rewards), &fit).unwrap()
    }

    #[test]
    fn an_arm_that_has_shown_nothing_but_noise_keeps_being_tried() {
        let RewardModel::Constant(constant) = model_of_noise(false) else {
            panic!("a model was fitted to noise");
        };
        assert!(constant.mean.abs() < 0.02, "{constant:?}");
        // a quarter of the variance of all rewards after four times the rewards of the first model
        assert!((constant.sd - 0.2).abs() < 1e-12, "{constant:?}");
        assert!(matches!(model_of_noise(true), RewardModel::Fitted { .. }));
    }

    #[test]
    fn models_are_trained_further_where_that_is_short_or_wanted() {
        assert_eq!(n_scratch_rows(Family::Vst, None, 55), 40);
        assert_eq!(n_scratch_rows(Family::Vst, Some(false), 55), 55);
        // more than one and a half times the rows of the first fit
        assert_eq!(n_scratch_rows(Family::Vst, None, 65), 65);
        assert_eq!(n_scratch_rows(Family::Sgb, None, 55), 55);
        assert_eq!(n_scratch_rows(Family::Sgb, Some(true), 55), 40);
    }
}
