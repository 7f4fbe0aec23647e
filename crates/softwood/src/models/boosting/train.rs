//! Training: deduplicate and bin the rows, select the settings on a validation set, then train the
//! chains of all members on all rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::boosting::chain::Chain;
use crate::boosting::inputs::BoostingData;
use crate::boosting::langevin::Sampling;
use crate::boosting::train_chain::{RoundReport, TrainedChain};
use crate::data::binning::binned::Binned;
use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::table::Table;
use crate::data::target::{MIN_SCALE, TargetUnits};
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::extrapolation::Extrapolation;
use crate::fit::{Fit, Run, check_fixed_params, check_same_schema};
use crate::model::{MemberReport, Model, Training};
use crate::models::boosting::config::{BoostingConfig, Members};
use crate::models::boosting::features::{EncodingTargets, FeaturePipeline, RowSubset};
use crate::models::boosting::fitted::Boosted;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::member_diagnostics::MemberDiagnostics;
use crate::models::boosting::noise_calibration::{CalibrationFolds, ChainOutputs};
use crate::models::boosting::params::{SgbParams, SglbParams};
use crate::models::boosting::selection::{ChosenSettings, WarmStart, choose};
use crate::models::boosting::streams;
use crate::models::boosting::training_data::{FittedUnits, PreparedRows, TrainingData};
use crate::observer::Event;
use crate::par::Pool;
use crate::params::Checked;
use crate::predictive::noise_calibration::NoiseCalibration;
use crate::rng::Key;
use crate::store::record::Record;
use crate::trees::histogram::candidate::ColumnInfo;

/// Parameters that a warm start cannot change.
const FIXED: &[&str] = &["monotonic_cst"];
/// Parameters of the members, which a warm start cannot change either.
const MEMBER_PARAMS: &[&str] = &["n_members", "virtual_ensemble", "n_chains", "burn_in"];

