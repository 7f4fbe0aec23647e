//! The fitted sum of soft trees: one posterior or an average of several; its members are posterior
//! draws.

use std::ops::RangeInclusive;

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::Result;
use crate::extrapolation::Extrapolation;
use crate::likelihood::NoiseModel;
use crate::model::{Model, Training};
use crate::models::vsgbm::params::VsgbmParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::store::range;
use crate::store::record::{Array, Record};
use crate::variational::ensemble::{FittedEnsemble, StoredNames};
use crate::variational::noise_calibration;

const STORED_NAMES: StoredNames = StoredNames {
    headers: "fits",
    array: "fit",
};

/// Calibration factors that are accepted from a file.
const NOISE_FACTORS: RangeInclusive<f64> = 1e-15..=1e15;

/// A fitted sum of variational soft trees: one posterior, or an average of several.
#[derive(Debug, Clone)]
pub struct Vsgbm {
    pub(super) params: VsgbmParams,
    pub(super) ensemble: FittedEnsemble,
    /// Standard deviation of a constant noise under each member, in standard units; empty if the
    /// noise varies.
    pub(super) noise: Vec<f64>,
    /// Calibration factor of the standard deviations of a varying noise; stored as `spread`.
    pub(super) noise_factor: f64,
}

impl Vsgbm {
    /// The parameters of the fit.
    pub fn params(&self) -> &VsgbmParams {
        &self.params
    }

    /// Number of trees of each fit of the ensemble.
    pub fn n_trees(&self) -> Vec<usize> {
        let fits = self.ensemble.fits.iter();
        fits.map(|fit| 1 + fit.spec.stack.n_added).collect()
    }

    /// Standard deviation of a constant noise under each member, in the units of the target; empty
    /// if the noise varies.
    pub fn noise(&self) -> Vec<f64> {
        let scale = self.ensemble.standard.scale;
        self.noise.iter().map(|sd| sd * scale).collect()
    }

    /// Whether the noise scale is calibrated.
    fn is_calibrated(&self) -> bool {
        let is_varying = self.ensemble.schema.classes().is_none() && self.noise.is_empty();
        is_varying && self.params.calibrate_noise
    }

    /// Restores the model from its record.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let params: VsgbmParams = params::from_record(&record.part("params")?)?;
        let ensemble = FittedEnsemble::restore(record, STORED_NAMES, params.n_members)?;
        let has_constant_noise = has_constant_noise(&params, &ensemble.schema);
        let n_noise = if has_constant_noise {
            params.n_members
        } else {
            0
        };
        let noise = record.f64s("noise", n_noise)?.to_vec();
        for &sd in &noise {
            range::check("noise", sd, &range::STANDARD_DEVIATIONS)?;
        }
        let noise_factor: f64 = record.part("spread")?;
        range::check("spread", noise_factor, &NOISE_FACTORS)?;
        Ok(Self {
            params,
            ensemble,
            noise,
            noise_factor,
        })
    }
}

/// Whether a model has one noise variance for all rows.
pub(super) fn has_constant_noise(params: &VsgbmParams, schema: &Schema) -> bool {
    params.noise == NoiseModel::Constant && schema.classes().is_none()
}

impl Model for Vsgbm {
    fn family(&self) -> &'static str {
        "vsgbm"
    }

    fn schema(&self) -> &Schema {
        &self.ensemble.schema
    }

    fn head(&self) -> Head {
        self.ensemble.head()
    }

    fn n_members(&self) -> usize {
        self.params.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        self.ensemble.uncalibrated_members(rows, out);
        if self.is_calibrated() {
            noise_calibration::apply(&self.ensemble.fits, self.noise_factor, out);
            self.ensemble.calibration.apply(out);
        }
        for (member, &sd) in self.noise.iter().enumerate() {
            let range = out.at(member, 0)..out.at(member + 1, 0);
            out.normal_mut().sd[range].fill(sd);
        }
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.ensemble.training
    }

    fn extrapolation(&self) -> Option<&Extrapolation> {
        self.ensemble.extrapolation()
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(record)?))
    }

    fn record(&self) -> Record {
        let mut record = (self.ensemble).record("vsgbm", STORED_NAMES, &self.params);
        record.meta["spread"] = json!(self.noise_factor);
        let noise = Array::F64(self.noise.clone());
        record.arrays.push(("noise".to_owned(), noise));
        record
    }
}
