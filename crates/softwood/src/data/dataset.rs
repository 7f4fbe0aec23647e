//! A labelled table: feature columns in schema order, the target, and row weights.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::data::column::{Column, Values};
use crate::data::schema::{Schema, Task};
use crate::data::table::Table;
use crate::data::target::{Target, classes_of, labels_of};
use crate::error::{Error, Result};

/// Smallest number of rows that a model can be fitted to.
pub const MIN_ROWS: usize = 2;

/// Up to this number of classes, a table may have fewer than two rows per class.
const MAX_RARE_CLASSES: usize = 20;

/// Range of the sum of weights that single precision can represent.
const TOTAL_WEIGHT: RangeInclusive<f64> = 1e-6..=1e15;

/// Largest absolute target value; predictive intervals around larger values would overflow.
const MAX_TARGET: f64 = 1e305;
/// Smallest difference of two target values that a standard deviation can be computed from.
const MIN_SPREAD: f64 = 1e-300;

/// The role of each column of a table.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Target column.
    pub target: String,
    /// Column of row weights.
    pub weight: Option<String>,
    /// Columns to ignore.
    pub ignore: Vec<String>,
    /// Whether to classify. `None`: the kind of the target column decides.
    pub classify: Option<bool>,
}

impl Roles {
    /// Returns an error if a column has two roles.
    fn check(&self) -> Result<()> {
        let roles = [Some(&self.target), self.weight.as_ref()];
        let ignored = roles
            .iter()
            .flatten()
            .find(|column| self.ignore.contains(column));
        if let Some(name) = ignored {
            let role = if **name == self.target {
                "target"
            } else {
                "weights"
            };
            let problem = format!("it is both the {role} and to be ignored; choose one");
            return Err(Error::column(*name, problem));
        }
        if self.weight.as_ref() == Some(&self.target) {
            let problem = "it is both the target and the weights; choose one";
            return Err(Error::column(&self.target, problem));
        }
        Ok(())
    }
}

/// Features, target and weights, ready to fit or score.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    pub(super) schema: Schema,
    pub(super) features: Table,
    pub(super) target: Target,
    pub(super) weights: Option<Vec<f64>>,
}

