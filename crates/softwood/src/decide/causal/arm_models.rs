//! Models of the two potential outcomes: one model with the treatment as a column, or one model per
//! arm; the predictions of their members with and without the treatment.

use crate::data::table::Table;
use crate::decide::causal::config::CausalRoles;
use crate::decide::causal::treated_rows::TreatedRows;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::model::Model;
use crate::models::registry::ModelSpec;
use crate::observer::Observer;
use crate::par::Pool;
use crate::rng::{Key, shuffle};

/// Random streams of the fits.
const TREATED_FIT: u64 = 1;
const CONTROL_FIT: u64 = 2;
const PAIRS: u64 = 3;

/// Fitted models of the outcome with and without the treatment.
#[derive(Debug)]
pub(super) enum ArmModels {
    /// One model, which has the treatment as a column.
    Single(Box<dyn Model>),
    /// One model per arm; member `m` of the treated arm is paired with `pairs[m]` of the control arm.
    PerArm {
        treated: Box<dyn Model>,
        control: Box<dyn Model>,
        pairs: Vec<usize>,
    },
}

/// Predictions of the members for some rows with and without the treatment (row-major, rows x
/// members). Member `m` of both is one draw of the two functions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PairedMembers {
    pub(super) n_members: usize,
    pub(super) treated: Vec<f64>,
    pub(super) control: Vec<f64>,
}

impl PairedMembers {
    /// Predictions of the members for a row: treated, control.
    pub(super) fn row(&self, row: usize) -> (&[f64], &[f64]) {
        let cells = row * self.n_members..(row + 1) * self.n_members;
        (&self.treated[cells.clone()], &self.control[cells])
    }

    /// The effect of each member for a row.
    pub(super) fn effects(&self, row: usize) -> impl Iterator<Item = f64> {
        let (treated, control) = self.row(row);
        treated
            .iter()
            .zip(control)
            .map(|(treated, control)| treated - control)
    }
}

/// How predictions are computed.
#[derive(Clone, Copy)]
pub(super) struct Prediction<'a> {
    pub(super) pool: &'a Pool,
    pub(super) observer: &'a dyn Observer,
}

impl ArmModels {
    /// One model for both arms.
    pub(super) fn fit_single(
        spec: &ModelSpec,
        data: &TreatedRows,
        rows: &[usize],
        run: &Run<'_>,
    ) -> Result<Self> {
        let data = data.outcomes_with_treatment_at(rows)?;
        Ok(Self::Single(spec.fit_with(&data, run)?))
    }

    /// One model per arm.
    pub(super) fn fit_per_arm(
        spec: &ModelSpec,
        data: &TreatedRows,
        rows: &[usize],
        run: &Run<'_>,
    ) -> Result<Self> {
        let fit = |is_treated: bool, stream: u64| {
            let arm: Vec<usize> = rows
                .iter()
                .copied()
                .filter(|&row| data.is_treated[row] == is_treated)
                .collect();
            let run = Run {
                key: run.key.child(stream),
                ..*run
            };
            let found = data
                .outcomes_at(&arm)
                .and_then(|data| spec.fit_with(&data, &run));
            found.map_err(|error| in_arm(error, data, is_treated))
        };
        let (treated, control) = (fit(true, TREATED_FIT)?, fit(false, CONTROL_FIT)?);
        let n_members = treated.n_members().max(control.n_members());
        let pairs = random_pairs(n_members, control.n_members(), run.key.child(PAIRS));
        Ok(Self::PerArm {
            treated,
            control,
            pairs,
        })
    }

    /// Number of paired members.
    pub(super) fn n_members(&self) -> usize {
        match self {
            Self::Single(model) => model.n_members(),
            Self::PerArm { pairs, .. } => pairs.len(),
        }
    }

    /// Predictions of all paired members for rows of covariates.
    pub(super) fn members(
        &self,
        covariates: &Table,
        roles: &CausalRoles,
        prediction: Prediction<'_>,
    ) -> Result<PairedMembers> {
        let Prediction { pool, observer } = prediction;
        match self {
            Self::Single(model) => {
                let n = covariates.n_rows();
                let arm = |is_treated: bool| {
                    let treatment = roles.column(std::iter::repeat_n(is_treated, n));
                    let table = covariates.clone().with_column(treatment)?;
                    let rows = Distribution::new(model.as_ref(), &table, pool)?;
                    rows.observed_by(observer).members()
                };
                Ok(PairedMembers {
                    n_members: model.n_members(),
                    treated: arm(true)?,
                    control: arm(false)?,
                })
            }
            Self::PerArm {
                treated,
                control,
                pairs,
            } => {
                let own = |model: &dyn Model, members: &mut dyn Iterator<Item = usize>| {
                    let rows = Distribution::new(model, covariates, pool)?;
                    let values = rows.observed_by(observer).members()?;
                    let members: Vec<usize> = members.collect();
                    let chosen = |row: &[f64]| members.iter().map(|&m| row[m]).collect::<Vec<_>>();
                    Ok::<_, Error>(
                        values
                            .chunks_exact(model.n_members())
                            .flat_map(chosen)
                            .collect::<Vec<f64>>(),
                    )
                };
                let n_treated = treated.n_members();
                let mut repeated = (0..pairs.len()).map(|member| member % n_treated);
                Ok(PairedMembers {
                    n_members: pairs.len(),
                    treated: own(treated.as_ref(), &mut repeated)?,
                    control: own(control.as_ref(), &mut pairs.iter().copied())?,
                })
            }
        }
    }
}

/// A random member of `n_choices` for each of `n`; a member repeats only if `n` exceeds their
/// number.
pub(super) fn random_pairs(n: usize, n_choices: usize, key: Key) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n_choices).collect();
    shuffle(&mut key.rng(), &mut order);
    (0..n).map(|at| order[at % n_choices]).collect()
}

/// Adds the level of the treatment to an error about the rows of an arm.
fn in_arm(error: Error, data: &TreatedRows, is_treated: bool) -> Error {
    let level = if is_treated {
        &data.levels.0
    } else {
        &data.levels.1
    };
    match error {
        Error::Table(_) | Error::Column { .. } | Error::Cell { .. } => Error::Table(format!(
            "rows with `{}` = {level}: {error}",
            data.roles.treatment
        )),
        other => other,
    }
}
