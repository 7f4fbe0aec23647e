//! Fitting: distinct rows, bins, a full tree, a choice by cross-validation, a pruned tree.

use crate::data::dataset::Dataset;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::tree::fitted::{Tree, TreeParts};
use crate::models::tree::leaf::Smoothing;
use crate::models::tree::params::TreeParams;
use crate::models::tree::pruning_cv::{PruningCandidates, choose};
use crate::observer::Progress;
use crate::params::Checked;
use crate::store::record::Record;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::cart::{CartLimits, grow};
use crate::trees::training_set::TreeTrainingSet;

/// Streams of the run's key besides those of the trees, which are numbered from 0.
mod streams {
    pub(super) const ROW_ORDER: u64 = 1 << 32;
    pub(super) const UNSEEN: u64 = ROW_ORDER + 1;
}

impl Fit for TreeParams {
    type Fitted = Tree;
    const FAMILY: &'static str = "tree";

    fn restore(record: &Record) -> Result<Tree> {
        Tree::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Tree> {
        let training_set =
            TreeTrainingSet::new(data, params.max_bins, run.key.child(streams::ROW_ORDER));
        let limits = CartLimits {
            max_depth: params.max_depth,
            min_weight: params.min_child_weight,
            n_tried: None,
        };
        let observer = || {
            run.observer.step(&Progress {
                stage: "growing",
                done: 0,
                total: 1,
                elbo: None,
                held_out: None,
            })
        };
        let field = training_set.cart_data(run.pool);
        let full = grow(
            &field,
            &training_set.weight,
            &limits,
            run.key.child(0),
            &observer,
        )?;
        let tree = NodeStatistics::new(training_set.kind, &full.structure, &full.leaves);
        let path = tree.path();
        let n_full = full.structure.n_leaves();
        let candidates =
            PruningCandidates::new(&path, n_full, params.ccp_alpha, params.max_leaf_nodes);
        let floor = params.min_scale.unwrap_or(training_set.floor);
        let plain = Smoothing::plain(training_set.kind, tree.stats(0), floor);
        let chosen = choose(&training_set, &candidates, &limits, &plain, run)?;
        let (structure, leaves) = tree.pruned(&full.structure, &path, chosen.alpha);
        let training = Training {
            chosen: format!(
                "{} leaves of {n_full}, ccp_alpha {:.3e}",
                structure.n_leaves(),
                chosen.alpha
            ),
            trials: chosen.trials,
            target_sd: data
                .schema()
                .classes()
                .is_none()
                .then_some(training_set.standard.scale),
            ..Training::default()
        };
        Ok(Tree::new(TreeParts {
            schema: data.schema().clone(),
            params: (**params).clone(),
            training,
            standard: training_set.standard,
            cuts: training_set.cuts,
            structure,
            leaves,
            smoothing: chosen.smoothing,
            key: run.key.child(3),
            n_members: params.n_members,
            substitutes: UnseenSubstitutes::new(run.key.child(streams::UNSEEN)),
        }))
    }
}
