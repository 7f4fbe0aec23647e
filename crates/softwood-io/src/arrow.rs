//! Converts Arrow record batches to tables. Only this file decides which Arrow types are numeric and
//! which are categorical.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{AnyDictionaryArray, Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use softwood::data::Values;
use softwood::{Column, Error, Result, Table};

use crate::category_builder::CategoryBuilder;
use crate::cell::{Cell, EXACT_INTEGERS, parse_cell, quote_cell};
use crate::date::seconds_since_1970;
use crate::limits::{ReadLimits, push, reserve};
use crate::options::{KindRule, ReadOptions};
use crate::pandas_index::index_columns;
use crate::read::{InexactInteger, ReadTable, check_header, no_rows};

const SECONDS_PER_DAY: i64 = 86_400;

/// Content of the cells of an Arrow type.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CellKind {
    /// No content: every cell is missing.
    Null,
    Integer,
    /// Floats and decimals.
    Float,
    /// Dates, stored as days.
    Days,
    /// Dates and timestamps, stored as ticks since 1970; the value is the number of ticks per
    /// second.
    Instant(i64),
    /// Times and durations, stored as ticks; the value is the number of ticks per second.
    Ticks(i64),
    /// Strings and booleans.
    Text,
}

/// The kind of an Arrow type; `None` for nested and binary types.
fn cell_kind(data_type: &DataType) -> Option<CellKind> {
    use DataType as T;
    let kind = match data_type {
        t if t.is_integer() => CellKind::Integer,
        T::Null => CellKind::Null,
        t if t.is_floating() || t.is_decimal() => CellKind::Float,
        T::Date32 => CellKind::Days,
        T::Date64 => CellKind::Instant(1000),
        T::Timestamp(unit, _) => CellKind::Instant(ticks_per_second(*unit)),
        T::Time32(unit) | T::Time64(unit) | T::Duration(unit) => {
            CellKind::Ticks(ticks_per_second(*unit))
        }
        T::Boolean | T::Utf8 | T::LargeUtf8 | T::Utf8View => CellKind::Text,
        T::Dictionary(_, values) if !matches!(**values, T::Dictionary(..)) => {
            return cell_kind(values);
        }
        _ => return None,
    };
    Some(kind)
}

fn ticks_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Builds a table from record batches of the columns in [`TableBuilder::projection`].
#[derive(Debug)]
pub(crate) struct TableBuilder {
    columns: Vec<ArrowColumnBuilder>,
    index_columns: Vec<String>,
    limits: ReadLimits,
    n_rows: usize,
}

#[derive(Debug)]
struct ArrowColumnBuilder {
    name: String,
    rule: KindRule,
    kind: Option<CellKind>,
    cells: ArrowCells,
    /// First integer whose last digits a 64-bit float does not keep, with its row.
    inexact: Option<(usize, String)>,
    /// The first number or date in a text cell.
    first_text: Option<Cell>,
}

#[derive(Debug)]
enum ArrowCells {
    Numbers(Vec<f64>),
    Categories(CategoryBuilder),
}

impl TableBuilder {
    /// A builder without rows for the columns of a schema.
    pub(crate) fn new(schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let names: Vec<String> = schema.fields.iter().map(|f| f.name().clone()).collect();
        if names.is_empty() {
            return Err(Error::Table("the table has no columns".to_owned()));
        }
        options.limits.check_columns(names.len())?;
        check_header(&names)?;
        let rules = options.rules();
        let column = |field: &Arc<Field>| ArrowColumnBuilder::new(field, rules.of(field.name()));
        let columns = schema.fields.iter().map(column).collect::<Result<_>>()?;
        Ok(Self {
            columns,
            index_columns: index_columns(schema),
            limits: options.limits,
            n_rows: 0,
        })
    }

    /// Positions of the columns that have to be decoded. Cells of unsupported types are missing, and
    /// decoding them would only be a risk.
    pub(crate) fn projection(&self) -> Vec<usize> {
        let is_read = |at: &usize| self.columns[*at].kind.is_some();
        (0..self.columns.len()).filter(is_read).collect()
    }

