//! `softwood bandit`: compare agents by their regret.

pub(crate) mod regret_plot;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use softwood::decide::bandit::{
    AgentSettings, ArmPooling, BanditPolicy, BanditProblem, PublicProblem, RegretSummary,
    simulate_seeds,
};
use softwood::store::atomic::AtomicFile;
use softwood::{Error, Key, Pool, Table};
use softwood_io::read_table;

use crate::args::{BanditArgs, PoolingName};
use crate::commands::evaluate::parameter_of;
use crate::commands::path_checks::check_output;
use crate::plot::svg;
use crate::print;
use crate::progress::Bar;

/// The report of `bandit`.
#[derive(Debug, Serialize)]
pub(crate) struct BanditReport {
    pub(crate) problem: String,
    pub(crate) arms: Vec<String>,
    pub(crate) n_steps: usize,
    pub(crate) seeds: Vec<u64>,
    pub(crate) agents: Vec<RegretSummary>,
}

pub(crate) fn run(args: &BanditArgs) -> Result<()> {
    let agents = agent_settings(args)?;
    let problem = BanditSource::read(args)?;
    if let Some(path) = &args.svg {
        check_output(path, &[Path::new(&args.problem)])?;
    }
    let first = args.run.seed.unwrap_or(0);
    let seeds: Vec<u64> = (0..u64::from(args.seeds))
        .map(|at| first.wrapping_add(at))
        .collect();
    let pool = Pool::new(args.run.threads.into())?;
    // the same problem for all agents of a seed; this one is for the report alone
    let example = problem.draw(args, Key::from_seed(first))?;
    let bar = Bar::start(args.show.quiet);
    let draw = |key: Key| problem.draw(args, key);
    let summaries = agents
        .iter()
        .map(|settings| simulate_seeds(draw, settings, &seeds, &pool, &bar))
        .collect::<softwood::Result<Vec<_>>>()?;
    bar.finish()?;
    let report = BanditReport {
        problem: example.name.clone(),
        n_steps: example.n_steps(),
        arms: example.arms,
        seeds,
        agents: summaries,
    };
    if let Some(path) = &args.svg {
        let scene = regret_plot::draw(&report);
        AtomicFile::write(path, svg::write(&scene, regret_plot::TITLE).as_bytes())?;
    }
    print::emit(args.show.json, args.show.quiet, &report, || {
        print::bandit::text(&report)
    })
}

/// Where contexts and rewards come from.
enum BanditSource {
    Public(PublicProblem, Option<Table>),
    Own(BanditProblem),
}

impl BanditSource {
    fn read(args: &BanditArgs) -> softwood::Result<Self> {
        let is_own = !args.rewards.is_empty() || args.classes.is_some();
        if !is_own {
            if looks_like_file(&args.problem) {
                return Err(Error::Parameters(vec![format!(
                    "`{}`: a table of contexts needs --rewards COL,... or --classes COL",
                    args.problem
                )]));
            }
            let problem = PublicProblem::from_name(&args.problem)?;
            let table = problem
                .needs_table()
                .then(|| read_public(problem, args))
                .transpose()?;
            return Ok(Self::Public(problem, table));
        }
        let path = Path::new(&args.problem);
        let table = read_table(path, &args.format.plain_options())?;
        let name = path.file_stem().map_or_else(
            || args.problem.clone(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        let problem = match &args.classes {
            Some(column) => BanditProblem::from_classes(name, &table, column),
            None => BanditProblem::from_rewards(name, &table, &args.rewards),
        };
        problem.map(Self::Own).map_err(|error| error.within(path))
    }

    /// The problem of one seed.
    fn draw(&self, args: &BanditArgs, key: Key) -> softwood::Result<BanditProblem> {
        let n_steps = args.steps.map(|steps| steps as usize);
        match self {
            Self::Public(problem, table) => problem.draw(table.as_ref(), n_steps, key),
            Self::Own(problem) => Ok(problem.shuffled(n_steps.unwrap_or(usize::MAX), key)),
        }
    }
}

fn looks_like_file(name: &str) -> bool {
    name == "-" || name.contains(['.', '/', '\\'])
}

/// The table of a public problem.
fn read_public(problem: PublicProblem, args: &BanditArgs) -> softwood::Result<Table> {
    let file = format!("{}.parquet", problem.name());
    let given = args.data.clone();
    let folder = given.or_else(|| std::env::var_os("SOFTWOOD_DATA").map(PathBuf::from));
    let Some(folder) = folder else {
        return Err(Error::Parameters(vec![format!(
            "the problem `{}` needs its table {file}: give its folder with --data DIR, or in the environment variable \
             SOFTWOOD_DATA",
            problem.name()
        )]));
    };
    let paths: [PathBuf; 2] = [folder.join(&file), folder.join("bandit").join(&file)];
    let path = paths
        .iter()
        .find(|path| path.is_file())
        .unwrap_or(&paths[0]);
    read_table(path, &args.format.plain_options())
}

fn agent_settings(args: &BanditArgs) -> softwood::Result<Vec<AgentSettings>> {
    let family_of = |name: &str| name.strip_prefix("greedy-").unwrap_or(name).to_owned();
    let has_parameters = |name: &String| !matches!(&*family_of(name), "linear" | "uniform");
    let unused = args.params.iter().find(|(key, _)| !key.contains('.'));
    if let (Some((key, _)), false) = (unused, args.agent.iter().any(has_parameters)) {
        return Err(Error::Parameters(vec![format!(
            "parameter `{key}`: none of the agents has parameters"
        )]));
    }
    let agent = |name: &String| {
        let family = family_of(name);
        // a parameter without the name of a model is for the models alone
        let is_meant = |(key, _): &&(String, String)| key.contains('.') || has_parameters(name);
        let pairs = args.params.iter().filter(is_meant);
        let own: Vec<_> = pairs
            .filter_map(|pair| parameter_of(&family, pair))
            .collect();
        let mut settings = AgentSettings::named(name, &own)?;
        settings.n_initial = args.initial as usize;
        settings.refit_growth = args.refit_growth;
        settings.classify = args.classify;
        settings.warm_start = args.warm_start;
        settings.pooling = match args.pooling {
            PoolingName::PerArm => ArmPooling::PerArm,
            PoolingName::ArmColumn => ArmPooling::ArmColumn,
        };
        if let BanditPolicy::EpsilonGreedy { epsilon } = &mut settings.policy {
            *epsilon = args.epsilon;
        }
        Ok(settings)
    };
    args.agent.iter().map(agent).collect()
}
