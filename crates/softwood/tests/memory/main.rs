//! Memory of a fit besides its table, and of writing a model. A test binary of its own, because it counts all that the
//! process allocates.

#![allow(clippy::unwrap_used)]

mod allocator;
#[path = "../it/problems.rs"]
mod problems;

use problems::{fit, normals, uniforms};
use serde_json::json;
use softwood::{Column, Dataset, Family, Key, Roles, Table, from_bytes};
use std::sync::Mutex;

const N_ROWS: usize = 1_000_000;
const N_COLUMNS: usize = 28;

/// Held by each test, because the peak is that of the process.
static PROCESS: Mutex<()> = Mutex::new(());

/// Rise of the allocated memory at the peak of `work`, in bytes.
fn peak_of<T>(work: impl FnOnce() -> T) -> f64 {
    let before = allocator::start_peak();
    let result = work();
    let peak = allocator::peak() - before;
    drop(result);
    peak as f64
}

fn dataset(n_rows: usize, n_columns: usize) -> Dataset {
    let column = |at: usize| uniforms(Key::from_seed(1).child(at as u64), n_rows);
    let mut columns: Vec<Column> = (0..n_columns)
        .map(|at| Column::numeric(format!("x{at}"), column(at)))
        .collect();
    let noise = normals(Key::from_seed(2), n_rows);
    let (a, b) = (column(0), column(1));
    let y = (0..n_rows)
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
    let _process = PROCESS.lock().unwrap();
    let data = dataset(N_ROWS, N_COLUMNS);
    // few trees are enough: trees of depth 6 are small next to the rows
    let params = json!({
        "n_estimators": 10, "n_members": 1, "learning_rate": 0.1, "max_depth": 6,
    });
    let extra = peak_of(|| fit(Family::Sglb, &params, &data, 0));
    // one byte per cell; two gradients and two hessians per row in single precision
    let needed = (N_ROWS * (N_COLUMNS + 4 * 4)) as f64;
    assert!(
        extra <= 2.5 * needed,
        "{:.0} MB besides the table, {:.2} times bins and gradients",
        extra / 1e6,
        extra / needed
    );
}

#[test]
fn writing_a_model_needs_its_bytes_twice_and_one_more_model() {
    let _process = PROCESS.lock().unwrap();
    let params = json!({"n_estimators": 300, "n_members": 10});
    let model = fit(Family::Forest, &params, &dataset(10_000, 4), 0);
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("model.softwood");
    let bytes = model.to_bytes();
    let reading = peak_of(|| from_bytes(&bytes).unwrap());
    let n_bytes = bytes.len() as f64;
    drop(bytes);
    let writing = peak_of(|| model.save(&path).unwrap());
    assert!(
        writing <= 2.0 * n_bytes + reading,
        "{:.0} MB for a file of {:.0} MB, which is read with {:.0} MB",
        writing / 1e6,
        n_bytes / 1e6,
        reading / 1e6
    );
}
