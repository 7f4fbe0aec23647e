//! `softwood reproduce`: published tables, ours beside the paper's, and figures. Tables and protocols
//! are TOML files (`tables/`); a runner exists for each kind of protocol. Figures are files of code
//! (`figures/`).

mod bandit_runs;
mod catalogue;
mod cells;
mod compare;
mod data_files;
mod date;
mod effect_runs;
mod figures;
mod folds;
mod listing;
mod machine;
mod models;
mod ood_rows;
mod published;
mod report;
mod run;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use softwood::store::atomic::AtomicFile;
use softwood::{Error, Pool};

use crate::args::ReproduceArgs;
use crate::commands::path_checks::create_dir_problem;
use crate::print;
use crate::progress::Bar;
use cells::CellFile;
use figures::FigureRun;
use models::ReproducedModel;
use published::PublishedTable;
use run::{ReproduceRun, run_table};

pub(crate) use catalogue::{ALL, ALL_FIGURES, NAMES, paper_citation};
pub(crate) use compare::MarkCounts;
pub(crate) use data_files::MissingFile;
pub(crate) use figures::{FIGURES, Figure, GalleryEntry};
pub(crate) use listing::{ListedItem, Listing};
pub(crate) use published::{PairRule, TieRule};
pub(crate) use report::{
    MissingFigure, ModelComparison, PairResult, ReproduceReport, ReproducedMetric, ReproducedTable,
    SetComparison,
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
    if tables.is_empty() && (args.splits.is_some() || !args.models.is_empty()) {
        let problem = "--splits and --models are for tables, and only figures are named; \
                       omit them, or name a table";
        return Err(Error::Parameters(vec![problem.to_owned()]).into());
    }
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
    let figures = chosen_figures(args, data.as_deref())?;
    let data = check_data(tables, data)?;
    let chosen = tables
        .iter()
        .map(|table| models::selected(table, &args.models, args.quick));
    let chosen: Vec<Vec<ReproducedModel>> = chosen.collect::<softwood::Result<_>>()?;
    let cells = open_cells(args, tables)?;
    let pool = Pool::new(args.threads.into())?;
    let drawn = draw_figures(&figures, args, &data, &pool)?;
    let run = ReproduceRun {
        data: &data,
        seed: args.seed,
        is_quick: args.quick,
        max_splits: args.splits.map(usize::from),
        pool: &pool,
        cells: &cells,
    };
    let mut reports = Vec::new();
    for (table, models) in tables.iter().zip(&chosen) {
        let citation = paper_citation(&table.paper);
        let found = run_table(table, models, &run).map_err(|error| interrupted(error, &cells))?;
        reports.push(ReproducedTable::new(table, &citation, models, found));
    }
    let report = ReproduceReport {
        version: env!("CARGO_PKG_VERSION"),
        date: date::today(),
        machine: machine::machine(),
        seed: args.seed,
        quick: args.quick,
        splits: args.splits,
        figures: drawn,
        left_out: figures.left_out,
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

/// Figures of a run, and those that it leaves out.
struct FigureChoice {
    figures: Vec<&'static Figure>,
    /// Figures whose data are missing, with the missing file.
    left_out: Vec<MissingFigure>,
}

/// The figures among the names. Those that only `figures` stands for are left out if their data are
/// missing.
fn chosen_figures(args: &ReproduceArgs, data: Option<&Path>) -> softwood::Result<FigureChoice> {
    let is_named = |name: &str| args.names.iter().any(|other| other == name);
    let mut choice = FigureChoice {
        figures: Vec::new(),
        left_out: Vec::new(),
    };
    for figure in FIGURES {
        if !is_named(figure.name) && !is_named(ALL_FIGURES) {
            continue;
        }
        if args.output.is_none() {
            return Err(Error::Parameters(vec![format!(
                "figure `{}`: give a directory for it with --output DIR",
                figure.name
            )]));
        }
        match figure.missing(data) {
            None => choice.figures.push(figure),
            Some(file) if is_named(figure.name) => {
                return Err(Error::Parameters(vec![format!(
                    "figure `{}`: there is no table `{}` (.parquet, .csv, ...) in the data directory; give --data DIR, \
                     or set the variable {DATA_VARIABLE}",
                    figure.name, file.file
                )]));
            }
            Some(file) => choice.left_out.push(MissingFigure {
                figure: figure.name,
                file: file.file,
            }),
        }
    }
    Ok(choice)
}

/// Draws figures into the output directory, whose gallery lists them; returns the files.
fn draw_figures(
    choice: &FigureChoice,
    args: &ReproduceArgs,
    data: &Path,
    pool: &Pool,
) -> Result<Vec<PathBuf>> {
    let Some(folder) = args.output.as_ref().filter(|_| !choice.figures.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    let mut page = None;
    for figure in &choice.figures {
        let bar = Bar::start(false);
        let run = FigureRun {
            data,
            seed: args.seed,
            is_quick: args.quick,
            pool,
            observer: &bar,
        };
        let (file, seconds) = figures::write(figure, &run, folder)?;
        bar.finish()?;
        files.push(file);
        let entry = GalleryEntry {
            name: figure.name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: date::today(),
            machine: machine::machine(),
            seed: args.seed,
            quick: args.quick,
            seconds,
        };
        // after every figure: a stopped run keeps those that it has drawn
        page = Some(figures::update_gallery(folder, entry)?);
    }
    files.extend(page);
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
