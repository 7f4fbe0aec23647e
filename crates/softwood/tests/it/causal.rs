//! Effects of treatments on problems with known truth: estimates, intervals, overlap, errors.

use crate::problems::{normals, uniforms};
use softwood::decide::causal::problems::{CausalToy, IhdpSurface};
use softwood::decide::causal::{
    self, CausalConfig, CausalMethod, CausalRoles, EffectModel, EffectScope, TreatmentPolicy,
};
use softwood::{Column, Dataset, Family, Key, ModelSpec, Pool, Result, Roles, Run, Table};

const LEVEL: f64 = 0.9;

fn spec(family: &str, params: &[(&str, &str)]) -> ModelSpec {
    let pairs: Vec<_> = params
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Family::from_name(family).unwrap().params(&pairs).unwrap()
}

/// A Bayesian linear regression: a soft tree of depth 0.
fn linear() -> ModelSpec {
    let params = [
        ("max_depth", "0"),
        ("leaf_model", "linear"),
        ("n_epochs", "60"),
        ("n_fits", "1"),
        ("scaling", "standard"),
        ("rotation", "none"),
        ("squares", "false"),
    ];
    spec("vst", &params)
}

/// As [`linear`], for the propensity.
fn logistic() -> ModelSpec {
    linear()
}

fn quick(method: CausalMethod) -> CausalConfig {
    CausalConfig::new(spec("tree", &[]))
        .method(method)
        .propensity(spec("tree", &[]))
}

fn estimate(table: &Table, config: &CausalConfig) -> Result<EffectModel> {
    let pool = Pool::new(2).unwrap();
    let run = Run::new(Key::from_seed(5), &pool);
    causal::estimate(table, &CausalRoles::new("t", "y"), config, &run)
}

/// Confounded rows: `x` makes both treatment and outcome larger; the effect is `2 + slope * x`.
fn confounded(seed: u64, n: usize, slope: f64) -> Table {
    let key = Key::from_seed(seed);
    let (x, z) = (normals(key.child(1), n), normals(key.child(2), n));
    let (draws, noise) = (uniforms(key.child(3), n), normals(key.child(4), n));
    let t: Vec<f64> = (0..n)
        .map(|row| f64::from(u8::from(draws[row] < 1.0 / (1.0 + (-x[row]).exp()))))
        .collect();
    let y = (0..n)
        .map(|row| 3.0 * x[row] - z[row] + (2.0 + slope * x[row]) * t[row] + 0.5 * noise[row])
        .collect();
    Table::new(vec![
        Column::numeric("x", x),
        Column::numeric("z", z),
        Column::numeric("t", t),
        Column::numeric("y", y),
    ])
    .unwrap()
}

fn message(table: &Table, roles: &CausalRoles) -> String {
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(5), &pool);
    let config = quick(CausalMethod::Single);
    causal::estimate(table, roles, &config, &run)
        .unwrap_err()
        .to_string()
}

#[test]
fn every_method_recovers_a_linear_effect_that_the_naive_difference_misses() {
    let table = confounded(1, 800, 0.0);
    let pool = Pool::new(2).unwrap();
    for method in CausalMethod::ALL {
        let config = CausalConfig::new(linear())
            .method(method)
            .propensity(logistic());
        let found = estimate(&table, &config).unwrap();
        let average = found.average_effect(LEVEL, &pool).unwrap();
        assert!((average.mean - 2.0).abs() < 0.15, "{method}: {average:?}");
        assert!(
            average.lower < 2.0 && 2.0 < average.upper,
            "{method}: {average:?}"
        );
        assert!(found.naive_difference() > 3.5);
        let effects = found.conditional_effects(&table, LEVEL, &pool).unwrap();
        let error = effects
            .mean
            .iter()
            .map(|effect| (effect - 2.0).abs())
            .sum::<f64>()
            / 800.0;
        assert!(error < 0.25, "{method}: {error}");
        assert_eq!(effects.n_negative(), 0, "{method}");
    }
}

