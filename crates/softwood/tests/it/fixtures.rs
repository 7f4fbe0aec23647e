//! Model files of released versions have the predictions that they had, within a tolerance, since
//! bits are promised for one kind of processor only.
//!
//! A released fixture is never written again. Until format 1 is released, this command writes the
//! fixtures and their predictions:
//!
//! `SOFTWOOD_WRITE_FIXTURES=1 cargo test --release -p softwood --test it fixtures -- --ignored write`

use std::fs;
use std::path::PathBuf;

use crate::problems::FitJson as _;
use serde_json::{Value, json};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table, load};

/// Largest accepted difference, in units of the predicted standard deviation, or of a probability.
const TOLERANCE: f64 = 1e-3;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Numeric and categorical inputs with missing cells, and with an unseen category unless `seen`.
fn rows(n: usize, seen: bool) -> Vec<Column> {
    let x = |row: usize| {
        if row % 11 == 3 {
            f64::NAN
        } else {
            (row * 37 % 101) as f64 / 25.0 - 2.0
        }
    };
    let colour = |row: usize| match row % 5 {
        0 => None,
        1 if !seen => Some("unseen"),
        1 | 2 => Some("red"),
        _ => Some("blue"),
    };
    let colours: Vec<_> = (0..n).map(colour).collect();
    vec![
        Column::numeric("x", (0..n).map(x).collect()),
        Column::categorical("colour", &colours),
    ]
}

fn training(classify: bool) -> Dataset {
    let mut columns = rows(80, true);
    let y = |row: usize| {
        let x = (row * 37 % 101) as f64 / 25.0 - 2.0;
        10.0 + 3.0 * x.sin() + f64::from(u8::from(row % 5 > 2)) + (row * 29 % 17) as f64 / 17.0
    };
    let y: Vec<f64> = (0..80).map(y).collect();
    columns.push(if classify {
        let class = |y: &f64| Some(if *y > 11.0 { "much" } else { "little" });
        Column::categorical("y", &y.iter().map(class).collect::<Vec<_>>())
    } else {
        Column::numeric("y", y)
    });
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
}

/// Predictions of a model for the rows of the fixture.
fn predictions(model: &dyn Model) -> Value {
    let pool = Pool::new(1).unwrap();
    let table = Table::new(rows(12, false)).unwrap();
    let distribution = Distribution::new(model, &table, &pool).unwrap();
    if model.schema().classes().is_some() {
        let parts = distribution.uncertainty().unwrap();
        return json!({"probabilities": distribution.probabilities().unwrap(), "knowledge": parts.knowledge});
    }
    let moments = distribution.moments().unwrap();
    json!({"sd": moments.std, "mean": moments.mean, "knowledge_sd": moments.knowledge_std,
           "quantiles": distribution.quantile(&[0.05, 0.95]).unwrap()})
}

fn numbers(value: &Value) -> Vec<f64> {
    let cells = value.as_array().unwrap().iter();
    cells.map(|cell| cell.as_f64().unwrap()).collect()
}

#[test]
fn released_models_keep_their_predictions() {
    for name in ["vst-1", "vst-1-classes", "vsgbm-1"] {
        let path = fixture(&format!("{name}.softwood"));
        assert!(fs::metadata(&path).unwrap().len() < 100_000);
        let found = predictions(load(&path).unwrap().as_ref());
        let expected: Value =
            serde_json::from_slice(&fs::read(fixture(&format!("{name}.json"))).unwrap()).unwrap();
        let unit = match expected.get("sd") {
            Some(sd) => numbers(sd).into_iter().fold(f64::INFINITY, f64::min),
            None => 1.0,
        };
        let expected = expected.as_object().unwrap();
        assert_eq!(found.as_object().unwrap().len(), expected.len());
        for (what, expected) in expected {
            let (found, expected) = (numbers(&found[what]), numbers(expected));
            assert_eq!(found.len(), expected.len(), "{name} {what}");
            for (found, expected) in found.iter().zip(&expected) {
                let difference = (found - expected).abs() / unit;
                assert!(
                    difference < TOLERANCE,
                    "{name} {what}: {found} was {expected}"
                );
            }
        }
    }
}

#[test]
#[ignore = "writes the fixtures of the format that is not released yet"]
fn write() {
    if std::env::var_os("SOFTWOOD_WRITE_FIXTURES").is_none() {
        eprintln!("skipped: SOFTWOOD_WRITE_FIXTURES is not set");
        return;
    }
    fs::create_dir_all(fixture("")).unwrap();
    let one = json!({"max_depth": 2, "leaf_mixing": "hybrid", "n_epochs": 40, "n_members": 5, "n_fits": 1,
                     "scaling": "quantile", "rotation": "none", "rank": 2});
    let sum = json!({"max_depth": 2, "leaf_mixing": "blend", "n_epochs": 40, "n_members": 5, "n_fits": 2, "n_estimators": 3,
                     "scaling": "quantile", "rotation": "none", "rank": 2});
    for (name, family, params, classify) in [
        ("vst-1", Family::Vst, &one, false),
        ("vst-1-classes", Family::Vst, &one, true),
        ("vsgbm-1", Family::Vsgbm, &sum, false),
    ] {
        let pool = Pool::new(1).unwrap();
        let run = Run::new(Key::from_seed(1), &pool);
        let model = family.fit_with(params, &training(classify), &run).unwrap();
        model.save(&fixture(&format!("{name}.softwood"))).unwrap();
        let expected = serde_json::to_string_pretty(&predictions(model.as_ref())).unwrap();
        fs::write(fixture(&format!("{name}.json")), expected + "\n").unwrap();
    }
}
