//! The program from outside: what it prints, where, its exit codes, and the files it leaves.

#![allow(clippy::unwrap_used)] // a test that fails may panic

mod bad_input;
mod bad_model;
mod demo;
mod explain;
mod fold;
mod help;
mod interrupt;
mod mistakes;
mod ood;
mod resume;
mod tour;

use fold::{Folder, QUICK};

/// Rows of a regression: `y` follows `a`, with a category beside it. `n` rows with a header.
fn regression(n: usize) -> String {
    let row = |at: usize| {
        let a = (at * 37 % 101) as f64 / 10.0;
        let noise = (at * 61 % 17) as f64 / 17.0 - 0.5;
        format!(
            "{a},{},{}\n",
            ["red", "green", "blue"][at % 3],
            2.0 * a + noise + (at % 3) as f64
        )
    };
    "a,colour,y\n".to_owned() + &(0..n).map(row).collect::<String>()
}

/// Rows of a classification: `kind` follows `a`.
fn classification(n: usize) -> String {
    let row = |at: usize| {
        let a = (at * 37 % 101) as f64 / 10.0;
        format!("{a},{},{}\n", at % 7, if a > 5.0 { "high" } else { "low" })
    };
    "a,b,kind\n".to_owned() + &(0..n).map(row).collect::<String>()
}

/// A folder with a table and a model of it.
fn fitted(table: &str, target: &str) -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", table);
    let mut args = vec!["fit", "data.csv", "--target", target, "--quiet"];
    args.extend(QUICK);
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    folder
}