    /// Rejects a table of too many cells; `n_rows` counts rows that are not appended yet.
    pub(crate) fn check_size(&self, n_rows: u64) -> Result<()> {
        let n_rows = n_rows.saturating_add(self.n_rows as u64);
        self.limits.check_cells(n_rows, self.columns.len())
    }

    /// Appends the rows of a batch.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let n_rows = batch.num_rows();
        self.check_size(n_rows as u64)?;
        let mut arrays = batch.columns().iter();
        for column in &mut self.columns {
            match column.kind {
                None => column.push_missing(n_rows)?,
                Some(kind) => {
                    let array = arrays.next().ok_or_else(|| {
                        let problem = "the file is damaged: a batch lacks this column";
                        Error::column(&column.name, problem)
                    })?;
                    column.push(array, kind, self.n_rows)?;
                }
            }
        }
        self.n_rows += n_rows;
        Ok(())
    }

    /// The table of all batches.
    pub(crate) fn finish(self) -> Result<ReadTable> {
        if self.n_rows == 0 {
            return Err(no_rows());
        }
        let mut found = ReadTable {
            index_columns: self.index_columns,
            ..ReadTable::default()
        };
        let mut columns = Vec::with_capacity(self.columns.len());
        for mut column in self.columns {
            let name = &column.name;
            if matches!(column.kind, Some(CellKind::Days | CellKind::Instant(_)))
                && matches!(column.cells, ArrowCells::Numbers(_))
            {
                found.date_columns.push(name.clone());
            }
            let inexact = column.inexact.take();
            found
                .inexact
                .extend(inexact.map(|(row, text)| InexactInteger {
                    column: name.clone(),
                    row,
                    text,
                }));
            columns.push(column.finish());
        }
        found.table = Table::new(columns)?;
        Ok(found)
    }
}

impl ArrowColumnBuilder {
    fn new(field: &Field, rule: KindRule) -> Result<Self> {
        let kind = cell_kind(field.data_type());
        let cells = match (rule, kind) {
            (KindRule::Lenient, None) | (KindRule::Numeric | KindRule::Trained, Some(_)) => {
                ArrowCells::Numbers(Vec::new())
            }
            (_, None) => {
                let problem = format!(
                    "the type {} is neither numeric nor categorical; remove the column from the table",
                    field.data_type()
                );
                return Err(Error::column(field.name(), problem));
            }
            (KindRule::Categorical, _) | (_, Some(CellKind::Text)) => {
                ArrowCells::Categories(CategoryBuilder::default())
            }
            _ => ArrowCells::Numbers(Vec::new()),
        };
        Ok(Self {
            name: field.name().clone(),
            rule,
            kind,
            cells,
            inexact: None,
            first_text: None,
        })
    }

    fn push_missing(&mut self, n_rows: usize) -> Result<()> {
        match &mut self.cells {
            ArrowCells::Numbers(numbers) => {
                reserve(numbers, n_rows)?;
                numbers.resize(numbers.len() + n_rows, f64::NAN);
                Ok(())
            }
            ArrowCells::Categories(categories) => {
                (0..n_rows).try_for_each(|_| categories.push(None))
            }
        }
    }

