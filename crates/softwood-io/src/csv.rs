//! Reads and writes delimited text (CSV, TSV).

use std::io::{self, Write};

use csv::WriterBuilder;
use softwood::data::Values;
use softwood::{Error, Result, Table};

use crate::cell::quote_cell;
use crate::cell_counts::CellPlace;
use crate::column_builder::{BuiltColumn, ColumnBuilder, ColumnOutcome};
use crate::limits::ReadLimits;
use crate::options::{KindRule, ReadOptions};
use crate::read::{InexactInteger, ReadTable, check_header, no_rows};
use crate::record_reader::RecordReader;
use crate::source::InputSource;

/// Bytes of the write buffer.
const BUFFER: usize = 1 << 16;

/// Reads a table. The file is parsed a second time only if a column starts with numbers and turns
/// out to be categorical: its numbers then keep their spelling, and no column has to store all its
/// texts.
pub(crate) fn read(
    source: &InputSource<'_>,
    delimiter: u8,
    options: &ReadOptions,
) -> Result<ReadTable> {
    let limits = options.limits;
    let names = Records::open(source, delimiter, limits)?.header()?;
    if options.delimiter.is_none() {
        check_delimiter(&names, delimiter)?;
    }
    let rules = options.rules();
    let builder = |name: &String| ColumnBuilder::new(name, rules.of(name));
    let mut open: Vec<_> = names.iter().map(builder).enumerate().collect();
    let mut built: Vec<(usize, BuiltColumn)> = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let mut records = Records::open(source, delimiter, limits)?;
        records.header()?;
        records.fill(names.len(), &mut open)?;
        open = finish_columns(open, &mut built)?;
    }
    built.sort_by_key(|(field, _)| *field);
    let mut found = ReadTable::default();
    let mut columns = Vec::with_capacity(built.len());
    for (_, column) in built {
        let name = &column.column.name;
        if column.is_date {
            found.date_columns.push(name.clone());
        }
        found
            .inexact
            .extend(column.inexact.map(|cell| InexactInteger {
                column: name.clone(),
                row: cell.place.row,
                text: cell.text,
            }));
        columns.push(column.column);
    }
    found.table = Table::new(columns)?;
    Ok(found)
}

/// Rejects a header of one name that contains another common delimiter.
fn check_delimiter(names: &[String], delimiter: u8) -> Result<()> {
    let [name] = names else { return Ok(()) };
    let others = [(';', "';'"), ('\t', "tab"), (',', "','"), ('|', "'|'")];
    match others.iter().find(|(mark, _)| name.contains(*mark)) {
        Some((mark, typed)) if *mark != char::from(delimiter) => Err(Error::Table(format!(
            "the header has only one column, {}; if the cells are separated by `{}`, use --delimiter {typed}",
            quote_cell(name),
            mark.escape_debug()
        ))),
        _ => Ok(()),
    }
}

/// Moves complete columns to `built`; returns builders for the columns that have to be read again
/// as categories.
fn finish_columns(
    open: Vec<(usize, ColumnBuilder)>,
    built: &mut Vec<(usize, BuiltColumn)>,
) -> Result<Vec<(usize, ColumnBuilder)>> {
    let mut again = Vec::new();
    for (field, builder) in open {
        match builder.finish()? {
            ColumnOutcome::Complete(column) => built.push((field, column)),
            ColumnOutcome::ReadAsCategories(name) => {
                again.push((field, ColumnBuilder::new(&name, KindRule::Categorical)));
            }
        }
    }
    Ok(again)
}

/// The records of a text file, starting with the header.
struct Records<'a> {
    reader: RecordReader<'a>,
    /// Lines by which the parser's line count lags: with `\r\n` line ends a record ends at `\r`,
    /// and the parser counts the `\n` only with the next record.
    lag: u64,
}

impl<'a> Records<'a> {
    fn open(source: &'a InputSource<'_>, delimiter: u8, limits: ReadLimits) -> Result<Self> {
        let text = source.text()?;
        let reader = RecordReader::new(text.reader, text.gzip, delimiter, limits);
        Ok(Self { reader, lag: 0 })
    }

    fn header(&mut self) -> Result<Vec<String>> {
        if !self.reader.advance()? {
            let problem = "the file is empty; expected a header with the column names, then rows";
            return Err(Error::Table(problem.to_owned()));
        }
        let cells = || (0..self.reader.n_cells()).map(|at| self.reader.cell(at));
        let breaks = cells().flatten().filter(|&&byte| byte == b'\n').count();
        let next_line = 2 + breaks as u64;
        self.lag = next_line.saturating_sub(self.reader.next_line());
        let name = |(at, bytes): (usize, &[u8])| {
            let name = std::str::from_utf8(bytes).map_err(|_| {
                let problem = format!("the name of column {} is not UTF-8 text", at + 1);
                Error::Table(format!("{problem}; save the file as UTF-8"))
            })?;
            Ok(name.to_owned())
        };
        let names = cells().enumerate().map(name);
        let names = names.collect::<Result<Vec<_>>>()?;
        check_header(&names)?;
        Ok(names)
    }

