//! Selection of learning rate, depth, number of trees and category crosses on the validation set.

use std::sync::atomic::{AtomicBool, Ordering};

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
use crate::models::boosting::config::{BoostingConfig, Hyperparameters};
use crate::models::boosting::features::{CategoryPlan, FeaturePipeline, RowSubset};
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::streams;
use crate::models::boosting::training_data::{PreparedRows, TrainingData};
use crate::numerics::order::sort_descending;
use crate::observer::Event;
use crate::par::Pool;
use crate::trees::histogram::candidate::ColumnInfo;

/// Learning rates that are compared.
const LEARNING_RATES: [f64; 2] = [0.03, 0.1];
/// Learning rates that are compared for three and four classes: the smaller one needs half as many
/// trees as that for two classes, and scores as well.
const MULTICLASS_LEARNING_RATES: [f64; 2] = [0.05, 0.1];
/// Learning rate for five classes or more. The gain of a smaller one shrinks to nothing when the
/// members are averaged, and its trees take twice as long.
const MANY_CLASSES_LEARNING_RATE: f64 = 0.1;
/// Depths that are compared.
const DEPTHS: [usize; 3] = [3, 4, 6];
/// Largest number of chains that are trained to score one candidate.
const MAX_CHAINS: usize = 3;
/// As [`MAX_CHAINS`], for five classes or more, whose rounds are expensive.
const MAX_CHAINS_OF_MANY_CLASSES: usize = 2;
/// Learning rate and depth without a validation set.
const DEFAULT: Hyperparameters = Hyperparameters {
    learning_rate: 0.03,
    max_depth: 4,
};

/// The settings that all chains are trained with.
#[derive(Debug, Clone)]
pub(super) struct ChosenSettings {
    pub(super) hyperparameters: Hyperparameters,
    pub(super) n_trees: usize,
    pub(super) plan: CategoryPlan,
    /// Mean log-likelihood of the validation set, if there was one.
    pub(super) held_out: Option<f64>,
    /// Correction of each raw output that the validation residuals call for.
    pub(super) scale_correction: Vec<f64>,
    /// The best candidate itself, which becomes the model if the fit is stopped.
    pub(super) candidate: Option<TrainedCandidate>,
    /// Whether the observer stopped the selection.
    pub(super) is_stopped: bool,
}

/// A candidate that was trained on the training part, with the trees that scored best.
#[derive(Debug, Clone)]
pub(super) struct TrainedCandidate {
    pub(super) pipeline: FeaturePipeline,
    pub(super) trained: TrainedChain,
}

/// The parts of a fitted model that a warm start continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarmStart<'a> {
    pub(super) pipeline: &'a FeaturePipeline,
    /// Its first chain.
    pub(super) chain: &'a Chain,
    pub(super) hyperparameters: Hyperparameters,
}

