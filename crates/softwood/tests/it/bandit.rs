//! Bandit agents: regret on problems with known rewards, refits, files, determinism.

use crate::problems::normals;
use softwood::decide::bandit::{
    AgentSettings, ArmOutcome, ArmPooling, BanditAgent, BanditProblem, PublicProblem, simulate,
    simulate_seeds,
};
use softwood::observer::NoObserver;
use softwood::{Column, Error, Family, Key, Pool, Table};

const N_STEPS: usize = 400;

/// Two arms whose rewards cross at 0, and a category without influence.
fn crossing(seed: u64) -> BanditProblem {
    let key = Key::from_seed(seed);
    let x: Vec<f64> = key.child(0).uniforms(N_STEPS);
    let x: Vec<f64> = x.into_iter().map(|u| 2.0 * u - 1.0).collect();
    let noise = normals(key.child(1), 2 * N_STEPS);
    let expected: Vec<f64> = x.iter().flat_map(|&x| [-x, x]).collect();
    let rewards = expected.iter().zip(&noise).map(|(mean, z)| mean + 0.2 * z);
    let towns: Vec<Option<&str>> = (0..N_STEPS)
        .map(|row| ["a", "b", "c"].get(row % 4).copied())
        .collect();
    let contexts = Table::new(vec![
        Column::numeric("x", x),
        Column::categorical("town", &towns),
    ])
    .unwrap();
    let arms = vec!["left".to_owned(), "right".to_owned()];
    BanditProblem::new("crossing", arms, contexts, rewards.collect())
        .unwrap()
        .with_expected(expected)
        .unwrap()
}

fn tree() -> AgentSettings {
    let pairs = [("n_members".to_owned(), "20".to_owned())];
    AgentSettings::thompson(Family::Tree.params(&pairs).unwrap())
}

/// The settings with a change.
fn changed(mut settings: AgentSettings, change: impl FnOnce(&mut AgentSettings)) -> AgentSettings {
    change(&mut settings);
    settings
}

fn regret(settings: &AgentSettings) -> f64 {
    let pool = Pool::new(1).unwrap();
    let run = simulate(
        &crossing(1),
        settings,
        Key::from_seed(0),
        &pool,
        &NoObserver,
    );
    run.unwrap().total()
}

#[test]
fn agents_learn_which_arm_is_better() {
    let uniform = regret(&AgentSettings::uniform());
    for settings in [
        AgentSettings::linear(),
        tree(),
        changed(tree(), |settings| settings.pooling = ArmPooling::ArmColumn),
        AgentSettings::named("greedy-tree", &[]).unwrap(),
    ] {
        let regret = regret(&settings);
        assert!(
            regret < 0.4 * uniform,
            "{}: {regret} of {uniform}",
            settings.name()
        );
    }
    // linear rewards: the linear agent is near the best possible
    assert!(regret(&AgentSettings::linear()) < 0.15 * uniform);
}

#[test]
fn rewards_of_zero_and_one_can_be_classes() {
    let problem = crossing(2);
    let rewards = problem
        .rewards
        .iter()
        .map(|r| f64::from(*r > 0.0))
        .collect();
    let problem = BanditProblem::new("classes", problem.arms, problem.contexts, rewards).unwrap();
    let pool = Pool::new(1).unwrap();
    let settings = changed(tree(), |settings| settings.classify = true);
    let run = simulate(&problem, &settings, Key::from_seed(0), &pool, &NoObserver).unwrap();
    assert!(run.total() < 0.5 * run.uniform_regret, "{}", run.total());

    // other rewards are refused by name
    let error = simulate(
        &crossing(2),
        &settings,
        Key::from_seed(0),
        &pool,
        &NoObserver,
    );
    assert!(error.unwrap_err().to_string().contains("neither 0 nor 1"));
}

#[test]
fn refits_become_rarer() {
    let settings = AgentSettings::linear();
    let pool = Pool::new(1).unwrap();
    let run = simulate(
        &crossing(1),
        &settings,
        Key::from_seed(0),
        &pool,
        &NoObserver,
    )
    .unwrap();
    // 6, 16, ..., 106, then 10% more each time: 117, 129, 142, 157, 173, 191, 211, 233, 257, 283, 312, 344, 379
    assert_eq!(run.n_refits, 24);
    assert_eq!(run.n_chosen.iter().sum::<usize>(), N_STEPS);
}

