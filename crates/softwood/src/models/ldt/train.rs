//! Training: deduplicate and encode the rows, split off a validation set, grow the full tree, prune
//! it and smooth its leaves.

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::split::train_validation_split;
use crate::data::target::{Target, TargetStandard};
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::ldt::fitted::{Ldt, LdtParts};
use crate::models::ldt::grow::{LdtLimits, grow};
use crate::models::ldt::oblique_tree::ObliqueTree;
use crate::models::ldt::params::LdtParams;
use crate::models::ldt::pruning::{PrunedTree, reduced_error, stump};
use crate::models::ldt::rows::EncodedRows;
use crate::models::ldt::streams;
use crate::observer::Event;
use crate::params::Checked;
use crate::stop;
use crate::store::record::Record;
use crate::trees::cart::{CartTarget, MAX_CLASSES};
use crate::trees::leaf_posterior::{LeftOutRow, SmoothedLeaves, Smoothing};
use crate::trees::training_set::cart_target;

impl Fit for LdtParams {
    type Fitted = Ldt;
    const FAMILY: &'static str = "ldt";

    fn restore(record: &Record) -> Result<Ldt> {
        Ldt::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Ldt> {
        let kind = cart_target(data.schema());
        if let CartTarget::Classes(n) = kind
            && n > MAX_CLASSES
        {
            return Err(Error::Table(format!(
                "the target has {n} classes; a tree takes at most {MAX_CLASSES}"
            )));
        }
        let data = data.deduplicated();
        stop::check()?;
        let key = run.key.child(streams::VALIDATION);
        let split = if run.held_out.is_none() {
            train_validation_split(&data, params.validation_fraction, key)
        } else {
            None
        };
        let (train, validation) = match &split {
            Some((train, validation)) => (train, Some(validation)),
            None => (&data, run.held_out),
        };
        let encoding = Encoding {
            scaling: Scaling::Standard,
            rotation: Rotation::None,
            squares: false,
            max_categories: params.max_categories,
        };
        let encoder = Encoder::fit(data.features(), weights(&data), encoding);
        stop::check()?;
        let TargetStandard { units, floor } = standard(&data);
        let encoded = |data: &Dataset| EncodedRows::new(data, &encoder, &units, kind);
        let rows = encoded(train);
        let limits = LdtLimits {
            max_depth: params.max_depth,
            min_weight: params.min_child_weight,
            shrinkage: params.shrinkage,
        };
        let grown = grow(&rows, &limits, run.pool, &|n_settled| {
            (run.observer).on_event(&Event::new("growing", n_settled, rows.n_rows()))
        })?;
        let n_full = grown.tree.n_leaves();
        let validation = validation.map(encoded);
        let PrunedTree { tree, leaves } = match &validation {
            Some(validation) => reduced_error(&grown, validation),
            None => stump(&grown, kind),
        };
        let floor = params.min_scale.unwrap_or(floor);
        let mut leaves = SmoothedLeaves {
            kind,
            smoothing: Smoothing::plain(kind, &root_stats(kind, &leaves), floor),
            stats: leaves,
            key: run.key.child(streams::MEMBERS),
        };
        if let Some(validation) = &validation {
            smooth(&mut leaves, &tree, validation);
            if split.is_some() {
                add_rows(&mut leaves, &tree, validation);
            }
        }
        stop::check()?;
        let training = Training {
            chosen: format!("{} of {n_full} leaves", tree.n_leaves()),
            target_sd: (kind == CartTarget::Number).then_some(units.scale),
            is_stopped: grown.is_stopped,
            ..Training::default()
        };
        Ok(Ldt::new(LdtParts {
            schema: data.schema().clone(),
            units,
            input_sd: rows.standard_deviations(),
            encoder,
            params: (**params).clone(),
            training,
            tree,
            leaves,
            n_members: params.n_members,
            substitutes: UnseenSubstitutes::new(run.key.child(streams::UNSEEN)),
        }))
    }
}

/// Weights of deduplicated rows.
fn weights(data: &Dataset) -> &[f64] {
    data.weights().expect("deduplicated rows have weights")
}

/// Units of the target; identity units for classes.
fn standard(data: &Dataset) -> TargetStandard {
    match data.target() {
        Target::Numeric(values) => TargetStandard::of(values, Some(weights(data))),
        Target::Classes(_) => TargetStandard::CLASSES,
    }
}

/// Statistics of all rows of a tree.
fn root_stats(kind: CartTarget, leaves: &[f64]) -> Vec<f64> {
    let mut root = vec![0.0; kind.n_stats()];
    for leaf in leaves.chunks_exact(kind.n_stats()) {
        kind.merge(&mut root, leaf);
    }
    root
}

/// Fits the smoothing to the validation rows.
fn smooth(leaves: &mut SmoothedLeaves, tree: &ObliqueTree, validation: &EncodedRows) {
    let n_stats = leaves.kind.n_stats();
    let rows: Vec<LeftOutRow<'_>> = (0..validation.n_rows())
        .map(|row| {
            let leaf = tree.leaf(validation.row(row));
            LeftOutRow {
                stats: &leaves.stats[leaf * n_stats..(leaf + 1) * n_stats],
                target: validation.target[row],
                weight: validation.weight[row],
            }
        })
        .collect();
    leaves.smoothing = leaves.smoothing.fit(leaves.kind, &rows);
}

/// Adds rows to the statistics of their leaves.
fn add_rows(leaves: &mut SmoothedLeaves, tree: &ObliqueTree, rows: &EncodedRows) {
    let n_stats = leaves.kind.n_stats();
    for row in 0..rows.n_rows() {
        let leaf = tree.leaf(rows.row(row));
        let stats = &mut leaves.stats[leaf * n_stats..(leaf + 1) * n_stats];
        leaves.kind.push(stats, rows.target[row], rows.weight[row]);
    }
}
