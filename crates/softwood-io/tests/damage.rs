//! Damaged Parquet and Arrow bytes end in a table or an error, never in a panic.
#![allow(clippy::unwrap_used)] // what only helps tests may fail as tests do

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use softwood::{Column, Table};
use softwood_io::{ReadOptions, read_table, write_table};

fn sound(folder: &Path, name: &str) -> Vec<u8> {
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

fn survives(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    let _ = read_table(&path, &ReadOptions::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_do_no_harm(at in any::<prop::sample::Index>(), byte in any::<u8>(), more in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.arrow", "a.csv.gz"] {
            let mut bytes = sound(folder.path(), name);
            let (at, more) = (at.index(bytes.len()), more.index(bytes.len()));
            bytes[at] = byte;
            survives(folder.path(), name, &bytes);
            bytes[more] ^= 0x80;
            survives(folder.path(), name, &bytes);
        }
    }

    #[test]
    fn cut_files_do_no_harm(at in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.arrow"] {
            let bytes = sound(folder.path(), name);
            let cut = &bytes[..at.index(bytes.len())];
            survives(folder.path(), name, cut);
            let ended = [cut, &bytes[bytes.len() - 10..]].concat();
            survives(folder.path(), name, &ended);
        }
    }
}
