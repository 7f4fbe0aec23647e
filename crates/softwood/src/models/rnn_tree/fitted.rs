//! The fitted model: hard trees on binned columns, the statistics of their leaves, and the members
//! drawn from the posterior of the leaves.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::binned::export_binned;
use crate::extrapolation::Extrapolation;
use crate::model::{Model, Training};
use crate::models::rnn_tree::params::RnnTreeParams;
use crate::models::rnn_tree::pruning::RouteTree;
use crate::models::rnn_tree::soft_routes::SoftRoutes;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{NoiseCalibration, scaled_above_floor};
use crate::recurrent::soft_gates::SoftGates;
use crate::rng::Key;
use crate::store::record::{Array, Record};
use crate::trees::cart::CartTarget;
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
    pub(super) trees: Vec<RouteTree>,
}

impl RnnTreeParts {
    /// The parts of a model with another number of members.
    pub(super) fn with_members(&self, n_members: usize) -> Self {
        let mut parts = self.clone();
        parts.inputs.n_members = n_members;
        parts
    }
}

/// Route probabilities of a row: nodes and kept leaves.
#[derive(Debug, Default)]
pub(super) struct MixtureScratch {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

/// A fitted RNN-Tree.
#[derive(Debug, Clone)]
pub struct RnnTree {
    parts: RnnTreeParts,
    /// Draws of the leaves of each tree.
    draws: Vec<LeafDraws>,
    /// Factors of the standard deviations of the members, tree by tree, so that the members of each tree have
    /// the whole tail.
    factors: Vec<f64>,
    /// Where the factors of each tree start.
    first_factor: Vec<usize>,
    /// Largest number of leaves of a mixture; 1 for hard trees.
    n_components: usize,
}

impl RnnTree {
    /// Draws the members of the model.
    pub(super) fn new(parts: RnnTreeParts) -> Self {
        let (n_members, n_trees) = (parts.inputs.n_members, parts.trees.len());
        let n_draws = |tree: usize| (n_members - tree).div_ceil(n_trees);
        let draws = parts.trees.iter().enumerate().map(|(at, tree)| {
            let mut leaves = tree.active_leaves().clone();
            leaves.smoothing.tail = 0.0;
            LeafDraws::new(&leaves, n_draws(at))
        });
        let tail = NoiseCalibration {
            tail: parts.trees[0].active_leaves().smoothing.tail,
            ..NoiseCalibration::IDENTITY
        };
        let first_factor = (0..n_trees).scan(0, |first, tree| {
            *first += n_draws(tree);
            Some(*first - n_draws(tree))
        });
        let kept = parts.trees.iter().filter_map(|tree| tree.soft.as_ref());
        Self {
            draws: draws.collect(),
            factors: tail.member_factors(n_members),
            first_factor: first_factor.collect(),
            n_components: kept.map(|soft| soft.kept.len()).max().unwrap_or(1),
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
        let keys: Vec<Key> = record.part("keys")?;
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
        let soft_smoothings: Vec<Smoothing> = record.part("soft_smoothing")?;
        if !(soft_smoothings.is_empty() || soft_smoothings.len() == keys.len()) {
            return Err(invalid());
        }
        let mut trees = Vec::new();
        for (at, (smoothing, key)) in smoothings.into_iter().zip(keys).enumerate() {
            let structure = TreeStructure::read(&mut words, &inputs.cuts)?;
            let n_values = structure.n_leaves().saturating_mul(n_stats);
            let stats = record.f64s(&format!("leaves{at}"), n_values)?.to_vec();
            let soft = soft_smoothings.get(at).map(|smoothing| {
                let parts = StoredRoutes {
                    record,
                    inputs: &inputs,
                    at,
                    key,
                };
                parts.read(smoothing.clone())
            });
            let tree = RouteTree {
                leaves: SmoothedLeaves {
                    kind: inputs.kind,
                    stats,
                    smoothing,
                    key,
                },
                soft: soft.transpose()?,
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

    /// Number of Normal components of a member of a regression.
    pub(super) fn n_components(&self) -> usize {
        self.n_components
    }

    /// Writes the distributions of members of one tree on a row of a block: of each the index in the block and
    /// the number of its draw. `bin` gives the bins of the row.
    pub(super) fn fill_row(
        &self,
        out: &mut Block,
        (tree, row): (usize, usize),
        members: impl Iterator<Item = (usize, usize)>,
        bin: impl Fn(usize) -> u8,
        scratch: &mut MixtureScratch,
    ) {
        let RouteTree {
            structure, soft, ..
        } = &self.parts.trees[tree];
        let MixtureScratch { nodes, weights } = scratch;
        let mut leaf = 0;
        match soft {
            Some(soft) => soft.fill(bin, nodes, weights),
            None => leaf = structure.leaf(bin),
        }
        for (member, draw) in members {
            if soft.is_some() {
                self.fill_mixture(out, tree, (member, draw), row, weights);
            } else {
                self.draws[tree].fill_as(out, member, row, leaf, draw);
            }
            self.scale_noise(out, tree, (member, draw), row);
        }
    }

    /// Multiplies the noise of a member on a row by its factor.
    fn scale_noise(
        &self,
        out: &mut Block,
        tree: usize,
        (member, draw): (usize, usize),
        row: usize,
    ) {
        if self.parts.inputs.kind != CartTarget::Number {
            return;
        }
        let factor = self.factors[self.first_factor[tree] + draw];
        let floor = self.parts.trees[tree]
            .active_leaves()
            .smoothing
            .floor
            .sqrt();
        for component in 0..out.n_components() {
            let at = out.at(member, component) + row;
            let sd = &mut out.normal_mut().sd[at];
            *sd = scaled_above_floor(*sd, factor, floor);
        }
    }

    /// Writes the distribution of a member on a row whose route leads to the leaves with these weights.
    fn fill_mixture(
        &self,
        out: &mut Block,
        tree: usize,
        (member, draw): (usize, usize),
        row: usize,
        weights: &[f64],
    ) {
        let draws = &self.draws[tree];
        if let CartTarget::Classes(n) = self.parts.inputs.kind {
            for class in 0..n {
                let at = out.at(member, class) + row;
                let leaves = weights.iter().enumerate();
                let terms = leaves.map(|(leaf, w)| w * draws.probabilities(leaf, draw)[class]);
                out.weight[at] = terms.sum();
            }
            return;
        }
        for component in 0..self.n_components {
            let at = out.at(member, component) + row;
            // a tree with fewer leaves has components of weight zero
            let (mean, sd) = draws.normal(component.min(weights.len() - 1), draw);
            out.weight[at] = weights.get(component).copied().unwrap_or(0.0);
            let normal = out.normal_mut();
            (normal.mean[at], normal.sd[at]) = (mean, sd);
        }
    }

    fn nodes(&self, tree: usize) -> NodeStatistics {
        let RouteTree {
            structure, leaves, ..
        } = &self.parts.trees[tree];
        NodeStatistics::new(leaves.kind, structure, &leaves.stats)
    }
}

/// The place of the posterior over routes of a tree in a record.
struct StoredRoutes<'a> {
    record: &'a Record,
    inputs: &'a TreeInputs,
    at: usize,
    key: Key,
}

impl StoredRoutes<'_> {
    fn read(&self, smoothing: Smoothing) -> Result<SoftRoutes> {
        let Self {
            record,
            inputs,
            at,
            key,
        } = *self;
        let gates = SoftGates::from_record(record, &at.to_string(), &inputs.cuts)?;
        let kept = record.u32s(&format!("kept{at}"))?.to_vec();
        let n_values = kept.len().saturating_mul(inputs.kind.n_stats());
        let leaves = SmoothedLeaves {
            kind: inputs.kind,
            stats: record.f64s(&format!("soft_leaves{at}"), n_values)?.to_vec(),
            smoothing,
            key,
        };
        let is_valid = !kept.is_empty()
            && kept.is_sorted_by(|a, b| a < b)
            && kept.iter().all(|&leaf| (leaf as usize) < gates.n_leaves())
            && leaves.is_valid(inputs.n_members, &inputs.units);
        if !is_valid {
            return Err(Error::Format(
                "the leaves of soft routes are not valid".to_owned(),
            ));
        }
        Ok(SoftRoutes {
            gates,
            kept,
            leaves,
        })
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
        self.parts.inputs.head(self.n_components)
    }

    fn n_members(&self) -> usize {
        self.parts.inputs.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let RnnTreeParts { inputs, trees, .. } = &self.parts;
        out.shift = inputs.units.shift;
        out.scale = inputs.units.scale;
        let n_trees = trees.len();
        let mut scratch = MixtureScratch::default();
        inputs.for_each_member(rows, |binned| {
            for &row in binned.rows {
                for at in 0..n_trees {
                    let of_tree = |member: &usize| member % n_trees == at;
                    let members = binned.members.clone().filter(of_tree);
                    let mut members = members.map(|member| (member, member / n_trees)).peekable();
                    if members.peek().is_none() {
                        continue;
                    }
                    let bin = |column| binned.bins.bin(row, column);
                    self.fill_row(out, (at, row), members, bin, &mut scratch);
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
        let mut arrays = Vec::new();
        for (at, tree) in parts.trees.iter().enumerate() {
            tree.structure.write(&mut words);
            arrays.push((format!("leaves{at}"), Array::F64(tree.leaves.stats.clone())));
        }
        for (at, tree) in parts.trees.iter().enumerate() {
            if let Some(soft) = &tree.soft {
                arrays.extend(soft.gates.arrays(&at.to_string()));
                arrays.push((format!("kept{at}"), Array::U32(soft.kept.clone())));
                let stats = soft.leaves.stats.clone();
                arrays.push((format!("soft_leaves{at}"), Array::F64(stats)));
            }
        }
        arrays.insert(0, ("tests".to_owned(), Array::U32(words)));
        let leaves = || parts.trees.iter().map(|tree| &tree.leaves);
        let smoothing: Vec<_> = leaves().map(|leaves| &leaves.smoothing).collect();
        let soft = parts.trees.iter().filter_map(|tree| tree.soft.as_ref());
        let soft_smoothing: Vec<_> = soft.map(|soft| &soft.leaves.smoothing).collect();
        let keys: Vec<_> = leaves().map(|leaves| leaves.key).collect();
        let meta = json!({
            "params": parts.params, "training": parts.training, "smoothing": smoothing, "keys": keys,
            "soft_smoothing": soft_smoothing,
        });
        parts.inputs.write(Record {
            family: "rnn-tree".to_owned(),
            meta,
            arrays,
        })
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
        let RouteTree {
            structure, leaves, ..
        } = &self.parts.trees[0];
        Some(export_binned(
            &self.parts.inputs,
            structure,
            leaves,
            &self.nodes(0),
        ))
    }
}
