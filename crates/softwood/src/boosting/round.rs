//! One round of boosting: gradients, a tree, its leaf values, the update of every row's raw
//! outputs.

use crate::boosting::chain::{BoostedTree, Chain};
use crate::boosting::inputs::{BoostingData, BoostingSettings};
use crate::boosting::langevin::{LangevinNoise, LeafNoise};
use crate::boosting::subsample::{draw_encodings, sample_columns, sample_rows};
use crate::boosting::train_chain::TrainedChain;
use crate::boosting::update::TreeUpdate;
use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, OutputTerms, weighted_mean};
use crate::rng::Key;
use crate::trees::histogram::grower::{GrowTask, Grower, HistogramTree};
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::reduce::SingleProcess;
use crate::trees::histogram::splitter::{GainSpec, ScaledGain};
use crate::trees::monotone::projection::{LeafStep, MonotoneValues};

/// Random streams of one round.
mod streams {
    pub(super) const ROUNDING: u64 = 0;
    pub(super) const ROWS: u64 = 1;
    pub(super) const COLUMNS: u64 = 2;
    pub(super) const SPLIT_SCORES: u64 = 3;
    pub(super) const LEAF_VALUES: u64 = 4;
    pub(super) const OUTPUTS: u64 = 5;
    pub(super) const ENCODINGS: u64 = 6;
}

/// A chain in training, with the raw outputs of its rows and the workspace of its rounds.
#[derive(Debug)]
pub(super) struct ChainTrainer<'a, M, const L: usize> {
    likelihood: &'a M,
    data: BoostingData<'a>,
    settings: BoostingSettings,
    langevin: LangevinNoise,
    key: Key,
    chain: Chain,
    /// Raw outputs of the training rows, rows x outputs.
    raw: Vec<f32>,
    /// Raw outputs of the validation rows, rows x outputs.
    held_out_raw: Option<Vec<f32>>,
    /// Gradients, hessians and weight of each training row.
    grad_hess: Vec<[f32; L]>,
    quantized: QuantizedGradients<L>,
    grower: Grower<L>,
}

impl<'a, M: Likelihood<L>, const L: usize> ChainTrainer<'a, M, L> {
    /// Starts from the best constant, or from the chain of a fitted model.
    pub(super) fn new(
        likelihood: &'a M,
        data: BoostingData<'a>,
        settings: &BoostingSettings,
        warm_start: Option<&Chain>,
        key: Key,
    ) -> Self {
        let train = &data.train;
        let n_rows = train.binned.n_rows();
        let chain = warm_start.cloned().unwrap_or_else(|| {
            let start = likelihood.start(train.target, train.weight);
            Chain::new(start, 1.0 - settings.shrink_rate * settings.learning_rate)
        });
        Self {
            likelihood,
            data,
            settings: *settings,
            langevin: LangevinNoise {
                sampling: settings.sampling,
                temperature: settings.temperature,
                learning_rate: settings.learning_rate,
                l2: settings.l2,
                total_weight: train.weight.iter().map(|&weight| f64::from(weight)).sum(),
            },
            key,
            raw: chain.raw(train.binned),
            held_out_raw: data.held_out.map(|held_out| chain.raw(held_out.binned)),
            chain,
            grad_hess: vec![[0.0; L]; n_rows],
            quantized: QuantizedGradients::new(n_rows),
            grower: Grower::new(train.binned),
        }
    }

    /// Adds a tree to the chain. `round` counts the trees before it.
    ///
    /// # Errors
    /// When gradients are not finite.
    pub(super) fn round(&mut self, round: usize) -> Result<()> {
        let key = self.key.child(round as u64);
        let drawn = self.likelihood.for_round(key.child(streams::OUTPUTS));
        let likelihood = drawn.as_ref().unwrap_or(self.likelihood);
        self.compute_gradients(likelihood, round, key)?;
        let outputs = likelihood.outputs(self.settings.l2, &self.quantized.totals);
        let tree = self.grow_tree(likelihood, &outputs, round, key)?;
        let values = self.leaf_values(likelihood, &outputs, &tree, key.child(streams::LEAF_VALUES));
        let update = TreeUpdate {
            tree: &tree,
            values: &values,
            updated: likelihood.updated_outputs(),
            n_outputs: self.chain.n_outputs(),
            shrinkage: self.chain.shrinkage as f32,
        };
        update.apply_to_partition(&self.grower.partition, &mut self.raw);
        if let (Some(raw), Some(held_out)) = (&mut self.held_out_raw, &self.data.held_out) {
            update.apply_by_routing(held_out.binned, raw);
        }
        self.chain.trees.push(BoostedTree {
            outputs: likelihood.updated_outputs().to_vec(),
            structure: tree.structure,
            values,
            gains: tree.gains,
        });
        Ok(())
    }

