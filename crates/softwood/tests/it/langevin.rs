//! Langevin chains against known posteriors: one leaf, two leaves, truncated chains, and a hole in
//! the data.

use crate::problems::{fit, normals, uniforms};
use serde_json::{Value, json};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Table};

fn data(columns: Vec<Column>) -> Dataset {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
}

/// Means of the members, members x rows.
fn member_means(model: &dyn Model, rows: &Table) -> Vec<Vec<f64>> {
    let pool = Pool::new(2).unwrap();
    let n = model.n_members();
    let distribution = Distribution::new(model, rows, &pool).unwrap();
    let means = distribution
        .ask(n, |block, rows, out| {
            for (at, out) in out.chunks_exact_mut(n).enumerate().take(rows.len()) {
                for (member, out) in out.iter_mut().enumerate() {
                    *out =
                        block.shift + block.scale * block.normal().mean[block.at(member, 0) + at];
                }
            }
        })
        .unwrap();
    let of_member = |member: usize| means.iter().skip(member).step_by(n).copied().collect();
    (0..n).map(of_member).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (mean, squares.sum::<f64>() / (n - 1.0))
}

/// Tolerance of the relative error of a sample variance of 1000 Normal numbers, with a failure
/// probability below 1e-6: its relative standard deviation is 4.5%, and its upper tail is slightly
/// heavier than Normal.
const VARIANCE_TOLERANCE: f64 = 0.24;

fn chains(params: &[(&str, Value)]) -> Value {
    let mut all = json!({
        "n_members": 1000, "n_estimators": 300, "learning_rate": 0.05, "noise": "constant", "l2_regularization": 0.0, "subsample": 1.0,
    });
    for (name, value) in params {
        all[*name] = value.clone();
    }
    all
}

#[test]
fn one_leaf_has_the_exact_posterior_variance_and_equation_11_has_it_divided_by_n() {
    let n = 100;
    let y = normals(Key::from_seed(1), n);
    let (mean, variance) = mean_and_variance(&y);
    let variance = variance * (n as f64 - 1.0) / n as f64;
    let table = data(vec![
        Column::numeric("x", uniforms(Key::from_seed(2), n)),
        Column::numeric("y", y),
    ]);
    let row = Table::new(vec![Column::numeric("x", vec![0.5])]).unwrap();
    for (mode, expected) in [("posterior", variance / 100.0), ("malinin", variance / 1e4)] {
        let params = chains(&[("max_depth", json!(0)), ("langevin_noise", json!(mode))]);
        let model = fit(Family::Sglb, &params, &table, 0);
        let means: Vec<f64> = member_means(&*model, &row)
            .iter()
            .map(|member| member[0])
            .collect();
        let (found_mean, found) = mean_and_variance(&means);
        assert!(
            (found / expected - 1.0).abs() < VARIANCE_TOLERANCE,
            "{mode}: {found} for {expected}"
        );
        assert!(
            (found_mean - mean).abs() < 5.0 * (expected / 1000.0).sqrt() + 1e-3 * variance.sqrt()
        );
    }
}

#[test]
fn leaves_of_a_fixed_tree_have_the_posterior_variance_of_their_means() {
    let (small, large) = (30, 90);
    let noise = normals(Key::from_seed(3), small + large);
    let x: Vec<f64> = (0..small + large)
        .map(|row| f64::from(row >= small))
        .collect();
    let y: Vec<f64> = x
        .iter()
        .zip(&noise)
        .map(|(x, noise)| 2.0 * x + noise)
        .collect();
    let (low_mean, low) = mean_and_variance(&y[..small]);
    let (high_mean, high) = mean_and_variance(&y[small..]);
    let residual =
        (low * (small as f64 - 1.0) + high * (large as f64 - 1.0)) / (small + large) as f64;
    let table = data(vec![Column::numeric("x", x), Column::numeric("y", y)]);
    let model = fit(Family::Sglb, &chains(&[("max_depth", json!(1))]), &table, 0);
    let rows = Table::new(vec![Column::numeric("x", vec![0.0, 1.0])]).unwrap();
    let means = member_means(&*model, &rows);
    for (at, mean, n) in [(0, low_mean, small), (1, high_mean, large)] {
        let values: Vec<f64> = means.iter().map(|member| member[at]).collect();
        let (found_mean, found) = mean_and_variance(&values);
        let expected = residual / n as f64;
        // the noise depends on the residual variance of the chain, which varies and adds some
        // variance
        assert!(
            (found / expected - 1.0).abs() < VARIANCE_TOLERANCE + 0.05,
            "{found} for {expected}"
        );
        assert!(
            (found_mean - mean).abs() < 0.25 * expected.sqrt(),
            "{found_mean} for {mean}"
        );
    }
}