/// Selects the settings on the validation set of the run or on a part of the training rows.
///
/// # Errors
/// When every candidate diverges, or the observer stops the fit.
pub(super) fn choose(
    config: &BoostingConfig,
    training_data: &TrainingData<'_>,
    warm_start: Option<WarmStart<'_>>,
    run: &Run<'_>,
    training: &mut Training,
) -> Result<ChosenSettings> {
    let candidates = candidates(config, training_data.likelihood, warm_start);
    let plain_plan = CategoryPlan::without_crosses(
        training_data.data.features(),
        &training_data.encoding_targets,
    );
    let n_validation = match warm_start {
        // the fitted model may have been trained on these rows: none of them can validate it
        Some(_) => 0,
        None => n_held_out(config, run, training_data.n_rows()),
    };
    let train = training_data.rows(n_validation..training_data.n_rows());
    let plan_with_crosses = || match warm_start {
        Some(_) => None,
        None => plain_plan.with_crosses(&training_data.encoding_sample(train), run.pool),
    };
    let first_plan = || match config.category_crosses {
        Some(true) => plan_with_crosses().unwrap_or_else(|| plain_plan.clone()),
        _ => plain_plan.clone(),
    };
    let is_settled = candidates.len() == 1 && config.patience.is_none() && warm_start.is_none();
    if is_settled || (run.held_out.is_none() && n_validation == 0) {
        let hyperparameters = match candidates[..] {
            [only] => only,
            _ => Hyperparameters {
                learning_rate: config.learning_rate.unwrap_or(DEFAULT.learning_rate),
                max_depth: config.max_depth.unwrap_or(DEFAULT.max_depth),
            },
        };
        return Ok(ChosenSettings {
            hyperparameters,
            n_trees: config.n_estimators,
            plan: first_plan(),
            held_out: None,
            scale_correction: Vec::new(),
            candidate: None,
            is_stopped: false,
        });
    }
    let comparison = Comparison {
        config,
        training_data,
        warm_start,
        run,
        train,
        validation: training_data.rows(0..n_validation),
    };
    let first_plan = first_plan();
    let rows = comparison.prepare(&first_plan);
    let (mut best, scores) = comparison.compare_all(&rows, &first_plan, &candidates, training)?;
    drop(rows);
    if config.category_crosses.is_none()
        && !best.is_stopped
        && let Some(plan) = plan_with_crosses()
    {
        let (best_candidate, others): (Vec<_>, Vec<_>) = better_half(&candidates, &scores)
            .iter()
            .partition(|&&candidate| candidate == best.hyperparameters);
        let rows = comparison.prepare(&plan);
        // crosses that do not improve the best candidate are not tried with the others
        for candidates in [best_candidate, others] {
            if candidates.is_empty() {
                break;
            }
            let batch = CandidateBatch {
                candidates: &candidates,
                n_before: 0,
                n_total: candidates.len(),
            };
            let (with_crosses, _) = comparison.compare(&rows, &plan, batch, training)?;
            let is_stopped = with_crosses.is_stopped;
            let is_better = with_crosses.held_out > best.held_out;
            if is_better {
                best = with_crosses;
            }
            best.is_stopped = is_stopped;
            if is_stopped || !is_better {
                break;
            }
        }
    }
    Ok(best)
}

fn candidates(
    config: &BoostingConfig,
    likelihood: BoostingLikelihood,
    warm_start: Option<WarmStart<'_>>,
) -> Vec<Hyperparameters> {
    if let Some(warm_start) = warm_start {
        let fitted = warm_start.hyperparameters;
        return vec![Hyperparameters {
            learning_rate: config.learning_rate.unwrap_or(fitted.learning_rate),
            max_depth: config.max_depth.unwrap_or(fitted.max_depth),
        }];
    }
    let learning_rates = match (config.learning_rate, likelihood) {
        (Some(rate), _) => vec![rate],
        (None, BoostingLikelihood::Multiclass { classes: ..=4 }) => {
            MULTICLASS_LEARNING_RATES.to_vec()
        }
        (None, BoostingLikelihood::Multiclass { .. }) => vec![MANY_CLASSES_LEARNING_RATE],
        (None, _) => LEARNING_RATES.to_vec(),
    };
    let depths = config
        .max_depth
        .map_or(DEPTHS.to_vec(), |depth| vec![depth]);
    let pairs = learning_rates.iter().flat_map(|&learning_rate| {
        depths.iter().map(move |&max_depth| Hyperparameters {
            learning_rate,
            max_depth,
        })
    });
    pairs.collect()
}

/// The better half of the candidates that were tried.
fn better_half(candidates: &[Hyperparameters], scores: &[f64]) -> Vec<Hyperparameters> {
    let mut order: Vec<usize> = (0..candidates.len())
        .filter(|&at| scores[at] > f64::NEG_INFINITY)
        .collect();
    sort_descending(&mut order, scores);
    order.truncate(order.len().div_ceil(2));
    order.sort_unstable();
    order.iter().map(|&at| candidates[at]).collect()
}

/// Number of training rows that are held out as the validation set.
fn n_held_out(config: &BoostingConfig, run: &Run<'_>, n_rows: usize) -> usize {
    let needs_validation =
        config.learning_rate.is_none() || config.max_depth.is_none() || config.patience.is_some();
    if !needs_validation || run.held_out.is_some() {
        return 0;
    }
    n_validation_rows(n_rows, config.validation_fraction)
}

/// Trains candidates on the training rows and scores them on the validation rows.
#[derive(Debug, Clone, Copy)]
struct Comparison<'a> {
    config: &'a BoostingConfig,
    training_data: &'a TrainingData<'a>,
    warm_start: Option<WarmStart<'a>>,
    run: &'a Run<'a>,
    train: RowSubset<'a>,
    /// Validation rows of the dataset; the validation set of the run takes precedence.
    validation: RowSubset<'a>,
}

