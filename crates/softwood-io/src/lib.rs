//! Reads and writes tables: CSV, TSV, Parquet and Arrow IPC, by the suffix of the file.
//!
//! [`read_table`] and [`write_table`] are the whole interface; no type of Arrow or of the parsers
//! appears in it.
//!
//! # Cells
//!
//! - Dates and timestamps are numbers in every format: seconds since 1970-01-01 00:00 UTC.
//! - CSV and TSV: an empty cell, `NA`, `N/A`, `NaN`, `NaT`, `null`, `None` and `?` (any case) are
//!   missing. A column is numeric if every other cell is a number, or if every other cell is an ISO
//!   date or date-time (`2024-01-31`, `2024-01-31T12:30:05.25+01:00`; UTC without an offset); else
//!   categorical. A column in which almost all cells are numbers, or almost all are dates, is
//!   rejected with the position of the first other cell, unless [`ReadOptions`] declares its kind.
//!   So is a column of formatted numbers (`1,5`, `1,234.50`, `$20`, `7%`), because the meaning of
//!   their separators is ambiguous. `true` and `false` (any case) are categories, in lower case.
//! - Parquet and Arrow IPC: integers, floats and decimals are numeric; booleans, strings and
//!   dictionaries of strings are categorical; times are seconds since midnight, durations seconds.
//!   Nulls are missing.
//!
//! # Limits
//!
//! [`ReadOptions::limits`] bounds the size of a cell, the number of columns and the size of the
//! decompressed table, so that a small file cannot take all memory.
//!
//! # Features
//!
//! `parquet` and `ipc` (both enabled by default) are the support for those formats. Without them
//! such files are rejected with a message that names the feature, and no Arrow crate is compiled.
//!
//! # Example
//!
//! ```
//! use softwood_io::{ReadOptions, read_table, write_table};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("people.csv");
//! std::fs::write(&path, "age,city\n31,Oslo\n,Bergen\n")?;
//! let table = read_table(&path, &ReadOptions::default())?;
//! assert_eq!(table.n_rows(), 2);
//! write_table(&folder.path().join("people.tsv.gz"), &table)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(feature = "parquet", feature = "ipc"))]
mod arrow;
#[cfg(any(feature = "parquet", feature = "ipc"))]
mod arrow_write;
#[cfg(any(feature = "parquet", feature = "ipc"))]
mod catch_panic;
mod category_builder;
mod cell;
mod cell_counts;
mod column_builder;
mod csv;
mod date;
mod file_format;
mod formatted_number;
#[cfg(feature = "ipc")]
mod ipc;
#[cfg(feature = "ipc")]
mod ipc_check;
mod limits;
mod options;
#[cfg(any(feature = "parquet", feature = "ipc"))]
mod pandas_index;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_check;
mod read;
mod record_reader;
mod source;
#[cfg(feature = "parquet")]
mod thrift;
mod write;

#[cfg(any(feature = "parquet", feature = "ipc"))]
pub use catch_panic::is_catching_panics;
pub use limits::ReadLimits;
pub use options::ReadOptions;
pub use read::{InexactInteger, ReadTable, read_csv, read_table, read_table_detailed};
pub use write::write_table;

/// Whether this thread is inside a reader whose panics become errors; there is none in this build.
#[cfg(not(any(feature = "parquet", feature = "ipc")))]
pub fn is_catching_panics() -> bool {
    false
}
