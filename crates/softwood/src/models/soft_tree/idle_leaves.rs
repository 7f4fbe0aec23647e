//! Removal of idle leaves: training may close a gate so far that hardly any row passes on one side.
//! Such a gate is replaced by its other side, and the posterior of the remaining weights is its
//! marginal.

use crate::inference::lowrank_gaussian::LowRank;
use crate::soft::general_layout::GeneralLayout;
use crate::soft::layout::TreeLayout;

/// Total weight of the rows of a side below which it is idle.
const MIN_WEIGHT: f64 = 0.5;

/// The tree without idle leaves and the posterior of its weights; `None` if no leaf is idle.
/// `leaf_weights` has the weight of the training rows in each leaf.
pub(super) fn without_idle_leaves(
    layout: &GeneralLayout,
    posterior: &LowRank,
    leaf_weights: &[f64],
) -> Option<(GeneralLayout, LowRank)> {
    let kept = RemainingNodes::new(layout, leaf_weights);
    if kept.gates.len() == layout.n_gates() {
        return None;
    }
    let smaller = kept.layout(layout);
    let weights = kept.weights(layout);
    let rank = posterior.rank.min(weights.len());
    let columns = [posterior.mean(), posterior.log_sd()];
    let factors = posterior.factors().chunks_exact(posterior.n_weights);
    let columns = columns.into_iter().chain(factors.take(rank));
    let values = columns.flat_map(|column| weights.iter().map(|&at| column[at]));
    let posterior = LowRank {
        n_weights: weights.len(),
        rank,
        values: values.collect(),
        block_ends: Vec::new(),
    };
    Some((smaller, posterior))
}

/// The nodes that remain, in the order of the new layout.
struct RemainingNodes {
    gates: Vec<usize>,
    leaves: Vec<usize>,
    /// Children of the kept gates after the removal.
    children: Vec<[usize; 2]>,
}

impl RemainingNodes {
    fn new(layout: &GeneralLayout, leaf_weights: &[f64]) -> Self {
        let n_gates = layout.n_gates();
        let mut weight = vec![0.0; n_gates];
        weight.extend_from_slice(leaf_weights);
        for gate in (0..n_gates).rev() {
            weight[gate] = layout
                .children(gate)
                .map(|child| weight[child])
                .iter()
                .sum();
        }
        // the first node on the way down both sides of which have rows
        let resolve = |mut node: usize| {
            while node < n_gates {
                node = match layout.children(node) {
                    [left, right] if weight[left] < MIN_WEIGHT => right,
                    [left, right] if weight[right] < MIN_WEIGHT => left,
                    _ => break,
                };
            }
            node
        };
        let mut kept = Self {
            gates: Vec::new(),
            leaves: Vec::new(),
            children: Vec::new(),
        };
        let mut level = vec![resolve(0)];
        while !level.is_empty() {
            let gates: Vec<usize> = level.into_iter().filter(|&node| node < n_gates).collect();
            let pairs = gates.iter().map(|&gate| layout.children(gate).map(resolve));
            let pairs: Vec<[usize; 2]> = pairs.collect();
            level = pairs.concat();
            kept.gates.extend(gates);
            kept.children.extend(pairs);
        }
        let mut stack = vec![resolve(0)];
        while let Some(node) = stack.pop() {
            match kept.gates.iter().position(|&gate| gate == node) {
                Some(at) => stack.extend(kept.children[at].iter().rev()),
                None => kept.leaves.push(node),
            }
        }
        kept
    }

    fn layout(&self, before: &GeneralLayout) -> GeneralLayout {
        let order: Vec<usize> = self.gates.iter().chain(&self.leaves).copied().collect();
        let position = |node: usize| {
            let found = order.iter().position(|&kept| kept == node);
            found.expect("children of kept gates are kept")
        };
        let children = self.children.iter().map(|pair| pair.map(position));
        GeneralLayout::new(children.collect(), 0, before.leaf_shape())
    }

    /// Indices of the kept weights, in the order of the new layout.
    fn weights(&self, before: &GeneralLayout) -> Vec<usize> {
        let mut kept: Vec<usize> = (self.gates.iter())
            .flat_map(|&gate| before.gate(gate))
            .collect();
        for channel in 0..before.n_channels() {
            for &leaf in &self.leaves {
                kept.extend(before.leaf(channel, leaf - before.n_gates()));
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soft::general_layout::LeafShape;

    #[test]
    fn an_idle_leaf_goes_with_its_gate() {
        let leaf = LeafShape {
            n_inputs: 1,
            n_channels: 2,
            is_linear: false,
        };
        // leaves from left to right: 3, 5, 6, 4
        let layout = GeneralLayout::new(vec![[1, 4], [3, 2], [5, 6]], 0, leaf);
        let n_weights = layout.n_weights();
        let values = (0..3 * n_weights).map(|at| at as f32).collect();
        let posterior = LowRank {
            n_weights,
            rank: 1,
            values,
            block_ends: Vec::new(),
        };
        let weights = |at: [f64; 4]| at.to_vec();
        let all = weights([5.0, 5.0, 5.0, 5.0]);
        assert!(without_idle_leaves(&layout, &posterior, &all).is_none());
        // node 5 is idle: gate 2 is replaced by node 6
        let (smaller, marginal) =
            without_idle_leaves(&layout, &posterior, &weights([5.0, 5.0, 0.1, 5.0])).unwrap();
        assert_eq!(
            (smaller.n_gates(), smaller.children(0), smaller.children(1)),
            (2, [1, 4], [2, 3])
        );
        // gates 0 and 1, then leaves 3, 6, 4 of both channels
        let kept = [0.0, 1.0, 2.0, 3.0, 6.0, 9.0, 7.0, 10.0, 13.0, 11.0];
        assert_eq!(marginal.mean(), kept);
        assert_eq!(
            marginal.factors(),
            kept.map(|at| at + 2.0 * n_weights as f32)
        );
        // both leaves of gate 2 are idle: gate 1 is replaced by node 3
        let (smaller, _) =
            without_idle_leaves(&layout, &posterior, &weights([5.0, 5.0, 0.1, 0.2])).unwrap();
        assert_eq!((smaller.n_gates(), smaller.children(0)), (1, [1, 2]));
    }
}
