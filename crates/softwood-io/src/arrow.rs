//! Between Arrow's record batches and tables. The only file that knows which Arrow types are numbers and which are categories.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use softwood::{Column, Error, Result, Table, Values};

use crate::cell::{Cell, read_cell, shown};
use crate::levels::Levels;
use crate::options::{KindRule, ReadOptions};
use crate::read::{check_header, no_rows};

/// Rows of one written batch: small enough for 32-bit text offsets.
const BATCH_ROWS: usize = 1 << 16;

/// What the cells of an Arrow type are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reading {
    /// Whole numbers, or nothing at all.
    Whole,
    /// Floats and decimals.
    Real,
    /// A count of ticks since some origin; so many make a day or a second.
    Ticks(f64),
    /// Texts and truth values.
    Words,
}

/// The reading of a type; `None` for nested and binary ones.
fn reading_of(data_type: &DataType) -> Option<Reading> {
    use DataType as T;
    let reading = match data_type {
        t if t.is_integer() => Reading::Whole,
        T::Null => Reading::Whole,
        t if t.is_floating() || t.is_decimal() => Reading::Real,
        T::Date32 => Reading::Ticks(1.0),
        T::Date64 => Reading::Ticks(86_400_000.0),
        T::Timestamp(unit, _) | T::Time32(unit) | T::Time64(unit) | T::Duration(unit) => {
            Reading::Ticks(ticks_per_second(*unit))
        }
        T::Boolean | T::Utf8 | T::LargeUtf8 | T::Utf8View => Reading::Words,
        T::Dictionary(_, values) if !matches!(**values, T::Dictionary(..)) => {
            return reading_of(values);
        }
        _ => return None,
    };
    Some(reading)
}

fn ticks_per_second(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

/// A table in the making, batch by batch.
#[derive(Debug)]
pub(crate) struct TableGatherer {
    columns: Vec<GatheredColumn>,
    n_rows: usize,
}

#[derive(Debug)]
struct GatheredColumn {
    name: String,
    rule: KindRule,
    reading: Option<Reading>,
    cells: ArrowCells,
}

#[derive(Debug)]
enum ArrowCells {
    Array(Vec<f64>),
    Names(Levels),
}

impl TableGatherer {
    /// An empty table with the columns of a schema.
    pub(crate) fn new(schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let names: Vec<String> = schema.fields.iter().map(|f| f.name().clone()).collect();
        if names.is_empty() {
            return Err(Error::Table("the table has no columns".to_owned()));
        }
        check_header(&names)?;
        let gathered = |field: &Arc<Field>| GatheredColumn::new(field, options.rule(field.name()));
        let columns = schema.fields.iter().map(gathered).collect::<Result<_>>()?;
        Ok(Self { columns, n_rows: 0 })
    }

    /// Adds the rows of a batch.
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
                .map(GatheredColumn::finish)
                .collect(),
        )
    }
}

impl GatheredColumn {
    fn new(field: &Field, rule: KindRule) -> Result<Self> {
        let reading = reading_of(field.data_type());
        let cells = match (rule, reading) {
            (KindRule::Lenient, None) | (KindRule::Numeric | KindRule::Trained, Some(_)) => {
                ArrowCells::Array(Vec::new())
            }
            (_, None) => {
                let problem = format!(
                    "its type {} is neither numbers nor categories; leave the column out",
                    field.data_type()
                );
                return Err(Error::column(field.name(), problem));
            }
            (KindRule::Categorical, _) | (_, Some(Reading::Words)) => {
                ArrowCells::Names(Levels::default())
            }
            _ => ArrowCells::Array(Vec::new()),
        };
        Ok(Self {
            name: field.name().clone(),
            rule,
            reading,
            cells,
        })
    }

    fn push(&mut self, array: &ArrayRef, rows_before: usize) -> Result<()> {
        let Some(reading) = self.reading else {
            if let ArrowCells::Array(numbers) = &mut self.cells {
                numbers.resize(numbers.len() + array.len(), f64::NAN);
            }
            return Ok(());
        };
        let array = unpacked(array).map_err(|error| odd(&self.name, &error))?;
        match &mut self.cells {
            ArrowCells::Names(levels) => {
                push_names(levels, &array, reading).map_err(|error| odd(&self.name, &error))
            }
            ArrowCells::Array(numbers) if reading == Reading::Words => {
                let texts = texts_of(&array).map_err(|error| odd(&self.name, &error))?;
                parse_numbers(numbers, &texts, (&self.name, self.rule), rows_before)
            }
            ArrowCells::Array(numbers) => {
                push_numbers(numbers, &array, reading).map_err(|error| odd(&self.name, &error))
            }
        }
    }

