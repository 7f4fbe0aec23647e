//! Boosted trees on categorical columns with many levels: target encoding, crosses and warm starts.

use crate::problems::FitJson as _;
use softwood::evaluate::score;
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Model, Pool, Roles, Run, Table, from_bytes,
};

/// Rows whose target depends on a category with 300 levels; with `crossed` it depends on the
/// combination of two categories with 30 levels each.
fn rows(n: usize, seed: u64, crossed: bool) -> Table {
    let key = Key::from_seed(seed);
    let uniform = |stream: u64| key.child(stream).uniforms(n);
    let level = |stream: u64, n_levels: f64| -> Vec<usize> {
        let draws = uniform(stream);
        draws.iter().map(|u| (u * n_levels) as usize).collect()
    };
    let (a, b) = (level(1, if crossed { 30.0 } else { 300.0 }), level(2, 30.0));
    let effect = |a: usize, b: usize| {
        let salt = if crossed {
            a * 31 + b * 17 + a * b
        } else {
            a * 37
        };
        f64::from((salt % 11) as u32) / 5.0 - 1.0
    };
    let noise = uniform(3);
    let y = (0..n).map(|i| effect(a[i], b[i]) + 0.6 * (noise[i] - 0.5));
    let texts = |levels: &[usize]| -> Vec<Option<String>> {
        levels
            .iter()
            .map(|level| Some(format!("level{level}")))
            .collect()
    };
    Table::new(vec![
        Column::categorical("a", &texts(&a)),
        Column::categorical("b", &texts(&b)),
        Column::numeric("x", uniform(4)),
        Column::numeric("y", y.collect()),
    ])
    .unwrap()
}

