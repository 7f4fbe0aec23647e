//! The runner of tables of average effects: outcomes simulated on the covariates of a table.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use softwood::data::Values;
use softwood::decide::causal::problems::IhdpSurface;
use softwood::decide::causal::{self, CausalConfig};
use softwood::observer::Observer;
use softwood::{Error, Key, ModelSpec, Pool, Result, Run, Table};
use softwood_io::{ReadOptions, read_table};

use super::data_files;
use super::published::{PublishedSet, PublishedTable};
use super::run::{CellRunner, ReproduceRun, SetRunner};

/// Columns of the table that are not covariates.
const TREATMENT: &str = "treatment";
const OUTCOME: &str = "target";
/// Probability of the interval whose coverage is measured.
const LEVEL: f64 = 0.9;
/// Random streams of a run.
const OUTCOMES: u64 = 0;
const FITS: u64 = 1;

/// Covariates, treatments and the surface that outcomes are drawn from.
struct EffectRunner {
    covariates: Table,
    is_treated: Vec<bool>,
    surface: IhdpSurface,
    n_runs: usize,
    seed: u64,
}

/// Reads the covariates.
pub(crate) fn prepare(
    table: &PublishedTable,
    set: &PublishedSet,
    run: &ReproduceRun<'_>,
) -> Result<SetRunner> {
    if let Some(file) = data_files::missing(run.data, set) {
        return Ok(SetRunner::Missing(file));
    }
    let surface = IhdpSurface::ALL
        .into_iter()
        .find(|surface| surface.name() == set.name);
    let path = set
        .file
        .as_ref()
        .and_then(|file| data_files::find(run.data, file));
    let (Some(surface), Some(path)) = (surface, path) else {
        return Err(Error::Table(format!(
            "set `{}` of table `{}` needs a file and the name of a surface (linear, nonlinear)",
            set.name, table.name
        )));
    };
    let rows = read_table(&path, &ReadOptions::default())?;
    let is_treated = treatments(&rows).map_err(|error| error.within(&path))?;
    Ok(SetRunner::Ready(Box::new(EffectRunner {
        covariates: rows.without(&[TREATMENT, OUTCOME]),
        is_treated,
        surface,
        n_runs: table.repeats,
        seed: run.seed,
    })))
}

/// Which rows are treated.
fn treatments(rows: &Table) -> Result<Vec<bool>> {
    match &rows.column(TREATMENT)?.values {
        Values::Numeric(values) => Ok(values.iter().map(|value| *value > 0.5).collect()),
        Values::Categorical { .. } => Err(Error::column(TREATMENT, "expected 0 or 1")),
    }
}

impl CellRunner for EffectRunner {
    fn n_splits(&self) -> usize {
        self.n_runs
    }

    fn settings(&self) -> Value {
        json!({ "rows": self.is_treated.len() })
    }

    fn run(
        &self,
        spec: &ModelSpec,
        split: usize,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, f64>> {
        let key = Key::from_seed(self.seed.wrapping_add(split as u64));
        let problem = self
            .surface
            .draw(&self.covariates, &self.is_treated, key.child(OUTCOMES))?;
        let config = CausalConfig::new(spec.clone());
        let run = Run::new(key.child(FITS), pool).observer(observer);
        let model = causal::estimate(&problem.table, &problem.roles(), &config, &run)?;
        let effect = model.average_effect(LEVEL, pool)?;
        let is_covered = (effect.lower..=effect.upper).contains(&problem.true_effect);
        let values = [
            ("effect", effect.mean),
            ("error", (effect.mean - problem.true_effect).abs()),
            ("coverage_90", f64::from(u8::from(is_covered))),
            ("width_90", effect.upper - effect.lower),
        ];
        Ok(values.map(|(name, value)| (name.to_owned(), value)).into())
    }
}
