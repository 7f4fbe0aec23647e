//! Training: bin the rows, split off a validation set, train networks from several starts, and turn
//! the best of them into trees.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::data::schema::Schema;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::{Training, Trial};
use crate::models::rnn_tree::fitted::{RnnTree, RnnTreeParts};
use crate::models::rnn_tree::params::{MAX_SOFT_DEPTH, RnnTreeParams};
use crate::models::rnn_tree::pruning::{
    FactorDensities, RouteTree, ScoredTree, VARIANCE_FACTORS, fitted_tree, mean_log_density,
    sparse_tree,
};
use crate::models::rnn_tree::rows::{GivenRows, RouteRows};
use crate::models::rnn_tree::soft_routes::fit_routes;
use crate::models::rnn_tree::sparse_leaves::SparseLeaves;
use crate::models::rnn_tree::starts::StartKind;
use crate::models::rnn_tree::streams;
use crate::models::rnn_tree::training_run::{TrainedNetwork, TrainingSetup, member_key};
use crate::params::Checked;
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::network::NetworkShape;
use crate::rng::Key;
use crate::stop;
use crate::store::record::Record;
use crate::trees::cart::{CartTarget, MAX_CLASSES};
use crate::trees::training_set::{TreeInputs, TreeTrainingSet, cart_target};

/// Depth of the tree if there are too few rows for a validation set.
const DEPTH_WITHOUT_VALIDATION: usize = 1;

impl Fit for RnnTreeParams {
    type Fitted = RnnTree;
    const FAMILY: &'static str = "rnn-tree";

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
        let rows = RouteRows::new(
            &set,
            given.as_ref(),
            params.validation_fraction,
            params.max_categories,
            run.key.child(streams::VALIDATION),
        );
        stop::check()?;
        let (trees, training) = fitted_trees(params, &rows, data.schema(), run)?;
        let training = Training {
            target_sd: set.target_sd(),
            ..training
        };
        Ok(RnnTree::new(RnnTreeParts {
            inputs: TreeInputs::new(&set, data.schema(), params.n_members, run.key),
            params: (**params).clone(),
            training,
            trees,
        }))
    }
}

/// The trees of the best restarts, best first.
fn fitted_trees(
    params: &RnnTreeParams,
    rows: &RouteRows<'_>,
    schema: &Schema,
    run: &Run<'_>,
) -> Result<(Vec<RouteTree>, Training)> {
    let floor = params.min_scale.unwrap_or(rows.set.floor);
    if rows.inputs.len() == 0 {
        // all columns are constant: the tree is its root
        let root = HardTree { splits: Vec::new() };
        let tree = fitted_tree(rows, &root, floor, member_key(run.key, 0)).tree;
        return Ok((vec![tree], Training::default()));
    }
    let depth = match rows.validation {
        Some(_) => params.max_depth,
        None => params.max_depth.min(DEPTH_WITHOUT_VALIDATION),
    };
    let is_stopped = AtomicBool::new(false);
    let setup = TrainingSetup {
        params,
        shape: NetworkShape {
            n_inputs: rows.inputs.len(),
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
    let trees = selected_trees(&setup, &mut trained, floor)?;
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
    Ok((trees, training))
}

/// The trees of the model, best first; `trained` is reduced to their networks in the same order.
fn selected_trees(
    setup: &TrainingSetup<'_>,
    trained: &mut Vec<TrainedNetwork>,
    floor: f64,
) -> Result<Vec<RouteTree>> {
    let TrainingSetup {
        params, rows, run, ..
    } = *setup;
    let candidates = run.pool.map(trained.len(), |at| {
        let key = member_key(run.key, at);
        best_tree(setup, &trained[at], floor, key)
    });
    stop::check()?;
    // trees that are not better than their root only add noise to those that are
    let has_significant = candidates.iter().any(|tree| tree.is_significant);
    let mut order: Vec<usize> = (0..trained.len())
        .filter(|&at| candidates[at].is_significant || !has_significant)
        .collect();
    let scores: Vec<f64> = candidates.iter().map(|tree| tree.score(rows)).collect();
    // a stable sort: of equal scores the first restart is best
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
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
            let (weights, key) = (&trained[at].weights, member_key(run.key, at));
            fit_routes(rows, &setup.shape, weights, floor, key)
        };
        let soft: Option<Vec<_>> = run.pool.map(trained.len(), fit).into_iter().collect();
        stop::check()?;
        soft
    };
    let of_hard: Vec<_> = hard.iter().map(|tree| &tree.densities).collect();
    let (hard_factor, hard_score) = best_factor(rows, &of_hard);
    let of_soft = soft.iter().flatten().map(|routes| &routes.densities);
    let (soft_factor, soft_score) = best_factor(rows, &of_soft.collect::<Vec<_>>());
    let soft = soft.filter(|_| params.posterior == Some(true) || soft_score > hard_score);
    let mut trees: Vec<RouteTree> = hard.into_iter().map(|scored| scored.tree).collect();
    for tree in &mut trees {
        tree.leaves.smoothing.factor *= hard_factor;
    }
    for (tree, routes) in trees.iter_mut().zip(soft.into_iter().flatten()) {
        let mut routes = routes.routes;
        routes.leaves.smoothing.factor *= soft_factor;
        routes.leaves.key = tree.leaves.key;
        tree.soft = Some(routes);
    }
    Ok(trees)
}

/// The tree of a network: pruned, or with leaf values of few interactions where these predict the
/// validation rows better.
fn best_tree(
    setup: &TrainingSetup<'_>,
    network: &TrainedNetwork,
    floor: f64,
    key: Key,
) -> ScoredTree {
    let rows = setup.rows;
    let hard = |weights: &[f32]| HardTree::new(&setup.shape, weights, &rows.inputs, &rows.set.cuts);
    let mut best = fitted_tree(rows, &hard(&network.weights), floor, key);
    if rows.validation.is_none() {
        return best;
    }
    // a balanced start has not seen the targets, so that the significance of its functions on the
    // training rows is honest
    let is_blind = network.start == StartKind::Balanced && !rows.has_selected_inputs();
    let starts = is_blind.then_some((&network.start_weights, true));
    for (weights, is_blind) in [(&network.weights, false)].into_iter().chain(starts) {
        let tree = hard(weights);
        let Some(sparse) = SparseLeaves::fit(rows, &setup.shape, weights, &tree, is_blind) else {
            continue;
        };
        let mut candidate = sparse_tree(rows, &tree, &sparse, floor, key);
        candidate.is_significant |= is_blind;
        let is_surer = candidate.is_significant && !best.is_significant;
        if is_surer || candidate.score(rows) > best.score(rows) {
            best = candidate;
        }
    }
    best
}

/// The factor of the leaf variances with the largest likelihood of the validation rows under the
/// mixture of all trees, and that likelihood. The trees differ, so that the mixture is wider than each
/// of them.
fn best_factor(rows: &RouteRows<'_>, trees: &[&FactorDensities]) -> (f64, f64) {
    let mut best = (1.0, f64::MIN);
    for (at, &factor) in VARIANCE_FACTORS.iter().enumerate() {
        let mut means: Vec<f64> = Vec::new();
        for densities in trees {
            let Some(densities) = densities.0.get(at) else {
                return best;
            };
            means.resize(densities.len(), 0.0);
            for (mean, density) in means.iter_mut().zip(densities) {
                *mean += density / trees.len() as f64;
            }
        }
        let score = mean_log_density(rows, &means);
        if !trees.is_empty() && score > best.1 {
            best = (factor, score);
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
