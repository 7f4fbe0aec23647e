//! Prints a report as one JSON document. Numbers that are not finite become `null`.

use std::io::{BufWriter, Write};

use anyhow::Result;
use serde::Serialize;

/// Prints the report as indented JSON, without a copy of the whole document in memory.
pub(crate) fn print(report: &impl Serialize) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, report).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
