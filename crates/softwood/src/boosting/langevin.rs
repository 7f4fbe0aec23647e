//! Stochastic gradient Langevin boosting (Malinin, Prokhorenkova and Ustimenko 2021; Ustimenko and
//! Prokhorenkova 2021): the noise that makes the chains of an ensemble differ.

use crate::numerics::gaussian::Gaussian;
use crate::rng::Key;
use crate::trees::histogram::chooser::{SplitChooser, SplitNoise};

/// The source of diversity among chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// No noise: chains differ by row and column sampling alone.
    Off,
    /// Leaf noise whose stationary distribution is the posterior. With learning rate `e` and
    /// posterior variance `v` of a leaf value, the noise has the variance `e (2 - e) v`: the chain
    /// `x -> (1 - e) x + noise` then has the stationary variance `v` for every `e`.
    Posterior,
    /// Leaf noise of Malinin et al., equation 11: variance `2 e v / N`.
    Malinin,
    /// Noise on split scores, none on leaf values.
    SplitNoise,
}

impl Sampling {
    /// Whether noise is added to leaf values.
    pub(crate) fn has_leaf_noise(self) -> bool {
        matches!(self, Self::Posterior | Self::Malinin)
    }
}

/// Noise formulas of one chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct LangevinNoise {
    pub(super) sampling: Sampling,
    /// Factor of the variance of the noise on leaf values.
    pub(super) temperature: f64,
    pub(super) learning_rate: f64,
    pub(super) l2: f64,
    /// Total weight `N` of the training rows.
    pub(super) total_weight: f64,
}

impl LangevinNoise {
    /// How the splits of one tree are chosen, after `n_trees` trees.
    ///
    /// The standard deviation of noise on the scores is the root mean square gradient times `r / (1 + r)`,
    /// `r = N exp(-n_trees learning_rate)`: it vanishes as `r` falls below one. `grad_hess` holds
    /// the entries of each row; the first `n_gradients` of them are the gradients to average.
    pub(super) fn split_chooser<const L: usize>(
        &self,
        grad_hess: &[[f32; L]],
        n_gradients: usize,
        n_trees: usize,
        key: Key,
    ) -> SplitChooser {
        if self.sampling != Sampling::SplitNoise {
            return SplitChooser::Best;
        }
        let remaining = self.total_weight * (-(n_trees as f64) * self.learning_rate).exp();
        let square = |row: &[f32; L]| -> f64 {
            let squares = row[..n_gradients].iter().map(|&g| f64::from(g).powi(2));
            squares.sum::<f64>() / n_gradients as f64
        };
        let mean_square = grad_hess.iter().map(square).sum::<f64>() / self.total_weight;
        let sd = mean_square.sqrt() * remaining / (1.0 + remaining);
        SplitChooser::Noisy(SplitNoise { sd: sd as f32, key })
    }

    /// Noise on the leaf values of one tree, or `None` without leaf noise.
    pub(super) fn of_leaves(
        self,
        n_leaves: usize,
        n_outputs: usize,
        dispersion: impl FnOnce() -> f64,
        key: Key,
    ) -> Option<LeafNoise> {
        self.sampling.has_leaf_noise().then(|| {
            let mut normals = vec![0.0; n_leaves * n_outputs];
            Gaussian::new(key).fill(&mut normals);
            LeafNoise {
                formula: self,
                dispersion: dispersion(),
                normals,
                n_outputs,
            }
        })
    }

    /// Sums of the entries of the `l2` average rows that stand in for the rows of an empty leaf.
    ///
    /// The posterior of a value without data is at least as wide as that of a leaf with so few
    /// rows.
    pub(super) fn empty_leaf_prior<const L: usize>(&self, totals: &[f64; L]) -> Option<[f64; L]> {
        let share = self.l2 / self.total_weight;
        let has_prior = self.sampling == Sampling::Posterior && share > 0.0;
        has_prior.then(|| totals.map(|total| share * total))
    }
}

/// Noise on the leaf values of one tree.
#[derive(Debug)]
pub(super) struct LeafNoise {
    formula: LangevinNoise,
    /// Residual variance of a likelihood without a scale of its own, else 1.
    dispersion: f64,
    /// Standard normal numbers, leaves x outputs.
    normals: Vec<f32>,
    n_outputs: usize,
}

impl LeafNoise {
    /// Standard deviation of the noise on a value with posterior variance `v`, dispersion `d` and
    /// temperature `T`: `sqrt(2 e T d v / N)` for [`Sampling::Malinin`], else `sqrt(e (2 - e) T d v)`.
    pub(super) fn sd(&self, variance: f64) -> f64 {
        let rate = self.formula.learning_rate;
        let factor = match self.formula.sampling {
            Sampling::Malinin => 2.0 * rate / self.formula.total_weight,
            _ => rate * (2.0 - rate),
        };
        (factor * self.formula.temperature * self.dispersion * variance).sqrt()
    }

    /// The standard normal number of one value.
    pub(super) fn normal(&self, leaf: usize, output: usize) -> f32 {
        self.normals[leaf * self.n_outputs + output]
    }
}
