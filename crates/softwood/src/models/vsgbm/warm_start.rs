//! Warm start: adds trees to a fitted model if `n_estimators` has grown, then trains all trees
//! jointly in a short run.

use std::sync::Arc;

use serde_json::json;

use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::{Run, check_fixed_params, check_same_schema};
use crate::model::{Model, Training};
use crate::models::vsgbm::fitted::Vsgbm;
use crate::models::vsgbm::params::VsgbmParams;
use crate::models::vsgbm::stages::{AdditiveModel, Stages};
use crate::models::vsgbm::train::{FitOutcome, JOINT_RATE, assemble, sample, snapshot};
use crate::rng::Key;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::ensemble::check_n_members;
use crate::variational::sampling::continued_method;
use crate::variational::streams;
use crate::variational::train::converged;

/// Length of the joint run of a warm start without new trees, as a fraction of a full run.
const WARM_RUN: f64 = 0.05;
/// Learning rate of that run, as a fraction of that of a full run.
const WARM_RATE: f64 = 0.1;

/// Parameters that a warm start cannot change.
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

/// Continues training from a fitted model on deduplicated rows.
///
/// # Errors
/// When the model, the data or the parameters do not allow a warm start, or when training fails.
pub(super) fn warm_start(
    params: &VsgbmParams,
    fitted: &Vsgbm,
    data: &Dataset,
    run: &Run<'_>,
) -> Result<Vsgbm> {
    check_fitted(params, fitted, data)?;
    let outcomes = run.pool.map(fitted.ensemble.fits.len(), |at| {
        let key = run.key.child(streams::run::FITS).child(at as u64);
        continue_fit(params, fitted, at, data, run, key)
    });
    let outcomes = converged(outcomes)?;
    let training = Training {
        curve: outcomes[0].model.curve.clone(),
        chosen: outcomes[0].description.clone(),
        is_stopped: outcomes.iter().any(|outcome| outcome.model.is_stopped),
        target_sd: fitted.ensemble.training.target_sd,
        ..Training::default()
    };
    let splits: Vec<Arc<EncodedSplit>> =
        outcomes.iter().map(|fit| Arc::clone(&fit.split)).collect();
    let mut model = assemble(params, outcomes, training, data.schema(), run);
    let method = continued_method(params.posterior, &fitted.ensemble);
    let schedule = params.config().schedule(data).part(WARM_RUN);
    sample(&mut model, &splits, Some(method), schedule, run)?;
    model.ensemble.calibration = fitted.ensemble.calibration;
    Ok(Vsgbm {
        noise_factor: fitted.noise_factor,
        ..model
    })
}

/// Continues the training of fit `at` of the ensemble.
fn continue_fit(
    params: &VsgbmParams,
    fitted: &Vsgbm,
    at: usize,
    data: &Dataset,
    run: &Run<'_>,
    key: Key,
) -> Result<FitOutcome> {
    let config = params.config();
    let fit = &fitted.ensemble.fits[at];
    let scale = TargetScale {
        standard: fitted.ensemble.standard,
        likelihood: fit.spec.likelihood,
        n_channels: fit.spec.stack.first.n_channels,
    };
    let split = EncodedSplit::encoded(data, run.held_out, scale, fit.encoder.clone());
    let split = Arc::new(split);
    let snapshot = snapshot(params, Arc::clone(&split), "warm start", data.schema(), run);
    let stages = Stages {
        params,
        config: &config,
        split: &split,
        schedule: config.schedule(data),
        run,
        member: at,
        assemble: &snapshot,
    };
    let start = AdditiveModel {
        spec: fit.spec,
        blocks: fit.blocks.clone(),
        validation_score: f64::NAN,
        curve: Vec::new(),
        is_stopped: false,
    };
    let start = start.with_validation_score(&split, key.child(streams::fit::WARM_START_SCORE));
    let n_before = start.n_trees();
    let mut model = match params.n_estimators {
        Some(n) if n > n_before => {
            let key = key.child(streams::fit::ADDED_TREES);
            stages.add_trees(start, key, &mut Vec::new())?
        }
        _ => start,
    };
    let has_new_trees = model.n_trees() > n_before;
    let (fraction, rate) = if has_new_trees && run.held_out.is_some() {
        (1.0, JOINT_RATE)
    } else {
        (WARM_RUN, WARM_RATE)
    };
    if !model.is_stopped && (params.joint_training || !has_new_trees) {
        let key = key.child(streams::fit::JOINT_TRAINING);
        model = stages.train_jointly(model, fraction, rate, key)?;
    }
    Ok(FitOutcome {
        description: format!("{} trees, warm start", model.n_trees()),
        split,
        model,
        trials: Vec::new(),
    })
}

/// Returns an error if the fitted model, the data or the parameters do not allow a warm start.
fn check_fitted(params: &VsgbmParams, fitted: &Vsgbm, data: &Dataset) -> Result<()> {
    check_same_schema(fitted.schema(), data)?;
    check_fixed_params(&json!(fitted.params), &json!(params), FIXED)?;
    let refuse = |problem: String| Err(Error::Parameters(vec![problem]));
    check_n_members(params.n_members, fitted.ensemble.fits.len())?;
    let n_trees = fitted.n_trees().into_iter().max().unwrap_or(0);
    if let Some(n) = params.n_estimators.filter(|&n| n < n_trees) {
        return refuse(format!(
            "`n_estimators` = {n} is fewer than the {n_trees} trees of the fitted model"
        ));
    }
    Ok(())
}