    fn push(&mut self, array: &ArrayRef, kind: CellKind, rows_before: usize) -> Result<()> {
        if kind == CellKind::Null {
            return self.push_missing(array.len());
        }
        let failed = |error: ArrowError| {
            Error::column(
                &self.name,
                format!("the cells cannot be converted: {error}"),
            )
        };
        match &mut self.cells {
            ArrowCells::Categories(categories) if kind == CellKind::Text => {
                push_texts(categories, array)
            }
            ArrowCells::Categories(categories) => {
                let array = without_dictionary(array).map_err(failed)?;
                push_categories(categories, &array, kind, failed)
            }
            ArrowCells::Numbers(numbers) if kind == CellKind::Text => {
                let mut parser = TextNumbers {
                    column: &self.name,
                    rule: self.rule,
                    row: rows_before,
                    first: self.first_text,
                };
                for_each_text(array, |text| push(numbers, parser.parse(text)?))?;
                self.first_text = parser.first;
                Ok(())
            }
            ArrowCells::Numbers(numbers) => {
                let array = without_dictionary(array).map_err(failed)?;
                reserve(numbers, array.len())?;
                push_numbers(numbers, &array, kind).map_err(failed)?;
                if self.inexact.is_none()
                    && let Some((at, text)) = inexact_integer(&array)
                {
                    self.inexact = Some((rows_before + at + 1, text));
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> Column {
        let values = match self.cells {
            ArrowCells::Categories(categories) => categories.finish(),
            ArrowCells::Numbers(numbers)
                if self.rule == KindRule::Lenient && numbers.iter().any(|n| n.is_infinite()) =>
            {
                let text = |n: &f64| Some(n.to_string()).filter(|_| !n.is_nan());
                let texts: Vec<Option<String>> = numbers.iter().map(text).collect();
                Column::categorical("", &texts).values
            }
            ArrowCells::Numbers(numbers) => Values::Numeric(numbers),
        };
        Column {
            name: self.name,
            values,
        }
    }
}

/// The array with a dictionary replaced by its values.
fn without_dictionary(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values),
        _ => Ok(Arc::clone(array)),
    }
}

/// Appends texts. Every value of a dictionary is looked up once: many cells may share a long text.
fn push_texts(categories: &mut CategoryBuilder, array: &ArrayRef) -> Result<()> {
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        return for_each_text(array, |text| categories.push(text));
    };
    let mut codes: Vec<Option<u32>> = vec![None; dictionary.values().len()];
    for_each_key(dictionary, |key| {
        let code = key.and_then(|key| {
            if codes[key].is_none() {
                codes[key] = text_at(dictionary.values(), key).map(|text| categories.code(text));
            }
            codes[key]
        });
        categories.push_code(code)
    })
}

/// Visits the cells of an array of strings or booleans, or of a dictionary of them, without copying
/// texts.
fn for_each_text(
    array: &ArrayRef,
    mut visit: impl FnMut(Option<&str>) -> Result<()>,
) -> Result<()> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return for_each_key(dictionary, |key| {
            visit(key.and_then(|key| text_at(dictionary.values(), key)))
        });
    }
    (0..array.len()).try_for_each(|row| visit(text_at(array, row)))
}

/// Visits the positions of the cells in the values of a dictionary; `None` for missing cells.
fn for_each_key(
    dictionary: &dyn AnyDictionaryArray,
    mut visit: impl FnMut(Option<usize>) -> Result<()>,
) -> Result<()> {
    let keys = dictionary.keys();
    if dictionary.values().is_empty() {
        return (0..keys.len()).try_for_each(|_| visit(None));
    }
    let positions = dictionary.normalized_keys();
    let position = |row: usize| Some(positions[row]).filter(|_| !keys.is_null(row));
    (0..keys.len()).try_for_each(|row| visit(position(row)))
}

/// The text of a cell; `None` if it is missing.
fn text_at(array: &ArrayRef, row: usize) -> Option<&str> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row),
        DataType::Utf8View => array.as_string_view().value(row),
        _ if array.as_boolean_opt()?.value(row) => "true",
        _ => "false",
    })
}

/// Appends categories of cells that are not texts. A float is named by the text of its `f64` value
/// (`3`, not `3.0`); any other cell by Arrow's own text, which keeps integers beyond 2^53 distinct.
fn push_categories(
    categories: &mut CategoryBuilder,
    array: &ArrayRef,
    kind: CellKind,
    failed: impl Fn(ArrowError) -> Error,
) -> Result<()> {
    if kind == CellKind::Float {
        let mut numbers = Vec::new();
        push_numbers(&mut numbers, array, kind).map_err(failed)?;
        for number in numbers {
            let text = Some(number.to_string()).filter(|_| !number.is_nan());
            categories.push(text.as_deref())?;
        }
        return Ok(());
    }
    let texts = cast(array, &DataType::LargeUtf8).map_err(failed)?;
    push_texts(categories, &texts)
}

