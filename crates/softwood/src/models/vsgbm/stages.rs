//! Trees fitted one after the other to what the earlier ones leave, then improved together.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::likelihood::NoiseModel;
use crate::model::{CurvePoint, Trial};
use crate::models::vsgbm::noise::{self, InverseGamma};
use crate::models::vsgbm::offset::{predict_raw, residuals};
use crate::models::vsgbm::params::{NoiseUpdate, Residuals, VsgbmParams};
use crate::rng::Key;
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::Layout;
use crate::soft::likelihood::SoftLikelihood;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedRows, EncodedSplit};
use crate::variational::fitted::draw_weights;
use crate::variational::init;
use crate::variational::minibatch::score_rows;
use crate::variational::optimizer_state::start_posterior;
use crate::variational::train::{Trained, TrainingRun, train};

/// Most trees where their number is left open.
const MAX_TREES: usize = 10;
/// Trees without a better held-out score after which no more are added.
const PATIENCE: usize = 3;
/// Levels of the trees that are added, where that is left open.
const ADDED_DEPTH: usize = 3;
/// Length of the run of an added tree, in parts of a full run.
const ADDED_RUN: f64 = 0.15;
/// Length and step size of the joint run after each tree, in parts of those of a full run of one tree: trees are counted by
/// what they are worth together.
const CORRECTIVE_RUN: f64 = 0.1;
const CORRECTIVE_RATE: f64 = 0.5;
/// Draws by which held-out rows are scored.
const SCORE_DRAWS: usize = 32;

/// What trees are added to.
#[derive(Debug, Clone)]
pub(super) struct AdditiveModel {
    pub(super) spec: SoftTreeSpec,
    /// Posteriors of the trees in their order, each of one tree or more.
    pub(super) blocks: Vec<LowRank>,
    /// Mean held-out log-likelihood; NaN where nothing is held out.
    pub(super) held_out: f64,
    pub(super) curve: Vec<CurvePoint>,
}

/// Where a model grows.
pub(super) struct Stage<'a> {
    pub(super) params: &'a VsgbmParams,
    pub(super) config: &'a SoftTreeConfig,
    pub(super) split: &'a EncodedSplit,
    pub(super) schedule: TrainingSchedule,
    /// Hears of every epoch: what is done, of how much.
    pub(super) on_epoch: &'a dyn Fn(&str, usize, usize, &CurvePoint) -> ControlFlow<()>,
}

impl AdditiveModel {
    /// A model of one tree.
    pub(super) fn of(first: Trained, stage_fit: &Stage<'_>, key: Key) -> Self {
        let is_shrunk = stage_fit.params.noise == NoiseModel::Constant && stage_fit.n_trees() > 1;
        let layout = first.spec.stack.first;
        let mut model = Self {
            spec: first.spec,
            blocks: vec![first.posterior],
            held_out: first.held_out,
            curve: first.curve,
        };
        if is_shrunk {
            shrink(&layout, stage_fit.params.shrinkage, &mut model.blocks[0]);
            model.settle_noise(stage_fit);
            model = model.with_validation_score(stage_fit.split, key);
        }
        model
    }

    /// Sets a constant noise to what the trees leave as they are now: a tree that was shrunk leaves more than it did in training.
    fn settle_noise(&mut self, stage_fit: &Stage<'_>) {
        if let SoftLikelihood::KnownNoise { .. } = self.spec.likelihood {
            let rows = &stage_fit.split.train;
            let squares = noise::squares(&self.spec, &self.means(), rows);
            let prior = InverseGamma::prior(stage_fit.params);
            let posterior = prior.after(rows.total_weight, squares, NoiseUpdate::Exact);
            let sd = posterior.mode().sqrt();
            self.spec.likelihood = SoftLikelihood::KnownNoise { sd };
        }
    }

    pub(super) fn n_trees(&self) -> usize {
        1 + self.spec.stack.n_added
    }