impl Fit for SgbParams {
    type Fitted = Boosted;
    const FAMILY: &'static str = "sgb";
    const SUPPORTS_WARM_START: bool = true;

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Boosted> {
        Boosted::from_record(Self::FAMILY, record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
        let json = serde_json::to_value(&**params).unwrap_or_default();
        fit(&BoostingConfig::from(&**params), &json, data, run)
    }
}

impl Fit for SglbParams {
    type Fitted = Boosted;
    const FAMILY: &'static str = "sglb";
    const SUPPORTS_WARM_START: bool = true;

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Boosted> {
        Boosted::from_record(Self::FAMILY, record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
        let json = serde_json::to_value(&**params).unwrap_or_default();
        let model = fit(&BoostingConfig::from(&**params), &json, data, run)?;
        if model.has_valid_shrinkage() {
            return Ok(model);
        }
        Err(Error::Parameters(vec![
            "`model_shrink_rate` is too large for so many trees of this learning rate: early members vanish; reduce it"
                .to_owned(),
        ]))
    }
}

fn fit(config: &BoostingConfig, params: &Value, data: &Dataset, run: &Run<'_>) -> Result<Boosted> {
    let warm_start = fitted_model(config, params, data, run)?;
    let config = &BoostingConfig {
        members: warm_start.map_or(config.members, |model| model.members),
        ..config.clone()
    };
    let fitted_units = warm_start.map(|model| FittedUnits {
        units: model.target_units,
        likelihood: model.likelihood,
    });
    let row_order = run.key.child(streams::ROW_ORDER);
    let training_data = TrainingData::new(config, data, fitted_units, row_order)?;
    let total_weight = training_data.dedup.weights.iter().sum();
    let config = &(config.clone()).with_defaults(training_data.likelihood, total_weight);
    let mut training = Training {
        target_sd: training_data.target_sd(),
        ..Training::default()
    };
    let continued = warm_start.map(|model| WarmStart {
        pipeline: &model.pipeline,
        chain: &model.chains[0],
        hyperparameters: model.hyperparameters,
    });
    let mut chosen = choose(config, &training_data, continued, run, &mut training)?;
    if let (Some(model), true) = (warm_start, chosen.is_stopped) {
        // stopped before all rows were used: the fitted model is the best so far
        let mut model = model.clone();
        model.training.is_stopped = true;
        return Ok(model);
    }
    let candidate = chosen.candidate.take().filter(|_| warm_start.is_none());
    let all_rows = training_data.rows(0..training_data.n_rows());
    let (pipeline, train) = match warm_start {
        Some(model) => training_data.refit_pipeline(all_rows, &model.pipeline, run.pool),
        None => training_data.fit_pipeline(all_rows, &chosen.plan, run.pool),
    };
    let columns = training_data.columns(&pipeline, &train);
    let diagnostic_rows = MemberDiagnostics::rows(&training_data.dedup.rows).to_vec();
    let TrainingData {
        dedup,
        units,
        likelihood,
        encoding_targets,
        ..
    } = training_data;
    let parts = ModelParts {
        config,
        params,
        data,
        units,
        target_sd: training.target_sd,
        likelihood,
        pipeline: &pipeline,
        chosen: &chosen,
        warm_start,
        run,
    };
    let ensemble = Ensemble {
        parts: &parts,
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
        folds: calibration_folds(config, likelihood, &train, warm_start),
        run,
    };
    let trained = if chosen.is_stopped {
        TrainedEnsemble::stopped()
    } else {
        ensemble.train()?
    };
    training.is_stopped = trained.is_stopped;
    let mut model = match candidate {
        // no chain was complete: the best candidate of the selection is better than a short chain
        Some(candidate) if !trained.is_complete => {
            let parts = ModelParts {
                pipeline: &candidate.pipeline,
                ..parts
            };
            let chain = TrainedChain {
                is_complete: true,
                ..candidate.trained
            };
            parts.model(TrainedEnsemble::of(chain), training)
        }
        _ => parts.model(trained, training),
    };
    let diagnostic_rows = model
        .pipeline
        .bin_rows(data.features(), MemberDiagnostics::rows(&diagnostic_rows));
    let total_weight = train.total_weight();
    let report = member_report(&model, config, &diagnostic_rows, total_weight, run.pool);
    model.training.members = Some(report);
    Ok(model)
}

/// Whether the members of a model differ on some rows.
fn member_report(
    model: &Boosted,
    config: &BoostingConfig,
    rows: &Binned,
    total_weight: f64,
    pool: &Pool,
) -> MemberReport {
    let diagnostics = MemberDiagnostics {
        config,
        members: model.members,
        chains: &model.chains,
        likelihood: model.likelihood,
        learning_rate: model.hyperparameters.learning_rate,
        target_scale: model.target_units.scale,
        total_weight,
    };
    diagnostics.report(rows, model.schema.classes(), pool)
}

/// The parts of a model besides its chains.
#[derive(Debug, Clone, Copy)]
struct ModelParts<'a> {
    config: &'a BoostingConfig,
    params: &'a Value,
    data: &'a Dataset,
    units: TargetUnits,
    target_sd: Option<f64>,
    likelihood: BoostingLikelihood,
    pipeline: &'a FeaturePipeline,
    chosen: &'a ChosenSettings,
    /// The fitted model that a warm start continues.
    warm_start: Option<&'a Boosted>,
    run: &'a Run<'a>,
}

impl ModelParts<'_> {
    /// The model of some trained chains.
    fn model(&self, trained: TrainedEnsemble, training: Training) -> Boosted {
        let TrainedEnsemble {
            mut chains,
            dispersion,
            is_complete,
            calibration,
            ..
        } = trained;
        // a stopped warm start leaves chains of different lengths
        let n_earlier = self.warm_start.map_or(0, |model| {
            model.chains[0].trees.len().min(chains[0].trees.len())
        });
        let training = Training {
            chosen: describe(
                self.chosen,
                chains[0].trees.len() - n_earlier,
                self.warm_start.is_some(),
            ),
            ..training
        };
        // the corrections are those of complete chains
        let is_corrected = calibration.is_some() || self.warm_start.is_some() || !is_complete;
        if self.config.sampling == Sampling::Off && !is_corrected {
            // without Langevin noise nothing else accounts for overfitting
            for chain in &mut chains {
                chain.shift(&self.chosen.scale_correction);
            }
        }
        let members = self.config.members;
        let likelihood = self.likelihood_of(dispersion, is_complete);
        let calibration = match (calibration, self.warm_start) {
            (Some(calibration), _) => calibration,
            // the rows that the fitted chains left out are not known
            (None, Some(model)) => kept_calibration(model, likelihood),
            (None, None) => NoiseCalibration::IDENTITY,
        };
        let (substitutes, threshold_key) = model_keys(self.warm_start, self.run.key);
        let model = Boosted {
            family: self.config.family,
            schema: self.data.schema().clone(),
            params: self.params.clone(),
            training,
            target_units: self.units,
            likelihood,
            calibration,
            pipeline: self.pipeline.clone(),
            hyperparameters: self.chosen.hyperparameters,
            members: if chains.len() == members.chains {
                members
            } else {
                members.of_chains(chains.len())
            },
            chains,
            substitutes,
            threshold_key,
            snapshots: Vec::new(),
            used_thresholds: Vec::new(),
            extrapolation: self.extrapolation(),
        };
        model.with_snapshots()
    }

    /// The likelihood of chains with this residual variance.
    fn likelihood_of(&self, dispersion: f64, is_complete: bool) -> BoostingLikelihood {
        let held_out = self.chosen.held_out.filter(|_| is_complete);
        with_dispersion(self.likelihood, held_out, dispersion)
    }

