//! Weights of classes: what they are equal to, and what is refused.

use crate::problems::FitJson as _;
use crate::problems::{answers, fit, mixed, quick, with_target};
use serde_json::{Value, json};
use softwood::{Dataset, Distribution, Family, Key, Pool, Run, Table, Target};

const FAMILIES: [Family; 2] = [Family::Sgb, Family::Sglb];

fn with(family: Family, class_weight: &Value) -> Value {
    let mut params = quick(family);
    params["class_weight"] = class_weight.clone();
    params
}

/// The same data, every row with the weight of its class.
fn weighted(data: &Dataset, of_class: &[f64]) -> Dataset {
    let Target::Classes(codes) = data.target() else {
        panic!("classes expected")
    };
    let weights = codes.iter().map(|&code| of_class[code as usize]).collect();
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
fn they_equal_row_weights_bit_for_bit() {
    let table = mixed(3, 200);
    for family in FAMILIES {
        for (target, given, by_hand) in [
            ("two", json!({"yes": 5.5, "no": 0.3}), vec![0.3, 5.5]),
            ("three", json!({"maybe": 3}), vec![3.0, 1.0, 1.0]),
            ("two", json!({"yes": 1}), vec![1.0, 1.0]),
        ] {
            let data = with_target(&table, target);
            let ours = fit(family, &with(family, &given), &data, 1);
            let theirs = fit(family, &quick(family), &weighted(&data, &by_hand), 1);
            assert_eq!(
                answers(ours.as_ref(), &table),
                answers(theirs.as_ref(), &table)
            );
        }
    }
}

#[test]
fn balanced_is_what_scikit_learn_calls_so() {
    let table = mixed(4, 200);
    for family in FAMILIES {
        for target in ["two", "three"] {
            let data = with_target(&table, target);
            let counts = counts(&data);
            let of = |count: &f64| 200.0 / (counts.len() as f64 * count);
            let by_hand: Vec<f64> = counts.iter().map(of).collect();
            let ours = fit(family, &with(family, &json!("balanced")), &data, 1);
            let theirs = fit(family, &quick(family), &weighted(&data, &by_hand), 1);
            assert_eq!(
                answers(ours.as_ref(), &table),
                answers(theirs.as_ref(), &table)
            );
        }
    }
}

/// Also the choice of settings sees the weights: rows that are held out, and rows that are given for that.
#[test]
fn choices_are_made_with_them() {
    let table = mixed(5, 240);
    let data = with_target(&table, "two");
    let (train, held_out) = (
        data.take(&(0..200).collect::<Vec<_>>()),
        data.take(&(200..240).collect::<Vec<_>>()),
    );
    let pool = Pool::new(2).unwrap();
    let params = json!({"n_estimators": 40, "n_members": 2});
    let mut ours = params.clone();
    ours["class_weight"] = json!({"yes": 7});
    for given in [false, true] {
        let of = |params: &Value, train: &Dataset, held_out: &Dataset| {
            let run = Run {
                held_out: given.then_some(held_out),
                ..Run::new(Key::from_seed(0), &pool)
            };
            let model = Family::Sgb.fit(params, train, &run).unwrap();
            answers(model.as_ref(), &table)
        };
        let weights = [1.0, 7.0];
        assert_eq!(
            of(&ours, &train, &held_out),
            of(
                &params,
                &weighted(&train, &weights),
                &weighted(&held_out, &weights)
            )
        );
    }
}

#[test]
fn a_heavy_class_is_predicted_more_often() {
    let table = mixed(6, 300);
    let data = with_target(&table, "two");
    let pool = Pool::new(2).unwrap();
    let share = |class_weight: &Value| {
        let model = fit(Family::Sgb, &with(Family::Sgb, class_weight), &data, 1);
        let labels = Distribution::new(model.as_ref(), &table, &pool)
            .unwrap()
            .labels();
        labels.unwrap().iter().filter(|&&label| label == 1).count()
    };
    let (light, plain, heavy) = (
        share(&json!({"yes": 0.01})),
        share(&Value::Null),
        share(&json!({"yes": 100})),
    );
    assert!(light < plain && plain < heavy, "{light} {plain} {heavy}");
}

fn problem(table: &Table, target: &str, class_weight: &Value) -> String {
    let data = with_target(table, target);
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    let found = Family::Sgb.fit(&with(Family::Sgb, class_weight), &data, &run);
    found
        .map(|model| model.n_members())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let table = mixed(7, 60);
    for (target, given, parts) in [
        ("two", json!({"maybe": 2}), ["`maybe`", "no, yes"]),
        ("two", json!({"yes": -1}), ["`yes`", "from 0 to"]),
        ("two", json!({"yes": 0}), ["fewer than two", "above 0"]),
        ("two", json!("even"), ["even", "balanced"]),
        ("y", json!("balanced"), ["`y` is a number", "weight"]),
    ] {
        let message = problem(&table, target, &given);
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
}
