//! Unusual tables in every family: a plausible prediction, or an error that names the problem.
//!
//! Empty columns, constant columns, two rows, weights of zero and unseen categories are in
//! `contract.rs`.

use crate::problems::FitJson as _;
use crate::problems::{
    TARGETS, categories, fit, mixed, normals, numbers, prediction_bits, quick, replaced, targets_of,
};
use serde_json::{Value, json};
use softwood::data::{Schema, Target};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table};

fn data(table: &Table, target: &str) -> Dataset {
    let roles = Roles {
        target: target.to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

/// Quick parameters, with given and with automatic learning rate and depth.
fn quick_variants(family: Family) -> Vec<Value> {
    let mut automatic = quick(family);
    if let Some(fields) = automatic.as_object_mut() {
        fields.remove("learning_rate");
        fields.remove("max_depth");
    }
    vec![quick(family), automatic]
}

fn message(family: Family, data: &Dataset) -> String {
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    family
        .fit_with(&quick(family), data, &run)
        .unwrap_err()
        .to_string()
}

/// The mixed table with the given categories in column `c`.
fn with_categories(n: usize, category: impl Fn(usize) -> String) -> Table {
    let names: Vec<_> = (0..n).map(|row| Some(category(row))).collect();
    replaced(&mixed(1, n), Column::categorical("c", &names))
}

/// Smallest and largest value.
fn range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// Asserts finite predictions, positive standard deviations, and means and medians within the range
/// of `y`, widened on both sides by `slack` times the range.
fn assert_plausible(model: &dyn Model, rows: &Table, y: &[f64], slack: f64) {
    prediction_bits(model, rows);
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(model, rows, &pool).unwrap();
    let (low, high) = range(y);
    // halves, since the difference of the largest numbers overflows
    let half_range = 0.5 * high - 0.5 * low;
    let inside = |value: f64| {
        let distance = (0.5 * value - 0.25 * low - 0.25 * high).abs();
        value.is_finite() && distance <= 0.5 * half_range * (1.0 + 2.0 * slack)
    };
    let means = dist.mean().unwrap();
    let outside = means.iter().find(|mean| !inside(**mean));
    assert!(outside.is_none(), "{outside:?} of {low:e} to {high:e}");
    let medians = dist.quantile(&[0.5]).unwrap();
    assert!(medians.into_iter().all(inside));
    assert!(dist.std().unwrap().iter().all(|&sd| sd > 0.0));
}

#[test]
fn a_category_for_every_row_is_accepted() {
    let table = with_categories(120, |row| format!("row {row}"));
    let new_rows = with_categories(120, |row| format!("other {row}"));
    for &family in Family::ALL {
        for params in quick_variants(family) {
            for &target in targets_of(family) {
                let others: Vec<&str> = TARGETS.into_iter().filter(|t| *t != target).collect();
                let training = table.without(&others);
                let model = fit(family, &params, &data(&training, target), 0);
                prediction_bits(&*model, &table);
                prediction_bits(&*model, &new_rows);
                if target == "y" {
                    assert_plausible(&*model, &table, &numbers(&table, "y"), 0.5);
                    assert_plausible(&*model, &new_rows, &numbers(&table, "y"), 0.5);
                }
                // the category is the only column
                let bare = training.without(&["a", "b"]);
                let model = fit(family, &params, &data(&bare, target), 0);
                prediction_bits(&*model, &new_rows);
            }
        }
    }
}

#[test]
fn a_hundred_thousand_categories_are_accepted() {
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
    let rows: Vec<usize> = (0..n).step_by(997).collect();
    for &family in Family::ALL {
        let mut params = quick(family);
        for (name, small) in [
            ("n_estimators", 5),
            ("n_epochs", 1),
            ("n_members", 4),
            ("n_inducing", 30),
        ] {
            if let Some(value) = params.get_mut(name) {
                *value = json!(small);
            }
        }
        let model = fit(family, &params, &data(&table, "y"), 0);
        assert_plausible(&*model, &table.take(&rows), &y, 1.0);
    }
}

#[test]
fn a_single_class_and_a_constant_target_are_refused() {
    let table = mixed(3, 60);
    let one_class = replaced(&table, Column::categorical("two", &[Some("yes"); 60]));
    let one_value = replaced(&table, Column::numeric("y", vec![-7.5; 60]));
    for &family in Family::ALL {
        for (table, target) in [(&one_class, "two"), (&one_value, "y")] {
            if target == "two" && !family.supports_classes() {
                continue;
            }
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
fn two_rows_are_accepted_with_default_parameters() {
    let table = Table::new(vec![
        Column::numeric("a", vec![0.0, 1.0]),
        Column::categorical("c", &[Some("oak"), Some("yew")]),
        Column::numeric("y", vec![3.0, 5.0]),
    ])
    .unwrap();
    for &family in Family::ALL {
        let model = fit(family, &json!({}), &data(&table, "y"), 0);
        assert_plausible(&*model, &table, &[3.0, 5.0], 1.0);
    }
}

#[test]
fn weights_that_are_negative_or_not_finite_are_refused_by_row() {
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
    // as a column of the table
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
        let weighted = replaced(&table, Column::numeric("w", weights));
        let found = Dataset::from_table(&weighted, &roles)
            .unwrap_err()
            .to_string();
        assert_eq!(found, expected);
    }
}

#[test]
fn weights_of_very_different_size_are_accepted() {
    let table = mixed(5, 80).without(&["two", "three"]);
    let plain = data(&table, "y");
    let weights: Vec<f64> = (0..80)
        .map(|row| 10_f64.powi(row % 13 - 6) * f64::from(u8::from(row % 5 > 0)))
        .collect();
    let weighted = Dataset::new(
        plain.schema().clone(),
        plain.features().clone(),
        plain.target().clone(),
        Some(weights),
    )
    .unwrap();
    for &family in Family::ALL {
        for params in quick_variants(family) {
            let model = fit(family, &params, &weighted, 0);
            assert_plausible(&*model, &table, &numbers(&table, "y"), 2.0);
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
fn targets_of_1e300_are_accepted_alone_and_among_small_ones() {
    let table = mixed(8, 100).without(&["two", "three"]);
    let y = numbers(&table, "y");
    let huge = |at: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..100).map(at).collect() };
    let targets = [
        // all huge, and close together
        huge(&|row| 1e300 * (1.0 + 1e-3 * y[row])),
        // one or several huge values among small ones
        huge(&|row| if row == 13 { 1e300 } else { y[row] }),
        huge(&|row| if row % 3 == 0 { 1e300 } else { 1.0 }),
        huge(&|row| [1e300, -1e300][row % 2]),
    ];
    for &family in Family::ALL {
        for params in quick_variants(family) {
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
                let log_density = dist.logpdf(y).unwrap();
                assert!(log_density.iter().all(|number| number.is_finite()));
            }
        }
    }
}

#[test]
fn targets_too_large_for_an_interval_are_refused() {
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
fn the_largest_and_smallest_feature_values_are_accepted() {
    let table = mixed(13, 80).without(&["two", "three"]);
    let ends = [f64::MAX, -f64::MAX, 0.0, f64::MIN_POSITIVE, 5e-324];
    let a = (0..80).map(|row| ends[row % 5]).collect();
    let table = replaced(&table, Column::numeric("a", a));
    for &family in Family::ALL {
        for params in quick_variants(family) {
            let model = fit(family, &params, &data(&table, "y"), 0);
            assert_plausible(&*model, &table, &numbers(&table, "y"), 1.0);
        }
    }
}

/// Families that learn the scale by gradients, with many steps of all sizes.
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
fn equal_targets_in_a_region_do_not_drive_the_scale_to_zero() {
    let noise = normals(Key::from_seed(9), 300);
    // zeros, then noise
    let (table, y) = line(300, |x, row| if x < 0.6 { 0.0 } else { noise[row] });
    for (family, params) in boosted() {
        let model = fit(family, &params, &data(&table, "y"), 0);
        assert_plausible(&*model, &table, &y, 0.5);
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let sd = dist.std().unwrap();
        // the floor is 0.001 standard deviations of the target
        assert!(sd.iter().all(|&sd| sd > 5e-4 && sd < 5.0), "{family:?}");
        // the floor bounds the loss of an outlier
        let outliers = vec![1.0; 300];
        let log_density = dist.logpdf(&outliers).unwrap();
        assert!(log_density.iter().all(|number| number.is_finite()));
    }
}

#[test]
fn one_huge_outlier_does_not_affect_distant_rows() {
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
            assert_plausible(&*model, &table, &y, 0.5);
            let pool = Pool::new(1).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let means = dist.mean().unwrap();
            // the standard deviation of the target is that of the outlier alone
            let distant = means[..100].iter().chain(&means[200..]);
            let largest = distant.fold(0.0_f64, |largest, mean| largest.max(mean.abs()));
            assert!(largest < 0.1 * size, "{family:?} {params}: {largest:e}");
        }
    }
}

#[test]
fn duplicated_rows_do_not_reduce_data_uncertainty() {
    // ten values of x, each with two targets, a hundred times
    let rows = (0..2000).map(|row| (f64::from(row % 10), f64::from(row / 10 % 2)));
    let (x, y): (Vec<f64>, Vec<f64>) = rows.unzip();
    let table = Table::new(vec![
        Column::numeric("x", x),
        Column::numeric("y", y.clone()),
    ])
    .unwrap();
    for (family, params) in boosted() {
        let model = fit(family, &params, &data(&table, "y"), 0);
        assert_plausible(&*model, &table, &y, 0.5);
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        // a fair coin: mean and standard deviation are one half
        for (mean, sd) in dist.mean().unwrap().into_iter().zip(dist.std().unwrap()) {
            assert!(
                (mean - 0.5).abs() < 0.2 && (sd - 0.5).abs() < 0.15,
                "{family:?} {params}: {mean} {sd}"
            );
        }
    }
}

#[test]
fn many_copies_of_a_few_rows_are_limited_by_the_scale_floor() {
    // five rows, two hundred times each: the residuals are zero
    let (table, y) = line(1000, |_, row| (row % 5) as f64);
    let x = (0..1000).map(|row| f64::from(row % 5)).collect();
    let table = replaced(&table, Column::numeric("x", x));
    for (family, params) in boosted() {
        let model = fit(family, &params, &data(&table, "y"), 0);
        assert_plausible(&*model, &table, &y, 0.5);
    }
}

#[test]
fn perfectly_separable_classes_keep_finite_logits() {
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
            prediction_bits(&*model, &table);
        }
    }
}

#[test]
fn a_target_of_another_length_is_refused() {
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
