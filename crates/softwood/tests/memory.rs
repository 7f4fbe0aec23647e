//! Memory of a fit besides its table. A test binary of its own, since the peak is measured per
//! process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "it/problems.rs"]
mod problems;

use problems::{fit, normals, uniforms};
use serde_json::json;
use softwood::{Column, Dataset, Family, Key, Roles, Table};

const N_ROWS: usize = 1_000_000;
const N_COLUMNS: usize = 28;

/// A field of `/proc/self/status`, in bytes.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    1024.0 * kilobytes
}

fn dataset() -> Dataset {
    let column = |at: usize| uniforms(Key::from_seed(1).child(at as u64), N_ROWS);
    let mut columns: Vec<Column> = (0..N_COLUMNS)
        .map(|at| Column::numeric(format!("x{at}"), column(at)))
        .collect();
    let noise = normals(Key::from_seed(2), N_ROWS);
    let (a, b) = (column(0), column(1));
    let y = (0..N_ROWS)
        .map(|row| (6.0 * a[row]).sin() + (0.1 + b[row]) * noise[row])
        .collect();
    columns.push(Column::numeric("y", y));
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    let table = Table::new(columns).unwrap();
    Dataset::from_table(&table, &roles).unwrap()
}

#[test]
fn a_fit_needs_little_more_than_its_bins_and_gradients() {
    let data = dataset();
    // resets the peak
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    // few trees are enough: trees of depth 6 are small next to the rows
    let params = json!({
        "n_estimators": 10, "n_members": 1, "learning_rate": 0.1, "max_depth": 6,
    });
    fit(Family::Sglb, &params, &data, 0);
    let extra = status("VmHWM") - before;
    // one byte per cell; two gradients and two hessians per row in single precision
    let needed = (N_ROWS * (N_COLUMNS + 4 * 4)) as f64;
    assert!(
        extra <= 2.5 * needed,
        "{:.0} MB besides the table, {:.2} times bins and gradients",
        extra / 1e6,
        extra / needed
    );
}