    fn compute_gradients(&mut self, likelihood: &M, round: usize, key: Key) -> Result<()> {
        let train = &self.data.train;
        likelihood.grad_hess(&self.raw, train.target, train.weight, &mut self.grad_hess);
        let salt = key.child(streams::ROUNDING).word();
        self.quantized.set(&self.grad_hess, salt);
        if !self.quantized.totals.iter().all(|total| total.is_finite()) {
            return Err(Error::Diverged {
                step: round,
                what: "the sum of gradients".to_owned(),
            });
        }
        Ok(())
    }

    fn grow_tree(
        &mut self,
        likelihood: &M,
        outputs: &[OutputTerms],
        round: usize,
        key: Key,
    ) -> Result<HistogramTree> {
        let settings = &self.settings;
        let binned = self.data.train.binned;
        let rows_key = key.child(streams::ROWS);
        sample_rows(&mut self.quantized, settings.subsample, rows_key);
        let columns_key = key.child(streams::COLUMNS);
        let mut allowed = sample_columns(binned.n_columns(), settings.colsample, columns_key);
        let encodings_key = key.child(streams::ENCODINGS);
        draw_encodings(&mut allowed, &self.data.columns.encodings, encodings_key);
        let gain_spec = GainSpec {
            outputs: outputs.to_vec(),
            weight: likelihood.weight_entry(),
            min_weight: settings.min_child_weight,
        };
        // the gradient of the first output, or of every output that the round draws
        let n_gradients = likelihood.updated_outputs().len().max(1);
        let scores_key = key.child(streams::SPLIT_SCORES);
        let chooser = self
            .langevin
            .split_chooser(&self.grad_hess, n_gradients, round, scores_key);
        self.grower.grow(&GrowTask {
            binned,
            columns: self.data.columns,
            quantized: &self.quantized,
            scaled_gain: &ScaledGain::new(&gain_spec, &self.quantized),
            limits: settings.limits,
            allowed: &allowed,
            chooser,
            pool: self.data.pool,
            reduce: &SingleProcess,
        })
    }

    /// Leaf values, leaves x outputs.
    fn leaf_values(
        &self,
        likelihood: &M,
        outputs: &[OutputTerms],
        tree: &HistogramTree,
        key: Key,
    ) -> Vec<f32> {
        let mut monotone = MonotoneValues::new(&tree.structure, self.data.columns);
        let noise =
            self.langevin
                .of_leaves(tree.leaves.len(), outputs.len(), || self.dispersion(), key);
        let estimator = LeafEstimator {
            likelihood,
            outputs,
            learning_rate: self.settings.learning_rate,
            noise: noise.as_ref(),
            empty_leaf_prior: match monotone {
                None => self.langevin.empty_leaf_prior(&self.quantized.totals),
                Some(_) => None,
            },
        };
        let mut values = Vec::with_capacity(tree.leaves.len() * outputs.len());
        for (leaf, rows) in tree.leaves.iter().enumerate() {
            let sums = self.quantized.sums(self.grower.partition.rows(rows));
            // no rows, or rows without weight or gradients
            let first = if sums.iter().all(|&sum| sum == 0.0) {
                estimator.push_empty_leaf(leaf, &mut values);
                LeafStep::EMPTY
            } else {
                estimator.push_leaf(leaf, &sums, &mut values)
            };
            if let Some(monotone) = &mut monotone {
                monotone.push(first);
            }
        }
        if let Some(monotone) = monotone {
            let first_output = values.iter_mut().step_by(outputs.len());
            for (value, projected) in first_output.zip(monotone.values()) {
                *value = projected;
            }
        }
        values
    }

