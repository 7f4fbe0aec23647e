//! Class weights: equivalence with row weights, and errors.

use crate::problems::FitJson as _;
use crate::problems::{fit, mixed, prediction_bits, quick, with_target};
use serde_json::{Value, json};
use softwood::data::Target;
use softwood::{Dataset, Distribution, Family, Key, Pool, Run, Table};

const FAMILIES: [Family; 2] = [Family::Sgb, Family::Sglb];

fn params_with(family: Family, class_weight: &Value) -> Value {
    let mut params = quick(family);
    params["class_weight"] = class_weight.clone();
    params
}

/// The data with the weight of its class for every row.
fn weighted(data: &Dataset, class_weights: &[f64]) -> Dataset {
    let Target::Classes(codes) = data.target() else {
        panic!("classes expected")
    };
    let weights = codes
        .iter()
        .map(|&code| class_weights[code as usize])
        .collect();
    let (schema, features) = (data.schema().clone(), data.features().clone());
    Dataset::new(schema, features, data.target().clone(), Some(weights)).unwrap()
}

fn counts(data: &Dataset) -> Vec<f64> {
    let Target::Classes(codes) = data.target() else {
        panic!("classes expected")
    };
    let n = data.schema().classes().unwrap().len();
    let count = |class: usize| codes.iter().filter(|&&code| code as usize == class).count() as f64;
    (0..n).map(count).collect()
}

#[test]
fn class_weights_equal_row_weights_bit_for_bit() {
    let table = mixed(3, 200);
    for family in FAMILIES {
        for (target, class_weights, row_weights) in [
            ("two", json!({"yes": 5.5, "no": 0.3}), vec![0.3, 5.5]),
            ("three", json!({"maybe": 3}), vec![3.0, 1.0, 1.0]),
            ("two", json!({"yes": 1}), vec![1.0, 1.0]),
        ] {
            let data = with_target(&table, target);
            let with_class_weights = fit(family, &params_with(family, &class_weights), &data, 1);
            let with_row_weights = fit(family, &quick(family), &weighted(&data, &row_weights), 1);
            assert_eq!(
                prediction_bits(with_class_weights.as_ref(), &table),
                prediction_bits(with_row_weights.as_ref(), &table)
            );
        }
    }
}

#[test]
fn balanced_weights_are_those_of_scikit_learn() {
    let table = mixed(4, 200);
    for family in FAMILIES {
        for target in ["two", "three"] {
            let data = with_target(&table, target);
            let counts = counts(&data);
            let balanced = |count: &f64| 200.0 / (counts.len() as f64 * count);
            let row_weights: Vec<f64> = counts.iter().map(balanced).collect();
            let with_class_weights =
                fit(family, &params_with(family, &json!("balanced")), &data, 1);
            let with_row_weights = fit(family, &quick(family), &weighted(&data, &row_weights), 1);
            assert_eq!(
                prediction_bits(with_class_weights.as_ref(), &table),
                prediction_bits(with_row_weights.as_ref(), &table)
            );
        }
    }
}

/// The validation score uses the weights, of held-out training rows and of a given validation set.
#[test]
fn selection_uses_class_weights() {
    let table = mixed(5, 240);
    let data = with_target(&table, "two");
    let (train, held_out) = (
        data.take(&(0..200).collect::<Vec<_>>()),
        data.take(&(200..240).collect::<Vec<_>>()),
    );
    let pool = Pool::new(2).unwrap();
    let params = json!({"n_estimators": 40, "n_members": 2});
    let mut with_class_weights = params.clone();
    with_class_weights["class_weight"] = json!({"yes": 7});
    for has_validation_set in [false, true] {
        let fitted = |params: &Value, train: &Dataset, held_out: &Dataset| {
            let mut run = Run::new(Key::from_seed(0), &pool);
            run.held_out = has_validation_set.then_some(held_out);
            let model = Family::Sgb.fit_with(params, train, &run).unwrap();
            prediction_bits(model.as_ref(), &table)
        };
        let weights = [1.0, 7.0];
        assert_eq!(
            fitted(&with_class_weights, &train, &held_out),
            fitted(
                &params,
                &weighted(&train, &weights),
                &weighted(&held_out, &weights)
            )
        );
    }
}

#[test]
fn a_class_with_a_large_weight_is_predicted_more_often() {
    let table = mixed(6, 300);
    let data = with_target(&table, "two");
    let pool = Pool::new(2).unwrap();
    let n_predicted = |class_weight: &Value| {
        let model = fit(
            Family::Sgb,
            &params_with(Family::Sgb, class_weight),
            &data,
            1,
        );
        let labels = Distribution::new(model.as_ref(), &table, &pool)
            .unwrap()
            .labels();
        labels.unwrap().iter().filter(|&&label| label == 1).count()
    };
    let (light, plain, heavy) = (
        n_predicted(&json!({"yes": 0.01})),
        n_predicted(&Value::Null),
        n_predicted(&json!({"yes": 100})),
    );
    assert!(light < plain && plain < heavy, "{light} {plain} {heavy}");
}

fn problem(table: &Table, target: &str, class_weight: &Value) -> String {
    let data = with_target(table, target);
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    let found = Family::Sgb.fit_with(&params_with(Family::Sgb, class_weight), &data, &run);
    found
        .map(|model| model.n_members())
        .unwrap_err()
        .to_string()
}

#[test]
fn invalid_class_weights_are_refused() {
    let table = mixed(7, 60);
    for (target, class_weights, parts) in [
        ("two", json!({"maybe": 2}), ["`maybe`", "no, yes"]),
        ("two", json!({"yes": -1}), ["`yes`", "from 0 to"]),
        ("two", json!({"yes": 0}), ["fewer than two", "above 0"]),
        ("two", json!("even"), ["even", "balanced"]),
        ("y", json!("balanced"), ["`y` is a number", "weight"]),
    ] {
        let message = problem(&table, target, &class_weights);
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
}
