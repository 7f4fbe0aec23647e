//! Fitting: merge equal rows, set rows aside, choose the first tree, add others, improve all together.

use std::ops::ControlFlow;

use serde_json::json;

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::data::split::n_raw_rows;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run, check_fixed_params, check_same_family, check_same_schema};
use crate::likelihood::NoiseModel;
use crate::model::{CurvePoint, Model, Training, Trial};
use crate::models::vsgbm::fitted::Vsgbm;
use crate::models::vsgbm::noise;
use crate::models::vsgbm::noise_calibration;
use crate::models::vsgbm::params::VsgbmParams;
use crate::models::vsgbm::stages::{AdditiveModel, Stage};
use crate::observer::Progress;
use crate::params::Checked;
use crate::rng::Key;
use crate::soft::likelihood::SoftLikelihood;
use crate::store::record::Record;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::fitted::{FittedTrees, draws_key, members_of};
use crate::variational::selection::{RankedCandidate, SelectionContext, choose, train_one};
use crate::variational::train::converged;

/// Length of the run of the first tree, in parts of a full run: others are to come.
const FIRST_RUN: f64 = 0.5;
/// Step size of the joint phase, in parts of that of a tree.
const JOINT_RATE: f64 = 0.5;
/// Length and step size of a joint phase that goes on from a fitted model, in parts of those of a full run.
const WARM_RUN: f64 = 0.05;
const WARM_RATE: f64 = 0.1;

/// Parameters that stay when training goes on.
const FIXED: &[&str] = &[
    "max_depth",
    "leaf_model",
    "leaf_mixing",
    "mixing_levels",
    "noise",
    "homoscedastic_warmup",
    "calibrate_noise",
    "beta",
    "rank",
    "n_fits",
    "scaling",
    "rotation",
    "squares",
    "max_categories",
    "min_scale",
];

impl Fit for VsgbmParams {
    type Fitted = Vsgbm;
    const FAMILY: &'static str = "vsgbm";
    const SUPPORTS_WARM_START: bool = true;

