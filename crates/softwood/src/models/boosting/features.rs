//! Features of boosted trees: target encoding of categorical columns with many levels, then
//! binning.

use serde_json::Value;

use crate::data::binning::binned::{Binned, Cuts};
use crate::data::categories::crosses::category_crosses;
use crate::data::categories::target_encoding::{EncodingSample, MAX_TARGETS, TargetEncoder};
use crate::data::column::{Column, Values};
use crate::data::dataset::Dataset;
use crate::data::table::{self, Table};
use crate::data::target::Target;
use crate::data::target::TargetUnits;
use crate::error::Result;
use crate::par::Pool;
use crate::rng::{Key, shuffle};
use crate::store::record::{Array, Record};

/// Largest number of levels of a categorical column that trees split into sets of levels; a column
/// with more levels is target-encoded.
const MAX_LEVELS: usize = 12;

/// Largest number of bins of an encoding if there is one for each class: the mean of a class over
/// the rows of a category is known less precisely than the edges of more bins would tell apart.
const MAX_ENCODING_BINS: usize = 32;

/// Some rows of a dataset and their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSubset<'a> {
    pub(super) indices: &'a [u32],
    pub(super) weights: &'a [f64],
}

/// The fitted transformation of a table into bins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FeaturePipeline {
    encoder: Option<TargetEncoder>,
    pub(super) cuts: Cuts,
}

/// The columns and the category crosses (sets of two or three columns) that are target-encoded.
#[derive(Debug, Clone, Default)]
pub(super) struct CategoryPlan(Vec<Vec<usize>>);

/// Targets of the target encoding, by row of the dataset: the standardized target, or one indicator
/// per class (a single indicator for two classes).
#[derive(Debug)]
pub(super) struct EncodingTargets(Vec<Vec<f64>>);

fn has_many_levels(column: &Column) -> bool {
    match &column.values {
        Values::Categorical { levels, .. } => levels.len() > MAX_LEVELS,
        Values::Numeric(_) => false,
    }
}

impl EncodingTargets {
    /// No targets if no column has many levels or there are more than [`MAX_TARGETS`] classes.
    pub(super) fn of(data: &Dataset, units: &TargetUnits) -> Self {
        if !data.features().columns().iter().any(has_many_levels) {
            return Self(Vec::new());
        }
        let indicator = |codes: &[u32], class: u32| {
            let codes = codes.iter();
            codes
                .map(|&code| f64::from(u8::from(code == class)))
                .collect()
        };
        Self(match data.target() {
            Target::Numeric(values) => {
                vec![values.iter().map(|&value| units.apply(value)).collect()]
            }
            Target::Classes(codes) => {
                match data.schema().classes().map_or(0, <[String]>::len) as u32 {
                    2 => vec![indicator(codes, 1)],
                    n if n as usize <= MAX_TARGETS => {
                        (0..n).map(|class| indicator(codes, class)).collect()
                    }
                    _ => Vec::new(),
                }
            }
        })
    }

    /// The targets with the features and weights of some rows.
    pub(super) fn sample<'a>(
        &'a self,
        features: &'a Table,
        rows: RowSubset<'a>,
    ) -> EncodingSample<'a> {
        EncodingSample {
            features,
            rows: rows.indices,
            weights: rows.weights,
            targets: &self.0,
        }
    }
}

impl CategoryPlan {
    /// Every column with many levels by itself, without crosses.
    pub(super) fn without_crosses(features: &Table, targets: &EncodingTargets) -> Self {
        let columns = features.columns().iter().enumerate();
        let many = columns.filter(|(_, column)| has_many_levels(column));
        Self(if targets.0.is_empty() {
            Vec::new()
        } else {
            many.map(|(at, _)| vec![at]).collect()
        })
    }

    /// The number of category crosses as a user reads it, after a comma; empty if there are none.
    pub(super) fn describe(&self) -> String {
        match self.0.iter().filter(|set| set.len() > 1).count() {
            0 => String::new(),
            1 => ", 1 category cross".to_owned(),
            n => format!(", {n} category crosses"),
        }
    }

    /// This plan and the category crosses that predict more than their columns do separately;
    /// `None` if there are no such crosses.
    pub(super) fn with_crosses(&self, sample: &EncodingSample<'_>, pool: &Pool) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        let columns: Vec<usize> = self.0.iter().map(|set| set[0]).collect();
        let crosses = category_crosses(sample, &columns, pool);
        (!crosses.is_empty()).then(|| Self(self.0.iter().cloned().chain(crosses).collect()))
    }
}

