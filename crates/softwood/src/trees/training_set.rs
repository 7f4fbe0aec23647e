//! A dataset as trees take it: distinct rows in bins, targets in standard units or as class numbers, weights.

use crate::data::binning::binned::{Binned, Cuts};
use crate::data::dataset::Dataset;
use crate::data::dedup::Deduplicated;
use crate::data::schema::{FieldKind, Schema};
use crate::data::target::{TargetStandard, TargetUnits};
use crate::par::Pool;
use crate::rng::Key;
use crate::trees::cart::{CartData, CartTarget};
use crate::trees::histogram::candidate::ColumnInfo;

/// Deduplicated rows, ready for growing trees.
#[derive(Debug)]
pub(crate) struct TreeTrainingSet {
    pub(crate) cuts: Cuts,
    pub(crate) binned: Binned,
    pub(crate) columns: ColumnInfo,
    pub(crate) target: Vec<f32>,
    pub(crate) weight: Vec<f32>,
    pub(crate) kind: CartTarget,
    pub(crate) standard: TargetUnits,
    /// Least standard deviation of the target in standard units, where none is asked for.
    pub(crate) floor: f64,
}

impl TreeTrainingSet {
    pub(crate) fn new(data: &Dataset, max_bins: usize, key: Key) -> Self {
        let Deduplicated { rows, weights } = Deduplicated::shuffled(data, key);
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
            standard: units,
            floor,
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.target.len()
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

/// What a tree on this schema predicts.
pub(crate) fn cart_target(schema: &Schema) -> CartTarget {
    schema.classes().map_or(CartTarget::Number, |classes| {
        CartTarget::Classes(classes.len())
    })
}

/// Number of levels of each column; none for numbers.
pub(crate) fn levels_of(schema: &Schema) -> Vec<Option<usize>> {
    let fields = schema.fields.iter().map(|field| match &field.kind {
        FieldKind::Numeric => None,
        FieldKind::Categorical { levels } => Some(levels.len()),
    });
    fields.collect()
}