#[test]
fn a_model_is_fitted_again_early_only_if_new_rewards_contradict_it() {
    let pool = Pool::new(1).unwrap();
    let problem = crossing(4);
    let observed = |rows: std::ops::Range<usize>, sign: f64| {
        let rows: Vec<usize> = rows.collect();
        let outcome = |&row: &usize| {
            let arm = row % 2;
            ArmOutcome::new(arm, sign * problem.rewards[2 * row + arm])
        };
        let outcomes: Vec<ArmOutcome> = rows.iter().map(outcome).collect();
        (problem.contexts.take(&rows), outcomes)
    };
    // 300 rewards at once, then 30 more: a tenth more of each arm, where the growth of a refit is 1.3
    let n_refits = |sign: f64| {
        let arms = problem.arms.clone();
        let mut agent = BanditAgent::new(tree(), arms, Key::from_seed(0)).unwrap();
        for (rows, sign) in [(0..300, 1.0), (300..330, sign)] {
            let (contexts, outcomes) = observed(rows, sign);
            agent
                .observe(&contexts, &outcomes, &pool, &NoObserver)
                .unwrap();
        }
        agent.n_refits()
    };
    assert_eq!(n_refits(1.0), 1);
    assert_eq!(n_refits(-1.0), 2);
}

#[test]
fn a_reward_that_differs_ends_the_constant_of_an_arm() {
    let pool = Pool::new(1).unwrap();
    let problem = crossing(4);
    let mut agent = BanditAgent::new(tree(), problem.arms.clone(), Key::from_seed(0)).unwrap();
    let mut observe = |rows: std::ops::Range<usize>, reward: f64| {
        let rows: Vec<usize> = rows.collect();
        let outcome = |row: &usize| ArmOutcome::new(row % 2, reward);
        let outcomes: Vec<ArmOutcome> = rows.iter().map(outcome).collect();
        agent
            .observe(&problem.contexts.take(&rows), &outcomes, &pool, &NoObserver)
            .unwrap();
        let means = agent.choose(&problem.contexts.take(&[0]), &pool).unwrap();
        means[0].means[0]
    };
    // a tenth more rewards: fewer than the growth of a refit
    let before = observe(0..300, 0.0);
    let after = observe(300..330, 1.0);
    assert!(before.abs() < 0.05 && after > 0.05, "{before} {after}");
}

#[test]
fn a_wanted_refit_fits_every_model_with_new_rewards() {
    let pool = Pool::new(1).unwrap();
    let problem = crossing(4);
    for pooling in [ArmPooling::PerArm, ArmPooling::ArmColumn] {
        let settings = changed(tree(), |settings| settings.pooling = pooling);
        let arms = problem.arms.clone();
        let mut agent = BanditAgent::new(settings, arms, Key::from_seed(0)).unwrap();
        for rows in [0..200, 200..204] {
            let rows: Vec<usize> = rows.collect();
            let outcome =
                |row: &usize| ArmOutcome::new(row % 2, problem.rewards[2 * row + row % 2]);
            let outcomes: Vec<ArmOutcome> = rows.iter().map(outcome).collect();
            agent
                .observe(&problem.contexts.take(&rows), &outcomes, &pool, &NoObserver)
                .unwrap();
        }
        assert_eq!(agent.n_refits(), 1);
        agent.refit(&pool, &NoObserver).unwrap();
        assert_eq!(agent.n_refits(), 2);
        // nothing is new now
        agent.refit(&pool, &NoObserver).unwrap();
        assert_eq!(agent.n_refits(), 2);
    }
}

#[test]
fn runs_do_not_depend_on_the_number_of_threads() {
    let seeds = [3, 4, 5];
    let run = |threads: usize| {
        let pool = Pool::new(threads).unwrap();
        let draw = |key: Key| Ok(crossing(7).shuffled(150, key));
        simulate_seeds(draw, &tree(), &seeds, &pool, &NoObserver).unwrap()
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one.regrets, two.regrets);
    assert_eq!(one.n_steps, 150);
    assert!(one.sd > 0.0);
}

