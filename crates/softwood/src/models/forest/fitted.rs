//! The fitted forest: trees, and members that are blocks of trees.

use std::ops::Range;

use serde_json::json;

use crate::data::binning::binned::Cuts;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::extrapolation::Extrapolation;
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
use crate::trees::training_set::TreeInputs;

/// A tree and its leaf values: mean and variance of each leaf, or the frequency of each class.
#[derive(Debug, Clone)]
pub(super) struct ForestTree {
    pub(super) structure: TreeStructure,
    pub(super) values: Vec<f32>,
}

/// A fitted random forest.
#[derive(Debug, Clone)]
pub struct Forest {
    pub(super) inputs: TreeInputs,
    pub(super) params: ForestParams,
    pub(super) training: Training,
    pub(super) trees: Vec<ForestTree>,
    /// Gain of each column, as a fraction of the total gain.
    pub(super) gains: Vec<f64>,
    pub(super) noise: ForestNoise,
}

/// Largest absolute mean or variance that is accepted from a file.
const MAX_VALUE: f32 = 1e30;
/// Largest number of members: the bound of the parameter.
const MAX_MEMBERS: usize = 1000;

/// Number of values of a leaf.
fn n_values(kind: CartTarget) -> usize {
    match kind {
        CartTarget::Number => 2,
        CartTarget::Classes(n) => n,
    }
}

impl Forest {
    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let inputs = TreeInputs::from_record(record)?;
        let model = Self {
            params: params::from_record(&record.part("params")?)?,
            training: record.part("training")?,
            trees: read_trees(record, inputs.kind, &inputs.cuts)?,
            gains: record.f64s("gains", inputs.schema.fields.len())?.to_vec(),
            noise: record.part("noise")?,
            inputs,
        };
        let inputs = &model.inputs;
        let n_classes = inputs.schema.classes().map(<[String]>::len);
        let is_valid = (1..=model.trees.len().min(MAX_MEMBERS)).contains(&inputs.n_members)
            && inputs.kind != CartTarget::Classes(0)
            && model.noise.is_valid(n_classes)
            && model.gains.iter().all(|gain| (0.0..=1.0).contains(gain));
        if !is_valid {
            return Err(Error::Format(
                "the members, the noise or the gains of the forest are not valid".to_owned(),
            ));
        }
        Ok(model)
    }

    /// The trees of a member.
    fn block(&self, member: usize) -> Range<usize> {
        let (n_trees, n) = (self.trees.len(), self.inputs.n_members);
        member * n_trees / n..(member + 1) * n_trees / n
    }

    fn predict_number(&self, bins: &RowBins, rows: &[usize], member: usize, out: &mut Block) {
        let trees = &self.trees[self.block(member)];
        let n = trees.len() as f64;
        // of each row: sum of the leaf means, of their squares, and of the leaf variances
        let mut sums = vec![[0.0; 3]; rows.len()];
        for tree in trees {
            let values = tree.values.as_chunks::<2>().0;
            for (sums, &row) in sums.iter_mut().zip(rows) {
                let [mean, variance] = values[bins.leaf(&tree.structure, row)].map(f64::from);
                sums[0] += mean;
                sums[1] += mean * mean;
                sums[2] += variance;
            }
        }
        let starts = [out.at(member, 0), out.at(member, 1)];
        for ([sum, squares, variances], &row) in sums.into_iter().zip(rows) {
            let between = ((squares - sum * sum / n) / (n - 1.0).max(1.0)).max(0.0);
            let components = self.noise.components(variances / n, between);
            for (start, (weight, sd)) in starts.into_iter().zip(components) {
                out.weight[start + row] = weight;
                let normal = out.normal_mut();
                normal.mean[start + row] = sum / n;
                normal.sd[start + row] = sd;
            }
        }
    }

    fn predict_classes(&self, bins: &RowBins, rows: &[usize], member: usize, out: &mut Block) {
        let trees = &self.trees[self.block(member)];
        let n_classes = n_values(self.inputs.kind);
        let mut means = vec![0.0; rows.len() * n_classes];
        for tree in trees {
            for (means, &row) in means.chunks_exact_mut(n_classes).zip(rows) {
                let leaf = bins.leaf(&tree.structure, row);
                let frequencies = &tree.values[leaf * n_classes..(leaf + 1) * n_classes];
                for (mean, &frequency) in means.iter_mut().zip(frequencies) {
                    *mean += f64::from(frequency) / trees.len() as f64;
                }
            }
        }
        for (probabilities, &row) in means.chunks_exact_mut(n_classes).zip(rows) {
            self.noise.calibrate(probabilities);
            for (class, &p) in probabilities.iter().enumerate() {
                let at = out.at(member, class) + row;
                out.weight[at] = p;
            }
        }
    }
}

