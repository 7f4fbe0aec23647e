//! A fitted sum of soft trees: the posterior over its weights, the draws that are its members, and their distributions.

use serde::{Deserialize, Serialize};

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::unseen::{UnseenCell, UnseenSubstitutes};
use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::LowRank;
use crate::predictive::block::{Block, LANES};
use crate::rng::Key;
use crate::soft::additive::AdditiveLayout;
use crate::soft::forward::{Activations, Components, ForwardScratch, add_root, components};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::Layout;
use crate::soft::likelihood::SoftLikelihood;
use crate::soft::packed::{PackedWeights, transpose};
use crate::store::record::{Array, Record};
use crate::variational::optimizer_state::draws_of;

/// Deepest tree that a file may hold.
const MAX_DEPTH: usize = 16;
/// Most trees of a sum that a file may hold.
const MAX_TREES: usize = 10_000;

/// One posterior over the weights of a sum of trees, and its draws.
#[derive(Debug, Clone)]
pub(crate) struct FittedTrees {
    pub(crate) encoder: Encoder,
    pub(crate) spec: SoftTreeSpec,
    /// Independent blocks of the posterior, each over the weights of one or more trees in their order.
    pub(crate) blocks: Vec<LowRank>,
    /// Draws of each tree.
    draws: Vec<PackedWeights>,
    /// Which category each draw takes for one that training never saw.
    substitutes: UnseenSubstitutes,
}

/// What of it is not an array.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FittedHeader {
    encoder: Encoder,
    stack: AdditiveLayout,
    #[serde(rename = "law")]
    likelihood: SoftLikelihood,
    beta: f64,
    /// Weights and rank of each block.
    blocks: Vec<(usize, usize)>,
}

/// Weights drawn from all blocks, draw after draw.
pub(crate) fn draw_weights(blocks: &[LowRank], n_draws: usize, key: Key) -> Vec<f32> {
    if let [block] = blocks {
        return draws_of(block, n_draws, key);
    }
    let n_weights: usize = blocks.iter().map(|block| block.n_weights).sum();
    let mut out = vec![0.0; n_draws * n_weights];
    let mut start = 0;
    for (at, block) in blocks.iter().enumerate() {
        let draws = draws_of(block, n_draws, key.child(100 + at as u64));
        let draws = draws.chunks_exact(block.n_weights.max(1));
        for (out, draw) in out.chunks_exact_mut(n_weights.max(1)).zip(draws) {
            out[start..start + draw.len()].copy_from_slice(draw);
        }
        start += block.n_weights;
    }
    out
}

impl FittedTrees {
    pub(crate) fn new(
        encoder: Encoder,
        spec: SoftTreeSpec,
        blocks: Vec<LowRank>,
        n_draws: usize,
        key: Key,
    ) -> Self {
        let weights = draw_weights(&blocks, n_draws, key);
        let n_weights = spec.stack.n_weights();
        let draws = spec.stack.ranges().map(|(layout, range)| {
            let draws = weights.chunks_exact(n_weights);
            let of_tree: Vec<f32> = draws
                .flat_map(|draw| draw[range.clone()].iter().copied())
                .collect();
            PackedWeights::new(layout, &of_tree)
        });
        Self {
            draws: draws.collect(),
            encoder,
            spec,
            blocks,
            substitutes: UnseenSubstitutes::new(key.child(1)),
        }
    }

    pub(crate) fn n_draws(&self) -> usize {
        self.draws[0].n_draws()
    }

    /// Components of the mixture that a draw is, for a number.
    pub(crate) fn n_components(&self) -> usize {
        self.spec.stack.first.n_components()
    }

