//! Mutated files of bandit agents: each is refused, or loads and chooses arms with finite
//! probabilities, or reports an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use softwood::decide::bandit::{AgentSettings, ArmOutcome, ArmPooling, BanditAgent};
use softwood::observer::NoObserver;
use softwood::{Column, Error, Family, Key, Pool, Table};

use crate::engine::{ModelParts, Random};

const N_MUTANTS: u64 = 10_000;

fn contexts(n_rows: usize) -> Table {
    let x: Vec<f64> = Key::from_seed(3).uniforms(n_rows);
    let names = ["red", "green", "blue"];
    let colour: Vec<_> = (0..n_rows).map(|row| Some(names[row % 3])).collect();
    let columns = vec![
        Column::numeric("x", x),
        Column::categorical("colour", &colour),
    ];
    Table::new(columns).unwrap()
}

/// Agents of several kinds that have fitted models.
fn agents(pool: &Pool) -> Vec<ModelParts> {
    let tree = |pooling: ArmPooling, classify: bool| {
        let params = Family::Tree.params(&[("n_members".to_owned(), "4".to_owned())]);
        let mut settings = AgentSettings::thompson(params.unwrap());
        settings.pooling = pooling;
        settings.classify = classify;
        settings
    };
    let settings = [
        tree(ArmPooling::PerArm, false),
        tree(ArmPooling::ArmColumn, false),
        tree(ArmPooling::PerArm, true),
        AgentSettings::linear(),
        AgentSettings::uniform(),
    ];
    let n = 40;
    let outcomes: Vec<ArmOutcome> = (0..n)
        .map(|row| ArmOutcome::new(row % 2, f64::from(u8::from(row % 5 < 2))))
        .collect();
    let fitted = |settings: AgentSettings| {
        let arms = vec!["left".to_owned(), "right".to_owned()];
        let mut agent = BanditAgent::new(settings, arms, Key::from_seed(8)).unwrap();
        let observed = agent.observe(&contexts(n), &outcomes, pool, &NoObserver);
        observed.unwrap();
        agent.refit(pool, &NoObserver).unwrap();
        ModelParts::of(&agent.to_bytes())
    };
    settings.into_iter().map(fitted).collect()
}

/// Loads a mutant, asks it for choices and gives it a reward; `Ok(true)` if it could be loaded.
fn try_agent(bytes: &[u8], pool: &Pool) -> Result<bool, String> {
    let mut agent = match BanditAgent::from_bytes(bytes) {
        Err(Error::Format(_) | Error::Memory { .. }) => return Ok(false),
        Err(error) => return Err(format!("not a format error: {error}")),
        Ok(agent) => agent,
    };
    let n_arms = agent.arms().len();
    let contexts = contexts(5);
    if let Ok(probabilities) = agent.probabilities(&contexts, pool) {
        let mut rows = probabilities.chunks_exact(n_arms);
        let are_probabilities = |row: &[f64]| {
            let in_range = row.iter().all(|p| (0.0..=1.0 + 1e-9).contains(p));
            in_range && (row.iter().sum::<f64>() - 1.0).abs() < 1e-9
        };
        if !rows.all(are_probabilities) {
            return Err(format!("probabilities {probabilities:?}"));
        }
    }
    if let Ok(choices) = agent.choose(&contexts, pool) {
        for choice in choices {
            let is_valid = choice.arm < n_arms
                && choice.propensity > 0.0
                && choice.means.iter().all(|mean| mean.is_finite());
            if !is_valid {
                return Err(format!("{choice:?}"));
            }
        }
    }
    if let Err(error) = BanditAgent::from_bytes(&agent.to_bytes()) {
        return Err(format!("cannot be read back: {error}"));
    }
    // the fit may fail, since its parameters may be unusual
    let outcomes = [ArmOutcome::new(0, 1.0)];
    let _ = agent.observe(&contexts.take(&[0]), &outcomes, pool, &NoObserver);
    Ok(true)
}

#[test]
fn mutated_agents_are_refused_or_choose() {
    let pool = Pool::new(1).unwrap();
    let agents = agents(&pool);
    let (mut n_loaded, mut failures) = (0, Vec::new());
    for seed in 0..N_MUTANTS {
        let mut random = Random::new(seed);
        let agent = random.below(agents.len());
        let bytes = agents[agent].mutant(&mut random);
        match catch_unwind(AssertUnwindSafe(|| try_agent(&bytes, &pool))) {
            Ok(Ok(is_loaded)) => n_loaded += u64::from(is_loaded),
            Ok(Err(problem)) => failures.push(format!("seed {seed}, agent {agent}: {problem}")),
            Err(panic) => {
                let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                failures.push(format!("seed {seed}, agent {agent}: panic {message}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", crate::shown(&failures));
    // the mutations are of use only if many mutants pass the checks
    assert!(n_loaded > N_MUTANTS / 20, "{n_loaded}");
}