fn dataset(table: &Table) -> Dataset {
    let roles = Roles {
        target: "y".into(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

fn fit(
    family: Family,
    params: &serde_json::Value,
    data: &Dataset,
    threads: usize,
) -> Box<dyn Model> {
    let pool = Pool::new(threads).unwrap();
    family
        .fit_with(params, data, &Run::new(Key::from_seed(7), &pool))
        .unwrap()
}

fn rmse(model: &dyn Model, table: &Table) -> f64 {
    let pool = Pool::new(1).unwrap();
    let distribution = Distribution::new(model, table, &pool).unwrap();
    let data = dataset(table);
    score(&distribution, data.target(), None).unwrap().values["rmse"]
}

fn mean(model: &dyn Model, table: &Table) -> Vec<f64> {
    let pool = Pool::new(1).unwrap();
    Distribution::new(model, table, &pool)
        .unwrap()
        .mean()
        .unwrap()
}

#[test]
fn hundreds_of_levels_are_learned() {
    let (train, test) = (rows(6000, 1, false), rows(2000, 2, false));
    let params = serde_json::json!({ "n_members": 2, "learning_rate": 0.1, "max_depth": 4, "n_estimators": 150 });
    let model = fit(Family::Sgb, &params, &dataset(&train), 2);
    // the noise has a standard deviation of 0.173; a constant has an RMSE of 0.65
    let found = rmse(model.as_ref(), &test);
    assert!(found < 0.23, "{found}");
}

#[test]
fn category_crosses_are_used_if_they_improve_the_validation_score() {
    let (train, test) = (rows(8000, 1, true), rows(2000, 2, true));
    let data = dataset(&train);
    let params = |category_crosses: serde_json::Value| {
        serde_json::json!({
            "n_members": 1, "learning_rate": 0.1, "max_depth": 4,
            "n_estimators": 100, "category_crosses": category_crosses,
        })
    };
    let separate = fit(Family::Sgb, &params(false.into()), &data, 2);
    let crossed = fit(Family::Sgb, &params(true.into()), &data, 2);
    let (separate, crossed) = (
        rmse(separate.as_ref(), &test),
        rmse(crossed.as_ref(), &test),
    );
    assert!(crossed < 0.6 * separate, "{crossed} {separate}");
    // automatic selection on the validation set takes the crosses
    let auto = serde_json::json!({ "n_members": 1, "learning_rate": 0.1, "n_estimators": 60 });
    let model = fit(Family::Sgb, &auto, &data, 2);
    assert!(
        model.training().chosen.contains("category cross"),
        "{}",
        model.training().chosen
    );
}

#[test]
fn target_encoding_does_not_depend_on_threads_and_is_restored_from_a_file() {
    let table = rows(1500, 5, true);
    let params = serde_json::json!({ "n_members": 2, "n_estimators": 30 });
    let bytes = |threads| fit(Family::Sglb, &params, &dataset(&table), threads).to_bytes();
    let one = bytes(1);
    assert!(one == bytes(2) && one == bytes(3));
    let again = from_bytes(&one).unwrap();
    let model = fit(Family::Sglb, &params, &dataset(&table), 1);
    assert_eq!(mean(model.as_ref(), &table), mean(again.as_ref(), &table));
    // unseen levels have a prediction
    let new = rows(50, 6, false);
    assert!(
        mean(again.as_ref(), &new)
            .iter()
            .all(|mean| mean.is_finite())
    );
}

#[test]
fn a_warm_start_on_the_same_rows_equals_one_long_fit() {
    for (family, more) in [
        (Family::Sgb, "{}"),
        (Family::Sglb, r#"{"virtual_ensemble": true, "n_chains": 2}"#),
    ] {
        for crossed in [false, true] {
            let data = dataset(&rows(900, 8, crossed));
            let mut params = serde_json::json!({ "n_members": 4, "learning_rate": 0.1, "max_depth": 3, "n_estimators": 40 });
            let more: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(more).unwrap();
            params.as_object_mut().unwrap().extend(more);
            let half = fit(family, &params, &data, 2);
            let pool = Pool::new(2).unwrap();
            let run = Run::new(Key::from_seed(7), &pool).warm_start(half.as_ref());
            let resumed = family.fit_with(&params, &data, &run).unwrap();
            params["n_estimators"] = 80.into();
            let long = fit(family, &params, &data, 2);
            let table = rows(300, 9, crossed);
            let (mut difference, mut largest) = (0.0_f64, 0.0_f64);
            for (a, b) in mean(resumed.as_ref(), &table)
                .iter()
                .zip(mean(long.as_ref(), &table))
            {
                difference = difference.max((a - b).abs());
                largest = largest.max(b.abs());
            }
            // the warm start rounds the raw outputs once more, which may change a close split
            assert!(
                difference < 0.05 * largest,
                "{} {difference} {largest}",
                family.name()
            );
        }
    }
}

#[test]
fn a_warm_start_learns_from_new_rows_and_refuses_what_does_not_fit() {
    let pool = Pool::new(2).unwrap();
    let data = dataset(&rows(400, 1, false));
    let params = serde_json::json!({ "n_members": 2, "n_estimators": 40 });
    let model = fit(Family::Sglb, &params, &data, 2);
    let run = Run::new(Key::from_seed(1), &pool).warm_start(model.as_ref());
    let all = rows(4000, 1, false);
    let more = Dataset::aligned(data.schema(), &all, None).unwrap();
    let test = rows(1000, 2, false);
    let longer = Family::Sglb.fit_with(&params, &more, &run).unwrap();
    assert!(rmse(longer.as_ref(), &test) < rmse(model.as_ref(), &test));
    // the validation set selects the number of added trees, which may be zero
    let validated = run.held_out(&data);
    let kept = Family::Sglb.fit_with(&params, &more, &validated).unwrap();
    assert!(
        kept.training().chosen.contains("more trees"),
        "{}",
        kept.training().chosen
    );
    assert!(
        kept.training()
            .curve
            .first()
            .is_some_and(|point| point.epoch == 0)
    );
    let other = serde_json::json!({ "n_members": 3, "n_estimators": 40 });
    assert!(matches!(
        Family::Sglb.fit_with(&other, &data, &run),
        Err(Error::Parameters(_))
    ));
    assert!(matches!(
        Family::Sgb.fit_with(&params, &data, &run),
        Err(Error::Parameters(_))
    ));
    let other_schema = dataset(&rows(400, 1, true));
    assert!(matches!(
        Family::Sglb.fit_with(&params, &other_schema, &run),
        Err(Error::Table(_))
    ));
}
