//! From a grown tree to a fitted one: leaf-wise noise, then the posterior over all weights or a
//! point estimate.

use crate::error::Result;
use crate::inference::lowrank_gaussian::LowRank;
use crate::likelihood::soft::SoftLikelihood;
use crate::model::{CurvePoint, Model};
use crate::models::soft_tree::growing_tree::{GrowingTree, TreeOutput, evaluate};
use crate::models::soft_tree::growth::Grown;
use crate::models::soft_tree::growth_rows::{GrowthRows, whole_tree};
use crate::models::soft_tree::idle_leaves::without_idle_leaves;
use crate::models::soft_tree::point_training::{PointRun, PointSchedule, train as train_point};
use crate::models::soft_tree::streams;
use crate::models::soft_tree::train::SoftTreeFit;
use crate::numerics::real::inverse_softplus;
use crate::observer::Event;
use crate::rng::Key;
use crate::soft::general_layout::{GeneralLayout, LeafShape};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::trees::cart::CartTarget;
use crate::variational::encoded_rows::{EncodedRows, EncodedSplit};
use crate::variational::ensemble::FitPosterior;
use crate::variational::train::{RunPlace, Trained, TrainingRun, train};
use crate::variational::tree_summary::TreeSummary;

/// Logarithm of the standard deviation of a weight that is a point estimate: far below the
/// resolution of single precision.
const POINT_LOG_SD: f32 = -40.0;
/// Floor of the initial noise scale above its lower bound.
const MIN_INITIAL_SCALE: f64 = 0.02;
/// Pseudo-rows by which the noise variance of a leaf is shrunk towards that of all rows.
const NOISE_SHRINKAGE: f64 = 5.0;
/// Number of optimiser steps and peak learning rate of a point estimate with its noise.
const N_POINT_STEPS: usize = 3000;
const POINT_RATE: f64 = 0.005;

/// One tree of the fitted model.
#[derive(Debug)]
pub(super) struct FittedTree {
    pub(super) posterior: FitPosterior<GeneralLayout>,
    pub(super) summary: TreeSummary,
    pub(super) curve: Vec<CurvePoint>,
    pub(super) is_stopped: bool,
}

impl FittedTree {
    /// A tree with a summary of these rows.
    pub(super) fn new(
        posterior: FitPosterior<GeneralLayout>,
        rows: &EncodedRows,
        curve: Vec<CurvePoint>,
        is_stopped: bool,
    ) -> Self {
        let layout = &posterior.spec.stack.first;
        let mut weights = posterior.blocks[0].mean().to_vec();
        scale_gates(layout, &mut weights, posterior.spec.beta as f32);
        let output = evaluate(layout, &weights, rows);
        let kind = cart_kind(&posterior.spec);
        Self {
            summary: TreeSummary::new(kind, output.reaches(), rows),
            posterior,
            curve,
            is_stopped,
        }
    }
}

impl FittedTree {
    /// The tree without leaves that hardly any of these rows reaches.
    fn without_idle_leaves(self, rows: &EncodedRows) -> Self {
        let FitPosterior { spec, blocks, .. } = &self.posterior;
        let leaf_weights = self.summary.leaf_weights(cart_kind(spec));
        match without_idle_leaves(&spec.stack.first, &blocks[0], &leaf_weights) {
            None => self,
            Some((layout, block)) => {
                let posterior = FitPosterior {
                    spec: SoftTreeSpec {
                        beta: spec.beta,
                        ..whole_tree(layout, spec.likelihood)
                    },
                    blocks: vec![block],
                    encoder: self.posterior.encoder,
                };
                Self::new(posterior, rows, self.curve, self.is_stopped)
            }
        }
    }
}

/// The kind of target of a tree.
fn cart_kind(spec: &SoftTreeSpec<GeneralLayout>) -> CartTarget {
    match spec.likelihood {
        SoftLikelihood::Categorical => CartTarget::Classes(spec.stack.first.n_channels()),
        SoftLikelihood::Normal { .. } | SoftLikelihood::KnownNoise { .. } => CartTarget::Number,
    }
}

