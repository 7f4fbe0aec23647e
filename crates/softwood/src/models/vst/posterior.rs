//! The fitted variational soft tree: its posterior, the draws that are its members, and their distributions.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::data::encode::{Encoder, Unseen};
use crate::data::schema::Schema;
use crate::data::standardise::Standard;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::infer::lowrank::{LowRank, Sampler};
use crate::models::vst::params::VstParams;
use crate::numerics::gaussian::Gaussian;
use crate::posterior::{Posterior, Training};
use crate::predictive::block::{Block, Head, LANES};
use crate::rng::{Key, below};
use crate::soft::forward::{Components, ForwardScratch, components};
use crate::soft::kernel::Pass;
use crate::soft::law::Law;
use crate::soft::layout::Layout;
use crate::soft::packed::{Packed, turn};
use crate::store::record::{Numbers, Record};

/// A fitted variational soft tree: one posterior, or several averaged.
#[derive(Debug, Clone)]
pub struct Vst {
    pub(super) schema: Schema,
    pub(super) params: VstParams,
    pub(super) training: Training,
    pub(super) standard: Standard,
    pub(super) key: Key,
    pub(super) trees: Vec<Tree>,
}

/// One posterior over the weights of one tree, and its draws.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    encoder: Encoder,
    pass: Pass,
    posterior: LowRank,
    draws: Packed,
    /// Which category each draw takes for one that training never saw.
    guesses: Key,
}

/// What of a tree is not an array.
#[derive(Debug, Serialize, Deserialize)]
struct TreeHeader {
    encoder: Encoder,
    layout: Layout,
    law: Law,
    beta: f64,
    rank: usize,
}

impl Tree {
    pub(super) fn new(
        encoder: Encoder,
        pass: Pass,
        posterior: LowRank,
        n_draws: usize,
        key: Key,
    ) -> Self {
        let mut sampler = Sampler::new(&posterior, n_draws);
        sampler.draw(&posterior, &mut Gaussian::new(key));
        Self {
            encoder,
            pass,
            posterior,
            draws: Packed::new(pass.layout, &sampler.draws),
            guesses: key.child(1),
        }
    }

    fn n_draws(&self) -> usize {
        self.draws.n_draws()
    }

    /// Writes the components of every draw, from member `first` on.
    fn fill(&self, rows: &Rows<'_>, first: usize, out: &mut Block) {
        let layout = &self.pass.layout;
        let inputs = turn(&self.encoder.encode(rows), layout.width());
        let n_rows = rows.len().next_multiple_of(LANES);
        let mut values = vec![0.0; layout.n_activations() * n_rows];
        let mut scratch = ForwardScratch::new(&self.pass);
        let unseen = self.encoder.unseen(rows);
        for draw in 0..self.n_draws() {
            self.draws.activate(draw, &inputs, &mut values);
            self.guess(&unseen, draw, &mut values);
            let mut parts = parts_of(out, first + draw);
            components(&self.pass, &values, n_rows, &mut scratch, &mut parts);
            parts.clear_from(self.n_components());
        }
    }

    /// Adds what draw `draw` makes of categories that training never saw: it takes them for one of those that it did
    /// see, the same on every row. Draws then differ by as much as the known categories do.
    fn guess(&self, unseen: &[Unseen], draw: usize, activations: &mut [f32]) {
        let layout = &self.pass.layout;
        let n_rows = activations.len() / layout.n_activations();
        for cell in unseen {
            let key = self.guesses.child(cell.column as u64).child(draw as u64);
            let input = cell.inputs.start + below(&mut key.rng(), cell.inputs.len());
            for product in 0..layout.n_products() {
                activations[product * n_rows + cell.row] += self.draws.weight(draw, product, input);
            }
        }
    }

    /// Components or classes that a draw fills.
    fn n_components(&self) -> usize {
        match self.pass.law {
            Law::Categorical => self.pass.layout.n_channels,
            Law::Normal { .. } | Law::KnownNoise { .. } => self.pass.layout.n_components(),
        }
    }
}