    /// Appends the cells of every row to the builders of their columns.
    fn fill(&mut self, n_fields: usize, open: &mut [(usize, ColumnBuilder)]) -> Result<()> {
        let mut row = 0;
        while self.reader.advance()? {
            row += 1;
            let line = self.reader.line() + self.lag;
            let place = CellPlace { row, line };
            if self.reader.n_cells() != n_fields {
                return Err(ragged(self.reader.n_cells(), n_fields, place));
            }
            for (field, builder) in open.iter_mut() {
                let bytes = self.reader.cell(*field);
                match std::str::from_utf8(bytes) {
                    Ok(text) => builder.push(text, place)?,
                    Err(_) => return Err(not_utf8(builder.name(), bytes, place)),
                }
            }
        }
        if row == 0 { Err(no_rows()) } else { Ok(()) }
    }
}

fn ragged(found: usize, wanted: usize, place: CellPlace) -> Error {
    Error::Table(format!(
        "row {} (line {}) has {found} fields, but the header has {wanted}; check the delimiters and quotes of this line",
        place.row, place.line
    ))
}

fn not_utf8(column: &str, bytes: &[u8], place: CellPlace) -> Error {
    let text = quote_cell(&String::from_utf8_lossy(bytes));
    let problem = format!(
        "{text} (line {}) is not UTF-8 text; save the file as UTF-8",
        place.line
    );
    Error::cell(column, place.row, problem)
}

/// The underlying I/O error, whose kind the conversion in the `csv` crate would hide.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Writes a table with its header. Missing cells are empty; numbers have the fewest digits that
/// reproduce them exactly.
pub(crate) fn write(out: &mut dyn Write, delimiter: u8, table: &Table) -> io::Result<()> {
    let mut writer = WriterBuilder::new()
        .delimiter(delimiter)
        .buffer_capacity(BUFFER)
        .from_writer(out);
    writer.write_record(table.names()).map_err(io_error)?;
    let mut text = String::new();
    for row in 0..table.n_rows() {
        for column in table.columns() {
            let cell = cell_text(&column.values, row, &mut text);
            writer.write_field(cell).map_err(io_error)?;
        }
        writer.write_record(None::<&[u8]>).map_err(io_error)?;
    }
    writer.flush()
}

fn cell_text<'a>(values: &'a Values, row: usize, scratch: &'a mut String) -> &'a str {
    match values {
        Values::Categorical { codes, levels } => {
            levels.get(codes[row] as usize).map_or("", String::as_str)
        }
        Values::Numeric(numbers) => {
            scratch.clear();
            if !numbers[row].is_nan() {
                push_number(numbers[row], scratch);
            }
            scratch
        }
    }
}

/// Decimal notation, or scientific notation where decimal notation would need many zeros.
fn push_number(number: f64, text: &mut String) {
    use std::fmt::Write;
    let size = number.abs();
    let plain = size == 0.0 || (1e-5..1e16).contains(&size);
    if plain {
        write!(text, "{number}").expect("writing to a String cannot fail");
    } else {
        write!(text, "{number:e}").expect("writing to a String cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Column;

    fn table_of(text: &str) -> Result<Table> {
        let source = InputSource::Memory(text.as_bytes().into());
        Ok(read(&source, b',', &ReadOptions::default())?.table)
    }

    #[test]
    fn numbers_are_written_with_the_fewest_digits_that_reproduce_them() {
        for (number, wanted) in [
            (0.1 + 0.2, "0.30000000000000004"),
            (3.0, "3"),
            (-0.0, "-0"),
            (1e300, "1e300"),
            (-2.5e-9, "-2.5e-9"),
            (123_456.75, "123456.75"),
        ] {
            let mut text = String::new();
            push_number(number, &mut text);
            assert_eq!(text, wanted);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
    }

    #[test]
    fn quoted_cells_keep_delimiters_quotes_and_line_breaks() {
        let table = table_of("a,b\n\"x, \"\"y\"\"\",1\n\"two\nlines\",2\n").unwrap();
        let wanted = [Some("x, \"y\""), Some("two\nlines")];
        assert_eq!(table.columns()[0], Column::categorical("a", &wanted));
    }

    #[test]
    fn numbers_before_text_keep_their_spelling() {
        let table = table_of("a,b\n007,1\n7,2\nseven,3\n").unwrap();
        let wanted = [Some("007"), Some("7"), Some("seven")];
        assert_eq!(table.columns()[0], Column::categorical("a", &wanted));
        assert_eq!(
            table.columns()[1],
            Column::numeric("b", vec![1.0, 2.0, 3.0])
        );
    }

    #[test]
    fn line_numbers_are_correct_with_either_line_end() {
        for end in ["\n", "\r\n"] {
            let text = ["a,b", "1,2", "3,4", "5"].join(end);
            let message = table_of(&text).unwrap_err().to_string();
            assert!(
                message.starts_with("row 3 (line 4) has 1 field"),
                "{message}"
            );
        }
    }
}