#[test]
fn doubly_robust_scores_correct_a_model_of_the_outcome_that_is_wrong() {
    // a tree of one leaf knows nothing of the covariates: only the propensities can adjust
    let table = confounded(2, 1500, 0.0);
    let pool = Pool::new(2).unwrap();
    let stump = spec("tree", &[("max_depth", "1")]);
    let estimate_by = |method: CausalMethod| {
        let config = CausalConfig::new(stump.clone())
            .method(method)
            .propensity(logistic());
        let found = estimate(&table, &config).unwrap();
        found.average_effect(LEVEL, &pool).unwrap()
    };
    let plain = estimate_by(CausalMethod::Single);
    let corrected = estimate_by(CausalMethod::DoublyRobust);
    assert!((plain.mean - 2.0).abs() > 1.0, "{plain:?}");
    assert!((corrected.mean - 2.0).abs() < 0.4, "{corrected:?}");
    assert!(
        corrected.lower < 2.0 && 2.0 < corrected.upper,
        "{corrected:?}"
    );
}

#[test]
fn members_of_one_model_are_paired_and_know_the_effect_better() {
    // away from the mean of `x` its slope is uncertain, by the same amount with and without treatment
    let table = confounded(3, 300, 0.0);
    let no_widening = [("extrapolation".to_owned(), "false".to_owned())];
    let spec_of_outcome = linear().updated(&no_widening).unwrap();
    let target = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    let data = Dataset::from_table(&table, &target).unwrap();
    let model = spec_of_outcome.fit(&data).unwrap();
    let row = |t: f64| {
        let cells = [("x", 2.5), ("z", 0.0), ("t", t)];
        let columns = cells.map(|(name, cell)| Column::numeric(name, vec![cell]));
        Table::new(columns.to_vec()).unwrap()
    };
    let members = |t: f64| model.predict(&row(t)).unwrap().members().unwrap();
    let (treated, mut control) = (members(1.0), members(0.0));
    control.rotate_left(1);
    let effects: Vec<f64> = treated.iter().zip(&control).map(|(a, b)| a - b).collect();
    let mean = effects.iter().sum::<f64>() / effects.len() as f64;
    let squares: f64 = effects.iter().map(|effect| (effect - mean).powi(2)).sum();
    let unpaired = (squares / effects.len() as f64).sqrt();

    let pool = Pool::new(2).unwrap();
    let config = CausalConfig::new(spec_of_outcome)
        .method(CausalMethod::Single)
        .propensity(spec("tree", &[]));
    let found = estimate(&table, &config).unwrap();
    let paired = found
        .average_effect_of(&row(0.0), LEVEL, &pool)
        .unwrap()
        .std;
    assert!(paired < 0.7 * unpaired, "{paired} {unpaired}");
}

#[test]
fn the_interval_of_the_population_is_wider_where_effects_differ() {
    let table = confounded(4, 400, 2.0);
    let pool = Pool::new(2).unwrap();
    for method in [CausalMethod::Single, CausalMethod::DoublyRobust] {
        let config = quick(method);
        let wide = config.clone().scope(EffectScope::Population);
        let std = |config: &CausalConfig| {
            let found = estimate(&table, config).unwrap();
            found.average_effect(LEVEL, &pool).unwrap().std
        };
        assert!(std(&config) < std(&wide), "{method}");
    }
}

#[test]
fn effects_of_rows_follow_the_covariate_that_changes_them() {
    let table = confounded(6, 1000, 2.0);
    let pool = Pool::new(2).unwrap();
    let config = quick(CausalMethod::DoublyRobust);
    let found = estimate(&table, &config).unwrap();
    let rows = Table::new(vec![
        Column::numeric("z", vec![0.0, 0.0]),
        Column::numeric("x", vec![-1.5, 1.5]),
    ])
    .unwrap();
    let effects = found.conditional_effects(&rows, LEVEL, &pool).unwrap();
    assert!(effects.mean[1] - effects.mean[0] > 2.0, "{effects:?}");
    for row in 0..2 {
        assert!(effects.lower[row] < effects.mean[row] && effects.mean[row] < effects.upper[row]);
    }
    let average = found.average_effect_of(&rows, LEVEL, &pool).unwrap();
    let mean = f64::midpoint(effects.mean[0], effects.mean[1]);
    assert!((average.mean - mean).abs() < 1e-9);
}

