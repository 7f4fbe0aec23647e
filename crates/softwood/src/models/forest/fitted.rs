//! The fitted forest: trees, and members that are blocks of them.

use std::ops::Range;

use serde_json::json;

use crate::data::binning::binned::{Cuts, substitute_unseen};
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::model::{Model, Training};
use crate::models::forest::noise_calibration::ForestNoise;
use crate::models::forest::params::ForestParams;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::store::record::{Array, Record};
use crate::trees::cart::CartTarget;
use crate::trees::routing::RowBins;
use crate::trees::serialize::WordReader;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::{cart_target, levels_of};

/// A tree and the values of its leaves: mean and variance, or the share of each class.
#[derive(Debug, Clone)]
pub(super) struct Leaves {
    pub(super) structure: TreeStructure,
    pub(super) values: Vec<f32>,
}

/// What a fitted forest is made of.
#[derive(Debug, Clone)]
pub(super) struct ForestParts {
    pub(super) schema: Schema,
    pub(super) params: ForestParams,
    pub(super) training: Training,
    pub(super) standard: TargetUnits,
    pub(super) cuts: Cuts,
    pub(super) trees: Vec<Leaves>,
    pub(super) gains: Vec<f64>,
    pub(super) noise: ForestNoise,
    pub(super) n_members: usize,
    pub(super) substitutes: UnseenSubstitutes,
}

/// A fitted random forest.
#[derive(Debug, Clone)]
pub struct Forest {
    parts: ForestParts,
    kind: CartTarget,
}

/// Largest mean or variance that a file may hold.
const MAX_VALUE: f32 = 1e30;

fn n_values(kind: CartTarget) -> usize {
    match kind {
        CartTarget::Number => 2,
        CartTarget::Classes(n) => n,
    }
}

