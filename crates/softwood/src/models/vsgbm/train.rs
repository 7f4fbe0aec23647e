//! Training: deduplicate rows, split off a validation set, select and train the first tree, add
//! trees, train all trees jointly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::data::schema::Schema;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::inference::schedule::TrainingSchedule;
use crate::likelihood::soft::SoftLikelihood;
use crate::model::{Model, Training, Trial};
use crate::models::vsgbm::fitted::{Vsgbm, has_constant_noise};
use crate::models::vsgbm::noise;
use crate::models::vsgbm::params::VsgbmParams;
use crate::models::vsgbm::stages::{AdditiveModel, Stages};
use crate::models::vsgbm::warm_start::warm_start;
use crate::params::Checked;
use crate::rng::Key;
use crate::stop;
use crate::store::record::Record;
use crate::variational::encoded_rows::EncodedSplit;
use crate::variational::encoding_cache::EncodingCache;
use crate::variational::ensemble::{ChainRows, FitDraws, FitPosterior, FittedEnsemble};
use crate::variational::fit_rows::FitRows;
use crate::variational::noise_calibration::{
    ALWAYS_DEFINED, CalibrationRows, ensemble_calibration, noise_factor,
};
use crate::variational::options::PosteriorMethod;
use crate::variational::selection::{RankedCandidate, Selection, SelectionContext, select};
use crate::variational::streams;
use crate::variational::train::{FitResult, Trained, converged, kept};

/// Length of the training run of the first tree, as a fraction of a full run.
const FIRST_RUN: f64 = 0.5;
/// Learning rate of the joint run, as a fraction of that of a single tree.
pub(super) const JOINT_RATE: f64 = 0.5;

/// Precision of the prior on the logarithm of the calibration factor of the noise, in rows.
const LOG_FACTOR_PRECISION: f64 = 100.0;

