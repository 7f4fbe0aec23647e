//! The target of a dataset: values or classes, standard units, and the floor of predicted standard
//! deviations.

use std::borrow::Cow;

use crate::data::column::{MISSING, Values};
use crate::data::dataset::Dataset;
use crate::data::schema::{Labels, NameIndex, Schema, Task};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::store::range;
use crate::store::record::Record;

/// Target values, one per row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// Numbers.
    Numeric(Vec<f64>),
    /// Class of each row, as an index into the schema's classes.
    Classes(Vec<u32>),
}

impl Target {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numeric(values) => values.len(),
            Self::Classes(codes) => codes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn take(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numeric(values) => Self::Numeric(rows.iter().map(|&row| values[row]).collect()),
            Self::Classes(codes) => Self::Classes(rows.iter().map(|&row| codes[row]).collect()),
        }
    }
}

/// An affine map between the target `y` and its standardised value `z`: `y = shift + scale * z`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct TargetUnits {
    pub(crate) shift: f64,
    pub(crate) scale: f64,
}

/// Largest magnitude of the shift and the scale of a target.
const MAX_UNIT: f64 = 1e306;
/// Smallest scale of a target: smaller numbers have fewer digits.
const MIN_UNIT: f64 = f64::MIN_POSITIVE;

/// Floor of predicted standard deviations in standard units, for a continuous target.
pub(crate) const MIN_SCALE: f64 = 1e-3;
/// Largest floor, for a target whose values are almost all equal: half a step is then many standard
/// deviations.
const MAX_SCALE: f64 = 1e3;
/// A target lies on a coarse grid if at least this many rows share each value on average, ...
const ROWS_PER_VALUE: usize = 8;
/// ... and there are at most this many values. A finer grid, such as a measurement rounded to three
/// digits, resolves more than any model and needs no floor.
const MAX_VALUES: usize = 32;

/// Standard units of a numeric target and the floor of its predicted standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetStandard {
    pub(crate) units: TargetUnits,
    /// Smallest standard deviation in standard units: [`MIN_SCALE`], or half the step of a target
    /// on a coarse grid.
    pub(crate) floor: f64,
}

impl TargetStandard {
    /// Units and floor of these values; weights count as repetitions.
    pub(crate) fn of(values: &[f64], weights: Option<&[f64]>) -> Self {
        let units = TargetUnits::fit(values, weights);
        let half_step = resolution(values, weights).map_or(0.0, |step| 0.5 * step / units.scale);
        Self {
            units,
            floor: half_step.clamp(MIN_SCALE, MAX_SCALE),
        }
    }

    /// Units and floor of the target of the given rows; identity units for classes.
    pub(crate) fn of_rows(data: &Dataset, rows: &[u32], weights: &[f64]) -> Self {
        match data.target() {
            Target::Numeric(values) => {
                let values: Vec<f64> = rows.iter().map(|&row| values[row as usize]).collect();
                Self::of(&values, Some(weights))
            }
            Target::Classes(_) => Self::CLASSES,
        }
    }

    /// Classes have no units.
    pub(crate) const CLASSES: Self = Self {
        units: TargetUnits {
            shift: 0.0,
            scale: 1.0,
        },
        floor: MIN_SCALE,
    };
}

impl TargetUnits {
    /// The weighted mean and standard deviation of `values`.
    pub(crate) fn fit(values: &[f64], weights: Option<&[f64]>) -> Self {
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        let unit = values
            .iter()
            .fold(f64::MIN_POSITIVE, |unit, value| unit.max(value.abs()));
        let total: f64 = (0..values.len()).map(weight).sum();
        let mean = unit
            * (values
                .iter()
                .enumerate()
                .map(|(at, v)| weight(at) * (v / unit))
                .sum::<f64>()
                / total);
        let square = |(at, value): (usize, &f64)| weight(at) * ((value - mean) / unit).powi(2);
        let sd = unit * (values.iter().enumerate().map(square).sum::<f64>() / total).sqrt();
        Self {
            shift: mean,
            scale: if sd > 0.0 && sd.is_finite() { sd } else { 1.0 },
        }
    }

    pub(crate) fn apply(&self, value: f64) -> f64 {
        (value - self.shift) / self.scale
    }

    /// The target of the given rows in training units: standardised numbers, or class codes.
    pub(crate) fn encode(&self, target: &Target, rows: impl Iterator<Item = usize>) -> Vec<f32> {
        match target {
            Target::Numeric(values) => rows.map(|row| self.apply(values[row]) as f32).collect(),
            Target::Classes(codes) => rows.map(|row| codes[row] as f32).collect(),
        }
    }