fn push_numbers(
    numbers: &mut Vec<f64>,
    array: &ArrayRef,
    kind: CellKind,
) -> std::result::Result<(), ArrowError> {
    let missing = f64::NAN;
    match kind {
        CellKind::Days => {
            let days = cast(array, &DataType::Int32)?;
            let seconds = |days: i32| seconds_since_1970(SECONDS_PER_DAY * i64::from(days), 0);
            let days = days.as_primitive::<Int32Type>().iter();
            numbers.extend(days.map(|days| days.map_or(missing, seconds)));
        }
        CellKind::Instant(per_second) => {
            let ticks = cast(array, &DataType::Int64)?;
            let seconds = |ticks: i64| {
                let nanos = ticks.rem_euclid(per_second) * (1_000_000_000 / per_second);
                seconds_since_1970(ticks.div_euclid(per_second), nanos as u32)
            };
            let ticks = ticks.as_primitive::<Int64Type>().iter();
            numbers.extend(ticks.map(|ticks| ticks.map_or(missing, seconds)));
        }
        CellKind::Ticks(per_second) => {
            let ticks = cast(
                &cast(&ticks_of(array)?, &DataType::Int64)?,
                &DataType::Float64,
            )?;
            let ticks = ticks.as_primitive::<Float64Type>().iter();
            numbers.extend(ticks.map(|ticks| ticks.map_or(missing, |t| t / per_second as f64)));
        }
        _ => {
            let values = cast(array, &DataType::Float64)?;
            let values = values.as_primitive::<Float64Type>().iter();
            numbers.extend(values.map(|value| value.unwrap_or(missing)));
        }
    }
    Ok(())
}

/// Ticks as integers: Arrow casts 32-bit times only to 32-bit integers.
fn ticks_of(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Time32(_) => cast(array, &DataType::Int32),
        _ => Ok(Arc::clone(array)),
    }
}

/// The first integer that a 64-bit float cannot hold, with its position.
fn inexact_integer(array: &ArrayRef) -> Option<(usize, String)> {
    if let Some(integers) = array.as_primitive_opt::<Int64Type>() {
        let is_inexact =
            |v: i64| v.unsigned_abs() > EXACT_INTEGERS && v as f64 as i128 != i128::from(v);
        let at = integers.iter().position(|v| v.is_some_and(is_inexact))?;
        return Some((at, integers.value(at).to_string()));
    }
    let integers = array.as_primitive_opt::<UInt64Type>()?;
    let is_inexact = |v: u64| v > EXACT_INTEGERS && v as f64 as u128 != u128::from(v);
    let at = integers.iter().position(|v| v.is_some_and(is_inexact))?;
    Some((at, integers.value(at).to_string()))
}

/// Parses the numbers or dates in the text cells of a column; a cell with other text is an error.
struct TextNumbers<'a> {
    column: &'a str,
    rule: KindRule,
    /// Rows parsed so far.
    row: usize,
    /// The first number or date.
    first: Option<Cell>,
}

