//! Reads and writes tables: CSV, TSV, Parquet and Arrow IPC, by the suffix of the file.
//!
//! [`read_table`] and [`write_table`] are the whole interface; no type of Arrow or of the parsers
//! appears in it.
//!
//! # Cells
//!
//! - CSV and TSV: an empty cell, `NA`, `N/A`, `NaN`, `null`, `None` and `?` (any case) are missing.
//!   A column is numeric if every other cell is a number, else categorical. A column in which
//!   almost all cells are numbers is rejected with the position of the first other cell, unless
//!   [`ReadOptions`] declares its kind. So is a column of formatted numbers (`1,5`, `1,234.50`,
//!   `$20`, `7%`), because the meaning of their separators is ambiguous. `true` and `false` (any
//!   case) are categories, in lower case.
//! - Parquet and Arrow IPC: integers, floats and decimals are numeric; booleans, strings and
//!   dictionaries of strings are categorical; dates are days since 1970-01-01, timestamps seconds
//!   since then, times seconds since midnight, durations seconds. Nulls are missing.
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
mod catch_panic;
mod category_builder;
mod cell;
mod column_builder;
mod csv;
mod file_format;
mod formatted_number;
#[cfg(feature = "ipc")]
mod ipc;
#[cfg(feature = "ipc")]
mod ipc_check;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod read;
mod source;
mod write;

pub use options::ReadOptions;
pub use read::{read_csv, read_table};
pub use write::write_table;
