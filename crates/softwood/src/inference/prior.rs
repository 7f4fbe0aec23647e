//! Prior variances that are learned in closed form during training (empirical Bayes).
//!
//! The variance of a group `g` that maximises the ELBO, shrunk towards the initial scale `tau_0`,
//! is `tau_g^2 = (sum_{i in g} c_i E[theta_i^2] + 2 tau_0^2) / (sum_{i in g} c_i + 2)`, where `c_i`
//! is the factor of the KL divergence of the block of weight `i` (1 for most models).

use rand_core::Rng;

use crate::numerics::gamma::gamma;

/// Number of pseudo-weights by which a group is shrunk towards the initial scale.
const PRIOR_STRENGTH: f64 = 2.0;

/// Prior `N(0, diag(1/precision))` of the weights.
#[derive(Debug, Clone)]
pub(crate) struct WeightPrior {
    /// Initial prior standard deviation of every weight.
    pub(crate) scale: f64,
    /// Groups whose variances are learned; `None` for a fixed prior.
    pub(crate) groups: Option<Groups>,
}

impl WeightPrior {
    /// Prior precision of every weight before any is learned.
    pub(crate) fn initial_precision(&self) -> f32 {
        (1.0 / self.scale.powi(2)) as f32
    }
}

/// `E[theta^2]` of every weight, with the factors of the blocks of a posterior.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightedMoments<'a> {
    pub(crate) moments: &'a [f32],
    /// Ends of the blocks; empty if all weights are one block.
    pub(crate) block_ends: &'a [usize],
    /// One factor per block.
    pub(crate) block_weights: &'a [f32],
}

/// Groups of weights that share a prior variance.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// Group of each weight.
    of_weight: Vec<u32>,
    /// Number of groups.
    count: usize,
    initial_scale: f64,
}

impl Groups {
    /// `of_weight` has the group of each weight; `initial_scale` is the initial prior scale.
    pub(crate) fn new(of_weight: Vec<u32>, initial_scale: f64) -> Self {
        let n_groups = of_weight.iter().max().map_or(0, |&last| last as usize + 1);
        Self {
            of_weight,
            count: n_groups,
            initial_scale,
        }
    }

    /// Sets the prior precision of every weight to its closed-form maximiser given `E[theta^2]`.
    pub(crate) fn learn(&self, moments: &WeightedMoments<'_>, precision: &mut [f32]) {
        let initial = PRIOR_STRENGTH * self.initial_scale * self.initial_scale;
        let mut sums = vec![initial; self.count];
        let mut sizes = vec![PRIOR_STRENGTH; self.count];
        let mut start = 0;
        let ends = moments.block_ends.iter().copied();
        let last = moments.moments.len();
        for (end, &factor) in ends.chain([last]).zip(moments.block_weights) {
            let factor = f64::from(factor);
            let block = self.of_weight[start..end].iter();
            for (&group, &moment) in block.zip(&moments.moments[start..end]) {
                sums[group as usize] += factor * f64::from(moment);
                sizes[group as usize] += factor;
            }
            start = end;
        }
        let pairs = sums.iter().zip(&sizes);
        let precisions: Vec<f32> = pairs.map(|(sum, size)| (size / sum) as f32).collect();
        for (&group, precision) in self.of_weight.iter().zip(precision) {
            *precision = precisions[group as usize];
        }
    }

    /// Draws the prior precision of every weight given the weights. The prior of the precision of a
    /// group is the Gamma distribution with shape 1 and rate `tau_0^2`; the mean of what is drawn is
    /// then the precision that [`Self::learn`] would set.
    pub(crate) fn draw(&self, weights: &[f64], rng: &mut impl Rng) -> Vec<f64> {
        let initial = PRIOR_STRENGTH * self.initial_scale * self.initial_scale;
        let mut sums = vec![initial; self.count];
        let mut sizes = vec![PRIOR_STRENGTH; self.count];
        for (&group, weight) in self.of_weight.iter().zip(weights) {
            sums[group as usize] += weight * weight;
            sizes[group as usize] += 1.0;
        }
        let draw = |(sum, size): (&f64, &f64)| {
            let shape = 0.5 * size;
            gamma(shape, rng).unwrap_or(shape) / (0.5 * sum)
        };
        let precisions: Vec<f64> = sums.iter().zip(&sizes).map(draw).collect();
        let of_weight = self.of_weight.iter();
        of_weight.map(|&group| precisions[group as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::lowrank_gaussian::LowRank;
    use crate::rng::Key;
    use softwood_testkit::close;

    #[test]
    fn groups_share_their_closed_form() {
        let groups = Groups::new(vec![0, 1, 0], 0.5);
        let mut precision = [0.0; 3];
        let moments = WeightedMoments {
            moments: &[1.0, 4.0, 2.0],
            block_ends: &[],
            block_weights: &[1.0],
        };
        groups.learn(&moments, &mut precision);
        let expected = [4.0 / 3.5, 3.0 / 4.5, 4.0 / 3.5];
        close(&precision.map(f64::from), &expected, 1e-6);
        let weighted = WeightedMoments {
            block_ends: &[2, 3],
            block_weights: &[1.0, 0.5],
            ..moments
        };
        groups.learn(&weighted, &mut precision);
        let expected = [3.5 / 2.5, 3.0 / 4.5, 3.5 / 2.5];
        close(&precision.map(f64::from), &expected, 1e-6);
    }

    /// The mean of the precisions is `(n + 2) / (sum of squares + 2 tau_0^2)`; 5 standard errors.
    #[test]
    fn drawn_precisions_are_those_of_the_group() {
        let groups = Groups::new(vec![0, 1, 0], 0.5);
        let mut rng = Key::from_seed(1).rng();
        let draws: Vec<Vec<f64>> = (0..4000)
            .map(|_| groups.draw(&[1.0, 2.0, -1.0], &mut rng))
            .collect();
        let mean = |at: usize| draws.iter().map(|draw| draw[at]).sum::<f64>() / 4000.0;
        assert!(
            draws
                .iter()
                .all(|draw| draw[0].to_bits() == draw[2].to_bits())
        );
        for (at, (n, sum)) in [(4.0, 2.5), (3.0, 4.5)].into_iter().enumerate() {
            let expected: f64 = n / sum;
            let tolerance = 5.0 * expected * (2.0 / n / 4000.0_f64).sqrt();
            assert!((mean(at) - expected).abs() < tolerance, "{at}");
        }
    }

    /// Without shrinkage the closed form minimises the KL divergence.
    #[test]
    fn the_closed_form_minimises_the_kl() {
        let values = [0.5, -1.0, 0.3_f32.ln(), 0.7_f32.ln(), 0.2, -0.4].to_vec();
        let posterior = LowRank {
            n_weights: 2,
            rank: 1,
            values,
            block_ends: Vec::new(),
        };
        let mut moments = [0.0; 2];
        posterior.second_moments(&mut moments);
        let closed_form = 2.0 / (moments[0] + moments[1]);
        let kl = |precision: f32| posterior.kl(&[precision; 2]);
        assert!(
            kl(closed_form) < kl(closed_form * 1.05) && kl(closed_form) < kl(closed_form * 0.95)
        );
    }
}