    /// Means of all weights.
    fn means(&self) -> Vec<f32> {
        let blocks = self.blocks.iter();
        blocks
            .flat_map(|block| block.mean().iter().copied())
            .collect()
    }

    /// The same with one tree more.
    fn with(&self, added: &Layout, fit: Trained) -> Self {
        let mut model = self.clone();
        model.spec.likelihood = fit.spec.likelihood;
        model.spec.stack.added = *added;
        model.spec.stack.n_added += 1;
        model.blocks.push(fit.posterior);
        model
    }

    /// The same with what it says of held-out rows, if there are any.
    pub(super) fn with_validation_score(self, split: &EncodedSplit, key: Key) -> Self {
        let held_out = split.held_out.as_ref();
        let held_out = held_out.map_or(f64::NAN, |rows| self.score(rows, key));
        Self { held_out, ..self }
    }

    /// Mean log-likelihood of rows under draws of the posterior.
    fn score(&self, rows: &EncodedRows, key: Key) -> f64 {
        let draws = draw_weights(&self.blocks, SCORE_DRAWS, key);
        rows.mean(&score_rows(&self.spec, &draws, rows))
    }
}

impl Stage<'_> {
    fn n_trees(&self) -> usize {
        self.params.n_estimators.unwrap_or(MAX_TREES)
    }

    /// Adds trees: as many as asked for, or as long as held-out rows gain.
    pub(super) fn grow(
        &self,
        start: AdditiveModel,
        key: Key,
        trials: &mut Vec<Trial>,
    ) -> Result<AdditiveModel> {
        let held_out = self.split.held_out.as_ref();
        let is_open = self.params.n_estimators.is_none();
        if is_open && held_out.is_none() {
            return self.grow_blindly(start, key);
        }
        let mut best = start.clone();
        let mut model = start;
        while model.n_trees() < self.n_trees() {
            let at = model.n_trees();
            model = self.add(&model, at, key.child(at as u64))?;
            if let (true, Some(rows)) = (self.params.joint_training, held_out) {
                model.held_out = model.score(rows, key.child(1000));
                model = self.train_jointly(
                    model,
                    CORRECTIVE_RUN,
                    CORRECTIVE_RATE,
                    key.child(2000 + at as u64),
                )?;
            }
            let Some(rows) = held_out else {
                best = model.clone();
                continue;
            };
            model.held_out = model.score(rows, key.child(1000));
            trials.push(Trial {
                what: format!("{} trees", model.n_trees()),
                held_out: model.held_out,
            });
            if !is_open || model.held_out > best.held_out {
                best = model.clone();
            } else if model.n_trees() >= best.n_trees() + PATIENCE {
                break;
            }
        }
        Ok(best)
    }

    /// Adds a few trees where no rows can judge them.
    fn grow_blindly(&self, start: AdditiveModel, key: Key) -> Result<AdditiveModel> {
        let mut model = start;
        for at in 1..=2 {
            model = self.add(&model, at, key.child(at as u64))?;
        }
        Ok(model)
    }

    /// One tree more, fitted to what the others leave.
    fn add(&self, model: &AdditiveModel, at: usize, key: Key) -> Result<AdditiveModel> {
        let EncodedSplit {
            train: rows,
            held_out,
            ..
        } = self.split;
        let first = model.spec.stack.first;
        let added = if model.spec.stack.n_added > 0 {
            model.spec.stack.added
        } else {
            Layout {
                depth: self.params.max_depth.unwrap_or(ADDED_DEPTH),
                mixing_levels: 0,
                ..first
            }
        };
        let drawn = |epoch: usize| {
            let weights = draw_weights(&model.blocks, 1, key.child(2).child(epoch as u64));
            predict_raw(&model.spec, &weights, rows)
        };
        let means = model.means();
        let offset = match self.params.residuals {
            Residuals::Mean => predict_raw(&model.spec, &means, rows),
            Residuals::Draw | Residuals::Redrawn => drawn(0),
        };
        let residuals = residuals(&model.spec, &offset, rows);
        let weights = init::weights(
            rows,
            model.spec.likelihood,
            Some(&residuals),
            &added,
            model.spec.beta,
            key.child(1),
        );
        let with = |rows: &EncodedRows, offset: Vec<f32>| EncodedRows {
            offset,
            ..rows.clone()
        };
        let train_rows = with(rows, offset);
        let spare = held_out
            .as_ref()
            .map(|rows| with(rows, predict_raw(&model.spec, &means, rows)));
        let schedule = self.schedule.part(ADDED_RUN);
        let training_run = TrainingRun {
            config: self.config,
            spec: SoftTreeSpec {
                stack: AdditiveLayout::on_offset(first, added),
                ..model.spec
            },
            train: &train_rows,
            held_out: spare.as_ref(),
            start: start_posterior(self.config, weights, key.child(3)),
            schedule,
            is_warm: false,
            keeps_scale: false,
            redraw_offset: (self.params.residuals == Residuals::Redrawn).then_some(&drawn),
        };
        let stage = format!("tree {}", at + 1);
        let mut fit = train(&training_run, key.child(4), &mut |epoch, point| {
            (self.on_epoch)(&stage, epoch, schedule.n_epochs, point)
        })?;
        shrink(&added, self.params.shrinkage, &mut fit.posterior);
        let mut model = model.with(&added, fit);
        model.settle_noise(self);
        Ok(model)
    }

    /// Improves the posteriors of all trees together. Of the start and the end the better one on held-out rows is kept; where there are
    /// none, scales stay as they are: nothing would tell that they take for noise what the KL term keeps from the mean.
    pub(super) fn train_jointly(
        &self,
        model: AdditiveModel,
        share: f64,
        rate: f64,
        key: Key,
    ) -> Result<AdditiveModel> {
        let mut schedule = self.schedule.part(share);
        schedule.learning_rate *= rate;
        let training_run = TrainingRun {
            config: self.config,
            spec: model.spec,
            train: &self.split.train,
            held_out: self.split.held_out.as_ref(),
            start: concatenated(&model.blocks),
            schedule,
            is_warm: true,
            keeps_scale: self.split.held_out.is_none(),
            redraw_offset: None,
        };
        let fit = train(&training_run, key, &mut |epoch, point| {
            (self.on_epoch)("all trees together", epoch, schedule.n_epochs, point)
        })?;
        if model.held_out > fit.held_out {
            return Ok(model);
        }
        Ok(AdditiveModel {
            spec: fit.spec,
            blocks: vec![fit.posterior],
            held_out: fit.held_out,
            curve: fit.curve,
        })
    }
}

