//! Effects of a treatment on a numeric outcome, with any regression family: averages (ATE, ATT),
//! effects of single rows (CATE), values of policies, and diagnostics of overlap.
//!
//! The effects are causal only if the covariates contain everything that influences both treatment
//! and outcome; no table can show whether they do.
//!
//! ```
//! use softwood::decide::causal::{self, CausalConfig, CausalMethod, CausalRoles};
//! use softwood::models::TreeParams;
//! use softwood::{Column, Key, Pool, Run, Table};
//!
//! // older rows are treated more often and have larger outcomes; the treatment adds 2
//! let n = 400;
//! let age: Vec<f64> = (0..n).map(|row| f64::from(row % 20)).collect();
//! let treated: Vec<f64> = (0..n).map(|row| f64::from(u8::from((7 * row + row / 20) % 20 < row % 20))).collect();
//! let y = age.iter().zip(&treated).map(|(age, treated)| age + 2.0 * treated).collect();
//! let table = Table::new(vec![
//!     Column::numeric("age", age),
//!     Column::numeric("treated", treated),
//!     Column::numeric("y", y),
//! ])?;
//! let config = CausalConfig::new(TreeParams::default().into()).propensity(TreeParams::default().into());
//! let pool = Pool::new(1)?;
//! let run = Run::new(Key::from_seed(0), &pool);
//! let effects = causal::estimate(&table, &CausalRoles::new("treated", "y"), &config, &run)?;
//! let average = effects.average_effect(0.9, &pool)?;
//! assert!((average.mean - 2.0).abs() < 0.5 && effects.naive_difference() > 4.0);
//! # Ok::<(), softwood::Error>(())
//! ```

mod arm_models;
mod config;
mod cross_fit;
mod effect_model;
mod estimate;
mod linear_score;
mod overlap;
mod policy;
pub mod problems;
mod row_means;
mod treated_rows;

use crate::data::table::Table;
use crate::error::Result;
use crate::fit::Run;

pub use config::{CausalConfig, CausalMethod, CausalRoles, EffectScope};
pub use effect_model::{ConditionalEffects, EffectModel};
pub use estimate::EffectEstimate;
pub use overlap::OverlapReport;
pub use policy::{TreatmentPolicy, TreatmentPolicyValue};

/// Estimates the effects of a treatment from a table with covariates, treatment and outcome. The
/// key, the thread pool and the observer of `run` are used; the result does not depend on the
/// number of threads.
///
/// # Errors
/// When a column is absent or has two roles; the treatment has a missing cell, or does not have two
/// levels and none are named; an arm has too few rows; the outcome is not a number in every row; a
/// setting is out of range; or a fit fails.
pub fn estimate(
    table: &Table,
    roles: &CausalRoles,
    config: &CausalConfig,
    run: &Run<'_>,
) -> Result<EffectModel> {
    let data = treated_rows::TreatedRows::from_table(table, roles)?;
    EffectModel::fit(data, config, run)
}