impl FeaturePipeline {
    /// Fits the pipeline to training rows; returns it with these rows in bins.
    pub(super) fn fit(
        sample: &EncodingSample<'_>,
        plan: &CategoryPlan,
        max_bins: usize,
        pool: &Pool,
    ) -> (Self, Binned) {
        if plan.0.is_empty() {
            let cuts = Cuts::fit(sample.features, sample.rows, sample.weights, max_bins);
            let binned = cuts.bin_rows(sample.features, sample.rows);
            return (
                Self {
                    encoder: None,
                    cuts,
                },
                binned,
            );
        }
        let (encoder, table) = TargetEncoder::fit(sample, &plan.0, pool);
        let all_rows: Vec<u32> = (0..table.n_rows() as u32).collect();
        let n_features = sample.features.columns().len();
        let mut column_bins = vec![max_bins; table.columns().len()];
        for column in encoder.encodings_by_class(n_features).into_iter().flatten() {
            column_bins[column] = max_bins.min(MAX_ENCODING_BINS);
        }
        let cuts = Cuts::fit_each(&table, &all_rows, sample.weights, &column_bins);
        let binned = cuts.bin_rows(&table, &all_rows);
        (
            Self {
                encoder: Some(encoder),
                cuts,
            },
            binned,
        )
    }

    /// Fits the target encoder to other training rows and keeps the bins, for a warm start; returns
    /// the pipeline with these rows in bins.
    pub(super) fn refit(&self, sample: &EncodingSample<'_>, pool: &Pool) -> (Self, Binned) {
        let mut cuts = self.cuts.clone();
        let Some(encoder) = &self.encoder else {
            cuts.see_missing_cells(sample.features, sample.rows);
            let binned = cuts.bin_rows(sample.features, sample.rows);
            let encoder = None;
            return (Self { encoder, cuts }, binned);
        };
        let (encoder, table) = encoder.renewed(sample, pool);
        let all_rows: Vec<u32> = (0..table.n_rows() as u32).collect();
        cuts.see_missing_cells(&table, &all_rows);
        let binned = cuts.bin_range(&table.rows(0..table.n_rows()));
        let encoder = Some(encoder);
        (Self { encoder, cuts }, binned)
    }

    /// Whether some columns are target-encoded.
    pub(super) fn has_target_encoding(&self) -> bool {
        self.encoder.is_some()
    }

    /// The training rows with their ordered target encoding computed in another random order;
    /// `binned` has them in the order of the fit. `None` if no column is target-encoded.
    pub(super) fn reordered(
        &self,
        sample: &EncodingSample<'_>,
        binned: &Binned,
        key: Key,
    ) -> Option<Binned> {
        let encoder = self.encoder.as_ref()?;
        let mut order: Vec<u32> = (0..sample.rows.len() as u32).collect();
        shuffle(&mut key.rng(), &mut order);
        let mut binned = binned.clone();
        encoder.reordered(sample, &order, |column, values| {
            self.cuts.bin_again(column, values, &mut binned);
        });
        Some(binned)
    }

    /// Bins of rows that are not training rows.
    pub(super) fn bin_rows(&self, features: &Table, rows: &[u32]) -> Binned {
        match &self.encoder {
            None => self.cuts.bin_rows(features, rows),
            Some(encoder) => {
                let table = encoder.apply(features, rows.len(), |at| rows[at] as usize);
                let all_rows = table.rows(0..rows.len());
                self.cuts.bin_range(&all_rows)
            }
        }
    }

    /// The target-encoded table of a range of rows; `None` if no column is target-encoded.
    pub(super) fn target_encoded(&self, rows: &table::Rows<'_>) -> Option<Table> {
        let first = rows.range.start;
        let encoder = self.encoder.as_ref()?;
        Some(encoder.apply(rows.table, rows.len(), |at| first + at))
    }

    /// The binned columns that encode the same categories with respect to different classes, by
    /// column or category cross; empty if there is one encoding for each.
    pub(super) fn encodings_by_class(&self, n_features: usize) -> Vec<Vec<usize>> {
        let encoder = self.encoder.as_ref();
        encoder.map_or(Vec::new(), |encoder| encoder.encodings_by_class(n_features))
    }

    /// The columns of the user's table that each binned column is computed from.
    pub(super) fn sources(&self, n_features: usize) -> Vec<Vec<usize>> {
        match &self.encoder {
            None => (0..n_features).map(|column| vec![column]).collect(),
            Some(encoder) => encoder.sources(n_features),
        }
    }

    /// Metadata and arrays of the target encoder for a record.
    pub(super) fn encode(&self) -> (Value, Vec<(String, Array)>) {
        self.encoder
            .as_ref()
            .map_or((Value::Null, Vec::new()), TargetEncoder::encode)
    }

    /// Reads the pipeline from a record; `levels` has the number of levels of each column of the
    /// schema, `None` for numeric columns.
    ///
    /// # Errors
    /// When the bins or the target encoder do not fit the schema.
    pub(super) fn decode(record: &Record, levels: &[Option<usize>]) -> Result<Self> {
        let cuts: Cuts = record.part("cuts")?;
        let is_plain = record.meta.get("statistics").is_none_or(Value::is_null);
        let encoder = if is_plain {
            None
        } else {
            Some(TargetEncoder::decode(record, levels)?)
        };
        let pipeline = Self { encoder, cuts };
        let kinds = match &pipeline.encoder {
            None => levels.to_vec(),
            Some(encoder) => encoder.kinds(levels),
        };
        pipeline.cuts.check(&kinds)?;
        Ok(pipeline)
    }
}
