//! Values of policies: the average outcome if rows are treated by their estimated effects, or as a
//! column says.

use serde::Serialize;

use crate::decide::causal::effect_model::EffectModel;
use crate::decide::causal::estimate::EffectEstimate;
use crate::decide::causal::linear_score::LinearScore;
use crate::error::{Error, Result};
use crate::par::Pool;

/// Whom to treat.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TreatmentPolicy {
    /// Treat the rows whose estimated effect exceeds the cost of a treatment. With cross-fitting,
    /// the effect of a row is that of the models that have not seen the row, so that the value is
    /// not flattered by the choice.
    EffectAbove,
    /// A decision for each row of the estimation.
    Given(Vec<bool>),
}

/// The value of a policy, in units of the outcome, and the values of treating all rows and no row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TreatmentPolicyValue {
    /// Cost of one treatment, in units of the outcome.
    pub cost: f64,
    /// Share of the rows that the policy treats.
    pub share_treated: f64,
    /// Average outcome under the policy, less the costs.
    pub value: EffectEstimate,
    /// Average gain over treating no row, less the costs.
    pub gain: EffectEstimate,
    /// Average outcome if all rows are treated, less the costs.
    pub treat_all: EffectEstimate,
    /// Average outcome if no row is treated.
    pub treat_none: EffectEstimate,
    /// Decisions for the rows of the estimation.
    #[serde(skip)]
    pub decisions: Vec<bool>,
}

impl EffectModel {
    /// The value of a policy with intervals of this level; `cost` is that of one treatment in units
    /// of the outcome.
    ///
    /// # Errors
    /// When there is not one decision for each row, the cost is not finite, or the level is not
    /// between 0 and 1.
    pub fn policy_value(
        &self,
        policy: &TreatmentPolicy,
        cost: f64,
        level: f64,
        pool: &Pool,
    ) -> Result<TreatmentPolicyValue> {
        if !cost.is_finite() {
            let problem = format!("cost = {cost}: expected a finite number");
            return Err(Error::Parameters(vec![problem]));
        }
        let n = self.data.n_rows();
        let decisions = match policy {
            TreatmentPolicy::EffectAbove => {
                (0..n).map(|row| self.rows.effect(row) > cost).collect()
            }
            TreatmentPolicy::Given(decisions) if decisions.len() == n => decisions.clone(),
            TreatmentPolicy::Given(decisions) => {
                return Err(Error::Table(format!(
                    "{} decisions for {n} rows: expected one for each row with one of the two treatments",
                    decisions.len()
                )));
            }
        };
        let value_of = |decisions: &[bool]| {
            let score = LinearScore::policy_value(self.assignment(), decisions);
            let score = score.with_cost(cost, decisions);
            let costs = cost * share_of(decisions);
            Ok::<_, Error>(self.estimate(&score, level, pool)?.shifted(-costs))
        };
        let gain = LinearScore::policy_gain(self.assignment(), &decisions);
        let gain = gain.with_cost(cost, &decisions);
        let share_treated = share_of(&decisions);
        Ok(TreatmentPolicyValue {
            cost,
            share_treated,
            value: value_of(&decisions)?,
            gain: self
                .estimate(&gain, level, pool)?
                .shifted(-cost * share_treated),
            treat_all: value_of(&vec![true; n])?,
            treat_none: value_of(&vec![false; n])?,
            decisions,
        })
    }
}

fn share_of(decisions: &[bool]) -> f64 {
    decisions.iter().filter(|&&treat| treat).count() as f64 / decisions.len() as f64
}
