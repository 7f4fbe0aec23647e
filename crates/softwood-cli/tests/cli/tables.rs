//! How the program reads tables: dates, pandas indices, columns that are probably a mistake, sizes;
//! and how it prints names with control characters.

use std::fs;

use softwood::{Column, Table};

use crate::folder::{Folder, QUICK};
use crate::{classification, fitted, regression};

/// A table with a header and `n` rows.
fn table(header: &str, n: usize, row: impl Fn(usize) -> String) -> String {
    let rows: String = (0..n).map(|at| row(at) + "\n").collect();
    format!("{header}\n{rows}")
}

/// Fits `file` with target `y`, further flags and fast parameters; returns the notes.
fn notes(folder: &Folder, file: &str, flags: &[&str]) -> Vec<String> {
    let mut args = vec!["fit", file, "-t", "y", "--json"];
    args.extend(flags);
    args.extend(QUICK);
    let report = folder.json(&args);
    let notes = report["notes"].as_array().unwrap();
    notes
        .iter()
        .map(|note| note.as_str().unwrap().to_owned())
        .collect()
}

fn days(n: usize) -> String {
    table("when,a,y", n, |at| {
        let (month, day) = (at / 28 + 1, at % 28 + 1);
        format!("2024-{month:02}-{day:02},{},{}", at * 7 % 11, at * 3 % 29)
    })
}

