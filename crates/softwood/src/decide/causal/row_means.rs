//! Means and knowledge uncertainty of both potential outcomes of the rows of the estimation, under
//! models that have not seen them where there is cross-fitting.

use crate::decide::causal::arm_models::Prediction;
use crate::decide::causal::cross_fit::CrossFit;
use crate::decide::causal::effect_model::CHUNK_ROWS;
use crate::decide::causal::estimate::MemberSpread;
use crate::decide::causal::treated_rows::TreatedRows;
use crate::error::Result;

/// Means and standard deviations over the members, one per row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowMeans {
    pub(super) treated: Vec<f64>,
    pub(super) control: Vec<f64>,
    /// Knowledge uncertainty of the outcome under the treatment that the row had.
    pub(super) factual_sd: Vec<f64>,
    /// Knowledge uncertainty of the outcome under the other treatment.
    pub(super) counterfactual_sd: Vec<f64>,
}

impl RowMeans {
    pub(super) fn compute(
        data: &TreatedRows,
        fits: &CrossFit,
        prediction: Prediction<'_>,
    ) -> Result<Self> {
        let zeros = || vec![0.0; data.n_rows()];
        let mut means = Self {
            treated: zeros(),
            control: zeros(),
            factual_sd: zeros(),
            counterfactual_sd: zeros(),
        };
        for (models, rows) in fits.outcome.iter().zip(fits.predicted_rows()) {
            for rows in rows.chunks(CHUNK_ROWS) {
                let chunk = data.covariates.take(rows);
                let members = models.members(&chunk, &data.roles, prediction)?;
                for (at, &row) in rows.iter().enumerate() {
                    let (treated, control) = members.row(at);
                    let (treated, control) = (MemberSpread::of(treated), MemberSpread::of(control));
                    means.treated[row] = treated.mean;
                    means.control[row] = control.mean;
                    let sds = (treated.variance.sqrt(), control.variance.sqrt());
                    let (own, other) = if data.is_treated[row] {
                        sds
                    } else {
                        (sds.1, sds.0)
                    };
                    means.factual_sd[row] = own;
                    means.counterfactual_sd[row] = other;
                }
            }
        }
        Ok(means)
    }

    /// The effect of a row under the outcome models, without a correction.
    pub(super) fn effect(&self, row: usize) -> f64 {
        self.treated[row] - self.control[row]
    }
}
