//! Common mistakes of new users: the message says what is wrong and what to do.

use std::fs;
use std::process::Stdio;

use crate::folder::{Folder, QUICK};
use crate::{classification, fitted, regression};

/// A table with a header and `n` rows.
fn table(header: &str, n: usize, row: impl Fn(usize) -> String) -> String {
    let rows: String = (0..n).map(|at| row(at) + "\n").collect();
    format!("{header}\n{rows}")
}

/// Fits the table `content` with further flags and fast parameters; returns the report.
fn fit(folder: &Folder, content: &str, flags: &[&str]) -> String {
    folder.write("data.csv", content);
    let mut args = vec!["fit", "data.csv"];
    args.extend(flags);
    args.extend(QUICK);
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out
}

/// Checks that fitting the table `content` with further flags fails.
fn assert_fit_rejected(content: &str, flags: &[&str], parts: &[&str]) {
    let folder = Folder::new();
    folder.write("data.csv", content);
    let mut args = vec!["fit", "data.csv"];
    args.extend(flags);
    folder.assert_rejected(&args, parts);
}

#[test]
fn names_in_another_case_or_with_blanks() {
    assert_fit_rejected(&regression(30), &["-t", "Y"], &["`Y`", "did you mean `y`?"]);
    let spaced = regression(30).replace("colour,y", "colour, y");
    assert_fit_rejected(
        &spaced,
        &["-t", "y"],
        &["there are a, colour, ` y`", "did you mean ` y`?"],
    );
}

#[test]
fn a_table_without_a_header() {
    let (_, rows) = regression(30)
        .split_once('\n')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_fit_rejected(
        &rows,
        &["-t", "y"],
        &["`y`", "the first line must hold the names"],
    );
}