    /// Reads the units from a record.
    ///
    /// # Errors
    /// When the units are absent or out of range.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let units: Self = record.part("standard")?;
        units.check()?;
        Ok(units)
    }

    /// Returns an error unless the units, which were read from a file, are in range.
    pub(crate) fn check(&self) -> Result<()> {
        range::check("standard.shift", self.shift, &(-MAX_UNIT..=MAX_UNIT))?;
        range::check("standard.scale", self.scale, &(MIN_UNIT..=MAX_UNIT))
    }
}

/// The step of the coarse grid that the values lie on; `None` for a continuous target.
///
/// A density can be arbitrarily high at repeated values; half the step is the smallest meaningful
/// scale.
fn resolution(values: &[f64], weights: Option<&[f64]>) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut gaps: Vec<f64> = sorted
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 0.0)
        .collect();
    let n_values = gaps.len() + 1;
    // equal rows may arrive as one row with the sum of their weights
    let n_rows = weights.map_or(values.len() as f64, |weights| weights.iter().sum());
    let is_coarse = n_values <= MAX_VALUES && n_rows >= (ROWS_PER_VALUE * n_values) as f64;
    if gaps.is_empty() || !is_coarse {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    Some(gaps[gaps.len() / 2])
}

impl Schema {
    /// Reads the schema from a record.
    ///
    /// # Errors
    /// When the schema is absent, or has classes but none of them a name.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let schema: Self = record.part("schema")?;
        if schema.classes().is_some_and(<[String]>::is_empty) {
            return Err(Error::Format("the schema has no classes".to_owned()));
        }
        Ok(schema)
    }

    /// The target of a labelled table.
    ///
    /// # Errors
    /// When the column is absent, or a cell is missing, is not a number (regression) or is not a
    /// class of the schema.
    pub fn target_of(&self, table: &Table) -> Result<Target> {
        self.target_from(Cow::Borrowed(&table.column(&self.target)?.values))
    }

    /// The target of the cells of its column; owned numbers are not copied.
    ///
    /// # Errors
    /// As [`Schema::target_of`].
    pub(crate) fn target_from(&self, values: Cow<'_, Values>) -> Result<Target> {
        let Task::Classification { classes } = &self.task else {
            return self.numeric_target(values);
        };
        self.class_target(&values, classes)
    }

    fn numeric_target(&self, values: Cow<'_, Values>) -> Result<Target> {
        match values.into_owned() {
            Values::Numeric(numbers) => match numbers.iter().position(|value| value.is_nan()) {
                Some(row) => Err(self.missing_target(row)),
                None => Ok(Target::Numeric(numbers)),
            },
            Values::Categorical { codes, levels } => {
                let row = codes.iter().position(|&code| code != MISSING).unwrap_or(0);
                let text = levels
                    .get(codes.get(row).map_or(0, |&code| code as usize))
                    .map_or("", String::as_str);
                let problem = format!(
                    "`{text}` is not a number; a regression target must be numeric (or classify)"
                );
                Err(Error::cell(&self.target, row + 1, problem))
            }
        }
    }

    fn class_target(&self, values: &Values, classes: &[String]) -> Result<Target> {
        let code_of_row = class_codes(values, classes);
        let code = |row: usize| {
            if let Some(code) = code_of_row(row) {
                return Ok(code);
            }
            let Some(name) = class_name(values, row) else {
                return Err(self.missing_target(row));
            };
            let problem = format!(
                "`{name}` is not a class of the model; it knows {}",
                classes.join(", ")
            );
            Err(Error::cell(&self.target, row + 1, problem))
        };
        let codes = (0..values.len()).map(code);
        codes.collect::<Result<_>>().map(Target::Classes)
    }

    fn missing_target(&self, row: usize) -> Error {
        let problem = "the target cell is missing; drop the row or fill the cell";
        Error::cell(&self.target, row + 1, problem)
    }
}

/// A function from the row to its class code, by category or by number; `None` for a missing cell
/// or an unknown class.
fn class_codes<'a>(
    values: &'a Values,
    classes: &'a [String],
) -> Box<dyn Fn(usize) -> Option<u32> + 'a> {
    let index = NameIndex::of(classes);
    match values {
        Values::Categorical { codes, levels } => {
            let code_of_name = |name: &String| {
                let code = index.find(name);
                code.or_else(|| boolean_class(classes, name))
            };
            let code_of_level: Vec<Option<u32>> = levels.iter().map(code_of_name).collect();
            Box::new(move |row| code_of_level.get(codes[row] as usize).copied().flatten())
        }
        Values::Numeric(numbers) => {
            let distinct = distinct_numbers(numbers);
            let code_of_number: Vec<Option<u32>> = distinct
                .iter()
                .map(|number| index.find(&number.to_string()))
                .collect();
            Box::new(move |row| {
                let compare = |number: &f64| number.total_cmp(&numbers[row]);
                let at = distinct.binary_search_by(compare).ok()?;
                code_of_number[at]
            })
        }
    }
}