impl Fit for VsgbmParams {
    type Fitted = Vsgbm;
    const FAMILY: &'static str = "vsgbm";
    const SUPPORTS_WARM_START: bool = true;
    const WARM_START_IS_SHORT: bool = true;

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Vsgbm> {
        Vsgbm::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vsgbm> {
        let deduplicated = data.try_deduplicated()?;
        if let Some(fitted) = run.fitted(Self::FAMILY)? {
            return warm_start(params, fitted, &deduplicated, run);
        }
        let config = params.config();
        let split_key = run.key.child(streams::run::VALIDATION_SPLIT);
        let rows = FitRows::new(&config, &deduplicated, run, split_key);
        stop::check()?;
        let encodings = EncodingCache::default();
        let context = SelectionContext::new(&config, &rows, &encodings, run);
        fit(params, &context, &deduplicated)
    }
}

/// A fitted sum of trees, its encoded data, and the trials of its training.
pub(super) struct FitOutcome {
    pub(super) split: Arc<EncodedSplit>,
    pub(super) model: AdditiveModel,
    /// Description for users.
    pub(super) description: String,
    pub(super) trials: Vec<Trial>,
}

/// Selects first trees, fits `n_fits` sums of trees and calibrates their noise. `data` has all
/// deduplicated rows, of which each fit may hold out others.
fn fit(params: &VsgbmParams, context: &SelectionContext<'_>, data: &Dataset) -> Result<Vsgbm> {
    let run = context.run;
    let Selection {
        ranking,
        mut trials,
        is_stopped,
    } = select(context)?;
    if is_stopped {
        return Ok(stopped_in_selection(
            params,
            context,
            &ranking[0],
            trials,
            data,
        ));
    }
    let is_stopped = AtomicBool::new(false);
    let n_fits = params.n_fits.min(params.n_members);
    let calibrates =
        params.calibrate_noise && matches!(context.scale.likelihood, SoftLikelihood::Normal { .. });
    let outcomes = run.pool.map(n_fits, |at| {
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let ranked = &ranking[at % ranking.len()];
        // each fit but the first has its own validation set, so that together they train on all
        // rows
        let split_key = run.key.child(streams::run::VALIDATION_SPLIT);
        let own_rows = (at > 0)
            .then(|| FitRows::split(context.config, data, run, split_key.child(at as u64)))
            .flatten();
        let own_encodings = EncodingCache::default();
        let own = own_rows.as_ref().map_or(*context, |rows| SelectionContext {
            train: rows.train(),
            validation: rows.validation(),
            encodings: &own_encodings,
            ..*context
        });
        let key = run.key.child(streams::run::FITS).child(at as u64);
        let outcome = fit_once(params, &own, ranked, at, key)?;
        is_stopped.fetch_or(outcome.model.is_stopped, Ordering::Relaxed);
        let validation = own.validation.filter(|_| calibrates).cloned();
        Ok(Some(FitResult {
            validation_score: outcome.model.validation_score,
            is_complete: !outcome.model.is_stopped,
            fit: (outcome, validation),
        }))
    });
    let outcomes = converged(outcomes)?.into_iter().flatten().collect();
    let (outcomes, validation): (Vec<FitOutcome>, Vec<Option<Dataset>>) =
        kept(outcomes).into_iter().unzip();
    trials.extend(outcomes[0].trials.iter().cloned());
    let descriptions: Vec<&str> = outcomes.iter().map(|fit| &*fit.description).collect();
    let training = Training {
        curve: outcomes[0].model.curve.clone(),
        trials,
        chosen: descriptions.join("; "),
        target_sd: context.scale.target_sd(),
        is_stopped: is_stopped.into_inner(),
        ..Training::default()
    };
    let splits: Vec<Arc<EncodedSplit>> =
        outcomes.iter().map(|fit| Arc::clone(&fit.split)).collect();
    let mut model = assemble(params, outcomes, training, data.schema(), run);
    sample(&mut model, &splits, params.posterior, context.schedule, run)?;
    let calibration_rows = CalibrationRows {
        validation: &validation,
        is_shared: run.held_out.is_some(),
        standard: &model.ensemble.standard,
        log_factor_precision: LOG_FACTOR_PRECISION,
    };
    let key = run.key.child(streams::run::NOISE_CALIBRATION);
    let fits = &model.ensemble.fits;
    let redraw = |at: usize, n_draws, key| fits[at].redrawn(n_draws, key);
    model.noise_factor = noise_factor(fits, &calibration_rows, redraw, key);
    if calibrates {
        let calibration =
            ensemble_calibration(fits, &calibration_rows, model.head(), |rows, out| {
                // the calibration of the model is still that of no change
                let rows = rows.features().rows(0..rows.n_rows());
                model.members(&rows, out).expect(ALWAYS_DEFINED);
            });
        model.ensemble.calibration = calibration;
    }
    Ok(model)
}

/// Replaces the draws of a model with varying noise by those of chains, if they are worth it.
///
/// # Errors
/// When the observer discards the fit or the work is cancelled.
pub(super) fn sample(
    model: &mut Vsgbm,
    splits: &[Arc<EncodedSplit>],
    method: Option<PosteriorMethod>,
    schedule: TrainingSchedule,
    run: &Run<'_>,
) -> Result<()> {
    // the variances of a constant noise were drawn with the weights
    if !model.noise.is_empty() {
        return Ok(());
    }
    let config = model.params.config();
    let chains = splits.iter().map(|split| ChainRows {
        config: &config,
        rows: &split.train,
    });
    let chains: Vec<ChainRows<'_>> = chains.collect();
    model.ensemble.sample(&chains, method, schedule, run)
}

/// The model of the best candidate, if the observer stopped the selection and keeps it.
fn stopped_in_selection(
    params: &VsgbmParams,
    context: &SelectionContext<'_>,
    best: &RankedCandidate,
    trials: Vec<Trial>,
    data: &Dataset,
) -> Vsgbm {
    let first = best
        .short_run
        .clone()
        .expect("a stopped selection has runs");
    let model = AdditiveModel::of(first);
    let training = Training {
        curve: model.curve.clone(),
        trials,
        chosen: best.candidate.describe(),
        target_sd: context.scale.target_sd(),
        is_stopped: true,
        ..Training::default()
    };
    let outcome = FitOutcome {
        split: context.encode(best.candidate.encoding),
        model,
        description: String::new(),
        trials: Vec::new(),
    };
    assemble(params, vec![outcome], training, data.schema(), context.run)
}

/// Trains the first tree, adds trees, and trains all of them jointly. `at` is the index of the fit.
fn fit_once(
    params: &VsgbmParams,
    context: &SelectionContext<'_>,
    ranked: &RankedCandidate,
    at: usize,
    key: Key,
) -> Result<FitOutcome> {
    let split = context.encode(ranked.candidate.encoding);
    let description = ranked.candidate.describe();
    let snapshot = snapshot(
        params,
        Arc::clone(&split),
        &description,
        context.train.schema(),
        context.run,
    );
    let stages = Stages {
        params,
        config: context.config,
        split: &split,
        schedule: context.schedule,
        run: context.run,
        member: at,
        assemble: &snapshot,
    };
    let schedule = context.schedule.part(FIRST_RUN);
    let mut first = stages.train_first(context, &ranked.candidate, schedule, key)?;
    if !first.is_complete && at == 0 {
        // the other fits have validation rows of their own
        first = Trained {
            is_stopped: true,
            is_complete: false,
            ..ranked.better(first)
        };
    }
    let unshrunk = AdditiveModel::of(first.clone());
    let mut trials = Vec::new();
    let first = AdditiveModel::new(first, &stages, key.child(streams::fit::SHRUNK_SCORE));
    let mut model = first;
    if !model.is_stopped {
        model = stages.add_trees(model, key.child(streams::fit::ADDED_TREES), &mut trials)?;
        if model.is_stopped && model.n_trees() == 1 {
            // the first tree was shrunk for the trees that did not follow
            model = AdditiveModel {
                is_stopped: true,
                ..unshrunk
            };
        }
    }
    // without a validation set a long joint run overfits
    if params.joint_training && split.validation.is_some() && !model.is_stopped {
        let key = key.child(streams::fit::JOINT_TRAINING);
        model = stages.train_jointly(model, 1.0, JOINT_RATE, key)?;
        trials.push(Trial {
            what: format!("{} trees together", model.n_trees()),
            held_out: model.validation_score,
        });
    }
    Ok(FitOutcome {
        description: match model.n_trees() {
            1 => format!("1 tree, {description}"),
            n => format!("{n} trees, the first {description}"),
        },
        split,
        model,
        trials,
    })
}

/// A function that makes the fitted model of one sum of trees.
pub(super) fn snapshot(
    params: &VsgbmParams,
    split: Arc<EncodedSplit>,
    description: &str,
    schema: &Schema,
    run: &Run<'_>,
) -> impl Fn(AdditiveModel) -> Box<dyn Model> {
    move |model| {
        let training = Training {
            chosen: description.to_owned(),
            target_sd: split.scale.target_sd(),
            is_stopped: true,
            ..Training::default()
        };
        let outcome = FitOutcome {
            split: Arc::clone(&split),
            model,
            description: String::new(),
            trials: Vec::new(),
        };
        Box::new(assemble(params, vec![outcome], training, schema, run))
    }
}

/// Draws the members of the fitted model from the posteriors of its fits.
pub(super) fn assemble(
    params: &VsgbmParams,
    outcomes: Vec<FitOutcome>,
    training: Training,
    schema: &Schema,
    run: &Run<'_>,
) -> Vsgbm {
    let key = run.key.child(streams::run::POSTERIOR_DRAWS);
    let n_fits = outcomes.len();
    let standard = outcomes[0].split.scale.standard;
    let mut noise = Vec::new();
    let mut posteriors = Vec::with_capacity(n_fits);
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let FitOutcome { split, model, .. } = outcome;
        if has_constant_noise(params, schema) {
            let draws = FitDraws::of(at, n_fits, params.n_members, key);
            noise.extend(noise::draw(params, &model, &split.train, draws));
        }
        posteriors.push(FitPosterior {
            encoder: split.encoder.clone(),
            spec: model.spec,
            blocks: model.blocks,
        });
    }
    Vsgbm {
        params: params.clone(),
        ensemble: FittedEnsemble::new(
            schema.clone(),
            training,
            standard,
            posteriors,
            params.n_members,
            key,
        )
        .extrapolating(run.extrapolation),
        noise,
        noise_factor: 1.0,
    }
}
