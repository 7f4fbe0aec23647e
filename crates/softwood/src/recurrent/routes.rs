//! Probabilities of the routes through the tree, and expectations over its leaves.
//!
//! In training all nodes of a level share the probability `q_d` of going right, so that a leaf whose
//! route has the decisions `m_d` has the probability `prod_d q_d^m_d (1 - q_d)^(1 - m_d)`. Nodes are
//! numbered as in a heap: the root is 1, the children of node `v` are `2 v` (left) and `2 v + 1`
//! (right), so that the leaves are the second half of an array.

use crate::numerics::real::{LANES, Lanes, Real};

/// Fills the probability of every node from those of going right at each level.
#[inline(always)]
pub(crate) fn probabilities<T: Real>(right: &[Lanes<T>], out: &mut [Lanes<T>]) {
    out[1] = Lanes::of(T::ONE);
    for (level, q) in right.iter().enumerate() {
        let (parents, children) = out.split_at_mut(2 << level);
        let parents = &parents[1 << level..];
        for (p, pair) in parents.iter().zip(children.chunks_exact_mut(2)) {
            let (mut left, mut right) = (*p, *p);
            for lane in 0..LANES {
                right[lane] = p[lane] * q[lane];
                left[lane] = p[lane] - right[lane];
            }
            pair[0] = left;
            pair[1] = right;
        }
    }
}

/// Replaces the values of inner nodes by expectations over their leaves, whose values are given, and
/// adds to `gradient` (one entry per level) that of the root's value with respect to `right`.
#[inline(always)]
pub(crate) fn expectations<T: Real>(
    right: &[Lanes<T>],
    probability: &[Lanes<T>],
    values: &mut [Lanes<T>],
    gradient: &mut [Lanes<T>],
) {
    for (level, q) in right.iter().enumerate().rev() {
        let (parents, children) = values.split_at_mut(2 << level);
        let parents = &mut parents[1 << level..];
        let reach = &probability[1 << level..2 << level];
        let mut sum = gradient[level];
        for ((value, p), pair) in parents.iter_mut().zip(reach).zip(children.chunks_exact(2)) {
            let (left, right, mut mean) = (pair[0], pair[1], pair[0]);
            for lane in 0..LANES {
                let difference = right[lane] - left[lane];
                mean[lane] = q[lane].fma(difference, left[lane]);
                sum[lane] = p[lane].fma(difference, sum[lane]);
            }
            *value = mean;
        }
        gradient[level] = sum;
    }
}

/// Probabilities of the routes through some levels of the tree for a chunk of rows, and values of
/// their ends.
#[derive(Debug)]
pub(crate) struct HalfRoutes<T> {
    /// Nodes in heap order.
    probability: Vec<Lanes<T>>,
    values: Vec<Lanes<T>>,
}

impl<T: Real> HalfRoutes<T> {
    pub(crate) fn new(n_levels: usize) -> Self {
        let nodes = vec![Lanes::of(T::ZERO); 2 << n_levels];
        Self {
            values: nodes.clone(),
            probability: nodes,
        }
    }

    #[inline(always)]
    pub(crate) fn n_leaves(&self) -> usize {
        self.probability.len() / 2
    }

    #[inline(always)]
    pub(crate) fn n_levels(&self) -> usize {
        self.n_leaves().trailing_zeros() as usize
    }

    /// Sets the probabilities from those of going right at each level.
    #[inline(always)]
    pub(crate) fn fill(&mut self, right: &[Lanes<T>]) {
        probabilities(right, &mut self.probability);
    }

    /// Probabilities of the ends.
    #[inline(always)]
    pub(crate) fn leaves(&self) -> &[Lanes<T>] {
        &self.probability[self.n_leaves()..]
    }

    /// Sets the values of the ends of both halves: the scores of the leaves, averaged over the other
    /// half. `score` returns that of a leaf.
    #[inline(always)]
    pub(crate) fn contract(upper: &mut Self, lower: &mut Self, score: impl Fn(usize) -> Lanes<T>) {
        let (n_upper, n_lower) = (upper.n_leaves(), lower.n_leaves());
        let of_lower = &mut lower.values[n_lower..];
        of_lower.fill(Lanes::of(T::ZERO));
        let lower = &lower.probability[n_lower..];
        let ends = upper.probability[n_upper..]
            .iter()
            .zip(&mut upper.values[n_upper..]);
        for (route, (&u, value)) in ends.enumerate() {
            let mut sum = Lanes::of(T::ZERO);
            for (end, (&v, of_end)) in lower.iter().zip(&mut *of_lower).enumerate() {
                let (score, mut other) = (score(route * n_lower + end), *of_end);
                for lane in 0..LANES {
                    sum[lane] = score[lane].fma(v[lane], sum[lane]);
                    other[lane] = score[lane].fma(u[lane], other[lane]);
                }
                *of_end = other;
            }
            *value = sum;
        }
    }

    /// The expectation of the values of the ends; adds its gradient with respect to `right`.
    #[inline(always)]
    pub(crate) fn expectations(
        &mut self,
        right: &[Lanes<T>],
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T> {
        expectations(right, &self.probability, &mut self.values, gradient);
        self.values[1]
    }
}
