//! Odd tables through every family: a defined, sane answer or a message that says what is wrong.
//!
//! Columns without a cell, constant columns, two rows, weights of zero and unseen categories stand in `contract.rs`.

use crate::problems::FitJson as _;
use crate::problems::{
    TARGETS, answers, categories, fit, mixed, normals, numbers, quick, replaced,
};
use serde_json::{Value, json};
use softwood::{
    Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Schema, Table, Target,
};

fn data(table: &Table, target: &str) -> Dataset {
    let roles = Roles {
        target: target.to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

/// Quick parameters, and quick ones that leave the choice of settings to the model.
fn recipes(family: Family) -> Vec<Value> {
    let mut open = quick(family);
    if let Some(fields) = open.as_object_mut() {
        fields.remove("learning_rate");
        fields.remove("max_depth");
    }
    vec![quick(family), open]
}

fn message(family: Family, data: &Dataset) -> String {
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    family
        .fit(&quick(family), data, &run)
        .unwrap_err()
        .to_string()
}

/// The mixed table with a category of one's choice in every row.
fn named(n: usize, category: impl Fn(usize) -> String) -> Table {
    let names: Vec<_> = (0..n).map(|row| Some(category(row))).collect();
    replaced(&mixed(1, n), Column::categorical("c", &names))
}

/// Smallest and largest of some numbers.
fn range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// Finite answers everywhere; means and central intervals within the range of `y`, widened by itself times `slack`.
fn is_sane(model: &dyn Model, rows: &Table, y: &[f64], slack: f64) {
    answers(model, rows);
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(model, rows, &pool).unwrap();
    let (low, high) = range(y);
    // halves, since the difference of the largest numbers is beyond them
    let reach = 0.5 * high - 0.5 * low;
    let inside = |value: f64| {
        let off = (0.5 * value - 0.25 * low - 0.25 * high).abs();
        value.is_finite() && off <= 0.5 * reach * (1.0 + 2.0 * slack)
    };
    let means = dist.mean().unwrap();
    let outside = means.iter().find(|mean| !inside(**mean));
    assert!(outside.is_none(), "{outside:?} of {low:e} to {high:e}");
    let medians = dist.quantile(&[0.5]).unwrap();
    assert!(medians.into_iter().all(inside));
    assert!(dist.sd().unwrap().iter().all(|&sd| sd > 0.0));
}

#[test]
fn a_category_for_every_row_is_taken() {
    let table = named(120, |row| format!("row {row}"));
    let fresh = named(120, |row| format!("other {row}"));
    for &family in Family::ALL {
        for params in recipes(family) {
            for target in TARGETS {
                let others: Vec<&str> = TARGETS.into_iter().filter(|t| *t != target).collect();
                let training = table.without(&others);
                let model = fit(family, &params, &data(&training, target), 0);
                answers(&*model, &table);
                answers(&*model, &fresh);
                if target == "y" {
                    is_sane(&*model, &table, &numbers(&table, "y"), 0.5);
                    is_sane(&*model, &fresh, &numbers(&table, "y"), 0.5);
                }
                // names alone
                let bare = training.without(&["a", "b"]);
                let model = fit(family, &params, &data(&bare, target), 0);
                answers(&*model, &fresh);
            }
        }
    }
}

#[test]
fn a_hundred_thousand_categories_are_taken() {
    let n = 100_000;
    let names: Vec<_> = (0..n).map(|row| Some(format!("{row}"))).collect();
    let a = normals(Key::from_seed(2), n);
    let y: Vec<f64> = a.iter().map(|a| a.sin()).collect();
    let table = Table::new(vec![
        Column::numeric("a", a),
        Column::categorical("c", &names),
        Column::numeric("y", y.clone()),
    ])
    .unwrap();
    let some: Vec<usize> = (0..n).step_by(997).collect();
    for &family in Family::ALL {
        let mut params = quick(family);
        for (name, few) in [("n_estimators", 5), ("n_epochs", 1), ("n_members", 4)] {
            if let Some(value) = params.get_mut(name) {
                *value = json!(few);
            }
        }
        let model = fit(family, &params, &data(&table, "y"), 0);
        is_sane(&*model, &table.take(&some), &y, 1.0);
    }
}

#[test]
fn labels_of_one_class_are_refused_and_so_is_a_target_of_one_value() {
    let table = mixed(3, 60);
    let one_class = replaced(&table, Column::categorical("two", &[Some("yes"); 60]));
    let one_value = replaced(&table, Column::numeric("y", vec![-7.5; 60]));
    for &family in Family::ALL {
        for (table, target) in [(&one_class, "two"), (&one_value, "y")] {
            let found = message(family, &data(table, target));
            assert_eq!(
                found,
                format!(
                    "column `{target}`: all target values are equal; there is nothing to predict (one class or a constant)"
                )
            );
        }
    }
}

#[test]
fn two_rows_are_taken_by_default_parameters() {
    let table = Table::new(vec![
        Column::numeric("a", vec![0.0, 1.0]),
        Column::categorical("c", &[Some("oak"), Some("yew")]),
        Column::numeric("y", vec![3.0, 5.0]),
    ])
    .unwrap();
    for &family in Family::ALL {
        let model = fit(family, &json!({}), &data(&table, "y"), 0);
        is_sane(&*model, &table, &[3.0, 5.0], 1.0);
    }
}

#[test]
fn weights_that_are_no_counts_are_refused_by_row() {
    let table = mixed(4, 50).without(&["two", "three"]);
    let plain = data(&table, "y");
    let with = |row: usize, weight: f64| {
        let mut weights = vec![1.0; 50];
        weights[row] = weight;
        let (schema, features) = (plain.schema().clone(), plain.features().clone());
        Dataset::new(schema, features, plain.target().clone(), Some(weights))
    };
    for weight in [f64::NAN, f64::INFINITY, -1.0] {
        let found = with(17, weight).unwrap_err().to_string();
        assert_eq!(
            found,
            format!("weight {weight} of row 18 must be finite and not negative")
        );
    }
    let (schema, features) = (plain.schema().clone(), plain.features().clone());
    let zeros = Dataset::new(
        schema,
        features,
        plain.target().clone(),
        Some(vec![0.0; 50]),
    );
    assert_eq!(zeros.unwrap_err().to_string(), "all weights are zero");
    // the same as a column of the table
    for (weight, expected) in [
        (
            f64::NAN,
            "column `w`, row 4: a weight must be a number that is not negative",
        ),
        (
            -1.0,
            "column `w`, row 4: a weight must be a number that is not negative",
        ),
    ] {
        let mut weights = vec![1.0; 50];
        weights[3] = weight;
        let roles = Roles {
            target: "y".to_owned(),
            weight: Some("w".to_owned()),
            ..Roles::default()
        };
        let weighed = replaced(&table, Column::numeric("w", weights));
        let found = Dataset::from_table(&weighed, &roles)
            .unwrap_err()
            .to_string();
        assert_eq!(found, expected);
    }
}

#[test]
fn weights_of_very_different_size_are_taken() {
    let table = mixed(5, 80).without(&["two", "three"]);
    let plain = data(&table, "y");
    let weights: Vec<f64> = (0..80)
        .map(|row| 10_f64.powi(row % 13 - 6) * f64::from(u8::from(row % 5 > 0)))
        .collect();
    let weighed = Dataset::new(
        plain.schema().clone(),
        plain.features().clone(),
        plain.target().clone(),
        Some(weights),
    )
    .unwrap();
    for &family in Family::ALL {
        for params in recipes(family) {
            let model = fit(family, &params, &weighed, 0);
            is_sane(&*model, &table, &numbers(&table, "y"), 2.0);
        }
    }
}

#[test]
fn infinities_are_refused_by_column_and_row() {
    for value in [f64::INFINITY, f64::NEG_INFINITY] {
        for name in ["a", "y", "w"] {
            let mut cells = vec![1.0; 9];
            cells[4] = value;
            let found = Table::new(vec![Column::numeric(name, cells)])
                .unwrap_err()
                .to_string();
            assert_eq!(
                found,
                format!(
                    "column `{name}`, row 5: {value} is not a finite number; leave the cell empty if it is missing"
                )
            );
        }
    }
}

#[test]
fn a_missing_target_is_refused_by_row() {
    let table = mixed(6, 30);
    let mut y = numbers(&table, "y");
    y[11] = f64::NAN;
    let mut names = categories(Key::from_seed(7), 30, &["no", "yes"]);
    names[11] = None;
    let table = replaced(&table, Column::numeric("y", y));
    let table = replaced(&table, Column::categorical("two", &names));
    for target in ["y", "two"] {
        let roles = Roles {
            target: target.to_owned(),
            ..Roles::default()
        };
        let found = Dataset::from_table(&table, &roles).unwrap_err().to_string();
        assert_eq!(
            found,
            format!(
                "column `{target}`, row 12: the target cell is missing; drop the row or fill the cell"
            )
        );
    }
}

#[test]
fn targets_of_1e300_are_taken_alone_and_among_small_ones() {
    let table = mixed(8, 100).without(&["two", "three"]);
    let y = numbers(&table, "y");
    let huge = |at: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..100).map(at).collect() };
    let targets = [
        // all huge, and close to each other
        huge(&|row| 1e300 * (1.0 + 1e-3 * y[row])),
        // one or some among ones
        huge(&|row| if row == 13 { 1e300 } else { y[row] }),
        huge(&|row| if row % 3 == 0 { 1e300 } else { 1.0 }),
        huge(&|row| [1e300, -1e300][row % 2]),
    ];
    for &family in Family::ALL {
        for params in recipes(family) {
            for (at, y) in targets.iter().enumerate() {
                let table = replaced(&table, Column::numeric("y", y.clone()));
                let model = fit(family, &params, &data(&table, "y"), 0);
                let pool = Pool::new(1).unwrap();
                let dist = Distribution::new(&*model, &table, &pool).unwrap();
                let (low, high) = range(y);
                for mean in dist.mean().unwrap() {
                    let fits =
                        mean.is_finite() && mean / 3.0 <= high && mean / 3.0 >= low.min(-high);
                    assert!(fits, "{family:?}, target {at}: {mean:e}");
                }
                let log_density = dist.log_density(y).unwrap();
                assert!(log_density.iter().all(|number| number.is_finite()));
            }
        }
    }
}

