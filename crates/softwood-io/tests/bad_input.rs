//! Every bad input gets a message that names the file, the position and the remedy.
#![allow(clippy::unwrap_used)] // helper functions of tests may panic

use std::fs;
use std::path::{Path, PathBuf};

use softwood::{Column, Table};
use softwood_io::{ReadOptions, read_csv, read_table, write_table};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Checks that reading `path` fails with a message that begins with the file name and contains all
/// of `parts`.
fn assert_rejected(path: &Path, options: &ReadOptions, parts: &[&str]) {
    let message = read_table(path, options).unwrap_err().to_string();
    assert!(
        message.starts_with(&path.display().to_string()),
        "{message}"
    );
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

fn assert_text_rejected(text: impl AsRef<[u8]>, parts: &[&str]) {
    let folder = Folder::new();
    assert_rejected(&folder.with("a.csv", text), &ReadOptions::default(), parts);
}

fn small() -> Table {
    let city = Column::categorical("city", &[Some("Oslo"), None]);
    Table::new(vec![Column::numeric("age", vec![1.0, 2.0]), city]).unwrap()
}

#[test]
fn absent_files_directories_and_unknown_suffixes() {
    let folder = Folder::new();
    let options = ReadOptions::default();
    for name in ["no.csv", "no.parquet", "no.arrow"] {
        assert_rejected(&folder.path(name), &options, &["no such file"]);
    }
    for name in ["d.csv", "d.parquet", "d.feather"] {
        fs::create_dir(folder.path(name)).unwrap();
        assert_rejected(&folder.path(name), &options, &["is a directory"]);
    }
    assert_rejected(
        &folder.with("a.xlsx", "x"),
        &options,
        &[".csv.gz", ".parquet", ".feather"],
    );
}

#[cfg(unix)]
#[test]
fn files_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.with("a.csv", "a\n1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    assert_rejected(&path, &ReadOptions::default(), &["no permission to read"]);
    fs::set_permissions(folder.0.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let message = write_table(&folder.path("b.csv"), &small()).unwrap_err();
    fs::set_permissions(folder.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(
        message.to_string().contains("no permission to write"),
        "{message}"
    );
}

#[test]
fn empty_files_and_tables_without_rows() {
    let folder = Folder::new();
    let options = ReadOptions::default();
    for name in ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.arrow"] {
        assert_rejected(&folder.with(name, ""), &options, &["the file is empty"]);
    }
    assert_text_rejected("\n\n", &["the file is empty"]);
    assert_text_rejected("a,b\n", &["the table has no rows"]);
    let none = small().take(&[]);
    for name in ["a.csv", "a.parquet", "a.arrow"] {
        let path = folder.path(name);
        write_table(&path, &none).unwrap();
        assert_rejected(&path, &options, &["the table has no rows"]);
    }
}

#[test]
fn ragged_rows() {
    assert_text_rejected(
        "a,b\n1,2\n3\n",
        &["row 2 (line 3) has 1 fields, but the header has 2"],
    );
    assert_text_rejected("a,b\n1,2\n3,4,5\n", &["row 2 (line 3) has 3 fields"]);
    assert_text_rejected(
        "a,b\n\"1,2\n3,4\n",
        &["row 1 (line 2) has 1 fields", "quotes"],
    );
}

#[test]
fn duplicate_and_empty_column_names() {
    assert_text_rejected("a,b,a\n1,2,3\n", &["column `a`", "twice"]);
    assert_text_rejected("a,,c\n1,2,3\n", &["column 2 has no name"]);
}

#[test]
fn text_that_is_not_utf8() {
    assert_text_rejected(
        b"a,b\n1,2\n3,caf\xe9\n",
        &["column `b`, row 2", "line 3", "not UTF-8"],
    );
    assert_text_rejected(
        b"\xff\xfea\x00,\x00",
        &["column 1 is not UTF-8", "save the file as UTF-8"],
    );
}

#[test]
fn infinities_and_text_among_numbers() {
    assert_text_rejected(
        "a,b\n1,2\n3,inf\n",
        &["column `b`, row 2", "not a finite number"],
    );
    let age = |row: usize| match row {
        17 => "old".to_owned(),
        _ => row.to_string(),
    };
    let rows = (1..=40).map(|row| format!("{row},{}\n", age(row)));
    let text = format!("id,age\n{}", rows.collect::<String>());
    assert_text_rejected(
        &text,
        &[
            "column `age`, row 17",
            "`old` (line 18)",
            "--categorical age",
        ],
    );
    let options = ReadOptions {
        categorical: vec!["age".to_owned()],
        ..ReadOptions::default()
    };
    assert!(read_csv(text.as_bytes(), &options).is_ok());
}

#[test]
fn text_in_a_column_declared_numeric() {
    let folder = Folder::new();
    let options = ReadOptions {
        numeric: vec!["city".to_owned()],
        ..ReadOptions::default()
    };
    for name in ["a.csv", "a.parquet", "a.ipc"] {
        let path = folder.path(name);
        write_table(&path, &small()).unwrap();
        assert_rejected(
            &path,
            &options,
            &["column `city`, row 1", "`Oslo`", "not a number"],
        );
    }
}

#[test]
fn ignored_columns_cause_no_error() {
    let row = |row: usize| match row {
        2 => "2,2,-inf\n".to_owned(),
        30 => "30,x,01\n".to_owned(),
        _ => format!("{row},{row},01\n"),
    };
    let text = format!("y,odd,far\n{}", (1..=40).map(row).collect::<String>());
    let named = ReadOptions {
        ignore: vec!["odd".to_owned(), "far".to_owned()],
        ..ReadOptions::default()
    };
    let lenient = ReadOptions {
        numeric: vec!["y".to_owned()],
        lenient: true,
        ..ReadOptions::default()
    };
    for options in [named, lenient] {
        let table = read_csv(text.as_bytes(), &options).unwrap();
        assert_eq!(table.names().collect::<Vec<_>>(), ["y", "odd", "far"]);
        assert_eq!(table.n_rows(), 40);
    }
}

#[test]
fn truncated_files() {
    let folder = Folder::new();
    let rows: Vec<usize> = (0..5000).map(|row| row % 2).collect();
    let table = small().take(&rows);
    for (name, part) in [
        ("a.csv.gz", "truncated"),
        ("a.parquet", "truncated"),
        ("a.arrow", "truncated"),
    ] {
        let path = folder.path(name);
        write_table(&path, &table).unwrap();
        let bytes = fs::read(&path).unwrap();
        for keep in [bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..keep]).unwrap();
            assert_rejected(&path, &ReadOptions::default(), &[part]);
        }
    }
}

