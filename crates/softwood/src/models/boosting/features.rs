//! A table as boosted trees see it: categories of many levels turned into target encoder, all columns in bins.

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

/// Most levels of a column that is split into sets of categories; where there are more, it becomes a statistic.
const MAX_LEVELS: usize = 12;

/// Some rows of a dataset and their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSubset<'a> {
    pub(super) numbers: &'a [u32],
    pub(super) weights: &'a [f64],
}

/// How a table becomes bins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FeaturePipeline {
    encoder: Option<TargetEncoder>,
    pub(super) cuts: Cuts,
}

/// The sets of categorical columns that become encoder; empty where there are none.
#[derive(Debug, Clone)]
pub(super) struct CategoryPlan(Vec<Vec<usize>>);

/// The targets of encoder, by row of the dataset: the standardised target, or an indicator per class (one for two classes).
#[derive(Debug)]
pub(super) struct EncodingTargets(Vec<Vec<f64>>);

fn has_many_levels(column: &Column) -> bool {
    match &column.values {
        Values::Categorical { levels, .. } => levels.len() > MAX_LEVELS,
        Values::Numeric(_) => false,
    }
}

impl EncodingTargets {
    /// None where no column asks for them.
    pub(super) fn of(data: &Dataset, standard: &TargetUnits) -> Self {
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
                vec![values.iter().map(|&value| standard.apply(value)).collect()]
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

    fn sample<'a>(&'a self, features: &'a Table, rows: RowSubset<'a>) -> EncodingSample<'a> {
        EncodingSample {
            features,
            rows: rows.numbers,
            weights: rows.weights,
            targets: &self.0,
        }
    }
}

impl CategoryPlan {
    /// Every column of many levels by itself.
    pub(super) fn singles(features: &Table, targets: &EncodingTargets) -> Self {
        let columns = features.columns().iter().enumerate();
        let many = columns.filter(|(_, column)| has_many_levels(column));
        Self(if targets.0.is_empty() {
            Vec::new()
        } else {
            many.map(|(at, _)| vec![at]).collect()
        })
    }

    /// What a report says of it.
    pub(super) fn describe(&self) -> String {
        match self.0.iter().filter(|set| set.len() > 1).count() {
            0 => String::new(),
            n => format!(", {n} sets of categories together"),
        }
    }

    /// The same, and columns that say more together; none where there are no such.
    pub(super) fn with_crosses(
        &self,
        features: &Table,
        rows: RowSubset<'_>,
        targets: &EncodingTargets,
        pool: &Pool,
    ) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        let singles: Vec<usize> = self.0.iter().map(|set| set[0]).collect();
        let sample = targets.sample(features, rows);
        let found = category_crosses(&sample, &singles, pool);
        (!found.is_empty()).then(|| Self(self.0.iter().cloned().chain(found).collect()))
    }
}

impl FeaturePipeline {
    /// The pipeline of training rows, and those rows in it.
    pub(super) fn fit(
        features: &Table,
        rows: RowSubset<'_>,
        (plan, targets): (&CategoryPlan, &EncodingTargets),
        max_bins: usize,
        pool: &Pool,
    ) -> (Self, Binned) {
        if plan.0.is_empty() {
            let cuts = Cuts::fit(features, rows.numbers, rows.weights, max_bins);
            let binned = cuts.bin_rows(features, rows.numbers);
            return (
                Self {
                    encoder: None,
                    cuts,
                },
                binned,
            );
        }
        let sample = targets.sample(features, rows);
        let (encoder, table) = TargetEncoder::fit(&sample, &plan.0, pool);
        let all: Vec<u32> = (0..table.n_rows() as u32).collect();
        let cuts = Cuts::fit(&table, &all, rows.weights, max_bins);
        let binned = cuts.bin_rows(&table, &all);
        (
            Self {
                encoder: Some(encoder),
                cuts,
            },
            binned,
        )
    }

    /// The same bins for other training rows, and those rows in them.
    pub(super) fn renewed(
        &self,
        features: &Table,
        rows: RowSubset<'_>,
        targets: &EncodingTargets,
        pool: &Pool,
    ) -> (Self, Binned) {
        let Some(encoder) = &self.encoder else {
            return (self.clone(), self.cuts.bin_rows(features, rows.numbers));
        };
        let (encoder, table) = encoder.renewed(&targets.sample(features, rows), pool);
        let pipeline = Self {
            encoder: Some(encoder),
            cuts: self.cuts.clone(),
        };
        let binned = pipeline.cuts.bin_range(&table.rows(0..table.n_rows()));
        (pipeline, binned)
    }

    /// Whether any column depends on the target.
    pub(super) fn has_target_encoding(&self) -> bool {
        self.encoder.is_some()
    }

    /// The training rows, of which `binned` has one order, in the bins that a random other order gives them; none where no
    /// column depends on the order.
    pub(super) fn reordered(
        &self,
        features: &Table,
        (rows, binned): (RowSubset<'_>, &Binned),
        targets: &EncodingTargets,
        key: Key,
    ) -> Option<Binned> {
        let encoder = self.encoder.as_ref()?;
        let mut order: Vec<u32> = (0..rows.numbers.len() as u32).collect();
        shuffle(&mut key.rng(), &mut order);
        let mut binned = binned.clone();
        let sample = targets.sample(features, rows);
        encoder.reordered(&sample, &order, |column, values| {
            self.cuts.bin_again(column, values, &mut binned);
        });
        Some(binned)
    }

    /// Rows that were not trained on.
    pub(super) fn bin_rows(&self, features: &Table, rows: &[u32]) -> Binned {
        match &self.encoder {
            None => self.cuts.bin_rows(features, rows),
            Some(encoder) => {
                let table = encoder.apply(features, rows.len(), |at| rows[at] as usize);
                let all = table.rows(0..rows.len());
                self.cuts.bin_range(&all)
            }
        }
    }

    /// A run of rows with encoder in the place of categories of many levels; none where there are no such.
    pub(super) fn derive(&self, rows: &table::Rows<'_>) -> Option<Table> {
        let first = rows.range.start;
        let encoder = self.encoder.as_ref()?;
        Some(encoder.apply(rows.table, rows.len(), |at| first + at))
    }

    /// The columns of the user's table that each binned column comes from.
    pub(super) fn sources(&self, n_features: usize) -> Vec<Vec<usize>> {
        match &self.encoder {
            None => (0..n_features).map(|column| vec![column]).collect(),
            Some(encoder) => encoder.sources(n_features),
        }
    }

    /// Metadata of the encoder, and their arrays.
    pub(super) fn encode(&self) -> (Value, Vec<(String, Array)>) {
        self.encoder
            .as_ref()
            .map_or((Value::Null, Vec::new()), TargetEncoder::encode)
    }

    /// The pipeline of a record whose schema has these columns: `levels` of each, none for numbers.
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
