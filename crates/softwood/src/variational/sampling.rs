//! Members by Hamiltonian Monte Carlo: a chain that starts at the variational posterior of a fit and
//! draws from the posterior itself. Prior variances that are learned are drawn together with the weights.
//!
//! The Gaussian posterior is too wide among the training rows and too narrow in gaps between them; the
//! chain mends both (decision 0031).

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::Result;
use crate::inference::hmc::{ChainLength, ChainStart, LogDensity, OnTrajectory, Position, sample};
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::prior::Groups;
use crate::inference::schedule::TrainingSchedule;
use crate::numerics::real::LANES;
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{StoredLayout, TreeLayout};
use crate::soft::tree::{Batch, Workspace, log_likelihood};
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::ensemble::FittedEnsemble;
use crate::variational::groups::groups;
use crate::variational::options::PosteriorMethod;

/// Fewest gradients of a chain: shorter ones stay where they start.
const MIN_GRADIENTS: usize = 700;
/// Most gradients of a chain.
const MAX_GRADIENTS: usize = 8000;
/// Rows of one matrix product: their activations stay in the cache.
const ROWS_AT_ONCE: usize = 512;
/// Smallest variance of a weight for the masses of a chain: that of a point estimate.
const MIN_VARIANCE: f64 = 1e-20;

/// The number of gradients of the chains of a fit: as many as training computes for each row. `None` if
/// members are draws of the variational posterior.
pub(crate) fn n_gradients(
    method: Option<PosteriorMethod>,
    config: &SoftTreeConfig,
    schedule: TrainingSchedule,
) -> Option<usize> {
    // without a prior there is no posterior
    if config.kl_weight <= 0.0 {
        return None;
    }
    let n_gradients = (schedule.n_epochs * schedule.n_draws).min(MAX_GRADIENTS);
    match method {
        Some(PosteriorMethod::Variational) => None,
        Some(PosteriorMethod::Hmc) => Some(n_gradients.max(MIN_GRADIENTS)),
        None => (n_gradients >= MIN_GRADIENTS).then_some(n_gradients),
    }
}

/// The method of a warm start: that of the parameters, or else that of the fitted model.
pub(crate) fn continued_method<L: StoredLayout>(
    method: Option<PosteriorMethod>,
    fitted: &FittedEnsemble<L>,
) -> PosteriorMethod {
    method.unwrap_or(if fitted.has_chains() {
        PosteriorMethod::Hmc
    } else {
        PosteriorMethod::Variational
    })
}

/// A fit that a chain draws from: its prior, its variational posterior and its training rows.
#[derive(Debug)]
pub(crate) struct SampledFit<'a, L> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) spec: &'a SoftTreeSpec<L>,
    pub(crate) blocks: &'a [LowRank],
    pub(crate) rows: &'a EncodedRows,
}

/// Draws of the weights of a fit; `None` if the chain fails or is stopped.
///
/// # Errors
/// When the work is cancelled or the callback discards it.
pub(crate) fn sample_weights<L: TreeLayout>(
    fit: &SampledFit<'_, L>,
    length: ChainLength,
    key: Key,
    on_trajectory: OnTrajectory<'_>,
) -> Result<Option<Vec<f32>>> {
    let (mut start, mut variances) = (Vec::new(), Vec::new());
    for block in fit.blocks {
        start.extend(block.mean().iter().map(|&mean| f64::from(mean)));
        let own = block.variances().into_iter();
        variances.extend(own.map(|variance| variance.max(MIN_VARIANCE)));
    }
    let mut density = WeightDensity::new(fit.config, fit.spec, fit.rows);
    let start = ChainStart {
        weights: &start,
        variances: &variances,
    };
    sample(&mut density, start, length, key, on_trajectory)
}

