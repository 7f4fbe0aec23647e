//! `softwood ood`: how well uncertainty tells rows of the model's domain from others.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::{Distribution, Model, Ood, Pool, ood};
use softwood_io::{ReadOptions, read_table};

use crate::args::OodArgs;
use crate::commands::files::{check_one_stream, model_for};
use crate::commands::notes;
use crate::print;

/// What each kind of uncertainty is worth as an alarm.
#[derive(Debug, Serialize)]
pub(crate) struct OodReport {
    pub(crate) model: PathBuf,
    pub(crate) inside: PathBuf,
    pub(crate) outside: PathBuf,
    /// What medians and thresholds are measured in.
    pub(crate) unit: &'static str,
    #[serde(flatten)]
    pub(crate) found: Ood,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(args: &OodArgs) -> Result<()> {
    check_one_stream(&[&args.inside, &args.outside])?;
    let posterior = model_for(&args.model, &args.inside)?;
    let posterior = posterior.as_ref();
    let pool = Pool::new(args.threads.into())?;
    let delimiter = args.format.delimiter;
    let inside = answer(posterior, &args.inside, delimiter, &pool)?;
    let outside = answer(posterior, &args.outside, delimiter, &pool)?;
    let report = OodReport {
        model: args.model.clone(),
        inside: args.inside.clone(),
        outside: args.outside.clone(),
        unit: match posterior.schema().classes() {
            None => "standard deviations, in the target's units",
            Some(_) => "entropies, in nats",
        },
        found: ood(&inside, &outside)?,
        notes: notes::on_members(posterior).into_iter().collect(),
    };
    print::emit(args.json, false, &report, || print::ood::text(&report))
}

/// The model's answer to the table at `path`, of which only the features are needed.
fn answer<'a>(
    posterior: &'a dyn Model,
    path: &Path,
    delimiter: Option<u8>,
    pool: &'a Pool,
) -> softwood::Result<Distribution<'a>> {
    let read = ReadOptions {
        delimiter,
        ..ReadOptions::for_schema(posterior.schema())
    };
    let table = read_table(path, &read)?;
    Distribution::new(posterior, &table, pool).map_err(|error| error.within(path))
}