    fn restore(record: &Record) -> Result<Vsgbm> {
        Vsgbm::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vsgbm> {
        let whole = data.deduplicated();
        let config = params.config();
        if let Some(record) = run.warm_start {
            return go_on(params, &config, record, (data, &whole), run);
        }
        let split = if run.held_out.is_none() {
            config.validation_split(&whole, run.key.child(1))
        } else {
            None
        };
        let (train_rows, validation) = match &split {
            Some((train_rows, validation)) => (train_rows, Some(validation)),
            None => (&whole, run.held_out),
        };
        let context = SelectionContext {
            config: &config,
            data: train_rows,
            held_out: validation,
            n_rows: n_raw_rows(train_rows),
            scale: TargetScale::of(train_rows, &config),
            schedule: config.schedule(train_rows),
            run,
        };
        fit(params, &context, &whole, data)
    }
}

/// A sum, the split that it solves, and what was tried on the way.
struct FitOutcome {
    split: EncodedSplit,
    sum: AdditiveModel,
    /// As a user reads it.
    what: String,
    trials: Vec<Trial>,
    /// Rows that it has not seen, where its noise is held against them.
    spare: Option<Dataset>,
}

fn fit(
    params: &VsgbmParams,
    context: &SelectionContext<'_>,
    whole: &Dataset,
    data: &Dataset,
) -> Result<Vsgbm> {
    let run = context.run;
    let (ranking, mut trials) = choose(context)?;
    let n_fits = params.n_fits.min(params.n_members);
    let outcomes = run.pool.map(n_fits, |at| {
        let ranked = &ranking[at % ranking.len()];
        let key = run.key.child(20).child(at as u64);
        // each fit but the first sets other rows aside, so that together they see all
        let split = if at > 0 && run.held_out.is_none() {
            context
                .config
                .validation_split(whole, run.key.child(1).child(at as u64))
        } else {
            None
        };
        let own = split
            .as_ref()
            .map_or(*context, |(train_rows, validation)| SelectionContext {
                data: train_rows,
                held_out: Some(validation),
                ..*context
            });
        let mut outcome = one_fit(params, &own, ranked, key)?;
        if params.calibrate_noise
            && matches!(context.scale.likelihood, SoftLikelihood::Normal { .. })
        {
            outcome.spare = own.held_out.cloned();
        }
        Ok(outcome)
    });
    let mut outcomes = converged(outcomes)?;
    trials.extend(outcomes[0].trials.iter().cloned());
    let chosen: Vec<&str> = outcomes.iter().map(|outcome| &*outcome.what).collect();
    let training = Training {
        curve: outcomes[0].sum.curve.clone(),
        trials,
        chosen: chosen.join("; "),
        target_sd: context.scale.target_sd(),
        ..Training::default()
    };
    let spare: Vec<Option<Dataset>> = (outcomes.iter_mut())
        .map(|outcome| outcome.spare.take())
        .collect();
    let mut model = assemble(params, outcomes, training, (data, run.key));
    let share = if run.held_out.is_some() {
        1.0 / model.fits.len() as f64
    } else {
        1.0
    };
    let key = run.key.child(31);
    model.spread =
        noise_calibration::fit_scale_correction(&model.fits, &spare, share, (&model.standard, key));
    Ok(model)
}

/// The first tree, those that are added, and all together.
fn one_fit(
    params: &VsgbmParams,
    context: &SelectionContext<'_>,
    ranked: &RankedCandidate,
    key: Key,
) -> Result<FitOutcome> {
    let split = context.split(ranked.candidate.encoding);
    let run = context.run;
    let on_epoch = listener(run);
    let schedule = context.schedule.part(FIRST_RUN);
    let first = train_one(
        context,
        &split,
        &ranked.candidate,
        schedule,
        key,
        &mut |epoch, point| on_epoch("first tree", epoch, schedule.n_epochs, point),
    )?;
    let stage_fit = Stage {
        params,
        config: context.config,
        split: &split,
        schedule: context.schedule,
        on_epoch: &on_epoch,
    };
    let mut trials = Vec::new();
    let start = AdditiveModel::of(first, &stage_fit, key.child(49));
    let mut sum = stage_fit.grow(start, key.child(50), &mut trials)?;
    // without rows that judge it a long run of all trees does more harm than good
    if params.joint_training && split.held_out.is_some() {
        sum = stage_fit.train_jointly(sum, 1.0, JOINT_RATE, key.child(51))?;
        trials.push(Trial {
            what: format!("{} trees together", sum.n_trees()),
            held_out: sum.held_out,
        });
    }
    let first = ranked.candidate.describe();
    Ok(FitOutcome {
        what: match sum.n_trees() {
            1 => format!("1 tree, {first}"),
            n => format!("{n} trees, the first {first}"),
        },
        split,
        sum,
        trials,
        spare: None,
    })
}

/// Tells the run's observer of a stage.
fn listener<'a>(
    run: &'a Run<'a>,
) -> impl Fn(&str, usize, usize, &CurvePoint) -> ControlFlow<()> + 'a {
    |stage, done, total, point| {
        run.observer.step(&Progress {
            stage,
            done,
            total,
            elbo: Some(point.elbo).filter(|elbo| elbo.is_finite()),
            held_out: point.held_out,
        })
    }
}

fn assemble(
    params: &VsgbmParams,
    outcomes: Vec<FitOutcome>,
    training: Training,
    (data, key): (&Dataset, Key),
) -> Vsgbm {
    let key = key.child(30);
    let n_fits = outcomes.len();
    let standard = outcomes[0].split.scale.standard;
    let is_constant = params.noise == NoiseModel::Constant && data.schema().classes().is_none();
    let mut noise = Vec::new();
    let mut fits: Vec<FittedTrees> = Vec::with_capacity(n_fits);
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let n_draws = members_of(params.n_members, n_fits, at);
        let key = draws_key(key, at);
        let FitOutcome { split, sum, .. } = outcome;
        if is_constant {
            noise.extend(noise::draw(params, &sum, &split.train, n_draws, key));
        }
        let encoder: Encoder = split.encoder;
        fits.push(FittedTrees::new(
            encoder, sum.spec, sum.blocks, n_draws, key,
        ));
    }
    Vsgbm {
        schema: data.schema().clone(),
        params: params.clone(),
        training,
        standard,
        key,
        fits,
        noise,
        spread: 1.0,
    }
}

