//! Training: bin the rows, split off a validation set, train networks from several starts, and turn
//! the best of them into trees.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::data::schema::Schema;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::{Training, Trial};
use crate::models::rnn_tree::fitted::{RnnTree, RnnTreeParts};
use crate::models::rnn_tree::noise_calibration::{UnseenMeans, calibrate};
use crate::models::rnn_tree::params::{MAX_SOFT_DEPTH, RnnTreeParams};
use crate::models::rnn_tree::pruning::{
    HeldOutPredictions, RouteTree, RoutedTree, ScoredTree, VARIANCE_FACTORS, fitted_tree,
    mean_log_density, sparse_tree,
};
use crate::models::rnn_tree::rows::{FitRow, GivenRows, RouteRows, ValidationSplit};
use crate::models::rnn_tree::soft_routes::fit_routes;
use crate::models::rnn_tree::sparse_leaves::{LeafRoutes, SparseLeaves};
use crate::models::rnn_tree::starts::StartKind;
use crate::models::rnn_tree::streams;
use crate::models::rnn_tree::training_run::{TrainedNetwork, TrainingSetup, member_key};
use crate::numerics::order::sort_descending;
use crate::params::Checked;
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::network::NetworkShape;
use crate::rng::Key;
use crate::stop;
use crate::store::record::Record;
use crate::trees::cart::{CartTarget, MAX_CLASSES};
use crate::trees::training_set::{TreeInputs, TreeTrainingSet, cart_target};

/// Number of fits without some of the rows that score the values of a balanced start.
const N_FITS: usize = 5;
/// Depth of the tree if there are too few rows for a validation set.
const DEPTH_WITHOUT_VALIDATION: usize = 1;
/// Number of restarts that share a validation set, if there are several.
pub(super) const RESTARTS_PER_FOLD: usize = 2;
/// Tables with more rows have one validation set: it is large enough, and each set needs memory.
const MAX_FOLD_ROWS: usize = 20_000;