/// The rows of a comparison in the bins of one category plan.
#[derive(Debug)]
struct ComparisonRows {
    pipeline: FeaturePipeline,
    columns: ColumnInfo,
    train: PreparedRows,
    validation: PreparedRows,
    /// Bins of the training rows for each parallel chain, if they depend on the order of the rows.
    parallel: Vec<Option<Binned>>,
}

impl Comparison<'_> {
    /// Number of chains that score a candidate. Averaging several members removes noise, so that an
    /// ensemble can afford larger trees than a single chain: for classification, a single chain
    /// would select trees that are too small. Virtual members of one chain are scored by one chain.
    /// So are Normal distributions: several chains would select larger trees, whose intervals are
    /// too narrow.
    fn n_chains(&self) -> usize {
        let max_chains = match self.training_data.likelihood {
            _ if self.config.sampling == Sampling::Off => 1,
            BoostingLikelihood::Binary | BoostingLikelihood::Multiclass { classes: ..=4 } => {
                MAX_CHAINS
            }
            BoostingLikelihood::Multiclass { .. } => MAX_CHAINS_OF_MANY_CLASSES,
            BoostingLikelihood::Normal { .. } | BoostingLikelihood::Squared { .. } => 1,
        };
        self.config.members.chains.min(max_chains)
    }

    fn prepare(&self, plan: &CategoryPlan) -> ComparisonRows {
        let (training_data, pool) = (self.training_data, self.run.pool);
        let (pipeline, train) = match self.warm_start {
            Some(warm_start) => training_data.refit_pipeline(self.train, warm_start.pipeline, pool),
            None => training_data.fit_candidate_pipeline(self.train, plan, pool),
        };
        let validation = match self.run.held_out {
            Some(data) => {
                let key = self.run.key.child(streams::VALIDATION_ORDER);
                let dedup = Deduplicated::shuffled(data, key);
                let dedup = training_data.class_weights.weigh(data, dedup);
                let rows = RowSubset {
                    indices: &dedup.rows,
                    weights: &dedup.weights,
                };
                training_data.prepare_validation(data, rows, &pipeline)
            }
            None => {
                training_data.prepare_validation(training_data.data, self.validation, &pipeline)
            }
        };
        let sample = training_data.encoding_sample(self.train);
        let parallel = (1..self.n_chains())
            .map(|chain| {
                let key = self.run.key.child(streams::PARALLEL_ORDER);
                pipeline.reordered(&sample, &train.binned, key.child(chain as u64))
            })
            .collect();
        ComparisonRows {
            columns: training_data.columns(&pipeline, &train),
            pipeline,
            train,
            validation,
            parallel,
        }
    }

    /// The best of all candidates with this category plan, and their scores: minus infinity for a
    /// candidate that was not tried.
    ///
    /// With three classes or more, whose rounds are expensive, the search is greedy. The depths are
    /// compared with the largest learning rate, which needs the fewest trees: the two smallest
    /// depths, then deeper trees as long as they are better. Smaller learning rates are tried with
    /// the best depth only.
    fn compare_all(
        &self,
        rows: &ComparisonRows,
        plan: &CategoryPlan,
        candidates: &[Hyperparameters],
        training: &mut Training,
    ) -> Result<(ChosenSettings, Vec<f64>)> {
        let is_multiclass = matches!(
            self.training_data.likelihood,
            BoostingLikelihood::Multiclass { .. }
        );
        let n_total = candidates.len();
        if !is_multiclass || n_total == 1 {
            let batch = CandidateBatch {
                candidates,
                n_before: 0,
                n_total,
            };
            return self.compare(rows, plan, batch, training);
        }
        let mut search = GreedySearch::default();
        let mut try_batch = |search: &mut GreedySearch, candidates: &[Hyperparameters]| {
            let batch = CandidateBatch {
                candidates,
                n_before: search.tried.len(),
                n_total,
            };
            match self.compare(rows, plan, batch, training) {
                Ok(compared) => search.add(candidates, compared),
                Err(Error::Diverged { .. }) => search.add_diverged(candidates),
                Err(error) => return Err(error),
            }
            Ok(())
        };
        let rates = candidates.iter().map(|candidate| candidate.learning_rate);
        let largest_rate = rates.fold(0.0, f64::max);
        let (by_depth, slower): (Vec<Hyperparameters>, Vec<Hyperparameters>) = candidates
            .iter()
            .partition(|candidate| candidate.learning_rate >= largest_rate);
        let (first, deeper) = by_depth.split_at(by_depth.len().min(2));
        try_batch(&mut search, first)?;
        for candidate in deeper {
            // depths ascend
            let is_deepest_best = search.tried.last() == search.best_hyperparameters().as_ref();
            if search.is_stopped() || !is_deepest_best {
                break;
            }
            try_batch(&mut search, std::slice::from_ref(candidate))?;
        }
        // all of them if every tree with the largest learning rate diverged
        let best = search.best_hyperparameters();
        let slower: Vec<Hyperparameters> = slower
            .into_iter()
            .filter(|other| best.is_none_or(|best| best.max_depth == other.max_depth))
            .collect();
        if !slower.is_empty() && !search.is_stopped() {
            try_batch(&mut search, &slower)?;
        }
        let scores = candidates.iter().map(|candidate| search.score(candidate));
        let scores = scores.collect();
        let best = search.best.ok_or_else(all_diverged)?;
        Ok((best, scores))
    }

    /// The best of some candidates with this category plan, and their scores.
    fn compare(
        &self,
        rows: &ComparisonRows,
        plan: &CategoryPlan,
        batch: CandidateBatch<'_>,
        training: &mut Training,
    ) -> Result<(ChosenSettings, Vec<f64>)> {
        let CandidateBatch {
            candidates,
            n_before,
            n_total,
        } = batch;
        let train = &rows.train;
        let parallel_chains: Vec<BinnedSample<'_>> = rows
            .parallel
            .iter()
            .map(|binned| BinnedSample {
                binned: binned.as_ref().unwrap_or(&train.binned),
                ..train.sample()
            })
            .collect();
        let n = candidates.len();
        let single_thread = Pool::new(1)?;
        let data = BoostingData {
            train: train.sample(),
            held_out: Some(rows.validation.sample()),
            columns: &rows.columns,
            // several candidates are trained in parallel, with one thread each
            pool: if n > 1 { &single_thread } else { self.run.pool },
            parallel_chains: &parallel_chains,
            n_kept_rows: 0,
        };
        let is_stopped = AtomicBool::new(false);
        let runs = self.run.pool.map(n, |at| {
            if is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let likelihood = self.training_data.likelihood;
            let settings = self
                .config
                .settings(likelihood, candidates[at], train.total_weight());
            let warm_start = self.warm_start.map(|warm_start| warm_start.chain);
            let key = self.run.key.child(streams::SELECTION);
            let trained = likelihood.grow(&data, &settings, warm_start, key, &mut |round| {
                let trial = n_before + at;
                let done = trial * settings.n_trees + round.n_trees;
                self.run.observer.on_event(&Event {
                    trial: Some(trial),
                    tree: Some(round.n_trees),
                    held_out: round.held_out,
                    ..Event::new("choosing", done, n_total * settings.n_trees)
                })
            })?;
            is_stopped.fetch_or(trained.is_stopped, Ordering::Relaxed);
            Ok(Some(trained))
        });
        let mut best = best(plan, candidates, runs, training)?;
        let n_earlier = self.warm_start.map_or(0, |fitted| fitted.chain.trees.len());
        best.trained
            .chain
            .truncate(n_earlier + best.settings.n_trees);
        best.settings.is_stopped = is_stopped.into_inner();
        best.settings.candidate = Some(TrainedCandidate {
            pipeline: rows.pipeline.clone(),
            trained: best.trained,
        });
        Ok((best.settings, best.scores))
    }
}

