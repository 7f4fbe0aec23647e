//! Reading by suffix, and what every format demands of its columns.

use std::io::ErrorKind;
use std::path::Path;

use softwood::{Error, Result, Table};

use crate::csv;
#[cfg(any(feature = "parquet", feature = "ipc"))]
use crate::guard::guarded;
#[cfg(feature = "ipc")]
use crate::ipc;
use crate::options::ReadOptions;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::sniff::FileFormat;
#[cfg(any(feature = "parquet", feature = "ipc"))]
use crate::source::open;
use crate::source::{InputSource, input_name, problem_of};

/// Reads the table at `path`: CSV, TSV, Parquet or Arrow IPC by suffix; `-` is CSV on standard input. Text may be packed
/// by gzip.
///
/// # Errors
/// When the file cannot be read, is not what its suffix says, is cut short, has no rows, or holds cells that its columns
/// cannot. Messages name the file, and the row (data rows from 1) and column where there is one.
pub fn read_table(path: &Path, options: &ReadOptions) -> Result<Table> {
    options.check()?;
    if path.is_dir() {
        return Err(Error::file(
            path,
            problem_of(&ErrorKind::IsADirectory.into(), "read"),
        ));
    }
    let within = |error: Error| error.within(input_name(path));
    match FileFormat::of(path)? {
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => {
            let file = open(path)?;
            guarded(|| parquet::read(file, options)).map_err(within)
        }
        #[cfg(feature = "ipc")]
        FileFormat::Ipc => {
            let file = open(path)?;
            guarded(|| ipc::read(file, options)).map_err(within)
        }
        FileFormat::Text { delimiter, gzip } => {
            let source = InputSource::at(path)?;
            let packed = check_packed(&source, gzip);
            let delimiter = options.delimiter.unwrap_or(delimiter);
            let table = packed.and_then(|()| csv::read(&source, delimiter, options));
            table.map_err(within)
        }
    }
}

/// Reads a CSV table from memory; gzip is unpacked.
///
/// # Errors
/// As [`read_table`], without a file's name.
pub fn read_csv(bytes: &[u8], options: &ReadOptions) -> Result<Table> {
    options.check()?;
    let delimiter = options.delimiter.unwrap_or(b',');
    csv::read(&InputSource::Memory(bytes.into()), delimiter, options)
}

/// Refuses what a suffix calls gzip and is not.
fn check_packed(source: &InputSource<'_>, gzip: bool) -> Result<()> {
    let text = source.text()?;
    if gzip && !text.gzip && !text.is_empty {
        let problem = "it is not gzip, though its suffix says so";
        return Err(Error::Table(problem.to_owned()));
    }
    Ok(())
}

/// Refuses names that are empty or appear twice.
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
            "the name appears twice; every column needs a name of its own",
        )),
        None => Ok(()),
    }
}

/// The answer to a table without rows, in every format.
pub(crate) fn no_rows() -> Error {
    Error::Table("the table has no rows".to_owned())
}
