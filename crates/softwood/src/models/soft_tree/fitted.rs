//! The fitted soft tree: one posterior over the weights of the grown tree, or several trees; its
//! members are posterior draws.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::extrapolation::Extrapolation;
use crate::model::{Model, Training};
use crate::models::soft_tree::params::SoftTreeParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::soft::general_layout::GeneralLayout;
use crate::soft::layout::TreeLayout;
use crate::store::record::Record;
use crate::trees::training_set::cart_target;
use crate::variational::ensemble::{FittedEnsemble, StoredNames};
use crate::variational::tree_export::ExportedTree;
use crate::variational::tree_summary::TreeSummary;

const STORED_NAMES: StoredNames = StoredNames {
    headers: "trees",
    array: "tree",
};

/// A fitted incremental soft tree.
#[derive(Debug, Clone)]
pub struct SoftTree {
    pub(super) params: SoftTreeParams,
    pub(super) n_members: usize,
    /// Summary of the training rows of each tree.
    pub(super) summaries: Vec<TreeSummary>,
    pub(super) ensemble: FittedEnsemble<GeneralLayout>,
}

impl SoftTree {
    /// The parameters of the fit.
    pub fn params(&self) -> &SoftTreeParams {
        &self.params
    }

    /// Restores the model from its record.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let params: SoftTreeParams = params::from_record(&record.part("params")?)?;
        let summaries: Vec<TreeSummary> = record.part("summaries")?;
        let n_members = if params.is_ensemble() {
            summaries.len()
        } else {
            params.n_members
        };
        let ensemble: FittedEnsemble<GeneralLayout> =
            FittedEnsemble::restore(record, STORED_NAMES, n_members)?;
        let kind = cart_target(&ensemble.schema);
        let is_valid = summaries.len() == ensemble.fits.len()
            && (summaries.iter().zip(&ensemble.fits)).all(|(summary, fit)| {
                fit.blocks.len() == 1 && summary.fits(kind, &fit.spec.stack.first)
            });
        if !is_valid {
            return Err(Error::Format(
                "`summaries` does not fit the trees".to_owned(),
            ));
        }
        Ok(Self {
            params,
            n_members,
            summaries,
            ensemble,
        })
    }
}

impl Model for SoftTree {
    fn family(&self) -> &'static str {
        "soft-tree"
    }

    fn schema(&self) -> &Schema {
        &self.ensemble.schema
    }

    fn head(&self) -> Head {
        self.ensemble.head()
    }

    fn n_members(&self) -> usize {
        self.n_members
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
        let mut record = (self.ensemble).record("soft-tree", STORED_NAMES, &self.params);
        record.meta["summaries"] = json!(self.summaries);
        record
    }

    fn n_nodes(&self) -> Option<f64> {
        let nodes = self.ensemble.fits.iter();
        let total: usize = nodes.map(|fit| fit.spec.stack.first.n_nodes()).sum();
        Some(total as f64 / self.ensemble.fits.len() as f64)
    }

    fn tree_export(&self) -> Option<TreeExport> {
        let [fit] = self.ensemble.fits.as_slice() else {
            return None;
        };
        let tree = ExportedTree {
            schema: &self.ensemble.schema,
            encoder: &fit.encoder,
            units: self.ensemble.standard,
            layout: &fit.spec.stack.first,
            weights: fit.blocks[0].mean(),
            beta: fit.spec.beta,
            summary: &self.summaries[0],
        };
        Some(tree.export())
    }
}