impl Fit for RnnTreeParams {
    type Fitted = RnnTree;
    const FAMILY: &'static str = "rnn-tree";

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<RnnTree> {
        RnnTree::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<RnnTree> {
        if let CartTarget::Classes(n) = cart_target(data.schema())
            && n > MAX_CLASSES
        {
            return Err(Error::Table(format!(
                "the target has {n} classes; a tree takes at most {MAX_CLASSES}"
            )));
        }
        let set = TreeTrainingSet::new(data, params.max_bins, run.key);
        stop::check()?;
        let given = run.held_out.map(|data| GivenRows::new(&set, data));
        let key = run.key.child(streams::VALIDATION);
        let split = match given {
            Some(_) => None,
            None => ValidationSplit::new(&set.weight, params.validation_fraction, key),
        };
        let inputs = RouteRows::inputs(&set, params.max_categories);
        let fold = |fold: usize| {
            RouteRows::new(&set, given.as_ref(), inputs.clone(), split.as_ref(), fold)
        };
        let n_folds = n_folds(params, split.as_ref(), set.n_rows());
        let rows: Vec<RouteRows<'_>> = (0..n_folds).map(fold).collect();
        stop::check()?;
        let SelectedTrees {
            trees,
            unseen,
            training,
        } = fitted_trees(params, &rows, data.schema(), run)?;
        let training = Training {
            target_sd: set.target_sd(),
            ..training
        };
        let mut parts = RnnTreeParts {
            inputs: TreeInputs::new(&set, data.schema(), params.n_members, run.key)
                .extrapolating(run.extrapolation),
            params: (**params).clone(),
            training,
            trees,
        };
        calibrate(&mut parts, &rows, &unseen);
        stop::check()?;
        Ok(RnnTree::new(parts))
    }
}

/// Number of validation sets: several for a model of several trees, so that the trees together are
/// trained on all rows. Trees of which one is chosen are compared on the same rows.
fn n_folds(params: &RnnTreeParams, split: Option<&ValidationSplit>, n_rows: usize) -> usize {
    let is_single = params.n_trees == Some(1) || params.n_members == 1;
    match split {
        Some(split) if !is_single && n_rows <= MAX_FOLD_ROWS => {
            let n_pairs = (params.n_restarts / RESTARTS_PER_FOLD).max(1);
            n_pairs.min(split.n_folds())
        }
        _ => 1,
    }
}

/// The trees of a model, their predictions for the rows that they have not seen, and the course of the
/// training.
#[derive(Default)]
struct SelectedTrees {
    trees: Vec<RouteTree>,
    unseen: Vec<UnseenMeans>,
    training: Training,
}

/// The trees of the best restarts, best first.
fn fitted_trees(
    params: &RnnTreeParams,
    rows: &[RouteRows<'_>],
    schema: &Schema,
    run: &Run<'_>,
) -> Result<SelectedTrees> {
    let first = &rows[0];
    let floor = params.min_scale.unwrap_or(first.set.floor);
    if first.inputs.len() == 0 {
        // all columns are constant: the tree is its root
        let root = HardTree { splits: Vec::new() };
        let tree = fitted_tree(first, &root, floor, member_key(run.key, 0)).tree;
        return Ok(SelectedTrees {
            trees: vec![tree],
            ..SelectedTrees::default()
        });
    }
    let depth = match first.validation {
        Some(_) => params.max_depth,
        None => params.max_depth.min(DEPTH_WITHOUT_VALIDATION),
    };
    let is_stopped = AtomicBool::new(false);
    let setup = TrainingSetup {
        params,
        shape: NetworkShape {
            n_inputs: first.inputs.len(),
            n_hidden: params.n_hidden,
            depth,
        },
        rows,
        schema,
        run,
        is_stopped: &is_stopped,
    };
    let trained = run.pool.map(params.n_restarts, |restart| {
        // a stopped fit keeps the networks that it has
        if restart > 0 && is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        setup.train(restart).map(Some)
    });
    let trained: Result<Vec<_>> = trained.into_iter().filter_map(Result::transpose).collect();
    let mut trained = trained?;
    let trials = trained.iter().map(trial).collect();
    let (trees, unseen) = selected_trees(&setup, &mut trained, floor)?;
    let is_soft = trees[0].soft.is_some();
    let chosen = match trees.as_slice() {
        [tree] => format!(
            "{} leaves, {} start",
            tree.structure.n_leaves(),
            trained[0].start.name()
        ),
        trees => format!(
            "{} trees, the best with {} leaves, {} start",
            trees.len(),
            trees[0].structure.n_leaves(),
            trained[0].start.name()
        ),
    };
    let routes = if is_soft {
        "posterior over routes"
    } else {
        "most probable routes"
    };
    let chosen = format!("{chosen}, {routes}");
    let training = Training {
        curve: trained[0].curve.clone(),
        trials,
        chosen,
        is_stopped: is_stopped.into_inner(),
        ..Training::default()
    };
    Ok(SelectedTrees {
        trees,
        unseen,
        training,
    })
}

/// The trees of the model, best first, and their predictions for the validation rows; `trained` is reduced to
/// their networks in the same order.
fn selected_trees(
    setup: &TrainingSetup<'_>,
    trained: &mut Vec<TrainedNetwork>,
    floor: f64,
) -> Result<(Vec<RouteTree>, Vec<UnseenMeans>)> {
    let TrainingSetup {
        params, rows, run, ..
    } = *setup;
    let candidates = run.pool.map(trained.len(), |at| {
        let key = member_key(run.key, at);
        best_tree(setup, &trained[at], floor, key)
    });
    stop::check()?;
    // trees that are not better than their root, or far below the best tree, only add noise
    let has_significant = candidates.iter().any(|tree| tree.is_significant);
    let gain = |at: usize| candidates[at].gain;
    let mut order: Vec<usize> = (0..trained.len())
        .filter(|&at| candidates[at].is_significant || !has_significant)
        .collect();
    // a stable sort: of equal gains the first restart is best
    let gains: Vec<f64> = candidates.iter().map(|tree| tree.gain.mean).collect();
    sort_descending(&mut order, &gains);
    let best = gain(order[0]);
    order.retain(|&at| !gain(at).is_far_below(&best));
    let n_trees = params.n_trees.unwrap_or(params.n_restarts);
    order.truncate(n_trees.min(params.n_members));
    let mut candidates: Vec<Option<ScoredTree>> = candidates.into_iter().map(Some).collect();
    let hard: Vec<ScoredTree> = (order.iter())
        .filter_map(|&at| candidates[at].take())
        .collect();
    *trained = order.iter().map(|&at| trained[at].clone()).collect();
    stop::check()?;
    let soft = if params.posterior == Some(false) || setup.shape.depth > MAX_SOFT_DEPTH {
        None
    } else {
        let fit = |at: usize| {
            let (network, key) = (&trained[at], member_key(run.key, at));
            let rows = &setup.rows[network.fold];
            fit_routes(rows, &setup.shape, &network.weights, floor, key)
        };
        let soft: Option<Vec<_>> = run.pool.map(trained.len(), fit).into_iter().collect();
        stop::check()?;
        soft
    };
    let folds: Vec<usize> = trained.iter().map(|network| network.fold).collect();
    let of_hard = hard.iter().map(|tree| &tree.held_out);
    let (hard_factor, hard_score) = best_factor(rows, folds.iter().copied().zip(of_hard));
    let of_soft = soft.iter().flatten().map(|routes| &routes.held_out);
    let (soft_factor, soft_score) = best_factor(rows, folds.iter().copied().zip(of_soft));
    let soft = soft.filter(|_| params.posterior == Some(true) || soft_score > hard_score);
    let (mut trees, mut means): (Vec<RouteTree>, Vec<Vec<f64>>) = (hard.into_iter())
        .map(|scored| (scored.tree, scored.held_out.means))
        .unzip();
    for tree in &mut trees {
        tree.leaves.smoothing.factor *= hard_factor;
    }
    for (at, fitted) in soft.into_iter().flatten().enumerate() {
        let mut routes = fitted.routes;
        routes.leaves.smoothing.factor *= soft_factor;
        routes.leaves.key = trees[at].leaves.key;
        trees[at].soft = Some(routes);
        means[at] = fitted.held_out.means;
    }
    let unseen = folds.into_iter().zip(means);
    let unseen = unseen.map(|(fold, means)| UnseenMeans { fold, means });
    Ok((trees, unseen.collect()))
}

/// The tree of a network: pruned, or with leaf values of few interactions where these predict the
/// validation rows better.
fn best_tree(
    setup: &TrainingSetup<'_>,
    network: &TrainedNetwork,
    floor: f64,
    key: Key,
) -> ScoredTree {
    let rows = &setup.rows[network.fold];
    let hard = |weights: &[f32]| HardTree::new(&setup.shape, weights, &rows.inputs, &rows.set.cuts);
    let mut best = fitted_tree(rows, &hard(&network.weights), floor, key);
    if rows.validation.is_none() {
        return best;
    }
    let n_leaves = setup.shape.n_leaves();
    let soft_routes = |weights: &[f32]| LeafRoutes::of_network(&setup.shape, weights, &rows.inputs);
    let train = || -> Vec<FitRow> { rows.train.iter().collect() };
    let mut candidates = Vec::new();
    let tree = hard(&network.weights);
    let refitted = RoutedTree::refitted(rows, &tree);
    let leaf = |row: usize| refitted.leaf(rows, row);
    let hard_routes = [LeafRoutes::Hard(&leaf)];
    if let Some(sparse) = SparseLeaves::fit(rows, n_leaves, &hard_routes, leaf, (train(), false)) {
        candidates.push((sparse, refitted, Vec::new()));
    }
    let leaf = |row: usize| tree.leaf(rows.train.binned, row);
    let routes = soft_routes(&network.weights);
    if let Some(sparse) = SparseLeaves::fit(rows, n_leaves, &routes, leaf, (train(), false)) {
        candidates.push((sparse, RoutedTree::new(rows, &tree), Vec::new()));
    }
    let score = |(sparse, routed, folds): (SparseLeaves, RoutedTree, Vec<_>)| {
        sparse_tree(rows, routed, &sparse, &folds, (floor, key))
    };
    let mut candidates: Vec<ScoredTree> = candidates.into_iter().map(score).collect();
    // a balanced start has not seen the targets, so that the significance of its functions on all
    // rows is honest; validation rows are scored by functions that other rows select
    if network.start == StartKind::Balanced && !rows.has_selected_inputs() {
        let tree = hard(&network.start_weights);
        let leaf = |row: usize| tree.leaf(rows.train.binned, row);
        let routes = soft_routes(&network.start_weights);
        let fit = |fit_rows| SparseLeaves::fit(rows, n_leaves, &routes, leaf, (fit_rows, true));
        if let Some(sparse) = fit(rows.all()) {
            let n_fits = if rows.is_split { N_FITS } else { 0 };
            let without = |fold: usize| fit(rows.without(fold, n_fits));
            let folds: Vec<_> = (0..n_fits).map(without).collect();
            let mut candidate = score((sparse, RoutedTree::new(rows, &tree), folds));
            candidate.is_significant = true;
            candidates.push(candidate);
        }
    }
    for candidate in candidates {
        let is_surer = candidate.is_significant && !best.is_significant;
        if is_surer || candidate.score(rows) > best.score(rows) {
            best = candidate;
        }
    }
    best
}

/// The factor of the leaf variances with the largest likelihood of the validation rows under the
/// mixture of the trees of their fold, and that likelihood. The trees differ, so that the mixture is
/// wider than each of them.
fn best_factor<'a>(
    rows: &[RouteRows<'_>],
    trees: impl Iterator<Item = (usize, &'a HeldOutPredictions)>,
) -> (f64, f64) {
    let mut of_fold: Vec<Vec<&HeldOutPredictions>> = vec![Vec::new(); rows.len()];
    for (fold, held_out) in trees {
        of_fold[fold].push(held_out);
    }
    let mut best = (1.0, f64::MIN);
    for (at, &factor) in VARIANCE_FACTORS.iter().enumerate() {
        let (mut sum, mut n_folds) = (0.0, 0.0);
        for (rows, trees) in rows
            .iter()
            .zip(&of_fold)
            .filter(|(_, trees)| !trees.is_empty())
        {
            let mut means: Vec<f64> = Vec::new();
            for held_out in trees {
                let Some(densities) = held_out.densities.get(at) else {
                    return best;
                };
                means.resize(densities.len(), 0.0);
                for (mean, density) in means.iter_mut().zip(densities) {
                    *mean += density / trees.len() as f64;
                }
            }
            sum += mean_log_density(rows, &means);
            n_folds += 1.0;
        }
        if n_folds > 0.0 && sum / n_folds > best.1 {
            best = (factor, sum / n_folds);
        }
    }
    best
}

fn trial(network: &TrainedNetwork) -> Trial {
    Trial {
        what: format!("{} start", network.start.name()),
        held_out: network.score,
    }
}
