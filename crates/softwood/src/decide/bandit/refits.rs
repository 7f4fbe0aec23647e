//! When and how an agent fits its models again: it checks its arms whenever the number of rewards has
//! grown enough, and fits those whose own rewards have grown more or contradict their model.

use crate::data::dataset::Dataset;
use crate::data::schema::{Schema, Task};
use crate::data::target::Target;
use crate::decide::bandit::agent::{ARM, BanditAgent, streams, unused_name};
use crate::decide::bandit::linear::LinearRewards;
use crate::decide::bandit::reward_model::{
    ConstantReward, N_DRAWS, RewardFit, RewardModel, with_arm,
};
use crate::decide::bandit::settings::{ArmPooling, BanditPolicy};
use crate::error::Result;
use crate::observer::Observer;
use crate::par::Pool;
use crate::rng::Key;

/// Predictions are compared with new rewards when the number of rewards has grown by this factor.
const CHECK_GROWTH: f64 = 1.1;

/// How models are fitted again.
pub(super) struct RefitRun<'a> {
    /// Whether models with new rewards are fitted even if they need not be.
    pub(super) is_forced: bool,
    pub(super) pool: &'a Pool,
    pub(super) observer: &'a dyn Observer,
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

impl BanditAgent {
    /// Fits the models that need it, or all with new rewards, and sets the number of rewards of the next check.
    pub(super) fn fit_models(&mut self, run: &RefitRun<'_>) -> Result<()> {
        let Some(history) = &self.history else {
            return Ok(());
        };
        if self.settings.policy != BanditPolicy::Uniform {
            let (models, n_fitted) = match self.settings.pooling {
                ArmPooling::PerArm => self.fit_arms(history, run)?,
                ArmPooling::ArmColumn => self.fit_all(history, run)?,
            };
            let mut fitted = models.iter().zip(&n_fitted);
            let has_fitted = fitted.any(|(model, &n)| model.is_some() && n > 0);
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