impl TextNumbers<'_> {
    fn parse(&mut self, text: Option<&str>) -> Result<f64> {
        self.row += 1;
        let cell = text.map_or(Cell::Missing, parse_cell);
        match (cell, self.first) {
            (Cell::Missing, _) => Ok(f64::NAN),
            (Cell::Number(value), None | Some(Cell::Number(_)))
            | (Cell::Date(value), None | Some(Cell::Date(_))) => {
                self.first = Some(cell);
                Ok(value)
            }
            (_, first) => {
                let expected = match first {
                    Some(Cell::Date(_)) => "date",
                    _ => "number",
                };
                let problem = format!(
                    "{} is not a {expected}; use null if the cell is missing{}",
                    quote_cell(text.unwrap_or_default()),
                    self.rule.text_advice().unwrap_or_default()
                );
                Err(Error::cell(self.column, self.row, problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
        Float32Array, Float64Array, Int8Array, Int32Array, Int64Array, NullArray, StringArray,
        StringViewArray, Time32MillisecondArray, TimestampMicrosecondArray,
        TimestampNanosecondArray, UInt64Array,
    };

    fn read_array(array: impl Array + 'static, options: &ReadOptions) -> Result<Values> {
        let batch = RecordBatch::try_from_iter([("x", Arc::new(array) as ArrayRef)]).unwrap();
        let mut builder = TableBuilder::new(&batch.schema(), options)?;
        builder.push(&batch)?;
        Ok(builder.finish()?.table.columns()[0].values.clone())
    }

    fn read_default(array: impl Array + 'static) -> Values {
        read_array(array, &ReadOptions::default()).unwrap()
    }

    fn categorical() -> ReadOptions {
        ReadOptions {
            categorical: vec!["x".to_owned()],
            ..ReadOptions::default()
        }
    }

    fn numeric() -> ReadOptions {
        ReadOptions {
            numeric: vec!["x".to_owned()],
            ..ReadOptions::default()
        }
    }

    fn names(texts: &[Option<&str>]) -> Values {
        Column::categorical("x", texts).values
    }

    #[test]
    fn numbers_of_every_width_are_numeric() {
        let big = UInt64Array::from(vec![3, u64::MAX]);
        assert_eq!(read_default(big), Values::Numeric(vec![3.0, 2f64.powi(64)]));
        let half = Float32Array::from(vec![0.5]);
        assert_eq!(read_default(half), Values::Numeric(vec![0.5]));
        let price = Decimal128Array::from(vec![150])
            .with_precision_and_scale(5, 2)
            .unwrap();
        assert_eq!(read_default(price), Values::Numeric(vec![1.5]));
        let gap = Int64Array::from(vec![Some(1), None]);
        assert!(matches!(read_default(gap), Values::Numeric(n) if n[1].is_nan()));
        let nothing = read_default(NullArray::new(2));
        assert!(matches!(nothing, Values::Numeric(n) if n.iter().all(|n| n.is_nan())));
    }

    #[test]
    fn dates_and_timestamps_are_seconds_since_1970() {
        let numbers = |values| Values::Numeric(values);
        let day = Date32Array::from(vec![Some(3), Some(-1)]);
        assert_eq!(read_default(day), numbers(vec![259_200.0, -86_400.0]));
        let noon = Date64Array::from(vec![86_400_000 / 2 * 3]);
        assert_eq!(read_default(noon), numbers(vec![129_600.0]));
        let stamp = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("UTC");
        assert_eq!(read_default(stamp), numbers(vec![1.5]));
        let time = Time32MillisecondArray::from(vec![2500]);
        assert_eq!(read_default(time), numbers(vec![2.5]));
    }

    #[test]
    fn an_instant_has_the_same_bits_in_every_unit_and_in_text() {
        let micros = 1_706_704_205_123_457_i64;
        let [fine, coarse] = [
            read_default(TimestampNanosecondArray::from(vec![1000 * micros])),
            read_default(TimestampMicrosecondArray::from(vec![micros])),
        ];
        assert_eq!(fine, coarse);
        let text = StringArray::from(vec!["2024-01-31T12:30:05.123457"]);
        assert_eq!(read_array(text, &numeric()).unwrap(), fine);
    }

    #[test]
    fn dates_in_texts_declared_numeric_do_not_mix_with_numbers() {
        let texts = StringArray::from(vec!["1970-01-02", "17"]);
        let message = read_array(texts, &numeric()).unwrap_err().to_string();
        assert!(
            message.starts_with("column `x`, row 2: `17` is not a date"),
            "{message}"
        );
    }

    #[test]
    fn dates_and_numbers_do_not_mix_across_batches() {
        let batch = |text: &str| {
            let texts = Arc::new(StringArray::from(vec![text])) as ArrayRef;
            RecordBatch::try_from_iter([("x", texts)]).unwrap()
        };
        let (dates, numbers) = (batch("1970-01-02"), batch("17"));
        let mut builder = TableBuilder::new(&dates.schema(), &numeric()).unwrap();
        builder.push(&dates).unwrap();
        assert!(builder.push(&numbers).is_err());
    }

    #[test]
    fn integers_that_a_float_cannot_hold_are_reported() {
        let inexact = |array: ArrayRef| {
            let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
            let mut builder = TableBuilder::new(&batch.schema(), &ReadOptions::default()).unwrap();
            builder.push(&batch).unwrap();
            builder.push(&batch).unwrap();
            builder.finish().unwrap().inexact
        };
        let big = (1_i64 << 53) + 1;
        for array in [
            Arc::new(Int64Array::from(vec![Some(1), None, Some(-big)])) as ArrayRef,
            Arc::new(UInt64Array::from(vec![1, 1 << 60, u64::MAX])),
        ] {
            let found = inexact(array);
            assert_eq!(
                (found.len(), found[0].column.as_str(), found[0].row),
                (1, "x", 3)
            );
        }
        assert!(inexact(Arc::new(Int64Array::from(vec![1 << 53, i64::MIN]))).is_empty());
    }

    #[test]
    fn dictionaries_without_values_and_long_shared_texts_are_read() {
        let keys = Int8Array::from(vec![None, None]);
        let empty = DictionaryArray::new(keys, Arc::new(StringArray::from(Vec::<&str>::new())));
        assert_eq!(read_default(empty), names(&[None, None]));
        // copies of this text would need four terabytes
        let text = "x".repeat(1 << 22);
        let keys = Int32Array::from(vec![0; 1 << 20]);
        let shared = DictionaryArray::new(keys, Arc::new(StringArray::from(vec![text.as_str()])));
        let found = read_default(shared);
        assert!(matches!(found, Values::Categorical { codes, levels }
            if codes.len() == 1 << 20 && levels.len() == 1));
    }

    #[test]
    fn strings_booleans_and_dictionaries_are_categorical() {
        let wanted = names(&[Some("b"), None, Some("NA")]);
        let texts = vec![Some("b"), None, Some("NA")];
        assert_eq!(read_default(StringArray::from(texts.clone())), wanted);
        assert_eq!(read_default(StringViewArray::from(texts.clone())), wanted);
        let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
        assert_eq!(read_default(dictionary), wanted);
        let truth = BooleanArray::from(vec![Some(true), None]);
        assert_eq!(read_default(truth), names(&[Some("true"), None]));
    }

    #[test]
    fn numbers_declared_categorical_are_named_by_their_text() {
        let reals = Float64Array::from(vec![Some(3.0), Some(0.5), None]);
        let found = read_array(reals, &categorical()).unwrap();
        assert_eq!(found, names(&[Some("3"), Some("0.5"), None]));
        let ids = Int64Array::from(vec![(1 << 60) + 1, 1 << 60]);
        let found = read_array(ids, &categorical()).unwrap();
        let wanted = [Some("1152921504606846977"), Some("1152921504606846976")];
        assert_eq!(found, names(&wanted));
    }

    #[test]
    fn strings_declared_numeric_are_parsed() {
        let texts = StringArray::from(vec!["1.5", " 2 ", "4"]);
        let found = read_array(texts, &numeric()).unwrap();
        assert_eq!(found, Values::Numeric(vec![1.5, 2.0, 4.0]));
        let texts = StringArray::from(vec!["1.5", "", "four"]);
        let message = read_array(texts, &numeric()).unwrap_err().to_string();
        assert!(
            message.starts_with("column `x`, row 3: `four`"),
            "{message}"
        );
    }

    #[test]
    fn unsupported_types_are_rejected_unless_the_column_is_lenient() {
        let bytes = || BinaryArray::from(vec![b"a".as_slice()]);
        for options in [ReadOptions::default(), numeric(), categorical()] {
            let message = read_array(bytes(), &options).unwrap_err().to_string();
            assert!(
                message.contains("`x`") && message.contains("Binary"),
                "{message}"
            );
        }
        let lenient = ReadOptions {
            lenient: true,
            ..ReadOptions::default()
        };
        let found = read_array(bytes(), &lenient).unwrap();
        assert!(matches!(found, Values::Numeric(n) if n[0].is_nan()));
        let infinite = Float64Array::from(vec![f64::INFINITY]);
        assert_eq!(
            read_array(infinite, &lenient).unwrap(),
            names(&[Some("inf")])
        );
    }
}