/// Shows an agent the first rows of a problem.
fn experienced(settings: AgentSettings, n: usize) -> BanditAgent {
    let problem = crossing(1);
    let pool = Pool::new(1).unwrap();
    let mut agent = BanditAgent::new(settings, problem.arms.clone(), Key::from_seed(9)).unwrap();
    for row in 0..n {
        let context = problem.contexts.take(&[row]);
        let choice = &agent.choose(&context, &pool).unwrap()[0];
        let outcome = ArmOutcome::new(choice.arm, problem.rewards[2 * row + choice.arm]);
        let outcome = outcome.with_propensity(choice.propensity);
        agent
            .observe(&context, &[outcome], &pool, &NoObserver)
            .unwrap();
    }
    agent
}

#[test]
fn a_saved_agent_goes_on_as_it_would() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::new(1).unwrap();
    let later = crossing(1).contexts.take(&(200..260).collect::<Vec<_>>());
    let shared = changed(AgentSettings::linear(), |settings| {
        settings.pooling = ArmPooling::ArmColumn;
    });
    for settings in [
        tree(),
        AgentSettings::linear(),
        shared,
        AgentSettings::uniform(),
    ] {
        let mut agent = experienced(settings, 60);
        let path = folder.path().join("agent.softwood");
        agent.save(&path).unwrap();
        let mut again = BanditAgent::load(&path).unwrap();
        assert_eq!(agent.to_bytes(), again.to_bytes());
        let (choices, restored) = (
            agent.choose(&later, &pool).unwrap(),
            again.choose(&later, &pool).unwrap(),
        );
        assert_eq!(choices, restored);
        assert_eq!(again.n_observed(), 60);
        // a model file is not an agent, and an agent is no model
        assert!(softwood::load(&path).is_err());
    }
}

#[test]
fn damaged_agents_are_refused() {
    let bytes = experienced(tree(), 40).to_bytes();
    assert!(BanditAgent::from_bytes(&bytes[..bytes.len() / 2]).is_err());
    assert!(BanditAgent::from_bytes(b"SOFTWOOD").is_err());
}

#[test]
fn propensities_are_those_of_the_choices() {
    let agent = experienced(tree(), 80);
    let pool = Pool::new(1).unwrap();
    let contexts = crossing(1).contexts.take(&[100, 101, 102]);
    let probabilities = agent.probabilities(&contexts, &pool).unwrap();
    for row in probabilities.chunks_exact(2) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let (arms, propensities) = agent.log();
    assert_eq!((arms.len(), propensities.len()), (80, 80));
    // the first choices are random
    assert!(propensities[..6].iter().all(|p| (p - 0.5).abs() < 1e-12));
    assert!(propensities.iter().all(|p| *p > 0.0 && *p <= 1.0));
}