impl Dataset {
    /// Splits a table into features, target and weights. The columns of a table that is passed by
    /// value are moved, those of a reference are copied.
    ///
    /// # Errors
    /// When a named column is absent, a target or weight cell is missing or unusable, or there are
    /// no rows or no feature columns.
    pub fn from_table<'a>(table: impl Into<Cow<'a, Table>>, roles: &Roles) -> Result<Self> {
        let table = table.into();
        table.column(&roles.target)?;
        let index = (!roles.ignore.is_empty()).then(|| table.index());
        for name in &roles.ignore {
            if index
                .as_ref()
                .is_none_or(|index| index.find(name).is_none())
            {
                table.column(name)?;
            }
        }
        roles.check()?;
        if let Some(name) = &roles.weight {
            table.column(name)?;
        }
        let (features, mut others) = split_roles(table, roles);
        let mut take = |name: &String| {
            let found = others.iter().position(|column| column.name == *name);
            found.map(|at| others.swap_remove(at))
        };
        let weights = roles.weight.as_ref().and_then(&mut take);
        let weights = weights.map(weights_of).transpose()?;
        let target = take(&roles.target)
            .ok_or_else(|| Error::column(&roles.target, "there is no such column"))?;
        let classify = roles
            .classify
            .unwrap_or(matches!(target.values, Values::Categorical { .. }));
        let task = if classify {
            Task::Classification {
                classes: classes_of(&target.values),
            }
        } else {
            Task::Regression
        };
        let schema =
            Schema::of(&features, target.name, task).with_labels(labels_of(&target.values));
        let target = schema.target_from(Cow::Owned(target.values))?;
        Self::new(schema, features, target, weights)
    }

    /// A dataset from its parts; feature columns must be in schema order.
    ///
    /// # Errors
    /// When lengths differ, there are no rows or no features, or weights are negative, not finite
    /// or all zero.
    pub fn new(
        schema: Schema,
        features: Table,
        target: Target,
        weights: Option<Vec<f64>>,
    ) -> Result<Self> {
        if target.is_empty() {
            return Err(Error::Table("the table has no rows".to_owned()));
        }
        if features.columns().is_empty() {
            return Err(Error::Table(
                "the table has no feature columns besides the target".to_owned(),
            ));
        }
        if features.n_rows() != target.len() {
            return Err(Error::Table(format!(
                "{} rows of features but {} targets",
                features.n_rows(),
                target.len()
            )));
        }
        if let Some(weights) = &weights {
            check_weights(weights, target.len())?;
        }
        Ok(Self {
            schema,
            features,
            target,
            weights,
        })
    }

    /// A dataset of a labelled table for a given schema: features aligned, target read.
    ///
    /// # Errors
    /// When a column is absent or a cell cannot be used.
    pub fn aligned(schema: &Schema, table: &Table, weight: Option<&str>) -> Result<Self> {
        let weights = weight
            .map(|name| table.column(name).cloned().and_then(weights_of))
            .transpose()?;
        Self::new(
            schema.clone(),
            schema.align(table)?,
            schema.target_of(table)?,
            weights,
        )
    }

    /// Column names, kinds, categories and classes.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Feature columns in schema order.
    pub fn features(&self) -> &Table {
        &self.features
    }

    /// Target values.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Row weights, if the dataset has any.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.target.len()
    }

    /// The same rows with new weights.
    ///
    /// # Errors
    /// When the weights cannot be used.
    pub(crate) fn with_weights(self, weights: Option<Vec<f64>>) -> Result<Self> {
        if let Some(weights) = &weights {
            check_weights(weights, self.n_rows())?;
        }
        Ok(Self { weights, ..self })
    }

    /// The same rows with weights that are valid by construction.
    pub(crate) fn replace_weights(self, weights: Vec<f64>) -> Self {
        debug_assert_eq!(weights.len(), self.n_rows());
        let weights = Some(weights);
        Self { weights, ..self }
    }

    /// The given rows, in that order.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Self {
        self.with_features_at(rows, self.features.take(rows))
    }

    /// At most `n` equally spaced rows.
    pub(crate) fn spaced(&self, n: usize) -> Self {
        let n_rows = self.n_rows();
        let n = n_rows.min(n);
        let rows: Vec<usize> = (0..n).map(|at| at * n_rows / n).collect();
        self.take(&rows)
    }

    /// As [`Dataset::take`], but checks at every column whether the work is cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it is.
    pub(crate) fn try_take(&self, rows: &[usize]) -> Result<Self> {
        let features = self.features.try_take(rows)?;
        Ok(self.with_features_at(rows, features))
    }

    /// These features, which are those at `rows`, with targets and weights at `rows`.
    fn with_features_at(&self, rows: &[usize], features: Table) -> Self {
        Self {
            schema: self.schema.clone(),
            features,
            target: self.target.take(rows),
            weights: self
                .weights
                .as_ref()
                .map(|weights| rows.iter().map(|&row| weights[row]).collect()),
        }
    }

    /// Compares two rows by their features, then by their targets.
    pub(crate) fn compare(&self, a: usize, b: usize) -> Ordering {
        let cells = self
            .features
            .columns()
            .iter()
            .map(|column| match &column.values {
                Values::Numeric(values) => values[a].total_cmp(&values[b]),
                Values::Categorical { codes, .. } => codes[a].cmp(&codes[b]),
            });
        let target = || match &self.target {
            Target::Numeric(values) => values[a].total_cmp(&values[b]),
            Target::Classes(codes) => codes[a].cmp(&codes[b]),
        };
        cells
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or_else(target)
    }

    /// Returns an error if no model can be fitted: too few rows, a constant target, almost one
    /// class per row, or huge target values. Rows of weight zero do not count.
    ///
    /// # Errors
    /// When fewer than [`MIN_ROWS`] rows have a positive weight, all their targets are equal, a
    /// target is beyond 1e305 in magnitude, targets differ by less than 1e-300, or there are more
    /// than twenty classes with fewer than two rows each on average.
    pub fn check_fit(&self) -> Result<()> {
        let weights = self.weights.as_deref();
        let rows: Vec<usize> = (0..self.n_rows())
            .filter(|&row| weights.is_none_or(|weights| weights[row] > 0.0))
            .collect();
        if rows.len() < MIN_ROWS {
            let found = rows.len();
            if found < self.n_rows() {
                return Err(Error::Table(format!(
                    "a model needs at least {MIN_ROWS} rows of positive weight; of {} rows {found} has one",
                    self.n_rows()
                )));
            }
            return Err(Error::Table(format!(
                "a model needs at least {MIN_ROWS} rows; n_samples = {found} row was given"
            )));
        }
        let first = rows[0];
        let is_constant = match &self.target {
            Target::Numeric(values) => rows
                .iter()
                .all(|&row| values[row].to_bits() == values[first].to_bits()),
            Target::Classes(codes) => rows.iter().all(|&row| codes[row] == codes[first]),
        };
        if is_constant {
            let problem = "all target values are equal; there is nothing to predict (one class or a constant)";
            return Err(Error::column(&self.schema.target, problem));
        }
        self.check_size(&rows)?;
        self.check_classes(&rows)
    }

    /// Returns an error if a target value is too large for a standard deviation or an interval.
    fn check_size(&self, rows: &[usize]) -> Result<()> {
        let Target::Numeric(values) = &self.target else {
            return Ok(());
        };
        let is_too_large = |row: &&usize| values[**row].abs() > MAX_TARGET;
        let Some(&row) = rows.iter().find(is_too_large) else {
            return self.check_spread(values, rows);
        };
        let problem = format!(
            "{:e} leaves no room for an interval around it; divide the column so that its numbers are below {MAX_TARGET:e}",
            values[row]
        );
        Err(Error::cell(&self.schema.target, row + 1, problem))
    }

    /// Returns an error if the target values differ by so little that their squares vanish.
    fn check_spread(&self, values: &[f64], rows: &[usize]) -> Result<()> {
        let first = values[rows[0]];
        let spread = (rows.iter()).fold(0.0, |spread: f64, &row| {
            spread.max((values[row] - first).abs())
        });
        if spread >= MIN_SPREAD {
            return Ok(());
        }
        let problem = format!(
            "its values differ by at most {spread:e}; multiply the column so that they differ by more than \
             {MIN_SPREAD:e}"
        );
        Err(Error::column(&self.schema.target, problem))
    }

    /// Returns an error if there are almost as many classes as rows.
    fn check_classes(&self, rows: &[usize]) -> Result<()> {
        let Target::Classes(codes) = &self.target else {
            return Ok(());
        };
        let mut found: Vec<u32> = rows.iter().map(|&row| codes[row]).collect();
        found.sort_unstable();
        found.dedup();
        let weight = |row: &usize| self.weights.as_ref().map_or(1.0, |weights| weights[*row]);
        let total: f64 = rows.iter().map(weight).sum();
        let (n_classes, n_rows) = (found.len(), rows.len().max(total as usize));
        if n_classes <= MAX_RARE_CLASSES || 2 * n_classes <= n_rows {
            return Ok(());
        }
        let problem = format!(
            "it has {n_classes} classes in {n_rows} rows, fewer than two rows a class; choose a target whose values \
             repeat, or a numeric one for regression"
        );
        Err(Error::column(&self.schema.target, problem))
    }
}