    /// What widens the predictions. Constraints hold in every member, so members keep their functions.
    fn extrapolation(&self) -> Option<Arc<Extrapolation>> {
        let extrapolation = self.run.extrapolation?;
        Some(if self.config.monotonic_cst.is_some() {
            Arc::new((**extrapolation).clone().without_shifts())
        } else {
            Arc::clone(extrapolation)
        })
    }

    /// The model of a single chain in training.
    fn snapshot(&self, trained: TrainedChain) -> Boosted {
        let training = Training {
            target_sd: self.target_sd,
            is_stopped: true,
            ..Training::default()
        };
        self.model(TrainedEnsemble::of(trained), training)
    }
}

/// The selected settings in words, with the number of new trees.
fn describe(chosen: &ChosenSettings, n_trees: usize, is_warm_start: bool) -> String {
    format!(
        "{}{} trees of depth {}, learning rate {}{}",
        n_trees,
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
    held_out: Option<f64>,
    dispersion: f64,
) -> BoostingLikelihood {
    match likelihood {
        BoostingLikelihood::Squared { .. } => BoostingLikelihood::Squared {
            sd: held_out
                .map_or(dispersion, |score| -2.0 * score)
                .sqrt()
                .max(MIN_SCALE),
        },
        other => other,
    }
}

/// The calibration of a fitted model for chains with another likelihood. A constant noise keeps the
/// standard deviation to which it was calibrated.
fn kept_calibration(fitted: &Boosted, likelihood: BoostingLikelihood) -> NoiseCalibration {
    match (fitted.likelihood, likelihood) {
        (BoostingLikelihood::Squared { sd: old }, BoostingLikelihood::Squared { sd: new }) => {
            fitted.calibration.rescaled(old / new)
        }
        _ => fitted.calibration,
    }
}

/// The rows that chains leave out to calibrate the noise; `None` for classification and for a warm
/// start, whose chains may have been trained on any row.
fn calibration_folds(
    config: &BoostingConfig,
    likelihood: BoostingLikelihood,
    train: &PreparedRows,
    warm_start: Option<&Boosted>,
) -> Option<CalibrationFolds> {
    let Members { total, chains, .. } = config.members;
    let is_calibrated = config.calibrate_noise && !likelihood.is_classification();
    // virtual members disagree in other ways than the chains that they are taken from
    if !is_calibrated || warm_start.is_some() || total != chains {
        return None;
    }
    CalibrationFolds::new(train.sample().weight, chains)
}

/// The fitted model that a warm start continues, if there is one.
///
/// # Errors
/// When the model, the data or the parameters do not allow a warm start.
fn fitted_model<'a>(
    config: &BoostingConfig,
    params: &Value,
    data: &Dataset,
    run: &Run<'a>,
) -> Result<Option<&'a Boosted>> {
    let Some(model) = run.fitted::<Boosted>(config.family)? else {
        return Ok(None);
    };
    check_same_schema(model.schema(), data)?;
    check_fixed_params(&model.params, params, FIXED)?;
    let invalid = |problem: &str| Err(Error::Parameters(vec![problem.to_owned()]));
    // the parameters decide: a fit that was stopped may have fewer members than they say
    let differs = |name: &&str| model.params[*name] != params[*name];
    if MEMBER_PARAMS.iter().any(differs) {
        return invalid(
            "the members cannot change in a warm start: keep `n_members`, `virtual_ensemble`, `n_chains` and `burn_in`",
        );
    }
    let has_constant_noise = matches!(model.likelihood, BoostingLikelihood::Squared { .. });
    if data.schema().classes().is_none() && has_constant_noise != config.has_constant_noise() {
        return invalid("`noise` cannot change in a warm start");
    }
    Ok(Some(model))
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
    parts: &'a ModelParts<'a>,
    columns: &'a ColumnInfo,
    train: &'a PreparedRows,
    encoding_order: EncodingOrder<'a>,
    /// The rows that chains leave out, if the noise is calibrated.
    folds: Option<CalibrationFolds>,
    run: &'a Run<'a>,
}

#[derive(Debug)]
struct TrainedEnsemble {
    chains: Vec<Chain>,
    /// Residual variance of the training rows, averaged over the chains.
    dispersion: f64,
    /// Whether the observer stopped training.
    is_stopped: bool,
    /// Whether every chain reached its end.
    is_complete: bool,
    /// Calibration of the noise on rows that single chains left out.
    calibration: Option<NoiseCalibration>,
}

impl TrainedEnsemble {
    /// An ensemble without chains.
    fn stopped() -> Self {
        Self {
            chains: Vec::new(),
            dispersion: 0.0,
            is_stopped: true,
            is_complete: false,
            calibration: None,
        }
    }

