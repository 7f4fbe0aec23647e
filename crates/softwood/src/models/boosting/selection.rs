//! Choosing step size, depth, length of the chains and what to make of categories, on held-out rows.

use crate::boosting::chain::Chain;
use crate::boosting::early_stopping::{ValidationPoint, best_point};
use crate::boosting::inputs::{BinnedSample, BoostingData};
use crate::boosting::langevin::Sampling;
use crate::boosting::train_chain::TrainedChain;
use crate::data::binning::binned::Binned;
use crate::data::dedup::Deduplicated;
use crate::data::split::n_validation_rows;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::model::{CurvePoint, Training, Trial};
use crate::models::boosting::config::BoostingConfig;
use crate::models::boosting::features::{CategoryPlan, FeaturePipeline, RowSubset};
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::streams;
use crate::models::boosting::training_data::{PreparedRows, TrainingData};
use crate::observer::Progress;
use crate::par::Pool;
use crate::trees::histogram::candidate::ColumnInfo;

/// Step sizes and depths that are tried.
const RATES: [f64; 2] = [0.03, 0.1];
const DEPTHS: [usize; 3] = [3, 4, 6];
/// Most chains that are grown to judge one of them.
const MAX_CHAINS: usize = 3;
/// Where nothing is held out to choose by.
const SAFE: (f64, usize) = (0.03, 4);

/// What all chains are grown with.
#[derive(Debug, Clone)]
pub(super) struct ChosenSettings {
    pub(super) learning_rate: f64,
    pub(super) max_depth: usize,
    pub(super) n_trees: usize,
    pub(super) plan: CategoryPlan,
    /// Mean held-out log-likelihood, where it was looked at.
    pub(super) held_out: Option<f64>,
    /// What held-out rows ask to be added to each raw output.
    pub(super) scale_correction: Vec<f64>,
}

/// A model to go on from: how it sees rows, its first chain, its step size and depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarmStart<'a> {
    pub(super) pipeline: &'a FeaturePipeline,
    pub(super) chain: &'a Chain,
    pub(super) settings: (f64, usize),
}

/// Chooses on rows that are given, or on a part of the training rows.
pub(super) fn choose(
    config: &BoostingConfig<'_>,
    training_data: &TrainingData<'_>,
    before: Option<WarmStart<'_>>,
    run: &Run<'_>,
    training: &mut Training,
) -> Result<ChosenSettings> {
    let candidates = candidates(config, before);
    let singles = CategoryPlan::singles(training_data.data.features(), &training_data.targets);
    let with = |plan: &CategoryPlan, (learning_rate, max_depth)| ChosenSettings {
        learning_rate,
        max_depth,
        n_trees: config.n_estimators,
        plan: plan.clone(),
        held_out: None,
        scale_correction: Vec::new(),
    };
    let n_validation = match before {
        // the model may have been trained on these rows: none of them can judge it
        Some(_) => 0,
        None => n_held_out(config, run, training_data.n_rows()),
    };
    let train = training_data.rows(n_validation..training_data.n_rows());
    let together = |is_wanted: bool| {
        (is_wanted && before.is_none())
            .then(|| {
                singles.with_crosses(
                    training_data.data.features(),
                    train,
                    &training_data.targets,
                    run.pool,
                )
            })
            .flatten()
    };
    let is_settled = candidates.len() == 1 && config.patience.is_none() && before.is_none();
    if is_settled || (run.held_out.is_none() && n_validation == 0) {
        let safe = match candidates[..] {
            [only] => only,
            _ => (
                config.learning_rate.unwrap_or(SAFE.0),
                config.max_depth.unwrap_or(SAFE.1),
            ),
        };
        let plan = together(config.category_crosses == Some(true)).unwrap_or(singles);
        return Ok(with(&plan, safe));
    }
    let tournament = Tournament {
        config,
        training_data,
        before,
        run,
        train,
        validation: training_data.rows(0..n_validation),
    };
    let first = match config.category_crosses {
        Some(true) => together(true).unwrap_or_else(|| singles.clone()),
        _ => singles.clone(),
    };
    let (mut best, scores) = tournament.compare(&first, &candidates, training)?;
    if config.category_crosses.is_none()
        && let Some(plan) = together(true)
    {
        let (tried, others): (Vec<_>, Vec<_>) = promising(&candidates, &scores)
            .iter()
            .partition(|&&candidate| candidate == (best.learning_rate, best.max_depth));
        // sets that do not help one candidate are not tried with the others
        for candidates in [tried, others] {
            if candidates.is_empty() {
                break;
            }
            let (again, _) = tournament.compare(&plan, &candidates, training)?;
            let is_better = again.held_out > best.held_out;
            if is_better {
                best = again;
            } else {
                break;
            }
        }
    }
    Ok(best)
}

