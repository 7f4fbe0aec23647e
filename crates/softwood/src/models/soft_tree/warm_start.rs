//! Warm start: the tree structures of the fitted model stay, and their weights are trained further
//! in a short run.

use serde_json::json;

use crate::data::dataset::Dataset;
use crate::error::Result;
use crate::fit::{Run, check_fixed_params, check_same_schema};
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::model::Model;
use crate::models::soft_tree::fitted::SoftTree;
use crate::models::soft_tree::params::SoftTreeParams;
use crate::models::soft_tree::point_training::{
    Penalty, PointRun, PointSchedule, train as train_point,
};
use crate::models::soft_tree::posterior::{FittedTree, point_posterior};
use crate::models::soft_tree::train::{assemble, sample};
use crate::observer::Event;
use crate::rng::Key;
use crate::soft::general_layout::GeneralLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::ensemble::{FitPosterior, check_n_members};
use crate::variational::sampling::continued_method;
use crate::variational::streams::run as run_streams;
use crate::variational::train::{RunPlace, Trained, TrainingRun, train};

/// Length of the run of a warm start, as a fraction of a full run.
const WARM_RUN: f64 = 0.1;
/// Learning rate of that run, as a fraction of that of a full run.
const WARM_RATE: f64 = 0.2;

/// Parameters that a warm start cannot change.
const FIXED: &[&str] = &[
    "variant",
    "growth",
    "max_depth",
    "max_leaf_nodes",
    "min_gain",
    "refine",
    "prune",
    "leaf_model",
    "posterior",
    "n_fits",
    "beta",
    "rank",
    "scaling",
    "rotation",
    "squares",
    "max_categories",
    "min_scale",
];

/// Continues training from a fitted model on deduplicated rows.
///
/// # Errors
/// When the data or the parameters do not allow a warm start, or when training fails.
pub(super) fn warm_start(
    params: &SoftTreeParams,
    fitted: &SoftTree,
    data: &Dataset,
    run: &Run<'_>,
) -> Result<SoftTree> {
    check_same_schema(fitted.schema(), data)?;
    check_fixed_params(&json!(fitted.params), &json!(params), FIXED)?;
    if !params.is_ensemble() {
        check_n_members(params.n_members, fitted.ensemble.fits.len())?;
    }
    let trees = run.pool.map(fitted.ensemble.fits.len(), |at| {
        let key = run.key.child(run_streams::FITS).child(at as u64);
        continue_tree(params, fitted, at, data, run, key)
    });
    let trees = trees.into_iter().collect::<Result<Vec<_>>>()?;
    let scale = target_scale(fitted, 0);
    let mut model = assemble(params, trees, &scale, data.schema(), run);
    if !params.is_ensemble() {
        let method = continued_method(params.posterior_method(), &fitted.ensemble);
        let schedule = params
            .config(data.target(), 1)
            .schedule(data)
            .part(WARM_RUN);
        // all trees have the same encoder
        let encoder = model.ensemble.fits[0].encoder.clone();
        let rows = EncodedSplit::encoded(data, None, scale, encoder).train;
        sample(
            &mut model,
            data.target(),
            &rows,
            Some(method),
            schedule,
            run,
        )?;
    }
    if params.calibrate_noise {
        model.ensemble.calibration = fitted.ensemble.calibration;
    }
    Ok(model)
}

fn target_scale(fitted: &SoftTree, at: usize) -> TargetScale {
    let fit = &fitted.ensemble.fits[at];
    TargetScale {
        standard: fitted.ensemble.standard,
        likelihood: fit.spec.likelihood,
        n_channels: fit.spec.stack.first.n_channels(),
    }
}

/// Trains the weights of tree `at` further.
fn continue_tree(
    params: &SoftTreeParams,
    fitted: &SoftTree,
    at: usize,
    data: &Dataset,
    run: &Run<'_>,
    key: Key,
) -> Result<FittedTree> {
    let fit = &fitted.ensemble.fits[at];
    let scale = target_scale(fitted, at);
    let split = EncodedSplit::encoded(data, run.held_out, scale, fit.encoder.clone());
    let spec = fit.spec.clone();
    let n_leaves = spec.stack.first.n_leaves();
    let config = params.config(data.target(), n_leaves);
    let mut schedule = config.schedule(data).part(WARM_RUN);
    schedule.learning_rate *= WARM_RATE;
    let posterior = |spec, block| FitPosterior {
        // columns whose new rows have missing cells are no longer complete
        encoder: split.encoder.clone(),
        spec,
        blocks: vec![block],
    };
    if params.is_ensemble() {
        let (block, is_stopped) =
            continue_point(&fit.blocks[0], &spec, &split, schedule, run, key)?;
        let posterior = posterior(spec, block);
        return Ok(FittedTree::new(
            posterior,
            &split.train,
            Vec::new(),
            is_stopped,
        ));
    }
    let training_run = TrainingRun {
        config: &config,
        spec,
        train: &split.train,
        validation: split.validation.as_ref(),
        start: fit.blocks[0].clone(),
        schedule,
        is_warm_start: true,
        freezes_scale: false,
        redraw_offset: None,
    };
    let place = RunPlace {
        at,
        n_runs: fitted.ensemble.fits.len(),
        member: Some(at),
        ..RunPlace::new("fitting", schedule.n_epochs)
    };
    let fitted_tree = |trained: Trained<GeneralLayout>| {
        let posterior = posterior(trained.spec, trained.posterior);
        FittedTree::new(posterior, &split.train, trained.curve, trained.is_stopped)
    };
    let snapshot = |trained: Trained<GeneralLayout>| -> Box<dyn Model> {
        let trees = vec![fitted_tree(trained)];
        Box::new(assemble(params, trees, &scale, data.schema(), run))
    };
    let trained = train(&training_run, key, &mut |report| {
        place.report(run, report, Some(&snapshot))
    })?;
    Ok(fitted_tree(trained))
}

/// Trains a point estimate further, with a penalty on changes; also tells whether the observer
/// stopped the run.
fn continue_point(
    block: &LowRank,
    spec: &SoftTreeSpec<GeneralLayout>,
    split: &EncodedSplit,
    schedule: TrainingSchedule,
    run: &Run<'_>,
    key: Key,
) -> Result<(LowRank, bool)> {
    let penalty: Vec<Penalty> = (block.mean().iter())
        .map(|&mean| Penalty {
            mean,
            precision: 1.0,
        })
        .collect();
    let observer = run.observer;
    let run = PointRun {
        spec,
        train: &split.train,
        validation: split.validation.as_ref(),
        schedule: PointSchedule {
            n_epochs: schedule.n_epochs,
            batch_size: schedule.batch_size,
            learning_rate: schedule.learning_rate,
        },
        penalty: &penalty,
    };
    let start = block.mean().to_vec();
    let n_epochs = schedule.n_epochs;
    let fit = train_point(&run, start, key, &mut |epoch| {
        observer.on_event(&Event {
            epoch: Some(epoch),
            ..Event::new("fitting", epoch, n_epochs)
        })
    })?;
    Ok((point_posterior(fit.weights), fit.is_stopped))
}
