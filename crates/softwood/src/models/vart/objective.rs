//! Trees whose nodes may stop as an objective of variational training: relaxed split indicators,
//! skipped subtrees, and the KL divergence of structure and weights.
//!
//! With the logit `a_i` of a split probability and logistic noise `L_i`, the relaxed indicator is
//! `s_i = sigmoid((a_i + L_i) / tau)`. The temperature `tau` falls during training; validation and
//! prediction draw hard indicators.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::inference::lowrank_gaussian::{LossScale, LowRank};
use crate::inference::objective::{Objective, ValidationScores};
use crate::models::vart::relaxed_kl::RelaxedKl;
use crate::models::vart::spec::{ActiveTrees, VartSpec};
use crate::models::vart::split_mass::{
    DrawnTree, MIN_SPLITS, MassRows, indicator_mass, is_negligible, row_mass,
};
use crate::models::vart::streams::indicators as streams;
use crate::models::vart::structure_kl::{BlockKls, SplitPrior, StructureKl};
use crate::numerics::real::{LANES, sigmoid};
use crate::rng::{Key, uniform};
use crate::soft::tree::{Workspace, log_likelihood};
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::minibatch::{Minibatch, score_rows};

/// Bound of the logits of the split probabilities.
pub(super) const MAX_LOGIT: f32 = 12.0;
/// Fraction of the epochs after which the temperature stays at its final value.
const ANNEALING: f64 = 0.7;
/// Number of rows of uniform numbers that turn split probabilities into hard indicators of
/// validation draws; more draws use them again.
const N_VALIDATION_DRAWS: usize = 32;

/// Temperatures of the relaxed indicators at the beginning and at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Temperatures {
    pub(super) first: f64,
    pub(super) last: f64,
}

impl Temperatures {
    /// Temperature after a fraction `progress` of the run: geometric, then constant.
    pub(super) fn at(self, progress: f64) -> f64 {
        self.first * (self.last / self.first).powf((progress / ANNEALING).min(1.0))
    }
}

/// What the objective needs besides the rows.
#[derive(Debug, Clone)]
pub(super) struct VartSettings {
    pub(super) spec: VartSpec,
    /// Initial logits of the split probabilities.
    pub(super) logits: Vec<f32>,
    pub(super) prior: SplitPrior,
    pub(super) temperatures: Temperatures,
    pub(super) n_epochs: usize,
    pub(super) batch_size: usize,
    pub(super) n_draws: usize,
    /// Learning rate of the logits relative to that of the weights.
    pub(super) split_rate: f32,
    /// Whether the KL divergence is estimated from the relaxed draws of a step.
    pub(super) has_relaxed_kl: bool,
}

/// Trees whose nodes may stop, with their training and validation rows.
pub(super) struct VartObjective<'a> {
    settings: VartSettings,
    train: &'a EncodedRows,
    validation: Option<&'a EncodedRows>,
    logits: Vec<f32>,
    /// The logits divided by the relative learning rate, which the optimiser updates.
    parameters: Vec<f32>,
    temperature: f64,
    noise: Xoshiro256PlusPlus,
    /// Logits of the relaxed indicators of each draw.
    relaxed: Vec<f32>,
    /// Gradient of the log-likelihood of the last step with respect to the logits, summed over
    /// draws.
    logit_gradient: Vec<f32>,
    /// Which nodes may split in the active part of a single tree.
    kept: Vec<bool>,
    active: ActiveTrees,
    kernel_weights: Vec<f32>,
    kernel_gradients: Vec<f32>,
    batch: Minibatch,
    workspace: Workspace<f32>,
    /// Draws of the last step, for the relaxed KL divergence.
    draws: Vec<f32>,
    validation_uniforms: Vec<f64>,
    /// Whether subtrees without mass are skipped; tests compare with all subtrees.
    skips: bool,
}

impl<'a> VartObjective<'a> {
    pub(super) fn new(
        settings: VartSettings,
        train: &'a EncodedRows,
        validation: Option<&'a EncodedRows>,
        key: Key,
    ) -> Self {
        let active = settings.spec.active(|_| true);
        let (n_draws, n_logits) = (settings.n_draws, settings.spec.n_logits());
        let rows = settings.batch_size.min(train.n_rows());
        let rows = rows.next_multiple_of(LANES);
        let n_kernel = active.kernel.stack.n_weights();
        let mut rng = key.child(streams::VALIDATION).rng();
        let n_uniforms = N_VALIDATION_DRAWS * n_logits;
        Self {
            train,
            validation,
            logits: settings.logits.clone(),
            parameters: (settings.logits.iter())
                .map(|logit| logit / settings.split_rate)
                .collect(),
            temperature: settings.temperatures.first,
            noise: key.child(streams::NOISE).rng(),
            relaxed: vec![0.0; n_draws * n_logits],
            logit_gradient: vec![0.0; n_logits],
            kept: vec![true; settings.spec.first.n_splits()],
            kernel_weights: vec![0.0; n_draws * n_kernel],
            kernel_gradients: vec![0.0; n_draws * n_kernel],
            batch: Minibatch::new(rows, &active.kernel.stack),
            workspace: Workspace::new(&active.kernel, rows, n_draws),
            draws: Vec::new(),
            validation_uniforms: (0..n_uniforms).map(|_| uniform(&mut rng)).collect(),
            active,
            skips: true,
            settings,
        }
    }

