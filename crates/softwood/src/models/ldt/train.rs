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
use crate::models::ldt::params::LdtParams;
use crate::models::ldt::rows::EncodedRows;
use crate::models::ldt::selection::{LdtRows, SelectedTree, select};
use crate::models::ldt::streams;
use crate::params::Checked;
use crate::stop;
use crate::store::record::Record;
use crate::trees::cart::{CartTarget, MAX_CLASSES};
use crate::trees::leaf_posterior::SmoothedLeaves;
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
        let rows = LdtRows {
            train: encoded(train),
            validation: validation.map(encoded),
            floor: params.min_scale.unwrap_or(floor),
        };
        let SelectedTree {
            mut pruned,
            smoothing,
            shrinkage,
            n_full,
            trials,
            is_stopped,
        } = select(params, &rows, run)?;
        if let (Some(_), Some(validation)) = (&split, &rows.validation) {
            pruned.add_rows(validation);
        }
        stop::check()?;
        let training = Training {
            chosen: format!(
                "{} of {n_full} leaves, shrinkage {shrinkage}",
                pruned.tree.n_leaves()
            ),
            trials,
            target_sd: (kind == CartTarget::Number).then_some(units.scale),
            is_stopped,
            ..Training::default()
        };
        Ok(Ldt::new(LdtParts {
            schema: data.schema().clone(),
            units,
            input_sd: rows.train.standard_deviations(),
            encoder,
            params: (**params).clone(),
            training,
            tree: pruned.tree,
            leaves: SmoothedLeaves {
                kind,
                stats: pruned.leaves,
                smoothing,
                key: run.key.child(streams::MEMBERS),
            },
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
