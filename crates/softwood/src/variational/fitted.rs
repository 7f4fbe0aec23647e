//! A fitted sum of soft trees: the posterior over its weights, the posterior draws (the members)
//! and their predictive distributions.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::unseen::{UnseenCell, UnseenSubstitutes};
use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::{LowRank, draw_block};
use crate::likelihood::soft::SoftLikelihood;
use crate::predictive::block::{Block, ComponentParameters, LANES};
use crate::reserve::reserve;
use crate::rng::Key;
use crate::soft::additive::AdditiveLayout;
use crate::soft::forward::{Activations, Components, ForwardScratch, add_root, components};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{Layout, StoredLayout};
use crate::soft::packed::{PackedWeights, transpose};
use crate::stop::until_cancelled;
use crate::store::range;
use crate::store::record::{Array, Record};
use crate::variational::streams::posterior_draws as streams;

/// Inverse temperatures of the gates that are accepted from a file.
const BETAS: RangeInclusive<f64> = 1e-6..=1e6;
/// Largest magnitude of a drawn weight in a model file.
const MAX_WEIGHT: f32 = 1e9;
/// Maximum number of trees of a sum in a model file.
const MAX_TREES: usize = 10_000;

/// A posterior over the weights of a sum of trees, and draws from it.
#[derive(Debug, Clone)]
pub(crate) struct FittedTrees<L = Layout> {
    pub(crate) encoder: Encoder,
    pub(crate) spec: SoftTreeSpec<L>,
    /// Independent blocks of the posterior, each over the weights of one or more consecutive trees.
    pub(crate) blocks: Vec<LowRank>,
    /// Drawn weights of each tree.
    draws: Vec<PackedWeights<L>>,
    /// The drawn weights, one draw after the other, if they come from a chain; else they are draws from
    /// the blocks, and this is empty.
    chain: Vec<f32>,
    /// Known categories by which each draw replaces unseen ones.
    substitutes: UnseenSubstitutes,
}

/// The part of [`FittedTrees`] that a model file holds as JSON; the blocks are an array.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FittedHeader<L = Layout> {
    encoder: Encoder,
    stack: AdditiveLayout<L>,
    #[serde(rename = "law")]
    likelihood: SoftLikelihood,
    beta: f64,
    /// Number of weights and rank of each block.
    blocks: Vec<(usize, usize)>,
    /// Whether the file has the draws of a chain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_chain: bool,
}

/// Draws of the weights of all blocks, one after the other.
pub(crate) fn draw_weights(blocks: &[LowRank], n_draws: usize, key: Key) -> Vec<f32> {
    if let [block] = blocks {
        return draw_block(block, n_draws, key);
    }
    let n_weights: usize = blocks.iter().map(|block| block.n_weights).sum();
    let mut out = vec![0.0; n_draws * n_weights];
    let mut start = 0;
    for (at, block) in blocks.iter().enumerate() {
        let draws = draw_block(block, n_draws, key.child(streams::BLOCKS + at as u64));
        let draws = draws.chunks_exact(block.n_weights.max(1));
        for (out, draw) in out.chunks_exact_mut(n_weights.max(1)).zip(draws) {
            out[start..start + draw.len()].copy_from_slice(draw);
        }
        start += block.n_weights;
    }
    out
}

impl<L: StoredLayout> FittedTrees<L> {
    pub(crate) fn new(
        encoder: Encoder,
        spec: SoftTreeSpec<L>,
        blocks: Vec<LowRank>,
        n_draws: usize,
        key: Key,
    ) -> Self {
        let weights = draw_weights(&blocks, n_draws, key);
        Self::of_draws(encoder, spec, blocks, &weights, key)
    }

    /// A fit with these drawn weights, one draw after the other. `key` draws the substitutes of
    /// unseen categories.
    pub(crate) fn of_draws(
        encoder: Encoder,
        spec: SoftTreeSpec<L>,
        blocks: Vec<LowRank>,
        weights: &[f32],
        key: Key,
    ) -> Self {
        Self {
            draws: packed(&spec, weights),
            encoder,
            spec,
            blocks,
            chain: Vec::new(),
            substitutes: UnseenSubstitutes::new(key.child(streams::UNSEEN_SUBSTITUTES)),
        }
    }

