//! `softwood score`: metrics of a fitted model on labelled rows.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::{Dataset, Distribution, Model, Pool, Scores, score};
use softwood_io::{ReadOptions, read_table};

use crate::args::ScoreArgs;
use crate::commands::files::model_for;
use crate::print::{self, text};

/// How well a model did.
#[derive(Debug, Serialize)]
pub(crate) struct ScoreReport {
    pub(crate) model: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) n_rows: usize,
    pub(crate) scores: Scores,
}

pub(crate) fn run(args: &ScoreArgs) -> Result<()> {
    let posterior = model_for(&args.model, &args.data)?;
    let read = ReadOptions {
        delimiter: args.format.delimiter,
        ..ReadOptions::for_schema(posterior.schema())
    };
    let table = read_table(&args.data, &read)?;
    let data = Dataset::aligned(posterior.schema(), &table, None)
        .map_err(|error| error.within(&args.data))?;
    let pool = Pool::new(args.threads.into())?;
    let report = ScoreReport {
        model: args.model.clone(),
        data: args.data.clone(),
        n_rows: data.n_rows(),
        scores: scores_of(posterior.as_ref(), &data, &pool, &args.data)?,
    };
    print::emit(args.json, false, &report, || text::score(&report))
}

/// Scores of a model on labelled rows; errors name `path`.
pub(crate) fn scores_of(
    posterior: &dyn Model,
    data: &Dataset,
    pool: &Pool,
    path: &Path,
) -> softwood::Result<Scores> {
    let answer = Distribution::new(posterior, data.features(), pool).and_then(|distribution| {
        score(&distribution, data.target(), posterior.training().target_sd)
    });
    answer.map_err(|error| error.within(path))
}
