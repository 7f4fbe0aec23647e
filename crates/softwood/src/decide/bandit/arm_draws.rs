//! The probability of each arm under Thompson sampling: draws of the arms are paired, and the share of
//! pairs in which an arm has the largest reward is its probability.

use crate::decide::bandit::reward_model::RewardDraws;
use crate::rng::{Key, shuffle};

/// Bounds of the number of pairs: few members are paired in more than one way, and very many are not
/// all used.
const MIN_PAIRS: usize = 100;
const MAX_PAIRS: usize = 1000;

/// Which draw of each arm belongs to which pair.
#[derive(Debug, Clone, Default)]
pub(super) struct DrawPairs {
    n_pairs: usize,
    /// Draw of each arm and pair (row-major, arms x pairs).
    draws: Vec<usize>,
}

impl DrawPairs {
    /// Pairs of independent arms with these numbers of draws: draws of an arm are used equally often.
    pub(super) fn independent(n_draws: &[usize], key: Key) -> Self {
        let n_pairs = n_pairs(n_draws);
        let mut draws = Vec::with_capacity(n_draws.len() * n_pairs);
        for (arm, &n) in n_draws.iter().enumerate() {
            let mut order: Vec<usize> = (0..n_pairs).map(|pair| pair % n.max(1)).collect();
            shuffle(&mut key.child(arm as u64).rng(), &mut order);
            draws.extend(order);
        }
        Self { n_pairs, draws }
    }

    /// Pairs of arms that share one model: a draw is the same function for all of them.
    pub(super) fn shared(n_arms: usize, n_draws: usize) -> Self {
        let n_pairs = n_pairs(&[n_draws]);
        let order = (0..n_pairs).map(|pair| pair % n_draws.max(1));
        Self {
            n_pairs,
            draws: (0..n_arms).flat_map(|_| order.clone()).collect(),
        }
    }

    /// The probability of each arm on a row.
    pub(super) fn probabilities(&self, arms: &[RewardDraws], row: usize) -> Vec<f64> {
        let mut counts = vec![0.0; arms.len()];
        let rows: Vec<&[f64]> = arms.iter().map(|draws| draws.row(row)).collect();
        for pair in 0..self.n_pairs {
            let value = |arm: usize| rows[arm][self.draws[arm * self.n_pairs + pair]];
            // ties go to the arms in turn
            let first = pair % arms.len();
            let mut best = first;
            for arm in (first + 1..arms.len()).chain(0..first) {
                if value(arm) > value(best) {
                    best = arm;
                }
            }
            counts[best] += 1.0;
        }
        let n = self.n_pairs.max(1) as f64;
        counts.iter().map(|count| count / n).collect()
    }
}

fn n_pairs(n_draws: &[usize]) -> usize {
    let most = n_draws.iter().copied().max().unwrap_or(1);
    most.clamp(MIN_PAIRS, MAX_PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    fn draws(values: &[f64]) -> RewardDraws {
        RewardDraws {
            n_draws: values.len(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn probabilities_are_shares_of_pairs() {
        // the second arm is better in 3 of 4 draws of its own
        let arms = [draws(&[0.5]), draws(&[0.0, 1.0, 2.0, 3.0])];
        let pairs = DrawPairs::independent(&[1, 4], Key::from_seed(1));
        close(&pairs.probabilities(&arms, 0), &[0.25, 0.75], 1e-12);
    }

    #[test]
    fn shared_draws_are_compared_with_themselves() {
        // independent pairs would let the first arm win sometimes
        let arms = [draws(&[0.0, 10.0]), draws(&[1.0, 11.0])];
        let pairs = DrawPairs::shared(2, 2);
        close(&pairs.probabilities(&arms, 0), &[0.0, 1.0], 1e-12);
    }

    #[test]
    fn equal_arms_are_equally_probable() {
        let arms = [draws(&[1.0]), draws(&[1.0])];
        let pairs = DrawPairs::independent(&[1, 1], Key::from_seed(1));
        close(&pairs.probabilities(&arms, 0), &[0.5, 0.5], 1e-12);
    }
}
