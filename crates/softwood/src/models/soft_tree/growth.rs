//! Growth of a soft tree: leaves are split while the likelihood of the validation rows rises, then
//! all weights are refined together and splits that do not pay are pruned.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::fit::Run;
use crate::likelihood::soft::SoftLikelihood;
use crate::models::soft_tree::growing_tree::{GrowingTree, TreeOutput};
use crate::models::soft_tree::growth_rows::{GrowthRows, whole_tree};
use crate::models::soft_tree::hard_split::{HardSplit, SortedInputs};
use crate::models::soft_tree::point_training::{PointRun, PointSchedule, train};
use crate::models::soft_tree::split_training::{FrozenTree, TrainedSplit};
use crate::models::soft_tree::streams::growth as streams;
use crate::observer::Event;
use crate::rng::Key;
use crate::stop::{self, Stop};
use crate::variational::encoded_rows::MeanGain;

/// Number of splits that are trained side by side; it does not depend on the number of threads.
const SPLITS_AT_ONCE: usize = 4;
/// Number of optimiser steps of a refinement during growth, and of the last one.
const N_REFINEMENT_STEPS: usize = 400;
const N_FINAL_STEPS: usize = 3000;
/// Peak learning rate of a refinement.
const REFINEMENT_RATE: f64 = 0.01;

/// In which order leaves are split, and when growth ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GrowthOptions {
    /// Whether the leaf with the largest expected gain is split first; otherwise depth first.
    pub(super) best_first: bool,
    /// Number of standard errors by which the validation score must rise.
    pub(super) min_gain: f64,
    pub(super) max_leaves: usize,
    pub(super) max_depth: usize,
    /// Whether all weights are refined together.
    pub(super) refines: bool,
    /// Whether splits that do not pay after the refinement are pruned.
    pub(super) prunes: bool,
}

/// A growing tree and its rows.
pub(super) struct TreeGrowth<'a> {
    rows: GrowthRows<'a>,
    options: GrowthOptions,
    run: &'a Run<'a>,
    sorted: SortedInputs,
    key: Key,
    tree: GrowingTree,
    /// Leaves that may be split; the others were tried.
    open: Vec<usize>,
    is_stopped: bool,
}

/// A grown tree.
#[derive(Debug, Clone)]
pub(super) struct Grown {
    pub(super) tree: GrowingTree,
    /// Log-likelihood of each row that scores the tree.
    pub(super) row_scores: Vec<f64>,
    pub(super) is_stopped: bool,
}

impl<'a> TreeGrowth<'a> {
    /// A tree of one leaf.
    pub(super) fn new(
        rows: GrowthRows<'a>,
        options: GrowthOptions,
        run: &'a Run<'a>,
        key: Key,
    ) -> Self {
        Self {
            tree: GrowingTree::of_leaf(rows.shape, rows.root_leaf()),
            sorted: SortedInputs::new(rows.train, rows.width()),
            rows,
            options,
            run,
            key,
            open: if options.max_depth > 0 {
                vec![0]
            } else {
                Vec::new()
            },
            is_stopped: false,
        }
    }

    /// Grows, refines and prunes the tree.
    ///
    /// # Errors
    /// When the observer discards the fit or the work is cancelled.
    pub(super) fn finish(mut self) -> Result<Grown> {
        self.refine(N_REFINEMENT_STEPS, 0)?;
        let mut n_rounds = 0;
        let mut n_refined = 1;
        while !self.is_stopped && !self.open.is_empty() && self.n_leaves() < self.options.max_leaves
        {
            n_rounds += 1;
            let is_larger = self.round(n_rounds)?;
            // refinements at 2, 3, 4, 6, 8, 12, ... leaves
            if is_larger && self.options.refines && 2 * self.n_leaves() >= 3 * n_refined {
                n_refined = self.n_leaves();
                self.refine(N_REFINEMENT_STEPS, n_rounds)?;
            }
        }
        self.complete(n_rounds)
    }

    /// Refines and prunes a tree that has grown by other rules.
    ///
    /// # Errors
    /// As [`TreeGrowth::finish`].
    pub(super) fn refine_and_prune(mut self, grown: Grown) -> Result<Grown> {
        self.tree = grown.tree;
        self.is_stopped = grown.is_stopped;
        self.complete(0)
    }

