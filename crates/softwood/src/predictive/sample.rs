//! Samples from the predictive distribution of a row. Every row has a random stream of its own, so
//! that draws depend neither on blocks nor on threads.

use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::predictive::block::{Block, ComponentParameters};
use crate::reserve::reserve;
use crate::rng::{Key, below, shuffle, uniform};

/// Number of draws between two questions whether to stop.
const DRAWS_PER_CHECK: usize = 4096;

/// The rows to draw for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnRows<'a> {
    pub(crate) block: &'a Block,
    /// Table row of the first row of the block.
    pub(crate) first: usize,
    /// Key of the draws: row `r` of the table uses the stream `key.child(r)`.
    pub(crate) key: Key,
}

/// `n` independent draws for each row, in the target's units or as class indices (row-major, rows x
/// n). Asks from time to time whether to stop, and then leaves the rest undone.
pub(crate) fn draws(rows: DrawnRows<'_>, n: usize, out: &mut [f64], is_stopped: &dyn Fn() -> bool) {
    if n == 0 {
        return;
    }
    for (row, out) in out.chunks_exact_mut(n).enumerate() {
        let mut rng = rows.key.child((rows.first + row) as u64).rng();
        for out in out.chunks_mut(DRAWS_PER_CHECK) {
            if n >= DRAWS_PER_CHECK && is_stopped() {
                return;
            }
            for out in out {
                *out = draw(rows.block, row, &mut rng);
            }
        }
    }
}

/// One draw for a row of the block.
fn draw(block: &Block, row: usize, rng: &mut impl rand::Rng) -> f64 {
    let member = below(rng, block.n_members);
    let component = component(block, member, row, uniform(rng));
    match &block.parameters {
        ComponentParameters::Categorical => component as f64,
        ComponentParameters::Normal(normal) => {
            let at = block.at(member, component) + row;
            let z: f64 = StandardNormal.sample(rng);
            let standardised = normal.mean[at] + z * normal.sd[at];
            block.shift + block.scale * standardised
        }
    }
}

/// The component at which the cumulative weight of a member exceeds `level`.
fn component(block: &Block, member: usize, row: usize, level: f64) -> usize {
    let mut remaining = level;
    let mut last = 0;
    for component in 0..block.n_components() {
        let weight = block.weight[block.at(member, component) + row];
        if weight > 0.0 {
            if remaining < weight {
                return component;
            }
            remaining -= weight;
            last = component;
        }
    }
    // weights sum to one only up to rounding errors
    last
}

/// `n` random members, without repetition until all members are chosen.
///
/// # Errors
/// When `n` numbers do not fit into memory.
pub(crate) fn choose_members(n_members: usize, n: usize, key: Key) -> Result<Vec<usize>> {
    let mut rng = key.rng();
    let mut chosen = Vec::new();
    reserve(&mut chosen, n, 1)?;
    while chosen.len() < n {
        let mut round: Vec<usize> = (0..n_members).collect();
        shuffle(&mut rng, &mut round);
        round.truncate(n - chosen.len());
        chosen.extend(round);
    }
    Ok(chosen)
}