#[test]
fn virtual_members_are_truncated_chains() {
    let n = 300;
    let x = uniforms(Key::from_seed(4), n);
    let noise = normals(Key::from_seed(5), n);
    let y = x
        .iter()
        .zip(&noise)
        .map(|(x, noise)| (6.0 * x).sin() + 0.2 * noise)
        .collect();
    let table = data(vec![
        Column::numeric("x", x.clone()),
        Column::numeric("y", y),
    ]);
    let rows = Table::new(vec![Column::numeric("x", x)]).unwrap();
    let params = |n_trees: usize, n_members: usize| json!({"n_estimators": n_trees, "learning_rate": 0.1, "max_depth": 3, "virtual_ensemble": true, "n_members": n_members});
    let chain = member_means(&*fit(Family::Sglb, &params(200, 5), &table, 7), &rows);
    for (member, n_trees) in [120, 140, 160, 180, 200].into_iter().enumerate() {
        let truncated = member_means(&*fit(Family::Sglb, &params(n_trees, 1), &table, 7), &rows);
        for (virtual_mean, mean) in chain[member].iter().zip(&truncated[0]) {
            assert!(
                (virtual_mean - mean).abs() < 1e-6,
                "{virtual_mean} for {mean}"
            );
        }
    }
}

/// A heart of 17 cells in a 9 x 9 grid of two categorical columns; the training rows have no cell
/// of it.
fn is_in_heart(row: usize, column: usize) -> bool {
    const HEART: [&str; 9] = [
        ".........",
        ".........",
        "..##.##..",
        ".#######.",
        "..#####..",
        "....#....",
        ".........",
        ".........",
        ".........",
    ];
    HEART[row].as_bytes()[column] == b'#'
}

#[test]
fn knowledge_uncertainty_is_large_in_a_hole_of_the_data() {
    let key = Key::from_seed(6);
    let means = uniforms(key.child(0), 81);
    let name = |at: usize| Some(format!("c{at}"));
    let (mut a, mut b, mut y) = (Vec::new(), Vec::new(), Vec::new());
    for cell in 0..81 {
        let (row, column) = (cell / 9, cell % 9);
        if is_in_heart(row, column) {
            continue;
        }
        let noise = normals(key.child(1 + cell as u64), 200);
        let sd = if (row + column) % 2 == 0 { 0.1 } else { 0.2 };
        for noise in noise {
            a.push(name(row));
            b.push(name(column));
            y.push(means[cell] + sd * noise);
        }
    }
    let table = data(vec![
        Column::categorical("a", &a),
        Column::categorical("b", &b),
        Column::numeric("y", y),
    ]);
    let params = json!({"learning_rate": 0.3, "max_depth": 6, "n_estimators": 300});
    let model = fit(Family::Sglb, &params, &table, 0);
    let cells = |inside: bool| {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for cell in (0..81).filter(|cell| is_in_heart(cell / 9, cell % 9) == inside) {
            a.push(name(cell / 9));
            b.push(name(cell % 9));
        }
        Table::new(vec![
            Column::categorical("a", &a),
            Column::categorical("b", &b),
        ])
        .unwrap()
    };
    let pool = Pool::new(2).unwrap();
    let knowledge = |inside: bool| {
        let parts = Distribution::new(&*model, &cells(inside), &pool)
            .unwrap()
            .uncertainty()
            .unwrap();
        parts.knowledge.iter().sum::<f64>() / parts.knowledge.len() as f64
    };
    let (inside, outside) = (knowledge(true), knowledge(false));
    assert!(
        inside > 10.0 * outside,
        "{inside} inside, {outside} outside"
    );
}
