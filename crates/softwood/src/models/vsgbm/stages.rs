//! Boosting stages: trees are fitted one after the other to the residuals of the earlier trees,
//! then all trees are trained jointly.

use crate::error::Result;
use crate::fit::Run;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::likelihood::NoiseModel;
use crate::likelihood::soft::SoftLikelihood;
use crate::model::{CurvePoint, Model, Trial};
use crate::models::vsgbm::noise::{self, InverseGamma};
use crate::models::vsgbm::offset::{predict_offset, residuals};
use crate::models::vsgbm::params::{NoiseUpdate, Residuals, VsgbmParams};
use crate::rng::Key;
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{Layout, TreeLayout};
use crate::variational::candidate::Candidate;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedRows, EncodedSplit};
use crate::variational::fitted::draw_weights;
use crate::variational::init::WeightInitializer;
use crate::variational::minibatch::score_rows;
use crate::variational::selection::{SelectionContext, train_candidate};
use crate::variational::streams;
use crate::variational::train::{RunPlace, Trained, TrainingRun, train};

/// Maximum number of trees if `n_estimators` is automatic.
const MAX_TREES: usize = 10;
/// Number of added trees if `n_estimators` is automatic and there is no validation set.
const ADDED_WITHOUT_VALIDATION: usize = 2;
/// Number of trees without a better validation score after which no more are added.
const PATIENCE: usize = 3;
/// Depth of an added tree if `max_depth` is automatic.
const ADDED_DEPTH: usize = 3;
/// Length of the training run of an added tree, as a fraction of a full run.
const ADDED_RUN: f64 = 0.15;
/// Length of the joint run after each added tree, as a fraction of a full run. The number of trees
/// is selected by the scores after these runs.
const CORRECTIVE_RUN: f64 = 0.1;
/// Learning rate of that run, as a fraction of that of a single tree.
const CORRECTIVE_RATE: f64 = 0.5;
/// Number of posterior draws that score the validation rows.
const SCORE_DRAWS: usize = 32;

/// A sum of trees with a posterior over their weights.
#[derive(Debug, Clone)]
pub(super) struct AdditiveModel {
    pub(super) spec: SoftTreeSpec,
    /// Independent blocks of the posterior, each over the weights of one or more consecutive trees.
    pub(super) blocks: Vec<LowRank>,
    /// Mean validation log-likelihood; NaN without a validation set.
    pub(super) validation_score: f64,
    pub(super) curve: Vec<CurvePoint>,
    /// Whether the observer stopped training before its end.
    pub(super) is_stopped: bool,
}

/// Parameters, data and schedule of the stages.
pub(super) struct Stages<'a> {
    pub(super) params: &'a VsgbmParams,
    pub(super) config: &'a SoftTreeConfig,
    pub(super) split: &'a EncodedSplit,
    /// Schedule of a full training run.
    pub(super) schedule: TrainingSchedule,
    pub(super) run: &'a Run<'a>,
    /// Index of the fit.
    pub(super) member: usize,
    /// Makes the fitted model of a sum of trees, for snapshots.
    pub(super) assemble: &'a dyn Fn(AdditiveModel) -> Box<dyn Model>,
}

impl AdditiveModel {
    /// A model of one tree. With constant noise the first tree is shrunk if others follow.
    pub(super) fn new(first: Trained, stages: &Stages<'_>, key: Key) -> Self {
        let is_shrunk = stages.params.noise == NoiseModel::Constant
            && stages.max_trees() > 1
            && !first.is_stopped;
        let layout = first.spec.stack.first;
        let mut model = Self::of(first);
        if is_shrunk {
            shrink(&layout, stages.params.shrinkage, &mut model.blocks[0]);
            model.update_noise(stages);
            model = model.with_validation_score(stages.split, key);
        }
        model
    }

    /// The model of one training run of all its trees.
    pub(super) fn of(trained: Trained) -> Self {
        Self {
            spec: trained.spec,
            blocks: vec![trained.posterior],
            validation_score: trained.validation_score,
            curve: trained.curve,
            is_stopped: trained.is_stopped,
        }
    }

    /// Sets a constant noise variance to its posterior mode given the residuals of all trees: the
    /// residuals of a shrunk tree are larger than those during its training.
    fn update_noise(&mut self, stages: &Stages<'_>) {
        if let SoftLikelihood::KnownNoise { .. } = self.spec.likelihood {
            let rows = &stages.split.train;
            let squares = noise::sum_of_squares(&self.spec, &self.means(), rows);
            let prior = InverseGamma::prior(stages.params);
            let posterior = prior.update(rows.total_weight, squares, NoiseUpdate::Exact);
            let sd = posterior.mode().sqrt();
            self.spec.likelihood = SoftLikelihood::KnownNoise { sd };
        }
    }

