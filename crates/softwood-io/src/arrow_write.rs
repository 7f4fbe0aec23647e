//! Converts tables to Arrow record batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use softwood::data::Values;
use softwood::{Column, Table};

/// Rows of one written batch, few enough for 32-bit string offsets.
const BATCH_ROWS: usize = 1 << 16;

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
