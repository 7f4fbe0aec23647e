//! The fitted sum of soft trees: one posterior or several averaged, whose draws are its members.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::error::{Error, Result};
use crate::likelihood::NoiseModel;
use crate::model::{Model, Training};
use crate::models::vsgbm::noise_calibration;
use crate::models::vsgbm::params::VsgbmParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::store::record::{Array, Record};
use crate::variational::fitted::{FittedHeader, FittedTrees, draws_key, members_of};

/// A fitted sum of variational soft trees: one posterior, or several averaged.
#[derive(Debug, Clone)]
pub struct Vsgbm {
    pub(super) schema: Schema,
    pub(super) params: VsgbmParams,
    pub(super) training: Training,
    pub(super) standard: TargetUnits,
    pub(super) key: Key,
    pub(super) fits: Vec<FittedTrees>,
    /// Standard deviation of a constant noise under each member, in standard units; empty where the noise varies.
    pub(super) noise: Vec<f64>,
    /// Factor of the standard deviations of a varying noise, besides what averaging takes from each row.
    pub(super) spread: f64,
}

impl Vsgbm {
    /// Parameters it was fitted with.
    pub fn params(&self) -> &VsgbmParams {
        &self.params
    }

    /// Trees of each of its fits.
    pub fn n_trees(&self) -> Vec<usize> {
        let fits = self.fits.iter();
        fits.map(|fit| 1 + fit.spec.stack.n_added).collect()
    }

    /// Standard deviation of a constant noise under each member, in the target's units; empty where the noise varies.
    pub fn noise(&self) -> Vec<f64> {
        let scale = self.standard.scale;
        self.noise.iter().map(|sd| sd * scale).collect()
    }

    /// Whether the widths of its noise are made to fit the average of its fits.
    fn is_recalibrated(&self) -> bool {
        let is_varying = self.schema.classes().is_none() && self.noise.is_empty();
        is_varying && self.params.calibrate_noise
    }

    /// Builds the model from its record.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let headers: Vec<FittedHeader> = record.part("fits")?;
        let schema: Schema = record.part("schema")?;
        let params: VsgbmParams = params::from_record(&record.part("params")?)?;
        let key: Key = record.part("key")?;
        let n_fits = headers.len();
        if n_fits == 0 || n_fits > params.n_members {
            return Err(Error::Format(format!(
                "{n_fits} fits for {} members",
                params.n_members
            )));
        }
        let mut fits = Vec::with_capacity(n_fits);
        for (at, header) in headers.into_iter().enumerate() {
            let draws = (draws_key(key, at), members_of(params.n_members, n_fits, at));
            let name = format!("fit{at}");
            fits.push(FittedTrees::restore(header, record, &schema, &name, draws)?);
        }
        let is_constant = params.noise == NoiseModel::Constant && schema.classes().is_none();
        let n_noise = if is_constant { params.n_members } else { 0 };
        let noise = record.f64s("noise", n_noise)?.to_vec();
        if noise.iter().any(|sd| !sd.is_finite() || *sd <= 0.0) {
            return Err(Error::Format("a noise is no positive number".to_owned()));
        }
        let standard = TargetUnits::from_record(record)?;
        let spread: f64 = record.part("spread")?;
        if !(spread.is_finite() && spread > 0.0) {
            return Err(Error::Format(format!("an impossible spread: {spread}")));
        }
        Ok(Self {
            schema,
            params,
            training: record.part("training")?,
            standard,
            key,
            fits,
            noise,
            spread,
        })
    }
}

impl Model for Vsgbm {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn head(&self) -> Head {
        if let Some(classes) = self.schema.classes() {
            return Head::Categorical {
                classes: classes.len(),
            };
        }
        let components = self.fits.iter().map(FittedTrees::n_components);
        Head::Normal {
            components: components.max().unwrap_or(1),
        }
    }

    fn n_members(&self) -> usize {
        self.params.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        out.shift = self.standard.shift;
        out.scale = self.standard.scale;
        let mut first = 0;
        for fit in &self.fits {
            fit.fill(rows, first, out);
            first += fit.n_draws();
        }
        if self.is_recalibrated() {
            noise_calibration::apply(&self.fits, self.spread, out);
        }
        for (member, &sd) in self.noise.iter().enumerate() {
            let range = out.at(member, 0)..out.at(member + 1, 0);
            out.sd[range].fill(sd);
        }
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn record(&self) -> Record {
        let headers: Vec<FittedHeader> = self.fits.iter().map(FittedTrees::header).collect();
        let meta = json!({
            "schema": self.schema, "params": self.params, "training": self.training,
            "standard": self.standard, "key": self.key, "fits": headers, "spread": self.spread,
        });
        let fits = self.fits.iter().enumerate();
        let mut arrays: Vec<(String, Array)> = fits
            .map(|(at, fit)| (format!("fit{at}"), fit.array()))
            .collect();
        arrays.push(("noise".to_owned(), Array::F64(self.noise.clone())));
        Record {
            family: "vsgbm".to_owned(),
            meta,
            arrays,
        }
    }
}
