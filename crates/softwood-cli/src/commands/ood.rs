//! `softwood ood`: how well uncertainty separates in-domain rows from other rows.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::evaluate::{Ood, ood};
use softwood::{Distribution, Model, Pool};
use softwood_io::read_table;

use crate::args::{FormatArgs, OodArgs};
use crate::commands::notes;
use crate::commands::path_checks::{check_stdin_used_once, read_model_for};
use crate::print;

/// The report of `ood`.
#[derive(Debug, Serialize)]
pub(crate) struct OodReport {
    pub(crate) model: PathBuf,
    pub(crate) inside: PathBuf,
    pub(crate) outside: PathBuf,
    /// Units of medians and thresholds.
    pub(crate) unit: &'static str,
    #[serde(flatten)]
    pub(crate) found: Ood,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(args: &OodArgs) -> Result<()> {
    check_stdin_used_once(&[&args.inside, &args.outside])?;
    let model = read_model_for(&args.model, &args.inside)?;
    let model = model.as_ref();
    let pool = Pool::new(args.threads.into())?;
    let inside = predictive(model, &args.inside, &args.format, &pool)?;
    let outside = predictive(model, &args.outside, &args.format, &pool)?;
    let report = OodReport {
        model: args.model.clone(),
        inside: args.inside.clone(),
        outside: args.outside.clone(),
        unit: match model.schema().classes() {
            None => "standard deviations in units of the target",
            Some(_) => "entropies in nats",
        },
        found: ood(&inside, &outside)?,
        notes: notes::on_members(model).into_iter().collect(),
    };
    print::emit(args.json, false, &report, || print::ood::text(&report))
}

/// The predictive distribution of the table at `path`; only its features are used.
fn predictive<'a>(
    model: &'a dyn Model,
    path: &Path,
    format: &FormatArgs,
    pool: &'a Pool,
) -> softwood::Result<Distribution<'a>> {
    let table = read_table(path, &format.read_options(model.schema()))?;
    Distribution::new(model, &table, pool).map_err(|error| error.within(path))
}
