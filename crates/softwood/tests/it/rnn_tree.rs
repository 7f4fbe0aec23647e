//! Behaviour of the RNN-Tree: problems that a greedy tree cannot solve, and files of odd fits.

use serde_json::json;
use softwood::{Column, Dataset, Distribution, Family, Key, Pool, Roles, Table, from_bytes};

use crate::problems::{fit, mixed, normals, prediction_bits, targets_of, uniforms, with_target};

fn dataset(columns: Vec<Column>) -> Dataset {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
}

/// Eight levels on the unit cells between -4 and 4.
#[test]
fn the_eight_levels_of_a_pulse_are_found_at_depth_three() {
    let levels = [1.0, 4.0, 2.5, 5.0, 1.5, 3.5, 0.5, 2.5];
    let x: Vec<f64> = (0..400)
        .map(|row| -4.0 + 8.0 * f64::from(row) / 399.0)
        .collect();
    let level = |x: &f64| levels[((x + 4.0) as usize).min(7)];
    let y: Vec<f64> = x.iter().map(level).collect();
    let rows = Table::new(vec![Column::numeric("x", x.clone())]).unwrap();
    let data = dataset(vec![
        Column::numeric("x", x),
        Column::numeric("y", y.clone()),
    ]);
    let pool = Pool::new(2).unwrap();
    let params = json!({"max_depth": 3, "n_trees": 1, "n_steps": 100, "n_restarts": 2});
    let model = fit(Family::RnnTree, &params, &data, 0);
    let mean = Distribution::new(&*model, &rows, &pool)
        .unwrap()
        .mean()
        .unwrap();
    let square = |(mean, y): (&f64, &f64)| (mean - y).powi(2);
    let error: f64 = mean.iter().zip(&y).map(square).sum::<f64>() / 400.0;
    assert!(error < 0.01, "{error}");
}

/// The parity of six noisy bits, of which independent leaves learn little.
#[test]
fn parity_of_noisy_bits_is_learned() {
    let (n, n_bits) = (1500, 6);
    let key = Key::from_seed(4);
    let bits: Vec<Vec<f64>> = (0..n_bits)
        .map(|bit| {
            uniforms(key.child(bit), n)
                .iter()
                .map(|u| u.round())
                .collect()
        })
        .collect();
    let parity = |row: usize| bits.iter().map(|bit| bit[row]).sum::<f64>() % 2.0;
    let label = |is_odd: bool| Some(if is_odd { "odd" } else { "even" });
    let labels: Vec<_> = (0..n).map(|row| label(parity(row) > 0.5)).collect();
    let mut columns: Vec<Column> = Vec::new();
    for (bit, values) in bits.iter().enumerate() {
        let noise = normals(key.child(100 + bit as u64), n);
        let noisy = values.iter().zip(noise).map(|(bit, z)| bit + 0.35 * z);
        columns.push(Column::numeric(format!("b{bit}"), noisy.collect()));
    }
    columns.push(Column::categorical("y", &labels));
    let params = json!({"max_depth": 6, "n_steps": 50, "n_restarts": 2});
    let model = fit(Family::RnnTree, &params, &dataset(columns), 0);
    let clean = |bit: usize| (0..64_u32).map(|row| f64::from(row >> bit & 1)).collect();
    let patterns = (0..6).map(|bit| Column::numeric(format!("b{bit}"), clean(bit)));
    let patterns = Table::new(patterns.collect()).unwrap();
    let pool = Pool::new(2).unwrap();
    let found = Distribution::new(&*model, &patterns, &pool)
        .unwrap()
        .labels()
        .unwrap();
    let right = found.iter().zip(0..64_u32);
    let n_right = right
        .filter(|(found, row)| **found == row.count_ones() % 2)
        .count();
    assert!(n_right >= 63, "{n_right} of 64");
}

/// Short fits of many shapes leave odd trees; all of them are read back.
#[test]
fn models_of_short_fits_can_be_read_from_their_bytes() {
    for seed in 0..24 {
        let n_rows = 40 + 15 * (seed as usize % 8);
        let table = mixed(seed, n_rows);
        for target in targets_of(Family::RnnTree) {
            let params = json!({
                "n_steps": 10, "n_restarts": 4, "n_hidden": 4, "max_depth": 3 + seed % 4,
                "posterior": if seed % 3 == 0 { None } else { Some(seed % 3 == 1) },
            });
            let model = fit(Family::RnnTree, &params, &with_target(&table, target), seed);
            let read = from_bytes(&model.to_bytes()).unwrap();
            assert!(prediction_bits(&*read, &table) == prediction_bits(&*model, &table));
        }
    }
}
