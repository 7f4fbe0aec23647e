//! The noise of a fitted process: one standard deviation, or one for each leaf of a tree.

use serde_json::Value;

use crate::data::binning::binned::{Cuts, substitute_unseen};
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::explain::tree_export::binned::{BinnedConditions, export_binned_nodes};
use crate::explain::tree_export::nodes::FittedNodes;
use crate::explain::tree_export::{ExportNode, LeafValue, TreeExport};
use crate::predictive::block::Block;
use crate::predictive::noise_calibration::scaled_above_floor;
use crate::store::range::{self, STANDARD_DEVIATIONS};
use crate::store::record::{Array, Record};
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::leaf_posterior::Smoothing;
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::levels_of;

/// Numbers of each leaf in a file: the weight of its rows and its standard deviation.
const N_LEAF_NUMBERS: usize = 2;
/// Largest weight of the rows of a leaf in a file.
const MAX_WEIGHT: f64 = 1e30;

/// The noise of a process, in units of the standardised target.
#[derive(Debug, Clone)]
pub(super) enum GpNoise {
    /// The same standard deviation everywhere.
    Constant(f64),
    /// A standard deviation for each leaf of a tree.
    Tree(NoiseTree),
}

/// A tree whose leaves have standard deviations.
#[derive(Debug, Clone)]
pub(super) struct NoiseTree {
    pub(super) cuts: Cuts,
    pub(super) structure: TreeStructure,
    pub(super) leaves: Vec<NoiseLeaf>,
}

/// A leaf: the weight of its training rows, and the standard deviation of the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NoiseLeaf {
    pub(super) weight: f64,
    pub(super) sd: f64,
}

impl GpNoise {
    /// Writes the standard deviations of all members on a block of rows.
    pub(super) fn fill(&self, rows: &Rows<'_>, substitutes: UnseenSubstitutes, out: &mut Block) {
        match self {
            Self::Constant(sd) => out.normal_mut().sd.fill(*sd),
            Self::Tree(tree) => tree.fill(rows, substitutes, out),
        }
    }

    /// The noise with standard deviations times a factor, but not below a floor.
    pub(super) fn scaled(&self, factor: f64, floor: f64) -> Self {
        let scaled = |sd: f64| scaled_above_floor(sd, factor, floor);
        match self {
            Self::Constant(sd) => Self::Constant(scaled(*sd)),
            Self::Tree(tree) => {
                let mut tree = tree.clone();
                for leaf in &mut tree.leaves {
                    leaf.sd = scaled(leaf.sd);
                }
                Self::Tree(tree)
            }
        }
    }

    /// Adds the noise to a record.
    pub(super) fn write(&self, meta: &mut Value, arrays: &mut Vec<(String, Array)>) {
        match self {
            Self::Constant(sd) => meta["noise_sd"] = serde_json::json!(sd),
            Self::Tree(tree) => {
                meta["cuts"] = serde_json::json!(tree.cuts);
                let mut words = Vec::new();
                tree.structure.write(&mut words);
                arrays.push(("tests".to_owned(), Array::U32(words)));
                let numbers = tree.leaves.iter().flat_map(|leaf| [leaf.weight, leaf.sd]);
                arrays.push(("noise_leaves".to_owned(), Array::F64(numbers.collect())));
            }
        }
    }

    /// Reads the noise of a record: a tree if the record has one.
    ///
    /// # Errors
    /// When a part is absent, out of range, or does not fit the schema.
    pub(super) fn from_record(record: &Record, schema: &Schema) -> Result<Self> {
        if record.meta.get("cuts").is_none() {
            let noise_sd = record.part("noise_sd")?;
            range::check("noise_sd", noise_sd, &STANDARD_DEVIATIONS)?;
            return Ok(Self::Constant(noise_sd));
        }
        let cuts: Cuts = record.part("cuts")?;
        cuts.check(&levels_of(schema))?;
        let mut words = WordReader::new(record.u32s("tests")?);
        let structure = TreeStructure::read(&mut words, &cuts)?;
        if !(words.is_empty() && matches!(structure, TreeStructure::General { .. })) {
            return Err(Error::Format(
                "the tree of the noise is not valid".to_owned(),
            ));
        }
        let n_numbers = structure.n_leaves().saturating_mul(N_LEAF_NUMBERS);
        let numbers = record.f64s("noise_leaves", n_numbers)?;
        let leaf = |numbers: &[f64]| -> Result<NoiseLeaf> {
            let [weight, sd] = [numbers[0], numbers[1]];
            range::check("noise_leaves", weight, &(1e-30..=MAX_WEIGHT))?;
            range::check("noise_leaves", sd, &STANDARD_DEVIATIONS)?;
            Ok(NoiseLeaf { weight, sd })
        };
        let leaves = numbers.chunks_exact(N_LEAF_NUMBERS).map(leaf);
        Ok(Self::Tree(NoiseTree {
            leaves: leaves.collect::<Result<_>>()?,
            cuts,
            structure,
        }))
    }
}

