//! The fitted tree: conditions, what its leaves hold, and the members drawn from that.

use serde_json::json;

use crate::data::binning::binned::{Cuts, substitute_unseen};
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::model::{Model, Training};
use crate::models::tree::export::tree_export;
use crate::models::tree::leaf::{MAX, Smoothing};
use crate::models::tree::params::TreeParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::store::record::{Array, Record};
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::cart::{CartTarget, MAX_CLASSES};
use crate::trees::column_gains::as_shares;
use crate::trees::routing::RowBins;
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::{cart_target, levels_of};

/// What a fitted tree is made of.
#[derive(Debug, Clone)]
pub(super) struct TreeParts {
    pub(super) schema: Schema,
    pub(super) params: TreeParams,
    pub(super) training: Training,
    pub(super) standard: TargetUnits,
    pub(super) cuts: Cuts,
    pub(super) structure: TreeStructure,
    /// Leaves x stats.
    pub(super) leaves: Vec<f64>,
    pub(super) smoothing: Smoothing,
    /// Of the draws.
    pub(super) key: Key,
    pub(super) n_members: usize,
    pub(super) substitutes: UnseenSubstitutes,
}

/// A fitted classification or regression tree.
#[derive(Debug, Clone)]
pub struct Tree {
    parts: TreeParts,
    kind: CartTarget,
    /// Numbers: means, leaves x members. Classes: probabilities, leaves x members x classes.
    drawn: Vec<f64>,
    /// Standard deviation of each leaf.
    sd: Vec<f64>,
}

impl Tree {
    pub(super) fn new(parts: TreeParts) -> Self {
        let kind = cart_target(&parts.schema);
        let (mut drawn, mut sd) = (Vec::new(), Vec::new());
        for (leaf, stats) in parts.leaves.chunks_exact(kind.n_stats()).enumerate() {
            let key = parts.key.child(leaf as u64);
            match kind {
                CartTarget::Number => {
                    drawn.extend(parts.smoothing.draw_means(stats, parts.n_members, key));
                    sd.push(parts.smoothing.variance(stats).sqrt());
                }
                CartTarget::Classes(_) => {
                    drawn.extend(parts.smoothing.draw_classes(stats, parts.n_members, key));
                }
            }
        }
        Self {
            parts,
            kind,
            drawn,
            sd,
        }
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let schema: Schema = record.part("schema")?;
        let cuts: Cuts = record.part("cuts")?;
        cuts.check(&levels_of(&schema))?;
        let kind = cart_target(&schema);
        let mut words = WordReader::new(record.u32s("tests")?);
        let structure = TreeStructure::read(&mut words, &cuts)?;
        let parts = TreeParts {
            params: params::from_record(&record.part("params")?)?,
            training: record.part("training")?,
            standard: TargetUnits::from_record(record)?,
            leaves: record
                .f64s("leaves", structure.n_leaves() * kind.n_stats())?
                .to_vec(),
            smoothing: record.part("smoothing")?,
            key: record.part("key")?,
            n_members: record.part("n_members")?,
            substitutes: UnseenSubstitutes::from_record(record)?,
            schema,
            cuts,
            structure,
        };
        if !(words.is_empty() && is_sound(&parts, kind)) {
            return Err(Error::Format(
                "the parts of the tree do not fit together".to_owned(),
            ));
        }
        Ok(Self::new(parts))
    }

    fn fill(&self, out: &mut Block, member: usize, row: usize, leaf: usize) {
        let n_members = self.parts.n_members;
        match self.kind {
            CartTarget::Number => {
                let at = out.at(member, 0) + row;
                out.weight[at] = 1.0;
                out.mean[at] = self.drawn[leaf * n_members + member];
                out.sd[at] = self.sd[leaf];
            }
            CartTarget::Classes(n) => {
                let from = (leaf * n_members + member) * n;
                for (class, &p) in self.drawn[from..from + n].iter().enumerate() {
                    let at = out.at(member, class) + row;
                    out.weight[at] = p;
                }
            }
        }
    }
}