impl Forest {
    pub(super) fn new(parts: ForestParts) -> Self {
        Self {
            kind: cart_target(&parts.schema),
            parts,
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
        let trees = read_trees(record, kind, &cuts)?;
        let parts = ForestParts {
            params: params::from_record(&record.part("params")?)?,
            training: record.part("training")?,
            standard: TargetUnits::from_record(record)?,
            gains: record.f64s("gains", schema.fields.len())?.to_vec(),
            noise: record.part("noise")?,
            n_members: record.part("n_members")?,
            substitutes: UnseenSubstitutes::from_record(record)?,
            schema,
            cuts,
            trees,
        };
        let is_sound = (1..=parts.trees.len().min(1000)).contains(&parts.n_members)
            && kind != CartTarget::Classes(0)
            && parts
                .noise
                .is_sound(parts.schema.classes().map(<[String]>::len))
            && parts.gains.iter().all(|gain| gain.is_finite());
        if !is_sound {
            return Err(Error::Format(
                "the parts of the forest do not fit together".to_owned(),
            ));
        }
        Ok(Self::new(parts))
    }

    /// Trees of a member.
    fn block(&self, member: usize) -> Range<usize> {
        let (n_trees, n) = (self.parts.trees.len(), self.parts.n_members);
        member * n_trees / n..(member + 1) * n_trees / n
    }

    fn member_number(&self, bins: &RowBins, member: usize, out: &mut Block) {
        let trees = &self.parts.trees[self.block(member)];
        let n = trees.len() as f64;
        let mut sums = vec![[0.0; 3]; out.n_rows];
        for tree in trees {
            let values = tree.values.as_chunks::<2>().0;
            for (row, sums) in sums.iter_mut().enumerate() {
                let [mean, variance] = values[bins.leaf(&tree.structure, row)].map(f64::from);
                sums[0] += mean;
                sums[1] += mean * mean;
                sums[2] += variance;
            }
        }
        let starts = [out.at(member, 0), out.at(member, 1)];
        for (row, [sum, squares, variances]) in sums.into_iter().enumerate() {
            let between = ((squares - sum * sum / n) / (n - 1.0).max(1.0)).max(0.0);
            let components = self.parts.noise.components(variances / n, between);
            for (start, (weight, sd)) in starts.into_iter().zip(components) {
                out.weight[start + row] = weight;
                out.mean[start + row] = sum / n;
                out.sd[start + row] = sd;
            }
        }
    }

    fn member_classes(&self, bins: &RowBins, member: usize, classes: usize, out: &mut Block) {
        let trees = &self.parts.trees[self.block(member)];
        let mut sums = vec![0.0; out.n_rows * classes];
        for tree in trees {
            for (row, sums) in sums.chunks_exact_mut(classes).enumerate() {
                let leaf = bins.leaf(&tree.structure, row);
                let shares = &tree.values[leaf * classes..(leaf + 1) * classes];
                for (sum, &share) in sums.iter_mut().zip(shares) {
                    *sum += f64::from(share) / trees.len() as f64;
                }
            }
        }
        for (row, sums) in sums.chunks_exact_mut(classes).enumerate() {
            self.parts.noise.classes(sums);
            for (class, &p) in sums.iter().enumerate() {
                let at = out.at(member, class) + row;
                out.weight[at] = p;
            }
        }
    }
}

fn read_trees(record: &Record, kind: CartTarget, cuts: &Cuts) -> Result<Vec<Leaves>> {
    let mut words = WordReader::new(record.u32s("tests")?);
    let mut values = record.all_f32s("leaves")?.iter();
    let n_trees = words.count()?;
    let mut trees = Vec::with_capacity(n_trees);
    for _ in 0..n_trees {
        let structure = TreeStructure::read(&mut words, cuts)?;
        let n_values = structure.n_leaves() * n_values(kind);
        let tree = Leaves {
            values: values.by_ref().take(n_values).copied().collect(),
            structure,
        };
        let is_value = |value: &f32| match kind {
            CartTarget::Number => value.abs() <= MAX_VALUE,
            CartTarget::Classes(_) => (0.0..=1.0).contains(value),
        };
        if tree.values.len() != n_values || !tree.values.iter().all(is_value) {
            return Err(Error::Format(
                "a tree of the forest has impossible leaves".to_owned(),
            ));
        }
        trees.push(tree);
    }
    if trees.is_empty() || !words.is_empty() || values.len() > 0 {
        return Err(Error::Format(
            "the arrays of the forest do not fit together".to_owned(),
        ));
    }
    Ok(trees)
}

impl Model for Forest {
    fn schema(&self) -> &Schema {
        &self.parts.schema
    }

    fn head(&self) -> Head {
        match self.kind {
            CartTarget::Classes(classes) => Head::Categorical { classes },
            CartTarget::Number => Head::Normal { components: 2 },
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
        let unseen = parts.cuts.unseen(rows);
        let mut bins = RowBins::new(&binned);
        for member in 0..parts.n_members {
            if !unseen.is_empty() {
                substitute_unseen(&unseen, parts.substitutes, member, &mut binned);
                bins = RowBins::new(&binned);
            }
            match self.kind {
                CartTarget::Number => self.member_number(&bins, member, out),
                CartTarget::Classes(classes) => self.member_classes(&bins, member, classes, out),
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
        let mut words = vec![parts.trees.len() as u32];
        for tree in &parts.trees {
            tree.structure.write(&mut words);
        }
        let leaves = parts
            .trees
            .iter()
            .flat_map(|tree| tree.values.iter().copied());
        Record {
            family: "forest".to_owned(),
            meta: json!({
                "schema": parts.schema, "params": parts.params, "training": parts.training, "standard": parts.standard,
                "cuts": parts.cuts, "noise": parts.noise, "n_members": parts.n_members,
                "unseen": parts.substitutes.stored(),
            }),
            arrays: vec![
                ("tests".to_owned(), Array::U32(words)),
                ("leaves".to_owned(), Array::F32(leaves.collect())),
                ("gains".to_owned(), Array::F64(parts.gains.clone())),
            ],
        }
    }

    fn gains(&self) -> Option<Vec<f64>> {
        Some(self.parts.gains.clone())
    }
}