#[test]
fn other_delimiters() {
    for (mark, typed, shown) in [
        (";", ";", "--delimiter ';'"),
        ("\t", "tab", "--delimiter tab"),
        ("|", "|", "--delimiter '|'"),
    ] {
        let other = regression(60).replace(',', mark);
        assert_fit_rejected(
            &other,
            &["-t", "y"],
            &["data.csv", "the header has only one column", shown],
        );
        let folder = Folder::new();
        fit(&folder, &other, &["-t", "y", "--delimiter", typed]);
        folder.assert_rejected(&["predict", "model.softwood", "data.csv"], &[shown]);
        let ran = folder.run(&[
            "predict",
            "model.softwood",
            "data.csv",
            "--delimiter",
            typed,
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
}

#[test]
fn formatted_numbers() {
    for format_number in [
        |at: usize| format!("{at},5"),
        |at| format!("${at}.50"),
        |at| format!("{at}%"),
        |at| format!("\"{},000\"", at + 1),
    ] {
        let formatted = table("a;y", 40, |at| format!("{at};{}", format_number(at)));
        let flags = ["-t", "y", "--delimiter", ";"];
        assert_fit_rejected(
            &formatted,
            &flags,
            &[
                "column `y`, row 1",
                "(line 2) looks like a formatted number",
                "1234.5",
                "--categorical y",
            ],
        );
    }
}

#[test]
fn a_distinct_class_in_every_row() {
    let named = table("a,y", 40, |at| format!("{at},name{at}"));
    assert_fit_rejected(
        &named,
        &["-t", "y"],
        &["`y`", "40 classes in 40 rows", "regression"],
    );
    assert_fit_rejected(
        &regression(60),
        &["-t", "y", "--task", "classification"],
        &["`y`", "classes in 60 rows"],
    );
}

#[test]
fn columns_of_identifiers_and_dates_are_noted() {
    let folder = Folder::new();
    let suspicious = table("id,when,a,y", 60, |at| {
        format!("user{at},{}.1.2024,{},{at}", at % 28 + 1, at % 9)
    });
    let report = fit(&folder, &suspicious, &["-t", "y"]);
    for part in [
        "note: column `id` has 60 distinct texts in 60 rows",
        "--ignore id",
        "note: column `when` contains dates",
    ] {
        assert!(report.contains(part), "{report}");
    }
    let report = fit(
        &folder,
        &suspicious,
        &["-t", "y", "--ignore", "id,when", "--json"],
    );
    assert!(
        report.contains("\"notes\":[]") || report.contains("\"notes\": []"),
        "{report}"
    );
}

#[test]
fn a_column_with_two_roles() {
    let table = regression(30);
    assert_fit_rejected(
        &table,
        &["-t", "y", "--ignore", "y"],
        &["`y`", "both the target and to be ignored"],
    );
    assert_fit_rejected(
        &table,
        &["-t", "y", "--weight", "y"],
        &["`y`", "both the target and the weights"],
    );
    assert_fit_rejected(
        &table,
        &["-t", "y", "--weight", "a", "--ignore", "a"],
        &["`a`", "both the weights and to be ignored"],
    );
}

#[test]
fn weights_with_a_single_positive_one() {
    let one = table("a,w,y", 30, |at| {
        format!("{at},{},{at}", usize::from(at == 3))
    });
    assert_fit_rejected(
        &one,
        &["-t", "y", "--weight", "w"],
        &["at least 2 rows of positive weight", "of 30 rows 1 has one"],
    );
}

#[test]
fn every_invalid_parameter_is_named() {
    assert_fit_rejected(
        &regression(30),
        &[
            "-t",
            "y",
            "-p",
            "max_depth=99",
            "-p",
            "rank=-1",
            "-p",
            "leaf_model=round",
        ],
        &[
            "`max_depth` = 99",
            "`rank` = -1",
            "`leaf_model` = round",
            "constant, linear",
        ],
    );
}

#[test]
fn absent_configuration_and_standard_input_twice() {
    let table = regression(30);
    assert_fit_rejected(
        &table,
        &["--config", "nope.toml"],
        &["nope.toml: there is no such file"],
    );
    assert_fit_rejected(&table, &["--config", "."], &[".: this is a directory"]);
    let folder = Folder::new();
    folder.assert_rejected(
        &["fit", "-", "-t", "y", "--valid", "-"],
        &["`-` is given twice", "give a file"],
    );
    folder.assert_rejected(
        &["evaluate", "-", "-t", "y", "--protocol", "splits:-"],
        &["`-` is given twice"],
    );
}

#[test]
fn directories_given_as_files_and_files_given_as_directories() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tables")).unwrap();
    folder.assert_rejected(
        &["fit", "tables", "-t", "y"],
        &["tables: this is a directory; give the path of a file"],
    );
    folder.write("file", "");
    folder.assert_rejected(
        &["demo", "--out", "file"],
        &["`file` is a file; give a directory"],
    );
    folder.assert_rejected(
        &["demo", "--out", "file/below"],
        &["`file` is a file; give a directory"],
    );
}

#[test]
fn seeds_that_are_not_integers() {
    assert_fit_rejected(
        &regression(30),
        &["-t", "y", "--seed", "abc"],
        &["--seed", "'abc'", "an integer from 0"],
    );
}

#[test]
fn model_and_table_swapped() {
    let folder = fitted(&regression(60), "y");
    for verb in ["predict", "score"] {
        folder.assert_rejected(
            &[verb, "data.csv", "model.softwood"],
            &["data.csv", "model.softwood is: the model comes first"],
        );
    }
    folder.assert_rejected(
        &["ood", "data.csv", "model.softwood", "data.csv"],
        &["data.csv", "model.softwood is: the model comes first"],
    );
}

#[test]
fn duplicate_quantile_levels() {
    let folder = fitted(&regression(60), "y");
    let args = [
        "predict",
        "model.softwood",
        "data.csv",
        "--quantiles",
        "0.5,0.1,0.50",
    ];
    folder.assert_rejected(&args, &["--quantiles", "0.5 is given twice"]);
}

#[test]
fn regression_flags_for_a_classifier() {
    let folder = fitted(&classification(60), "kind");
    for (flag, value) in [("--samples", "3"), ("--quantiles", "0.5")] {
        let args = ["predict", "model.softwood", "data.csv", flag, value];
        folder.assert_rejected(
            &args,
            &[flag, "applies only to regression", "high, low", "p_CLASS"],
        );
    }
}

#[test]
fn columns_of_the_table_to_predict_match_by_name() {
    let folder = fitted(&regression(60), "y");
    let predict = |content: &str| {
        folder.write("new.csv", content);
        let ran = folder.run(&["predict", "model.softwood", "new.csv"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let one = predict("a,colour\n3.5,red\n");
    assert_eq!(one.lines().count(), 2);
    assert_eq!(predict("colour,extra,a\nred,7 %,3.5\n"), one);
    folder.write("new.csv", "a\n1\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv"],
        &["new.csv", "column `colour`", "there are a"],
    );
    folder.write("new.csv", "A,b\n1,2\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv"],
        &[
            "new.csv",
            "the columns `a`, `colour` are not there",
            "there are A, b",
        ],
    );
    folder.write("new.csv", "a,colour\nmany,red\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv"],
        &[
            "column `a`, row 1",
            "`many`",
            "the column was numeric in training",
        ],
    );
}

#[test]
fn column_names_with_blanks_and_in_any_script() {
    let folder = Folder::new();
    let named = regression(60).replace("a,colour,y", "größe,цвет der Tür,值 in €");
    fit(&folder, &named, &["-t", "值 in €", "-q"]);
    let ran = folder.run(&["score", "model.softwood", "data.csv"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    folder.write(
        "one.csv",
        named.lines().take(2).collect::<Vec<_>>().join("\n"),
    );
    let ran = folder.run(&["score", "model.softwood", "one.csv"]);
    assert!(ran.out.contains("on 1 row of one.csv"), "{}", ran.out);
}

#[test]
fn very_large_and_very_small_targets() {
    for power in ["e300", "e-300"] {
        let folder = Folder::new();
        let extreme = table("a,y", 60, |at| {
            format!("{at},{}{power}", at as f64 + (at * 7 % 5) as f64)
        });
        fit(&folder, &extreme, &["-t", "y", "-q"]);
        let report = folder.json(&["predict", "model.softwood", "data.csv", "--json"]);
        for name in ["mean", "sd", "data_sd", "knowledge_sd", "q95"] {
            let cells = report["predictions"][name].as_array().unwrap();
            assert!(
                cells
                    .iter()
                    .all(|cell| cell.as_f64().is_some_and(f64::is_finite)),
                "{name}"
            );
        }
        let part = |name: &str| {
            report["predictions"][name][0].as_f64().unwrap()
                / report["predictions"]["sd"][0].as_f64().unwrap()
        };
        assert!((part("data_sd").powi(2) + part("knowledge_sd").powi(2) - 1.0).abs() < 1e-9);
        let scores = folder.json(&["score", "model.softwood", "data.csv", "--json"]);
        for name in ["rmse", "rmse_std", "crps", "prr_total", "prr_knowledge"] {
            assert!(
                scores["scores"][name].is_number(),
                "{power} {name}: {scores}"
            );
        }
    }
}

#[test]
fn empty_cells_are_missing_values() {
    let folder = Folder::new();
    let gaps = table("a,colour,y", 60, |at| match at % 7 {
        0 => format!(",red,{at}"),
        1 => format!("{at},,{at}"),
        _ => format!("{at},blue,{at}"),
    });
    fit(&folder, &gaps, &["-t", "y", "-q"]);
    let child = folder
        .command(&["predict", "model.softwood", "data.csv"])
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert!(child.status.success());
}

#[test]
fn classes_for_a_family_that_predicts_numbers() {
    let content = table("a,kind", 40, |row| {
        format!("{row},{}", ["low", "high"][row / 3 % 2])
    });
    assert_fit_rejected(
        &content,
        &["-t", "kind", "--model", "gp"],
        &["`kind`", "`gp` predicts numbers", "`sglb`"],
    );
}
