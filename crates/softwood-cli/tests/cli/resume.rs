//! `softwood fit --resume`: what is kept from the model, what can be changed, and what is rejected.

use serde_json::Value;

use crate::folder::Folder;
use crate::{classification, fitted, regression};

/// Families, and whether each supports warm start.
fn families(folder: &Folder) -> Vec<(String, bool)> {
    let list = folder.json(&["models", "--json"]);
    let names = list.as_array().unwrap().iter();
    let names = names.map(|family| family["model"].as_str().unwrap().to_owned());
    let supports_warm_start = |name: &String| {
        folder.json(&["models", name, "--json"])["supports_warm_start"] == Value::Bool(true)
    };
    names
        .map(|name| (name.clone(), supports_warm_start(&name)))
        .collect()
}

/// Fits a small model to `data.csv` and writes it to `base.softwood`.
fn fit(folder: &Folder, family: &str, target: &str) {
    let mut args = vec![
        "fit",
        "data.csv",
        "-t",
        target,
        "-q",
        "--model",
        family,
        "-o",
        "base.softwood",
    ];
    match family {
        "vst" | "vart" => args.extend(["-p", "n_epochs=3", "-p", "max_depth=1"]),
        "soft-tree" => args.extend(["-p", "n_epochs=3", "-p", "max_leaf_nodes=2"]),
        "vsgbm" => args.extend([
            "-p",
            "n_epochs=3",
            "-p",
            "max_depth=1",
            "-p",
            "n_estimators=2",
        ]),
        "sgb" | "sglb" => args.extend([
            "-p",
            "n_estimators=10",
            "-p",
            "n_members=2",
            "-p",
            "learning_rate=0.2",
            "-p",
            "max_depth=2",
        ]),
        _ => {}
    }
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

const RESUME: [&str; 6] = [
    "fit",
    "more.csv",
    "--resume",
    "base.softwood",
    "-o",
    "next.softwood",
];

/// A family without warm start is rejected before any data are read.
#[test]
fn every_family_resumes_or_reports_that_it_cannot() {
    for (table, target) in [(regression(60), "y"), (classification(60), "kind")] {
        let folder = Folder::new();
        folder.write("data.csv", &table);
        for (family, supports_warm_start) in families(&folder) {
            let about = folder.json(&["models", &family, "--json"]);
            if target == "kind" && about["supports_classes"] == Value::Bool(false) {
                continue;
            }
            fit(&folder, &family, target);
            if !supports_warm_start {
                let message = format!("a `{family}` model cannot be trained further");
                folder.assert_rejected(&RESUME, &[&message, "fit it to all rows"]);
                continue;
            }
            folder.write("more.csv", &table);
            let report = folder.json(&[&RESUME[..], &["--json"]].concat());
            assert_eq!(report["model"], family.as_str());
            assert_eq!(report["resumed"], "base.softwood");
            assert_eq!(report["target"], target);
            // parameters that are not given keep the values of the model
            let base = folder.json(&["models", "base.softwood", "--json"]);
            assert_eq!(report["params"], base["params"]);
            let ran = folder.run(&["score", "next.softwood", "data.csv"]);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert_ne!(folder.bytes("next.softwood"), folder.bytes("base.softwood"));
            let text = folder.run(&RESUME).out;
            let resumed = text.lines().find(|line| line.starts_with("resumed"));
            assert!(
                resumed.is_some_and(|line| line.ends_with("from base.softwood")),
                "{text}"
            );
            std::fs::remove_file(folder.path("more.csv")).unwrap();
            std::fs::remove_file(folder.path("next.softwood")).unwrap();
        }
    }
}

/// A boosted family that supports warm start, if there is one.
fn resumable(folder: &Folder) -> Option<String> {
    let found = families(folder)
        .into_iter()
        .find(|(family, supports_warm_start)| *supports_warm_start && family.starts_with("sg"));
    found.map(|(family, _)| family)
}

#[test]
fn parameters_can_be_changed_and_the_model_file_replaced() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let Some(family) = resumable(&folder) else {
        return;
    };
    fit(&folder, &family, "y");
    folder.write("more.csv", regression(90));
    let report = folder.json(&[
        "fit",
        "more.csv",
        "--resume",
        "base.softwood",
        "-o",
        "base.softwood",
        "-p",
        "n_estimators=15",
        "--json",
    ]);
    assert_eq!(report["params"]["n_estimators"], 15);
    assert_eq!(report["params"]["max_depth"], 2);
    assert_eq!(report["n_rows"], 90);
    let saved = folder.json(&["models", "base.softwood", "--json"]);
    assert_eq!(saved["params"]["n_estimators"], 15);
}

#[test]
fn errors_name_tables_that_do_not_match_the_model() {
    let folder = Folder::new();
    folder.write("data.csv", classification(60));
    let Some(family) = resumable(&folder) else {
        return;
    };
    fit(&folder, &family, "kind");
    for (table, parts) in [
        ("a,kind\n1,low\n2,high\n", ["more.csv", "column `b`"]),
        ("a,b\n1,2\n2,3\n", ["more.csv", "column `kind`"]),
        (
            "a,b,kind\n1,2,low\n2,3,huge\n",
            ["column `kind`, row 2", "`huge` is not a class of the model"],
        ),
    ] {
        folder.write("more.csv", table);
        folder.assert_rejected(&RESUME, &parts);
    }
    // unseen categories are accepted
    folder.write("data.csv", regression(60));
    fit(&folder, &family, "y");
    folder.write("more.csv", regression(60).replace("blue", "violet"));
    let ran = folder.run(&RESUME);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn flags_that_contradict_the_model() {
    let folder = fitted(&regression(60), "y");
    let resume = [
        "fit",
        "data.csv",
        "--resume",
        "model.softwood",
        "-o",
        "next.softwood",
    ];
    for (flags, parts) in [
        (
            vec!["--model", "sgb"],
            vec!["is a `vst`, not a `sgb`", "omit --model"],
        ),
        (vec!["--target", "a"], vec!["predicts `y`, not `a`"]),
        (
            vec!["--categorical", "a"],
            vec!["--resume", "--categorical"],
        ),
        (vec!["--task", "regression"], vec!["--resume", "--task"]),
    ] {
        folder.assert_rejected(&[&resume[..], &flags].concat(), &parts);
    }
    folder.assert_rejected(
        &[
            "fit",
            "data.csv",
            "--resume",
            "data.csv",
            "-o",
            "next.softwood",
        ],
        &["data.csv", "model"],
    );
    folder.assert_rejected(
        &["fit", "data.csv", "--resume", "nope.softwood"],
        &["nope.softwood", "no such file"],
    );
}

#[test]
fn a_fit_without_resume_needs_a_target() {
    let folder = Folder::new();
    folder.write("data.csv", regression(30));
    for command in ["fit", "evaluate"] {
        folder.assert_rejected(&[command, "data.csv"], &["no target: give --target COL"]);
    }
}
