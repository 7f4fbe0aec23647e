//! Tables in and out: CSV, TSV, Parquet and Arrow IPC, chosen by the file's suffix.
//!
//! [`read_table`] and [`write_table`] are the two doors; Arrow and the parsers stay behind them.
//!
//! # Cells
//!
//! - CSV and TSV: an empty cell, `NA`, `N/A`, `NaN`, `null`, `None` and `?` (any case) are missing. A column is numeric
//!   when every other cell is a number, else categorical. A column that is almost all numbers is taken to be a numeric
//!   one with a slip in it, and refused with the cell's name, unless [`ReadOptions`] says what it is; so is one of
//!   numbers written for people (`1,5`, `1,234.50`, `$20`, `7%`), whose marks mean different things to different people.
//!   `true` and `false` (any case) are categories, written in lower case.
//! - Parquet and Arrow IPC: integers, floats and decimals are numbers; booleans, texts and dictionaries of texts are
//!   categories; dates are days since 1970-01-01, timestamps seconds since then, times seconds since midnight, durations
//!   seconds. Nulls are missing.
//!
//! # Features
//!
//! `parquet` and `ipc`, both on by default, are those two formats; without them their files are refused with a message
//! that says so, and no Arrow crate is compiled.
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
mod cell;
mod column_builder;
mod csv;
mod formatted_number;
#[cfg(any(feature = "parquet", feature = "ipc"))]
mod guard;
#[cfg(feature = "ipc")]
mod ipc;
#[cfg(feature = "ipc")]
mod ipc_check;
mod levels;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod read;
mod sniff;
mod source;
mod write;

pub use options::ReadOptions;
pub use read::{read_csv, read_table};
pub use write::write_table;
