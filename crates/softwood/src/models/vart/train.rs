//! Training: deduplicate rows, split off a validation set, select initial depth, mixing and
//! encoding, train the selected candidates, move their structures, calibrate the noise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::data::schema::Schema;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::inference::schedule::TrainingSchedule;
use crate::model::{Model, Training};
use crate::models::vart::fitted::{EncodedPosterior, Vart, draw_trees};
use crate::models::vart::params::VartParams;
use crate::models::vart::structure::summarize;
use crate::models::vart::training_run::{VartEpoch, VartRun, VartTrained};
use crate::models::vart::warm_start::warm_start;
use crate::observer::TakeSnapshot;
use crate::params::Checked;
use crate::stop;
use crate::store::record::Record;
use crate::variational::encoded_rows::EncodedSplit;
use crate::variational::encoding_cache::EncodingCache;
use crate::variational::fit_rows::FitRows;
use crate::variational::noise_calibration::{
    ALWAYS_DEFINED, CalibrationRows, ensemble_calibration, noise_factor,
};
use crate::variational::selection::{RankedCandidate, Selection, SelectionContext, select_by};
use crate::variational::streams::run as streams;
use crate::variational::train::{FitResult, RunPlace, converged, kept};

/// Precision of the prior on the logarithm of the calibration factor of the noise, in rows.
const LOG_FACTOR_PRECISION: f64 = 10.0;

impl Fit for VartParams {
    type Fitted = Vart;
    const FAMILY: &'static str = "vart";
    const SUPPORTS_WARM_START: bool = true;
    const WARM_START_IS_SHORT: bool = true;

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Vart> {
        Vart::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vart> {
        let deduplicated = data.try_deduplicated()?;
        if let Some(fitted) = run.fitted(Self::FAMILY)? {
            return warm_start(params, fitted, &deduplicated, run);
        }
        let config = params.config();
        let split_key = run.key.child(streams::VALIDATION_SPLIT);
        let rows = FitRows::new(&config, &deduplicated, run, split_key);
        stop::check()?;
        let encodings = EncodingCache::default();
        let context = SelectionContext::new(&config, &rows, &encodings, run);
        fit(params, &context, &deduplicated)
    }
}

/// A training run from scratch.
fn vart_run<'a>(
    params: &'a VartParams,
    context: &'a SelectionContext<'_>,
    split: &'a EncodedSplit,
    schedule: TrainingSchedule,
) -> VartRun<'a> {
    VartRun {
        params,
        config: context.config,
        split,
        schedule,
        is_warm_start: false,
    }
}

/// Selects candidates, fits `n_fits` of them and calibrates their noise. `data` has all deduplicated
/// rows, of which each fit may hold out others.
fn fit(params: &VartParams, context: &SelectionContext<'_>, data: &Dataset) -> Result<Vart> {
    let run = context.run;
    let Selection {
        ranking,
        trials,
        is_stopped,
    } = select_by(context, &|split, candidate, schedule, key, place| {
        let mut on_epoch = |epoch: &VartEpoch<'_>| place.report_epoch(run, epoch.report, None);
        let vart_run = vart_run(params, context, split, schedule);
        vart_run.train_candidate(candidate, key, &mut on_epoch)
    })?;
    let n_fits = params.n_fits(context.n_rows);
    let assembly = VartAssembly {
        params,
        context,
        schema: data.schema(),
    };
    if is_stopped {
        let fits = ranking.iter().take(n_fits).filter_map(|ranked| {
            Some(CandidateFit {
                split: context.encode(ranked.candidate.encoding),
                trained: ranked.short_run.clone()?,
                description: ranked.candidate.describe(),
            })
        });
        let training = Training {
            trials,
            is_stopped,
            ..Training::default()
        };
        return Ok(assembly.model(fits.collect(), training));
    }
    let is_stopped = AtomicBool::new(false);
    let fits = run.pool.map(n_fits, |at| {
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // each fit but the first has its own validation set, so that together they train on all
        // rows
        let split_key = run.key.child(streams::VALIDATION_SPLIT);
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
        let assembly = VartAssembly {
            context: &own,
            ..assembly
        };
        let fit = fit_candidate(&assembly, &ranking, at, n_fits)?;
        is_stopped.fetch_or(fit.trained.is_stopped, Ordering::Relaxed);
        Ok(Some(FitResult {
            validation_score: fit.trained.validation_score,
            is_complete: fit.trained.is_complete,
            fit: (fit, own.validation.cloned()),
        }))
    });
    let fits = converged(fits)?.into_iter().flatten().collect();
    let (fits, validation): (Vec<_>, Vec<_>) = kept(fits).into_iter().unzip();
    let training = Training {
        trials,
        is_stopped: is_stopped.into_inner(),
        ..Training::default()
    };
    let mut model = assembly.model(fits, training);
    calibrate(&mut model, &validation, run);
    Ok(model)
}