#[test]
fn a_policy_by_effects_is_worth_more_than_treating_all_or_none() {
    let table = confounded(7, 1000, 4.0);
    let pool = Pool::new(2).unwrap();
    let found = estimate(&table, &quick(CausalMethod::DoublyRobust)).unwrap();
    let best = found
        .policy_value(&TreatmentPolicy::EffectAbove, 0.5, LEVEL, &pool)
        .unwrap();
    assert!(best.value.mean > best.treat_all.mean && best.value.mean > best.treat_none.mean);
    assert!((0.4..0.9).contains(&best.share_treated), "{best:?}");
    // value = value of treating none + gain, both by the same scores
    let difference = best.value.mean - best.treat_none.mean - best.gain.mean;
    assert!(difference.abs() < 1e-9, "{difference}");
    let all = TreatmentPolicy::Given(vec![true; 1000]);
    let all = found.policy_value(&all, 0.5, LEVEL, &pool).unwrap();
    assert_eq!(all.value, best.treat_all);
    let average = found.average_effect(LEVEL, &pool).unwrap();
    assert!((all.gain.mean + 0.5 - average.mean).abs() < 1e-9);
    let few = TreatmentPolicy::Given(vec![true]);
    let error = found.policy_value(&few, 0.0, LEVEL, &pool).unwrap_err();
    assert!(
        error.to_string().contains("1 decisions for 1000 rows"),
        "{error}"
    );
}

#[test]
fn missing_overlap_is_reported_in_words_with_its_rows() {
    let pool = Pool::new(2).unwrap();
    let warnings = |toy: CausalToy| {
        let problem = toy.draw(400, Key::from_seed(8)).unwrap();
        let run = Run::new(Key::from_seed(5), &pool);
        let config = CausalConfig::new(spec("tree", &[]))
            .method(CausalMethod::Single)
            .propensity(logistic());
        let found = causal::estimate(&problem.table, &problem.roles(), &config, &run).unwrap();
        (
            found.overlap().n_below + found.overlap().n_above,
            found.overlap().warnings.clone(),
        )
    };
    let (n_apart, apart) = warnings(CausalToy::LittleOverlap);
    assert!(n_apart > 40, "{n_apart}");
    assert!(
        apart[0].starts_with(&format!("{n_apart} of 400 rows")),
        "{apart:?}"
    );
    let (n_near, near) = warnings(CausalToy::GoodOverlap);
    assert!(n_near < 20, "{n_near}");
    assert!(
        near.iter().all(|text| !text.contains("propensity")),
        "{near:?}"
    );
}