    /// Writes the components of every draw, from member `first` on.
    pub(crate) fn fill(&self, rows: &Rows<'_>, first: usize, out: &mut Block) {
        let stack = &self.spec.stack;
        let inputs = transpose(&self.encoder.encode(rows), stack.width());
        let n_rows = rows.len().next_multiple_of(LANES);
        let widest = stack.trees().map(|layout| layout.n_activations()).max();
        let mut values = vec![0.0; widest.unwrap_or(0) * n_rows];
        let mut root_sum = vec![0.0; stack.first.n_channels * n_rows];
        let mut scratch = ForwardScratch::new(&stack.first);
        let mut added_scratch = ForwardScratch::new(&stack.added);
        let unseen = self.encoder.unseen(rows);
        for draw in 0..self.n_draws() {
            root_sum.fill(0.0);
            for (tree, packed) in self.draws.iter().enumerate().skip(1) {
                let values = &mut values[..stack.added.n_activations() * n_rows];
                packed.activate(draw, &inputs, values);
                self.guess(&unseen, (tree, &stack.added), draw, values);
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
            self.guess(&unseen, (0, &stack.first), draw, values);
            let activations = Activations { values, n_rows };
            let mut parts = parts_of(out, first + draw);
            let root_sum = if stack.n_added > 0 {
                &root_sum[..]
            } else {
                &[]
            };
            components(&self.spec, activations, root_sum, &mut scratch, &mut parts);
            parts.clear_from(self.n_filled());
        }
    }

    /// Adds what draw `draw` makes of categories that training never saw: it takes them for one of those that it did
    /// see, the same on every row. Draws then differ by as much as the known categories do.
    fn guess(
        &self,
        unseen: &[UnseenCell],
        (tree, layout): (usize, &Layout),
        draw: usize,
        activations: &mut [f32],
    ) {
        let n_rows = activations.len() / layout.n_activations();
        for cell in unseen {
            let Some(input) = self.substitutes.code(draw, cell.column, &cell.known) else {
                continue;
            };
            for product in 0..layout.n_products() {
                activations[product * n_rows + cell.row] +=
                    self.draws[tree].weight(draw, product, input);
            }
        }
    }

    /// Components or classes that a draw fills.
    fn n_filled(&self) -> usize {
        match self.spec.likelihood {
            SoftLikelihood::Categorical => self.spec.stack.first.n_channels,
            SoftLikelihood::Normal { .. } | SoftLikelihood::KnownNoise { .. } => {
                self.n_components()
            }
        }
    }

    pub(crate) fn header(&self) -> FittedHeader {
        let blocks = self.blocks.iter();
        FittedHeader {
            encoder: self.encoder.clone(),
            stack: self.spec.stack,
            likelihood: self.spec.likelihood,
            beta: self.spec.beta,
            blocks: blocks.map(|block| (block.n_weights, block.rank)).collect(),
        }
    }

    /// The array of a record that holds the blocks.
    pub(crate) fn array(&self) -> Array {
        let blocks = self.blocks.iter();
        Array::F32(
            blocks
                .flat_map(|block| block.values.iter().copied())
                .collect(),
        )
    }

    /// Builds it from its header and the array of this name; draws follow from the key.
    ///
    /// # Errors
    /// When they contradict each other or the schema.
    pub(crate) fn restore(
        header: FittedHeader,
        record: &Record,
        schema: &Schema,
        name: &str,
        (key, n_draws): (Key, usize),
    ) -> Result<Self> {
        let impossible = || Error::Format(format!("{name} has an impossible shape"));
        let sizes = header.sizes(schema).ok_or_else(impossible)?;
        let values = record.f32s(name, sizes.iter().sum())?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(Error::Format(format!(
                "{name} has weights that are not finite"
            )));
        }
        let mut rest = values;
        let mut blocks = Vec::with_capacity(sizes.len());
        for (&(n_weights, rank), &size) in header.blocks.iter().zip(&sizes) {
            let (own, after) = rest.split_at(size);
            blocks.push(LowRank {
                n_weights,
                rank,
                values: own.to_vec(),
            });
            rest = after;
        }
        let spec = SoftTreeSpec {
            stack: header.stack,
            likelihood: header.likelihood,
            beta: header.beta,
        };
        Ok(Self::new(header.encoder, spec, blocks, n_draws, key))
    }
}

impl FittedHeader {
    /// Numbers of each block; none where the header contradicts itself or the schema.
    fn sizes(&self, schema: &Schema) -> Option<Vec<usize>> {
        let AdditiveLayout { first, added, .. } = self.stack;
        let n_channels = match (schema.classes(), self.likelihood) {
            (Some(classes), _) => classes.len(),
            (None, SoftLikelihood::KnownNoise { .. }) => first.n_channels.clamp(1, 2),
            (None, _) => 2,
        };
        let is_tree = |layout: &Layout| {
            layout.depth <= MAX_DEPTH
                && layout.mixing_levels <= layout.depth
                && layout.n_channels == n_channels
                && layout.n_inputs == self.encoder.n_inputs()
        };
        let is_sound = self.encoder.fits(schema)
            && is_tree(&first)
            && is_tree(&added)
            && (self.stack.n_added == 0 || added.mixing_levels == 0)
            && self.stack.n_added <= MAX_TREES
            && !self.stack.has_offset
            && (self.likelihood == SoftLikelihood::Categorical) == schema.classes().is_some()
            && self.beta.is_finite();
        if !is_sound {
            return None;
        }
        let n_added = added.checked_n_weights()?.checked_mul(self.stack.n_added)?;
        let n_weights = first.checked_n_weights()?.checked_add(n_added)?;
        let mut left = n_weights;
        let mut sizes = Vec::with_capacity(self.blocks.len().min(MAX_TREES));
        for &(n, rank) in &self.blocks {
            left = left.checked_sub(n)?;
            sizes.push(n.checked_mul(rank.checked_add(2)?)?);
        }
        (left == 0 && !sizes.is_empty()).then_some(sizes)
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

/// Members that fit `at` of `n_fits` contributes.
pub(crate) fn members_of(n_members: usize, n_fits: usize, at: usize) -> usize {
    n_members / n_fits + usize::from(at < n_members % n_fits)
}

/// Key of the draws of fit `at`.
pub(crate) fn draws_key(key: Key, at: usize) -> Key {
    key.child(at as u64)
}
