//! What a boosted model tells of its own members: how many independent ones they are worth, and when they are too alike.

use crate::problems::FitJson as _;
use crate::problems::{TARGETS, fit, mixed, normals, uniforms, with_target};
use serde_json::{Value, json};
use softwood::{Column, Dataset, Distribution, Family, Key, MemberReport, Pool, Run, Table};

fn report(family: Family, target: &str, params: &Value) -> MemberReport {
    let data = with_target(&mixed(1, 300), target);
    let model = fit(family, params, &data, 2);
    model.training().members.clone().unwrap()
}

fn with(more: &Value) -> Value {
    let mut params =
        json!({"n_estimators": 300, "n_members": 10, "learning_rate": 0.1, "max_depth": 3});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

#[test]
fn members_fitted_by_themselves_count_in_full() {
    for family in [Family::Sgb, Family::Sglb] {
        for target in TARGETS {
            let found = report(family, target, &with(&json!({})));
            assert!(
                (found.effective - 10.0).abs() < 1e-9 && found.warning.is_none(),
                "{found:?}"
            );
            assert_eq!(
                (found.n_members, found.n_chains, found.n_rows),
                (10, 10, 64)
            );
            for output in &found.outputs {
                assert!(output.variance > 0.0 && output.spread > 0.0, "{found:?}");
                assert!(output.within_chains.is_none() && output.r_hat.is_none());
                assert_eq!(output.between_chains, Some(output.variance));
            }
        }
    }
}

#[test]
fn outputs_are_named() {
    let names = |target: &str| -> Vec<String> {
        let outputs = report(Family::Sgb, target, &with(&json!({"n_estimators": 5}))).outputs;
        outputs.into_iter().map(|output| output.name).collect()
    };
    assert_eq!(names("y"), ["mean", "log scale"]);
    assert_eq!(names("two"), ["logit of `yes`"]);
    assert_eq!(
        names("three"),
        ["logit of `maybe`", "logit of `no`", "logit of `yes`"]
    );
}

#[test]
fn virtual_members_far_apart_are_trusted_and_near_ones_are_not() {
    let far = json!({"virtual_ensemble": true, "n_estimators": 1000});
    let found = report(Family::Sglb, "y", &with(&far));
    assert!(
        found.effective > 3.0 && found.warning.is_none(),
        "{found:?}"
    );
    let near = json!({"virtual_ensemble": true, "n_estimators": 100, "learning_rate": 0.01});
    let found = report(Family::Sglb, "y", &with(&near));
    assert!(found.effective < 2.0, "{found:?}");
    assert!(found.warning.unwrap().contains("independent ones"));
}

/// Several chains are worth one member each at least.
#[test]
fn several_chains_are_compared() {
    let params = json!({"virtual_ensemble": true, "n_chains": 5, "n_estimators": 400});
    let found = report(Family::Sglb, "y", &with(&params));
    let mean = &found.outputs[0];
    assert!(
        (5.0..=10.0).contains(&found.effective) && found.warning.is_none(),
        "{found:?}"
    );
    assert!(mean.r_hat.unwrap() > 0.7 && mean.within_chains.unwrap() > 0.0);
}

/// A constant with known noise: members `p` trees apart have the correlation `(1 - e)^p` and the variance of the posterior.
/// Of 200 members worth 93 the variance is within 60% of the truth but once in 10^6 times.
#[test]
fn a_constant_has_its_known_law() {
    let params = json!({
        "virtual_ensemble": true, "n_estimators": 20_000, "n_members": 200, "learning_rate": 0.02, "max_depth": 0, "l2_regularization": 0.0,
    });
    let found = report(Family::Sglb, "y", &params);
    let kept = 0.98_f64.powi(50);
    let exact = 200.0 * (1.0 - kept) / (1.0 + kept);
    assert!(
        (0.4..1.05).contains(&(found.effective / exact)),
        "{found:?}"
    );
    assert!((0.4..1.6).contains(&found.outputs[0].spread), "{found:?}");
    assert!(found.warning.is_none());
}

#[test]
fn members_that_hardly_differ_are_told() {
    // without sampling of rows only the rounding of gradients tells members apart
    let found = report(Family::Sgb, "y", &with(&json!({"subsample": 1})));
    let warning = found.warning.unwrap();
    assert!(
        warning.contains("rounding errors only")
            && warning.contains("`subsample` or `colsample_bytree` below 1"),
        "{warning}"
    );
    let one = report(
        Family::Sgb,
        "two",
        &with(&json!({"subsample": 1, "n_members": 1})),
    );
    assert!(one.warning.is_none());
    // the noise of the printed equation is N times too small in variance
    let printed = json!({"langevin_noise": "malinin", "subsample": 1, "max_depth": 0});
    let found = report(Family::Sglb, "y", &with(&printed));
    assert!(found.warning.unwrap().contains("too similar"));
}

#[test]
fn more_virtual_members_than_trees_are_refused() {
    let data = with_target(&mixed(1, 60), "y");
    let pool = Pool::new(1).unwrap();
    let params = json!({"virtual_ensemble": true, "n_estimators": 8, "n_members": 10});
    let found = Family::Sglb.fit(&params, &data, &Run::new(Key::from_seed(0), &pool));
    let message = found
        .map(|model| model.n_members())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("8 trees") && message.contains("10 virtual"),
        "{message}"
    );
}

