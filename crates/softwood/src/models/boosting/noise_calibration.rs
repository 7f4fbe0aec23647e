//! Calibration of the noise of a regression on rows that single chains leave out.
//!
//! Of the calibration rows, chain `k` leaves out the fold `k` (one copy of each of its rows). A row
//! `i` of that fold has the mean `m_ik` and the standard deviation `s_ik` of a chain that never saw
//! it. (Target-encoded columns are an exception: the encodings of later rows contain the target of a
//! row that was left out.) Its residual `y - m_ik` becomes that of the mean of all chains
//! ([`ensemble_residual_factor`]), around which the chains have their deviations and the standard
//! deviation `s_ik`. Scale and tail of the noise suit these distributions. The residual depends on
//! the scale, which is therefore learned in two passes.

use crate::data::target::MIN_SCALE;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{
    HeldOutBlock, NoiseCalibration, ensemble_residual_factor, sample_variance,
};

/// Largest number of calibration rows.
const MAX_ROWS: usize = 5000;
/// Smallest number of calibration rows.
const MIN_ROWS: usize = 40;
/// Smallest number of folds: a chain leaves out at most a twentieth of the calibration rows.
const MIN_FOLDS: usize = 20;
/// All copies of a row are left out if one copy is less than this part of the weights.
const MIN_LEFT_OUT: f32 = 0.5;
/// Smallest number of chains whose noise is calibrated: fewer leave out too few rows.
const MIN_CHAINS: usize = 4;
/// Factor of the variance between the chains that were trained on a row: they agree more about it than
/// about new rows.
const VARIANCE_FACTOR: f64 = 2.0;
/// Number of passes that learn scale and tail.
const N_PASSES: usize = 2;

/// Which of the leading training rows each chain leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CalibrationFolds {
    n_rows: usize,
    n_folds: usize,
    /// Whether a chain leaves out all copies of a row instead of one.
    leaves_out_all: bool,
}

impl CalibrationFolds {
    /// The folds of `n_chains` chains on rows with these weights; `None` if there are too few rows or
    /// chains.
    pub(super) fn new(weights: &[f32], n_chains: usize) -> Option<Self> {
        let n_rows = weights.len().min(MAX_ROWS);
        if n_rows < MIN_ROWS || n_chains < MIN_CHAINS {
            return None;
        }
        let total: f32 = weights[..n_rows].iter().sum();
        let left_out: f32 = weights[..n_rows].iter().map(|weight| weight.min(1.0)).sum();
        Some(Self {
            n_rows,
            n_folds: n_chains.max(MIN_FOLDS),
            // weights that large hardly count copies, and a chain would still know the row
            leaves_out_all: left_out < MIN_LEFT_OUT * total,
        })
    }

    /// Number of calibration rows: the leading training rows.
    pub(super) fn n_rows(self) -> usize {
        self.n_rows
    }

    /// The weights of the training rows for a chain, which leaves out one copy of each row of its
    /// fold, because new rows may be copies of training rows too, or all copies if weights are large.
    pub(super) fn weights(self, weights: &[f32], chain: usize) -> Vec<f32> {
        let mut weights = weights.to_vec();
        for weight in weights[..self.n_rows]
            .iter_mut()
            .skip(chain)
            .step_by(self.n_folds)
        {
            *weight = if self.leaves_out_all {
                0.0
            } else {
                (*weight - 1.0).max(0.0)
            };
        }
        weights
    }
}

/// Means and standard deviations of all chains on the calibration rows, with targets and weights.
pub(super) struct ChainOutputs<'a> {
    pub(super) folds: CalibrationFolds,
    pub(super) likelihood: BoostingLikelihood,
    /// Raw outputs of each chain, rows x outputs.
    pub(super) raw: &'a [Vec<f32>],
    pub(super) target: &'a [f32],
    pub(super) weight: &'a [f32],
}

/// A calibration row under the chain that left it out.
struct HeldOutRow {
    target: f64,
    weight: f64,
    residual: f64,
    sd: f64,
    /// Deviations of all chains from their mean.
    deviations: Vec<f64>,
    /// Variance of the means of the chains that were trained on the row.
    between: f64,
}