    /// Replaces the draws by those of a chain.
    pub(crate) fn set_chain(&mut self, chain: Vec<f32>) {
        self.draws = packed(&self.spec, &chain);
        self.chain = chain;
    }

    /// Whether the draws are those of a chain.
    pub(crate) fn has_chain(&self) -> bool {
        !self.chain.is_empty()
    }

    /// This fit with other draws: `n_draws` of the posterior blocks, or of those of the chain.
    pub(crate) fn redrawn(&self, n_draws: usize, key: Key) -> Self {
        let n_weights = self.spec.stack.n_weights();
        let weights = if self.has_chain() {
            let n_all = self.n_draws();
            let chosen = (0..n_draws).map(|at| at * n_all / n_draws);
            chosen
                .flat_map(|at| &self.chain[at * n_weights..(at + 1) * n_weights])
                .copied()
                .collect()
        } else {
            draw_weights(&self.blocks, n_draws, key)
        };
        Self::of_draws(
            self.encoder.clone(),
            self.spec.clone(),
            self.blocks.clone(),
            &weights,
            key,
        )
    }

    pub(crate) fn n_draws(&self) -> usize {
        self.draws[0].n_draws()
    }

    /// Number of mixture components of a draw.
    pub(crate) fn n_components(&self) -> usize {
        self.spec.stack.first.n_components()
    }

    /// Writes the components of every draw to the members of `out` from member `first` on.
    pub(crate) fn fill(&self, rows: &Rows<'_>, first: usize, out: &mut Block) {
        let stack = &self.spec.stack;
        let encoded = self.encoder.encode(rows);
        let inputs = transpose(&encoded, stack.width());
        let n_rows = rows.len().next_multiple_of(LANES);
        let widest = stack.trees().map(L::n_activations).max();
        let mut values = vec![0.0; widest.unwrap_or(0) * n_rows];
        let mut root_sum = vec![0.0; stack.first.n_channels() * n_rows];
        let mut scratch = ForwardScratch::new(&stack.first);
        let mut added_scratch = ForwardScratch::new(&stack.added);
        let substituted = self.substituted_rows(rows, &encoded);
        for draw in until_cancelled(0..self.n_draws()) {
            let changes = substituted.iter().flat_map(|row| row.changes(draw));
            let changes: Vec<InputChange> = changes.copied().collect();
            root_sum.fill(0.0);
            for packed in &self.draws[1..] {
                let values = &mut values[..stack.added.n_activations() * n_rows];
                packed.activate(draw, &inputs, values);
                add_changes(&changes, packed, draw, values);
                let activations = Activations { values, n_rows };
                let beta = self.spec.beta;
                add_root(
                    &stack.added,
                    beta,
                    activations,
                    &mut added_scratch,
                    &mut root_sum,
                );
            }
            let values = &mut values[..stack.first.n_activations() * n_rows];
            self.draws[0].activate(draw, &inputs, values);
            add_changes(&changes, &self.draws[0], draw, values);
            let activations = Activations { values, n_rows };
            let mut member = components_of(out, first + draw);
            let root_sum = if stack.n_added > 0 {
                &root_sum[..]
            } else {
                &[]
            };
            components(&self.spec, activations, root_sum, &mut scratch, &mut member);
            member.clear_from(self.n_filled());
        }
    }

    /// How the inputs of rows with unseen cells change. Each draw replaces an unseen category or value by a
    /// known one, the same in every row: draws then disagree by as much as the known ones differ.
    fn substituted_rows(&self, rows: &Rows<'_>, encoded: &[f32]) -> Vec<SubstitutedRow> {
        let width = self.spec.stack.width();
        let unseen = self.encoder.unseen(rows);
        let of_row = |cells: &[UnseenCell]| {
            let row = cells[0].row;
            let own = &encoded[row * width..(row + 1) * width];
            let mut substituted = SubstitutedRow {
                changes: Vec::new(),
                changes_of_draw: vec![0; self.n_draws()],
            };
            for group in self.substitutes.groups(self.n_draws(), cells) {
                let known = self.encoder.substituted(rows, cells, &group.codes);
                let pairs = known.into_iter().zip(own).enumerate();
                let changes = pairs.filter_map(|(input, (known, own))| {
                    let by = known - own;
                    (by != 0.0).then_some(InputChange { row, input, by })
                });
                for draw in group.members {
                    substituted.changes_of_draw[draw] = substituted.changes.len();
                }
                substituted.changes.push(changes.collect());
            }
            substituted
        };
        let by_row = unseen.chunk_by(|a, b| a.row == b.row);
        until_cancelled(by_row).map(of_row).collect()
    }

