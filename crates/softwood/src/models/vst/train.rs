//! Fitting: merge equal rows, set rows aside, choose a shape, train the winner.

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::data::split::n_raw_rows;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::vst::fitted::Vst;
use crate::models::vst::params::VstParams;
use crate::observer::Progress;
use crate::params::Checked;
use crate::store::record::Record;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::TargetScale;
use crate::variational::fitted::{FittedTrees, draws_key, members_of};
use crate::variational::selection::{RankedCandidate, SelectionContext, choose, train_one};
use crate::variational::train::{Trained, converged};

impl Fit for VstParams {
    type Fitted = Vst;
    const FAMILY: &'static str = "vst";

    fn restore(record: &Record) -> Result<Vst> {
        Vst::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Vst> {
        let whole = data.deduplicated();
        let config = SoftTreeConfig::from(&**params);
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
        fit(params, &context, data)
    }
}

fn fit(params: &VstParams, context: &SelectionContext<'_>, data: &Dataset) -> Result<Vst> {
    let run = context.run;
    let (ranking, trials) = choose(context)?;
    let n_fits = params.n_fits.min(params.n_members);
    let fits = run.pool.map(n_fits, |at| {
        let ranked = &ranking[at % ranking.len()];
        let candidate = &ranked.candidate;
        let split = context.split(candidate.encoding);
        let schedule = context.schedule;
        let trained = train_one(
            context,
            &split,
            candidate,
            schedule,
            run.key.child(20).child(at as u64),
            &mut |epoch, point| {
                let (done, total) = (at * schedule.n_epochs + epoch, n_fits * schedule.n_epochs);
                run.observer.step(&Progress {
                    stage: "fitting",
                    done,
                    total,
                    elbo: Some(point.elbo).filter(|elbo| elbo.is_finite()),
                    held_out: point.held_out,
                })
            },
        )?;
        // a given number of epochs is kept to; repeats of one candidate must differ
        let may_be_short = params.early_stopping && params.n_epochs.is_none() && at < ranking.len();
        let trained = if may_be_short {
            ranked.better(trained)
        } else {
            trained
        };
        Ok((split.encoder, trained))
    });
    let fits = converged(fits)?;
    let n_fits = fits.len();
    let training = Training {
        curve: fits[0].1.curve.clone(),
        trials,
        chosen: describe(&ranking, n_fits),
        target_sd: context.scale.target_sd(),
        ..Training::default()
    };
    let key = run.key.child(30);
    let tree = |(at, (encoder, fit)): (usize, (Encoder, Trained))| {
        let n_draws = members_of(params.n_members, n_fits, at);
        FittedTrees::new(
            encoder,
            fit.spec,
            vec![fit.posterior],
            n_draws,
            draws_key(key, at),
        )
    };
    Ok(Vst {
        schema: data.schema().clone(),
        params: params.clone(),
        training,
        standard: context.scale.standard,
        key,
        trees: fits.into_iter().enumerate().map(tree).collect(),
    })
}

/// The candidates that are fitted, as a user reads them.
fn describe(ranking: &[RankedCandidate], n_fits: usize) -> String {
    let names: Vec<String> = ranking
        .iter()
        .take(n_fits)
        .map(|ranked| ranked.candidate.describe())
        .collect();
    names.join("; ")
}