    fn finish(self) -> Column {
        let values = match self.cells {
            ArrowCells::Names(levels) => levels.finish(),
            ArrowCells::Array(numbers)
                if self.rule == KindRule::Lenient && numbers.iter().any(|n| n.is_infinite()) =>
            {
                let text = |n: &f64| Some(n.to_string()).filter(|_| !n.is_nan());
                let texts: Vec<Option<String>> = numbers.iter().map(text).collect();
                Column::categorical("", &texts).values
            }
            ArrowCells::Array(numbers) => Values::Numeric(numbers),
        };
        Column {
            name: self.name,
            values,
        }
    }
}

fn odd(column: &str, error: &ArrowError) -> Error {
    Error::column(column, format!("its cells cannot be converted: {error}"))
}

/// The array without its dictionary.
fn unpacked(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values),
        _ => Ok(Arc::clone(array)),
    }
}

fn texts_of(array: &ArrayRef) -> std::result::Result<LargeStringArray, ArrowError> {
    let texts = cast(array, &DataType::LargeUtf8)?;
    Ok(texts.as_string::<i64>().clone())
}

/// Adds categories. Floats go by the text of the `f64` (`3`, not `3.0`); all else by Arrow's own text, which keeps long
/// whole numbers apart.
fn push_names(
    levels: &mut Levels,
    array: &ArrayRef,
    reading: Reading,
) -> std::result::Result<(), ArrowError> {
    if reading == Reading::Real {
        let mut numbers = Vec::new();
        push_numbers(&mut numbers, array, reading)?;
        for number in numbers {
            let text = Some(number.to_string()).filter(|_| !number.is_nan());
            levels.push(text.as_deref());
        }
        return Ok(());
    }
    for text in &texts_of(array)? {
        levels.push(text);
    }
    Ok(())
}

fn push_numbers(
    numbers: &mut Vec<f64>,
    array: &ArrayRef,
    reading: Reading,
) -> std::result::Result<(), ArrowError> {
    let (array, ticks) = match reading {
        Reading::Ticks(ticks) if matches!(array.data_type(), DataType::Date32) => {
            (cast(array, &DataType::Int32)?, ticks)
        }
        Reading::Ticks(ticks) => (cast(&counts_of(array)?, &DataType::Int64)?, ticks),
        _ => (Arc::clone(array), 1.0),
    };
    let array = cast(&array, &DataType::Float64)?;
    let values = array.as_primitive::<Float64Type>().iter();
    numbers.extend(values.map(|value| value.map_or(f64::NAN, |value| value / ticks)));
    Ok(())
}

/// Times of 32 bits convert to 32-bit counts only.
fn counts_of(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Time32(_) => cast(array, &DataType::Int32),
        _ => Ok(Arc::clone(array)),
    }
}

fn parse_numbers(
    numbers: &mut Vec<f64>,
    texts: &LargeStringArray,
    (column, rule): (&str, KindRule),
    rows_before: usize,
) -> Result<()> {
    for (at, text) in texts.iter().enumerate() {
        numbers.push(match text.map_or(Cell::Missing, read_cell) {
            Cell::Missing => f64::NAN,
            Cell::Number(number) => number,
            Cell::Words => {
                let problem = format!(
                    "{} is not a number; make the cell null if it is missing{}",
                    shown(text.unwrap_or_default()),
                    rule.otherwise().unwrap_or_default()
                );
                return Err(Error::cell(column, rows_before + at + 1, problem));
            }
        });
    }
    Ok(())
}

/// The schema a table is written with: 64-bit floats and UTF-8 text, all nullable.
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

