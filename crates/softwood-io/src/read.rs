//! Reads a table in the format of its suffix, and checks that apply to every format.

use std::io::ErrorKind;
use std::path::Path;

use softwood::{Error, Result, Table};

#[cfg(any(feature = "parquet", feature = "ipc"))]
use crate::catch_panic::catch_panic;
use crate::csv;
use crate::file_format::FileFormat;
#[cfg(feature = "ipc")]
use crate::ipc;
use crate::options::ReadOptions;
#[cfg(feature = "parquet")]
use crate::parquet;
#[cfg(any(feature = "parquet", feature = "ipc"))]
use crate::source::open;
use crate::source::{InputSource, input_name, io_problem};

/// Reads the table at `path`: CSV, TSV, Parquet or Arrow IPC by suffix; `-` is CSV on standard
/// input. Text may be compressed by gzip.
///
/// # Errors
/// When the file cannot be read, does not have the format of its suffix, is truncated, has no rows,
/// is larger than the limits allow, or has a cell that does not match the kind of its column. Messages name the file and, if there
/// is one, the column and the row (data rows, counted from 1).
pub fn read_table(path: &Path, options: &ReadOptions) -> Result<Table> {
    Ok(read_table_detailed(path, options)?.table)
}

/// A table and what its reader noticed about the columns.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadTable {
    /// The table, with all columns.
    pub table: Table,
    /// Columns that hold the index of a pandas frame: the metadata of the file name them, or they
    /// are called `__index_level_0__` and so on.
    pub index_columns: Vec<String>,
    /// Numeric columns that were dates or timestamps in the file.
    pub date_columns: Vec<String>,
    /// Numeric columns with an integer whose last digits a 64-bit float does not keep.
    pub inexact: Vec<InexactInteger>,
}

/// An integer whose last digits a 64-bit float does not keep; the first one of its column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InexactInteger {
    /// Name of the column.
    pub column: String,
    /// Data row, counted from 1.
    pub row: usize,
    /// The integer in the file.
    pub text: String,
}

/// As [`read_table`], with what the reader noticed about the columns.
///
/// # Errors
/// As [`read_table`].
pub fn read_table_detailed(path: &Path, options: &ReadOptions) -> Result<ReadTable> {
    options.check()?;
    if path.is_dir() {
        return Err(Error::file(
            path,
            io_problem(&ErrorKind::IsADirectory.into(), "read"),
        ));
    }
    let within = |error: Error| error.within(input_name(path));
    match FileFormat::of(path)? {
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => {
            let file = open(path)?;
            catch_panic("Parquet", || parquet::read(file, options)).map_err(within)
        }
        #[cfg(feature = "ipc")]
        FileFormat::Ipc => {
            let file = open(path)?;
            catch_panic("Arrow", || ipc::read(file, options)).map_err(within)
        }
        FileFormat::Text { delimiter, gzip } => {
            let source = InputSource::at(path)?;
            let checked = check_gzip(&source, gzip);
            let delimiter = options.delimiter.unwrap_or(delimiter);
            let table = checked.and_then(|()| csv::read(&source, delimiter, options));
            table.map_err(within)
        }
    }
}

/// Reads a CSV table from memory; gzip is decompressed.
///
/// # Errors
/// Like [`read_table`], but without a file name.
pub fn read_csv(bytes: &[u8], options: &ReadOptions) -> Result<Table> {
    options.check()?;
    let delimiter = options.delimiter.unwrap_or(b',');
    let found = csv::read(&InputSource::Memory(bytes.into()), delimiter, options)?;
    Ok(found.table)
}

/// Rejects a file that is not gzip although its suffix is `.gz`.
fn check_gzip(source: &InputSource<'_>, gzip: bool) -> Result<()> {
    let text = source.text()?;
    if gzip && !text.gzip && !text.is_empty {
        let problem = "not gzip data, although the suffix is .gz; rename or compress the file";
        return Err(Error::Table(problem.to_owned()));
    }
    Ok(())
}

/// Rejects column names that are empty or appear twice.
pub(crate) fn check_header(names: &[String]) -> Result<()> {
    if let Some(at) = names.iter().position(|name| name.trim().is_empty()) {
        return Err(Error::Table(format!(
            "column {} has no name; every column needs one in the header",
            at + 1
        )));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::column(
            pair[0],
            "the name appears twice; column names must be unique",
        )),
        None => Ok(()),
    }
}

/// The error for a table without rows, in any format.
pub(crate) fn no_rows() -> Error {
    Error::Table("the table has no rows".to_owned())
}