/// The feature columns of a table, and those of target and weights.
fn split_roles(table: Cow<'_, Table>, roles: &Roles) -> (Table, Vec<Column>) {
    let n_rows = table.n_rows();
    let mut ignored: Vec<&String> = roles.ignore.iter().collect();
    ignored.sort_unstable();
    let is_used = |column: &Column| ignored.binary_search(&&column.name).is_err();
    let is_feature = |column: &Column| {
        column.name != roles.target && roles.weight.as_ref() != Some(&column.name)
    };
    let (features, others) = match table {
        Cow::Owned(table) => {
            let columns = table.into_columns().into_iter();
            columns.filter(is_used).partition(is_feature)
        }
        Cow::Borrowed(table) => {
            let columns = table.columns().iter();
            let used = columns.filter(|column| is_used(column)).cloned();
            used.partition(is_feature)
        }
    };
    (Table::derived(features, n_rows), others)
}

/// The weights of a column of numbers that are not negative.
fn weights_of(column: Column) -> Result<Vec<f64>> {
    let Values::Numeric(weights) = column.values else {
        return Err(Error::column(column.name, "weights must be numbers"));
    };
    let is_invalid = |weight: &f64| weight.is_nan() || *weight < 0.0;
    match weights.iter().position(is_invalid) {
        Some(row) => Err(Error::cell(
            column.name,
            row + 1,
            "a weight must be a number that is not negative",
        )),
        None => Ok(weights),
    }
}

pub(super) fn check_weights(weights: &[f64], n_rows: usize) -> Result<()> {
    if weights.len() != n_rows {
        return Err(Error::Table(format!(
            "{} weights for {n_rows} rows",
            weights.len()
        )));
    }
    if let Some(row) = weights
        .iter()
        .position(|weight| !weight.is_finite() || *weight < 0.0)
    {
        let found = weights[row];
        return Err(Error::Table(format!(
            "weight {found} of row {} must be finite and not negative",
            row + 1
        )));
    }
    if weights.iter().all(|weight| *weight <= 0.0) {
        return Err(Error::Table("all weights are zero".to_owned()));
    }
    let total: f64 = weights.iter().sum();
    if !TOTAL_WEIGHT.contains(&total) {
        return Err(Error::Table(format!(
            "the weights add up to {total:e}; a weight counts as that many rows, so they should add up to between {:e} and {:e}",
            TOTAL_WEIGHT.start(),
            TOTAL_WEIGHT.end()
        )));
    }
    Ok(())
}