    pub(super) fn n_trees(&self) -> usize {
        1 + self.spec.stack.n_added
    }

    /// Posterior means of all weights.
    fn means(&self) -> Vec<f32> {
        let blocks = self.blocks.iter();
        blocks
            .flat_map(|block| block.mean().iter().copied())
            .collect()
    }

    /// This model with one more tree.
    fn with_tree(&self, added: &Layout, fit: Trained) -> Self {
        let mut model = self.clone();
        model.spec.likelihood = fit.spec.likelihood;
        model.spec.stack.added = *added;
        model.spec.stack.n_added += 1;
        model.blocks.push(fit.posterior);
        model
    }

    /// This model with its score on the validation set, if there is one.
    pub(super) fn with_validation_score(self, split: &EncodedSplit, key: Key) -> Self {
        let validation = split.validation.as_ref();
        Self {
            validation_score: validation.map_or(f64::NAN, |rows| self.score(rows, key)),
            ..self
        }
    }

    /// Mean log-likelihood of rows under the mixture of posterior draws.
    fn score(&self, rows: &EncodedRows, key: Key) -> f64 {
        let draws = draw_weights(&self.blocks, SCORE_DRAWS, key);
        rows.mean(&score_rows(&self.spec, &draws, rows))
    }
}

impl Stages<'_> {
    /// Maximum number of trees.
    fn max_trees(&self) -> usize {
        self.params.n_estimators.unwrap_or(MAX_TREES)
    }

    /// Adds trees up to `n_estimators`, or while the validation score improves. A tree whose
    /// training is stopped is not added.
    pub(super) fn add_trees(
        &self,
        start: AdditiveModel,
        key: Key,
        trials: &mut Vec<Trial>,
    ) -> Result<AdditiveModel> {
        let validation = self.split.validation.as_ref();
        let is_automatic = self.params.n_estimators.is_none();
        if is_automatic && validation.is_none() {
            return self.add_default_number(start, key);
        }
        let score_key = key.child(streams::added_trees::SCORE);
        let mut best = start.clone();
        let mut model = start;
        while model.n_trees() < self.max_trees() {
            let at = model.n_trees();
            match self.add_tree(&model, at, key.child(at as u64))? {
                Some(longer) => model = longer,
                None => best.is_stopped = true,
            }
            if best.is_stopped {
                break;
            }
            if let (true, Some(rows), false) =
                (self.params.joint_training, validation, model.is_stopped)
            {
                model.validation_score = model.score(rows, score_key);
                let key = key.child(streams::added_trees::CORRECTIVE_RUNS + at as u64);
                model = self.train_jointly(model, CORRECTIVE_RUN, CORRECTIVE_RATE, key)?;
            }
            let Some(rows) = validation else {
                best = model.clone();
                if best.is_stopped {
                    break;
                }
                continue;
            };
            model.validation_score = model.score(rows, score_key);
            trials.push(Trial {
                what: format!("{} trees", model.n_trees()),
                held_out: model.validation_score,
            });
            let is_stopped = model.is_stopped;
            if !is_automatic || model.validation_score > best.validation_score {
                best = model.clone();
            } else if model.n_trees() >= best.n_trees() + PATIENCE {
                break;
            }
            if is_stopped {
                best.is_stopped = true;
                break;
            }
        }
        Ok(best)
    }

    /// Adds [`ADDED_WITHOUT_VALIDATION`] trees.
    fn add_default_number(&self, start: AdditiveModel, key: Key) -> Result<AdditiveModel> {
        let mut model = start;
        for at in 1..=ADDED_WITHOUT_VALIDATION {
            let Some(longer) = self.add_tree(&model, at, key.child(at as u64))? else {
                model.is_stopped = true;
                break;
            };
            model = longer;
            if model.is_stopped {
                break;
            }
        }
        Ok(model)
    }

    /// The model with one more tree, which is fitted to the residuals of the others; `None` if its
    /// training is stopped. `at` is the index of the new tree.
    fn add_tree(
        &self,
        model: &AdditiveModel,
        at: usize,
        key: Key,
    ) -> Result<Option<AdditiveModel>> {
        let rows = &self.split.train;
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
        let offset_key = key.child(streams::added_tree::OFFSET_DRAWS);
        let drawn_offset = |epoch: usize| {
            let weights = draw_weights(&model.blocks, 1, offset_key.child(epoch as u64));
            predict_offset(&model.spec, &weights, rows)
        };
        let means = model.means();
        let offset = match self.params.residuals {
            Residuals::Mean => predict_offset(&model.spec, &means, rows),
            Residuals::Draw | Residuals::Redrawn => drawn_offset(0),
        };
        let initializer = WeightInitializer {
            train: rows,
            likelihood: model.spec.likelihood,
            residuals: Some(&residuals(&model.spec, &offset, rows)),
            beta: model.spec.beta,
        };
        let weights = initializer.weights(&added, key.child(streams::added_tree::INITIAL_WEIGHTS));
        let with_offset = |rows: &EncodedRows, offset: Vec<f32>| EncodedRows {
            offset,
            ..rows.clone()
        };
        let train_rows = with_offset(rows, offset);
        let validation_rows = (self.split.validation.as_ref())
            .map(|rows| with_offset(rows, predict_offset(&model.spec, &means, rows)));
        let schedule = self.schedule.part(ADDED_RUN);
        let training_run = TrainingRun {
            config: self.config,
            spec: SoftTreeSpec {
                stack: AdditiveLayout::on_offset(first, added),
                ..model.spec
            },
            train: &train_rows,
            validation: validation_rows.as_ref(),
            start: self
                .config
                .initial_posterior(weights, key.child(streams::added_tree::INITIAL_FACTORS)),
            schedule,
            is_warm_start: false,
            freezes_scale: false,
            redraw_offset: (self.params.residuals == Residuals::Redrawn).then_some(&drawn_offset),
        };
        let stage = format!("tree {}", at + 1);
        let training_key = key.child(streams::added_tree::TRAINING);
        let place = self.place(&stage, at + 1, schedule);
        // a snapshot has the earlier trees
        let snapshot = |_| (self.assemble)(model.clone());
        // a first tree that is shrunk for the trees that follow is no model by itself
        let is_shrunk = self.params.noise == NoiseModel::Constant && model.n_trees() == 1;
        let snapshot: Option<&dyn Fn(Trained) -> Box<dyn Model>> =
            (!is_shrunk).then_some(&snapshot);
        let mut fit = train(&training_run, training_key, &mut |report| {
            place.report(self.run, report, snapshot)
        })?;
        if !fit.is_complete {
            return Ok(None);
        }
        let is_stopped = fit.is_stopped;
        shrink(&added, self.params.shrinkage, &mut fit.posterior);
        let mut model = model.with_tree(&added, fit);
        model.is_stopped = is_stopped;
        model.update_noise(self);
        Ok(Some(model))
    }

    /// Trains the first tree.
    pub(super) fn train_first(
        &self,
        context: &SelectionContext<'_>,
        candidate: &Candidate,
        schedule: TrainingSchedule,
        key: Key,
    ) -> Result<Trained> {
        let place = self.place("first tree", 1, schedule);
        let snapshot = |trained| (self.assemble)(AdditiveModel::of(trained));
        train_candidate(
            context,
            self.split,
            candidate,
            schedule,
            key,
            &mut |report| place.report(self.run, report, Some(&snapshot)),
        )
    }

    fn place<'a>(
        &self,
        stage: &'a str,
        n_trees: usize,
        schedule: TrainingSchedule,
    ) -> RunPlace<'a> {
        RunPlace {
            member: Some(self.member),
            tree: Some(n_trees),
            ..RunPlace::new(stage, schedule.n_epochs)
        }
    }

    /// Trains the posteriors of all trees jointly, with a fraction of the epochs and of the
    /// learning rate of a full run. Returns the input model if its validation score is better.
    /// Without a validation set the scale channel is not trained: it would fit as noise the part of
    /// the mean that the KL term shrinks away, and no score would show it.
    pub(super) fn train_jointly(
        &self,
        model: AdditiveModel,
        fraction: f64,
        rate: f64,
        key: Key,
    ) -> Result<AdditiveModel> {
        let mut schedule = self.schedule.part(fraction);
        schedule.learning_rate *= rate;
        let training_run = TrainingRun {
            config: self.config,
            spec: model.spec,
            train: &self.split.train,
            validation: self.split.validation.as_ref(),
            start: LowRank::concatenated(&model.blocks),
            schedule,
            is_warm_start: true,
            freezes_scale: self.split.validation.is_none(),
            redraw_offset: None,
        };
        let place = self.place("all trees together", model.n_trees(), schedule);
        let snapshot = |trained| (self.assemble)(AdditiveModel::of(trained));
        let fit = train(&training_run, key, &mut |report| {
            place.report(self.run, report, Some(&snapshot))
        })?;
        if model.validation_score > fit.validation_score {
            return Ok(AdditiveModel {
                is_stopped: fit.is_stopped,
                ..model
            });
        }
        Ok(AdditiveModel::of(fit))
    }
}

/// Multiplies the output of a tree by a factor.
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