#[test]
fn counterfactuals_far_from_the_rows_of_the_other_arm_count_as_extrapolated() {
    // control rows with x above 1 have no treated row nearby
    let n = 400;
    let key = Key::from_seed(9);
    let x: Vec<f64> = uniforms(key.child(1), n).iter().map(|u| 4.0 * u).collect();
    let draws = uniforms(key.child(2), n);
    let t: Vec<f64> = (0..n)
        .map(|row| f64::from(u8::from(x[row] < 1.0 && draws[row] < 0.5)))
        .collect();
    let noise = normals(key.child(3), n);
    let y = (0..n)
        .map(|row| x[row] + t[row] + 0.1 * noise[row])
        .collect();
    let table = Table::new(vec![
        Column::numeric("x", x),
        Column::numeric("t", t),
        Column::numeric("y", y),
    ])
    .unwrap();
    let config = CausalConfig::new(linear())
        .method(CausalMethod::PerArm)
        .propensity(spec("tree", &[]));
    let found = estimate(&table, &config).unwrap();
    let overlap = found.overlap();
    assert!(overlap.n_extrapolated > 100, "{overlap:?}");
    assert!(
        overlap
            .warnings
            .iter()
            .any(|text| text.contains("known far less")),
        "{:?}",
        overlap.warnings
    );
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let table = confounded(10, 200, 1.0);
    for method in CausalMethod::ALL {
        let bits = |threads: usize| {
            let pool = Pool::new(threads).unwrap();
            let run = Run::new(Key::from_seed(5), &pool);
            let roles = CausalRoles::new("t", "y");
            let found = causal::estimate(&table, &roles, &quick(method), &run).unwrap();
            let average = found.average_effect(LEVEL, &pool).unwrap();
            let effects = found.conditional_effects(&table, LEVEL, &pool).unwrap();
            let mut numbers = vec![average.mean, average.std, average.lower, average.upper];
            numbers.extend(average.draws);
            numbers.extend(effects.mean);
            numbers.extend(effects.upper);
            numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(bits(1), bits(2), "{method}");
    }
}

#[test]
fn levels_can_be_texts_booleans_or_named_ones_of_several() {
    let table = confounded(11, 240, 0.0);
    let with_levels = |names: [&str; 3], n_other: usize| {
        let softwood::data::Values::Numeric(t) = &table.column("t").unwrap().values else {
            panic!("numbers expected")
        };
        let texts: Vec<_> = t
            .iter()
            .enumerate()
            .map(|(row, &t)| {
                Some(
                    names[if row < n_other {
                        2
                    } else {
                        usize::from(t > 0.5)
                    }],
                )
            })
            .collect();
        table
            .clone()
            .with_column(Column::categorical("t", &texts))
            .unwrap()
    };
    let numeric = estimate(&table, &quick(CausalMethod::Single)).unwrap();
    assert_eq!(numeric.levels(), ("1", "0"));
    let pool = Pool::new(1).unwrap();
    let average = numeric.average_effect(LEVEL, &pool).unwrap();
    let booleans = with_levels(["false", "true", ""], 0);
    let booleans = estimate(&booleans, &quick(CausalMethod::Single)).unwrap();
    assert_eq!(booleans.levels(), ("true", "false"));
    assert_eq!(booleans.average_effect(LEVEL, &pool).unwrap(), average);

    let three = with_levels(["placebo", "drug", "surgery"], 40);
    let run = Run::new(Key::from_seed(5), &pool);
    let roles = CausalRoles::new("t", "y").levels("drug", "placebo");
    let found = causal::estimate(&three, &roles, &quick(CausalMethod::Single), &run).unwrap();
    assert_eq!(found.levels(), ("drug", "placebo"));
    assert_eq!((found.n_left_out(), found.is_treated().len()), (40, 200));
    assert_eq!(found.row_indices()[0], 40);
    let problem = message(&three, &CausalRoles::new("t", "y"));
    assert!(
        problem.contains("3 levels (drug, placebo, surgery); name the treated"),
        "{problem}"
    );
    let unknown = CausalRoles::new("t", "y").levels("pill", "placebo");
    let problem = message(&three, &unknown);
    assert!(problem.contains("no row has the level `pill`"), "{problem}");
}

#[test]
fn mistakes_are_named() {
    let table = confounded(12, 100, 0.0);
    let with = |name: &str, cells: Vec<f64>| {
        table
            .clone()
            .with_column(Column::numeric(name, cells))
            .unwrap()
    };
    let roles = CausalRoles::new("t", "y");
    let mut holes = vec![1.0; 100];
    holes[6] = f64::NAN;
    let texts = table
        .clone()
        .with_column(Column::categorical("y", &[Some("a"); 100]))
        .unwrap();
    let mut rare = vec![0.0; 100];
    rare[3] = 1.0;
    for (table, roles, parts) in [
        (
            with("t", vec![1.0; 100]),
            roles.clone(),
            ["column `t`", "all rows have the level `1`"],
        ),
        (
            with("y", holes.clone()),
            roles.clone(),
            ["column `y`, row 7", "outcome is missing"],
        ),
        (
            with("t", holes),
            roles.clone(),
            ["column `t`, row 7", "treatment is missing"],
        ),
        (
            with("t", rare),
            roles.clone(),
            ["column `t`", "only 1 rows"],
        ),
        (texts, roles.clone(), ["column `y`", "must be a number"]),
        (
            table.clone(),
            CausalRoles::new("y", "y"),
            ["column `y`", "both the treatment and the outcome"],
        ),
        (
            table.clone(),
            CausalRoles::new("t", "w"),
            ["column `w`", "no such column"],
        ),
        (
            table.clone(),
            roles.clone().ignore(vec!["x".to_owned(), "z".to_owned()]),
            ["no covariates", "at least one"],
        ),
        (
            table.clone(),
            roles.ignore(vec!["y".to_owned()]),
            ["column `y`", "to be ignored"],
        ),
    ] {
        let problem = message(&table, &roles);
        for part in parts {
            assert!(problem.contains(part), "`{part}` is not in: {problem}");
        }
    }
    let mut config = quick(CausalMethod::Single);
    config.clip = 0.7;
    config.n_folds = 1;
    let problem = estimate(&table, &config).unwrap_err().to_string();
    assert!(
        problem.contains("clip = 0.7") && problem.contains("n_folds = 1"),
        "{problem}"
    );
    let config = quick(CausalMethod::Single).propensity(spec("gp", &[]));
    let problem = estimate(&table, &config).unwrap_err().to_string();
    assert!(problem.contains("`gp` predicts numbers only"), "{problem}");
}

/// Covariates as those of the IHDP data: six standardised numbers and nineteen indicators.
fn ihdp_like(key: Key, n: usize) -> (Table, Vec<bool>) {
    let column = |at: u64| {
        let cells = if at < 6 {
            normals(key.child(at), n)
        } else {
            let draws = uniforms(key.child(at), n).into_iter();
            draws.map(|u| f64::from(u8::from(u < 0.4))).collect()
        };
        Column::numeric(format!("x{}", at + 1), cells)
    };
    let is_treated = uniforms(key.child(90), n)
        .iter()
        .map(|&u| u < 0.3)
        .collect();
    (
        Table::new((0..25).map(column).collect()).unwrap(),
        is_treated,
    )
}

#[test]
fn simulated_surfaces_have_the_effect_that_they_promise() {
    let (covariates, is_treated) = ihdp_like(Key::from_seed(13), 300);
    for surface in IhdpSurface::ALL {
        let draw = |seed: u64| {
            surface
                .draw(&covariates, &is_treated, Key::from_seed(seed))
                .unwrap()
        };
        let problem = draw(1);
        assert!(
            (problem.true_effect - 4.0).abs() < 1e-9,
            "{}",
            surface.name()
        );
        let is_constant = problem
            .true_cate
            .iter()
            .all(|effect| (effect - 4.0).abs() < 1e-9);
        assert_eq!(is_constant, surface == IhdpSurface::Linear);
        assert_eq!(problem.table.columns().len(), 27);
        assert_eq!(draw(1), problem);
        assert_ne!(draw(2).table, problem.table);
    }
    let error = IhdpSurface::Linear.draw(&covariates, &is_treated[..5], Key::from_seed(1));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("5 treatments for 300 rows")
    );
    let toy = CausalToy::LittleOverlap
        .draw(2000, Key::from_seed(14))
        .unwrap();
    let mean: f64 = toy.true_cate.iter().sum::<f64>() / 2000.0;
    assert!((toy.true_effect - mean).abs() < 1e-9);
    assert!(toy.true_cate.iter().all(|effect| effect.is_finite()));
}

/// Of 60 intervals that cover with probability 0.9, fewer than 45 contain the truth with a
/// probability below 1e-3; the seeds are fixed.
#[test]
fn doubly_robust_intervals_cover_the_sample_effect() {
    let pool = Pool::new(2).unwrap();
    let config = CausalConfig::new(spec("tree", &[])).propensity(spec("tree", &[]));
    let n_draws = 60;
    let n_covered = (0..n_draws)
        .filter(|&draw| {
            let table = confounded(100 + draw, 400, 0.0);
            let run = Run::new(Key::from_seed(draw), &pool);
            let roles = CausalRoles::new("t", "y");
            let found = causal::estimate(&table, &roles, &config, &run).unwrap();
            let average = found.average_effect(LEVEL, &pool).unwrap();
            average.lower < 2.0 && 2.0 < average.upper
        })
        .count();
    assert!(n_covered >= 45, "{n_covered} of {n_draws}");
}
