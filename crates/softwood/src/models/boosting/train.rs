//! Training: deduplicate and bin the rows, select the settings on a validation set, then train the
//! chains of all members on all rows.

use serde_json::Value;

use crate::boosting::chain::Chain;
use crate::boosting::inputs::BoostingData;
use crate::boosting::langevin::Sampling;
use crate::boosting::train_chain::TrainedChain;
use crate::data::binning::binned::Binned;
use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::table::Table;
use crate::data::target::MIN_SCALE;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run, check_fixed_params, check_same_family, check_same_schema};
use crate::model::{Model, Training};
use crate::models::boosting::config::BoostingConfig;
use crate::models::boosting::features::{EncodingTargets, FeaturePipeline, RowSubset};
use crate::models::boosting::fitted::Boosted;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::member_diagnostics::MemberDiagnostics;
use crate::models::boosting::params::{SgbParams, SglbParams};
use crate::models::boosting::selection::{ChosenSettings, WarmStart, choose};
use crate::models::boosting::streams;
use crate::models::boosting::training_data::{FittedUnits, PreparedRows, TrainingData};
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

fn fit(config: &BoostingConfig, params: Value, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
    let warm_start = run
        .warm_start
        .map(|record| read_warm_start(config, &params, record, data))
        .transpose()?;
    let warm_start = warm_start.as_ref();
    let fitted_units = warm_start.map(|model| FittedUnits {
        units: model.target_units,
        likelihood: model.likelihood,
    });
    let row_order = run.key.child(streams::ROW_ORDER);
    let training_data = TrainingData::new(config, data, fitted_units, row_order)?;
    let mut training = Training {
        target_sd: training_data.target_sd(),
        ..Training::default()
    };
    let continued = warm_start.map(|model| WarmStart {
        pipeline: &model.pipeline,
        chain: &model.chains[0],
        hyperparameters: model.hyperparameters,
    });
    let chosen = choose(config, &training_data, continued, run, &mut training)?;
    let all_rows = training_data.rows(0..training_data.n_rows());
    let (pipeline, train) = match warm_start {
        Some(model) => training_data.refit_pipeline(all_rows, &model.pipeline, run.pool),
        None => training_data.fit_pipeline(all_rows, &chosen.plan, run.pool),
    };
    let columns = training_data.columns(&pipeline, &train);
    let diagnostic_rows = pipeline.bin_rows(
        data.features(),
        MemberDiagnostics::rows(&training_data.dedup.rows),
    );
    let TrainingData {
        dedup,
        units,
        likelihood,
        encoding_targets,
        ..
    } = training_data;
    let ensemble = Ensemble {
        config,
        likelihood,
        chosen: &chosen,
        columns: &columns,
        train: &train,
        encoding_order: EncodingOrder {
            pipeline: &pipeline,
            features: data.features(),
            // the order of the rows is needed for target encoding only; training takes long, so the
            // memory is freed first
            dedup: pipeline.has_target_encoding().then_some(dedup),
            targets: encoding_targets,
        },
        warm_start: warm_start.map(|model| &model.chains[..]),
        run,
    };
    let TrainedEnsemble {
        mut chains,
        dispersion,
    } = ensemble.train()?;
    if config.sampling == Sampling::Off && warm_start.is_none() {
        // without Langevin noise nothing else accounts for overfitting
        for chain in &mut chains {
            chain.shift(&chosen.scale_correction);
        }
    }
    let likelihood = with_dispersion(likelihood, &chosen, dispersion);
    let diagnostics = MemberDiagnostics {
        config,
        chains: &chains,
        likelihood,
        learning_rate: chosen.hyperparameters.learning_rate,
        target_scale: units.scale,
        total_weight: train.total_weight(),
    };
    let report = diagnostics.report(&diagnostic_rows, data.schema().classes(), run.pool);
    training.members = Some(report);
    training.chosen = describe(&chosen, warm_start.is_some());
    let (substitutes, threshold_key) = model_keys(warm_start, run.key);
    let model = Boosted {
        family: config.family,
        schema: data.schema().clone(),
        params,
        training,
        target_units: units,
        likelihood,
        pipeline,
        hyperparameters: chosen.hyperparameters,
        members: config.members,
        chains,
        substitutes,
        threshold_key,
        snapshots: Vec::new(),
        used_thresholds: Vec::new(),
    };
    Ok(model.with_snapshots())
}

/// The selected settings in words.
fn describe(chosen: &ChosenSettings, is_warm_start: bool) -> String {
    format!(
        "{}{} trees of depth {}, learning rate {}{}",
        chosen.n_trees,
        if is_warm_start { " more" } else { "" },
        chosen.hyperparameters.max_depth,
        chosen.hyperparameters.learning_rate,
        chosen.plan.describe(),
    )
}