#[test]
fn targets_with_no_room_for_an_interval_are_refused() {
    let table = mixed(12, 40).without(&["two", "three"]);
    let ends: Vec<f64> = (0..40).map(|row| [f64::MAX, -f64::MAX][row % 2]).collect();
    let table = replaced(&table, Column::numeric("y", ends));
    for &family in Family::ALL {
        assert_eq!(
            message(family, &data(&table, "y")),
            "column `y`, row 1: 1.7976931348623157e308 leaves no room for an interval around it; divide the column so that \
             its numbers are below 1e305"
        );
    }
}

#[test]
fn features_at_both_ends_of_what_there_is_are_taken() {
    let table = mixed(13, 80).without(&["two", "three"]);
    let ends = [f64::MAX, -f64::MAX, 0.0, f64::MIN_POSITIVE, 5e-324];
    let a = (0..80).map(|row| ends[row % 5]).collect();
    let table = replaced(&table, Column::numeric("a", a));
    for &family in Family::ALL {
        for params in recipes(family) {
            let model = fit(family, &params, &data(&table, "y"), 0);
            is_sane(&*model, &table, &numbers(&table, "y"), 1.0);
        }
    }
}

/// The families whose laws have a scale that gradients move, with steps that are long and many.
fn boosted() -> impl Iterator<Item = (Family, Value)> {
    let families = [Family::Sgb, Family::Sglb].into_iter();
    families.flat_map(|family| {
        [0.03, 0.3, 1.0].into_iter().map(move |rate| {
            let params = json!({
                "n_estimators": 300, "n_members": 3, "learning_rate": rate, "max_depth": 4,
            });
            (family, params)
        })
    })
}

