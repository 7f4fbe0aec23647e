//! The fitted tree: its structure, the statistics of its leaves, and the members drawn from the
//! posterior of the leaves.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::binned::export_binned;
use crate::extrapolation::Extrapolation;
use crate::model::{Model, Training};
use crate::models::tree::params::TreeParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::store::record::{Array, Record};
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::column_gains::{as_shares, split_gains};
use crate::trees::leaf_posterior::{LeafDraws, SmoothedLeaves};
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::TreeInputs;

/// The stored parts of a fitted tree.
#[derive(Debug, Clone)]
pub(super) struct TreeParts {
    pub(super) inputs: TreeInputs,
    pub(super) params: TreeParams,
    pub(super) training: Training,
    pub(super) structure: TreeStructure,
    pub(super) leaves: SmoothedLeaves,
}

/// A fitted classification or regression tree.
#[derive(Debug, Clone)]
pub struct Tree {
    parts: TreeParts,
    draws: LeafDraws,
}

impl Tree {
    /// Draws the members of the model.
    pub(super) fn new(parts: TreeParts) -> Self {
        let draws = LeafDraws::new(&parts.leaves, parts.inputs.n_members);
        Self { parts, draws }
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let inputs = TreeInputs::from_record(record)?;
        let mut words = WordReader::new(record.u32s("tests")?);
        let structure = TreeStructure::read(&mut words, &inputs.cuts)?;
        let n_values = structure.n_leaves() * inputs.kind.n_stats();
        let parts = TreeParts {
            params: params::from_record(&record.part("params")?)?,
            training: record.part("training")?,
            leaves: SmoothedLeaves {
                kind: inputs.kind,
                stats: record.f64s("leaves", n_values)?.to_vec(),
                smoothing: record.part("smoothing")?,
                key: record.part("key")?,
            },
            inputs,
            structure,
        };
        let is_general = matches!(parts.structure, TreeStructure::General { .. });
        let has_valid_leaves = (parts.leaves).is_valid(parts.inputs.n_members, &parts.inputs.units);
        if !(words.is_empty() && is_general && has_valid_leaves) {
            return Err(Error::Format(
                "the structure, the leaves or the members of the tree are not valid".to_owned(),
            ));
        }
        Ok(Self::new(parts))
    }

    fn nodes(&self) -> NodeStatistics {
        let parts = &self.parts;
        NodeStatistics::new(parts.inputs.kind, &parts.structure, &parts.leaves.stats)
    }
}

impl Model for Tree {
    fn family(&self) -> &'static str {
        "tree"
    }

    fn schema(&self) -> &Schema {
        &self.parts.inputs.schema
    }

    fn head(&self) -> Head {
        self.parts.inputs.head(1)
    }

    fn n_members(&self) -> usize {
        self.parts.inputs.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let TreeParts {
            inputs, structure, ..
        } = &self.parts;
        out.shift = inputs.units.shift;
        out.scale = inputs.units.scale;
        inputs.for_each_member(rows, |binned| {
            for &row in binned.rows {
                let leaf = binned.bins.leaf(structure, row);
                for member in binned.members.clone() {
                    self.draws.fill(out, member, row, leaf);
                }
            }
        });
        out.pad();
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.parts.training
    }

    fn extrapolation(&self) -> Option<&Extrapolation> {
        self.parts.inputs.extrapolation()
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(record)?))
    }

    fn record(&self) -> Record {
        let parts = &self.parts;
        let mut words = Vec::new();
        parts.structure.write(&mut words);
        let meta = json!({
            "params": parts.params, "training": parts.training, "smoothing": parts.leaves.smoothing,
            "key": parts.leaves.key,
        });
        parts.inputs.write(Record {
            family: "tree".to_owned(),
            meta,
            arrays: vec![
                ("tests".to_owned(), Array::U32(words)),
                ("leaves".to_owned(), Array::F64(parts.leaves.stats.clone())),
            ],
        })
    }

    fn gains(&self) -> Option<Vec<f64>> {
        let parts = &self.parts;
        let n_columns = parts.inputs.schema.fields.len();
        let gains = split_gains(&self.nodes(), &parts.structure, n_columns);
        Some(as_shares(gains))
    }

    fn n_nodes(&self) -> Option<f64> {
        Some(self.nodes().n_nodes() as f64)
    }

    fn tree_export(&self) -> Option<TreeExport> {
        let parts = &self.parts;
        let nodes = self.nodes();
        Some(export_binned(
            &parts.inputs,
            &parts.structure,
            &parts.leaves,
            &nodes,
        ))
    }
}