/// Multiplies the weights of the gates by a factor.
fn scale_gates(layout: &GeneralLayout, weights: &mut [f32], factor: f32) {
    for gate in 0..layout.n_gates() {
        for weight in &mut weights[layout.gate(gate)] {
            *weight *= factor;
        }
    }
}

/// Weight of each row in a leaf.
fn membership(output: &TreeOutput, leaf: usize, rows: &EncodedRows) -> impl Iterator<Item = f64> {
    let pairs = output.reach(leaf).iter().zip(&rows.weight);
    pairs.map(|(&reach, &weight)| f64::from(reach) * f64::from(weight))
}

impl SoftTreeFit<'_> {
    /// The grown tree with a channel for the noise scale, if the likelihood has one. The noise of a
    /// leaf begins at the residuals of its rows.
    fn complete(&self, grown: &GrowingTree, rows: &GrowthRows<'_>) -> (GeneralLayout, Vec<f32>) {
        let layout = grown.layout();
        let weights = grown.weights(&layout);
        let SoftLikelihood::Normal { floor } = self.scale.likelihood else {
            return (layout, weights);
        };
        let output = grown.evaluate(rows.train);
        let children = (0..layout.n_gates()).map(|gate| layout.children(gate));
        let shape = LeafShape {
            n_channels: 2,
            ..grown.shape
        };
        let layout = GeneralLayout::new(children.collect(), 0, shape);
        let mut with_noise = vec![0.0; layout.n_weights()];
        with_noise[..weights.len()].copy_from_slice(&weights);
        let squares: Vec<f64> = rows.residuals(&output.root).iter().map(|r| r * r).collect();
        let overall = rows.train.mean(&squares);
        for (at, leaf) in grown.leaves().into_iter().enumerate() {
            let (mut sum, mut total) = (NOISE_SHRINKAGE * overall, NOISE_SHRINKAGE);
            for (weight, square) in membership(&output, leaf, rows.train).zip(&squares) {
                sum += weight * square;
                total += weight;
            }
            let scale = ((sum / total).sqrt() - floor).max(MIN_INITIAL_SCALE);
            with_noise[layout.leaf(1, at).end - 1] = inverse_softplus(scale) as f32;
        }
        (layout, with_noise)
    }

    /// Trains the posterior over the weights of a grown tree on all training rows.
    ///
    /// # Errors
    /// When the observer discards the fit, the work is cancelled or training diverges.
    pub(super) fn variational_fit(
        &self,
        split: &EncodedSplit,
        grown: &Grown,
        at: usize,
        key: Key,
    ) -> Result<FittedTree> {
        let rows = self.growth_rows(split, &split.train);
        let (layout, mut weights) = self.complete(&grown.tree, &rows);
        let config = (self.params).config(self.rows.train().target(), layout.n_leaves());
        scale_gates(&layout, &mut weights, 1.0 / config.beta as f32);
        let schedule = config.schedule(self.rows.train());
        let factors = key.child(streams::fit::INITIAL_FACTORS);
        let training_run = TrainingRun {
            spec: SoftTreeSpec {
                beta: config.beta,
                ..whole_tree(layout, self.scale.likelihood)
            },
            train: &split.train,
            validation: split.validation.as_ref(),
            start: config.initial_posterior(weights, factors),
            schedule,
            // the weights of a grown regression tree are fitted already: annealing the KL term
            // would let them overfit first
            is_warm_start: !rows.is_classification,
            freezes_scale: false,
            redraw_offset: None,
            config: &config,
        };
        let place = RunPlace {
            at,
            n_runs: self.params.n_trees(),
            member: Some(at),
            ..RunPlace::new("fitting", schedule.n_epochs)
        };
        let fitted = |trained: Trained<GeneralLayout>| {
            let posterior = FitPosterior {
                encoder: split.encoder.clone(),
                spec: trained.spec,
                blocks: vec![trained.posterior],
            };
            let tree = FittedTree::new(posterior, &split.train, trained.curve, trained.is_stopped);
            if self.params.growth_options().prunes {
                tree.without_idle_leaves(&split.train)
            } else {
                tree
            }
        };
        let snapshot = |trained: Trained<GeneralLayout>| -> Box<dyn Model> {
            Box::new(self.assemble(vec![fitted(trained)]))
        };
        let trained = train(&training_run, key, &mut |report| {
            place.report(self.run, report, Some(&snapshot))
        })?;
        Ok(fitted(trained))
    }

    /// The tree of a fit that was stopped while it grew: its posterior is the one that training
    /// begins with.
    pub(super) fn stopped_fit(
        &self,
        split: &EncodedSplit,
        train: &EncodedRows,
        grown: &Grown,
        key: Key,
    ) -> FittedTree {
        let rows = self.growth_rows(split, train);
        let (layout, mut weights) = self.complete(&grown.tree, &rows);
        let config = (self.params).config(self.rows.train().target(), layout.n_leaves());
        let block = if self.params.is_ensemble() {
            point_posterior(weights)
        } else {
            scale_gates(&layout, &mut weights, 1.0 / config.beta as f32);
            config.initial_posterior(weights, key.child(streams::fit::INITIAL_FACTORS))
        };
        let beta = if self.params.is_ensemble() {
            1.0
        } else {
            config.beta
        };
        let posterior = FitPosterior {
            encoder: split.encoder.clone(),
            spec: SoftTreeSpec {
                beta,
                ..whole_tree(layout, self.scale.likelihood)
            },
            blocks: vec![block],
        };
        FittedTree::new(posterior, train, Vec::new(), true)
    }

    /// The grown tree as a point estimate. If the tree was refined, all its weights are trained
    /// once more, with the noise of the leaves.
    ///
    /// # Errors
    /// When the observer discards the fit or the work is cancelled.
    pub(super) fn point_fit(
        &self,
        split: &EncodedSplit,
        train: &EncodedRows,
        grown: &Grown,
        key: Key,
    ) -> Result<FittedTree> {
        let rows = self.growth_rows(split, train);
        let (layout, mut weights) = self.complete(&grown.tree, &rows);
        let mut root = rows.root_leaf();
        root.resize(layout.n_channels() * layout.leaf_width(), 0.0);
        let penalty = rows.penalty(&layout, &root);
        let spec = whole_tree(layout, self.scale.likelihood);
        let mut is_stopped = grown.is_stopped;
        if self.params.growth_options().refines {
            let run = PointRun {
                spec: &spec,
                train,
                validation: rows.validation,
                schedule: PointSchedule::new(train.n_rows(), N_POINT_STEPS, POINT_RATE),
                penalty: &penalty,
            };
            let key = key.child(streams::fit::POINT_TRAINING);
            let n_epochs = run.schedule.n_epochs;
            let fit = train_point(&run, weights, key, &mut |epoch| {
                self.run.observer.on_event(&Event {
                    epoch: Some(epoch),
                    ..Event::new("fitting", epoch, n_epochs)
                })
            })?;
            weights = fit.weights;
            is_stopped = fit.is_stopped;
        }
        let posterior = FitPosterior {
            encoder: split.encoder.clone(),
            spec,
            blocks: vec![point_posterior(weights)],
        };
        Ok(FittedTree::new(posterior, train, Vec::new(), is_stopped))
    }
}

/// A posterior that is concentrated at these weights.
pub(super) fn point_posterior(weights: Vec<f32>) -> LowRank {
    let n_weights = weights.len();
    let mut values = weights;
    values.resize(2 * n_weights, POINT_LOG_SD);
    LowRank {
        n_weights,
        rank: 0,
        values,
        block_ends: Vec::new(),
    }
}