/// Candidates that are compared with each other, after `n_before` others of at most `n_total`.
#[derive(Debug, Clone, Copy)]
struct CandidateBatch<'a> {
    candidates: &'a [Hyperparameters],
    n_before: usize,
    n_total: usize,
}

/// Candidates that were tried so far and the best of them.
#[derive(Debug, Default)]
struct GreedySearch {
    tried: Vec<Hyperparameters>,
    scores: Vec<f64>,
    best: Option<ChosenSettings>,
}

impl GreedySearch {
    fn add(&mut self, tried: &[Hyperparameters], compared: (ChosenSettings, Vec<f64>)) {
        let (mut new, scores) = compared;
        self.tried.extend(tried);
        self.scores.extend(scores);
        let is_stopped = new.is_stopped;
        if let Some(best) = self.best.take()
            && new.held_out <= best.held_out
        {
            new = best;
        }
        new.is_stopped = is_stopped;
        self.best = Some(new);
    }

    /// Candidates none of which could be trained.
    fn add_diverged(&mut self, tried: &[Hyperparameters]) {
        self.tried.extend(tried);
        self.scores.resize(self.tried.len(), f64::NEG_INFINITY);
    }

    fn best_hyperparameters(&self) -> Option<Hyperparameters> {
        self.best.as_ref().map(|best| best.hyperparameters)
    }

