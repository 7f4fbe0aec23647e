//! The Gaussian process: moments and joint distribution are exact, members are functions, and a sparse
//! process with many inducing points is the exact one.

use crate::problems::{fit, mixed, normals, numbers, replaced, with_target};
use serde_json::{Value, json};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Table};

/// A sine with a gap and noise of 0.1.
fn sine(n: usize) -> Table {
    let noise = normals(Key::from_seed(2), n);
    let x: Vec<f64> = (0..n)
        .map(|row| 8.0 * row as f64 / n as f64 + if 2 * row < n { 0.0 } else { 3.0 })
        .collect();
    let y = (0..n).map(|row| x[row].sin() + 0.1 * noise[row]).collect();
    Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
}

fn data(table: &Table) -> Dataset {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

fn process(table: &Table, params: &Value) -> Box<dyn Model> {
    fit(Family::Gp, params, &data(table), 3)
}

/// The exact and the sparse process.
fn both() -> [Value; 2] {
    [json!({}), json!({"n_inducing": 12, "n_epochs": 2})]
}

#[test]
fn the_moments_of_the_members_are_those_of_the_joint_distribution() {
    let rows = Table::new(vec![Column::numeric(
        "x",
        (0..40).map(|row| f64::from(row) / 3.0 - 1.0).collect(),
    )])
    .unwrap();
    let pool = Pool::new(1).unwrap();
    for params in both() {
        for n_members in [2, 7, 32] {
            let mut params = params.clone();
            params["n_members"] = json!(n_members);
            let model = process(&sine(60), &params);
            let dist = Distribution::new(&*model, &rows, &pool).unwrap();
            let joint = dist.joint().unwrap().unwrap();
            let (mean, knowledge) = (dist.mean().unwrap(), dist.uncertainty().unwrap().knowledge);
            for row in 0..40 {
                assert!((mean[row] - joint.mean[row]).abs() < 1e-9);
                let variance = joint.covariance[row * 41];
                let error = (knowledge[row] - variance).abs();
                assert!(error < 1e-6 * (1e-3 + variance), "{row}: {error}");
            }
        }
    }
}

#[test]
fn joint_covariances_are_symmetric_and_near_rows_are_correlated() {
    let model = process(&sine(60), &json!({}));
    let x = vec![5.0, 5.01, 30.0];
    let rows = Table::new(vec![Column::numeric("x", x)]).unwrap();
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    let c = dist.joint().unwrap().unwrap().covariance;
    let correlation = |a: usize, b: usize| c[3 * a + b] / (c[4 * a] * c[4 * b]).sqrt();
    assert!(correlation(0, 1) > 0.999, "{}", correlation(0, 1));
    assert!(correlation(0, 2).abs() < 0.2, "{}", correlation(0, 2));
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        assert_eq!(c[3 * a + b].to_bits(), c[3 * b + a].to_bits());
    }
}

#[test]
fn members_are_smooth_functions_that_differ_where_there_are_no_rows() {
    for params in both() {
        let model = process(&sine(60), &params);
        let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 20.0).collect();
        let rows = Table::new(vec![Column::numeric("x", x)]).unwrap();
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &rows, &pool).unwrap();
        let members = dist.members().unwrap();
        let n = model.n_members();
        // rows x members or members x rows: neighbours of one member differ little
        let of = |row: usize, member: usize| members[row * n + member];
        for member in 0..n {
            let steps = (1..200).map(|row| (of(row, member) - of(row - 1, member)).abs());
            let largest = steps.fold(0.0, f64::max);
            assert!(largest < 0.3, "member {member}: {largest}");
        }
        let parts = dist.uncertainty().unwrap();
        // inside the gap and inside the data
        assert!(parts.knowledge[110] > 5.0 * parts.knowledge[40]);
    }
}

#[test]
fn a_sparse_process_with_all_rows_as_inducing_points_is_the_exact_one() {
    let table = sine(50);
    let fixed = json!({"length_scale": 0.5, "signal_scale": 1.0, "noise_scale": 0.2});
    let mut sparse = fixed.clone();
    sparse["n_inducing"] = json!(50);
    let pool = Pool::new(1).unwrap();
    let [exact, sparse] = [fixed, sparse].map(|params| {
        let model = process(&table, &params);
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        [dist.mean().unwrap(), dist.uncertainty().unwrap().knowledge].concat()
    });
    for (a, b) in exact.iter().zip(&sparse) {
        assert!((a - b).abs() < 1e-5, "{a} and {b}");
    }
}

#[test]
fn far_from_all_rows_the_prediction_is_the_prior() {
    let table = sine(60);
    let params = json!({"length_scale": 0.5, "signal_scale": 0.8, "noise_scale": 0.3});
    let model = process(&table, &params);
    let rows = Table::new(vec![Column::numeric("x", vec![1e6])]).unwrap();
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    let y = numbers(&table, "y");
    let mean = y.iter().sum::<f64>() / 60.0;
    let sd = (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 60.0).sqrt();
    let parts = dist.uncertainty().unwrap();
    assert!((dist.mean().unwrap()[0] - mean).abs() < 1e-9);
    assert!((parts.knowledge[0] / (0.8 * sd).powi(2) - 1.0).abs() < 1e-9);
    assert!((parts.data[0] / (0.3 * sd).powi(2) - 1.0).abs() < 1e-9);
}

#[test]
fn the_number_of_rows_decides_between_an_exact_and_a_sparse_process() {
    let table = sine(60);
    let chosen = |params: &Value| process(&table, params).training().chosen.clone();
    assert!(chosen(&json!({})).starts_with("exact"));
    let sparse = chosen(&json!({"max_exact_rows": 59, "n_epochs": 1}));
    assert!(sparse.contains("inducing points"), "{sparse}");
    let few = chosen(&json!({"n_inducing": 9, "n_epochs": 1}));
    assert!(few.starts_with("9 inducing points"), "{few}");
}

/// The noise of 0.2 and the sine of `mixed` are found; an irrelevant column changes little.
#[test]
fn noise_is_estimated_and_irrelevant_columns_are_ignored() {
    let table = mixed(4, 300);
    let pool = Pool::new(1).unwrap();
    let noise = normals(Key::from_seed(8), 300);
    let wider = replaced(&table, Column::numeric("d", noise));
    for table in [&table, &wider] {
        let model = fit(Family::Gp, &json!({}), &with_target(table, "y"), 0);
        let dist = Distribution::new(&*model, table, &pool).unwrap();
        let noise = dist.uncertainty().unwrap().data[0].sqrt();
        assert!((noise - 0.2).abs() < 0.03, "{noise}");
    }
}