/// Where the held-out rows choose a chain shorter than its members, they repeat, and that is said.
#[test]
fn chains_cut_short_are_told() {
    let table = mixed(1, 200);
    let noise = crate::problems::normals(Key::from_seed(77), 200);
    let table = crate::problems::replaced(&table, softwood::Column::numeric("y", noise));
    let params = json!({
        "virtual_ensemble": true, "n_estimators": 300, "n_members": 40, "learning_rate": 0.5, "langevin_noise": "split-noise",
    });
    let model = fit(Family::Sglb, &params, &with_target(&table, "y"), 1);
    let found = model.training().members.clone().unwrap();
    assert!(
        found.warning.unwrap().contains("too short"),
        "{}",
        model.training().chosen
    );
}

/// Two columns of zeros and ones of which no row has two ones, and their sum as target.
fn corner() -> Dataset {
    let key = Key::from_seed(5);
    let corner = uniforms(key.child(0), 300);
    let a: Vec<f64> = corner
        .iter()
        .map(|&u| f64::from(u8::from(u < 0.33)))
        .collect();
    let b: Vec<f64> = corner
        .iter()
        .map(|&u| f64::from(u8::from(u > 0.67)))
        .collect();
    let noise = normals(key.child(1), a.len());
    let y = (0..a.len())
        .map(|row| a[row] + b[row] + 0.1 * noise[row])
        .collect();
    let names = ["a", "b", "y"].into_iter().zip([a, b, y]);
    let columns = names
        .map(|(name, values)| Column::numeric(name, values))
        .collect();
    with_target(&Table::new(columns).unwrap(), "y")
}

fn knowledge_of_corner(params: &Value, a: Vec<f64>, b: Vec<f64>) -> Vec<f64> {
    let model = fit(Family::Sglb, params, &corner(), 2);
    let rows = Table::new(vec![Column::numeric("a", a), Column::numeric("b", b)]).unwrap();
    let pool = Pool::new(1).unwrap();
    let answer = Distribution::new(&*model, &rows, &pool).unwrap();
    answer.moments().unwrap().knowledge_sd
}

/// Where a step lies between two values that no row parts, members cannot agree on.
#[test]
fn members_differ_between_the_values_of_a_column() {
    let found = knowledge_of_corner(&with(&json!({})), vec![0.0, 1.0, 0.5], vec![0.0; 3]);
    assert!(found[2] > 5.0 * found[0].max(found[1]), "{found:?}");
    // a chain by itself has one edge, in the middle
    let one = with(&json!({"virtual_ensemble": true, "n_chains": 1}));
    let found = knowledge_of_corner(&one, vec![0.0, 0.49, 1.0, 0.51], vec![0.0; 4]);
    assert!((found[1] - found[0]).abs() <= 0.0 && (found[3] - found[2]).abs() <= 0.0);
}

/// A leaf that no row fell into says nothing, and members say different things of it.
#[test]
fn members_differ_about_combinations_never_seen() {
    let a = vec![0.0, 1.0, 0.0, 1.0];
    let b = vec![0.0, 0.0, 1.0, 1.0];
    let found = knowledge_of_corner(&with(&json!({})), a, b);
    let seen = found[..3].iter().copied().fold(0.0, f64::max);
    assert!(found[3] > 3.0 * seen, "{found:?}");
}

#[test]
fn settings_of_classes_are_judged_by_several_chains_where_members_are_chains() {
    for target in TARGETS {
        let data = with_target(&mixed(3, 300), target);
        let scores = |more: &Value| -> Vec<f64> {
            let mut params = json!({"n_estimators": 100});
            for (name, value) in more.as_object().unwrap() {
                params[name] = value.clone();
            }
            let model = fit(Family::Sglb, &params, &data, 2);
            let trials = model.training().trials.iter();
            trials.map(|trial| trial.held_out).collect()
        };
        let one = scores(&json!({"n_members": 1}));
        let several = scores(&json!({"n_members": 5}));
        assert_eq!(
            one,
            scores(&json!({"n_members": 5, "virtual_ensemble": true}))
        );
        assert_eq!(several, scores(&json!({"n_members": 6})));
        if target == "y" {
            assert_eq!(one, several);
            continue;
        }
        // the mean of what several say is nearer to the truth than one of them
        let (of_one, of_several): (f64, f64) = (one.iter().sum(), several.iter().sum());
        assert!(of_several > of_one, "{target}: {one:?} {several:?}");
    }
}
