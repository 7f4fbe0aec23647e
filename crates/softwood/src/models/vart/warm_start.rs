//! Warm start: the structures and weights of the fitted model are trained further in a short run.

use serde_json::json;

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::error::Result;
use crate::fit::{Run, check_fixed_params, check_same_schema};
use crate::model::{Model, Training};
use crate::models::vart::fitted::{EncodedPosterior, Vart};
use crate::models::vart::params::VartParams;
use crate::models::vart::structure::summarize;
use crate::models::vart::training_run::{VartEpoch, VartRun, VartTrained};
use crate::observer::TakeSnapshot;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::ensemble::check_n_members;
use crate::variational::streams::run as streams;
use crate::variational::train::{RunPlace, converged};
use crate::variational::tree_summary::TreeSummary;

/// Length of the run of a warm start, as a fraction of a full run.
const WARM_RUN: f64 = 0.1;
/// Learning rate of that run, as a fraction of that of a full run.
const WARM_RATE: f64 = 0.2;

/// Parameters that a warm start cannot change.
const FIXED: &[&str] = &[
    "max_depth",
    "start_depth",
    "leaf_model",
    "scale_model",
    "leaf_mixing",
    "mixing_levels",
    "n_estimators",
    "n_fits",
    "beta",
    "rank",
    "scaling",
    "rotation",
    "squares",
    "max_categories",
    "min_scale",
    "noise_scale",
];

/// Continues training from a fitted model on deduplicated rows.
///
/// # Errors
/// When the data or the parameters do not allow a warm start, or when training fails.
pub(super) fn warm_start(
    params: &VartParams,
    fitted: &Vart,
    data: &Dataset,
    run: &Run<'_>,
) -> Result<Vart> {
    check_same_schema(fitted.schema(), data)?;
    check_fixed_params(&json!(fitted.params), &json!(params), FIXED)?;
    check_n_members(params.n_members, fitted.trees.len())?;
    let fits = run.pool.map(fitted.trees.len(), |at| {
        continue_fit(params, fitted, at, data, run)
    });
    Ok(assemble(params, fitted, converged(fits)?, run))
}

/// The model of fits that continue those of a fitted model.
fn assemble(params: &VartParams, fitted: &Vart, fits: Vec<ContinuedFit>, run: &Run<'_>) -> Vart {
    let training = Training {
        curve: fits[0].trained.curve.clone(),
        chosen: fitted.training.chosen.clone(),
        target_sd: fitted.training.target_sd,
        is_stopped: fits.iter().any(|fit| fit.trained.is_stopped),
        ..Training::default()
    };
    let summary = fits[0].summary.clone();
    let posteriors = fits.into_iter().map(|fit| EncodedPosterior {
        encoder: fit.encoder,
        posterior: fit.trained.posterior,
    });
    let key = run.key.child(streams::POSTERIOR_DRAWS);
    let model = Vart::new(
        params.clone(),
        fitted.schema.clone(),
        training,
        fitted.standard,
        posteriors.collect(),
        key,
    );
    Vart {
        summary,
        extrapolation: run.extrapolation.cloned(),
        noise_factor: fitted.noise_factor,
        calibration: fitted.calibration,
        ..model
    }
}

struct ContinuedFit {
    encoder: Encoder,
    trained: VartTrained,
    summary: Option<TreeSummary>,
}

/// Trains fit `at` further.
fn continue_fit(
    params: &VartParams,
    fitted: &Vart,
    at: usize,
    data: &Dataset,
    run: &Run<'_>,
) -> Result<ContinuedFit> {
    let start = fitted.posteriors[at].clone();
    let encoder = fitted.trees[at].encoder.clone();
    let scale = TargetScale {
        standard: fitted.standard,
        likelihood: start.spec.likelihood,
        n_channels: start.spec.shape.leaf.n_channels,
    };
    let split = EncodedSplit::encoded(data, run.held_out, scale, encoder);
    let config = params.config();
    let mut schedule = config.schedule(data).part(WARM_RUN);
    schedule.learning_rate *= WARM_RATE;
    let vart_run = VartRun {
        params,
        config: &config,
        split: &split,
        schedule,
        is_warm_start: true,
    };
    let place = RunPlace {
        at,
        n_runs: fitted.trees.len(),
        member: Some(at),
        ..RunPlace::new("fitting", schedule.n_epochs)
    };
    let continued = |trained: VartTrained| ContinuedFit {
        encoder: split.encoder.clone(),
        summary: summarize(&trained.posterior, data.schema(), &split.train),
        trained,
    };
    let key = run.key.child(streams::FITS).child(at as u64);
    let trained = vart_run.train(&start, key, &mut |epoch: &VartEpoch<'_>| {
        let snapshot = epoch.copy_best.map(|copy| {
            move || -> Result<Box<dyn Model>> {
                Ok(Box::new(assemble(
                    params,
                    fitted,
                    vec![continued(copy())],
                    run,
                )))
            }
        });
        let snapshot = snapshot.as_ref().map(|take| take as TakeSnapshot<'_>);
        place.report_epoch(run, epoch.report, snapshot)
    })?;
    Ok(continued(trained))
}
