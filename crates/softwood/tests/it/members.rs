//! Member diagnostics of boosted models: effective number of members, and warnings if they are too
//! similar.

use crate::problems::FitJson as _;
use crate::problems::{TARGETS, fit, mixed, normals, uniforms, with_target};
use serde_json::{Value, json};
use softwood::model::MemberReport;
use softwood::{Column, Dataset, Distribution, Family, Key, Pool, Run, Table};

fn report(family: Family, target: &str, params: &Value) -> MemberReport {
    let data = with_target(&mixed(1, 300), target);
    let model = fit(family, params, &data, 2);
    model.training().members.clone().unwrap()
}

fn params_with(more: &Value) -> Value {
    let mut params =
        json!({"n_estimators": 300, "n_members": 10, "learning_rate": 0.1, "max_depth": 3});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

#[test]
fn separately_trained_members_are_independent() {
    for family in [Family::Sgb, Family::Sglb] {
        for target in TARGETS {
            let found = report(family, target, &params_with(&json!({})));
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
        let outputs = report(
            Family::Sgb,
            target,
            &params_with(&json!({"n_estimators": 5})),
        )
        .outputs;
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
fn virtual_members_far_apart_are_accepted_and_close_ones_are_not() {
    let far = json!({"virtual_ensemble": true, "n_estimators": 1000});
    let found = report(Family::Sglb, "y", &params_with(&far));
    assert!(
        found.effective > 3.0 && found.warning.is_none(),
        "{found:?}"
    );
    let near = json!({"virtual_ensemble": true, "n_estimators": 100, "learning_rate": 0.01});
    let found = report(Family::Sglb, "y", &params_with(&near));
    assert!(found.effective < 2.0, "{found:?}");
    assert!(found.warning.unwrap().contains("independent ones"));
}

/// Each chain counts as at least one independent member.
#[test]
fn members_of_several_chains_are_compared() {
    let params = json!({"virtual_ensemble": true, "n_chains": 5, "n_estimators": 400});
    let found = report(Family::Sglb, "y", &params_with(&params));
    let mean = &found.outputs[0];
    assert!(
        (5.0..=10.0).contains(&found.effective) && found.warning.is_none(),
        "{found:?}"
    );
    assert!(mean.r_hat.unwrap() > 0.7 && mean.within_chains.unwrap() > 0.0);
}

/// A constant with known noise: members `p` trees apart have the correlation `(1 - e)^p` and the
/// posterior variance. 200 members count as 93 independent ones, whose variance is within 60% of
/// the true variance with a failure probability of 1e-6.
#[test]
fn members_of_a_constant_have_the_known_correlation_and_variance() {
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
fn members_that_are_too_similar_give_a_warning() {
    // without subsampling the members differ by the rounding of gradients only
    let found = report(Family::Sgb, "y", &params_with(&json!({"subsample": 1})));
    let warning = found.warning.unwrap();
    assert!(
        warning.contains("rounding errors")
            && warning.contains("`subsample` or `colsample_bytree` below 1"),
        "{warning}"
    );
    let one = report(
        Family::Sgb,
        "two",
        &params_with(&json!({"subsample": 1, "n_members": 1})),
    );
    assert!(one.warning.is_none());
    // the variance of the noise of equation 11 is too small by a factor of N
    let malinin = json!({"langevin_noise": "malinin", "subsample": 1, "max_depth": 0});
    let found = report(Family::Sglb, "y", &params_with(&malinin));
    assert!(found.warning.unwrap().contains("too similar"));
    let cold = json!({"langevin_temperature": 0, "subsample": 1});
    let found = report(Family::Sglb, "y", &params_with(&cold));
    assert!(found.warning.unwrap().contains("rounding errors"));
}

/// A colder chain is meant to vary less.
#[test]
fn members_agree_more_at_a_lower_temperature() {
    for target in ["y", "two"] {
        let spread = |temperature: f64| {
            let params = json!({"langevin_temperature": temperature, "subsample": 1});
            let found = report(Family::Sglb, target, &params_with(&params));
            assert!(found.warning.is_none(), "{found:?}");
            found.outputs[0].variance
        };
        let (cold, warm) = (spread(0.1), spread(1.0));
        assert!(cold < 0.6 * warm, "{target}: {cold} {warm}");
    }
}

#[test]
fn more_virtual_members_than_trees_are_refused() {
    let data = with_target(&mixed(1, 60), "y");
    let pool = Pool::new(1).unwrap();
    let params = json!({"virtual_ensemble": true, "n_estimators": 8, "n_members": 10});
    let found = Family::Sglb.fit_with(&params, &data, &Run::new(Key::from_seed(0), &pool));
    let message = found
        .map(|model| model.n_members())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("8 trees") && message.contains("10 virtual"),
        "{message}"
    );
}

/// If the validation set selects fewer trees than there are members, some members are identical.
#[test]
fn chains_that_are_too_short_give_a_warning() {
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

/// Two columns of zeros and ones, never both one, with their sum as target.
fn without_corner() -> Dataset {
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

fn knowledge_sd(params: &Value, a: Vec<f64>, b: Vec<f64>) -> Vec<f64> {
    let model = fit(Family::Sglb, params, &without_corner(), 2);
    let rows = Table::new(vec![Column::numeric("a", a), Column::numeric("b", b)]).unwrap();
    let pool = Pool::new(1).unwrap();
    let distribution = Distribution::new(&*model, &rows, &pool).unwrap();
    distribution.moments().unwrap().knowledge_std
}

/// The position of a threshold between two neighbouring training values is not determined by the
/// data.
#[test]
fn members_differ_between_neighbouring_training_values() {
    let mut alone = json!({"extrapolation": false});
    let found = knowledge_sd(&params_with(&alone), vec![0.0, 1.0, 0.5], vec![0.0; 3]);
    assert!(found[2] > 5.0 * found[0].max(found[1]), "{found:?}");
    // a single chain has its threshold in the middle
    alone["virtual_ensemble"] = json!(true);
    alone["n_chains"] = json!(1);
    let one = params_with(&alone);
    let found = knowledge_sd(&one, vec![0.0, 0.49, 1.0, 0.51], vec![0.0; 4]);
    assert!((found[1] - found[0]).abs() <= 0.0 && (found[3] - found[2]).abs() <= 0.0);
}

/// A leaf without training rows has a different value in each member.
#[test]
fn members_differ_for_unseen_combinations() {
    let a = vec![0.0, 1.0, 0.0, 1.0];
    let b = vec![0.0, 0.0, 1.0, 1.0];
    let found = knowledge_sd(&params_with(&json!({})), a, b);
    let seen = found[..3].iter().copied().fold(0.0, f64::max);
    assert!(found[3] > 3.0 * seen, "{found:?}");
}

#[test]
fn several_chains_score_classification_settings_if_members_are_chains() {
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
        // the mixture of several chains predicts better than one chain
        let (sum_one, sum_several): (f64, f64) = (one.iter().sum(), several.iter().sum());
        assert!(sum_several > sum_one, "{target}: {one:?} {several:?}");
    }
}
