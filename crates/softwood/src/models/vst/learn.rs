//! Fitting.

use crate::data::dataset::{Dataset, Target};
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::models::vst::{Vst, VstParams};
use crate::params::Checked;
use crate::posterior::Training;

impl Fit for VstParams {
    type Model = Vst;

    fn learn(_: &Checked<Self>, data: &Dataset, _: &Run<'_>) -> Result<Vst> {
        let (shift, scale) = match data.target() {
            Target::Numeric(values) => {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let variance = values
                    .iter()
                    .map(|value| (value - mean).powi(2))
                    .sum::<f64>()
                    / values.len() as f64;
                (mean, variance.sqrt())
            }
            Target::Classes(_) => (0.0, 1.0),
        };
        Ok(Vst {
            schema: data.schema().clone(),
            training: Training::default(),
            shift,
            scale,
        })
    }
}