#[test]
fn further_columns_of_a_context_are_ignored() {
    let shared = changed(tree(), |settings| settings.pooling = ArmPooling::ArmColumn);
    let pool = Pool::new(1).unwrap();
    let contexts = crossing(1).contexts.take(&[100, 101, 102]);
    // the name of the column of arms in the model
    let more = contexts
        .clone()
        .with_column(Column::categorical("arm", &[Some("left"); 3]));
    for settings in [tree(), shared] {
        let agent = experienced(settings, 80);
        let expected = agent.probabilities(&contexts, &pool).unwrap();
        let found = agent.probabilities(more.as_ref().unwrap(), &pool).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn invalid_observations_are_refused_and_not_recorded() {
    let mut agent = experienced(tree(), 20);
    let pool = Pool::new(1).unwrap();
    let context = crossing(1).contexts.take(&[30]);
    let mut refused = |table: &Table, outcome: ArmOutcome, part: &str| {
        let error = agent.observe(table, &[outcome], &pool, &NoObserver);
        let message = error.unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
        assert_eq!(agent.n_observed(), 20);
    };
    refused(&context, ArmOutcome::new(2, 1.0), "no arm 2");
    refused(&context, ArmOutcome::new(0, f64::NAN), "reward");
    refused(
        &context,
        ArmOutcome::new(0, 1.0).with_propensity(0.0),
        "propensity",
    );
    refused(&context.without(&["town"]), ArmOutcome::new(0, 1.0), "town");
    let names = vec!["a".to_owned(), "a".to_owned()];
    assert!(BanditAgent::new(tree(), names, Key::from_seed(0)).is_err());
    assert!(BanditAgent::new(tree(), vec!["a".to_owned()], Key::from_seed(0)).is_err());
}

#[test]
fn a_new_category_among_the_contexts_is_taken() {
    let mut agent = experienced(AgentSettings::linear(), 40);
    let pool = Pool::new(1).unwrap();
    let context = Table::new(vec![
        Column::numeric("x", vec![0.9]),
        Column::categorical("town", &[Some("aa")]),
    ])
    .unwrap();
    let choice = agent.choose(&context, &pool).unwrap()[0].clone();
    let outcome = ArmOutcome::new(choice.arm, 0.5);
    agent
        .observe(&context, &[outcome], &pool, &NoObserver)
        .unwrap();
    agent.refit(&pool, &NoObserver).unwrap();
    assert_eq!(agent.choose(&context, &pool).unwrap().len(), 1);
}

#[test]
fn an_agent_learns_with_warm_starts() {
    let pairs = [
        ("n_estimators", "20"),
        ("n_members", "2"),
        ("max_depth", "2"),
        ("learning_rate", "0.2"),
    ];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let settings = changed(
        AgentSettings::thompson(Family::Sglb.params(&pairs).unwrap()),
        |settings| settings.warm_start = Some(true),
    );
    let problem = crossing(3).shuffled(150, Key::from_seed(1));
    let pool = Pool::new(1).unwrap();
    let run = simulate(&problem, &settings, Key::from_seed(0), &pool, &NoObserver).unwrap();
    assert!(run.total() < run.uniform_regret);
}

#[test]
fn rewards_may_come_from_a_function() {
    let problem = crossing(5);
    let (key, pool) = (Key::from_seed(2), Pool::new(1).unwrap());
    let arms = problem.arms.clone();
    let mut agent = BanditAgent::new(tree(), arms.clone(), key).unwrap();
    let mut reward = |row: usize, arm: usize| Ok(problem.rewards[2 * row + arm]);
    let played = agent.play(&problem.contexts, &mut reward, &pool, &NoObserver);
    let played = played.unwrap();
    assert_eq!(agent.n_observed(), N_STEPS);
    // the same choices as in a simulation
    let simulated = simulate(&problem, &tree(), key, &pool, &NoObserver).unwrap();
    let sum: f64 = played.iter().map(|outcome| outcome.reward).sum();
    assert!((sum - simulated.reward).abs() < 1e-9, "{sum}");
    let n_left = played.iter().filter(|outcome| outcome.arm == 0).count();
    assert_eq!(n_left, simulated.n_chosen[0]);

    // rewards before a failure are recorded
    let mut agent = BanditAgent::new(tree(), arms, key).unwrap();
    let mut reward = |row: usize, arm: usize| match row {
        100 => Err(Error::Table("no reward".to_owned())),
        _ => Ok(problem.rewards[2 * row + arm]),
    };
    let failed = agent.play(&problem.contexts, &mut reward, &pool, &NoObserver);
    assert!(matches!(failed, Err(Error::Table(_))));
    assert_eq!(agent.n_observed(), 100);
    let mut reward = |row: usize, _: usize| Ok(if row == 50 { f64::NAN } else { 0.0 });
    let failed = agent.play(&problem.contexts, &mut reward, &pool, &NoObserver);
    assert!(
        matches!(failed, Err(Error::Cell { row: 51, .. })),
        "{failed:?}"
    );
    assert_eq!(agent.n_observed(), 150);
}

#[test]
fn public_problems_are_found_by_name() {
    for problem in PublicProblem::ALL {
        assert_eq!(PublicProblem::from_name(problem.name()).unwrap(), *problem);
    }
    let message = PublicProblem::from_name("mushroms")
        .unwrap_err()
        .to_string();
    assert!(message.contains("mushroom"), "{message}");
}