/// Whether the values of the leaves of a tree are possible.
fn are_leaves(kind: CartTarget, values: &[f32]) -> bool {
    match kind {
        CartTarget::Number => {
            let leaves = values.as_chunks::<2>().0.iter();
            leaves.into_iter().all(|[mean, variance]| {
                mean.abs() <= MAX_VALUE && (0.0..=MAX_VALUE).contains(variance)
            })
        }
        CartTarget::Classes(n) => values.chunks_exact(n.max(1)).all(are_probabilities),
    }
}

/// Whether class frequencies lie between 0 and 1 and add up to one, but for rounding.
fn are_probabilities(frequencies: &[f32]) -> bool {
    let total: f32 = frequencies.iter().sum();
    frequencies.iter().all(|p| (0.0..=1.0).contains(p)) && (0.99..=1.01).contains(&total)
}

fn read_trees(record: &Record, kind: CartTarget, cuts: &Cuts) -> Result<Vec<ForestTree>> {
    let mut words = WordReader::new(record.u32s("tests")?);
    let mut values = record.all_f32s("leaves")?.iter();
    let n_trees = words.count()?;
    let mut trees = Vec::with_capacity(n_trees);
    for _ in 0..n_trees {
        let structure = TreeStructure::read(&mut words, cuts)?;
        let n_values = structure.n_leaves() * n_values(kind);
        let tree = ForestTree {
            values: values.by_ref().take(n_values).copied().collect(),
            structure,
        };
        if tree.values.len() != n_values || !are_leaves(kind, &tree.values) {
            return Err(Error::Format(
                "a leaf value of the forest is missing or out of range".to_owned(),
            ));
        }
        trees.push(tree);
    }
    if trees.is_empty() || !words.is_empty() || values.len() > 0 {
        return Err(Error::Format(
            "the lengths of the arrays of the forest do not match".to_owned(),
        ));
    }
    Ok(trees)
}

impl Model for Forest {
    fn family(&self) -> &'static str {
        "forest"
    }

    fn schema(&self) -> &Schema {
        &self.inputs.schema
    }

    fn head(&self) -> Head {
        self.inputs.head(2)
    }

    fn n_members(&self) -> usize {
        self.inputs.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        out.shift = self.inputs.units.shift;
        out.scale = self.inputs.units.scale;
        self.inputs.for_each_member(rows, |binned| {
            for member in binned.members.clone() {
                match self.inputs.kind {
                    CartTarget::Number => {
                        self.predict_number(binned.bins, binned.rows, member, out);
                    }
                    CartTarget::Classes(_) => {
                        self.predict_classes(binned.bins, binned.rows, member, out);
                    }
                }
            }
        });
        out.pad();
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn extrapolation(&self) -> Option<&Extrapolation> {
        self.inputs.extrapolation()
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(record)?))
    }

    fn record(&self) -> Record {
        // exact capacities: a list that grows is in memory twice
        let trees = self.trees.iter();
        let n_words: usize = trees.clone().map(|tree| tree.structure.n_words()).sum();
        let n_leaves = trees.clone().map(|tree| tree.values.len()).sum();
        let mut words = Vec::with_capacity(1 + n_words);
        let mut leaves = Vec::with_capacity(n_leaves);
        words.push(self.trees.len() as u32);
        for tree in trees {
            tree.structure.write(&mut words);
            leaves.extend_from_slice(&tree.values);
        }
        debug_assert_eq!(words.len(), 1 + n_words);
        let meta = json!({
            "params": self.params, "training": self.training, "noise": self.noise,
        });
        self.inputs.write(Record {
            family: "forest".to_owned(),
            meta,
            arrays: vec![
                ("tests".to_owned(), Array::U32(words)),
                ("leaves".to_owned(), Array::F32(leaves)),
                ("gains".to_owned(), Array::F64(self.gains.clone())),
            ],
        })
    }

    fn gains(&self) -> Option<Vec<f64>> {
        Some(self.gains.clone())
    }
}
