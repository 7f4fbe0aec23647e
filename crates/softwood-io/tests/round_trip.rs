//! A table that is written and read again is unchanged, in every format.
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use std::path::Path;

use proptest::prelude::*;
use softwood::data::Values;
use softwood::{Column, Table};
use softwood_io::{ReadOptions, read_csv, read_table, write_table};

const SUFFIXES: [&str; 9] = [
    "csv", "csv.gz", "tsv", "TSV.GZ", "parquet", "pq", "arrow", "ipc", "feather",
];

fn assert_same(found: &Table, wanted: &Table) {
    assert_eq!(
        found.names().collect::<Vec<_>>(),
        wanted.names().collect::<Vec<_>>()
    );
    for (found, wanted) in found.columns().iter().zip(wanted.columns()) {
        match (&found.values, &wanted.values) {
            (Values::Numeric(found), Values::Numeric(wanted)) => {
                let bits = |values: &[f64]| -> Vec<u64> {
                    let missing = f64::NAN.to_bits();
                    let bits = |v: &f64| if v.is_nan() { missing } else { v.to_bits() };
                    values.iter().map(bits).collect()
                };
                assert_eq!(bits(found), bits(wanted));
            }
            (found, wanted) => assert_eq!(found, wanted),
        }
    }
}

fn write_and_read(table: &Table, suffix: &str) -> Table {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("table.{suffix}"));
    write_table(&path, table).unwrap();
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "no temporary file may remain");
    read_table(&path, &ReadOptions::default()).unwrap()
}

fn mixed(n_rows: usize) -> Table {
    let numbers = (0..n_rows).map(|n| if n % 7 == 3 { f64::NAN } else { n as f64 / 3.0 });
    let texts: Vec<Option<String>> = (0..n_rows)
        .map(|n| (n % 5 != 1).then(|| format!("väg, \"{}\"\n\t", n % 11)))
        .collect();
    let columns = vec![
        Column::numeric("a number", numbers.collect()),
        Column::categorical("ort, \"name\"", &texts),
        Column::numeric("nothing", vec![f64::NAN; n_rows]),
    ];
    Table::new(columns).unwrap()
}

#[test]
fn every_suffix_round_trips() {
    let table = mixed(100);
    for suffix in SUFFIXES {
        assert_same(&write_and_read(&table, suffix), &table);
    }
}

#[test]
fn tables_of_more_than_one_batch_round_trip() {
    let table = mixed(70_000);
    for suffix in ["csv", "parquet", "arrow"] {
        assert_same(&write_and_read(&table, suffix), &table);
    }
}

#[test]
fn one_column_with_missing_cells_round_trips() {
    let table = Table::new(vec![Column::numeric("a", vec![f64::NAN, 1.0, f64::NAN])]).unwrap();
    for suffix in SUFFIXES {
        assert_same(&write_and_read(&table, suffix), &table);
    }
}

#[test]
fn an_existing_file_is_replaced_and_a_symbolic_link_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    write_table(&path, &mixed(50)).unwrap();
    write_table(&path, &mixed(3)).unwrap();
    let options = ReadOptions::default();
    assert_eq!(read_table(&path, &options).unwrap().n_rows(), 3);
    #[cfg(unix)]
    {
        let link = folder.path().join("link.csv");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_table(&link, &mixed(4)).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(read_table(&path, &options).unwrap().n_rows(), 4);
    }
}

#[cfg(unix)]
#[test]
fn a_new_file_has_default_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours.csv", "theirs.csv"].map(|name| folder.path().join(name));
    write_table(&ours, &mixed(2)).unwrap();
    std::fs::write(&theirs, "").unwrap();
    let permissions = |path: &Path| path.metadata().unwrap().permissions();
    assert_eq!(permissions(&ours), permissions(&theirs));
}

#[test]
fn byte_order_marks_line_ends_delimiters_and_blanks_are_accepted() {
    let wanted = Table::new(vec![
        Column::numeric("a", vec![1.0, f64::NAN]),
        Column::categorical("b", &[Some("x"), Some("y z")]),
    ])
    .unwrap();
    for (text, delimiter) in [
        ("a,b\n1,x\n,y z\n", None),
        ("\u{feff}a,b\r\n1,x\r\nNA,y z", None),
        ("\u{feff}\"a\",\"b\"\n\"1\",\"x\"\n\n?,y z\n", None),
        ("a;b\n1;x\n;y z\n", Some(b';')),
        ("a|b\n 1.0 |x\n null |y z\n", Some(b'|')),
    ] {
        let options = ReadOptions {
            delimiter,
            ..ReadOptions::default()
        };
        assert_same(&read_csv(text.as_bytes(), &options).unwrap(), &wanted);
    }
}

#[test]
fn gzip_is_recognised_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [compressed, plain] = ["a.csv.gz", "a.csv"].map(|name| folder.path().join(name));
    write_table(&compressed, &mixed(20)).unwrap();
    std::fs::rename(&compressed, &plain).unwrap();
    assert_same(
        &read_table(&plain, &ReadOptions::default()).unwrap(),
        &mixed(20),
    );
}

#[test]
fn booleans_in_text_are_lower_case_categories() {
    let text = "a,b\nTRUE,1\nfalse,2\n,3\nTrue,4\n";
    let table = read_csv(text.as_bytes(), &ReadOptions::default()).unwrap();
    let wanted = [Some("true"), Some("false"), None, Some("true")];
    assert_eq!(table.columns()[0], Column::categorical("a", &wanted));
}

fn cell() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO,
        1 => Just(f64::NAN),
        2 => (-1000i32..1000).prop_map(f64::from),
    ]
}

/// Texts that are not numbers, booleans or missing-value tokens.
fn text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("w[ -~äß\n\r\t\"',;]{0,8}")
}

fn table() -> impl Strategy<Value = Table> {
    (1usize..30).prop_flat_map(|n_rows| {
        let numbers = proptest::collection::vec(cell(), n_rows);
        let texts = proptest::collection::vec(text(), n_rows - 1);
        (numbers, texts).prop_map(|(numbers, mut texts)| {
            texts.push(Some("w".to_owned()));
            let columns = vec![
                Column::categorical("texts", &texts),
                Column::numeric("numbers", numbers),
            ];
            Table::new(columns).expect("finite numbers and two names")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_table_round_trips(table in table()) {
        for suffix in ["csv", "tsv.gz", "parquet", "arrow"] {
            assert_same(&write_and_read(&table, suffix), &table);
        }
    }

    #[test]
    fn any_text_gives_a_table_or_an_error(text in "[ -~\n\r,\"äNA1.e]{0,200}") {
        let _ = read_csv(text.as_bytes(), &ReadOptions::default());
    }

    #[test]
    fn any_bytes_give_a_table_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_csv(&bytes, &ReadOptions::default());
    }
}
