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
