//! Training: deduplicate rows, split off a validation set, select tree shapes and encodings, train
//! the selected candidates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::model::{Model, Training};
use crate::models::vst::fitted::Vst;
use crate::models::vst::params::VstParams;
use crate::models::vst::warm_start::warm_start;
use crate::params::Checked;
use crate::stop;
use crate::store::record::Record;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedSplit;
use crate::variational::encoding_cache::EncodingCache;
use crate::variational::ensemble::{ChainRows, FitPosterior, FittedEnsemble};
use crate::variational::fit_rows::FitRows;
use crate::variational::selection::{
    RankedCandidate, Selection, SelectionContext, select, train_candidate,
};
use crate::variational::streams::run as streams;
use crate::variational::train::{FitResult, RunPlace, Trained, converged, kept};

impl Fit for VstParams {
    type Fitted = Vst;
    const FAMILY: &'static str = "vst";
    const SUPPORTS_WARM_START: bool = true;
    const WARM_START_IS_SHORT: bool = true;

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Vst> {
        Vst::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vst> {
        let deduplicated = data.try_deduplicated()?;
        if let Some(fitted) = run.fitted(Self::FAMILY)? {
            return warm_start(params, fitted, &deduplicated, run);
        }
        let config = SoftTreeConfig::from(&**params);
        let split_key = run.key.child(streams::VALIDATION_SPLIT);
        let rows = FitRows::new(&config, &deduplicated, run, split_key);
        stop::check()?;
        let encodings = EncodingCache::default();
        let context = SelectionContext::new(&config, &rows, &encodings, run);
        fit(params, &context, data)
    }
}

/// Selects candidates and fits `n_fits` of them.
fn fit(params: &VstParams, context: &SelectionContext<'_>, data: &Dataset) -> Result<Vst> {
    let run = context.run;
    let Selection {
        ranking,
        trials,
        is_stopped,
    } = select(context)?;
    let n_fits = params.n_fits.min(params.n_members);
    let assembly = Assembly {
        params,
        context,
        schema: data.schema(),
    };
    if is_stopped {
        let fits = ranking.iter().take(n_fits).filter_map(|ranked| {
            let encoder = context.encode(ranked.candidate.encoding).encoder.clone();
            Some((encoder, ranked.short_run.clone()?))
        });
        let training = Training {
            trials,
            chosen: describe(&ranking, n_fits),
            is_stopped,
            ..Training::default()
        };
        return Ok(assembly.calibrated(assembly.model(fits.collect(), training)));
    }
    let is_stopped = AtomicBool::new(false);
    let fits = run.pool.map(n_fits, |at| {
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
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
        let snapshot = |trained: Trained| -> Box<dyn Model> {
            let training = Training {
                chosen: candidate.describe(),
                is_stopped: true,
                ..Training::default()
            };
            Box::new(assembly.model(vec![(split.encoder.clone(), trained)], training))
        };
        let full_run = train_candidate(
            context,
            &split,
            candidate,
            schedule,
            run.key.child(streams::FITS).child(at as u64),
            &mut |report| place.report(run, report, Some(&snapshot)),
        )?;
        is_stopped.fetch_or(full_run.is_stopped, Ordering::Relaxed);
        // the short run is no alternative if the user chose the number of epochs, nor for a second
        // fit of the same candidate, which must differ from the first
        let may_be_short = params.early_stopping && params.n_epochs.is_none() && at < ranking.len();
        let is_complete = full_run.is_complete;
        let trained = if may_be_short || !is_complete {
            ranked.better(full_run)
        } else {
            full_run
        };
        Ok(Some(FitResult {
            validation_score: trained.validation_score,
            is_complete,
            fit: (split, trained),
        }))
    });
    let fits = kept(converged(fits)?.into_iter().flatten().collect());
    let (splits, fits): (Vec<Arc<EncodedSplit>>, Vec<Trained>) = fits.into_iter().unzip();
    let training = Training {
        trials,
        chosen: describe(&ranking, fits.len()),
        is_stopped: is_stopped.into_inner(),
        ..Training::default()
    };
    let encoders = splits.iter().map(|split| split.encoder.clone());
    let mut model = assembly.model(encoders.zip(fits).collect(), training);
    let chains = splits.iter().map(|split| ChainRows {
        config: context.config,
        rows: &split.train,
    });
    let chains: Vec<ChainRows<'_>> = chains.collect();
    (model.ensemble).sample(&chains, params.posterior, context.schedule, run)?;
    Ok(assembly.calibrated(model))
}

/// The parts of a model besides its fits.
struct Assembly<'a> {
    params: &'a VstParams,
    context: &'a SelectionContext<'a>,
    schema: &'a Schema,
}

impl Assembly<'_> {
    /// The model with its noise calibrated on the validation rows.
    fn calibrated(&self, mut model: Vst) -> Vst {
        if let (Some(validation), true) = (self.context.validation, self.params.calibrate_noise) {
            model.ensemble.calibrate(validation);
        }
        model
    }

    /// The model of some fits, each with its encoder.
    fn model(&self, fits: Vec<(Encoder, Trained)>, training: Training) -> Vst {
        let training = Training {
            curve: fits[0].1.curve.clone(),
            target_sd: self.context.scale.target_sd(),
            ..training
        };
        let posteriors = fits.into_iter().map(|(encoder, trained)| FitPosterior {
            encoder,
            spec: trained.spec,
            blocks: vec![trained.posterior],
        });
        Vst {
            params: self.params.clone(),
            ensemble: FittedEnsemble::new(
                self.schema.clone(),
                training,
                self.context.scale.standard,
                posteriors.collect(),
                self.params.n_members,
                self.context.run.key.child(streams::POSTERIOR_DRAWS),
            )
            .extrapolating(self.context.run.extrapolation),
        }
    }
}

/// Description of the fitted candidates for users.
fn describe(ranking: &[RankedCandidate], n_fits: usize) -> String {
    let names: Vec<String> = ranking
        .iter()
        .take(n_fits)
        .map(|ranked| ranked.candidate.describe())
        .collect();
    names.join("; ")
}