/// The class that is `true` or `false` in another case, such as the text `True`, if there is only
/// one: readers of text files write these words in lower case.
fn boolean_class(classes: &[String], name: &str) -> Option<u32> {
    if name != "true" && name != "false" {
        return None;
    }
    let is_same = |class: &&String| class.trim().eq_ignore_ascii_case(name);
    let mut found = classes.iter().filter(is_same);
    let (class, None) = (found.next()?, found.next()) else {
        return None;
    };
    let code = classes.iter().position(|other| other == class);
    code.map(|code| code as u32)
}

fn class_name(values: &Values, row: usize) -> Option<String> {
    match values {
        Values::Numeric(numbers) => Some(numbers[row])
            .filter(|value| !value.is_nan())
            .map(|value| value.to_string()),
        Values::Categorical { codes, levels } => levels.get(codes[row] as usize).cloned(),
    }
}

/// The numbers that occur, in ascending order, without NaN.
fn distinct_numbers(numbers: &[f64]) -> Vec<f64> {
    let mut found: Vec<f64> = numbers
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    found.sort_unstable_by(f64::total_cmp);
    found.dedup_by(|a, b| a.total_cmp(b).is_eq());
    found
}

/// Names of the classes that occur: numbers in numeric order, texts in the order of the levels.
pub(crate) fn classes_of(values: &Values) -> Vec<String> {
    match values {
        Values::Numeric(numbers) => {
            let distinct = distinct_numbers(numbers);
            distinct.iter().map(ToString::to_string).collect()
        }
        Values::Categorical { codes, levels } => {
            let mut seen = vec![false; levels.len()];
            for &code in codes.iter().filter(|&&code| (code as usize) < levels.len()) {
                seen[code as usize] = true;
            }
            levels
                .iter()
                .zip(seen)
                .filter(|(_, seen)| *seen)
                .map(|(level, _)| level.clone())
                .collect()
        }
    }
}

/// The type of class labels. Booleans arrive as categories and are recognised by their names.
pub(crate) fn labels_of(values: &Values) -> Labels {
    match values {
        Values::Numeric(_) => Labels::Number,
        Values::Categorical { levels, .. } => {
            let is_boolean = |name: &String| name == "true" || name == "false";
            if levels.iter().all(is_boolean) {
                Labels::Boolean
            } else {
                Labels::Text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;

    #[test]
    fn scores_have_a_resolution_and_measurements_have_none() {
        let scores: Vec<f64> = (0..100).map(|i| f64::from(i * 7 % 5)).collect();
        assert_eq!(resolution(&scores, None), Some(1.0));
        let measured: Vec<f64> = (0..100).map(|i| f64::from(i).sqrt()).collect();
        assert_eq!(resolution(&measured, None), None);
    }

    #[test]
    fn weights_count_as_rows_for_the_resolution() {
        let values = [3.0, 4.0, 5.0];
        assert_eq!(resolution(&values, None), None);
        assert_eq!(resolution(&values, Some(&[10.0; 3])), Some(1.0));
    }

    #[test]
    fn booleans_of_a_reader_match_the_texts_true_and_false_in_another_case() {
        let target = Column::categorical("t", &[Some("true"), Some("false"), Some("true")]);
        let table = Table::new(vec![Column::numeric("x", vec![0.0; 3]), target]).unwrap();
        let codes = |classes: &[&str]| {
            let classes = classes.iter().map(|&class| class.to_owned()).collect();
            let features = table.without(&["t"]);
            let schema = Schema::of(&features, "t", Task::Classification { classes });
            schema.target_of(&table).map_err(|error| error.to_string())
        };
        assert_eq!(
            codes(&["False", "True"]),
            Ok(Target::Classes(vec![1, 0, 1]))
        );
        assert_eq!(
            codes(&["False", "TRUE", "true"]),
            Ok(Target::Classes(vec![2, 0, 2]))
        );
        let message = codes(&["False", "TRUE", "True"]).unwrap_err();
        assert!(
            message.contains("row 1: `true` is not a class"),
            "{message}"
        );
    }

    #[test]
    fn standard_units_survive_huge_numbers() {
        let standard = TargetUnits::fit(&[1e300, -1e300, 0.0], None);
        assert!(
            standard.shift.abs() < 1e290 && standard.scale.is_finite() && standard.scale > 1e299
        );
    }
}