/// One column `x` from 0 to 1 and a target.
fn line(n: usize, y: impl Fn(f64, usize) -> f64) -> (Table, Vec<f64>) {
    let x: Vec<f64> = (0..n).map(|row| row as f64 / n as f64).collect();
    let y: Vec<f64> = x.iter().enumerate().map(|(row, &x)| y(x, row)).collect();
    let table = Table::new(vec![
        Column::numeric("x", x),
        Column::numeric("y", y.clone()),
    ])
    .unwrap();
    (table, y)
}

#[test]
fn a_stretch_of_equal_targets_does_not_end_the_scale() {
    let noise = normals(Key::from_seed(9), 300);
    // nothing but zeros, then noise
    let (table, y) = line(300, |x, row| if x < 0.6 { 0.0 } else { noise[row] });
    for (family, params) in boosted() {
        let model = fit(family, &params, &data(&table, "y"), 0);
        is_sane(&*model, &table, &y, 0.5);
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let sd = dist.sd().unwrap();
        // the floor is a thousandth of the target's standard deviation
        assert!(sd.iter().all(|&sd| sd > 5e-4 && sd < 5.0), "{family:?}");
        // a target off the stretch costs no more than the floor lets it
        let off = vec![1.0; 300];
        let log_density = dist.log_density(&off).unwrap();
        assert!(log_density.iter().all(|number| number.is_finite()));
    }
}