/// Fits candidate `at` of the ranking (in turn) in a full run.
fn fit_candidate(
    assembly: &VartAssembly<'_>,
    ranking: &[RankedCandidate<VartTrained>],
    at: usize,
    n_fits: usize,
) -> Result<CandidateFit> {
    let VartAssembly {
        params, context, ..
    } = *assembly;
    let run = context.run;
    let ranked = &ranking[at % ranking.len()];
    let candidate = &ranked.candidate;
    let split = context.encode(candidate.encoding);
    let schedule = context.schedule;
    let place = RunPlace {
        at,
        n_runs: n_fits,
        member: Some(at),
        ..RunPlace::new("fitting", schedule.n_epochs)
    };
    let fit = |trained: VartTrained| CandidateFit {
        split: Arc::clone(&split),
        trained,
        description: candidate.describe(),
    };
    let on_epoch = |place: &RunPlace<'_>, epoch: &VartEpoch<'_>| {
        let snapshot = epoch.copy_best.map(|copy| {
            move || -> Result<Box<dyn Model>> {
                let training = Training {
                    is_stopped: true,
                    ..Training::default()
                };
                Ok(Box::new(assembly.model(vec![fit(copy())], training)))
            }
        });
        let snapshot = snapshot.as_ref().map(|take| take as TakeSnapshot<'_>);
        place.report_epoch(run, epoch.report, snapshot)
    };
    let key = run.key.child(streams::FITS).child(at as u64);
    let vart_run = vart_run(params, context, &split, schedule);
    let full_run =
        vart_run.train_candidate(candidate, key, &mut |epoch| on_epoch(&place, epoch))?;
    // the short run is no alternative if the user chose the number of epochs, nor for fits with
    // validation rows of their own
    let may_be_short = params.early_stopping && params.n_epochs.is_none();
    let (is_complete, is_stopped) = (full_run.is_complete, full_run.is_stopped);
    let mut trained = if at == 0 && (may_be_short || !is_complete) {
        ranked.better(full_run)
    } else {
        full_run
    };
    (trained.is_stopped, trained.is_complete) = (is_stopped, is_complete);
    if !is_stopped {
        // no snapshots: a run that is worse than the fit before the move is undone
        let moving = RunPlace {
            n_epochs: vart_run.n_continued_epochs(),
            stage: "moving",
            ..place
        };
        trained = vart_run.improve(trained, key, &mut |epoch| {
            moving.report_epoch(run, epoch.report, None)
        })?;
    }
    Ok(fit(trained))
}

/// Calibrates the noise scale on the validation rows of each fit.
fn calibrate(model: &mut Vart, validation: &[Option<Dataset>], run: &Run<'_>) {
    if !model.is_calibrated() {
        return;
    }
    let rows = CalibrationRows {
        validation,
        is_shared: run.held_out.is_some(),
        standard: &model.standard,
        log_factor_precision: LOG_FACTOR_PRECISION,
    };
    let redraw = |at: usize, n_draws, key| {
        let encoder = model.trees[at].encoder.clone();
        draw_trees(encoder, &model.posteriors[at], n_draws, key)
    };
    let key = run.key.child(streams::NOISE_CALIBRATION);
    let noise_factor = noise_factor(&model.trees, &rows, redraw, key);
    model.noise_factor = noise_factor;
    let calibration = ensemble_calibration(&model.trees, &rows, model.head(), |rows, out| {
        // the calibration of the model is still that of no change
        let rows = rows.features().rows(0..rows.n_rows());
        model.members(&rows, out).expect(ALWAYS_DEFINED);
    });
    model.calibration = calibration;
}

/// The parts of a model besides its fits.
#[derive(Clone, Copy)]
struct VartAssembly<'a> {
    params: &'a VartParams,
    context: &'a SelectionContext<'a>,
    schema: &'a Schema,
}

/// A fit of a candidate, with its rows.
struct CandidateFit {
    split: Arc<EncodedSplit>,
    trained: VartTrained,
    /// Description of the candidate for users.
    description: String,
}

impl VartAssembly<'_> {
    /// The model of some fits.
    fn model(&self, fits: Vec<CandidateFit>, training: Training) -> Vart {
        let descriptions: Vec<&str> = fits.iter().map(|fit| &*fit.description).collect();
        let first = &fits[0];
        let training = Training {
            curve: first.trained.curve.clone(),
            target_sd: self.context.scale.target_sd(),
            chosen: descriptions.join("; "),
            ..training
        };
        let summary = summarize(&first.trained.posterior, self.schema, &first.split.train);
        let posteriors = fits.into_iter().map(|fit| EncodedPosterior {
            encoder: fit.split.encoder.clone(),
            posterior: fit.trained.posterior,
        });
        let model = Vart::new(
            self.params.clone(),
            self.schema.clone(),
            training,
            self.context.scale.standard,
            posteriors.collect(),
            self.context.run.key.child(streams::POSTERIOR_DRAWS),
        );
        Vart {
            summary,
            extrapolation: self.context.run.extrapolation.cloned(),
            ..model
        }
    }
}
