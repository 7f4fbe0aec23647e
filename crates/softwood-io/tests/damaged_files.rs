//! Damaged Parquet and Arrow bytes end in a table or an error, never in a panic.
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use softwood::{Column, Table};
use softwood_io::{ReadOptions, read_table, write_table};

/// Bytes of an undamaged file.
fn undamaged(folder: &Path, name: &str) -> Vec<u8> {
    let texts: Vec<Option<String>> = (0..50)
        .map(|n| (n % 4 > 0).then(|| format!("t{}", n % 7)))
        .collect();
    let columns = vec![
        Column::numeric("a", (0..50).map(|n| f64::from(n) * 0.1).collect()),
        Column::categorical("b", &texts),
    ];
    let path = folder.join(name);
    write_table(&path, &Table::new(columns).unwrap()).unwrap();
    fs::read(path).unwrap()
}

/// Reads the bytes; the result does not matter, only that reading does not panic.
fn read_damaged(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    let _ = read_table(&path, &ReadOptions::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_do_not_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), more in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.arrow", "a.csv.gz"] {
            let mut bytes = undamaged(folder.path(), name);
            let (at, more) = (at.index(bytes.len()), more.index(bytes.len()));
            bytes[at] = byte;
            read_damaged(folder.path(), name, &bytes);
            bytes[more] ^= 0x80;
            read_damaged(folder.path(), name, &bytes);
        }
    }

    #[test]
    fn truncated_files_do_not_panic(at in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.arrow"] {
            let bytes = undamaged(folder.path(), name);
            let cut = &bytes[..at.index(bytes.len())];
            read_damaged(folder.path(), name, cut);
            let with_footer = [cut, &bytes[bytes.len() - 10..]].concat();
            read_damaged(folder.path(), name, &with_footer);
        }
    }
}