fn candidates(config: &BoostingConfig<'_>, before: Option<WarmStart<'_>>) -> Vec<(f64, usize)> {
    if let Some(before) = before {
        let (rate, depth) = before.settings;
        return vec![(
            config.learning_rate.unwrap_or(rate),
            config.max_depth.unwrap_or(depth),
        )];
    }
    let rates = config
        .learning_rate
        .map_or(RATES.to_vec(), |rate| vec![rate]);
    let depths = config
        .max_depth
        .map_or(DEPTHS.to_vec(), |depth| vec![depth]);
    let pairs = rates
        .iter()
        .flat_map(|&rate| depths.iter().map(move |&depth| (rate, depth)));
    pairs.collect()
}

/// The better half of the candidates.
fn promising(candidates: &[(f64, usize)], scores: &[f64]) -> Vec<(f64, usize)> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.truncate(candidates.len().div_ceil(2));
    order.sort_unstable();
    order.iter().map(|&at| candidates[at]).collect()
}

/// Number of training rows that are held out to choose by.
fn n_held_out(config: &BoostingConfig<'_>, run: &Run<'_>, n_rows: usize) -> usize {
    let is_choosing =
        config.learning_rate.is_none() || config.max_depth.is_none() || config.patience.is_some();
    if !is_choosing || run.held_out.is_some() {
        return 0;
    }
    n_validation_rows(n_rows, config.validation_fraction)
}

/// Candidates that are grown on some rows and judged by others.
#[derive(Debug, Clone, Copy)]
struct Tournament<'a> {
    config: &'a BoostingConfig<'a>,
    training_data: &'a TrainingData<'a>,
    before: Option<WarmStart<'a>>,
    run: &'a Run<'a>,
    train: RowSubset<'a>,
    validation: RowSubset<'a>,
}

