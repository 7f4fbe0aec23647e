//! `softwood demo`: fits, scores and plots a model on synthetic data with a known true
//! distribution.

pub(crate) mod data;
mod plot_scene;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use softwood::data::Values;
use softwood::evaluate::Scores;
use softwood::store::atomic::AtomicFile;
use softwood::{Dataset, Distribution, Error, Family, Key, Model, Pool, Roles, Run, Table};
use softwood_io::write_table;

use crate::args::DemoArgs;
use crate::commands::path_checks::{check_output, create_dir_problem};
use crate::commands::score::scores_of;
use crate::plot::svg;
use crate::print::{self, text};
use crate::progress::Bar;

const N_TRAIN: usize = 160;
const N_TEST: usize = 2000;
/// Seed of the data, independent of `--seed`: every run shows the same training rows.
const DATA_SEED: u64 = 7;

/// Results on the test rows of one region.
#[derive(Debug, Serialize)]
pub(crate) struct Region {
    pub(crate) scores: Scores,
    /// Share of knowledge uncertainty in the predictive variance.
    pub(crate) knowledge_share: f64,
    /// Expected log-likelihood per row of the true distribution.
    pub(crate) best_log_likelihood: f64,
}

/// The report of `demo`.
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

/// Random streams of the tables.
mod streams {
    pub(super) const TRAIN: u64 = 0;
    pub(super) const TEST: u64 = 1;
    pub(super) const OUTSIDE: u64 = 2;
}

/// The tables of the demonstration.
struct Tables {
    /// Training rows.
    train: Table,
    /// Test rows from the same distribution.
    test: Table,
    /// Test rows from the regions without training rows.
    outside: Table,
}

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let family = Family::Vst;
    let spec = family.params(&args.params)?;
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Error::file(&args.out, create_dir_problem(&args.out, &error)))?;
    check_output(&args.out.join("demo.softwood"), &[])?;
    let tables = Tables::draw()?;
    let data = labelled(&tables.train)?;
    let pool = Pool::new(args.run.threads.into())?;
    let bar = Bar::start(args.show.quiet);
    let start = Instant::now();
    let run = Run::new(Key::from_seed(args.run.seed.unwrap_or(0)), &pool).observer(&bar);
    let model = spec.fit_with(&data, &run)?;
    let seconds = start.elapsed().as_secs_f64();
    bar.finish()?;
    let report = DemoReport {
        model: family.name(),
        n_train: N_TRAIN,
        n_test: N_TEST,
        chosen: model.training().chosen.clone(),
        seconds,
        inside: region(model.as_ref(), &tables.test, &pool)?,
        outside: region(model.as_ref(), &tables.outside, &pool)?,
        folder: args.out.clone(),
        files: write(&args.out, model.as_ref(), &tables, &pool)?,
    };
    print::emit(args.show.json, args.show.quiet, &report, || {
        text::demo(&report)
    })
}

impl Tables {
    fn draw() -> softwood::Result<Self> {
        let key = Key::from_seed(DATA_SEED);
        Ok(Self {
            train: data::draw(N_TRAIN, &data::TRAINING_RANGES, key.child(streams::TRAIN))?,
            test: data::draw(N_TEST, &data::TRAINING_RANGES, key.child(streams::TEST))?,
            outside: data::draw(N_TEST, &data::EMPTY_RANGES, key.child(streams::OUTSIDE))?,
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

fn region(model: &dyn Model, table: &Table, pool: &Pool) -> softwood::Result<Region> {
    let data = labelled(table)?;
    let uncertainty = Distribution::new(model, table, pool)?.uncertainty()?;
    let sum = |variances: &[f64]| variances.iter().sum::<f64>();
    let Values::Numeric(xs) = &table.column("x")?.values else {
        return Err(Error::column("x", "numbers expected"));
    };
    Ok(Region {
        scores: scores_of(model, &data, pool, Path::new("demo"))?,
        knowledge_share: sum(&uncertainty.knowledge) / sum(&uncertainty.total),
        best_log_likelihood: data::true_log_likelihood(xs),
    })
}

/// Writes the tables, the model and the plot; returns their paths.
fn write(folder: &Path, model: &dyn Model, tables: &Tables, pool: &Pool) -> Result<Vec<PathBuf>> {
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
    model.save(&path("demo.softwood"))?;
    let scene = plot_scene::draw(model, &tables.train, pool)?;
    AtomicFile::write(
        &path("demo.svg"),
        svg::write(&scene, plot_scene::TITLE).as_bytes(),
    )?;
    files.extend(["demo.softwood", "demo.svg"].map(path));
    Ok(files)
}
