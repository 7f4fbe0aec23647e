//! Training: deduplicate and encode the rows, split off a validation set, select a pruned tree.

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::schema::Schema;
use crate::data::split::train_validation_split;
use crate::data::target::{Target, TargetStandard};
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run};
use crate::model::Training;
use crate::models::ldt::fitted::{Ldt, LdtParts};
use crate::models::ldt::params::LdtParams;
use crate::models::ldt::rows::InputRows;
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

    fn extrapolates(&self) -> bool {
        self.extrapolation
    }

    fn restore(record: &Record) -> Result<Ldt> {
        Ldt::from_record(record)
    }

    fn learn(params: &Checked<Self>, data: &Dataset, run: &Run<'_>) -> Result<Ldt> {
        let kind = target_kind(data.schema())?;
        let data = data.deduplicated();
        stop::check()?;
        let encoder = fit_encoder(params, &data);
        stop::check()?;
        let TargetStandard { units, floor } = standard(&data);
        let key = run.key.child(streams::VALIDATION);
        let split = match run.held_out {
            Some(_) => None,
            None => train_validation_split(&data, params.validation_fraction, key),
        };
        let (train, validation) = match &split {
            Some((train, validation)) => (train, Some(validation)),
            None => (&data, run.held_out),
        };
        let encoded = |data: &Dataset| InputRows::new(data, &encoder, &units, kind);
        let rows = LdtRows {
            train: encoded(train),
            validation: validation.map(encoded),
            floor: params.min_scale.unwrap_or(floor),
        };
        let mut selected = select(params, &rows, run)?;
        if let (Some(_), Some(validation)) = (&split, &rows.validation) {
            selected.pruned.add_rows(validation);
        }
        stop::check()?;
        Ok(Ldt::new(LdtParts {
            schema: data.schema().clone(),
            units,
            input_sd: rows.train.standard_deviations(),
            encoder,
            params: (**params).clone(),
            training: Training {
                target_sd: (kind == CartTarget::Number).then_some(units.scale),
                ..training(&selected)
            },
            tree: selected.pruned.tree,
            leaves: SmoothedLeaves {
                kind,
                stats: selected.pruned.leaves,
                smoothing: selected.smoothing,
                key: run.key.child(streams::MEMBERS),
            },
            n_members: params.n_members,
            substitutes: UnseenSubstitutes::new(run.key.child(streams::UNSEEN)),
            extrapolation: run.extrapolation.cloned(),
        }))
    }
}

/// What the tree predicts.
///
/// # Errors
/// When the target has too many classes.
fn target_kind(schema: &Schema) -> Result<CartTarget> {
    match cart_target(schema) {
        CartTarget::Classes(n) if n > MAX_CLASSES => Err(Error::Table(format!(
            "the target has {n} classes; a tree takes at most {MAX_CLASSES}"
        ))),
        kind => Ok(kind),
    }
}

fn fit_encoder(params: &LdtParams, data: &Dataset) -> Encoder {
    let encoding = Encoding {
        scaling: Scaling::Standard,
        rotation: Rotation::None,
        squares: false,
        max_categories: params.max_categories,
    };
    Encoder::fit(data.features(), weights(data), encoding)
}

/// Units of the target; identity units for classes.
fn standard(data: &Dataset) -> TargetStandard {
    match data.target() {
        Target::Numeric(values) => TargetStandard::of(values, Some(weights(data))),
        Target::Classes(_) => TargetStandard::CLASSES,
    }
}

/// Weights of deduplicated rows.
fn weights(data: &Dataset) -> &[f64] {
    data.weights().expect("deduplicated rows have weights")
}

fn training(selected: &SelectedTree) -> Training {
    Training {
        chosen: format!(
            "{} of {} leaves, shrinkage {}",
            selected.pruned.tree.n_leaves(),
            selected.n_full,
            selected.shrinkage
        ),
        trials: selected.trials.clone(),
        is_stopped: selected.is_stopped,
        ..Training::default()
    }
}
