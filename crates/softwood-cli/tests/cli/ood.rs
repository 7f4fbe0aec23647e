//! `softwood ood`: AUROC and best threshold of all three uncertainties, as text and as JSON, and
//! its errors.

use std::fs::File;

use crate::folder::Folder;
use crate::{classification, fitted, regression};

/// A folder with a model, in-domain rows in `in.csv` and rows far outside in `out.csv`, both
/// without a target.
fn with_two_tables(table: &str, target: &str) -> Folder {
    let folder = fitted(table, target);
    let column = if target == "y" { "colour" } else { "b" };
    let cell = if target == "y" { "red" } else { "3" };
    let rows = |from: usize| -> String {
        let row = |at: usize| format!("{cell},{}\n", from + at % 10);
        format!("{column},a\n{}", (0..30).map(row).collect::<String>())
    };
    folder.write("in.csv", rows(0));
    folder.write("out.csv", rows(500));
    folder
}

const OOD: [&str; 4] = ["ood", "model.softwood", "in.csv", "out.csv"];

#[test]
fn auroc_of_every_uncertainty_as_text_and_json() {
    for (table, target, unit) in [
        (regression(60), "y", "standard deviations"),
        (classification(60), "kind", "nats"),
    ] {
        let folder = with_two_tables(&table, target);
        let report = folder.json(&[&OOD[..], &["--json"]].concat());
        assert_eq!(
            (&report["n_in"], &report["n_out"]),
            (&30.into(), &30.into())
        );
        let text = folder.run(&OOD).out;
        assert!(
            text.contains("30 in-domain rows of in.csv (in), 30 other rows of out.csv (out)"),
            "{text}"
        );
        assert!(text.contains(unit) && report["unit"].as_str().unwrap().contains(unit));
        for kind in ["total", "data", "knowledge"] {
            let area = |name: &str| report[kind][name].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&area("auroc")), "{report}");
            assert!((0.5..=1.0).contains(&area("one_split_auroc")), "{report}");
            let line = text.lines().find(|line| line.starts_with(kind)).unwrap();
            assert_eq!(line.split_whitespace().count(), 6, "{line}");
        }
    }
}

#[test]
fn knowledge_uncertainty_separates_rows_far_outside() {
    let folder = with_two_tables(&regression(60), "y");
    let apart = folder.json(&[&OOD[..], &["--json"]].concat());
    let median = |name: &str| apart["knowledge"][name].as_f64().unwrap();
    assert_eq!(apart["knowledge"]["auroc"], 1.0, "{apart}");
    assert_eq!(apart["knowledge"]["one_split_auroc"], 1.0, "{apart}");
    let threshold = median("threshold");
    assert!(
        median("median_in") < threshold && threshold < median("median_out"),
        "{apart}"
    );
    let same = folder.json(&["ood", "model.softwood", "in.csv", "in.csv", "--json"]);
    assert_eq!(same["knowledge"]["auroc"], 0.5, "{same}");
}

#[test]
fn boosted_models_work_and_a_single_member_is_noted() {
    let folder = with_two_tables(&regression(60), "y");
    for (model, members) in [("sgb", "1"), ("sglb", "3")] {
        let members = format!("n_members={members}");
        let fit = ["fit", "data.csv", "-t", "y", "-q", "--model", model];
        let flags = ["-p", "n_estimators=10", "-p", &members];
        let ran = folder.run(&[&fit[..], &flags].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let text = folder.run(&OOD).out;
        assert_eq!(
            text.contains("note: the model has one member"),
            model == "sgb",
            "{text}"
        );
    }
}

#[test]
fn one_table_can_come_from_standard_input_but_not_both() {
    let folder = with_two_tables(&regression(60), "y");
    let mut command = folder.command(&["ood", "model.softwood", "in.csv", "-"]);
    let table = File::open(folder.path("out.csv")).unwrap();
    let output = command.stdin(table).output().unwrap();
    let piped = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        piped.replace(" - (out)", " out.csv (out)"),
        folder.run(&OOD).out
    );
    folder.assert_rejected(
        &["ood", "model.softwood", "-", "-"],
        &["`-` is given twice", "give a file"],
    );
}

#[test]
fn errors_name_the_table() {
    let folder = with_two_tables(&regression(60), "y");
    folder.write("short.csv", "a\n1\n");
    folder.write("empty.csv", "a,colour\n");
    folder.write("text.csv", "a,colour\nmany,red\n");
    for (inside, outside, parts) in [
        ("in.csv", "short.csv", ["short.csv", "column `colour`"]),
        ("short.csv", "out.csv", ["short.csv", "column `colour`"]),
        ("in.csv", "empty.csv", ["empty.csv", "no rows"]),
        ("text.csv", "out.csv", ["text.csv", "column `a`, row 1"]),
        ("in.csv", "nope.csv", ["nope.csv", "no such file"]),
    ] {
        folder.assert_rejected(&["ood", "model.softwood", inside, outside], &parts);
    }
    folder.assert_rejected(
        &["ood", "in.csv", "in.csv", "out.csv"],
        &["in.csv", "model"],
    );
    folder.assert_rejected(&["ood", "model.softwood", "in.csv"], &["OUT"]);
}