    /// Number of components or classes of a draw.
    fn n_filled(&self) -> usize {
        match self.spec.likelihood {
            SoftLikelihood::Categorical => self.spec.stack.first.n_channels(),
            SoftLikelihood::Normal { .. } | SoftLikelihood::KnownNoise { .. } => {
                self.n_components()
            }
        }
    }

    pub(crate) fn header(&self) -> FittedHeader<L> {
        let blocks = self.blocks.iter();
        FittedHeader {
            encoder: self.encoder.clone(),
            stack: self.spec.stack.clone(),
            likelihood: self.spec.likelihood,
            beta: self.spec.beta,
            blocks: blocks.map(|block| (block.n_weights, block.rank)).collect(),
            has_chain: self.has_chain(),
        }
    }

    /// The arrays of a record that hold the posterior blocks and the draws of a chain.
    pub(crate) fn arrays(&self, name: &str) -> Vec<(String, Array)> {
        let blocks = self.blocks.iter();
        let values = blocks.flat_map(|block| block.values.iter().copied());
        let mut arrays = vec![(name.to_owned(), Array::F32(values.collect()))];
        if self.has_chain() {
            arrays.push((chain_name(name), Array::F32(self.chain.clone())));
        }
        arrays
    }

    /// Restores a fit from its header and the array with this name, and repeats its draws.
    ///
    /// # Errors
    /// When header, array and schema are inconsistent.
    pub(crate) fn restore(
        header: FittedHeader<L>,
        record: &Record,
        schema: &Schema,
        name: &str,
        n_draws: usize,
        key: Key,
    ) -> Result<Self> {
        let inconsistent = || {
            Error::Format(format!(
                "the header of `{name}` does not fit its layout or the schema"
            ))
        };
        let sizes = header.sizes(schema).ok_or_else(inconsistent)?;
        check_likelihood(header.likelihood, header.beta)?;
        let values = record.f32s(name, sizes.iter().sum())?;
        let mut remaining = values;
        let mut blocks = Vec::with_capacity(sizes.len());
        for (&(n_weights, rank), &size) in header.blocks.iter().zip(&sizes) {
            let (values, after) = remaining.split_at(size);
            let block = LowRank {
                n_weights,
                rank,
                values: values.to_vec(),
                block_ends: Vec::new(),
            };
            if !block.is_in_range() {
                return Err(Error::Format(format!(
                    "the array `{name}` has weights or standard deviations that are out of range"
                )));
            }
            blocks.push(block);
            remaining = after;
        }
        let spec = SoftTreeSpec {
            stack: header.stack,
            likelihood: header.likelihood,
            beta: header.beta,
        };
        // the draws are many times larger than the file
        reserve(&mut Vec::<f32>::new(), n_draws, spec.stack.n_weights())?;
        if !header.has_chain {
            return Ok(Self::new(header.encoder, spec, blocks, n_draws, key));
        }
        let chain = record.f32s(&chain_name(name), n_draws * spec.stack.n_weights())?;
        if !chain.iter().all(|weight| weight.abs() <= MAX_WEIGHT) {
            return Err(Error::Format(format!(
                "the array `{}` has weights that are out of range",
                chain_name(name)
            )));
        }
        let mut fit = Self::of_draws(header.encoder, spec, blocks, chain, key);
        fit.chain = chain.to_vec();
        Ok(fit)
    }
}

/// Name of the array with the draws of a chain.
fn chain_name(name: &str) -> String {
    format!("{name}_draws")
}

/// How the inputs of a row with unseen cells change in each draw.
struct SubstitutedRow {
    /// Different changes of the row.
    changes: Vec<Vec<InputChange>>,
    /// Which of them each draw has.
    changes_of_draw: Vec<usize>,
}

impl SubstitutedRow {
    fn changes(&self, draw: usize) -> &[InputChange] {
        &self.changes[self.changes_of_draw[draw]]
    }
}

/// The change of one input of a row.
#[derive(Debug, Clone, Copy)]
struct InputChange {
    row: usize,
    input: usize,
    by: f32,
}

