//! Leaf values under monotone constraints.
//!
//! A sum of trees satisfies the constraints if every tree does, and shrinkage preserves them. So
//! the Newton steps of a tree are projected onto the constraints: the values minimise
//! `sum_l H_l (v_l - step_l)^2` with the hessian `H_l` of leaf `l`.
//!
//! Langevin noise must not be projected: the projection would remove the part of the noise that
//! violates the constraints and keep the part that agrees with them, a bias of the same direction
//! in every tree. Instead, all leaves that pairs connect share the mean of their noise, weighted by
//! hessian, and their deviations from it are damped by a common factor, small enough that the
//! values with either sign of the deviations satisfy the constraints. So the noise keeps mean zero.

use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::monotone::pairs::{LeafPair, pairs};
use crate::trees::structure::TreeStructure;

/// Most sweeps of a projection; [`enforce`] removes the violations that remain.
const MAX_SWEEPS: usize = 100;
/// Differences below this fraction of the largest step count as zero.
const TOLERANCE: f64 = 1e-9;
/// Weight of a leaf without rows, as a fraction of the least hessian: it adapts to all others.
const EMPTY_LEAF_WEIGHT: f64 = 1e-3;

/// The steps of one output of a tree, and the pairs of leaves that constrain its values.
#[derive(Debug)]
pub(crate) struct MonotoneValues {
    pairs: Vec<LeafPair>,
    leaves: Vec<LeafStep>,
}

