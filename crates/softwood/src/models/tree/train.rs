//! Training: deduplicate and bin the rows, grow the full tree, select the pruning by
//! cross-validation, and prune.

use crate::data::dataset::Dataset;
use crate::error::Result;
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::tree::fitted::{Tree, TreeParts};
use crate::models::tree::params::TreeParams;
use crate::models::tree::pruning_cv::{CrossValidation, PruningCandidates, choose};
use crate::models::tree::streams;
use crate::observer::Event;
use crate::params::Checked;
use crate::stop;
use crate::store::record::Record;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::cart::{CartLimits, grow};
use crate::trees::leaf_posterior::{SmoothedLeaves, Smoothing};
use crate::trees::training_set::{TreeInputs, TreeTrainingSet};

impl Fit for TreeParams {
    type Fitted = Tree;
    const FAMILY: &'static str = "tree";

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Tree> {
        Tree::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Tree> {
        let training_set = TreeTrainingSet::new(data, params.max_bins, run.key);
        stop::check()?;
        let limits = CartLimits {
            max_depth: params.max_depth,
            min_weight: params.min_child_weight,
            n_tried: None,
        };
        let observer = || run.observer.on_event(&Event::new("growing", 0, 1));
        let full = grow(
            &training_set.cart_data(run.pool),
            &training_set.weight,
            &limits,
            run.key.child(streams::TREE),
            &observer,
        )?;
        let nodes = NodeStatistics::new(training_set.kind, &full.structure, &full.leaves);
        let path = nodes.path();
        let n_full = full.structure.n_leaves();
        let candidates =
            PruningCandidates::new(&path, n_full, params.ccp_alpha, params.max_leaf_nodes);
        let floor = params.min_scale.unwrap_or(training_set.floor);
        let plain = Smoothing::plain(training_set.kind, nodes.stats(0), floor);
        let validation = CrossValidation {
            training_set: &training_set,
            limits: &limits,
            plain: &plain,
            n_members: params.n_members,
            run,
        };
        let chosen = if full.is_stopped {
            candidates.first(&plain, true)
        } else {
            choose(&candidates, &validation)?
        };
        let (structure, stats) = nodes.pruned(&full.structure, &path, chosen.alpha);
        let leaves = SmoothedLeaves {
            kind: training_set.kind,
            stats,
            smoothing: chosen.smoothing,
            key: run.key.child(streams::MEMBERS),
        };
        let training = Training {
            chosen: format!(
                "{} of {n_full} leaves, ccp_alpha {:.3e}",
                structure.n_leaves(),
                chosen.alpha
            ),
            trials: chosen.trials,
            target_sd: training_set.target_sd(),
            is_stopped: full.is_stopped || chosen.is_stopped,
            ..Training::default()
        };
        Ok(Tree::new(TreeParts {
            inputs: TreeInputs::new(&training_set, data.schema(), params.n_members, run.key)
                .extrapolating(run.extrapolation),
            params: (**params).clone(),
            training,
            structure,
            leaves,
        }))
    }
}