/// Minus the log-likelihood of the rows of a node as a leaf, up to a constant per row.
fn log_loss(node: &ExportNode) -> f64 {
    match node.answer {
        LeafValue::Number { sd, .. } => node.weight * sd.ln(),
        _ => 0.0,
    }
}

impl NoiseTree {
    /// A tree of one leaf.
    pub(super) fn constant(cuts: Cuts, weight: f64, sd: f64) -> Self {
        Self {
            cuts,
            structure: TreeStructure::General {
                conditions: Vec::new(),
                children: Vec::new(),
            },
            leaves: vec![NoiseLeaf { weight, sd }],
        }
    }

    fn fill(&self, rows: &Rows<'_>, substitutes: UnseenSubstitutes, out: &mut Block) {
        let n_members = out.n_members;
        let mut binned = self.cuts.bin_range(rows);
        for row in 0..rows.len() {
            let leaf = self.structure.leaf(|column| binned.bin(row, column));
            for member in 0..n_members {
                let at = out.at(member, 0) + row;
                out.normal_mut().sd[at] = self.leaves[leaf].sd;
            }
        }
        // each member replaces an unseen category by a known one of its own
        let unseen = self.cuts.unseen(rows);
        if unseen.is_empty() {
            return;
        }
        for member in 0..n_members {
            substitute_unseen(&self.cuts, &unseen, substitutes, member, &mut binned);
            for cell in &unseen {
                let leaf = self.structure.leaf(|column| binned.bin(cell.row, column));
                let at = out.at(member, 0) + cell.row;
                out.normal_mut().sd[at] = self.leaves[leaf].sd;
            }
        }
    }

    /// Statistics of all nodes: weight, a mean of zero, and the sum of the squared errors.
    fn statistics(&self) -> NodeStatistics {
        let stats = self.leaves.iter();
        let stats: Vec<f64> = stats
            .flat_map(|leaf| [leaf.weight, 0.0, leaf.weight * leaf.sd * leaf.sd])
            .collect();
        NodeStatistics::new(CartTarget::Number, &self.structure, &stats)
    }

    pub(super) fn n_nodes(&self) -> usize {
        2 * self.structure.conditions().len() + 1
    }

    /// The tree with the noise of every node in the units of the target.
    pub(super) fn export(&self, schema: &Schema, units: TargetUnits) -> TreeExport {
        let statistics = self.statistics();
        let smoothing = Smoothing::plain(CartTarget::Number, statistics.stats(0), 0.0);
        let nodes = FittedNodes {
            schema,
            statistics: &statistics,
            units,
            smoothing: &smoothing,
        };
        let conditions = BinnedConditions {
            structure: &self.structure,
            cuts: &self.cuts,
        };
        let mut export = export_binned_nodes(&nodes, conditions);
        let losses: Vec<f64> = export.nodes.iter().map(log_loss).collect();
        let total = export.nodes.first().map_or(1.0, |root| root.weight);
        for (node, loss) in export.nodes.iter_mut().zip(&losses) {
            if let LeafValue::Number { sd, .. } = node.answer {
                node.answer = LeafValue::Noise { sd };
            }
            if let Some(split) = &mut node.split {
                let below: f64 = split.children.iter().map(|&child| losses[child]).sum();
                split.gain = ((loss - below) / total).max(0.0);
            }
        }
        export
    }
}
