//! `softwood score`: metrics of a fitted model on labelled rows.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::evaluate::{Scores, score};
use softwood::{Dataset, Distribution, Model, Pool};
use softwood_io::read_table;

use crate::args::ScoreArgs;
use crate::commands::path_checks::read_model_for;
use crate::print::{self, text};

/// The report of `score`.
#[derive(Debug, Serialize)]
pub(crate) struct ScoreReport {
    pub(crate) model: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) n_rows: usize,
    pub(crate) scores: Scores,
}

pub(crate) fn run(args: &ScoreArgs) -> Result<()> {
    let model = read_model_for(&args.model, &args.data)?;
    let table = read_table(&args.data, &args.format.read_options(model.schema()))?;
    let data =
        Dataset::aligned(model.schema(), &table, None).map_err(|error| error.within(&args.data))?;
    let pool = Pool::new(args.threads.into())?;
    let report = ScoreReport {
        model: args.model.clone(),
        data: args.data.clone(),
        n_rows: data.n_rows(),
        scores: scores_of(model.as_ref(), &data, &pool, &args.data)?,
    };
    print::emit(args.json, false, &report, || text::score(&report))
}

/// Scores of a model on labelled rows; errors name `path`, the file of the rows.
pub(crate) fn scores_of(
    model: &dyn Model,
    data: &Dataset,
    pool: &Pool,
    path: &Path,
) -> softwood::Result<Scores> {
    let scores = Distribution::new(model, data.features(), pool)
        .and_then(|distribution| score(&distribution, data.target(), model.training().target_sd));
    scores.map_err(|error| error.within(path))
}