impl ChainOutputs<'_> {
    /// Scale and tail of the noise that suit the rows left out.
    pub(super) fn calibration(&self) -> NoiseCalibration {
        let floor = match self.likelihood {
            BoostingLikelihood::Normal { floor } => floor,
            _ => MIN_SCALE,
        };
        let rows: Vec<HeldOutRow> = (0..self.folds.n_rows)
            .filter_map(|row| self.held_out_row(row))
            .collect();
        let blocks = |scale: f64| [held_out_block(&rows, scale)];
        let mut calibration = NoiseCalibration::IDENTITY;
        for _ in 0..N_PASSES {
            calibration = NoiseCalibration::learn(&blocks(calibration.scale), floor);
        }
        calibration.with_coverage_of(&blocks(calibration.scale))
    }

    /// A row under the chain that left it out; `None` if no chain did.
    fn held_out_row(&self, row: usize) -> Option<HeldOutRow> {
        let n_chains = self.raw.len();
        let left_out_by = row % self.folds.n_folds;
        if left_out_by >= n_chains {
            return None;
        }
        let n_outputs = self.likelihood.n_outputs();
        let output = |chain: usize, at: usize| f64::from(self.raw[chain][row * n_outputs + at]);
        let means: Vec<f64> = (0..n_chains).map(|chain| output(chain, 0)).collect();
        let sd = match self.likelihood {
            BoostingLikelihood::Normal { .. } => self.likelihood.sd(output(left_out_by, 1)),
            BoostingLikelihood::Squared { sd } => sd,
            BoostingLikelihood::Binary | BoostingLikelihood::Multiclass { .. } => return None,
        };
        let mean = means.iter().sum::<f64>() / n_chains as f64;
        let others = (0..n_chains).filter(|&chain| chain != left_out_by);
        let target = f64::from(self.target[row]);
        Some(HeldOutRow {
            target,
            weight: f64::from(self.weight[row]),
            residual: target - means[left_out_by],
            sd,
            between: sample_variance(others.map(|chain| means[chain])),
            deviations: means.iter().map(|other| other - mean).collect(),
        })
    }
}

/// The distributions of an ensemble whose mean has the error of a mean over all chains.
fn held_out_block(rows: &[HeldOutRow], scale: f64) -> HeldOutBlock {
    let n_chains = rows[0].deviations.len();
    let mut block = Block::new(Head::Normal { components: 1 }, n_chains, rows.len());
    block.weight.fill(1.0);
    for (at, row) in rows.iter().enumerate() {
        // the error that all chains share is taken to be as large as their disagreement
        let noise = (scale * row.sd).powi(2) + row.between;
        let between = VARIANCE_FACTOR * row.between;
        let residual = row.residual * ensemble_residual_factor(noise, between, (1, n_chains));
        for (chain, deviation) in row.deviations.iter().enumerate() {
            let index = block.at(chain, 0) + at;
            let normal = block.normal_mut();
            normal.mean[index] = row.target - residual + deviation;
            normal.sd[index] = row.sd;
        }
    }
    HeldOutBlock {
        block,
        added: Vec::new(),
        target: rows.iter().map(|row| row.target).collect(),
        weight: rows.iter().map(|row| row.weight).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian::Gaussian;
    use crate::rng::Key;

    #[test]
    fn every_chain_leaves_out_other_rows() {
        let mut weights = vec![1.0; 100_000];
        weights[7] = 3.0;
        let folds = CalibrationFolds::new(&weights, 10).expect("enough rows and chains");
        let mut n_left_out = vec![0; 100_000];
        for chain in 0..10 {
            let own = folds.weights(&weights, chain);
            for (row, count) in n_left_out.iter_mut().enumerate() {
                let n_copies = weights[row] - own[row];
                assert!([0.0, 1.0].contains(&n_copies), "{n_copies}");
                *count += n_copies as usize;
            }
        }
        assert!((0..5000).all(|row| n_left_out[row] == usize::from(row % 20 < 10)));
        assert!(n_left_out[5000..].iter().all(|&count| count == 0));
        assert_eq!(CalibrationFolds::new(&weights[..39], 10), None);
        assert_eq!(CalibrationFolds::new(&weights, 3), None);
    }

    #[test]
    fn rows_of_large_weights_are_left_out_entirely() {
        let weights = vec![25.0; 100];
        let folds = CalibrationFolds::new(&weights, 10).expect("enough rows and chains");
        let own = folds.weights(&weights, 3);
        assert_eq!(own.iter().filter(|&&weight| weight < 1.0).count(), 5);
    }

    /// Chains with independent errors of standard deviation 0.5 and true noise `sd`, whose log
    /// scales say 1.
    fn calibration(sd: f64) -> NoiseCalibration {
        let (n_rows, n_chains) = (4000, 10);
        let mut draws = vec![0.0; n_rows * (n_chains + 1)];
        Gaussian::new(Key::from_seed(3)).fill(&mut draws);
        let (noise, errors) = draws.split_at(n_rows);
        let raw: Vec<Vec<f32>> = (0..n_chains)
            .map(|chain| {
                let errors = &errors[chain * n_rows..(chain + 1) * n_rows];
                errors.iter().flat_map(|error| [0.5 * error, 0.0]).collect()
            })
            .collect();
        let target: Vec<f32> = noise.iter().map(|noise| sd as f32 * noise).collect();
        let outputs = ChainOutputs {
            folds: CalibrationFolds::new(&vec![1.0; n_rows], n_chains)
                .expect("enough rows and chains"),
            likelihood: BoostingLikelihood::Normal { floor: 1e-3 },
            raw: &raw,
            target: &target,
            weight: &vec![1.0; n_rows],
        };
        outputs.calibration()
    }

    /// The mixture of the chains already contains their variance, so that the noise itself has to be
    /// a little smaller than the true one.
    #[test]
    fn the_scale_follows_the_noise_and_not_the_error_of_single_chains() {
        let found = calibration(1.0).scale;
        assert!((0.8..1.02).contains(&found), "{found}");
        let ratio = calibration(2.0).scale / found;
        assert!((1.9..2.4).contains(&ratio), "{ratio}");
    }
}