impl Tournament<'_> {
    /// Chains that judge each candidate. A mixture of several members bears more noise than one chain, which would ask for class
    /// trees that are too plain. Members of one chain are judged by one, and so are Normal laws: there the bolder trees
    /// that several ask for leave intervals too narrow.
    fn n_chains(&self) -> usize {
        let is_of_classes = matches!(
            self.training_data.likelihood,
            BoostingLikelihood::Binary | BoostingLikelihood::Multiclass { .. }
        );
        if is_of_classes && self.config.sampling != Sampling::Off {
            self.config.members.chains.min(MAX_CHAINS)
        } else {
            1
        }
    }

    fn prepare(
        &self,
        plan: &CategoryPlan,
    ) -> (ColumnInfo, PreparedRows, PreparedRows, Vec<Option<Binned>>) {
        let (training_data, pool) = (self.training_data, self.run.pool);
        let (pipeline, train) = match self.before {
            Some(before) => training_data.train_on(self.train, before.pipeline, pool),
            None => training_data.train(self.train, plan, pool),
        };
        let judge = match self.run.held_out {
            Some(data) => {
                let dedup = training_data.classes.weigh(
                    data,
                    Deduplicated::shuffled(data, self.run.key.child(streams::VALIDATION_ORDER)),
                );
                let rows = RowSubset {
                    numbers: &dedup.rows,
                    weights: &dedup.weights,
                };
                training_data.judge(data, rows, &pipeline)
            }
            None => training_data.judge(training_data.data, self.validation, &pipeline),
        };
        let others = (1..self.n_chains())
            .map(|at| {
                let rows = (self.train, &train.binned);
                let key = self.run.key.child(streams::PARALLEL_ORDER).child(at as u64);
                pipeline.reordered(
                    training_data.data.features(),
                    rows,
                    &training_data.targets,
                    key,
                )
            })
            .collect();
        (
            training_data.columns(&pipeline, &train),
            train,
            judge,
            others,
        )
    }

    /// The best of the candidates under a plan, and the scores of all.
    fn compare(
        &self,
        plan: &CategoryPlan,
        candidates: &[(f64, usize)],
        training: &mut Training,
    ) -> Result<(ChosenSettings, Vec<f64>)> {
        let (columns, train, judge, others) = self.prepare(plan);
        let parallel_chains: Vec<BinnedSample<'_>> = others
            .iter()
            .map(|own| BinnedSample {
                binned: own.as_ref().unwrap_or(&train.binned),
                ..train.sample()
            })
            .collect();
        let n = candidates.len();
        let alone = Pool::new(1)?;
        let ground = BoostingData {
            train: train.sample(),
            held_out: Some(judge.sample()),
            columns: &columns,
            pool: if n > 1 { &alone } else { self.run.pool },
            parallel_chains: &parallel_chains,
        };
        let runs = self.run.pool.map(n, |at| {
            let likelihood = self.training_data.likelihood;
            let settings = self
                .config
                .settings(likelihood, candidates[at], train.total_weight());
            let base = self.before.map(|before| before.chain);
            let key = self.run.key.child(streams::SELECTION);
            likelihood.grow(&ground, &settings, base, key, &mut |done, held_out| {
                self.run.observer.step(&Progress {
                    stage: "choosing",
                    done: at * settings.n_trees + done,
                    total: n * settings.n_trees,
                    elbo: None,
                    held_out,
                })
            })
        });
        best(plan, candidates, runs, training)
    }
}

/// The candidate that held-out rows like best, and the scores of all.
fn best(
    plan: &CategoryPlan,
    candidates: &[(f64, usize)],
    runs: Vec<Result<TrainedChain>>,
    training: &mut Training,
) -> Result<(ChosenSettings, Vec<f64>)> {
    let mut best: Option<ChosenSettings> = None;
    let mut scores = vec![f64::NEG_INFINITY; candidates.len()];
    let most = training
        .trials
        .iter()
        .map(|trial| trial.held_out)
        .fold(f64::NEG_INFINITY, f64::max);
    for (at, (&(learning_rate, max_depth), run)) in candidates.iter().zip(runs).enumerate() {
        let TrainedChain { curve, .. } = match run {
            Err(Error::Diverged { .. }) => continue,
            other => other?,
        };
        let Some(point) = best_point(&curve) else {
            continue;
        };
        scores[at] = point.held_out;
        let what = format!(
            "depth {max_depth}, learning rate {learning_rate}, {} trees{}",
            point.n_trees,
            plan.describe(),
        );
        training.trials.push(Trial {
            what,
            held_out: point.held_out,
        });
        let least = best
            .as_ref()
            .and_then(|best| best.held_out)
            .unwrap_or(f64::NEG_INFINITY);
        if point.held_out > least {
            if point.held_out > most {
                training.curve = curve.iter().map(curve_point).collect();
            }
            best = Some(ChosenSettings {
                learning_rate,
                max_depth,
                n_trees: point.n_trees,
                plan: plan.clone(),
                held_out: Some(point.held_out),
                scale_correction: point.scale_correction,
            });
        }
    }
    let best = best.ok_or(Error::Diverged {
        step: 0,
        what: "every combination of step size and depth".to_owned(),
    })?;
    Ok((best, scores))
}

fn curve_point(point: &ValidationPoint) -> CurvePoint {
    CurvePoint {
        epoch: point.n_trees,
        elbo: point.train,
        held_out: Some(point.held_out),
    }
}
