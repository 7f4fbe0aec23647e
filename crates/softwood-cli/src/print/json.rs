//! Prints a report as one JSON document. Numbers that are not finite become `null`.

use anyhow::{Context, Result};
use serde::Serialize;

/// Prints the report as indented JSON.
pub(crate) fn print(report: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(report).context("writing JSON")?;
    text.push('\n');
    super::to_stdout(&text)
}