/// Goes on from a fitted model: trees that it does not have yet are added, then all are improved together in a short run.
fn go_on(
    params: &VsgbmParams,
    config: &SoftTreeConfig,
    record: &Record,
    (data, whole): (&Dataset, &Dataset),
    run: &Run<'_>,
) -> Result<Vsgbm> {
    let base = base(params, record, data)?;
    let schedule = config.schedule(whole);
    let on_epoch = listener(run);
    let grown = run.pool.map(base.fits.len(), |at| {
        let fit = &base.fits[at];
        let likelihood = fit.spec.likelihood;
        let scale = TargetScale {
            standard: base.standard,
            likelihood,
            n_channels: fit.spec.stack.first.n_channels,
        };
        let split = EncodedSplit::encoded(whole, run.held_out, scale, fit.encoder.clone());
        let stage_fit = Stage {
            params,
            config,
            split: &split,
            schedule,
            on_epoch: &on_epoch,
        };
        let key = run.key.child(20).child(at as u64);
        let sum = AdditiveModel {
            spec: fit.spec,
            blocks: fit.blocks.clone(),
            held_out: f64::NAN,
            curve: Vec::new(),
        };
        let sum = sum.with_validation_score(&split, key.child(48));
        let before = sum.n_trees();
        let mut sum = match params.n_estimators {
            Some(n) if n > before => stage_fit.grow(sum, key.child(50), &mut Vec::new())?,
            _ => sum,
        };
        let is_longer = sum.n_trees() > before;
        let (share, rate) = if is_longer && run.held_out.is_some() {
            (1.0, JOINT_RATE)
        } else {
            (WARM_RUN, WARM_RATE)
        };
        if params.joint_training || !is_longer {
            sum = stage_fit.train_jointly(sum, share, rate, key.child(51))?;
        }
        Ok(FitOutcome {
            what: format!("{} trees, gone on with", sum.n_trees()),
            split,
            sum,
            trials: Vec::new(),
            spare: None,
        })
    });
    let outcomes = converged(grown)?;
    let training = Training {
        curve: outcomes[0].sum.curve.clone(),
        chosen: outcomes[0].what.clone(),
        target_sd: base.training.target_sd,
        ..Training::default()
    };
    let model = assemble(params, outcomes, training, (data, run.key));
    Ok(Vsgbm {
        spread: base.spread,
        ..model
    })
}

/// The fitted model that a warm start begins with.
///
/// # Errors
/// When the model, the data or the parameters do not allow it.
fn base(params: &VsgbmParams, record: &Record, data: &Dataset) -> Result<Vsgbm> {
    check_same_family("vsgbm", record)?;
    let base = Vsgbm::from_record(record)?;
    check_same_schema(base.schema(), data)?;
    check_fixed_params(&json!(base.params), &json!(params), FIXED)?;
    let broken = |problem: String| Err(Error::Parameters(vec![problem]));
    let n_fits = base.fits.len();
    if params.n_members < n_fits {
        return broken(format!(
            "`n_members` = {} is fewer than the {n_fits} fits of the model to go on from",
            params.n_members
        ));
    }
    let most = base.n_trees().into_iter().max().unwrap_or(0);
    if let Some(n) = params.n_estimators.filter(|&n| n < most) {
        return broken(format!(
            "`n_estimators` = {n} is fewer than the {most} of the model to go on from"
        ));
    }
    Ok(base)
}
