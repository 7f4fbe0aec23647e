//! A dataset as trees take it: distinct rows in bins, targets in standard units or as class numbers, weights.

use crate::data::binning::binned::{Binned, Cuts};
use crate::data::dataset::{Dataset, Target};
use crate::data::dedup::Deduplicated;
use crate::data::schema::{FieldKind, Schema};
use crate::data::target::{TargetUnits, resolution};
use crate::par::Pool;
use crate::trees::cart::{CartData, CartTarget};
use crate::trees::histogram::candidate::ColumnInfo;

/// Least standard deviation in units of the target's, where the target is no grid.
const MIN_SCALE: f64 = 1e-3;

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
    pub(crate) fn new(data: &Dataset, max_bins: usize) -> Self {
        let Deduplicated { rows, weights } = Deduplicated::of(data);
        let cuts = Cuts::fit(data.features(), &rows, &weights, max_bins);
        let binned = cuts.bin_rows(data.features(), &rows);
        let (target, kind, standard, floor) = match data.target() {
            Target::Numeric(values) => {
                let values: Vec<f64> = rows.iter().map(|&row| values[row as usize]).collect();
                let standard = TargetUnits::fit(&values, Some(&weights));
                let half_step = resolution(&values, Some(&weights))
                    .map_or(0.0, |step| 0.5 * step / standard.scale);
                let target = values.iter().map(|&y| standard.apply(y) as f32).collect();
                (
                    target,
                    CartTarget::Number,
                    standard,
                    MIN_SCALE.max(half_step),
                )
            }
            Target::Classes(codes) => {
                let n_classes = data.schema().classes().map_or(0, <[String]>::len);
                let target = rows.iter().map(|&row| codes[row as usize] as f32).collect();
                let standard = TargetUnits {
                    shift: 0.0,
                    scale: 1.0,
                };
                (target, CartTarget::Classes(n_classes), standard, MIN_SCALE)
            }
        };
        Self {
            columns: ColumnInfo::new(&cuts, &binned),
            cuts,
            binned,
            target,
            weight: weights.iter().map(|&weight| weight as f32).collect(),
            kind,
            standard,
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
