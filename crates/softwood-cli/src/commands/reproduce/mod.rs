//! `softwood reproduce`: published tables, ours beside the paper's. Tables and protocols are TOML
//! files (`tables/`); a runner exists for each kind of protocol.

mod bandit_runs;
mod catalogue;
mod cells;
mod compare;
mod data_files;
mod date;
mod effect_runs;
mod folds;
mod listing;
mod models;
mod ood_rows;
mod published;
mod report;
mod run;
mod spiral;

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use softwood::store::atomic::AtomicFile;
use softwood::{Error, Pool};

use crate::args::ReproduceArgs;
use crate::commands::path_checks::create_dir_problem;
use crate::plot::svg;
use crate::print;
use crate::progress::Bar;
use cells::CellFile;
use models::ReproducedModel;
use published::PublishedTable;
use run::{ReproduceRun, run_table};
use spiral::SpiralModel;

pub(crate) use catalogue::{ALL, FIGURES, NAMES};
pub(crate) use compare::MarkCounts;
pub(crate) use data_files::MissingFile;
pub(crate) use listing::{ListedItem, Listing};
pub(crate) use published::{PairRule, TieRule};
pub(crate) use report::{
    ModelComparison, PairResult, ReproduceReport, ReproducedMetric, ReproducedTable, SetComparison,
};

/// Environment variable with the data directory.
const DATA_VARIABLE: &str = "SOFTWOOD_DATA";

pub(crate) fn run(args: &ReproduceArgs) -> Result<()> {
    let data = args
        .data
        .clone()
        .or_else(|| std::env::var_os(DATA_VARIABLE).map(PathBuf::from));
    if args.names.is_empty() && args.table.is_none() {
        let listing = Listing::new(data.as_deref());
        return print::emit(args.json, false, &listing, || {
            print::reproduce::listing(&listing)
        });
    }
    let tables = match &args.table {
        Some(path) => vec![catalogue::read(path)?],
        None => catalogue::named(&args.names),
    };
    let report = reproduce(&tables, args, data)?;
    print::emit(args.json, false, &report, || {
        print::reproduce::text(&report)
    })
}

fn reproduce(
    tables: &[PublishedTable],
    args: &ReproduceArgs,
    data: Option<PathBuf>,
) -> Result<ReproduceReport> {
    let data = check_data(tables, data)?;
    let chosen = tables
        .iter()
        .map(|table| models::selected(table, &args.models, args.quick));
    let chosen: Vec<Vec<ReproducedModel>> = chosen.collect::<softwood::Result<_>>()?;
    let cells = open_cells(args, tables)?;
    let pool = Pool::new(args.threads.into())?;
    let figures = draw_figures(args, &pool)?;
    let run = ReproduceRun {
        data: &data,
        seed: args.seed,
        is_quick: args.quick,
        max_splits: args.splits.map(usize::from),
        pool: &pool,
        cells: &cells,
    };
    let papers = catalogue::papers();
    let mut reports = Vec::new();
    for (table, models) in tables.iter().zip(&chosen) {
        let paper = papers.papers.iter().find(|paper| paper.name == table.paper);
        let citation = paper.map_or(table.paper.as_str(), |paper| &paper.citation);
        let found = run_table(table, models, &run).map_err(|error| interrupted(error, &cells))?;
        reports.push(ReproducedTable::new(table, citation, models, found));
    }
    let report = ReproduceReport {
        version: env!("CARGO_PKG_VERSION"),
        date: date::today(),
        seed: args.seed,
        quick: args.quick,
        splits: args.splits,
        figures,
        file: args
            .output
            .as_ref()
            .filter(|_| !tables.is_empty())
            .map(|folder| folder.join("results.md")),
        tables: reports,
        data,
    };
    if let (Some(folder), Some(file)) = (&args.output, &report.file) {
        AtomicFile::write(file, print::reproduce::markdown(&report).as_bytes())?;
        let json = serde_json::to_string_pretty(&report)? + "\n";
        AtomicFile::write(&folder.join("results.json"), json.as_bytes())?;
    }
    Ok(report)
}

/// The data directory, which tables need and figures do not.
fn check_data(tables: &[PublishedTable], data: Option<PathBuf>) -> softwood::Result<PathBuf> {
    match data {
        Some(data) if data.is_dir() || tables.is_empty() => Ok(data),
        None if tables.is_empty() => Ok(PathBuf::new()),
        Some(data) => Err(Error::file(
            &data,
            "this is not a directory; give --data DIR",
        )),
        None => Err(Error::Parameters(vec![format!(
            "no data: give --data DIR, or set the variable {DATA_VARIABLE}"
        )])),
    }
}

/// Draws the figures among the names into the output directory.
fn draw_figures(args: &ReproduceArgs, pool: &Pool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in args
        .names
        .iter()
        .filter(|name| FIGURES.contains(&name.as_str()))
    {
        let Some(folder) = &args.output else {
            let problem = format!("figure `{name}`: give a directory for it with --output DIR");
            return Err(Error::Parameters(vec![problem]).into());
        };
        let model = if args.quick {
            SpiralModel {
                n_members: 4,
                n_estimators: 100,
            }
        } else {
            SpiralModel {
                n_members: 20,
                n_estimators: 1000,
            }
        };
        let bar = Bar::start(false);
        let scene = spiral::draw(&model, args.seed, pool, &bar)?;
        bar.finish()?;
        let file = folder.join(format!("{name}.svg"));
        AtomicFile::write(&file, svg::write(&scene, spiral::TITLE).as_bytes())?;
        files.push(file);
    }
    Ok(files)
}

/// The finished cells of the output directory, which is created if it does not exist.
fn open_cells(args: &ReproduceArgs, tables: &[PublishedTable]) -> softwood::Result<CellFile> {
    let Some(folder) = &args.output else {
        return Ok(CellFile::in_memory());
    };
    fs::create_dir_all(folder)
        .map_err(|error| Error::file(folder, create_dir_problem(folder, &error)))?;
    if tables.is_empty() {
        return Ok(CellFile::in_memory());
    }
    CellFile::open(folder)
}

/// A stop is not the end of what is finished: the message says how to continue.
fn interrupted(error: Error, cells: &CellFile) -> anyhow::Error {
    match (&error, cells.path()) {
        (Error::Cancelled, Some(path)) => {
            let message = format!(
                "stopped; finished cells are in {}, and the same command continues",
                path.display()
            );
            anyhow::Error::new(error).context(message)
        }
        _ => error.into(),
    }
}
