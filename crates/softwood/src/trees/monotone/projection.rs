//! Leaf values in an order: the prediction rises or falls in some columns.
//!
//! A sum of trees is in order where each tree is, and shrinkage keeps an order. So the steps of a tree are replaced by the
//! nearest ones in order: those that minimise `sum_l H_l (v_l - step_l)^2`, `H_l` being the hessian of leaf `l`.
//!
//! Noise must not be projected: what breaks the order would be cut off and what strengthens it kept, so that every tree
//! would push the same way. Instead leaves that are compared share their noise (its mean, weighted by hessian), and what
//! each has besides is damped by one factor, small enough that the order would hold with either sign. The noise keeps a
//! mean of zero.

use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::monotone::pairs::{LeafPair, pairs};
use crate::trees::structure::TreeStructure;

/// Most sweeps of a projection; what is left out of order then is mended by [`mend`].
const SWEEPS: usize = 100;
/// Part of the largest step below which a difference is none.
const TINY: f64 = 1e-9;

/// The values of one output of a tree on their way to an order.
#[derive(Debug)]
pub(crate) struct MonotoneValues {
    pairs: Vec<LeafPair>,
    leaves: Vec<LeafStep>,
}

/// A leaf's step, noise and hessian; the last is none where the leaf holds no rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafStep {
    pub(crate) step: f64,
    pub(crate) noise: f64,
    pub(crate) hessian: Option<f64>,
}

impl LeafStep {
    /// A leaf without rows.
    pub(crate) const EMPTY: Self = Self {
        step: 0.0,
        noise: 0.0,
        hessian: None,
    };
}

impl MonotoneValues {
    /// None where no leaf has to be compared with another.
    pub(crate) fn new(structure: &TreeStructure, columns: &ColumnInfo) -> Option<Self> {
        let pairs = pairs(structure, columns);
        (!pairs.is_empty()).then(|| Self {
            leaves: Vec::with_capacity(structure.n_leaves()),
            pairs,
        })
    }

    /// Adds the next leaf.
    pub(crate) fn push(&mut self, leaf: LeafStep) {
        self.leaves.push(leaf);
    }

    /// Values in order.
    pub(crate) fn values(&self) -> Vec<f32> {
        let weights = self.weights();
        let mut values: Vec<f64> = self.leaves.iter().map(|leaf| leaf.step).collect();
        project(&self.pairs, &weights, &mut values);
        if self.leaves.iter().any(|leaf| leaf.noise != 0.0) {
            self.add_noise(&weights, &mut values);
        }
        mend(&self.pairs, &mut values);
        values.into_iter().map(|value| value as f32).collect()
    }

    /// Hessians; leaves without rows give way to all others.
    fn weights(&self) -> Vec<f64> {
        let known = self.leaves.iter().filter_map(|leaf| leaf.hessian);
        let least = known.fold(f64::INFINITY, f64::min);
        let light = if least.is_finite() { 1e-3 * least } else { 1.0 };
        let weight = |leaf: &LeafStep| leaf.hessian.unwrap_or(light);
        self.leaves.iter().map(weight).collect()
    }

    fn add_noise(&self, weights: &[f64], values: &mut [f64]) {
        let n = values.len();
        let size = values
            .iter()
            .fold(0.0, |size: f64, value| size.max(value.abs()));
        let is_tied = |pair: &&LeafPair| values[pair[1]] - values[pair[0]] <= TINY * size;
        let tied: Vec<LeafPair> = self.pairs.iter().filter(is_tied).copied().collect();
        let own = self.means(&groups(&tied, n), weights);
        let of_all = groups(&self.pairs, n);
        let shared = self.means(&of_all, weights);
        let rest: Vec<f64> = own
            .iter()
            .zip(&shared)
            .map(|(own, shared)| own - shared)
            .collect();
        let mut damping = vec![1.0_f64; n];
        for &[lower, upper] in &self.pairs {
            let (room, need) = (
                values[upper] - values[lower],
                (rest[upper] - rest[lower]).abs(),
            );
            if need > room.max(0.0) {
                let most = &mut damping[of_all[lower]];
                *most = most.min(room.max(0.0) / need);
            }
        }
        for leaf in 0..n {
            values[leaf] += shared[leaf] + damping[of_all[leaf]] * rest[leaf];
        }
    }

    /// Mean noise of each leaf's group; leaves without rows have none of their own.
    fn means(&self, group: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); group.len()];
        for (leaf, &of) in group.iter().enumerate() {
            if self.leaves[leaf].hessian.is_some() {
                sums[of].0 += weights[leaf] * self.leaves[leaf].noise;
                sums[of].1 += weights[leaf];
            }
        }
        let mean = |&of: &usize| {
            if sums[of].1 > 0.0 {
                sums[of].0 / sums[of].1
            } else {
                0.0
            }
        };
        group.iter().map(mean).collect()
    }
}