#[test]
fn one_huge_outlier_stays_where_it_is() {
    let noise = normals(Key::from_seed(10), 300);
    for size in [1e3, 1e6, 1e12] {
        let (table, y) = line(300, |x, row| {
            if row == 150 {
                size
            } else {
                x + 0.1 * noise[row]
            }
        });
        for (family, params) in boosted() {
            let model = fit(family, &params, &data(&table, "y"), 0);
            is_sane(&*model, &table, &y, 0.5);
            let pool = Pool::new(1).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let means = dist.mean().unwrap();
            // rows far from it are near their own values, in units of a spread that it alone makes
            let off = means[..100].iter().chain(&means[200..]);
            let largest = off.fold(0.0_f64, |most, mean| most.max(mean.abs()));
            assert!(largest < 0.1 * size, "{family:?} {params}: {largest:e}");
        }
    }
}

#[test]
fn duplicated_rows_are_no_certainty() {
    // ten places, at each the same two targets, a hundred times
    let rows = (0..2000).map(|row| (f64::from(row % 10), f64::from(row / 10 % 2)));
    let (x, y): (Vec<f64>, Vec<f64>) = rows.unzip();
    let table = Table::new(vec![
        Column::numeric("x", x),
        Column::numeric("y", y.clone()),
    ])
    .unwrap();
    for (family, params) in boosted() {
        let model = fit(family, &params, &data(&table, "y"), 0);
        is_sane(&*model, &table, &y, 0.5);
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        // the law of a fair coin: mean and standard deviation one half
        for (mean, sd) in dist.mean().unwrap().into_iter().zip(dist.sd().unwrap()) {
            assert!(
                (mean - 0.5).abs() < 0.2 && (sd - 0.5).abs() < 0.15,
                "{family:?} {params}: {mean} {sd}"
            );
        }
    }
}

#[test]
fn the_same_row_with_the_same_target_many_times_is_held_by_the_floor() {
    // five rows, two hundred times each: nothing is left to explain
    let (table, y) = line(1000, |_, row| (row % 5) as f64);
    let x = (0..1000).map(|row| f64::from(row % 5)).collect();
    let table = replaced(&table, Column::numeric("x", x));
    for (family, params) in boosted() {
        let model = fit(family, &params, &data(&table, "y"), 0);
        is_sane(&*model, &table, &y, 0.5);
    }
}

#[test]
fn classes_that_a_column_tells_apart_keep_finite_logits() {
    let (table, _) = line(200, |_, _| 0.0);
    let classes: Vec<_> = (0..200).map(|row| Some(["no", "yes"][row / 100])).collect();
    let many: Vec<_> = (0..200).map(|row| Some(format!("k{}", row / 20))).collect();
    let x = table.without(&["y"]);
    for column in [
        Column::categorical("y", &classes),
        Column::categorical("y", &many),
    ] {
        let table = replaced(&x, column);
        for (family, params) in boosted() {
            let model = fit(family, &params, &data(&table, "y"), 0);
            answers(&*model, &table);
        }
    }
}

#[test]
fn a_target_without_a_schema_that_fits_is_refused() {
    let table = mixed(11, 20).without(&["two", "three"]);
    let plain = data(&table, "y");
    let schema: &Schema = plain.schema();
    let short = Dataset::new(
        schema.clone(),
        plain.features().clone(),
        Target::Numeric(vec![1.0; 19]),
        None,
    );
    assert_eq!(
        short.unwrap_err().to_string(),
        "20 rows of features but 19 targets"
    );
}
