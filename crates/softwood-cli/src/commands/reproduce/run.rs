//! Runs the cells of a table: every model on every split of every set, several at a time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use softwood::observer::{CancelToken, Event, Observer, Stop};
use softwood::{Error, ModelSpec, Pool, Result};

use super::cells::{CellFile, CellName, ResultCell};
use super::data_files::MissingFile;
use super::models::ReproducedModel;
use super::published::{PublishedSet, PublishedTable, TableKind};
use super::{bandit_runs, effect_runs, folds};
use crate::args::TaskName;
use crate::print;
use crate::progress::Bar;

/// What all tables of a run share.
pub(crate) struct ReproduceRun<'a> {
    /// Data directory.
    pub(crate) data: &'a Path,
    pub(crate) seed: u64,
    pub(crate) is_quick: bool,
    /// Largest number of splits, if the user gave one.
    pub(crate) max_splits: Option<usize>,
    pub(crate) pool: &'a Pool,
    pub(crate) cells: &'a CellFile,
}

/// Measures cells of one set.
pub(crate) trait CellRunner: Sync {
    /// Number of splits, seeds or runs.
    fn n_splits(&self) -> usize;
    /// What identifies the cells beside table, set, model, split and parameters.
    fn settings(&self) -> Value;
    /// The values of a cell.
    fn run(
        &self,
        spec: &ModelSpec,
        split: usize,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, f64>>;
}

/// A set that can be run, or why it cannot.
pub(crate) enum SetRunner {
    Ready(Box<dyn CellRunner>),
    Missing(MissingFile),
}

/// The values of one model on the splits of one set.
#[derive(Debug, Clone)]
pub(crate) struct SetValues {
    pub(crate) set: String,
    pub(crate) model: String,
    /// By split.
    pub(crate) splits: Vec<BTreeMap<String, f64>>,
}

/// The cells of a table.
#[derive(Debug, Default)]
pub(crate) struct TableValues {
    pub(crate) values: Vec<SetValues>,
    pub(crate) missing: Vec<MissingFile>,
    /// Sets that a quick run leaves out because of their size.
    pub(crate) left_out: Vec<String>,
    /// Number of splits of the sets, at most.
    pub(crate) n_splits: usize,
    /// Number of cells that earlier runs had finished.
    pub(crate) n_found: usize,
}

/// The runner of a set; the only place that dispatches on the kind of a table.
fn prepare(
    table: &PublishedTable,
    set: &PublishedSet,
    run: &ReproduceRun<'_>,
) -> Result<SetRunner> {
    match table.kind {
        TableKind::Scores | TableKind::Ood => folds::prepare(table, set, run),
        TableKind::Bandit => bandit_runs::prepare(table, set, run),
        TableKind::Effects => effect_runs::prepare(table, set, run),
    }
}

/// Runs all cells of a table that are not finished yet.
pub(crate) fn run_table(
    table: &PublishedTable,
    models: &[ReproducedModel],
    run: &ReproduceRun<'_>,
) -> Result<TableValues> {
    let mut found = TableValues::default();
    for set in &table.sets {
        if table.leaves_out(set, run.is_quick) {
            found.left_out.push(set.name.clone());
            continue;
        }
        let is_able = |model: &&ReproducedModel| {
            set.task == TaskName::Regression || model.spec.family().supports_classes()
        };
        match prepare(table, set, run)? {
            SetRunner::Ready(runner) => {
                let job = SetJob {
                    table,
                    set,
                    models: models.iter().filter(is_able).collect(),
                    runner: runner.as_ref(),
                };
                job.run(run, &mut found)?;
            }
            SetRunner::Missing(file) => found.missing.push(file),
        }
    }
    Ok(found)
}

/// All cells of one set.
struct SetJob<'a> {
    table: &'a PublishedTable,
    set: &'a PublishedSet,
    models: Vec<&'a ReproducedModel>,
    runner: &'a dyn CellRunner,
}

