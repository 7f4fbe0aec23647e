//! Reads every Parquet file below the directory in the environment variable `SOFTWOOD_DATA`;
//! skipped if the variable is not set.
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use std::fs;
use std::path::{Path, PathBuf};

use softwood_io::{ReadOptions, read_table};

fn parquet_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            parquet_files(&path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "parquet") {
            found.push(path);
        }
    }
}

#[test]
fn every_parquet_file_is_read() {
    let Some(folder) = std::env::var_os("SOFTWOOD_DATA") else {
        eprintln!("skipped: SOFTWOOD_DATA is not set");
        return;
    };
    let mut files = Vec::new();
    parquet_files(Path::new(&folder), &mut files);
    assert!(!files.is_empty(), "no Parquet file in {}", folder.display());
    for path in files {
        let table = read_table(&path, &ReadOptions::default()).unwrap();
        assert!(table.n_rows() > 0, "{}", path.display());
        assert!(!table.columns().is_empty(), "{}", path.display());
    }
}