/// The posterior density of the weights of a sum of trees.
pub(crate) struct WeightDensity<'a, L> {
    spec: &'a SoftTreeSpec<L>,
    rows: PaddedRows,
    /// Factor of the log-likelihood: the inverse of the weight of the KL term.
    likelihood_weight: f64,
    /// Prior precision of each weight, and the groups by which it is learned.
    precision: Vec<f64>,
    groups: Option<Groups>,
    workspace: Workspace<f32>,
    /// Weights and gradient in the precision of the kernel.
    weights: Vec<f32>,
    gradient: Vec<f32>,
}

impl<'a, L: TreeLayout> WeightDensity<'a, L> {
    /// The prior precisions are those of the prior scale, until they are drawn for the first time.
    pub(crate) fn new(
        config: &SoftTreeConfig,
        spec: &'a SoftTreeSpec<L>,
        rows: &EncodedRows,
    ) -> Self {
        let n_weights = spec.stack.n_weights();
        let rows = PaddedRows::new(rows, spec.stack.width());
        Self {
            likelihood_weight: 1.0 / config.kl_weight,
            precision: vec![1.0 / config.prior_scale.powi(2); n_weights],
            groups: groups(config, &spec.stack, spec.likelihood),
            workspace: Workspace::new(spec, rows.target.len().min(ROWS_AT_ONCE), 1),
            rows,
            weights: vec![0.0; n_weights],
            gradient: vec![0.0; n_weights],
            spec,
        }
    }
}

impl<L: TreeLayout> LogDensity for WeightDensity<'_, L> {
    fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        for (single, &weight) in self.weights.iter_mut().zip(weights) {
            *single = weight as f32;
        }
        let mut log_density = 0.0;
        for (at, slope) in gradient.iter_mut().enumerate() {
            *slope = -self.precision[at] * weights[at];
            log_density += 0.5 * *slope * weights[at];
        }
        for batch in self.rows.batches() {
            let sum = log_likelihood(
                self.spec,
                &batch,
                &self.weights,
                &mut self.gradient,
                &mut self.workspace,
            );
            log_density += self.likelihood_weight * sum;
            for (slope, &of_rows) in gradient.iter_mut().zip(&self.gradient) {
                *slope += self.likelihood_weight * f64::from(of_rows);
            }
        }
        log_density
    }

    fn prior_precision(&self) -> &[f64] {
        &self.precision
    }

    fn draw_parameters(&mut self, at: &mut Position, rng: &mut Xoshiro256PlusPlus) {
        let Some(groups) = &self.groups else {
            return;
        };
        let drawn = groups.draw(&at.weights, rng);
        let pairs = self.precision.iter_mut().zip(drawn);
        for ((precision, drawn), (slope, weight)) in
            pairs.zip(at.gradient.iter_mut().zip(&at.weights))
        {
            let change = (drawn - *precision) * weight;
            *slope -= change;
            at.log_density -= 0.5 * change * weight;
            *precision = drawn;
        }
    }
}

/// Encoded rows whose number is a multiple of the lanes of the kernel; the added ones have weight 0.
struct PaddedRows {
    inputs: Vec<f32>,
    width: usize,
    target: Vec<f32>,
    weight: Vec<f32>,
}

impl PaddedRows {
    fn new(rows: &EncodedRows, width: usize) -> Self {
        let n_rows = rows.n_rows().next_multiple_of(LANES);
        let padded = |values: &[f32], len: usize| {
            let mut values = values.to_vec();
            values.resize(len, 0.0);
            values
        };
        Self {
            inputs: padded(&rows.inputs, n_rows * width),
            width,
            target: padded(&rows.target, n_rows),
            weight: padded(&rows.weight, n_rows),
        }
    }

    fn batches(&self) -> impl Iterator<Item = Batch<'_, f32>> {
        let n_rows = self.target.len();
        (0..n_rows).step_by(ROWS_AT_ONCE).map(move |start| {
            let rows = start..(start + ROWS_AT_ONCE).min(n_rows);
            Batch {
                inputs: &self.inputs[rows.start * self.width..rows.end * self.width],
                target: &self.target[rows.clone()],
                weight: &self.weight[rows],
                offset: &[],
            }
        })
    }
}