#[test]
fn files_that_do_not_have_the_format_of_their_suffix() {
    let folder = Folder::new();
    let options = ReadOptions::default();
    let text = "a,b\n1,2\n3,4\n5,6\n";
    assert_rejected(
        &folder.with("a.parquet", text),
        &options,
        &["not a Parquet file"],
    );
    assert_rejected(
        &folder.with("a.feather", text),
        &options,
        &["not an Arrow IPC file"],
    );
    assert_rejected(&folder.with("a.csv.gz", text), &options, &["not gzip"]);
    assert_rejected(
        &folder.with("b.feather", "FEA1...."),
        &options,
        &["version 1"],
    );
}

#[test]
fn output_paths_that_cannot_be_written() {
    let folder = Folder::new();
    let table = small();
    let write_error = |name: &str| {
        write_table(&folder.path(name), &table)
            .unwrap_err()
            .to_string()
    };
    let message = write_error("no/such/out.csv");
    assert!(
        message.contains("out.csv") && message.contains("does not exist"),
        "{message}"
    );
    fs::create_dir(folder.path("d.parquet")).unwrap();
    assert!(write_error("d.parquet").contains("is a directory"));
    folder.with("file", "");
    assert!(write_error("file/out.csv").contains("file"));
    assert!(write_error("out.txt").contains(".tsv.gz"));
    let mut left: Vec<_> = fs::read_dir(folder.0.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["d.parquet", "file"], "no partial file may remain");
}

#[test]
fn impossible_delimiters() {
    let options = ReadOptions {
        delimiter: Some(b'\n'),
        ..ReadOptions::default()
    };
    let message = read_csv(b"a\n1\n", &options).unwrap_err().to_string();
    assert!(message.contains("delimiter `\\n`"), "{message}");
}

/// Text compressed by gzip.
fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_that_decompresses_beyond_the_limits() {
    let one_cell = format!("a,b\n1,{}", "x".repeat(17_000_000));
    let many_columns = format!("{}\n1", "a,".repeat(1_100_000));
    for (text, part) in [
        (one_cell, "longer than 16 MB"),
        (many_columns, "more than 1000000 columns"),
    ] {
        let message = read_csv(&gzip(&text), &ReadOptions::default()).unwrap_err();
        let message = message.to_string();
        assert!(
            message.contains(part) && message.contains("--no-size-limits"),
            "{message}"
        );
    }
    let mut options = ReadOptions::default();
    options.limits.table_bytes = 1_000_000;
    let rows = format!("a\n{}", "1\n".repeat(600_000));
    let message = read_csv(&gzip(&rows), &options).unwrap_err().to_string();
    assert!(
        message.contains("the decompressed text is longer than 1 MB"),
        "{message}"
    );
    options.limits = softwood_io::ReadLimits::NONE;
    assert_eq!(read_csv(&gzip(&rows), &options).unwrap().n_rows(), 600_000);
}

#[test]
fn binary_tables_beyond_the_limits() {
    let folder = Folder::new();
    let rows: Vec<usize> = (0..5000).map(|row| row % 2).collect();
    let table = small().take(&rows);
    for name in ["a.parquet", "a.arrow"] {
        let path = folder.path(name);
        write_table(&path, &table).unwrap();
        let mut options = ReadOptions::default();
        options.limits.table_bytes = 10_000;
        assert_rejected(&path, &options, &["10 kB", "--no-size-limits"]);
        options.limits = softwood_io::ReadLimits::default();
        options.limits.columns = 1;
        assert_rejected(&path, &options, &["more than 1 columns"]);
    }
}