    /// Whether the observer stopped the last comparison.
    fn is_stopped(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.is_stopped)
    }

    /// Score of a candidate; minus infinity if it was not tried.
    fn score(&self, candidate: &Hyperparameters) -> f64 {
        let at = self.tried.iter().position(|tried| tried == candidate);
        at.map_or(f64::NEG_INFINITY, |at| self.scores[at])
    }
}

fn all_diverged() -> Error {
    Error::Diverged {
        step: 0,
        what: "every combination of learning rate and depth".to_owned(),
    }
}

/// The best candidate of a comparison.
struct BestCandidate {
    settings: ChosenSettings,
    trained: TrainedChain,
    /// Validation scores of all candidates.
    scores: Vec<f64>,
}

/// The candidate with the best validation score. Adds the candidates to the trials, and keeps the
/// loss curve if a score is better than all earlier trials. A run is `None` if it was not started.
fn best(
    plan: &CategoryPlan,
    candidates: &[Hyperparameters],
    runs: Vec<Result<Option<TrainedChain>>>,
    training: &mut Training,
) -> Result<BestCandidate> {
    let mut best: Option<(ChosenSettings, TrainedChain)> = None;
    let mut scores = vec![f64::NEG_INFINITY; candidates.len()];
    let best_earlier = training
        .trials
        .iter()
        .map(|trial| trial.held_out)
        .fold(f64::NEG_INFINITY, f64::max);
    for (at, (&hyperparameters, run)) in candidates.iter().zip(runs).enumerate() {
        let trained = match run {
            Err(Error::Diverged { .. }) | Ok(None) => continue,
            Ok(Some(trained)) => trained,
            Err(error) => return Err(error),
        };
        let Some(point) = best_point(&trained.curve) else {
            continue;
        };
        scores[at] = point.held_out;
        let what = format!(
            "depth {}, learning rate {}, {} trees{}",
            hyperparameters.max_depth,
            hyperparameters.learning_rate,
            point.n_trees,
            plan.describe(),
        );
        training.trials.push(Trial {
            what,
            held_out: point.held_out,
        });
        let best_so_far = best
            .as_ref()
            .and_then(|(best, _)| best.held_out)
            .unwrap_or(f64::NEG_INFINITY);
        if point.held_out > best_so_far {
            if point.held_out > best_earlier {
                training.curve = trained.curve.iter().map(curve_point).collect();
            }
            let settings = ChosenSettings {
                hyperparameters,
                n_trees: point.n_trees,
                plan: plan.clone(),
                held_out: Some(point.held_out),
                scale_correction: point.scale_correction,
                candidate: None,
                is_stopped: false,
            };
            best = Some((settings, trained));
        }
    }
    let (settings, trained) = best.ok_or_else(all_diverged)?;
    Ok(BestCandidate {
        settings,
        trained,
        scores,
    })
}

fn curve_point(point: &ValidationPoint) -> CurvePoint {
    CurvePoint {
        epoch: point.n_trees,
        elbo: point.train,
        held_out: Some(point.held_out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_that_diverge_leave_the_best_one_as_it_is() {
        let candidate = |max_depth| Hyperparameters {
            learning_rate: 0.1,
            max_depth,
        };
        let mut search = GreedySearch::default();
        search.add_diverged(&[candidate(2), candidate(4)]);
        assert!(search.best.is_none() && !search.is_stopped());
        let settings = ChosenSettings {
            hyperparameters: candidate(6),
            n_trees: 10,
            plan: CategoryPlan::default(),
            held_out: Some(-1.0),
            scale_correction: Vec::new(),
            candidate: None,
            is_stopped: false,
        };
        search.add(&[candidate(6)], (settings, vec![-1.0]));
        search.add_diverged(&[candidate(8)]);
        assert_eq!(search.best_hyperparameters(), Some(candidate(6)));
        let is_scored = |max_depth| search.score(&candidate(max_depth)).is_finite();
        assert_eq!([2, 4, 6, 8].map(is_scored), [false, false, true, false]);
    }
}
