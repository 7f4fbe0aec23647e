//! Training: bin the rows, split off a validation set, train networks from several starts, and turn
//! the best of them into trees.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::{Training, Trial};
use crate::models::rnn_tree::fitted::{RnnTree, RnnTreeParts};
use crate::models::rnn_tree::params::RnnTreeParams;
use crate::models::rnn_tree::pruning::{FittedTree, fitted_tree};
use crate::models::rnn_tree::rows::{GivenRows, RouteRows};
use crate::models::rnn_tree::training_run::{TrainedNetwork, TrainingSetup, member_key};
use crate::params::Checked;
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::network::NetworkShape;
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
        if let CartTarget::Classes(n @ MAX_CLASSES..) = cart_target(data.schema())
            && n > MAX_CLASSES
        {
            return Err(Error::Table(format!(
                "the target has {n} classes; a tree takes at most {MAX_CLASSES}"
            )));
        }
        let set = TreeTrainingSet::new(data, params.max_bins, run.key);
        stop::check()?;
        let given = run
            .held_out
            .map(|data| GivenRows::new(&set, data))
            .transpose()?;
        let rows = RouteRows::new(
            &set,
            given.as_ref(),
            params.validation_fraction,
            params.max_categories,
        );
        stop::check()?;
        let (trees, training) = fitted_trees(params, &rows, run)?;
        let training = Training {
            target_sd: set.target_sd(),
            ..training
        };
        drop(rows);
        Ok(RnnTree::new(RnnTreeParts {
            inputs: TreeInputs::new(set, data.schema(), params.n_members, run.key),
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
    run: &Run<'_>,
) -> Result<(Vec<FittedTree>, Training)> {
    let floor = params.min_scale.unwrap_or(rows.set.floor);
    if rows.inputs.len() == 0 {
        // all columns are constant: the tree is its root
        let root = HardTree { splits: Vec::new() };
        let tree = fitted_tree(rows, &root, floor, member_key(run.key, 0));
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
    // a stable sort: of equal scores the first restart is best
    trained.sort_by(|a, b| b.score.total_cmp(&a.score));
    trained.truncate(
        params
            .n_trees
            .unwrap_or(params.n_restarts)
            .min(params.n_members),
    );
    let trees: Vec<FittedTree> = (trained.iter().enumerate())
        .map(|(at, network)| {
            let tree = HardTree::new(&setup.shape, &network.weights, &rows.inputs, &rows.set.cuts);
            fitted_tree(rows, &tree, floor, member_key(run.key, at))
        })
        .collect();
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
    let training = Training {
        curve: trained[0].curve.clone(),
        trials,
        chosen,
        is_stopped: is_stopped.into_inner(),
        ..Training::default()
    };
    Ok((trees, training))
}

fn trial(network: &TrainedNetwork) -> Trial {
    Trial {
        what: format!("{} start", network.start.name()),
        held_out: network.score,
    }
}