    /// Takes the logits over from the optimiser, whose last step may have passed their bound.
    fn read_parameters(&mut self) {
        let rate = self.settings.split_rate;
        for (parameter, logit) in self.parameters.iter_mut().zip(&mut self.logits) {
            *logit = (rate * *parameter).clamp(-MAX_LOGIT, MAX_LOGIT);
            *parameter = *logit / rate;
        }
    }

    /// Draws the relaxed indicators of all draws, in antithetic pairs.
    fn draw_indicators(&mut self) {
        let n_logits = self.logits.len();
        let tau = self.temperature as f32;
        let (n_draws, pair_size) = (self.settings.n_draws, 2 * n_logits.max(1));
        for (pair, relaxed) in self.relaxed.chunks_mut(pair_size).enumerate() {
            for (at, &logit) in self.logits.iter().enumerate() {
                // open interval: both logarithms are finite
                let u = uniform(&mut self.noise).clamp(1e-12, 1.0 - 1e-12);
                let noise = (u.ln() - (-u).ln_1p()) as f32;
                relaxed[at] = (logit + noise) / tau;
                if 2 * pair + 1 < n_draws {
                    relaxed[n_logits + at] = (logit - noise) / tau;
                }
            }
        }
    }

    /// Selects the nodes that carry mass in one of the draws.
    fn select_active(&mut self, rows: MassRows<'_>, draws: &[f32]) {
        let spec = &self.settings.spec;
        if spec.n_added > 0 || !self.skips {
            return;
        }
        let (tree, n_logits) = (&spec.first, self.logits.len());
        let mut mass = vec![0.0; n_logits];
        for logits in self.relaxed.chunks_exact(n_logits.max(1)) {
            indicator_mass(tree, logits, &mut mass);
        }
        let carries_mass = |mass: &[f32]| -> Vec<bool> {
            let nodes = mass.iter().enumerate();
            nodes
                .map(|(node, &mass)| !is_negligible(mass, tree.depth(node), spec.mixing_levels))
                .collect()
        };
        let mut kept = carries_mass(&mass);
        if kept.iter().filter(|&&kept| kept).count() >= MIN_SPLITS {
            mass.fill(0.0);
            let pairs = draws.chunks_exact(spec.n_weights());
            for (weights, logits) in pairs.zip(self.relaxed.chunks_exact(n_logits)) {
                let draw = DrawnTree {
                    tree,
                    shape: &spec.shape,
                    weights,
                    logits,
                    beta: spec.beta as f32,
                    mixing_levels: spec.mixing_levels,
                };
                row_mass(draw, rows, &mut mass);
            }
            kept = carries_mass(&mass);
        }
        if kept != self.kept {
            self.active = spec.active(|node| kept[node]);
            self.kept = kept;
        }
    }

    /// Evaluates all subtrees.
    #[cfg(test)]
    pub(super) fn without_skipping(mut self) -> Self {
        self.skips = false;
        self
    }

    /// Gradient of the log-likelihood of the last step with respect to the logits.
    #[cfg(test)]
    pub(super) fn logit_gradient(&self) -> &[f32] {
        &self.logit_gradient
    }

    /// Number of nodes that may split and were skipped in the last step.
    #[cfg(test)]
    pub(super) fn n_skipped(&self) -> usize {
        self.settings.spec.first.n_splits() - (self.active.first.nodes.len() - 1) / 2
    }

    /// Hard indicators of the validation draws.
    fn validation_splits(&self, n_draws: usize) -> Vec<bool> {
        let probabilities: Vec<f64> = self.logits.iter().map(|&a| sigmoid(f64::from(a))).collect();
        let n_logits = self.logits.len();
        let uniforms = self.validation_uniforms.iter().cycle();
        uniforms
            .take(n_draws * n_logits)
            .enumerate()
            .map(|(at, &u)| u < probabilities[at % n_logits])
            .collect()
    }

    /// KL divergence of each tree, with its gradient.
    fn structure_kls(&self, posterior: &LowRank, precision: &[f32]) -> Vec<StructureKl> {
        let kls = posterior.block_kls(precision);
        let trees = self.settings.spec.trees();
        trees
            .map(|tree| {
                let blocks = BlockKls::new(tree.tree, &kls[tree.blocks.clone()]);
                StructureKl::new(&tree.posterior(&self.logits), self.settings.prior, &blocks)
            })
            .collect()
    }

    fn relaxed_kl(&self) -> RelaxedKl<'_> {
        RelaxedKl {
            spec: &self.settings.spec,
            prior: self.settings.prior,
            logits: &self.logits,
            relaxed: &self.relaxed,
            draws: &self.draws,
            temperature: self.temperature,
        }
    }
}

