//! The fitted variational soft tree: one posterior or several averaged, whose draws are its members.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::error::{Error, Result};
use crate::model::{Model, Training};
use crate::models::vst::params::VstParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::store::record::Record;
use crate::variational::fitted::{FittedHeader, FittedTrees, draws_key, members_of};

/// A fitted variational soft tree: one posterior, or several averaged.
#[derive(Debug, Clone)]
pub struct Vst {
    pub(super) schema: Schema,
    pub(super) params: VstParams,
    pub(super) training: Training,
    pub(super) standard: TargetUnits,
    pub(super) key: Key,
    pub(super) trees: Vec<FittedTrees>,
}

impl Vst {
    /// Parameters it was fitted with.
    pub fn params(&self) -> &VstParams {
        &self.params
    }

    /// Mean and covariance (row-major) of the weights of tree `tree`, leaf by leaf after the gates; inputs are encoded
    /// and standardised, the bias is the last weight of each row.
    pub fn weights(&self, tree: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let posterior = self.trees.get(tree)?.blocks.first()?;
        Some((
            posterior
                .mean()
                .iter()
                .map(|&mean| f64::from(mean))
                .collect(),
            posterior.covariance(),
        ))
    }

    /// Builds the model from its record.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let headers: Vec<FittedHeader> = record.part("trees")?;
        let schema: Schema = record.part("schema")?;
        let params: VstParams = params::from_record(&record.part("params")?)?;
        let key: Key = record.part("key")?;
        let n_trees = headers.len();
        if n_trees == 0 || n_trees > params.n_members {
            return Err(Error::Format(format!(
                "{n_trees} trees for {} members",
                params.n_members
            )));
        }
        let mut trees = Vec::with_capacity(n_trees);
        for (at, header) in headers.into_iter().enumerate() {
            let draws = (
                draws_key(key, at),
                members_of(params.n_members, n_trees, at),
            );
            let name = format!("tree{at}");
            trees.push(FittedTrees::restore(header, record, &schema, &name, draws)?);
        }
        Ok(Self {
            schema,
            params,
            training: record.part("training")?,
            standard: TargetUnits::from_record(record)?,
            key,
            trees,
        })
    }
}

impl Model for Vst {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn head(&self) -> Head {
        if let Some(classes) = self.schema.classes() {
            return Head::Categorical {
                classes: classes.len(),
            };
        }
        let components = self.trees.iter().map(FittedTrees::n_components);
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
        for tree in &self.trees {
            tree.fill(rows, first, out);
            first += tree.n_draws();
        }
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn record(&self) -> Record {
        let headers: Vec<FittedHeader> = self.trees.iter().map(FittedTrees::header).collect();
        let meta = json!({
            "schema": self.schema, "params": self.params, "training": self.training,
            "standard": self.standard, "key": self.key, "trees": headers,
        });
        let arrays = self.trees.iter().enumerate();
        let arrays = arrays.map(|(at, tree)| (format!("tree{at}"), tree.array()));
        Record {
            family: "vst".to_owned(),
            meta,
            arrays: arrays.collect(),
        }
    }
}
