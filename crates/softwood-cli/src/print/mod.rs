//! Prints reports, as text or as JSON.

pub(crate) mod explain;
mod json;
mod number;
pub(crate) mod ood;
pub(crate) mod text;
mod training;

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

pub(crate) use json::print as json;

/// Prints a report as JSON or as text, or prints nothing if `quiet` and not `as_json`.
pub(crate) fn emit(
    as_json: bool,
    quiet: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<()> {
    match (as_json, quiet) {
        (true, _) => json(report),
        (false, true) => Ok(()),
        (false, false) => to_stdout(&text()),
    }
}

fn to_stdout(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
