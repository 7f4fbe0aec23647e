//! Tables as tree models use them: the training rows of a fit, and the part of a fitted model that
//! bins new rows.

use std::ops::Range;
use std::sync::Arc;

use serde_json::json;

use crate::data::binning::binned::{Binned, Cuts, substitute_unseen};
use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::schema::{FieldKind, Schema};
use crate::data::table::Rows;
use crate::data::target::{TargetStandard, TargetUnits};
use crate::data::unseen::UnseenSubstitutes;
use crate::error::Result;
use crate::extrapolation::Extrapolation;
use crate::par::Pool;
use crate::predictive::block::Head;
use crate::rng::Key;
use crate::stop::until_cancelled;
use crate::store::record::Record;
use crate::trees::cart::{CartData, CartTarget};
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::routing::RowBins;

/// Random streams of a fit; smaller numbers belong to the model family.
mod streams {
    /// Order of the training rows.
    pub(super) const ROW_ORDER: u64 = 1 << 32;
    /// Substitutes for unseen categories.
    pub(super) const UNSEEN: u64 = ROW_ORDER + 1;
}

/// Deduplicated rows in bins, with their targets and weights.
#[derive(Debug)]
pub(crate) struct TreeTrainingSet {
    pub(crate) cuts: Cuts,
    pub(crate) binned: Binned,
    pub(crate) columns: ColumnInfo,
    /// Standardized numbers, or class codes.
    pub(crate) target: Vec<f32>,
    pub(crate) weight: Vec<f32>,
    pub(crate) kind: CartTarget,
    pub(crate) units: TargetUnits,
    /// Default floor of the standard deviation, in standard units of the target.
    pub(crate) floor: f64,
}

impl TreeTrainingSet {
    /// Prepares a dataset; `key` is the key of the run.
    pub(crate) fn new(data: &Dataset, max_bins: usize, key: Key) -> Self {
        let Deduplicated { rows, weights } =
            Deduplicated::shuffled(data, key.child(streams::ROW_ORDER));
        let cuts = Cuts::fit(data.features(), &rows, &weights, max_bins);
        let binned = cuts.bin_rows(data.features(), &rows);
        let TargetStandard { units, floor } = TargetStandard::of_rows(data, &rows, &weights);
        let target = units.encode(data.target(), rows.iter().map(|&row| row as usize));
        Self {
            columns: ColumnInfo::new(&cuts, &binned),
            cuts,
            binned,
            target,
            weight: weights.iter().map(|&weight| weight as f32).collect(),
            kind: cart_target(data.schema()),
            units,
            floor,
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// Standard deviation of the target; `None` for classification.
    pub(crate) fn target_sd(&self) -> Option<f64> {
        (self.kind == CartTarget::Number).then_some(self.units.scale)
    }

    pub(crate) fn cart_data<'a>(&'a self, pool: &'a Pool) -> CartData<'a> {
        CartData {
            binned: &self.binned,
            columns: &self.columns,
            target: &self.target,
            kind: self.kind,
            pool,
        }
    }
}

/// The part of a fitted tree model that bins new rows, and the units of its predictions.
#[derive(Debug, Clone)]
pub(crate) struct TreeInputs {
    pub(crate) schema: Schema,
    pub(crate) kind: CartTarget,
    pub(crate) units: TargetUnits,
    pub(crate) cuts: Cuts,
    pub(crate) n_members: usize,
    substitutes: UnseenSubstitutes,
    extrapolation: Option<Arc<Extrapolation>>,
}

/// Rows of a block in the bins that some members use.
#[derive(Debug)]
pub(crate) struct MemberRows<'a> {
    pub(crate) members: Range<usize>,
    /// Bins of all rows of the block.
    pub(crate) bins: &'a RowBins,
    /// The rows of the block that the members predict from these bins.
    pub(crate) rows: &'a [usize],
}

impl TreeInputs {
    /// Inputs of a model that is trained on `training_set`; `key` is the key of the run.
    pub(crate) fn new(
        training_set: &TreeTrainingSet,
        schema: &Schema,
        n_members: usize,
        key: Key,
    ) -> Self {
        Self {
            schema: schema.clone(),
            kind: training_set.kind,
            units: training_set.units,
            cuts: training_set.cuts.clone(),
            n_members,
            substitutes: UnseenSubstitutes::new(key.child(streams::UNSEEN)),
            extrapolation: None,
        }
    }