/// The places of one member in a block.
fn parts_of(out: &mut Block, member: usize) -> Components<'_> {
    let range = out.at(member, 0)..out.at(member + 1, 0);
    let moments = if out.mean.is_empty() {
        0..0
    } else {
        range.clone()
    };
    Components {
        weight: &mut out.weight[range],
        mean: &mut out.mean[moments.clone()],
        sd: &mut out.sd[moments],
        stride: out.stride,
    }
}

impl Vst {
    /// Parameters it was fitted with.
    pub fn params(&self) -> &VstParams {
        &self.params
    }

    /// Mean and covariance (row-major) of the weights of tree `tree`, leaf by leaf after the gates; inputs are encoded
    /// and standardised, the bias is the last weight of each row.
    pub fn weights(&self, tree: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let posterior = &self.trees.get(tree)?.posterior;
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
        let headers: Vec<TreeHeader> = record.part("trees")?;
        let schema: Schema = record.part("schema")?;
        let params: VstParams = record.part("params")?;
        if let Err(error) = crate::params::Params::check(params.clone()) {
            return Err(Error::Format(error.to_string()));
        }
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
            trees.push(restore(
                header,
                record,
                &schema,
                at,
                (key, members_of(params.n_members, n_trees, at)),
            )?);
        }
        Ok(Self {
            schema,
            params,
            training: record.part("training")?,
            standard: record.part("standard")?,
            key,
            trees,
        })
    }
}

/// Members that tree `at` of `n_trees` contributes.
pub(super) fn members_of(n_members: usize, n_trees: usize, at: usize) -> usize {
    n_members / n_trees + usize::from(at < n_members % n_trees)
}

/// Key of the draws of tree `at`.
pub(super) fn draws_key(key: Key, at: usize) -> Key {
    key.child(at as u64)
}

fn restore(
    header: TreeHeader,
    record: &Record,
    schema: &Schema,
    at: usize,
    draws: (Key, usize),
) -> Result<Tree> {
    let TreeHeader {
        encoder,
        layout,
        law,
        beta,
        rank,
    } = header;
    let n_channels = schema.classes().map_or(2, <[String]>::len);
    let is_sound = encoder.fits(schema)
        && layout.depth <= 16
        && layout.mixing_levels <= layout.depth
        && layout.n_channels == n_channels
        && layout.n_inputs == encoder.n_inputs()
        && (law == Law::Categorical) == schema.classes().is_some()
        && beta.is_finite();
    let n_values = layout
        .checked_n_weights()
        .and_then(|n| n.checked_mul(rank.checked_add(2)?));
    let (true, Some(n_values)) = (is_sound, n_values) else {
        return Err(Error::Format(format!("tree {at} has an impossible shape")));
    };
    let values = record.f32s(&format!("tree{at}"), n_values)?;
    if values.iter().any(|value| !value.is_finite()) {
        return Err(Error::Format(format!(
            "tree {at} has weights that are not finite"
        )));
    }
    let posterior = LowRank {
        n_weights: layout.n_weights(),
        rank,
        values: values.to_vec(),
    };
    Ok(Tree::new(
        encoder,
        Pass { layout, law, beta },
        posterior,
        draws.1,
        draws_key(draws.0, at),
    ))
}

impl Posterior for Vst {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn head(&self) -> Head {
        if let Some(classes) = self.schema.classes() {
            return Head::Categorical {
                classes: classes.len(),
            };
        }
        let components = self
            .trees
            .iter()
            .map(|tree| tree.pass.layout.n_components());
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
        let headers: Vec<TreeHeader> = self
            .trees
            .iter()
            .map(|tree| TreeHeader {
                encoder: tree.encoder.clone(),
                layout: tree.pass.layout,
                law: tree.pass.law,
                beta: tree.pass.beta,
                rank: tree.posterior.rank,
            })
            .collect();
        let meta = json!({
            "schema": self.schema, "params": self.params, "training": self.training,
            "standard": self.standard, "key": self.key, "trees": headers,
        });
        let arrays = self.trees.iter().enumerate();
        let arrays = arrays.map(|(at, tree)| {
            (
                format!("tree{at}"),
                Numbers::F32(tree.posterior.values.clone()),
            )
        });
        Record {
            family: "vst".to_owned(),
            meta,
            arrays: arrays.collect(),
        }
    }
}
