//! Memory of a fit beyond the table it is given. A process of its own: the peak of one process is one number.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

#[path = "it/problems.rs"]
mod problems;

use problems::{fit, normals, uniforms};
use serde_json::json;
use softwood::{Column, Dataset, Family, Key, Roles, Table};

const N_ROWS: usize = 1_000_000;
const N_COLUMNS: usize = 28;

/// A line of the kernel's account of this process, in bytes.
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
    Dataset::from_table(&Table::new(columns).unwrap(), &roles).unwrap()
}

#[test]
fn a_fit_needs_little_more_than_its_bins_and_gradients() {
    let data = dataset();
    // the peak from here on
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    // memory does not grow with trees: those of depth 6 are small
    let params = json!({
        "n_estimators": 10, "n_members": 1, "learning_rate": 0.1, "max_depth": 6,
    });
    fit(Family::Sglb, &params, &data, 0);
    let beyond = status("VmHWM") - before;
    // one byte a cell; two gradients and two curvatures a row in single precision
    let needed = (N_ROWS * (N_COLUMNS + 4 * 4)) as f64;
    assert!(
        beyond <= 2.5 * needed,
        "{:.0} MB beyond the table, {:.2} times bins and gradients",
        beyond / 1e6,
        beyond / needed
    );
}