impl Objective for VartObjective<'_> {
    /// Logits of the split probabilities.
    type State = Vec<f32>;

    fn n_weights(&self) -> usize {
        self.settings.spec.n_weights()
    }

    fn n_rows(&self) -> usize {
        self.train.n_rows()
    }

    fn total_weight(&self) -> f64 {
        self.train.total_weight
    }

    fn log_likelihood(&mut self, rows: &[usize], draws: &[f32], gradients: &mut [f32]) -> f64 {
        self.read_parameters();
        self.draw_indicators();
        let mut batch = std::mem::replace(&mut self.batch, Minibatch::empty());
        let gathered = batch.gather(self.train, &[], rows);
        let mass_rows = MassRows {
            inputs: gathered.inputs,
            n_rows: gathered.target.len(),
        };
        self.select_active(mass_rows, draws);
        let spec = &self.settings.spec;
        let (n_weights, n_logits) = (spec.n_weights(), self.logits.len());
        let n_kernel = self.active.kernel.stack.n_weights();
        let beta = spec.beta as f32;
        let mut stop_logits = vec![0.0; n_logits];
        for (draw, out) in self.kernel_weights.chunks_exact_mut(n_kernel).enumerate() {
            let Some(weights) = draws.get(draw * n_weights..(draw + 1) * n_weights) else {
                break;
            };
            let relaxed = &self.relaxed[draw * n_logits..(draw + 1) * n_logits];
            for (logit, &relaxed) in stop_logits.iter_mut().zip(relaxed) {
                *logit = relaxed / beta;
            }
            self.active.expand(spec, weights, &stop_logits, out);
        }
        let n_draws = draws.len() / n_weights;
        let sum = log_likelihood(
            &self.active.kernel,
            &gathered,
            &self.kernel_weights[..n_draws * n_kernel],
            &mut self.kernel_gradients[..n_draws * n_kernel],
            &mut self.workspace,
        );
        self.batch = batch;
        self.logit_gradient.fill(0.0);
        let kernel_gradients = self.kernel_gradients.chunks_exact(n_kernel);
        for (out, kernel) in gradients.chunks_exact_mut(n_weights).zip(kernel_gradients) {
            let logits = &mut self.logit_gradient;
            self.active.collect(spec, kernel, out, logits);
        }
        let factor = 1.0 / (beta * self.temperature as f32);
        for gradient in &mut self.logit_gradient {
            *gradient *= factor;
        }
        if self.settings.has_relaxed_kl {
            self.draws.clear();
            self.draws.extend_from_slice(draws);
        }
        sum
    }

    fn validation(&self, draws: &[f32]) -> Option<ValidationScores> {
        let rows = self.validation?;
        let spec = &self.settings.spec;
        let n_draws = draws.len() / spec.n_weights();
        let splits = self.validation_splits(n_draws);
        let n_logits = self.logits.len();
        let active = spec.active(|node| splits.iter().skip(node).step_by(n_logits).any(|&s| s));
        let weights = active.expand_hard(spec, draws, &splits);
        let of_rows = score_rows(&active.kernel, &weights, rows);
        let mean = rows.mean(&of_rows);
        Some(ValidationScores { of_rows, mean })
    }

    /// The logits of the last step; the optimiser is one step ahead.
    fn state(&self) -> Vec<f32> {
        self.logits.clone()
    }

    fn start_epoch(&mut self, epoch: usize, _: &mut LowRank) {
        let progress = epoch as f64 / self.settings.n_epochs as f64;
        self.temperature = self.settings.temperatures.at(progress);
    }

    fn kl(&self, posterior: &LowRank, precision: &[f32]) -> f64 {
        let kls = self.structure_kls(posterior, precision);
        kls.iter().map(|kl| kl.value).sum()
    }

    fn block_weights(&self, weights: &mut [f32]) {
        for tree in self.settings.spec.trees() {
            let posterior = tree.posterior(&self.logits);
            posterior.block_weights(&mut weights[tree.blocks.clone()]);
        }
    }

    fn parameters(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    fn complete_gradient(
        &self,
        posterior: &LowRank,
        precision: &[f32],
        scale: LossScale,
        gradient: &mut [f32],
    ) {
        if self.settings.has_relaxed_kl {
            self.relaxed_kl()
                .replace_weight_gradient(posterior, precision, scale.kl, gradient);
        }
    }

    fn parameter_gradient(
        &self,
        posterior: &LowRank,
        precision: &[f32],
        scale: LossScale,
        gradient: &mut [f32],
    ) {
        let kl_gradient: Vec<f64> = if self.settings.has_relaxed_kl {
            self.relaxed_kl().logit_gradient(posterior, precision)
        } else {
            let kls = self.structure_kls(posterior, precision);
            kls.into_iter().flat_map(|kl| kl.gradient).collect()
        };
        for (at, out) in gradient.iter_mut().enumerate() {
            let kl = scale.kl * kl_gradient[at] as f32;
            *out = self.settings.split_rate * (kl - scale.likelihood * self.logit_gradient[at]);
        }
    }
}
