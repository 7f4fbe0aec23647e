//! The fitted tree: encoder, structure, statistics of the leaves, and the members drawn from the
//! posterior of the leaves.

use std::sync::Arc;

use serde_json::json;

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::extrapolation::Extrapolation;
use crate::model::{Model, Training};
use crate::models::ldt::export::{column_gains, tree_export};
use crate::models::ldt::oblique_tree::ObliqueTree;
use crate::models::ldt::params::LdtParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::stop::until_cancelled;
use crate::store::record::{Array, Record};
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::leaf_posterior::{LeafDraws, SmoothedLeaves};
use crate::trees::training_set::cart_target;

/// Largest standard deviation of an input in a file: inputs are clamped to a thousand.
const MAX_INPUT_SD: f32 = 1e4;

/// The stored parts of a fitted tree.
#[derive(Debug, Clone)]
pub(super) struct LdtParts {
    pub(super) schema: Schema,
    pub(super) units: TargetUnits,
    pub(super) encoder: Encoder,
    /// Standard deviation of each input over the training rows.
    pub(super) input_sd: Vec<f32>,
    pub(super) params: LdtParams,
    pub(super) training: Training,
    pub(super) tree: ObliqueTree,
    pub(super) leaves: SmoothedLeaves,
    pub(super) n_members: usize,
    pub(super) substitutes: UnseenSubstitutes,
    pub(super) extrapolation: Option<Arc<Extrapolation>>,
}

impl LdtParts {
    /// Statistics of all nodes.
    pub(super) fn nodes(&self) -> NodeStatistics {
        NodeStatistics::of_children(self.leaves.kind, &self.tree.children, &self.leaves.stats)
    }
}

/// A fitted linear discriminant tree.
#[derive(Debug, Clone)]
pub struct Ldt {
    parts: LdtParts,
    draws: LeafDraws,
}

impl Ldt {
    /// Draws the members of the model.
    pub(super) fn new(parts: LdtParts) -> Self {
        let draws = LeafDraws::new(&parts.leaves, parts.n_members);
        Self { parts, draws }
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let schema = Schema::from_record(record)?;
        let encoder: Encoder = record.part("encoder")?;
        if !encoder.fits(&schema) {
            return Err(Error::Format(
                "the encoder does not fit the schema".to_owned(),
            ));
        }
        let kind = cart_target(&schema);
        let n_inputs = encoder.n_inputs();
        let tree = ObliqueTree::from_record(record, n_inputs)?;
        let parts = LdtParts {
            units: TargetUnits::from_record(record)?,
            input_sd: record.f32s("input_sd", n_inputs)?.to_vec(),
            params: params::from_record(&record.part("params")?)?,
            training: record.part("training")?,
            leaves: SmoothedLeaves {
                kind,
                stats: record
                    .f64s("leaves", tree.n_leaves().saturating_mul(kind.n_stats()))?
                    .to_vec(),
                smoothing: record.part("smoothing")?,
                key: record.part("key")?,
            },
            n_members: record.part("n_members")?,
            extrapolation: Extrapolation::read(record, &schema)?,
            substitutes: UnseenSubstitutes::from_record(record)?,
            schema,
            encoder,
            tree,
        };
        let are_deviations = |sd: &f32| (0.0..=MAX_INPUT_SD).contains(sd);
        let is_valid = parts.leaves.is_valid(parts.n_members, &parts.units)
            && parts.input_sd.iter().all(are_deviations);
        if !is_valid {
            return Err(Error::Format(
                "the leaves, the inputs or the members of the tree are not valid".to_owned(),
            ));
        }
        Ok(Self::new(parts))
    }
}

impl Model for Ldt {
    fn family(&self) -> &'static str {
        "ldt"
    }

    fn schema(&self) -> &Schema {
        &self.parts.schema
    }

    fn head(&self) -> Head {
        match self.parts.leaves.kind {
            CartTarget::Classes(classes) => Head::Categorical { classes },
            CartTarget::Number => Head::Normal { components: 1 },
        }
    }

    fn n_members(&self) -> usize {
        self.parts.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let LdtParts {
            encoder,
            tree,
            units,
            n_members,
            substitutes,
            ..
        } = &self.parts;
        out.shift = units.shift;
        out.scale = units.scale;
        let n_inputs = encoder.n_inputs();
        let encoded = encoder.encode(rows);
        for (row, inputs) in encoded.chunks_exact(n_inputs + 1).enumerate() {
            let leaf = tree.leaf(&inputs[..n_inputs]);
            for member in 0..*n_members {
                self.draws.fill(out, member, row, leaf);
            }
        }
        // each member replaces unseen cells by known categories or values of its own
        let unseen = encoder.unseen(rows);
        for cells in until_cancelled(unseen.chunk_by(|a, b| a.row == b.row)) {
            for group in substitutes.groups(*n_members, cells) {
                let inputs = encoder.substituted(rows, cells, &group.codes);
                let leaf = tree.leaf(&inputs[..n_inputs]);
                for member in group.members {
                    self.draws.fill(out, member, cells[0].row, leaf);
                }
            }
        }
        out.pad();
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.parts.training
    }

    fn extrapolation(&self) -> Option<&Extrapolation> {
        self.parts.extrapolation.as_deref()
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(record)?))
    }

    fn record(&self) -> Record {
        let parts = &self.parts;
        let meta = json!({
            "schema": parts.schema, "params": parts.params, "training": parts.training,
            "standard": parts.units, "encoder": parts.encoder, "n_members": parts.n_members,
            "unseen": parts.substitutes.stored(), "smoothing": parts.leaves.smoothing,
            "key": parts.leaves.key,
        });
        let mut arrays = parts.tree.arrays();
        arrays.extend([
            ("leaves".to_owned(), Array::F64(parts.leaves.stats.clone())),
            ("input_sd".to_owned(), Array::F32(parts.input_sd.clone())),
        ]);
        let record = Record {
            family: "ldt".to_owned(),
            meta,
            arrays,
        };
        Extrapolation::write(self.extrapolation(), record)
    }

    fn gains(&self) -> Option<Vec<f64>> {
        Some(column_gains(&self.parts))
    }

    fn n_nodes(&self) -> Option<f64> {
        Some(self.parts.nodes().n_nodes() as f64)
    }

    fn tree_export(&self) -> Option<TreeExport> {
        Some(tree_export(&self.parts))
    }
}
