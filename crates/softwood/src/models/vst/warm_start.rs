//! Warm start: the posteriors of the fitted model are trained further in a short run on all rows.

use serde_json::json;

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::error::Result;
use crate::fit::{Run, check_fixed_params, check_same_schema};
use crate::model::{Model, Training};
use crate::models::vst::fitted::Vst;
use crate::models::vst::params::VstParams;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::ensemble::{ChainRows, FitPosterior, FittedEnsemble, check_n_members};
use crate::variational::sampling::continued_method;
use crate::variational::streams::run as streams;
use crate::variational::train::{RunPlace, Trained, TrainingRun, converged, train};

/// Length of the run of a warm start, as a fraction of a full run.
const WARM_RUN: f64 = 0.25;
/// Learning rate of that run, as a fraction of that of a full run.
const WARM_RATE: f64 = 0.5;

/// Parameters that a warm start cannot change.
const FIXED: &[&str] = &[
    "max_depth",
    "leaf_model",
    "leaf_mixing",
    "mixing_levels",
    "beta",
    "rank",
    "n_fits",
    "scaling",
    "rotation",
    "squares",
    "max_categories",
    "min_scale",
    "noise_scale",
    "calibrate_noise",
];

/// Continues training from a fitted model on deduplicated rows. Shapes, encodings and the calibration of
/// the noise stay; validation rows of the run calibrate it anew.
///
/// # Errors
/// When the data or the parameters do not allow a warm start, or when training fails.
pub(super) fn warm_start(
    params: &VstParams,
    fitted: &Vst,
    data: &Dataset,
    run: &Run<'_>,
) -> Result<Vst> {
    let n_fits = fitted.ensemble.fits.len();
    check_same_schema(fitted.schema(), data)?;
    check_fixed_params(&json!(fitted.params), &json!(params), FIXED)?;
    check_n_members(params.n_members, n_fits)?;
    let continuation = Continuation {
        params,
        fitted,
        data,
        run,
    };
    let fits = run.pool.map(n_fits, |at| continuation.continue_fit(at));
    let (splits, fits): (Vec<EncodedSplit>, Vec<Trained>) = converged(fits)?.into_iter().unzip();
    let encoders = splits.iter().map(|split| split.encoder.clone());
    let mut model = continuation.model(encoders.zip(fits).collect());
    let config = SoftTreeConfig::from(params);
    let method = continued_method(params.posterior, &fitted.ensemble);
    let schedule = config.schedule(data).part(WARM_RUN);
    let chains = splits.iter().map(|split| ChainRows {
        config: &config,
        rows: &split.train,
    });
    let chains: Vec<ChainRows<'_>> = chains.collect();
    (model.ensemble).sample(&chains, Some(method), schedule, run)?;
    if let (Some(validation), true) = (run.held_out, params.calibrate_noise) {
        model.ensemble.calibrate(validation);
    }
    Ok(model)
}

/// A fitted model and the rows that it is trained on further.
struct Continuation<'a> {
    params: &'a VstParams,
    fitted: &'a Vst,
    data: &'a Dataset,
    run: &'a Run<'a>,
}

impl Continuation<'_> {
    /// Trains fit `at` further.
    fn continue_fit(&self, at: usize) -> Result<(EncodedSplit, Trained)> {
        let Self {
            params,
            fitted,
            data,
            run,
        } = *self;
        let fit = &fitted.ensemble.fits[at];
        let scale = TargetScale {
            standard: fitted.ensemble.standard,
            likelihood: fit.spec.likelihood,
            n_channels: fit.spec.stack.first.n_channels,
        };
        let split = EncodedSplit::encoded(data, run.held_out, scale, fit.encoder.clone());
        let config = SoftTreeConfig::from(params);
        let mut schedule = config.schedule(data).part(WARM_RUN);
        schedule.learning_rate *= WARM_RATE;
        let training_run = TrainingRun {
            config: &config,
            spec: fit.spec,
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
        let key = run.key.child(streams::FITS).child(at as u64);
        let snapshot = |trained: Trained| -> Box<dyn Model> {
            Box::new(self.model(vec![(split.encoder.clone(), trained)]))
        };
        let trained = train(&training_run, key, &mut |report| {
            place.report(run, report, Some(&snapshot))
        })?;
        Ok((split, trained))
    }

    /// The model of continued fits, with the calibration of the fitted model.
    fn model(&self, fits: Vec<(Encoder, Trained)>) -> Vst {
        let fitted = &self.fitted.ensemble;
        let training = Training {
            curve: fits[0].1.curve.clone(),
            chosen: fitted.training.chosen.clone(),
            target_sd: fitted.training.target_sd,
            is_stopped: fits.iter().any(|(_, trained)| trained.is_stopped),
            ..Training::default()
        };
        let posteriors = fits.into_iter().map(|(encoder, trained)| FitPosterior {
            encoder,
            spec: trained.spec,
            blocks: vec![trained.posterior],
        });
        let mut ensemble = FittedEnsemble::new(
            fitted.schema.clone(),
            training,
            fitted.standard,
            posteriors.collect(),
            self.params.n_members,
            self.run.key.child(streams::POSTERIOR_DRAWS),
        )
        .extrapolating(self.run.extrapolation);
        ensemble.calibration = fitted.calibration;
        Vst {
            params: self.params.clone(),
            ensemble,
        }
    }
}
