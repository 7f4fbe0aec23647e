//! `softwood demo`: the whole tour on data with a known truth.

pub(crate) mod data;
mod picture;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use softwood::{
    Dataset, Distribution, Error, Family, Key, Model, Pool, Roles, Run, Scores, Table, Values,
};
use softwood_io::write_table;

use crate::args::DemoArgs;
use crate::commands::files::{check_output, folder_problem};
use crate::commands::score::scores_of;
use crate::plot::{png, svg};
use crate::print::{self, text};
use crate::progress::Bar;

const N_TRAIN: usize = 160;
const N_TEST: usize = 2000;
/// The data are the same whatever `--seed` says, so that the picture can be talked about.
const DATA_SEED: u64 = 7;
/// Pixels of the PNG for each of the SVG.
const ZOOM: f32 = 2.0;

/// How the model did on rows of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct Region {
    pub(crate) scores: Scores,
    /// Part of the predictive variance that is knowledge uncertainty.
    pub(crate) knowledge_share: f64,
    /// Log-likelihood a row that the truth itself would reach.
    pub(crate) best_log_likelihood: f64,
}

/// What the demonstration came to.
#[derive(Debug, Serialize)]
pub(crate) struct DemoReport {
    pub(crate) model: &'static str,
    pub(crate) n_train: usize,
    pub(crate) n_test: usize,
    pub(crate) chosen: String,
    pub(crate) seconds: f64,
    pub(crate) inside: Region,
    pub(crate) outside: Region,
    pub(crate) folder: PathBuf,
    pub(crate) files: Vec<PathBuf>,
}

/// The tables of the demonstration: training rows, fresh rows of the same kind, and rows from where there were none.
struct Tables {
    train: Table,
    test: Table,
    outside: Table,
}

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let family = Family::Vst;
    let spec = family.params(&args.params)?;
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Error::file(&args.out, folder_problem(&args.out, &error)))?;
    check_output(&args.out.join("demo.softwood"), &[])?;
    let tables = Tables::draw()?;
    let data = labelled(&tables.train)?;
    let pool = Pool::new(args.run.threads.into())?;
    let bar = Bar::start(args.show.quiet);
    let start = Instant::now();
    let run = Run {
        key: Key::from_seed(args.run.seed.unwrap_or(0)),
        pool: &pool,
        observer: &bar,
        held_out: None,
        warm_start: None,
    };
    let posterior = spec.fit(&data, &run)?;
    let seconds = start.elapsed().as_secs_f64();
    bar.finish()?;
    let report = DemoReport {
        model: family.name(),
        n_train: N_TRAIN,
        n_test: N_TEST,
        chosen: posterior.training().chosen.clone(),
        seconds,
        inside: region(posterior.as_ref(), &tables.test, &pool)?,
        outside: region(posterior.as_ref(), &tables.outside, &pool)?,
        folder: args.out.clone(),
        files: write(&args.out, posterior.as_ref(), &tables, &pool)?,
    };
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::demo(&report)
    })
}

impl Tables {
    fn draw() -> softwood::Result<Self> {
        let key = Key::from_seed(DATA_SEED);
        Ok(Self {
            train: data::draw(N_TRAIN, &data::STRETCHES, key.child(0))?,
            test: data::draw(N_TEST, &data::STRETCHES, key.child(1))?,
            outside: data::draw(N_TEST, &data::EMPTY, key.child(2))?,
        })
    }
}

fn labelled(table: &Table) -> softwood::Result<Dataset> {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles)
}

fn region(posterior: &dyn Model, table: &Table, pool: &Pool) -> softwood::Result<Region> {
    let data = labelled(table)?;
    let uncertainty = Distribution::new(posterior, table, pool)?.uncertainty()?;
    let sum = |variances: &[f64]| variances.iter().sum::<f64>();
    let Values::Numeric(xs) = &table.column("x")?.values else {
        return Err(Error::column("x", "numbers expected"));
    };
    Ok(Region {
        scores: scores_of(posterior, &data, pool, Path::new("demo"))?,
        knowledge_share: sum(&uncertainty.knowledge) / sum(&uncertainty.total),
        best_log_likelihood: data::best_log_likelihood(xs),
    })
}

/// Writes tables, model and pictures; returns their names.
fn write(
    folder: &Path,
    posterior: &dyn Model,
    tables: &Tables,
    pool: &Pool,
) -> Result<Vec<PathBuf>> {
    let path = |name: &str| folder.join(name);
    let named = [
        ("train.csv", &tables.train),
        ("test.csv", &tables.test),
        ("outside.csv", &tables.outside),
    ];
    let mut files = Vec::new();
    for (name, table) in named {
        write_table(&path(name), table)?;
        files.push(path(name));
    }
    softwood::write_model(&path("demo.softwood"), &posterior.record())?;
    let scene = picture::draw(posterior, &tables.train, pool)?;
    write_bytes(
        &path("demo.svg"),
        svg::write(&scene, picture::TITLE).as_bytes(),
    )?;
    write_bytes(&path("demo.png"), &png::write(&scene, ZOOM)?)?;
    files.extend(["demo.softwood", "demo.svg", "demo.png"].map(path));
    Ok(files)
}

fn write_bytes(path: &Path, bytes: &[u8]) -> softwood::Result<()> {
    std::fs::write(path, bytes).map_err(|error| Error::file(path, error.to_string()))
}