    /// The inputs of a model whose predictions widen away from the training rows.
    pub(crate) fn extrapolating(self, extrapolation: Option<&Arc<Extrapolation>>) -> Self {
        Self {
            extrapolation: extrapolation.cloned(),
            ..self
        }
    }

    /// What widens the predictions of the model away from the training rows.
    pub(crate) fn extrapolation(&self) -> Option<&Extrapolation> {
        self.extrapolation.as_deref()
    }

    /// Reads the inputs from the record of a model.
    ///
    /// # Errors
    /// When a part is absent, or the bins do not fit the schema.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let schema = Schema::from_record(record)?;
        let cuts: Cuts = record.part("cuts")?;
        cuts.check(&levels_of(&schema))?;
        Ok(Self {
            extrapolation: Extrapolation::read(record, &schema)?,
            kind: cart_target(&schema),
            schema,
            units: TargetUnits::from_record(record)?,
            cuts,
            n_members: record.part("n_members")?,
            substitutes: UnseenSubstitutes::from_record(record)?,
        })
    }

    /// Adds the inputs to the record of a model.
    pub(crate) fn write(&self, mut record: Record) -> Record {
        let meta = &mut record.meta;
        meta["schema"] = json!(self.schema);
        meta["standard"] = json!(self.units);
        meta["cuts"] = json!(self.cuts);
        meta["n_members"] = json!(self.n_members);
        meta["unseen"] = json!(self.substitutes.stored());
        Extrapolation::write(self.extrapolation(), record)
    }

    /// The distribution of a member; `components` is the number of its Normal components.
    pub(crate) fn head(&self, components: usize) -> Head {
        match self.kind {
            CartTarget::Classes(classes) => Head::Categorical { classes },
            CartTarget::Number => Head::Normal { components },
        }
    }

    /// Calls `predict` until every member has every row of a block. Members see the same bins,
    /// except in rows with an unseen category, which each member replaces by a known one of its
    /// own.
    pub(crate) fn for_each_member(
        &self,
        rows: &Rows<'_>,
        mut predict: impl FnMut(&MemberRows<'_>),
    ) {
        let mut binned = self.cuts.bin_range(rows);
        let unseen = self.cuts.unseen(rows);
        let mut is_unseen = vec![false; rows.len()];
        for cell in &unseen {
            is_unseen[cell.row] = true;
        }
        let (unseen_rows, known_rows): (Vec<usize>, Vec<usize>) =
            (0..rows.len()).partition(|&row| is_unseen[row]);
        if !known_rows.is_empty() {
            predict(&MemberRows {
                members: 0..self.n_members,
                bins: &RowBins::new(&binned),
                rows: &known_rows,
            });
        }
        if unseen_rows.is_empty() {
            return;
        }
        for member in until_cancelled(0..self.n_members) {
            substitute_unseen(&self.cuts, &unseen, self.substitutes, member, &mut binned);
            predict(&MemberRows {
                members: member..member + 1,
                bins: &RowBins::new(&binned),
                rows: &unseen_rows,
            });
        }
    }
}

/// What a tree with this schema predicts.
pub(crate) fn cart_target(schema: &Schema) -> CartTarget {
    schema.classes().map_or(CartTarget::Number, |classes| {
        CartTarget::Classes(classes.len())
    })
}

/// Number of levels of each column; `None` for numeric columns.
pub(crate) fn levels_of(schema: &Schema) -> Vec<Option<usize>> {
    let fields = schema.fields.iter().map(|field| match &field.kind {
        FieldKind::Numeric => None,
        FieldKind::Categorical { levels } => Some(levels.len()),
    });
    fields.collect()
}
