//! The fitted variational soft tree: one posterior or an average of several; its members are
//! posterior draws.

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::Result;
use crate::extrapolation::Extrapolation;
use crate::model::{Model, Training};
use crate::models::vst::params::VstParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::store::record::Record;
use crate::variational::ensemble::{FittedEnsemble, StoredNames};

const STORED_NAMES: StoredNames = StoredNames {
    headers: "trees",
    array: "tree",
};

/// A fitted variational soft tree: one posterior, or an average of several.
#[derive(Debug, Clone)]
pub struct Vst {
    pub(super) params: VstParams,
    pub(super) ensemble: FittedEnsemble,
}

impl Vst {
    /// The parameters of the fit.
    pub fn params(&self) -> &VstParams {
        &self.params
    }

    /// Posterior mean and covariance (row-major) of the weights of tree `tree`; `None` if there is
    /// no such tree. Gates come first, then the leaves, channel by channel; each gate or leaf has
    /// one weight per encoded input and the bias last.
    pub fn weights(&self, tree: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let posterior = self.ensemble.fits.get(tree)?.blocks.first()?;
        let mean = posterior.mean().iter().map(|&mean| f64::from(mean));
        Some((mean.collect(), posterior.covariance()))
    }

    /// Restores the model from its record.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let params: VstParams = params::from_record(&record.part("params")?)?;
        Ok(Self {
            ensemble: FittedEnsemble::restore(record, STORED_NAMES, params.n_members)?,
            params,
        })
    }
}

impl Model for Vst {
    fn family(&self) -> &'static str {
        "vst"
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
        self.ensemble.members(rows, out);
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
        self.ensemble.record("vst", STORED_NAMES, &self.params)
    }
}