/// The group of each of `n` leaves, named by one of its leaves: those that pairs connect.
fn groups(pairs: &[LeafPair], n: usize) -> Vec<usize> {
    let mut group: Vec<usize> = (0..n).collect();
    let root = |group: &mut [usize], mut leaf: usize| {
        while group[leaf] != leaf {
            group[leaf] = group[group[leaf]];
            leaf = group[leaf];
        }
        leaf
    };
    for &[a, b] in pairs {
        let (a, b) = (root(&mut group, a), root(&mut group, b));
        group[a.max(b)] = a.min(b);
    }
    (0..n).map(|leaf| root(&mut group, leaf)).collect()
}

/// The nearest values in order, to within a small part of the largest: Hildreth's sweeps over the pairs.
fn project(pairs: &[LeafPair], weights: &[f64], values: &mut [f64]) {
    let size = values
        .iter()
        .fold(0.0, |size: f64, value| size.max(value.abs()));
    // what each pair holds its leaves together by; never less than nothing
    let mut pulls = vec![0.0_f64; pairs.len()];
    for _ in 0..SWEEPS {
        let mut largest = 0.0_f64;
        for (pull, &[lower, upper]) in pulls.iter_mut().zip(pairs) {
            let excess = values[lower] - values[upper];
            let give = 1.0 / weights[lower] + 1.0 / weights[upper];
            let change = (*pull + excess / give).max(0.0) - *pull;
            *pull += change;
            values[lower] -= change / weights[lower];
            values[upper] += change / weights[upper];
            largest = largest.max((change * give).abs());
        }
        if largest <= TINY * size {
            return;
        }
    }
}

/// Puts values in order exactly: each becomes the middle of the largest at or below it and the least at or above it, both
/// of which are in order. Values in order are not changed.
fn mend(pairs: &[LeafPair], values: &mut [f64]) {
    let (mut high, mut low) = (values.to_vec(), values.to_vec());
    loop {
        let mut is_changed = false;
        for &[lower, upper] in pairs {
            if high[upper] < high[lower] {
                high[upper] = high[lower];
                is_changed = true;
            }
            if low[lower] > low[upper] {
                low[lower] = low[upper];
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
    }
    for (value, (high, low)) in values.iter_mut().zip(high.into_iter().zip(low)) {
        *value = 0.5 * (high + low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, below, uniform};

    fn is_in_order(pairs: &[LeafPair], values: &[f64]) -> bool {
        pairs
            .iter()
            .all(|&[lower, upper]| values[lower] <= values[upper])
    }

    #[test]
    fn a_chain_is_projected_as_pooling_neighbours_does() {
        let pairs = [[0, 1], [1, 2], [2, 3]];
        let mut values = vec![1.0, 3.0, 2.0, 0.5];
        project(&pairs, &[1.0, 1.0, 2.0, 1.0], &mut values);
        let pooled = (3.0 + 2.0 * 2.0 + 0.5) / 4.0;
        for (value, wanted) in values.iter().zip([1.0, pooled, pooled, pooled]) {
            assert!((value - wanted).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn mended_values_are_in_order_and_order_is_kept() {
        let mut rng = Key::from_seed(2).rng();
        for _ in 0..500 {
            // pairs that go upwards in number, so that there are no circles
            let pairs: Vec<LeafPair> = (0..20)
                .map(|_| {
                    let upper = 1 + below(&mut rng, 9);
                    [below(&mut rng, upper), upper]
                })
                .collect();
            let mut values: Vec<f64> = (0..10).map(|_| uniform(&mut rng) - 0.5).collect();
            let weights: Vec<f64> = (0..10).map(|_| 0.01 + uniform(&mut rng)).collect();
            project(&pairs, &weights, &mut values);
            mend(&pairs, &mut values);
            assert!(is_in_order(&pairs, &values));
            let before = values.clone();
            mend(&pairs, &mut values);
            assert_eq!(values, before);
        }
    }

    /// 4000 draws of standard deviation at most 1: means beyond 0.1 are a false alarm in 10^9.
    #[test]
    fn noise_keeps_the_order_and_has_no_drift() {
        let pairs = vec![[0, 1], [1, 2], [3, 4]];
        let steps = [0.0, 0.5, 0.5, 1.0, 4.0, 9.0];
        let (mut sums, n) = ([0.0; 6], 4000);
        for draw in 0..n {
            let mut normals = [0.0_f32; 6];
            crate::numerics::gaussian::Gaussian::new(Key::from_seed(draw)).fill(&mut normals);
            let mut ordered = MonotoneValues {
                pairs: pairs.clone(),
                leaves: Vec::new(),
            };
            for (step, noise) in steps.into_iter().zip(normals) {
                ordered.push(LeafStep {
                    step,
                    noise: f64::from(noise),
                    hessian: Some(1.0),
                });
            }
            let values: Vec<f64> = ordered.values().into_iter().map(f64::from).collect();
            assert!(is_in_order(&pairs, &values), "{values:?}");
            // a leaf that is compared with none keeps its own
            assert!((values[5] - 9.0 - f64::from(normals[5])).abs() < 1e-5);
            for (sum, (value, step)) in sums.iter_mut().zip(values.iter().zip(steps)) {
                *sum += value - step;
            }
        }
        assert!(
            sums.iter().all(|sum: &f64| sum.abs() < 0.1 * n as f64),
            "{sums:?}"
        );
    }
}