    /// An ensemble of one chain.
    fn of(trained: TrainedChain) -> Self {
        Self {
            chains: vec![trained.chain],
            dispersion: trained.dispersion,
            is_stopped: true,
            is_complete: trained.is_complete,
            calibration: None,
        }
    }
}

impl Ensemble<'_> {
    fn train(&self) -> Result<TrainedEnsemble> {
        let (run, parts) = (self.run, self.parts);
        let n = parts.config.members.chains;
        let mut settings = parts.config.settings(
            parts.likelihood,
            parts.chosen.hyperparameters,
            self.train.total_weight(),
        );
        settings.n_trees = parts.chosen.n_trees;
        settings.patience = None;
        let single_thread = Pool::new(1)?;
        let is_stopped = AtomicBool::new(false);
        let trained = run.pool.map(n, |at| {
            if is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let key = run.key.child(streams::CHAINS).child(at as u64);
            let order = run.key.child(streams::ENCODING_ORDER).child(at as u64);
            let reordered = self.encoding_order.binned(&self.train.binned, at, order);
            let mut train = self.train.sample();
            train.binned = reordered.as_ref().unwrap_or(train.binned);
            let own_weights = self.folds.map(|folds| folds.weights(train.weight, at));
            train.weight = own_weights.as_deref().unwrap_or(train.weight);
            let data = BoostingData {
                train,
                held_out: None,
                columns: self.columns,
                // several chains are trained in parallel, with one thread each
                pool: if n > 1 { &single_thread } else { run.pool },
                parallel_chains: &[],
                n_kept_rows: self.folds.map_or(0, CalibrationFolds::n_rows),
            };
            let warm_start = parts.warm_start.map(|model| &model.chains[at]);
            let mut on_round = |round: &RoundReport<'_>| {
                let done = at * settings.n_trees + round.n_trees;
                let event = Event {
                    member: Some(at),
                    tree: Some(round.n_trees),
                    held_out: round.held_out,
                    ..Event::new("fitting", done, n * settings.n_trees)
                };
                let snapshot = || -> Result<Box<dyn Model>> {
                    Ok(Box::new(parts.snapshot((round.copy_chain)())))
                };
                run.observer.on_event(&event.with_snapshot(&snapshot))
            };
            let trained =
                parts
                    .likelihood
                    .grow(&data, &settings, warm_start, key, &mut on_round)?;
            is_stopped.fetch_or(trained.is_stopped, Ordering::Relaxed);
            Ok(Some(trained))
        });
        let trained = trained
            .into_iter()
            .collect::<Result<Vec<Option<TrainedChain>>>>()?;
        Ok(self.kept(trained))
    }

    /// The chains of the model. If training was stopped these are the complete ones, or the longest
    /// one if none is complete; a warm start keeps every chain of the fitted model, with the new
    /// trees that it has.
    fn kept(&self, trained: Vec<Option<TrainedChain>>) -> TrainedEnsemble {
        let is_complete =
            |chain: &Option<TrainedChain>| chain.as_ref().is_some_and(|chain| chain.is_complete);
        let is_stopped =
            (trained.iter()).any(|chain| chain.as_ref().is_none_or(|chain| chain.is_stopped));
        let (all_complete, any_complete) = (
            trained.iter().all(is_complete),
            trained.iter().any(is_complete),
        );
        let mut kept_raw = Vec::new();
        let mut dispersions = Vec::new();
        let mut chains = Vec::new();
        for (at, trained) in trained.into_iter().enumerate() {
            match (trained, self.parts.warm_start) {
                (Some(trained), _) if trained.is_complete || self.parts.warm_start.is_some() => {
                    dispersions.push(trained.dispersion);
                    chains.push(trained.chain);
                    kept_raw.push(trained.kept_raw);
                }
                (None, Some(model)) => chains.push(model.chains[at].clone()),
                (Some(trained), None) if !any_complete => {
                    let n_trees = |chain: &Chain| chain.trees.len();
                    if chains
                        .first()
                        .is_none_or(|longest| n_trees(&trained.chain) > n_trees(longest))
                    {
                        chains = vec![trained.chain];
                        dispersions = vec![trained.dispersion];
                    }
                }
                _ => {}
            }
        }
        let dispersion = dispersions.iter().sum::<f64>() / dispersions.len().max(1) as f64;
        let calibration = self.folds.filter(|_| all_complete).map(|folds| {
            let sample = self.train.sample();
            let outputs = ChainOutputs {
                folds,
                likelihood: self.parts.likelihood_of(dispersion, true),
                raw: &kept_raw,
                target: sample.target,
                weight: sample.weight,
            };
            outputs.calibration()
        });
        TrainedEnsemble {
            chains,
            dispersion,
            calibration,
            is_stopped,
            is_complete: if self.parts.warm_start.is_some() {
                all_complete
            } else {
                any_complete
            },
        }
    }
}