#[test]
fn dates_in_csv_are_the_seconds_of_dates_in_parquet() {
    let folder = Folder::new();
    folder.write("data.csv", days(60));
    let read = |name: &str| {
        softwood_io::read_table(&folder.path(name), &softwood_io::ReadOptions::default()).unwrap()
    };
    // written as numbers: the seconds that a timestamp column of Parquet or Arrow becomes
    for other in ["data.parquet", "data.arrow"] {
        softwood_io::write_table(&folder.path(other), &read("data.csv")).unwrap();
        for (train, new) in [("data.csv", other), (other, "data.csv")] {
            let found = notes(&folder, train, &[]);
            assert!(train != "data.csv" || found.is_empty(), "{found:?}");
            let predict = |data: &str| {
                let ran = folder.run(&["predict", "model.softwood", data]);
                assert_eq!(ran.code, 0, "{}", ran.err);
                ran.out
            };
            assert_eq!(predict(new), predict(train));
        }
    }
    let report = folder.json(&["models", "model.softwood", "--json"]);
    assert_eq!(report["schema"]["fields"][0]["kind"], "numeric");
    notes(&folder, "data.csv", &["--categorical", "when"]);
    let report = folder.json(&["models", "model.softwood", "--json"]);
    assert_eq!(report["schema"]["fields"][0]["kind"], "categorical");
    let ran = folder.run(&["score", "model.softwood", "data.csv"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_cell_that_is_no_date_among_dates_is_rejected() {
    let folder = Folder::new();
    folder.write("data.csv", days(60).replace("2024-02-05", "5 Feb"));
    folder.assert_rejected(
        &["fit", "data.csv", "-t", "y"],
        &[
            "column `when`, row 33",
            "`5 Feb` (line 34) is not a date",
            "--categorical when",
        ],
    );
    folder.write("data.csv", days(60));
    notes(&folder, "data.csv", &[]);
    folder.write("new.csv", "when,a\n2024-01-01,1\nsoon,2\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv"],
        &["column `when`, row 2", "is not a date"],
    );
}

#[test]
fn class_names_that_are_dates_keep_their_spelling() {
    let folder = Folder::new();
    let rows = table("a,y", 60, |at| {
        format!("{},2024-01-0{}", at % 13, at % 2 + 1)
    });
    folder.write("data.csv", rows);
    notes(&folder, "data.csv", &["--categorical", "y"]);
    let report = folder.json(&["score", "model.softwood", "data.csv", "--json"]);
    assert!(report["scores"]["error"].as_f64().unwrap() < 0.9);
}

#[test]
fn targets_of_few_integers_are_noted_unless_the_task_is_given() {
    let folder = Folder::new();
    for (n_values, part) in [
        (2, "the target `y` has only the two values 0 and 1"),
        (4, "only 4 distinct integers, from 0 to 3"),
    ] {
        folder.write(
            "data.csv",
            table("a,y", 80, |at| format!("{},{}", at * 7 % 11, at % n_values)),
        );
        let found = notes(&folder, "data.csv", &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(part) && found[0].contains("--task classification"),
            "{found:?}"
        );
        for task in ["regression", "classification"] {
            assert!(notes(&folder, "data.csv", &["--task", task]).is_empty());
        }
    }
    let ran = folder.run(&["evaluate", "data.csv", "-t", "y", "--model", "tree"]);
    assert!(ran.err.contains("note: the target `y`"), "{}", ran.err);
    folder.write(
        "data.csv",
        table("a,y", 80, |at| format!("{},{}", at * 7 % 11, at % 12)),
    );
    assert!(notes(&folder, "data.csv", &[]).is_empty());
}

#[test]
fn columns_that_count_the_rows_are_noted() {
    let folder = Folder::new();
    folder.write(
        "data.csv",
        table("id,a,y", 60, |at| {
            format!("{},{},{}", at + 1, at % 7, at * 3 % 29)
        }),
    );
    let found = notes(&folder, "data.csv", &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("column `id` counts the rows, from 1 to 60"),
        "{found:?}"
    );
    assert!(found[0].contains("--ignore id"), "{found:?}");
    assert!(notes(&folder, "data.csv", &["--ignore", "id"]).is_empty());
}

#[test]
fn integers_beyond_the_precision_of_floats_are_noted() {
    let folder = Folder::new();
    let rows = table("key,a,y", 40, |at| {
        format!(
            "{},{},{}",
            9_007_199_254_740_993_u64 + (at * 7919 % 1000) as u64,
            at % 7,
            at * 3 % 29
        )
    });
    folder.write("data.csv", rows);
    let found = notes(&folder, "data.csv", &[]);
    assert!(
        found[0].contains("column `key`, row 1: 9007199254740993 loses"),
        "{found:?}"
    );
    assert!(notes(&folder, "data.csv", &["--categorical", "key"])[0].contains("distinct texts"));
}

#[test]
fn the_index_of_a_pandas_frame_is_left_out_unless_it_is_declared() {
    let folder = Folder::new();
    let column = |name: &str, step: u32| {
        Column::numeric(name, (0..60).map(|at| f64::from(at * step % 29)).collect())
    };
    let level = "__index_level_0__";
    let columns = vec![column("a", 7), column("y", 3), column(level, 1)];
    let frame = Table::new(columns).unwrap();
    softwood_io::write_table(&folder.path("data.parquet"), &frame).unwrap();
    let found = notes(&folder, "data.parquet", &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    for part in [
        level,
        "index of a pandas frame and was left out",
        "--numeric",
    ] {
        assert!(found[0].contains(part), "{found:?}");
    }
    let n_features = || {
        let report = folder.json(&["models", "model.softwood", "--json"]);
        report["schema"]["fields"].as_array().unwrap().len()
    };
    assert_eq!(n_features(), 1);
    let ran = folder.run(&["predict", "model.softwood", "data.parquet"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(notes(&folder, "data.parquet", &["--numeric", level]).is_empty());
    assert_eq!(n_features(), 2);
}

#[test]
fn tables_beyond_the_limits_are_rejected_and_may_be_allowed() {
    let folder = Folder::new();
    let mut wide = vec!["a"; 1_000_001].join(",");
    wide.push_str("\n1");
    folder.write("wide.csv", wide);
    let mut long = regression(30);
    long.push_str("1,\"");
    long.push_str(&"red ".repeat(4_000_001));
    folder.write("long.csv", &long);
    for (file, part) in [
        ("wide.csv", "more than 1000000 columns"),
        ("long.csv", "longer than 16 MB"),
    ] {
        folder.assert_rejected(&["fit", file, "-t", "y"], &[file, part, "--no-size-limits"]);
    }
    folder.assert_rejected(
        &["fit", "wide.csv", "-t", "y", "--no-size-limits"],
        &["`a`", "twice"],
    );
    folder.write("long.csv", long + "\",3\n");
    let mut args = vec!["fit", "long.csv", "-t", "y", "-q", "--no-size-limits"];
    args.extend(QUICK);
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn control_characters_in_names_are_escaped_in_text_and_kept_in_data() {
    let folder = Folder::new();
    let (red, bell) = ("\u{1b}[31mred", "class\u{7}");
    let rows = table(&format!("{red},\"a\nnote: b\",{bell}"), 60, |at| {
        let class = if at % 11 > 4 {
            "high\u{9b}1m"
        } else {
            "low\u{202e}"
        };
        format!("{},{},{class}", at % 11, at % 7)
    });
    folder.write("data.csv", rows);
    let mut args = vec!["fit", "data.csv", "-t", bell];
    args.extend(QUICK);
    let is_clean =
        |text: &str| !text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}');
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        is_clean(&ran.out) && ran.out.contains("class\\u{7}"),
        "{}",
        ran.out
    );
    for args in [
        &["models", "model.softwood"][..],
        &["explain", "model.softwood", "data.csv"],
        &["score", "model.softwood", "data.csv"],
        &["fit", "data.csv", "-t", "\u{1b}[2J"],
        &[
            "fit", "data.csv", "-t", bell, "--ignore", red, "--weight", red,
        ],
        &["fit", "data.csv", "-t", bell, "-p", "a\u{1b}=\u{1b}"],
        &["fit", "data.csv", "-t", bell, "-p", "max_depth=\u{1b}"],
        &["fit", "no\u{1b}file.csv", "-t", "y"],
        &["fit", "data.csv", "--task", "\u{1b}[31m"],
        &["models", "\u{1b}[31m"],
    ] {
        let ran = folder.run(args);
        assert!(
            is_clean(&ran.out) && is_clean(&ran.err),
            "{args:?} {} {}",
            ran.out,
            ran.err
        );
        assert!(
            !ran.out.contains("\nnote: b") && !ran.err.contains("\nnote: b"),
            "{args:?}"
        );
        assert!(ran.code == 0 || ran.code == 2, "{args:?} {}", ran.err);
    }
    let ran = folder.run(&["predict", "model.softwood", "data.csv"]);
    assert!(ran.out.contains("p_high\u{9b}1m"), "{}", ran.out);
}

#[test]
fn safe_csv_quotes_texts_that_a_spreadsheet_would_run() {
    let folder = Folder::new();
    let rows = classification(60)
        .replace("high", "=HYPERLINK(A1)")
        .replace("a,b,kind", "@a,b,kind");
    folder.write("data.csv", rows);
    let mut args = vec!["fit", "data.csv", "-t", "kind", "-q"];
    args.extend(QUICK);
    assert_eq!(folder.run(&args).code, 0);
    let predict = |flags: &[&str]| {
        let mut args = vec!["predict", "model.softwood", "data.csv", "--keep"];
        args.extend(flags);
        let ran = folder.run(&args);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let plain = predict(&[]);
    assert!(
        plain.starts_with("@a,b,kind,label") && plain.contains(",=HYPERLINK(A1),"),
        "{plain}"
    );
    let safe = predict(&["--safe-csv"]);
    assert!(
        safe.starts_with("'@a,b,kind,label") && safe.contains(",'=HYPERLINK(A1),"),
        "{safe}"
    );
    assert!(!safe.contains(",=HYPERLINK"), "{safe}");
    assert_eq!(safe.replace('\'', ""), plain);
    predict(&["--safe-csv", "-o", "out.parquet"]);
    let path = folder.path("out.parquet");
    let kept = softwood_io::read_table(&path, &softwood_io::ReadOptions::default()).unwrap();
    assert_eq!(kept.columns()[0].name, "@a");
}

#[test]
fn damaged_parquet_and_arrow_files_are_errors_about_the_file() {
    let folder = Folder::new();
    let texts: Vec<Option<String>> = (0..50).map(|n| Some(format!("t{}", n % 7))).collect();
    let numbers = (0..50).map(|n| f64::from(n * 7 % 29)).collect();
    let columns = vec![
        Column::categorical("a", &texts),
        Column::numeric("y", numbers),
    ];
    let frame = Table::new(columns).unwrap();
    for name in ["bad.parquet", "bad.arrow"] {
        softwood_io::write_table(&folder.path(name), &frame).unwrap();
        let whole = fs::read(folder.path(name)).unwrap();
        for at in (8..whole.len() - 8).step_by(whole.len() / 60) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            folder.write(name, &bytes);
            let mut args = vec!["fit", name, "-t", "y", "-q"];
            args.extend(QUICK);
            let ran = folder.run(&args);
            assert!(ran.code == 0 || ran.code == 2, "{at}: {}", ran.err);
            assert!(
                ran.code == 0 || ran.err.starts_with("error: bad."),
                "{at}: {}",
                ran.err
            );
            assert!(!ran.err.contains("internal error"), "{at}: {}", ran.err);
        }
    }
}

#[test]
fn near_misses_of_model_and_parameter_names_get_a_suggestion() {
    let folder = fitted(&regression(60), "y");
    for (flags, meant) in [
        (&["--model", "vts"][..], "vst"),
        (&["--model", "Forest"], "forest"),
        (&["--model", "random_forest"], "forest"),
        (&["-p", "max_dpeth=3"], "max_depth"),
        (&["-p", "dpeth=3"], "max_depth"),
        (&["--model", "sgb", "-p", "n_trees=3"], "n_estimators"),
        (&["--model", "sgb", "-p", "lr=3"], "learning_rate"),
        (&["--model", "sgb", "-p", "num_leaves=3"], "max_leaf_nodes"),
        (&["--ignore", "color"], "colour"),
    ] {
        let mut args = vec!["fit", "data.csv", "-t", "y"];
        args.extend(flags);
        folder.assert_rejected(&args, &[&format!("did you mean `{meant}`?")]);
    }
}