/// Substitutes of unseen categories and key of the threshold places; a warm start keeps those of
/// the fitted model.
fn model_keys(warm_start: Option<&Boosted>, key: Key) -> (UnseenSubstitutes, Option<Key>) {
    warm_start.map_or_else(
        || {
            let substitutes = UnseenSubstitutes::new(key.child(streams::UNSEEN));
            (substitutes, Some(key.child(streams::THRESHOLDS)))
        },
        |model| (model.substitutes, model.threshold_key),
    )
}

/// Sets the standard deviation of a likelihood with constant noise: that of the validation
/// residuals if there is a validation set, since training residuals are too small.
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

/// Reads the fitted model that a warm start continues.
///
/// # Errors
/// When the model, the data or the parameters do not allow a warm start.
fn read_warm_start(
    config: &BoostingConfig,
    params: &Value,
    record: &Record,
    data: &Dataset,
) -> Result<Boosted> {
    check_same_family(config.family, record)?;
    let model = Boosted::from_record(config.family, record)?;
    check_same_schema(model.schema(), data)?;
    check_fixed_params(&model.params, params, FIXED)?;
    let invalid = |problem: &str| Err(Error::Parameters(vec![problem.to_owned()]));
    if model.members != config.members {
        return invalid(
            "the members cannot change in a warm start: keep `n_members`, `virtual_ensemble`, `n_chains` and `burn_in`",
        );
    }
    let has_constant_noise = matches!(model.likelihood, BoostingLikelihood::Squared { .. });
    if data.schema().classes().is_none() && has_constant_noise != config.has_constant_noise() {
        return invalid("`noise` cannot change in a warm start");
    }
    Ok(model)
}

/// Computes the ordered target encoding of the training rows in a random order for each chain. The
/// encoding of a row is partly chance, since it uses only the rows before it; different orders make
/// the errors of the chains independent.
#[derive(Debug)]
struct EncodingOrder<'a> {
    pipeline: &'a FeaturePipeline,
    features: &'a Table,
    /// The training rows; `None` if no column is target-encoded.
    dedup: Option<Deduplicated>,
    targets: EncodingTargets,
}

impl EncodingOrder<'_> {
    /// Bins of the training rows for one chain; `None` for the bins of the fit, which the first
    /// chain uses.
    fn binned(&self, fitted: &Binned, chain: usize, key: Key) -> Option<Binned> {
        let dedup = self.dedup.as_ref().filter(|_| chain > 0)?;
        let rows = RowSubset {
            indices: &dedup.rows,
            weights: &dedup.weights,
        };
        let sample = self.targets.sample(self.features, rows);
        self.pipeline.reordered(&sample, fitted, key)
    }
}

/// All chains of a model and what they are trained on.
#[derive(Debug)]
struct Ensemble<'a> {
    config: &'a BoostingConfig,
    likelihood: BoostingLikelihood,
    chosen: &'a ChosenSettings,
    columns: &'a ColumnInfo,
    train: &'a PreparedRows,
    encoding_order: EncodingOrder<'a>,
    /// Chains of the fitted model that a warm start continues.
    warm_start: Option<&'a [Chain]>,
    run: &'a Run<'a>,
}

#[derive(Debug)]
struct TrainedEnsemble {
    chains: Vec<Chain>,
    /// Residual variance of the training rows, averaged over the chains.
    dispersion: f64,
}

impl Ensemble<'_> {
    fn train(&self) -> Result<TrainedEnsemble> {
        let (run, chosen) = (self.run, self.chosen);
        let n = self.config.members.chains;
        let mut settings = self.config.settings(
            self.likelihood,
            chosen.hyperparameters,
            self.train.total_weight(),
        );
        settings.n_trees = chosen.n_trees;
        settings.patience = None;
        let single_thread = Pool::new(1)?;
        let chains = run.pool.map(n, |at| {
            let key = run.key.child(streams::CHAINS).child(at as u64);
            let order = run.key.child(streams::ENCODING_ORDER).child(at as u64);
            let reordered = self.encoding_order.binned(&self.train.binned, at, order);
            let mut train = self.train.sample();
            train.binned = reordered.as_ref().unwrap_or(train.binned);
            let data = BoostingData {
                train,
                held_out: None,
                columns: self.columns,
                // several chains are trained in parallel, with one thread each
                pool: if n > 1 { &single_thread } else { run.pool },
                parallel_chains: &[],
            };
            let warm_start = self.warm_start.map(|chains| &chains[at]);
            let mut observer = |done, held_out| {
                run.observer.step(&Progress {
                    stage: "fitting",
                    done: at * settings.n_trees + done,
                    total: n * settings.n_trees,
                    elbo: None,
                    held_out,
                })
            };
            self.likelihood
                .grow(&data, &settings, warm_start, key, &mut observer)
        });
        let trained = chains.into_iter().collect::<Result<Vec<TrainedChain>>>()?;
        let dispersion = trained
            .iter()
            .map(|trained| trained.dispersion)
            .sum::<f64>()
            / n as f64;
        Ok(TrainedEnsemble {
            chains: trained.into_iter().map(|trained| trained.chain).collect(),
            dispersion,
        })
    }
}