fn is_sound(parts: &TreeParts, kind: CartTarget) -> bool {
    let are_stats = |stats: &[f64]| match kind {
        CartTarget::Number => stats[0] > 0.0 && stats[2] >= 0.0,
        CartTarget::Classes(_) => stats.iter().all(|&weight| weight >= 0.0),
    };
    let n_values = match kind {
        CartTarget::Number => parts.n_members,
        CartTarget::Classes(n) => parts.n_members.saturating_mul(n),
    };
    !matches!(parts.structure, TreeStructure::Symmetric(_))
        && kind != CartTarget::Classes(0)
        && kind.n_stats() <= MAX_CLASSES
        && parts.leaves.iter().all(|value| value.abs() <= MAX)
        && parts.leaves.chunks_exact(kind.n_stats()).all(are_stats)
        && parts.smoothing.is_sound(kind)
        && (1..=1000).contains(&parts.n_members)
        && n_values <= 1000 * MAX_CLASSES
}

impl Model for Tree {
    fn schema(&self) -> &Schema {
        &self.parts.schema
    }

    fn head(&self) -> Head {
        match self.kind {
            CartTarget::Classes(classes) => Head::Categorical { classes },
            CartTarget::Number => Head::Normal { components: 1 },
        }
    }

    fn n_members(&self) -> usize {
        self.parts.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let parts = &self.parts;
        out.shift = parts.standard.shift;
        out.scale = parts.standard.scale;
        let mut binned = parts.cuts.bin_range(rows);
        let bins = RowBins::new(&binned);
        for row in 0..rows.len() {
            let leaf = bins.leaf(&parts.structure, row);
            for member in 0..parts.n_members {
                self.fill(out, member, row, leaf);
            }
        }
        let unseen = parts.cuts.unseen(rows);
        if !unseen.is_empty() {
            for member in 0..parts.n_members {
                substitute_unseen(&unseen, parts.substitutes, member, &mut binned);
                for cell in &unseen {
                    let leaf = parts.structure.leaf(|column| binned.bin(cell.row, column));
                    self.fill(out, member, cell.row, leaf);
                }
            }
        }
        out.pad();
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.parts.training
    }

    fn record(&self) -> Record {
        let parts = &self.parts;
        let mut words = Vec::new();
        parts.structure.write(&mut words);
        Record {
            family: "tree".to_owned(),
            meta: json!({
                "schema": parts.schema, "params": parts.params, "training": parts.training, "standard": parts.standard,
                "cuts": parts.cuts, "smoothing": parts.smoothing, "key": parts.key, "n_members": parts.n_members,
                "unseen": parts.substitutes.stored(),
            }),
            arrays: vec![
                ("tests".to_owned(), Array::U32(words)),
                ("leaves".to_owned(), Array::F64(parts.leaves.clone())),
            ],
        }
    }

    fn gains(&self) -> Option<Vec<f64>> {
        let parts = &self.parts;
        let tree = NodeStatistics::new(self.kind, &parts.structure, &parts.leaves);
        let losses = tree.losses();
        let mut gains = vec![0.0; parts.schema.fields.len()];
        for (node, condition) in parts.structure.conditions().iter().enumerate() {
            let [left, right] = tree.children[node];
            gains[condition.column] += (losses[node] - losses[left] - losses[right]).max(0.0);
        }
        Some(as_shares(gains))
    }

    fn tree_export(&self) -> Option<TreeExport> {
        let TreeParts {
            schema,
            standard,
            cuts,
            structure,
            leaves,
            smoothing,
            ..
        } = &self.parts;
        let tree = NodeStatistics::new(self.kind, structure, leaves);
        Some(tree_export(
            schema,
            standard,
            (cuts, structure),
            &tree,
            smoothing,
        ))
    }
}
