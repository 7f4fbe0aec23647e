//! Prints reports, as text or as JSON.

pub(crate) mod bandit;
pub(crate) mod causal;
pub(crate) mod escape;
pub(crate) mod explain;
pub(crate) mod gallery;
mod json;
mod number;
pub(crate) mod ood;
pub(crate) mod reproduce;
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
        (false, false) => to_stdout(&escape::lines(&text())),
    }
}

/// Prints a note on standard error; a failure to print is ignored.
pub(crate) fn note(note: &str) {
    to_stderr(&format!("note: {note}"));
}

/// Prints a message as one line on standard error; a failure to print is ignored.
pub(crate) fn to_stderr(message: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape::line(message));
}

fn to_stdout(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