/// The Newton step of a leaf, and its noise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafStep {
    pub(crate) step: f64,
    pub(crate) noise: f64,
    /// `None` for a leaf without rows.
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
    /// `None` if no constraint applies to the tree.
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

    /// The leaf values, which satisfy all constraints.
    pub(crate) fn values(&self) -> Vec<f32> {
        let weights = self.weights();
        let mut values: Vec<f64> = self.leaves.iter().map(|leaf| leaf.step).collect();
        project(&self.pairs, &weights, &mut values);
        if self.leaves.iter().any(|leaf| leaf.noise != 0.0) {
            self.add_noise(&weights, &mut values);
        }
        enforce(&self.pairs, &mut values);
        values.into_iter().map(|value| value as f32).collect()
    }

    /// Weights of the leaves in the projection: their hessians.
    fn weights(&self) -> Vec<f64> {
        let hessians = self.leaves.iter().filter_map(|leaf| leaf.hessian);
        let least = hessians.fold(f64::INFINITY, f64::min);
        let of_empty = if least.is_finite() {
            EMPTY_LEAF_WEIGHT * least
        } else {
            1.0
        };
        let weight = |leaf: &LeafStep| leaf.hessian.unwrap_or(of_empty);
        self.leaves.iter().map(weight).collect()
    }

    /// Adds noise to projected values.
    fn add_noise(&self, weights: &[f64], values: &mut [f64]) {
        let n = values.len();
        let size = largest_size(values);
        // leaves with equal values have equal noise
        let is_tied = |pair: &&LeafPair| values[pair[1]] - values[pair[0]] <= TOLERANCE * size;
        let tied: Vec<LeafPair> = self.pairs.iter().filter(is_tied).copied().collect();
        let own = self.mean_noise(&groups(&tied, n), weights);
        let connected = groups(&self.pairs, n);
        let shared = self.mean_noise(&connected, weights);
        let deviation: Vec<f64> = own
            .iter()
            .zip(&shared)
            .map(|(own, shared)| own - shared)
            .collect();
        let mut damping = vec![1.0_f64; n];
        for &[lower, upper] in &self.pairs {
            let slack = (values[upper] - values[lower]).max(0.0);
            let change = (deviation[upper] - deviation[lower]).abs();
            if change > slack {
                let damping = &mut damping[connected[lower]];
                *damping = damping.min(slack / change);
            }
        }
        for leaf in 0..n {
            values[leaf] += shared[leaf] + damping[connected[leaf]] * deviation[leaf];
        }
    }

    /// Mean noise of the group of each leaf, weighted by hessian. Leaves without rows do not count.
    fn mean_noise(&self, group: &[usize], weights: &[f64]) -> Vec<f64> {
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

/// Largest absolute value.
fn largest_size(values: &[f64]) -> f64 {
    values
        .iter()
        .fold(0.0, |size: f64, value| size.max(value.abs()))
}

/// The connected component of each of `n` leaves, named by its first leaf.
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

/// Projects values onto the constraints by Hildreth's algorithm, up to [`TOLERANCE`].
fn project(pairs: &[LeafPair], weights: &[f64], values: &mut [f64]) {
    let size = largest_size(values);
    // dual variables of the constraints, never negative
    let mut multipliers = vec![0.0_f64; pairs.len()];
    for _ in 0..MAX_SWEEPS {
        let mut largest = 0.0_f64;
        for (multiplier, &[lower, upper]) in multipliers.iter_mut().zip(pairs) {
            let violation = values[lower] - values[upper];
            let compliance = 1.0 / weights[lower] + 1.0 / weights[upper];
            let change = (*multiplier + violation / compliance).max(0.0) - *multiplier;
            *multiplier += change;
            values[lower] -= change / weights[lower];
            values[upper] += change / weights[upper];
            largest = largest.max((change * compliance).abs());
        }
        if largest <= TOLERANCE * size {
            return;
        }
    }
}

/// Makes values satisfy the constraints exactly: each becomes the midpoint of the largest value of
/// the leaves below it and the least value of those above it, itself included. Both bounds satisfy
/// the constraints, and so do their midpoints. Values that satisfy them already do not change.
fn enforce(pairs: &[LeafPair], values: &mut [f64]) {
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

    fn is_monotone(pairs: &[LeafPair], values: &[f64]) -> bool {
        pairs
            .iter()
            .all(|&[lower, upper]| values[lower] <= values[upper])
    }

    #[test]
    fn the_projection_of_a_chain_is_isotonic_regression() {
        let pairs = [[0, 1], [1, 2], [2, 3]];
        let mut values = vec![1.0, 3.0, 2.0, 0.5];
        project(&pairs, &[1.0, 1.0, 2.0, 1.0], &mut values);
        let pooled = (3.0 + 2.0 * 2.0 + 0.5) / 4.0;
        for (value, expected) in values.iter().zip([1.0, pooled, pooled, pooled]) {
            assert!((value - expected).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn enforced_values_are_monotone_and_monotone_values_do_not_change() {
        let mut rng = Key::from_seed(2).rng();
        for _ in 0..500 {
            // the upper leaf has the larger index: no cycles
            let pairs: Vec<LeafPair> = (0..20)
                .map(|_| {
                    let upper = 1 + below(&mut rng, 9);
                    [below(&mut rng, upper), upper]
                })
                .collect();
            let mut values: Vec<f64> = (0..10).map(|_| uniform(&mut rng) - 0.5).collect();
            let weights: Vec<f64> = (0..10).map(|_| 0.01 + uniform(&mut rng)).collect();
            project(&pairs, &weights, &mut values);
            enforce(&pairs, &mut values);
            assert!(is_monotone(&pairs, &values));
            let before = values.clone();
            enforce(&pairs, &mut values);
            assert_eq!(values, before);
        }
    }

    /// The mean of 4000 draws with standard deviation at most 1 exceeds 0.1 once in 10^9 tests.
    #[test]
    fn noise_keeps_values_monotone_and_has_mean_zero() {
        let pairs = vec![[0, 1], [1, 2], [3, 4]];
        let steps = [0.0, 0.5, 0.5, 1.0, 4.0, 9.0];
        let (mut sums, n) = ([0.0; 6], 4000);
        for draw in 0..n {
            let mut normals = [0.0_f32; 6];
            crate::numerics::gaussian::Gaussian::new(Key::from_seed(draw)).fill(&mut normals);
            let mut monotone = MonotoneValues {
                pairs: pairs.clone(),
                leaves: Vec::new(),
            };
            for (step, noise) in steps.into_iter().zip(normals) {
                monotone.push(LeafStep {
                    step,
                    noise: f64::from(noise),
                    hessian: Some(1.0),
                });
            }
            let values: Vec<f64> = monotone.values().into_iter().map(f64::from).collect();
            assert!(is_monotone(&pairs, &values), "{values:?}");
            // a leaf without pairs keeps its noise
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
