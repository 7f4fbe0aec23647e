//! The fitted model: hard trees on binned columns, the statistics of their leaves, and the members
//! drawn from the posterior of the leaves.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::binned::export_binned;
use crate::model::{Model, Training};
use crate::models::rnn_tree::params::RnnTreeParams;
use crate::models::rnn_tree::pruning::FittedTree;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::store::record::{Array, Record};
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::column_gains::split_gains;
use crate::trees::leaf_posterior::{LeafDraws, SmoothedLeaves, Smoothing};
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::TreeInputs;

/// The stored parts of a fitted model.
#[derive(Debug, Clone)]
pub(super) struct RnnTreeParts {
    pub(super) inputs: TreeInputs,
    pub(super) params: RnnTreeParams,
    pub(super) training: Training,
    /// At most as many trees as members; the best is first.
    pub(super) trees: Vec<FittedTree>,
}

/// A fitted RNN-Tree.
#[derive(Debug, Clone)]
pub struct RnnTree {
    parts: RnnTreeParts,
    /// Members of each tree.
    draws: Vec<LeafDraws>,
}

impl RnnTree {
    /// Draws the members of the model.
    pub(super) fn new(parts: RnnTreeParts) -> Self {
        let n_draws = parts.inputs.n_members.div_ceil(parts.trees.len());
        let draws = parts
            .trees
            .iter()
            .map(|tree| LeafDraws::new(&tree.leaves, n_draws));
        Self {
            draws: draws.collect(),
            parts,
        }
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let inputs = TreeInputs::from_record(record)?;
        let mut words = WordReader::new(record.u32s("tests")?);
        let smoothings: Vec<Smoothing> = record.part("smoothing")?;
        let keys: Vec<crate::rng::Key> = record.part("keys")?;
        let n_stats = inputs.kind.n_stats();
        let invalid = || {
            Error::Format(
                "the structure, the leaves or the members of a tree are not valid".to_owned(),
            )
        };
        if smoothings.is_empty()
            || smoothings.len() != keys.len()
            || smoothings.len() > inputs.n_members
        {
            return Err(invalid());
        }
        let mut trees = Vec::new();
        for (at, (smoothing, key)) in smoothings.into_iter().zip(keys).enumerate() {
            let structure = TreeStructure::read(&mut words, &inputs.cuts)?;
            let n_values = structure.n_leaves().saturating_mul(n_stats);
            let stats = record.f64s(&format!("leaves{at}"), n_values)?.to_vec();
            let tree = FittedTree {
                leaves: SmoothedLeaves {
                    kind: inputs.kind,
                    stats,
                    smoothing,
                    key,
                },
                structure,
            };
            let is_general = matches!(tree.structure, TreeStructure::General { .. });
            if !(is_general && tree.leaves.is_valid(inputs.n_members, &inputs.units)) {
                return Err(invalid());
            }
            trees.push(tree);
        }
        if !words.is_empty() {
            return Err(invalid());
        }
        Ok(Self::new(RnnTreeParts {
            params: params::from_record(&record.part("params")?)?,
            training: record.part("training")?,
            inputs,
            trees,
        }))
    }

    fn nodes(&self, tree: usize) -> NodeStatistics {
        let FittedTree { structure, leaves } = &self.parts.trees[tree];
        NodeStatistics::new(leaves.kind, structure, &leaves.stats)
    }
}

impl Model for RnnTree {
    fn family(&self) -> &'static str {
        "rnn-tree"
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
        let RnnTreeParts { inputs, trees, .. } = &self.parts;
        out.shift = inputs.units.shift;
        out.scale = inputs.units.scale;
        let n_trees = trees.len();
        inputs.for_each_member(rows, |binned| {
            for &row in binned.rows {
                for (at, tree) in trees.iter().enumerate() {
                    let of_tree = |member: &usize| member % n_trees == at;
                    let mut members = binned.members.clone().filter(of_tree).peekable();
                    if members.peek().is_none() {
                        continue;
                    }
                    let leaf = binned.bins.leaf(&tree.structure, row);
                    for member in members {
                        self.draws[at].fill_as(out, member, row, leaf, member / n_trees);
                    }
                }
            }
        });
        out.pad();
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.parts.training
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(record)?))
    }

    fn record(&self) -> Record {
        let parts = &self.parts;
        let mut words = Vec::new();
        let mut arrays = Vec::new();
        for (at, tree) in parts.trees.iter().enumerate() {
            tree.structure.write(&mut words);
            arrays.push((format!("leaves{at}"), Array::F64(tree.leaves.stats.clone())));
        }
        arrays.insert(0, ("tests".to_owned(), Array::U32(words)));
        let leaves = || parts.trees.iter().map(|tree| &tree.leaves);
        let smoothing: Vec<_> = leaves().map(|leaves| &leaves.smoothing).collect();
        let keys: Vec<_> = leaves().map(|leaves| leaves.key).collect();
        let mut meta = json!({
            "params": parts.params, "training": parts.training, "smoothing": smoothing, "keys": keys,
        });
        parts.inputs.write(&mut meta);
        Record {
            family: "rnn-tree".to_owned(),
            meta,
            arrays,
        }
    }

    fn gains(&self) -> Option<Vec<f64>> {
        let n_columns = self.parts.inputs.schema.fields.len();
        let mut gains = vec![0.0; n_columns];
        for (at, tree) in self.parts.trees.iter().enumerate() {
            let of_tree = split_gains(&self.nodes(at), &tree.structure, n_columns);
            for (sum, gain) in gains.iter_mut().zip(of_tree) {
                *sum += gain;
            }
        }
        Some(crate::trees::column_gains::as_shares(gains))
    }

    fn n_nodes(&self) -> Option<f64> {
        let n_trees = self.parts.trees.len();
        let sum: usize = (0..n_trees).map(|tree| self.nodes(tree).n_nodes()).sum();
        Some(sum as f64 / n_trees as f64)
    }

    fn tree_export(&self) -> Option<TreeExport> {
        let FittedTree { structure, leaves } = &self.parts.trees[0];
        Some(export_binned(
            &self.parts.inputs,
            structure,
            leaves,
            &self.nodes(0),
        ))
    }
}
