//! Training: deduplicate rows, split off a validation set, select tree shapes and encodings, train
//! the selected candidates.

use crate::data::dataset::Dataset;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::vst::fitted::Vst;
use crate::models::vst::params::VstParams;
use crate::params::Checked;
use crate::store::record::Record;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoding_cache::EncodingCache;
use crate::variational::ensemble::{FitPosterior, FittedEnsemble};
use crate::variational::fit_rows::FitRows;
use crate::variational::selection::{RankedCandidate, SelectionContext, select, train_candidate};
use crate::variational::streams::run as streams;
use crate::variational::train::{converged, report_epoch};

impl Fit for VstParams {
    type Fitted = Vst;
    const FAMILY: &'static str = "vst";

    fn restore(record: &Record) -> Result<Vst> {
        Vst::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vst> {
        let deduplicated = data.deduplicated();
        let config = SoftTreeConfig::from(&**params);
        let split_key = run.key.child(streams::VALIDATION_SPLIT);
        let rows = FitRows::new(&config, &deduplicated, run, split_key);
        let encodings = EncodingCache::default();
        let context = SelectionContext::new(&config, &rows, &encodings, run);
        fit(params, &context, data)
    }
}

/// Selects candidates and fits `n_fits` of them.
fn fit(params: &VstParams, context: &SelectionContext<'_>, data: &Dataset) -> Result<Vst> {
    let run = context.run;
    let (ranking, trials) = select(context)?;
    let n_fits = params.n_fits.min(params.n_members);
    let fits = run.pool.map(n_fits, |at| {
        let ranked = &ranking[at % ranking.len()];
        let candidate = &ranked.candidate;
        let split = context.encode(candidate.encoding);
        let schedule = context.schedule;
        let full_run = train_candidate(
            context,
            &split,
            candidate,
            schedule,
            run.key.child(streams::FITS).child(at as u64),
            &mut |epoch, point| {
                let (done, total) = (at * schedule.n_epochs + epoch, n_fits * schedule.n_epochs);
                report_epoch(run.observer, "fitting", done, total, point)
            },
        )?;
        // the short run is no alternative if the user chose the number of epochs, nor for a second
        // fit of the same candidate, which must differ from the first
        let may_be_short = params.early_stopping && params.n_epochs.is_none() && at < ranking.len();
        let trained = if may_be_short {
            ranked.better(full_run)
        } else {
            full_run
        };
        Ok((split.encoder.clone(), trained))
    });
    let fits = converged(fits)?;
    let training = Training {
        curve: fits[0].1.curve.clone(),
        trials,
        chosen: describe(&ranking, fits.len()),
        target_sd: context.scale.target_sd(),
        ..Training::default()
    };
    let posteriors = fits.into_iter().map(|(encoder, trained)| FitPosterior {
        encoder,
        spec: trained.spec,
        blocks: vec![trained.posterior],
    });
    Ok(Vst {
        params: params.clone(),
        ensemble: FittedEnsemble::new(
            data.schema().clone(),
            training,
            context.scale.standard,
            posteriors.collect(),
            params.n_members,
            run.key.child(streams::POSTERIOR_DRAWS),
        ),
    })
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
