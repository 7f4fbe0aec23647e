//! `softwood explain`: gain importance, permutation importance and rules, as text and as JSON, and
//! its errors.

use std::fs::File;

use serde_json::Value;

use crate::folder::Folder;
use crate::{classification, fitted, regression};

/// A folder with the table `data.csv` and a boosted model fitted to it.
fn boosted(table: &str, target: &str, model: &str) -> Folder {
    let folder = Folder::new();
    folder.write("data.csv", table);
    let fit = ["fit", "data.csv", "-t", target, "-q", "--model", model];
    let flags = ["-p", "n_estimators=20", "-p", "n_members=3"];
    let ran = folder.run(&[&fit[..], &flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    folder
}

const EXPLAIN: [&str; 3] = ["explain", "model.softwood", "data.csv"];

/// The importances of one column in a JSON report.
fn column<'a>(report: &'a Value, name: &str) -> &'a Value {
    let columns = report["importances"]["columns"].as_array().unwrap();
    columns
        .iter()
        .find(|column| column["column"] == name)
        .unwrap()
}

#[test]
fn gains_need_no_data() {
    let folder = boosted(&regression(60), "y", "sgb");
    let report = folder.json(&["explain", "model.softwood", "--json"]);
    let gains = report["gains"].as_array().unwrap();
    let total: f64 = gains
        .iter()
        .map(|gain| gain["gain"].as_f64().unwrap())
        .sum();
    assert!((total - 1.0).abs() < 1e-9, "{report}");
    assert_eq!(gains[0]["column"], "a");
    assert!(
        report["importances"].is_null() && report["tree"].is_null(),
        "{report}"
    );
    let text = folder.run(&["explain", "model.softwood"]).out;
    for part in [
        "model.softwood (sgb)",
        "Gain importance: ",
        "  a ",
        "  colour ",
        "%  █",
        "explain model.softwood DATA.csv",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    // the most important column comes first
    assert!(
        text.find("  a ").unwrap() < text.find("  colour ").unwrap(),
        "{text}"
    );
}

#[test]
fn importances_of_every_family_and_task() {
    for (table, target, important) in [
        (regression(80), "y", "a"),
        (classification(80), "kind", "a"),
    ] {
        for folder in [fitted(&table, target), boosted(&table, target, "sglb")] {
            let report = folder.json(&[&EXPLAIN[..], &["--json"]].concat());
            let found = &report["importances"];
            assert_eq!(
                (&found["n_rows"], &found["repeats"]),
                (&80.into(), &5.into())
            );
            for name in ["log_likelihood", "error", "knowledge"] {
                assert!(found[name].is_number(), "{name}: {report}");
            }
            for name in [
                "log_likelihood_fall",
                "error_rise",
                "prediction_change",
                "knowledge_change",
                "knowledge_shift",
            ] {
                let estimate = &column(&report, important)[name];
                assert!(
                    estimate["mean"].is_number() && estimate["se"].is_number(),
                    "{name}: {report}"
                );
            }
            let text = folder.run(&EXPLAIN).out;
            for part in [
                "80 rows of data.csv, each column permuted 5 times",
                "Permutation importance: ",
                "Prediction: ",
                "Knowledge (epistemic) uncertainty: ",
            ] {
                assert!(text.contains(part), "`{part}` is not in: {text}");
            }
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
        }
    }
}

#[test]
fn the_result_depends_on_the_seed_but_not_on_the_threads() {
    let folder = boosted(&regression(60), "y", "sglb");
    let run = |flags: &[&str]| folder.run(&[&EXPLAIN[..], flags].concat()).out;
    let one = run(&["--threads", "1"]);
    assert_eq!(run(&["--threads", "3"]), one);
    assert_ne!(run(&["--seed", "1"]), one);
    assert!(!run(&["--repeats", "1"]).contains('±'));
}

#[test]
fn without_a_target_there_is_no_permutation_importance_of_the_score() {
    let folder = boosted(&regression(60), "y", "sglb");
    folder.write("new.csv", "colour,a\nred,1\nblue,2\ngreen,3\n");
    let args = ["explain", "model.softwood", "new.csv"];
    let report = folder.json(&[&args[..], &["--json"]].concat());
    assert!(
        report["importances"]["log_likelihood"].is_null(),
        "{report}"
    );
    assert!(
        column(&report, "a").get("log_likelihood_fall").is_none(),
        "{report}"
    );
    assert!(
        column(&report, "a")["prediction_change"]["mean"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let text = folder.run(&args).out;
    assert!(
        !text.contains("Permutation importance: ")
            && text.contains("note: new.csv has no column `y`"),
        "{text}"
    );
}

#[test]
fn reference_rows_show_which_column_raises_knowledge_uncertainty() {
    let folder = fitted(&regression(60), "y");
    let rows: Vec<_> = (500..530).map(|a| format!("{a},red")).collect();
    folder.write("far.csv", format!("a,colour\n{}\n", rows.join("\n")));
    let args = [
        "explain",
        "model.softwood",
        "far.csv",
        "--reference",
        "data.csv",
    ];
    let report = folder.json(&[&args[..], &["--json"]].concat());
    let shift = |name: &str| {
        column(&report, name)["knowledge_shift"]["mean"]
            .as_f64()
            .unwrap()
    };
    let now = report["importances"]["knowledge"].as_f64().unwrap();
    assert!(
        shift("a") < -0.5 * now && shift("a") < 2.0 * shift("colour"),
        "{report}"
    );
    let text = folder.run(&args).out;
    assert!(
        text.contains("each column replaced 5 times by\nvalues from 60 rows of data.csv"),
        "{text}"
    );
    let knowledge = text
        .split("Knowledge (epistemic) uncertainty: ")
        .nth(1)
        .unwrap();
    assert!(
        knowledge.find("  a ").unwrap() < knowledge.find("  colour ").unwrap(),
        "{text}"
    );
}

#[test]
fn data_from_standard_input() {
    let folder = boosted(&regression(60), "y", "sgb");
    let mut command = folder.command(&["explain", "model.softwood", "-"]);
    let table = File::open(folder.path("data.csv")).unwrap();
    let output = command.stdin(table).output().unwrap();
    let piped = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        piped.replace("rows of -,", "rows of data.csv,"),
        folder.run(&EXPLAIN).out
    );
    folder.assert_rejected(
        &["explain", "model.softwood", "-", "--reference", "-"],
        &["`-` is given twice"],
    );
}

#[test]
fn a_single_member_is_noted() {
    let folder = boosted(&regression(60), "y", "sgb");
    let ran = folder.run(&[
        "fit",
        "data.csv",
        "-t",
        "y",
        "-q",
        "--model",
        "sgb",
        "-p",
        "n_members=1",
        "-p",
        "n_estimators=5",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = folder.run(&EXPLAIN).out;
    assert!(text.contains("note: the model has one member"), "{text}");
}

#[test]
fn long_lists_are_shortened() {
    let folder = boosted(&regression(60), "y", "sgb");
    let text = folder.run(&["explain", "model.softwood", "--top", "1"]).out;
    assert!(text.contains("and 1 more (--top 2)"), "{text}");
}

#[test]
fn a_single_tree_is_printed_and_drawn() {
    let folder = Folder::new();
    let families = folder.json(&["models", "--json"]);
    let has_trees = families
        .as_array()
        .unwrap()
        .iter()
        .any(|family| family["model"] == "tree");
    if !has_trees {
        return;
    }
    folder.write("data.csv", regression(60));
    let ran = folder.run(&["fit", "data.csv", "-t", "y", "-q", "--model", "tree"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let args = ["explain", "model.softwood", "--svg", "tree.svg"];
    let text = folder.run(&args).out;
    assert!(
        text.contains("\nTree\n  y: ") && text.contains("saved to  tree.svg"),
        "{text}"
    );
    assert!(
        text.contains("─ a <= ") || text.contains("─ colour is"),
        "{text}"
    );
    let svg = folder.text("tree.svg");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    let report = folder.json(&[&args[..], &["--json"]].concat());
    assert!(
        !report["tree"]["nodes"].as_array().unwrap().is_empty(),
        "{report}"
    );
}

#[test]
fn the_posterior_over_structures_is_printed_before_the_most_probable_tree() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let fit = ["fit", "data.csv", "-t", "y", "-q", "--model", "vart"];
    let flags = ["-p", "max_depth=2", "-p", "n_epochs=3", "-p", "n_fits=2"];
    let ran = folder.run(&[&fit[..], &flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = folder.run(&["explain", "model.softwood"]).out;
    for part in [
        "Posterior over the structure of the tree (mean of 2 fits)",
        "  depth   ",
        "  leaves  ",
        "  splits  ",
        "Most probable tree of the first fit",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let report = folder.json(&["explain", "model.softwood", "--json"]);
    assert_eq!(report["structure"]["nodes"][0]["node"], 1);
}

#[test]
fn invalid_requests_are_rejected() {
    let folder = fitted(&regression(60), "y");
    let model = "model.softwood";
    folder.write("short.csv", "a\n1\n2\n");
    folder.write("one.csv", "a,colour,y\n1,red,2\n");
    folder.write("text.csv", "a,colour,y\n1,red,high\n2,red,low\n");
    folder.write("gap.csv", "a,colour,y\n1,red,\n2,red,3\n");
    for (args, parts) in [
        (vec![model], ["`vst`", "give a table after the model"]),
        (
            vec![model, "data.csv", "--svg", "tree.svg"],
            ["tree.svg", "only a model that is a single tree"],
        ),
        (
            vec![model, "data.csv", "--svg", "data.csv"],
            ["data.csv", "overwrite an input file"],
        ),
        (
            vec![model, "data.csv", "--svg", "-"],
            ["drawing", "give a file name"],
        ),
        (vec![model, "short.csv"], ["short.csv", "column `colour`"]),
        (
            vec![model, "data.csv", "--reference", "short.csv"],
            ["short.csv", "column `colour`"],
        ),
        (vec![model, "one.csv"], ["one.csv", "at least 2 rows"]),
        (vec![model, "text.csv"], ["text.csv", "column `y`, row 1"]),
        (vec![model, "gap.csv"], ["column `y`, row 1", "missing"]),
        (vec![model, "nope.csv"], ["nope.csv", "no such file"]),
        (
            vec!["data.csv", model],
            ["data.csv", "the model comes first"],
        ),
        (vec![model, "--reference", "data.csv"], ["DATA", "required"]),
        (
            vec![model, "data.csv", "--repeats", "0"],
            ["--repeats", "1..=1000"],
        ),
    ] {
        let args = [vec!["explain"], args].concat();
        folder.assert_rejected(&args, &parts);
    }
}