/// Adds the effect of changed inputs to the activations of a tree in a draw.
fn add_changes<L: StoredLayout>(
    changes: &[InputChange],
    tree: &PackedWeights<L>,
    draw: usize,
    activations: &mut [f32],
) {
    let layout = tree.layout();
    let n_rows = activations.len() / layout.n_activations();
    for change in changes {
        for product in 0..layout.n_products() {
            activations[product * n_rows + change.row] +=
                change.by * tree.weight(draw, product, change.input);
        }
    }
}

/// The drawn weights of each tree, from draws of all weights.
fn packed<L: StoredLayout>(spec: &SoftTreeSpec<L>, weights: &[f32]) -> Vec<PackedWeights<L>> {
    let n_weights = spec.stack.n_weights();
    let trees = spec.stack.ranges().map(|(layout, range)| {
        let draws = weights.chunks_exact(n_weights);
        let of_tree: Vec<f32> = draws
            .flat_map(|draw| draw[range.clone()].iter().copied())
            .collect();
        PackedWeights::new(layout.clone(), &of_tree)
    });
    trees.collect()
}

/// Returns an error if a number of a likelihood, or the inverse temperature of the gates, is out of
/// range.
///
/// # Errors
/// The message names the number.
pub(crate) fn check_likelihood(likelihood: SoftLikelihood, beta: f64) -> Result<()> {
    range::check("beta", beta, &BETAS)?;
    match likelihood {
        // a floor of zero is a parameter that users may set
        SoftLikelihood::Normal { floor: 0.0 } | SoftLikelihood::Categorical => Ok(()),
        SoftLikelihood::Normal { floor } => range::check("law.floor", floor, &range::FLOORS),
        SoftLikelihood::KnownNoise { sd } => {
            range::check("law.sd", sd, &range::STANDARD_DEVIATIONS)
        }
    }
}

impl<L: StoredLayout> FittedHeader<L> {
    /// Array length of each block; `None` if the header is inconsistent in itself or with the
    /// schema.
    fn sizes(&self, schema: &Schema) -> Option<Vec<usize>> {
        let AdditiveLayout { first, added, .. } = &self.stack;
        let n_channels = match (schema.classes(), self.likelihood) {
            (Some(classes), _) => classes.len(),
            (None, SoftLikelihood::KnownNoise { .. }) => first.n_channels().clamp(1, 2),
            (None, _) => 2,
        };
        let is_valid_tree = |layout: &L| {
            layout.is_storable()
                && layout.n_channels() == n_channels
                && layout.n_inputs() == self.encoder.n_inputs()
        };
        let is_consistent = self.encoder.fits(schema)
            && is_valid_tree(first)
            && is_valid_tree(added)
            && (self.stack.n_added == 0 || added.n_mixing_gates() == 0)
            && self.stack.n_added <= MAX_TREES
            && !self.stack.has_offset
            && (self.likelihood == SoftLikelihood::Categorical) == schema.classes().is_some();
        if !is_consistent {
            return None;
        }
        let n_added = added.checked_n_weights()?.checked_mul(self.stack.n_added)?;
        let n_weights = first.checked_n_weights()?.checked_add(n_added)?;
        let mut remaining = n_weights;
        let mut sizes = Vec::with_capacity(self.blocks.len().min(MAX_TREES));
        for &(n, rank) in &self.blocks {
            if n == 0 || rank > n {
                return None;
            }
            remaining = remaining.checked_sub(n)?;
            sizes.push(n.checked_mul(rank.checked_add(2)?)?);
        }
        (remaining == 0 && !sizes.is_empty()).then_some(sizes)
    }
}

/// The part of a block that holds the components of one member.
fn components_of(out: &mut Block, member: usize) -> Components<'_> {
    let range = out.at(member, 0)..out.at(member + 1, 0);
    let (mean, sd): (&mut [f64], &mut [f64]) = match &mut out.parameters {
        ComponentParameters::Normal(normal) => (
            &mut normal.mean[range.clone()],
            &mut normal.sd[range.clone()],
        ),
        ComponentParameters::Categorical => (&mut [], &mut []),
    };
    Components {
        weight: &mut out.weight[range],
        mean,
        sd,
        stride: out.stride,
    }
}