    /// The last refinement and pruning.
    fn complete(mut self, n_rounds: usize) -> Result<Grown> {
        let refines = self.options.refines && !self.is_stopped;
        if refines {
            self.refine(N_FINAL_STEPS, n_rounds + 1)?;
        }
        if self.options.prunes && self.prune()? && refines {
            self.refine(N_FINAL_STEPS, n_rounds + 2)?;
        }
        let likelihood = self
            .rows
            .likelihood(&self.tree.root_output(self.rows.train));
        let row_scores = self.rows.scores(&self.tree, likelihood);
        Ok(Grown {
            row_scores,
            tree: self.tree,
            is_stopped: self.is_stopped,
        })
    }

    fn n_leaves(&self) -> usize {
        self.tree.leaves().len()
    }

    /// Trains the next splits and keeps those that pay; whether there is one.
    fn round(&mut self, round: usize) -> Result<bool> {
        stop::check()?;
        let rows = self.rows;
        let train_output = self.tree.evaluate(rows.train);
        let validation_output = rows.validation.map(|rows| self.tree.evaluate(rows));
        let likelihood = rows.likelihood(&train_output.root);
        let before = rows.scores(&self.tree, likelihood);
        let trained = {
            let frozen = FrozenTree {
                rows,
                tree: &self.tree,
                train: &train_output,
                validation: validation_output.as_ref(),
                likelihood,
            };
            let next = self.next_splits(&frozen);
            self.open.retain(|leaf| !next.tried.contains(leaf));
            let key = self.key.child(streams::SPLITS).child(round as u64);
            let trained = self.run.pool.map(next.splits.len(), |at| {
                let (leaf, split) = &next.splits[at];
                let key = key.child(at as u64);
                let start = frozen.initial_split(*leaf, split, key.child(streams::START));
                frozen.train_split(*leaf, &start, key.child(streams::TRAINING))
            });
            trained.into_iter().collect::<Result<Vec<_>>>()?
        };
        let is_larger = self.accept(trained, before, likelihood);
        self.report()?;
        Ok(is_larger)
    }

