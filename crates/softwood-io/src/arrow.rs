//! Converts Arrow record batches to tables and back. Only this file decides which Arrow types are
//! numeric and which are categorical.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use softwood::data::Values;
use softwood::{Column, Error, Result, Table};

use crate::category_builder::CategoryBuilder;
use crate::cell::{Cell, parse_cell, quote_cell};
use crate::options::{KindRule, ReadOptions};
use crate::read::{check_header, no_rows};

/// Rows of one written batch, few enough for 32-bit string offsets.
const BATCH_ROWS: usize = 1 << 16;

/// Content of the cells of an Arrow type.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CellKind {
    /// Integers; also the null type, whose cells are all missing.
    Integer,
    /// Floats and decimals.
    Float,
    /// Dates, times and durations, stored as ticks; the value is the number of ticks per day
    /// (dates) or per second (all others).
    Ticks(f64),
    /// Strings and booleans.
    Text,
}

/// The kind of an Arrow type; `None` for nested and binary types.
fn cell_kind(data_type: &DataType) -> Option<CellKind> {
    use DataType as T;
    let kind = match data_type {
        t if t.is_integer() => CellKind::Integer,
        T::Null => CellKind::Integer,
        t if t.is_floating() || t.is_decimal() => CellKind::Float,
        T::Date32 => CellKind::Ticks(1.0),
        T::Date64 => CellKind::Ticks(86_400_000.0),
        T::Timestamp(unit, _) | T::Time32(unit) | T::Time64(unit) | T::Duration(unit) => {
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

fn ticks_per_second(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

/// Builds a table from record batches.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    columns: Vec<ArrowColumnBuilder>,
    n_rows: usize,
}

#[derive(Debug)]
struct ArrowColumnBuilder {
    name: String,
    rule: KindRule,
    kind: Option<CellKind>,
    cells: ArrowCells,
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
        check_header(&names)?;
        let column =
            |field: &Arc<Field>| ArrowColumnBuilder::new(field, options.rule(field.name()));
        let columns = schema.fields.iter().map(column).collect::<Result<_>>()?;
        Ok(Self { columns, n_rows: 0 })
    }

    /// Appends the rows of a batch.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            column.push(array, self.n_rows)?;
        }
        self.n_rows += batch.num_rows();
        Ok(())
    }

    /// The table of all batches.
    pub(crate) fn finish(self) -> Result<Table> {
        if self.n_rows == 0 {
            return Err(no_rows());
        }
        Table::new(
            self.columns
                .into_iter()
                .map(ArrowColumnBuilder::finish)
                .collect(),
        )
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
        })
    }

    fn push(&mut self, array: &ArrayRef, rows_before: usize) -> Result<()> {
        let Some(kind) = self.kind else {
            if let ArrowCells::Numbers(numbers) = &mut self.cells {
                numbers.resize(numbers.len() + array.len(), f64::NAN);
            }
            return Ok(());
        };
        let array =
            without_dictionary(array).map_err(|error| conversion_error(&self.name, &error))?;
        match &mut self.cells {
            ArrowCells::Categories(categories) => push_categories(categories, &array, kind)
                .map_err(|error| conversion_error(&self.name, &error)),
            ArrowCells::Numbers(numbers) if kind == CellKind::Text => {
                let texts =
                    texts_of(&array).map_err(|error| conversion_error(&self.name, &error))?;
                parse_numbers(numbers, &texts, &self.name, self.rule, rows_before)
            }
            ArrowCells::Numbers(numbers) => push_numbers(numbers, &array, kind)
                .map_err(|error| conversion_error(&self.name, &error)),
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

fn conversion_error(column: &str, error: &ArrowError) -> Error {
    Error::column(column, format!("the cells cannot be converted: {error}"))
}

/// The array with a dictionary replaced by its values.
fn without_dictionary(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values),
        _ => Ok(Arc::clone(array)),
    }
}

fn texts_of(array: &ArrayRef) -> std::result::Result<LargeStringArray, ArrowError> {
    let texts = cast(array, &DataType::LargeUtf8)?;
    Ok(texts.as_string::<i64>().clone())
}

/// Appends categories. A float is named by the text of its `f64` value (`3`, not `3.0`); any other
/// cell by Arrow's own text, which keeps integers beyond 2^53 distinct.
fn push_categories(
    categories: &mut CategoryBuilder,
    array: &ArrayRef,
    kind: CellKind,
) -> std::result::Result<(), ArrowError> {
    if kind == CellKind::Float {
        let mut numbers = Vec::new();
        push_numbers(&mut numbers, array, kind)?;
        for number in numbers {
            let text = Some(number.to_string()).filter(|_| !number.is_nan());
            categories.push(text.as_deref());
        }
        return Ok(());
    }
    for text in &texts_of(array)? {
        categories.push(text);
    }
    Ok(())
}

