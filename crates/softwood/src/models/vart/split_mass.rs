//! The largest probability with which a row of a batch reaches the split of a node, for skipping
//! nodes that carry no mass.

use multiversion::multiversion;

use crate::numerics::gemm::{Matrix, product_transposed};
use crate::numerics::real::sigmoid;
use crate::soft::stopping_tree::StoppingTree;
use crate::soft::stopping_weights::NodeShape;

/// Probability below which the split of a node that blends is skipped: the node stops there. The
/// channels of a row then change by at most this probability times the difference between the
/// subtree and the leaf, for each node that is skipped.
const NEGLIGIBLE_MASS: f32 = 1e-6;
/// The same for a node that chooses a component of a mixture. The density of a row then changes by at
/// most this probability times the largest density of a component. It is smaller, because a row may
/// have a small density under all other components.
const NEGLIGIBLE_COMPONENT_MASS: f32 = 1e-12;
/// Number of splits from which the gates of a batch are evaluated in advance to skip nodes that no
/// row reaches. In smaller trees it would cost more than it saves.
pub(super) const MIN_SPLITS: usize = 63;

/// Whether a node of this depth and with this largest probability of its split carries no mass.
pub(super) fn is_negligible(mass: f32, depth: usize, mixing_levels: usize) -> bool {
    mass <= if depth < mixing_levels {
        NEGLIGIBLE_COMPONENT_MASS
    } else {
        NEGLIGIBLE_MASS
    }
}

/// The largest indicator mass of each node over draws: the product of the split indicators on the
/// way to it and of its own.
pub(super) fn indicator_mass(tree: &StoppingTree, logits: &[f32], out: &mut [f32]) {
    let n_splits = tree.n_splits();
    let mut mass = vec![1.0_f32; tree.n_nodes()];
    for node in 0..n_splits {
        mass[node] *= sigmoid(logits[node]);
        out[node] = out[node].max(mass[node]);
        for child in tree.children(node) {
            mass[child] = mass[node];
        }
    }
}

/// Rows of a batch: `n_rows x width`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MassRows<'a> {
    pub(super) inputs: &'a [f32],
    pub(super) n_rows: usize,
}

/// One draw of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrawnTree<'a> {
    pub(super) tree: &'a StoppingTree,
    pub(super) shape: &'a NodeShape,
    pub(super) weights: &'a [f32],
    /// Logits of the split indicators.
    pub(super) logits: &'a [f32],
    /// Inverse temperature of the gates.
    pub(super) beta: f32,
    /// Number of top levels that choose a component of a mixture.
    pub(super) mixing_levels: usize,
}

/// Raises `out` to the largest probability with which a row reaches the split of each node. Nodes
/// below a negligible one are not evaluated.
pub(super) fn row_mass(draw: DrawnTree<'_>, rows: MassRows<'_>, out: &mut [f32]) {
    let DrawnTree {
        tree,
        shape,
        weights,
        logits,
        beta,
        mixing_levels,
    } = draw;
    let (n_splits, n_rows, width) = (tree.n_splits(), rows.n_rows, shape.rule_size());
    let mut gates = vec![0.0; n_splits * n_rows];
    product_transposed(
        &mut gates,
        Matrix::new(weights, n_splits, width),
        Matrix::new(rows.inputs, n_rows, width),
    );
    let mut reach: Vec<Vec<f32>> = vec![Vec::new(); tree.n_nodes()];
    reach[0] = vec![1.0; n_rows];
    for node in 0..n_splits {
        let mut mass = std::mem::take(&mut reach[node]);
        if mass.is_empty() {
            continue;
        }
        let largest = multiply(&mut mass, sigmoid(logits[node]));
        out[node] = out[node].max(largest);
        if is_negligible(largest, tree.depth(node), mixing_levels) {
            continue;
        }
        let mut right = vec![0.0; n_rows];
        descend(
            beta,
            &gates[node * n_rows..(node + 1) * n_rows],
            &mut mass,
            &mut right,
        );
        let [left_child, right_child] = tree.children(node);
        reach[left_child] = mass;
        reach[right_child] = right;
    }
}

/// Multiplies all values and returns the largest.
fn multiply(values: &mut [f32], factor: f32) -> f32 {
    let mut largest = 0.0_f32;
    for value in values {
        *value *= factor;
        largest = largest.max(*value);
    }
    largest
}

/// Splits the mass of each row between the left child, which replaces it, and the right one.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn descend(beta: f32, gates: &[f32], mass: &mut [f32], right: &mut [f32]) {
    for ((&gate, mass), right) in gates.iter().zip(mass).zip(right) {
        *right = *mass * sigmoid(beta * gate);
        *mass -= *right;
    }
}
