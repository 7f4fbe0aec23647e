//! Fitting: dedup rows, bins, a choice of settings on held-out rows, then the chains of all members.

use serde_json::Value;

use crate::boosting::chain::Chain;
use crate::boosting::inputs::BoostingData;
use crate::boosting::langevin::Sampling;
use crate::boosting::train_chain::TrainedChain;
use crate::data::binning::binned::Binned;
use crate::data::dataset::Dataset;
use crate::data::target::MIN_SCALE;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run, check_fixed_params, check_same_family, check_same_schema};
use crate::model::{Model, Training};
use crate::models::boosting::config::BoostingConfig;
use crate::models::boosting::features::RowSubset;
use crate::models::boosting::fitted::Boosted;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::member_diagnostics::MemberDiagnostics;
use crate::models::boosting::params::{SgbParams, SglbParams};
use crate::models::boosting::selection::{ChosenSettings, WarmStart, choose};
use crate::models::boosting::streams;
use crate::models::boosting::training_data::{PreparedRows, TrainingData};
use crate::observer::Progress;
use crate::par::Pool;
use crate::params::Checked;
use crate::rng::Key;
use crate::store::record::Record;
use crate::trees::histogram::candidate::ColumnInfo;

/// Parameters that a warm start cannot change.
const FIXED: &[&str] = &["monotonic_cst"];

impl Fit for SgbParams {
    type Fitted = Boosted;
    const FAMILY: &'static str = "sgb";
    const SUPPORTS_WARM_START: bool = true;

    fn restore(record: &Record) -> Result<Boosted> {
        Boosted::from_record(Self::FAMILY, record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
        let json = serde_json::to_value(&**params).unwrap_or_default();
        fit(&BoostingConfig::from(&**params), json, data, run)
    }
}

impl Fit for SglbParams {
    type Fitted = Boosted;
    const FAMILY: &'static str = "sglb";
    const SUPPORTS_WARM_START: bool = true;

