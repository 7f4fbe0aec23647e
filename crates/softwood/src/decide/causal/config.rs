//! What to estimate and how: method, models, folds, and which average the intervals are for.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::data::column::Column;
use crate::error::{Error, Result};
use crate::models::registry::ModelSpec;
use crate::models::{Leaf, Rotation, Scaling, VstParams};

/// How the two potential outcomes are modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CausalMethod {
    /// `single`: one model with the treatment as a column (S-learner). A member is evaluated with
    /// and without the treatment.
    Single,
    /// `per-arm`: one model for the treated rows and one for the control rows (T-learner). Members
    /// of the two models are paired at random.
    PerArm,
    /// `doubly-robust`: cross-fitted outcome models and propensities in augmented inverse-propensity
    /// weighted scores (AIPW); conditional effects by a regression of the scores (DR-learner).
    #[default]
    DoublyRobust,
}

impl CausalMethod {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::Single, Self::PerArm, Self::DoublyRobust];

    /// The name on the command line and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::PerArm => "per-arm",
            Self::DoublyRobust => "doubly-robust",
        }
    }
}

impl fmt::Display for CausalMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CausalMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Parameters(vec![format!("method `{text}`: expected one of {names}")])
        })
    }
}

/// Which average an interval is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EffectScope {
    /// The average over the rows of the table: their covariates are fixed.
    #[default]
    Sample,
    /// The average over the population that the rows were drawn from; adds the variance of drawing
    /// other rows.
    Population,
}

impl FromStr for EffectScope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "sample" => Ok(Self::Sample),
            "population" => Ok(Self::Population),
            _ => Err(Error::Parameters(vec![format!(
                "scope `{text}`: expected sample or population"
            )])),
        }
    }
}

/// The role of the columns of a table for effects: all columns that are neither treatment, outcome
/// nor ignored are covariates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CausalRoles {
    /// Treatment column.
    pub treatment: String,
    /// Outcome column, numeric.
    pub outcome: String,
    /// Level of the treatment column that counts as treated. `None`: the larger of two numbers,
    /// `true`, or the second of two categories in alphabetical order.
    pub treated: Option<String>,
    /// Level of the treatment column that counts as control. `None`: the other one of two.
    pub control: Option<String>,
    /// Columns to leave out.
    pub ignore: Vec<String>,
}

impl CausalRoles {
    /// Roles for a treatment of two levels, with all other columns as covariates.
    pub fn new(treatment: impl Into<String>, outcome: impl Into<String>) -> Self {
        Self {
            treatment: treatment.into(),
            outcome: outcome.into(),
            ..Self::default()
        }
    }

    /// Names the two levels to compare; rows of other levels are left out.
    #[must_use]
    pub fn levels(self, treated: impl Into<String>, control: impl Into<String>) -> Self {
        Self {
            treated: Some(treated.into()),
            control: Some(control.into()),
            ..self
        }
    }

    /// Leaves columns out.
    #[must_use]
    pub fn ignore(self, ignore: Vec<String>) -> Self {
        Self { ignore, ..self }
    }

    /// The treatment as a numeric column, 1 for treated rows.
    pub(super) fn column(&self, is_treated: impl Iterator<Item = bool>) -> Column {
        let cells = is_treated.map(|is_treated| if is_treated { 1.0 } else { 0.0 });
        Column::numeric(&self.treatment, cells.collect())
    }
}

/// Settings of an estimation besides the table and its roles.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CausalConfig {
    /// How the two potential outcomes are modelled.
    pub method: CausalMethod,
    /// Model of the outcome: any family.
    pub outcome: ModelSpec,
    /// Model of the probability of treatment: any family that takes classes.
    pub propensity: ModelSpec,
    /// Number of folds of cross-fitting, at least 2; fewer if an arm has too few rows.
    pub n_folds: usize,
    /// Propensities below this or above one minus this are set to it in scores.
    pub clip: f64,
    /// Which average the intervals are for.
    pub scope: EffectScope,
    /// Number of draws of an average effect.
    pub n_draws: usize,
}

impl CausalConfig {
    /// Doubly robust estimation with this model of the outcome and a quick model of the propensity.
    pub fn new(outcome: ModelSpec) -> Self {
        Self {
            method: CausalMethod::default(),
            outcome,
            propensity: default_propensity(),
            n_folds: 5,
            clip: 0.02,
            scope: EffectScope::default(),
            n_draws: 1000,
        }
    }

    /// Sets the method.
    #[must_use]
    pub fn method(self, method: CausalMethod) -> Self {
        Self { method, ..self }
    }

    /// Sets the model of the propensity.
    #[must_use]
    pub fn propensity(self, propensity: ModelSpec) -> Self {
        Self { propensity, ..self }
    }

    /// Sets which average the intervals are for.
    #[must_use]
    pub fn scope(self, scope: EffectScope) -> Self {
        Self { scope, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        if self.n_folds < 2 {
            problems.push(format!("n_folds = {}: expected at least 2", self.n_folds));
        }
        if !(self.clip > 0.0 && self.clip < 0.5) {
            let problem = format!(
                "clip = {}: expected a number above 0 and below 0.5",
                self.clip
            );
            problems.push(problem);
        }
        if !(1..=10_000_000).contains(&self.n_draws) {
            problems.push(format!(
                "n_draws = {}: expected a whole number from 1 to 10000000",
                self.n_draws
            ));
        }
        if !self.propensity.family().supports_classes() {
            problems.push(format!(
                "propensity: `{}` predicts numbers only; use a family that takes classes, such as `vst`, `sgb` or `tree`",
                self.propensity.family().name()
            ));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::Parameters(problems))
        }
    }
}

/// A logistic regression with a posterior over its weights: a soft tree of depth 0. On the
/// covariates of the IHDP data it predicts the treatment better than boosted trees and forests do,
/// which are worse than a constant there.
fn default_propensity() -> ModelSpec {
    let params = VstParams {
        max_depth: Some(0),
        leaf_model: Some(Leaf::Linear),
        scaling: Some(Scaling::Standard),
        rotation: Some(Rotation::None),
        squares: Some(false),
        n_fits: 1,
        ..VstParams::default()
    };
    params.into()
}
