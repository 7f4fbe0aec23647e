//! Tests of the program as a process: its output, exit codes and files.

#![allow(clippy::unwrap_used)] // helper functions of tests may panic

mod bad_input;
mod bad_model;
mod bandit;
mod causal;
mod commands;
mod demo;
mod explain;
mod folder;
mod help;
mod interrupt;
mod mistakes;
mod ood;
mod reproduce;
mod resume;
mod special_files;
mod tables;
mod time_limit;

use folder::{Folder, QUICK};

/// A regression table of `n` rows: `y` depends on `a` and on the category `colour`.
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

/// A classification table of `n` rows: `kind` depends on `a`.
fn classification(n: usize) -> String {
    let row = |at: usize| {
        let a = (at * 37 % 101) as f64 / 10.0;
        format!("{a},{},{}\n", at % 7, if a > 5.0 { "high" } else { "low" })
    };
    "a,b,kind\n".to_owned() + &(0..n).map(row).collect::<String>()
}

/// A folder with the table `data.csv` and a model fitted to it.
fn fitted(table: &str, target: &str) -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", table);
    let mut args = vec!["fit", "data.csv", "--target", target, "--quiet"];
    args.extend(QUICK);
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    folder
}
