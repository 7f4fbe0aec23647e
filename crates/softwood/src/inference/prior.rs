//! Prior variances that are learned in closed form during training (empirical Bayes).
//!
//! The variance of a group `g` that maximises the ELBO, shrunk towards the initial scale `tau_0`,
//! is `tau_g^2 = (sum_{i in g} E[theta_i^2] + 2 tau_0^2) / (n_g + 2)`.

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

/// Groups of weights that share a prior variance.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// Group of each weight.
    of_weight: Vec<u32>,
    /// Number of weights in each group.
    sizes: Vec<f64>,
    initial_scale: f64,
}

impl Groups {
    /// `of_weight` has the group of each weight; `initial_scale` is the initial prior scale.
    pub(crate) fn new(of_weight: Vec<u32>, initial_scale: f64) -> Self {
        let n_groups = of_weight.iter().max().map_or(0, |&last| last as usize + 1);
        let mut sizes = vec![0.0; n_groups];
        for &group in &of_weight {
            sizes[group as usize] += 1.0;
        }
        Self {
            of_weight,
            sizes,
            initial_scale,
        }
    }

    /// Sets the prior precision of every weight to its closed-form maximiser given `E[theta^2]`.
    pub(crate) fn learn(&self, second_moments: &[f32], precision: &mut [f32]) {
        let mut sums =
            vec![PRIOR_STRENGTH * self.initial_scale * self.initial_scale; self.sizes.len()];
        for (&group, &moment) in self.of_weight.iter().zip(second_moments) {
            sums[group as usize] += f64::from(moment);
        }
        let precisions: Vec<f32> = sums
            .iter()
            .zip(&self.sizes)
            .map(|(sum, size)| ((size + PRIOR_STRENGTH) / sum) as f32)
            .collect();
        for (&group, precision) in self.of_weight.iter().zip(precision) {
            *precision = precisions[group as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::lowrank_gaussian::LowRank;
    use softwood_testkit::close;

    #[test]
    fn groups_share_their_closed_form() {
        let groups = Groups::new(vec![0, 1, 0], 0.5);
        let mut precision = [0.0; 3];
        groups.learn(&[1.0, 4.0, 2.0], &mut precision);
        let expected = [4.0 / 3.5, 3.0 / 4.5, 4.0 / 3.5];
        close(&precision.map(f64::from), &expected, 1e-6);
    }

    /// Without shrinkage the closed form minimises the KL divergence.
    #[test]
    fn the_closed_form_minimises_the_kl() {
        let values = [0.5, -1.0, 0.3_f32.ln(), 0.7_f32.ln(), 0.2, -0.4].to_vec();
        let posterior = LowRank {
            n_weights: 2,
            rank: 1,
            values,
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