/// The table in record batches; missing cells are null.
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

    fn gathered(array: impl Array + 'static, options: &ReadOptions) -> Result<Values> {
        let batch = RecordBatch::try_from_iter([("x", Arc::new(array) as ArrayRef)]).unwrap();
        let mut gather = TableGatherer::new(&batch.schema(), options)?;
        gather.push(&batch)?;
        Ok(gather.finish()?.columns()[0].values.clone())
    }

    fn natural(array: impl Array + 'static) -> Values {
        gathered(array, &ReadOptions::default()).unwrap()
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
        assert_eq!(natural(big), Values::Numeric(vec![3.0, 2f64.powi(64)]));
        let half = Float32Array::from(vec![0.5]);
        assert_eq!(natural(half), Values::Numeric(vec![0.5]));
        let price = Decimal128Array::from(vec![150])
            .with_precision_and_scale(5, 2)
            .unwrap();
        assert_eq!(natural(price), Values::Numeric(vec![1.5]));
        let gap = Int64Array::from(vec![Some(1), None]);
        assert!(matches!(natural(gap), Values::Numeric(n) if n[1].is_nan()));
        let nothing = natural(NullArray::new(2));
        assert!(matches!(nothing, Values::Numeric(n) if n.iter().all(|n| n.is_nan())));
    }

    #[test]
    fn dates_are_days_and_times_are_seconds() {
        let numbers = |values| Values::Numeric(values);
        assert_eq!(natural(Date32Array::from(vec![3])), numbers(vec![3.0]));
        let noon = Date64Array::from(vec![86_400_000 / 2 * 3]);
        assert_eq!(natural(noon), numbers(vec![1.5]));
        let stamp = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("UTC");
        assert_eq!(natural(stamp), numbers(vec![1.5]));
        let time = Time32MillisecondArray::from(vec![2500]);
        assert_eq!(natural(time), numbers(vec![2.5]));
    }

    #[test]
    fn texts_truth_values_and_dictionaries_are_categories() {
        let wanted = names(&[Some("b"), None, Some("NA")]);
        let texts = vec![Some("b"), None, Some("NA")];
        assert_eq!(natural(StringArray::from(texts.clone())), wanted);
        assert_eq!(natural(StringViewArray::from(texts.clone())), wanted);
        let packed: DictionaryArray<Int8Type> = texts.into_iter().collect();
        assert_eq!(natural(packed), wanted);
        let truth = BooleanArray::from(vec![Some(true), None]);
        assert_eq!(natural(truth), names(&[Some("true"), None]));
    }

    #[test]
    fn declared_categories_have_the_number_for_a_name() {
        let reals = Float64Array::from(vec![Some(3.0), Some(0.5), None]);
        let found = gathered(reals, &categorical()).unwrap();
        assert_eq!(found, names(&[Some("3"), Some("0.5"), None]));
        let ids = Int64Array::from(vec![(1 << 60) + 1, 1 << 60]);
        let found = gathered(ids, &categorical()).unwrap();
        let wanted = [Some("1152921504606846977"), Some("1152921504606846976")];
        assert_eq!(found, names(&wanted));
    }

    #[test]
    fn declared_numbers_are_parsed_from_texts() {
        let texts = StringArray::from(vec!["1.5", " 2 ", "4"]);
        let found = gathered(texts, &numeric()).unwrap();
        assert_eq!(found, Values::Numeric(vec![1.5, 2.0, 4.0]));
        let texts = StringArray::from(vec!["1.5", "", "four"]);
        let message = gathered(texts, &numeric()).unwrap_err().to_string();
        assert!(
            message.starts_with("column `x`, row 3: `four`"),
            "{message}"
        );
    }

    #[test]
    fn types_without_a_reading_are_refused_unless_nobody_looks() {
        let bytes = || BinaryArray::from(vec![b"a".as_slice()]);
        for options in [ReadOptions::default(), numeric(), categorical()] {
            let message = gathered(bytes(), &options).unwrap_err().to_string();
            assert!(
                message.contains("`x`") && message.contains("Binary"),
                "{message}"
            );
        }
        let lenient = ReadOptions {
            lenient: true,
            ..ReadOptions::default()
        };
        let found = gathered(bytes(), &lenient).unwrap();
        assert!(matches!(found, Values::Numeric(n) if n[0].is_nan()));
        let infinite = Float64Array::from(vec![f64::INFINITY]);
        assert_eq!(gathered(infinite, &lenient).unwrap(), names(&[Some("inf")]));
    }
}