/// Multiplies what a tree says by a factor.
fn shrink(layout: &Layout, factor: f64, posterior: &mut LowRank) {
    let n = posterior.n_weights;
    let leaves = layout.n_gates() * layout.width()..n;
    for mean in &mut posterior.values[leaves.clone()] {
        *mean *= factor as f32;
    }
    for log_sd in &mut posterior.values[n + leaves.start..n + leaves.end] {
        *log_sd += factor.ln() as f32;
    }
}

/// One posterior over the weights of several; those that were independent share their low-rank directions from then on.
fn concatenated(blocks: &[LowRank]) -> LowRank {
    let rank = blocks.iter().map(|block| block.rank).max().unwrap_or(0);
    let n_weights = blocks.iter().map(|block| block.n_weights).sum();
    let mut values = Vec::with_capacity(n_weights * (rank + 2));
    for block in blocks {
        values.extend_from_slice(block.mean());
    }
    for block in blocks {
        values.extend_from_slice(block.log_sd());
    }
    for column in 0..rank {
        for block in blocks {
            let n = block.n_weights;
            match block.factors().get(column * n..(column + 1) * n) {
                Some(own) => values.extend_from_slice(own),
                None => values.extend(std::iter::repeat_n(0.0, n)),
            }
        }
    }
    LowRank {
        n_weights,
        rank,
        values,
    }
}