fn push_numbers(
    numbers: &mut Vec<f64>,
    array: &ArrayRef,
    kind: CellKind,
) -> std::result::Result<(), ArrowError> {
    let (array, ticks) = match kind {
        CellKind::Ticks(ticks) if matches!(array.data_type(), DataType::Date32) => {
            (cast(array, &DataType::Int32)?, ticks)
        }
        CellKind::Ticks(ticks) => (cast(&ticks_of(array)?, &DataType::Int64)?, ticks),
        _ => (Arc::clone(array), 1.0),
    };
    let array = cast(&array, &DataType::Float64)?;
    let values = array.as_primitive::<Float64Type>().iter();
    numbers.extend(values.map(|value| value.map_or(f64::NAN, |value| value / ticks)));
    Ok(())
}

/// Ticks as integers: Arrow casts 32-bit times only to 32-bit integers.
fn ticks_of(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Time32(_) => cast(array, &DataType::Int32),
        _ => Ok(Arc::clone(array)),
    }
}

/// Appends the numbers in text cells; a cell with other text is an error.
fn parse_numbers(
    numbers: &mut Vec<f64>,
    texts: &LargeStringArray,
    column: &str,
    rule: KindRule,
    rows_before: usize,
) -> Result<()> {
    for (at, text) in texts.iter().enumerate() {
        numbers.push(match text.map_or(Cell::Missing, parse_cell) {
            Cell::Missing => f64::NAN,
            Cell::Number(number) => number,
            Cell::Text => {
                let problem = format!(
                    "{} is not a number; use null if the cell is missing{}",
                    quote_cell(text.unwrap_or_default()),
                    rule.text_advice().unwrap_or_default()
                );
                return Err(Error::cell(column, rows_before + at + 1, problem));
            }
        });
    }
    Ok(())
}

/// The schema of a written table: nullable 64-bit floats and UTF-8 strings.
pub(crate) fn schema_of(table: &Table) -> SchemaRef {
    let field = |column: &Column| {
        let data_type = match column.values {
            Values::Numeric(_) => DataType::Float64,
            Values::Categorical { .. } => DataType::Utf8,
        };
        Field::new(&column.name, data_type, true)
    };
    Arc::new(Schema::new(
        table.columns().iter().map(field).collect::<Vec<_>>(),
    ))
}

/// The table as record batches; missing cells are null.
pub(crate) fn batches_of<'a>(
    table: &'a Table,
    schema: &'a SchemaRef,
) -> impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + 'a {
    let starts = (0..table.n_rows()).step_by(BATCH_ROWS);
    starts.map(move |start| {
        let rows = start..table.n_rows().min(start + BATCH_ROWS);
        let columns = table.columns().iter();
        let arrays = columns.map(|column| array_of(&column.values, rows.clone()));
        RecordBatch::try_new(Arc::clone(schema), arrays.collect())
    })
}

fn array_of(values: &Values, rows: std::ops::Range<usize>) -> ArrayRef {
    match values {
        Values::Numeric(numbers) => {
            let cell = |&number: &f64| Some(number).filter(|number| !number.is_nan());
            Arc::new(numbers[rows].iter().map(cell).collect::<Float64Array>())
        }
        Values::Categorical { codes, levels } => {
            let cell = |&code: &u32| levels.get(code as usize).map(String::as_str);
            Arc::new(codes[rows].iter().map(cell).collect::<StringArray>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
        Float32Array, Int64Array, NullArray, StringViewArray, Time32MillisecondArray,
        TimestampMicrosecondArray, UInt64Array,
    };

    fn read_array(array: impl Array + 'static, options: &ReadOptions) -> Result<Values> {
        let batch = RecordBatch::try_from_iter([("x", Arc::new(array) as ArrayRef)]).unwrap();
        let mut builder = TableBuilder::new(&batch.schema(), options)?;
        builder.push(&batch)?;
        Ok(builder.finish()?.columns()[0].values.clone())
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
    fn dates_are_days_and_times_are_seconds() {
        let numbers = |values| Values::Numeric(values);
        assert_eq!(read_default(Date32Array::from(vec![3])), numbers(vec![3.0]));
        let noon = Date64Array::from(vec![86_400_000 / 2 * 3]);
        assert_eq!(read_default(noon), numbers(vec![1.5]));
        let stamp = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("UTC");
        assert_eq!(read_default(stamp), numbers(vec![1.5]));
        let time = Time32MillisecondArray::from(vec![2500]);
        assert_eq!(read_default(time), numbers(vec![2.5]));
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