    /// Log-likelihood of each validation row, if there is a validation set.
    pub(super) fn held_out_log_densities(&self) -> Option<Vec<f64>> {
        let (held_out, raw) = (self.data.held_out?, self.held_out_raw.as_ref()?);
        let mut log_densities = vec![0.0; held_out.target.len()];
        self.likelihood
            .log_densities(raw, held_out.target, &mut log_densities);
        Some(log_densities)
    }

    /// Mean log-likelihood of the training rows.
    pub(super) fn train_log_likelihood(&self) -> f64 {
        let train = &self.data.train;
        let mut log_densities = vec![0.0; train.target.len()];
        self.likelihood
            .log_densities(&self.raw, train.target, &mut log_densities);
        weighted_mean(&log_densities, train.weight)
    }

    /// Shift of each raw output that corrects the scale on the validation set.
    pub(super) fn scale_correction(&self) -> Option<Vec<f64>> {
        let (held_out, raw) = (self.data.held_out?, self.held_out_raw.as_ref()?);
        Some(
            self.likelihood
                .scale_correction(raw, held_out.target, held_out.weight),
        )
    }

    /// Residual variance of the training rows under a likelihood without a scale of its own.
    pub(super) fn dispersion(&self) -> f64 {
        let train = &self.data.train;
        self.likelihood
            .dispersion(&self.raw, train.target, train.weight)
    }

    /// The chain as it is now; its first `n_earlier` trees come from a warm start.
    pub(super) fn trained(&self, n_earlier: usize) -> TrainedChain {
        let mut chain = self.chain.clone();
        chain.apply_shrinkage(n_earlier);
        TrainedChain {
            chain,
            curve: Vec::new(),
            dispersion: self.dispersion(),
            kept_raw: self.raw[..self.data.n_kept_rows * self.chain.n_outputs()].to_vec(),
            is_stopped: false,
            is_complete: false,
        }
    }
}

/// How the leaf values of one tree follow from the sums of its leaves.
struct LeafEstimator<'a, M, const L: usize> {
    likelihood: &'a M,
    outputs: &'a [OutputTerms],
    learning_rate: f64,
    noise: Option<&'a LeafNoise>,
    /// Sums that an empty leaf takes its noise from.
    empty_leaf_prior: Option<[f64; L]>,
}

impl<M: Likelihood<L>, const L: usize> LeafEstimator<'_, M, L> {
    /// Appends the values of a leaf with these sums: a Newton step per output, plus noise. Returns
    /// the step of the first output.
    fn push_leaf(&self, leaf: usize, sums: &[f64; L], values: &mut Vec<f32>) -> LeafStep {
        let mut first = LeafStep::EMPTY;
        for (at, output) in self.outputs.iter().enumerate() {
            let hessian = sums[output.hessian] + output.l2;
            let limit = self.likelihood.step_limit(at);
            let step = (sums[output.gradient] / hessian).clamp(-limit, limit);
            let step = self.learning_rate * step;
            let mut value = step;
            if let Some(noise) = self.noise {
                let sd = noise.sd(self.likelihood.noise_variance(at, sums, hessian));
                value += sd * f64::from(noise.normal(leaf, at));
            }
            values.push(value as f32);
            if at == 0 {
                first = LeafStep {
                    step,
                    noise: value - step,
                    hessian: Some(hessian),
                };
            }
        }
        first
    }

    /// Appends the values of a leaf without rows: noise with the variance of the prior, or zero.
    fn push_empty_leaf(&self, leaf: usize, values: &mut Vec<f32>) {
        let value = |(at, output): (usize, &OutputTerms)| {
            let prior = self.empty_leaf_prior.as_ref();
            let prior = prior.filter(|_| self.likelihood.has_noise_in_empty_leaves(at));
            let (Some(noise), Some(prior)) = (self.noise, prior) else {
                return 0.0;
            };
            let hessian = prior[output.hessian] + output.l2;
            let sd = noise.sd(self.likelihood.noise_variance(at, prior, hessian));
            sd as f32 * noise.normal(leaf, at)
        };
        values.extend(self.outputs.iter().enumerate().map(value));
    }
}
