//! The fitted tree: its structure, the statistics of its leaves, and the members drawn from the
//! posterior of the leaves.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::model::{Model, Training};
use crate::models::tree::export::tree_export;
use crate::models::tree::params::TreeParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::store::record::{Array, Record};
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::cart::{CartTarget, MAX_CLASSES};
use crate::trees::column_gains::as_shares;
use crate::trees::leaf_posterior::{MAX_STORED, Smoothing};
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::TreeInputs;

/// Largest number of members: the bound of the parameter.
const MAX_MEMBERS: usize = 1000;

/// The stored parts of a fitted tree.
#[derive(Debug, Clone)]
pub(super) struct TreeParts {
    pub(super) inputs: TreeInputs,
    pub(super) params: TreeParams,
    pub(super) training: Training,
    pub(super) structure: TreeStructure,
    /// Statistics of the leaves, leaves x statistics.
    pub(super) leaves: Vec<f64>,
    pub(super) smoothing: Smoothing,
    /// Key of the posterior draws.
    pub(super) key: Key,
}

/// A fitted classification or regression tree.
#[derive(Debug, Clone)]
pub struct Tree {
    parts: TreeParts,
    /// Posterior draws: means (leaves x members), or probabilities (leaves x members x classes).
    draws: Vec<f64>,
    /// Standard deviation of each leaf; empty for classification.
    sd: Vec<f64>,
}

impl Tree {
    /// Draws the members of the model.
    pub(super) fn new(parts: TreeParts) -> Self {
        let (kind, n_members) = (parts.inputs.kind, parts.inputs.n_members);
        let (mut draws, mut sd) = (Vec::new(), Vec::new());
        for (leaf, stats) in parts.leaves.chunks_exact(kind.n_stats()).enumerate() {
            let key = parts.key.child(leaf as u64);
            match kind {
                CartTarget::Number => {
                    draws.extend(parts.smoothing.draw_means(stats, n_members, key));
                    sd.push(parts.smoothing.variance(stats).sqrt());
                }
                CartTarget::Classes(_) => {
                    draws.extend(parts.smoothing.draw_classes(stats, n_members, key));
                }
            }
        }
        Self { parts, draws, sd }
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
            leaves: record.f64s("leaves", n_values)?.to_vec(),
            smoothing: record.part("smoothing")?,
            key: record.part("key")?,
            inputs,
            structure,
        };
        if !(words.is_empty() && is_valid(&parts)) {
            return Err(Error::Format(
                "the structure, the leaves or the members of the tree are not valid".to_owned(),
            ));
        }
        Ok(Self::new(parts))
    }

    fn nodes(&self) -> NodeStatistics {
        let parts = &self.parts;
        NodeStatistics::new(parts.inputs.kind, &parts.structure, &parts.leaves)
    }

    /// Writes the distribution of a member in a leaf.
    fn fill(&self, out: &mut Block, member: usize, row: usize, leaf: usize) {
        let n_members = self.parts.inputs.n_members;
        match self.parts.inputs.kind {
            CartTarget::Number => {
                let at = out.at(member, 0) + row;
                out.weight[at] = 1.0;
                out.mean[at] = self.draws[leaf * n_members + member];
                out.sd[at] = self.sd[leaf];
            }
            CartTarget::Classes(n) => {
                let from = (leaf * n_members + member) * n;
                for (class, &p) in self.draws[from..from + n].iter().enumerate() {
                    let at = out.at(member, class) + row;
                    out.weight[at] = p;
                }
            }
        }
    }
}

/// Whether the parts of a file are possible.
fn is_valid(parts: &TreeParts) -> bool {
    let (kind, n_members) = (parts.inputs.kind, parts.inputs.n_members);
    let units = parts.inputs.units;
    let are_stats = |stats: &[f64]| match kind {
        CartTarget::Number => {
            let end = stats[1].abs() + (stats[2] / stats[0]).sqrt();
            stats[0] > 0.0 && stats[2] >= 0.0 && (units.shift.abs() + units.scale * end).is_finite()
        }
        CartTarget::Classes(_) => stats.iter().all(|&weight| weight >= 0.0),
    };
    let n_values = match kind {
        CartTarget::Number => n_members,
        CartTarget::Classes(n) => n_members.saturating_mul(n),
    };
    !matches!(parts.structure, TreeStructure::Symmetric(_))
        && kind != CartTarget::Classes(0)
        && kind.n_stats() <= MAX_CLASSES
        && parts.leaves.iter().all(|value| value.abs() <= MAX_STORED)
        && parts.leaves.chunks_exact(kind.n_stats()).all(are_stats)
        && parts.smoothing.is_valid(kind)
        && (1..=MAX_MEMBERS).contains(&n_members)
        && n_values <= MAX_MEMBERS * MAX_CLASSES
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
                    self.fill(out, member, row, leaf);
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
        parts.structure.write(&mut words);
        let mut meta = json!({
            "params": parts.params, "training": parts.training, "smoothing": parts.smoothing, "key": parts.key,
        });
        parts.inputs.write(&mut meta);
        Record {
            family: "tree".to_owned(),
            meta,
            arrays: vec![
                ("tests".to_owned(), Array::U32(words)),
                ("leaves".to_owned(), Array::F64(parts.leaves.clone())),
            ],
        }
    }

    fn gains(&self) -> Option<Vec<f64>> {
        let nodes = self.nodes();
        let losses = nodes.losses();
        let mut gains = vec![0.0; self.parts.inputs.schema.fields.len()];
        for (node, condition) in self.parts.structure.conditions().iter().enumerate() {
            let [left, right] = nodes.children[node];
            gains[condition.column] += (losses[node] - losses[left] - losses[right]).max(0.0);
        }
        Some(as_shares(gains))
    }

    fn n_nodes(&self) -> Option<f64> {
        Some(self.nodes().n_nodes() as f64)
    }

    fn tree_export(&self) -> Option<TreeExport> {
        let TreeParts {
            inputs,
            structure,
            smoothing,
            ..
        } = &self.parts;
        Some(tree_export(inputs, structure, &self.nodes(), smoothing))
    }
}