    /// Keeps the trained splits that pay, the best first; each is judged on top of those before it.
    fn accept(
        &mut self,
        mut trained: Vec<TrainedSplit>,
        mut before: Vec<f64>,
        likelihood: SoftLikelihood,
    ) -> bool {
        let scoring_rows = self.rows.scoring_rows();
        let mean = |split: &TrainedSplit| scoring_rows.mean(&split.row_scores);
        trained.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then(a.leaf.cmp(&b.leaf)));
        let mut is_larger = false;
        for split in trained {
            if self.n_leaves() == self.options.max_leaves {
                break;
            }
            if self.tree.children(split.leaf).is_some() {
                // another split of this leaf was better
                continue;
            }
            let mut larger = self.tree.clone();
            let n_weights = split.weights.gate.len() + split.weights.leaves[0].len();
            let children = larger.split(split.leaf, split.weights);
            let after = if is_larger {
                self.rows.scores(&larger, likelihood)
            } else {
                split.row_scores
            };
            if !self.pays(&before, &after, n_weights) {
                continue;
            }
            self.tree = larger;
            before = after;
            is_larger = true;
            if self.tree.depth_of(children[0]) < self.options.max_depth {
                self.open.extend(children);
            }
        }
        is_larger
    }

    /// Whether the rows are so much more likely after a change that it is not chance: by
    /// `min_gain` standard errors of the mean difference on validation rows, by the Bayesian
    /// information criterion on training rows.
    fn pays(&self, before: &[f64], after: &[f64], n_weights: usize) -> bool {
        let scoring_rows = self.rows.scoring_rows();
        let MeanGain {
            mean,
            standard_error,
        } = scoring_rows.mean_gain(before, after);
        if self.rows.validation.is_none() {
            let total = scoring_rows.total_weight;
            return mean * total > 0.5 * n_weights as f64 * total.max(2.0).ln();
        }
        mean > 0.0 && mean > self.options.min_gain * standard_error
    }

    /// The leaves to split next, with the hard splits that their gates begin as.
    fn next_splits(&self, frozen: &FrozenTree<'_>) -> NextSplits {
        let residuals = self.rows.residuals(&frozen.train.root);
        let search = |leaf: usize| frozen.hard_splits(&self.sorted, &residuals, leaf);
        if !self.options.best_first {
            let leaf = *self.open.last().expect("there is an open leaf");
            let splits = search(leaf).into_iter().take(SPLITS_AT_ONCE);
            return NextSplits {
                tried: vec![leaf],
                splits: splits.map(|split| (leaf, split)).collect(),
            };
        }
        let found = self
            .run
            .pool
            .map(self.open.len(), |at| search(self.open[at]));
        // the best split of each leaf first, then the second best, and so on: where few leaves are
        // open, splits on several inputs are tried
        let mut splits: Vec<(usize, usize, HardSplit)> = Vec::new();
        for (&leaf, found) in self.open.iter().zip(found) {
            let ranked = found.into_iter().enumerate();
            splits.extend(ranked.map(|(rank, split)| (rank, leaf, split)));
        }
        splits.sort_by(|a, b| {
            let by_gain = b.2.gain.total_cmp(&a.2.gain);
            a.0.cmp(&b.0).then(by_gain).then(a.1.cmp(&b.1))
        });
        let has_split = |leaf: usize| splits.iter().any(|split| split.1 == leaf);
        let mut tried: Vec<usize> = (self.open.iter().copied())
            .filter(|&leaf| !has_split(leaf))
            .collect();
        splits.truncate(SPLITS_AT_ONCE);
        tried.extend(splits.iter().map(|split| split.1));
        let splits = splits.into_iter().map(|(_, leaf, split)| (leaf, split));
        let splits = splits.collect();
        NextSplits { tried, splits }
    }

    /// Trains all weights together for about `n_steps` steps.
    fn refine(&mut self, n_steps: usize, round: usize) -> Result<()> {
        let rows = self.rows;
        let layout = self.tree.layout();
        let likelihood = rows.likelihood(&self.tree.root_output(rows.train));
        let penalty = rows.penalty(&layout, &rows.root_leaf());
        let start = self.tree.weights(&layout);
        let spec = whole_tree(layout, likelihood);
        let run = PointRun {
            spec: &spec,
            train: rows.train,
            validation: rows.validation,
            schedule: PointSchedule::new(rows.train.n_rows(), n_steps, REFINEMENT_RATE),
            penalty: &penalty,
        };
        let key = self.key.child(streams::REFINEMENTS).child(round as u64);
        let observer = self.run.observer;
        let n_epochs = run.schedule.n_epochs;
        let fit = train(&run, start, key, &mut |epoch| {
            observer.on_event(&Event {
                epoch: Some(epoch),
                ..Event::new("refining", epoch, n_epochs)
            })
        })?;
        self.is_stopped |= fit.is_stopped;
        self.tree.set_weights(&spec.stack.first, &fit.weights);
        Ok(())
    }

    /// Replaces gates above two leaves by one leaf while that does not lower the validation score
    /// by more than chance; whether one was replaced.
    fn prune(&mut self) -> Result<bool> {
        if self.rows.validation.is_none() {
            return Ok(false);
        }
        let likelihood = self
            .rows
            .likelihood(&self.tree.root_output(self.rows.train));
        let mut scores = self.rows.scores(&self.tree, likelihood);
        let mut is_pruned = false;
        for gate in self.tree.gates().into_iter().rev() {
            stop::check()?;
            let Some([left, right]) = self.tree.children(gate) else {
                continue;
            };
            if self.tree.children(left).is_some() || self.tree.children(right).is_some() {
                continue;
            }
            let output = self.tree.evaluate(self.rows.train);
            let mut smaller = self.tree.clone();
            let weights = &self.rows.train.weight;
            smaller.cut(gate, merged(&self.tree, &output, weights, [left, right]));
            let without = self.rows.scores(&smaller, likelihood);
            if !self.pays(&without, &scores, 0) {
                self.tree = smaller;
                scores = without;
                is_pruned = true;
            }
        }
        Ok(is_pruned)
    }

    fn report(&mut self) -> Result<()> {
        let n_leaves = self.n_leaves();
        let event = Event::new("growing", n_leaves, self.options.max_leaves);
        match self.run.observer.on_event(&event) {
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
            ControlFlow::Break(Stop::Keep) => self.is_stopped = true,
            ControlFlow::Continue(()) => {}
        }
        Ok(())
    }
}

/// Leaves that a round tries, and those of them that have a split.
struct NextSplits {
    tried: Vec<usize>,
    splits: Vec<(usize, HardSplit)>,
}

/// The leaf in place of two leaves: their average by reach.
fn merged(
    tree: &GrowingTree,
    output: &TreeOutput,
    weights: &[f32],
    leaves: [usize; 2],
) -> Vec<f32> {
    let totals = leaves.map(|leaf| {
        let pairs = output.reach(leaf).iter().zip(weights);
        pairs
            .map(|(&reach, &weight)| f64::from(reach) * f64::from(weight))
            .sum::<f64>()
    });
    let share = totals[1] / (totals[0] + totals[1]).max(f64::MIN_POSITIVE);
    let [left, right] = leaves.map(|leaf| tree.leaf_values(leaf));
    let pairs = left.iter().zip(right);
    pairs
        .map(|(&l, &r)| (f64::from(l) + share * (f64::from(r) - f64::from(l))) as f32)
        .collect()
}
