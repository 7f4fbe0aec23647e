//! What a boosted model tells of its own members: how many independent ones they are worth, and when they are too alike.

// a failed unwrap is a failed test, in helper functions too
#![allow(clippy::unwrap_used)]

mod problems;

use problems::{TARGETS, fit, mixed, with_target};
use serde_json::{Value, json};
use softwood::{Family, Key, MemberReport, Pool, Run};

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
    let far = json!({"virtual": true, "n_estimators": 1000});
    let found = report(Family::Sglb, "y", &with(&far));
    assert!(
        found.effective > 3.0 && found.warning.is_none(),
        "{found:?}"
    );
    let near = json!({"virtual": true, "n_estimators": 100, "learning_rate": 0.01});
    let found = report(Family::Sglb, "y", &with(&near));
    assert!(found.effective < 2.0, "{found:?}");
    assert!(found.warning.unwrap().contains("independent ones"));
}

/// Several chains are worth one member each at least.
#[test]
fn several_chains_are_compared() {
    let params = json!({"virtual": true, "n_chains": 5, "n_estimators": 400});
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
        "virtual": true, "n_estimators": 20_000, "n_members": 200, "learning_rate": 0.02, "max_depth": 0, "l2": 0.0,
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
        warning.contains("nothing but rounding")
            && warning.contains("`subsample` or a `colsample` below 1"),
        "{warning}"
    );
    let one = report(
        Family::Sgb,
        "two",
        &with(&json!({"subsample": 1, "n_members": 1})),
    );
    assert!(one.warning.is_none());
    // the noise of the printed equation is N times too small in variance
    let printed = json!({"sampling": "malinin", "subsample": 1, "max_depth": 0});
    let found = report(Family::Sglb, "y", &with(&printed));
    assert!(found.warning.unwrap().contains("a constant alone"));
}

#[test]
fn more_virtual_members_than_trees_are_refused() {
    let data = with_target(&mixed(1, 60), "y");
    let pool = Pool::new(1).unwrap();
    let params = json!({"virtual": true, "n_estimators": 8, "n_members": 10});
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
    let noise = problems::normals(Key::from_seed(77), 200);
    let table = problems::replaced(&table, softwood::Column::numeric("y", noise));
    let params = json!({
        "virtual": true, "n_estimators": 300, "n_members": 40, "learning_rate": 0.5, "sampling": "split-noise",
    });
    let model = fit(Family::Sglb, &params, &with_target(&table, "y"), 1);
    let found = model.training().members.clone().unwrap();
    assert!(
        found.warning.unwrap().contains("too short"),
        "{}",
        model.training().chosen
    );
}
