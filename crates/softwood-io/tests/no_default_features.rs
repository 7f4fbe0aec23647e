//! A build without Parquet and Arrow IPC rejects such files with a message that names the feature.
//! Run with `cargo test -p softwood-io --no-default-features`.
#![cfg(not(any(feature = "parquet", feature = "ipc")))]
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use softwood_io::{ReadOptions, read_csv, read_table, write_table};

#[test]
fn unsupported_formats_are_rejected_with_the_name_of_their_feature() {
    let table = read_csv(b"a\n1\n", &ReadOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, feature) in [
        ("a.parquet", "parquet"),
        ("a.pq", "parquet"),
        ("a.feather", "ipc"),
        ("a.arrow", "ipc"),
    ] {
        let path = folder.path().join(name);
        let read = read_table(&path, &ReadOptions::default()).unwrap_err();
        let written = write_table(&path, &table).unwrap_err();
        for message in [read.to_string(), written.to_string()] {
            let wanted = format!("feature `{feature}`");
            assert!(
                message.contains(name) && message.contains(&wanted),
                "{message}"
            );
        }
        assert!(!path.exists());
    }
    let path = folder.path().join("a.csv");
    write_table(&path, &table).unwrap();
    assert_eq!(read_table(&path, &ReadOptions::default()).unwrap(), table);
}