    fn restore(record: &Record) -> Result<Boosted> {
        Boosted::from_record(Self::FAMILY, record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
        let json = serde_json::to_value(&**params).unwrap_or_default();
        fit(&BoostingConfig::from(&**params), json, data, run)
    }
}

fn fit(
    config: &BoostingConfig<'_>,
    params: Value,
    data: &Dataset,
    run: &Run<'_>,
) -> Result<Boosted> {
    let base = run
        .warm_start
        .map(|record| base(config, &params, record, data))
        .transpose()?;
    let known = base.as_ref().map(|base| (base.standard, base.likelihood));
    let training_data = TrainingData::new(config, data, known, run.key.child(streams::ROW_ORDER))?;
    let mut training = Training {
        target_sd: data
            .schema()
            .classes()
            .is_none()
            .then_some(training_data.standard.scale),
        ..Training::default()
    };
    let before = base.as_ref().map(|base| WarmStart {
        pipeline: &base.pipeline,
        chain: &base.chains[0],
        settings: base.settings,
    });
    let chosen = choose(config, &training_data, before, run, &mut training)?;
    let all = training_data.rows(0..training_data.n_rows());
    let (pipeline, whole) = match &base {
        Some(base) => training_data.train_on(all, &base.pipeline, run.pool),
        None => training_data.train(all, &chosen.plan, run.pool),
    };
    let columns = training_data.columns(&pipeline, &whole);
    let some_rows = pipeline.bin_rows(
        data.features(),
        MemberDiagnostics::rows(&training_data.dedup.rows),
    );
    // what only the choice needed is not kept through the longest part
    let (standard, likelihood) = (training_data.standard, training_data.likelihood);
    let TrainingData { dedup, targets, .. } = training_data;
    let dedup = pipeline.has_target_encoding().then_some(dedup);
    let own_order: &OwnOrder<'_> = &|at, key| {
        let dedup = dedup.as_ref().filter(|_| at > 0)?;
        let rows = RowSubset {
            numbers: &dedup.rows,
            weights: &dedup.weights,
        };
        pipeline.reordered(data.features(), (rows, &whole.binned), &targets, key)
    };
    let earlier = base.as_ref().map(|base| &base.chains[..]);
    let ground = (&columns, &whole, own_order);
    let (mut chains, dispersion) = chains(config, likelihood, ground, (&chosen, earlier), run)?;
    if config.sampling == Sampling::Off && base.is_none() {
        // no noise accounts for what was learned by heart
        for chain in &mut chains {
            chain.shift(&chosen.scale_correction);
        }
    }
    let likelihood = with_dispersion(likelihood, &chosen, dispersion);
    let facts = (chosen.learning_rate, standard.scale, whole.total_weight());
    let ensemble = MemberDiagnostics::new(config, &chains, likelihood, facts);
    training.members = Some(ensemble.report(&some_rows, data.schema().classes(), run.pool));
    training.chosen = format!(
        "{}{} trees of depth {}, learning rate {}{}",
        chosen.n_trees,
        if base.is_some() { " more" } else { "" },
        chosen.max_depth,
        chosen.learning_rate,
        chosen.plan.describe(),
    );
    let model = Boosted {
        family: config.family,
        schema: data.schema().clone(),
        params,
        training,
        standard,
        likelihood,
        pipeline,
        settings: (chosen.learning_rate, chosen.max_depth),
        members: config.members,
        chains,
        substitutes: base.as_ref().map_or_else(
            || UnseenSubstitutes::new(run.key.child(streams::UNSEEN)),
            |base| base.substitutes,
        ),
        thresholds: base.as_ref().map_or_else(
            || Some(run.key.child(streams::THRESHOLDS)),
            |base| base.thresholds,
        ),
        snapshots: Vec::new(),
        used_thresholds: Vec::new(),
    };
    Ok(model.with_snapshots())
}

/// The scale of a likelihood that has none of its own: of held-out residuals where there are some, since those of the training rows
/// are too small.
fn with_dispersion(
    likelihood: BoostingLikelihood,
    chosen: &ChosenSettings,
    dispersion: f64,
) -> BoostingLikelihood {
    match likelihood {
        BoostingLikelihood::Squared { .. } => BoostingLikelihood::Squared {
            sd: chosen
                .held_out
                .map_or(dispersion, |score| -2.0 * score)
                .sqrt()
                .max(MIN_SCALE),
        },
        other => other,
    }
}

/// The fitted model that a warm start begins with.
///
/// # Errors
/// When the model, the data or the parameters do not allow it.
fn base(
    config: &BoostingConfig<'_>,
    params: &Value,
    record: &Record,
    data: &Dataset,
) -> Result<Boosted> {
    check_same_family(config.family, record)?;
    let base = Boosted::from_record(config.family, record)?;
    check_same_schema(base.schema(), data)?;
    check_fixed_params(&base.params, params, FIXED)?;
    let broken = |problem: &str| Err(Error::Parameters(vec![problem.to_owned()]));
    if base.members != config.members {
        return broken(
            "the members cannot change in a warm start: keep `n_members`, `virtual_ensemble`, `n_chains` and `burn_in`",
        );
    }
    let is_squared = matches!(base.likelihood, BoostingLikelihood::Squared { .. });
    if data.schema().classes().is_none() && is_squared != config.is_squared() {
        return broken("`noise` cannot change in a warm start");
    }
    Ok(base)
}

/// Rows in the bins of a chain's own order of them; none for those that all have.
type OwnOrder<'a> = dyn Fn(usize, Key) -> Option<Binned> + Sync + 'a;

/// All chains, and the mean residual variance of the training rows.
fn chains(
    config: &BoostingConfig<'_>,
    likelihood: BoostingLikelihood,
    (columns, whole, own_order): (&ColumnInfo, &PreparedRows, &OwnOrder<'_>),
    (chosen, earlier): (&ChosenSettings, Option<&[Chain]>),
    run: &Run<'_>,
) -> Result<(Vec<Chain>, f64)> {
    let n = config.members.chains;
    let how = (chosen.learning_rate, chosen.max_depth);
    let mut settings = config.settings(likelihood, how, whole.total_weight());
    settings.n_trees = chosen.n_trees;
    settings.patience = None;
    let alone = Pool::new(1)?;
    let chains = run.pool.map(n, |at| {
        let key = run.key.child(streams::CHAINS).child(at as u64);
        // what earlier rows say is partly chance: each chain meets other chances
        let own = own_order(at, run.key.child(streams::ENCODING_ORDER).child(at as u64));
        let mut train = whole.sample();
        train.binned = own.as_ref().unwrap_or(train.binned);
        let ground = BoostingData {
            train,
            held_out: None,
            columns,
            pool: if n > 1 { &alone } else { run.pool },
            parallel_chains: &[],
        };
        let base = earlier.map(|chains| &chains[at]);
        likelihood.grow(&ground, &settings, base, key, &mut |done, held_out| {
            run.observer.step(&Progress {
                stage: "fitting",
                done: at * settings.n_trees + done,
                total: n * settings.n_trees,
                elbo: None,
                held_out,
            })
        })
    });
    let learned = chains.into_iter().collect::<Result<Vec<TrainedChain>>>()?;
    let dispersion = learned
        .iter()
        .map(|learned| learned.dispersion)
        .sum::<f64>()
        / n as f64;
    Ok((
        learned.into_iter().map(|learned| learned.chain).collect(),
        dispersion,
    ))
}
