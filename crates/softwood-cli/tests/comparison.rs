//! Compares short fits with ridge regression on real data sets. Needs the directory of data sets in
//! the environment variable `SOFTWOOD_DATA`; skipped if it is not set.
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use std::path::Path;

use serde_json::json;
use softwood::data::{Target, Values};
use softwood::evaluate::score;
use softwood::{Dataset, Distribution, Family, Key, Pool, Roles, Run};
use softwood_io::{ReadOptions, read_table};

/// Data sets, and the margin in nats by which the mean log-likelihood of a short fit must exceed
/// that of ridge regression: about half of the margin when this test was written.
const MARGINS: [(&str, f64); 3] = [("yacht", 1.6), ("energy", 0.65), ("boston", 0.27)];

#[test]
fn a_short_fit_beats_ridge_regression() {
    let Some(folder) = std::env::var_os("SOFTWOOD_DATA") else {
        eprintln!("skipped: SOFTWOOD_DATA is not set");
        return;
    };
    for (name, margin) in MARGINS {
        let path = Path::new(&folder)
            .join("gal")
            .join(format!("{name}.parquet"));
        let table = read_table(&path, &ReadOptions::default()).unwrap();
        let roles = Roles {
            target: "target".to_owned(),
            ..Roles::default()
        };
        let data = Dataset::from_table(&table, &roles).unwrap();
        // every fifth row is a test row
        let (test, train): (Vec<usize>, Vec<usize>) =
            (0..data.n_rows()).partition(|row| row % 5 == 0);
        let (train, test) = (data.take(&train), data.take(&test));
        let (vst, ridge) = (vst(&train, &test), best_ridge(&train, &test));
        eprintln!("{name}: vst {vst:.3}, ridge {ridge:.3}");
        assert!(vst > ridge + margin, "{name}: vst {vst}, ridge {ridge}");
    }
}

/// Mean log-likelihood of the test rows under one short fit with fixed parameters.
fn vst(train: &Dataset, test: &Dataset) -> f64 {
    let params = json!({"max_depth": 3, "leaf_mixing": "blend", "scaling": "standard", "rotation": "none",
                        "n_epochs": 200, "n_fits": 1, "n_members": 50});
    let pool = Pool::new(2).unwrap();
    let run = Run::new(Key::from_seed(0), &pool);
    let model = Family::Vst
        .params_from_json(&params.to_string())
        .unwrap()
        .fit_with(train, &run)
        .unwrap();
    let predictive = Distribution::new(model.as_ref(), test.features(), &pool).unwrap();
    score(&predictive, test.target(), None).unwrap().values["log_likelihood"]
}

/// Mean log-likelihood of the test rows under ridge regression with the penalty that is best on the
/// test rows, an upper bound for any choice of the penalty.
fn best_ridge(train: &Dataset, test: &Dataset) -> f64 {
    let penalties = [1e-3, 1e-1, 1.0, 10.0, 100.0];
    let fits = penalties.map(|penalty| ridge(train, test, penalty));
    fits.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

fn ridge(train: &Dataset, test: &Dataset, penalty: f64) -> f64 {
    let (inputs, y) = (design(train, train), target(train));
    let width = inputs[0].len();
    let mut gram = vec![vec![0.0; width + 1]; width];
    for (input, y) in inputs.iter().zip(&y) {
        for (row, a) in gram.iter_mut().zip(input) {
            for (cell, b) in row.iter_mut().zip(input.iter().chain([y])) {
                *cell += a * b;
            }
        }
    }
    for at in 1..width {
        gram[at][at] += penalty;
    }
    let weights = solve(gram);
    let predict =
        |input: &Vec<f64>| -> f64 { input.iter().zip(&weights).map(|(x, w)| x * w).sum() };
    let squares = |inputs: &[Vec<f64>], y: &[f64]| -> f64 {
        let errors = inputs.iter().zip(y).map(|(x, y)| (y - predict(x)).powi(2));
        errors.sum::<f64>() / y.len() as f64
    };
    let variance = squares(&inputs, &y);
    let error = squares(&design(test, train), &target(test));
    -0.5 * ((std::f64::consts::TAU * variance).ln() + error / variance)
}

/// The design matrix: an intercept and the features, standardised by `train`.
fn design(data: &Dataset, train: &Dataset) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0]; data.n_rows()];
    for (column, reference) in data
        .features()
        .columns()
        .iter()
        .zip(train.features().columns())
    {
        let (Values::Numeric(values), Values::Numeric(reference)) =
            (&column.values, &reference.values)
        else {
            panic!("the sets are numeric")
        };
        let n = reference.len() as f64;
        let mean = reference.iter().sum::<f64>() / n;
        let variance = reference
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / n;
        for (row, value) in rows.iter_mut().zip(values) {
            row.push((value - mean) / variance.sqrt().max(1e-12));
        }
    }
    rows
}

fn target(data: &Dataset) -> Vec<f64> {
    match data.target() {
        Target::Numeric(y) => y.clone(),
        _ => panic!("the targets are numeric"),
    }
}

/// Solves a linear system by Gaussian elimination with partial pivoting; each row holds the
/// coefficients and the right-hand side.
fn solve(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    let n = system.len();
    for at in 0..n {
        let pivot = (at..n)
            .max_by(|&a, &b| system[a][at].abs().total_cmp(&system[b][at].abs()))
            .unwrap();
        system.swap(at, pivot);
        for row in 0..n {
            if row != at {
                let factor = system[row][at] / system[at][at];
                for column in at..=n {
                    system[row][column] -= factor * system[at][column];
                }
            }
        }
    }
    (0..n).map(|at| system[at][n] / system[at][at]).collect()
}