impl SetJob<'_> {
    fn run(&self, run: &ReproduceRun<'_>, found: &mut TableValues) -> Result<()> {
        let start = Instant::now();
        let max_splits = self.table.max_splits(run.is_quick);
        let max_splits = max_splits.min(run.max_splits.unwrap_or(usize::MAX));
        let n_splits = self.runner.n_splits().min(max_splits);
        let all: Vec<PlannedCell<'_>> = self
            .models
            .iter()
            .flat_map(|model| (0..n_splits).map(move |split| self.cell(model, split, run.seed)))
            .collect();
        let is_pending = |cell: &&PlannedCell<'_>| run.cells.find(&cell.name).is_none();
        let pending: Vec<_> = all.iter().filter(is_pending).collect();
        if !pending.is_empty() {
            run_cells(&pending, self.runner, run)?;
            let seconds = start.elapsed().as_secs_f64();
            let (table, set, n) = (&self.table.name, &self.set.name, pending.len());
            print::to_stderr(&format!("{table} {set}: {n} cells in {seconds:.1} s"));
        }
        found.n_splits = found.n_splits.max(n_splits);
        found.n_found += all.len() - pending.len();
        for model in &self.models {
            let own = all.iter().filter(|cell| cell.name.model == model.name);
            found.values.push(SetValues {
                set: self.set.name.clone(),
                model: model.name.clone(),
                splits: own.filter_map(|cell| run.cells.find(&cell.name)).collect(),
            });
        }
        Ok(())
    }

    fn cell<'a>(&self, model: &'a ReproducedModel, split: usize, seed: u64) -> PlannedCell<'a> {
        let table = self.table.cells_of.as_ref().unwrap_or(&self.table.name);
        let settings = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "seed": seed,
            "family": model.spec.family().name(),
            "params": model.spec,
            "data": self.runner.settings(),
        });
        PlannedCell {
            spec: &model.spec,
            name: CellName {
                table: table.clone(),
                set: self.set.name.clone(),
                model: model.name.clone(),
                split,
                settings,
            },
        }
    }
}

/// A cell to run.
struct PlannedCell<'a> {
    spec: &'a ModelSpec,
    name: CellName,
}

/// Runs cells side by side, one thread each; a single cell gets all threads.
fn run_cells(
    pending: &[&PlannedCell<'_>],
    runner: &dyn CellRunner,
    run: &ReproduceRun<'_>,
) -> Result<()> {
    let bar = Bar::start_many(false, pending.len());
    let single_thread = Pool::new(1)?;
    let pool = if pending.len() == 1 {
        run.pool
    } else {
        &single_thread
    };
    let (n_done, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let cell = |at: usize| -> Result<()> {
        if has_failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let PlannedCell { spec, name } = pending[at];
        let observer = CellObserver {
            bar: &bar,
            name: format!("{} {} {}", name.set, name.model, name.split),
        };
        let result = runner.run(spec, name.split, pool, &observer);
        let result = result.and_then(|values| {
            run.cells.add(ResultCell {
                name: name.clone(),
                values,
            })
        });
        has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
        let done = n_done.fetch_add(1, Ordering::Relaxed) + 1;
        // a stop is seen before the next cell or by the fit of one that runs
        let _ = bar.on_event(&Event::new("folds", done, pending.len()));
        result.map_err(|error| in_cell(error, name))
    };
    let results = if pending.len() == 1 {
        vec![cell(0)]
    } else {
        run.pool.map(pending.len(), cell)
    };
    let mut cancelled = None;
    for result in results {
        match result {
            Err(Error::Cancelled) => cancelled = Some(Error::Cancelled),
            other => other?,
        }
    }
    bar.finish()?;
    cancelled.map_or(Ok(()), Err)
}

fn in_cell(error: Error, name: &CellName) -> Error {
    match error {
        Error::Table(_) | Error::Column { .. } | Error::Cell { .. } => Error::Table(format!(
            "{} {}, model {}, split {}: {error}",
            name.table, name.set, name.model, name.split
        )),
        other => other,
    }
}

/// Passes on the events of a cell under its name.
struct CellObserver<'a> {
    bar: &'a Bar,
    name: String,
}

impl Observer for CellObserver<'_> {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        let stage = format!("{}: {}", self.name, event.stage);
        let mut named = Event::new(&stage, event.done, event.total);
        (named.elbo, named.held_out) = (event.elbo, event.held_out);
        self.bar.on_event(&named)
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        self.bar.cancel_tokens()
    }
}
