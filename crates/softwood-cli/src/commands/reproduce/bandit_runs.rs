//! The runner of tables of regret: Thompson sampling with a model on a public bandit problem.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use softwood::decide::bandit::{AgentSettings, PublicProblem, simulate};
use softwood::observer::Observer;
use softwood::{Key, ModelSpec, Pool, Result, Table};
use softwood_io::{ReadOptions, read_table};

use super::data_files;
use super::published::{PublishedSet, PublishedTable};
use super::run::{CellRunner, ReproduceRun, SetRunner};

/// Random streams of a run, beside those of the folds.
const PROBLEM: u64 = 0;
const AGENT: u64 = 1;

/// A bandit problem and its contexts.
struct BanditRunner {
    problem: PublicProblem,
    contexts: Option<Table>,
    /// Number of steps of a quick run.
    n_steps: Option<usize>,
    n_seeds: usize,
    seed: u64,
}

/// Reads the contexts of a problem.
pub(crate) fn prepare(
    table: &PublishedTable,
    set: &PublishedSet,
    run: &ReproduceRun<'_>,
) -> Result<SetRunner> {
    if let Some(file) = data_files::missing(run.data, set) {
        return Ok(SetRunner::Missing(file));
    }
    let path = set
        .file
        .as_ref()
        .and_then(|file| data_files::find(run.data, file));
    let read = |path| read_table(path, &ReadOptions::default());
    Ok(SetRunner::Ready(Box::new(BanditRunner {
        problem: PublicProblem::from_name(&set.name)?,
        contexts: path.as_deref().map(read).transpose()?,
        n_steps: table.quick.steps.filter(|_| run.is_quick),
        n_seeds: table.repeats,
        seed: run.seed,
    })))
}

impl CellRunner for BanditRunner {
    fn n_splits(&self) -> usize {
        self.n_seeds
    }

    fn settings(&self) -> Value {
        let n_rows = self.contexts.as_ref().map(Table::n_rows);
        json!({ "steps": self.n_steps, "rows": n_rows })
    }

    fn run(
        &self,
        spec: &ModelSpec,
        split: usize,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, f64>> {
        let key = Key::from_seed(self.seed.wrapping_add(split as u64));
        let contexts = self.contexts.as_ref();
        let problem = self
            .problem
            .draw(contexts, self.n_steps, key.child(PROBLEM))?;
        let settings = AgentSettings::thompson(spec.clone());
        let run = simulate(&problem, &settings, key.child(AGENT), pool, observer)?;
        let values = [
            ("regret", run.total()),
            ("regret_share", run.total() / run.uniform_regret),
            ("simple_regret", run.simple()),
            ("seconds", run.seconds),
        ];
        Ok(values.map(|(name, value)| (name.to_owned(), value)).into())
    }
}
