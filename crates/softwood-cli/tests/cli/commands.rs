//! The commands on valid input: files, columns, reports, JSON documents, and reproducible results.

use std::process::Stdio;

use crate::folder::{Folder, QUICK};
use crate::{classification, fitted, regression};

#[test]
fn fit_prints_a_report_and_the_next_command() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let mut args = vec!["fit", "data.csv", "--target", "y"];
    args.extend(QUICK);
    let ran = folder.run(&args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for part in [
        "y (regression)",
        "60",
        "2 (1 numeric, 1 categorical)",
        "predict model.softwood NEW.csv",
    ] {
        assert!(ran.out.contains(part), "{}", ran.out);
    }
    assert_eq!(folder.names(), ["data.csv", "model.softwood"]);
    args.push("--quiet");
    let ran = folder.run(&args);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[test]
fn the_learning_curve_is_in_the_json_report_and_in_the_model_file() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let mut args = vec!["fit", "data.csv", "--target", "y", "--json"];
    args.extend(QUICK);
    let report = folder.json(&args);
    assert_eq!(report["n_rows"], 60);
    assert!(!report["training"]["curve"].as_array().unwrap().is_empty());
    let saved = folder.json(&["models", "model.softwood", "--json"]);
    assert_eq!(saved["training"], report["training"]);
    assert_eq!(saved["schema"]["target"], "y");
    let text = folder.run(&["models", "model.softwood"]).out;
    assert!(
        text.contains("Learning curve") && text.contains("colour (3 categories)"),
        "{text}"
    );
}

#[test]
fn model_files_depend_on_the_seed_but_not_on_the_threads() {
    let folder = Folder::new();
    folder.write("data.csv", regression(200));
    let fit = |name: &str, flags: &[&str]| {
        let mut args = vec!["fit", "data.csv", "--target", "y", "-q", "-o", name];
        args.extend(QUICK);
        args.extend(flags);
        assert_eq!(folder.run(&args).code, 0);
        folder.bytes(name)
    };
    let one = fit("1.softwood", &["--threads", "1"]);
    assert_eq!(one, fit("2.softwood", &["--threads", "2"]));
    assert_eq!(one, fit("3.softwood", &["--threads", "3", "--seed", "0"]));
    assert_ne!(one, fit("s.softwood", &["--seed", "1"]));
}

#[test]
fn configuration_file_and_flags_are_equivalent() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let params: Vec<&str> = QUICK.iter().copied().filter(|word| *word != "-p").collect();
    let line = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap();
        let value = if value.parse::<f64>().is_ok() {
            value.to_owned()
        } else {
            format!("{value:?}")
        };
        format!("{key} = {value}\n")
    };
    let lines: String = params.iter().map(|pair| line(pair)).collect();
    folder.write(
        "c.toml",
        format!("target = \"y\"\nignore = [\"colour\"]\nseed = 4\n[params]\n{lines}"),
    );
    let by_file = [
        "fit",
        "data.csv",
        "--config",
        "c.toml",
        "-q",
        "-o",
        "file.softwood",
    ];
    assert_eq!(folder.run(&by_file).code, 0);
    let mut by_flags = vec![
        "fit",
        "data.csv",
        "-t",
        "y",
        "--ignore",
        "colour",
        "--seed",
        "4",
        "-q",
        "-o",
        "flags.softwood",
    ];
    by_flags.extend(QUICK);
    assert_eq!(folder.run(&by_flags).code, 0);
    assert_eq!(
        folder.bytes("file.softwood"),
        folder.bytes("flags.softwood")
    );
}

#[test]
fn regression_predictions_have_their_columns() {
    let folder = fitted(&regression(60), "y");
    let out = folder.run(&["predict", "model.softwood", "data.csv"]).out;
    assert_eq!(
        out.lines().next(),
        Some("mean,sd,data_sd,knowledge_sd,q05,q50,q95")
    );
    assert_eq!(out.lines().count(), 61);
    let flags = [
        "predict",
        "model.softwood",
        "data.csv",
        "--keep",
        "--quantiles",
        "0.25,0.975",
        "--samples",
        "2",
    ];
    let out = folder.run(&flags).out;
    let names = "a,colour,y,mean,sd,data_sd,knowledge_sd,q25,q975,sample_1,sample_2";
    assert_eq!(out.lines().next(), Some(names));
}

#[test]
fn classification_predictions_have_their_columns() {
    let folder = fitted(&classification(60), "kind");
    let ran = folder.run(&["predict", "model.softwood", "data.csv", "-o", "p.csv"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    let text = folder.text("p.csv");
    assert_eq!(
        text.lines().next(),
        Some("label,p_high,p_low,total,data,knowledge")
    );
    assert_eq!(text.lines().count(), 61);
}

#[test]
fn predictions_as_json() {
    let folder = fitted(&regression(30), "y");
    let inline = folder.json(&["predict", "model.softwood", "data.csv", "--json"]);
    assert_eq!(inline["predictions"]["mean"].as_array().unwrap().len(), 30);
    let filed = folder.json(&[
        "predict",
        "model.softwood",
        "data.csv",
        "--json",
        "-o",
        "p.parquet",
    ]);
    assert_eq!(
        (&filed["file"], &filed["n_rows"]),
        (&"p.parquet".into(), &30.into())
    );
    assert!(folder.names().contains(&"p.parquet".to_owned()));
}

#[test]
fn tables_can_be_read_from_standard_input() {
    let folder = fitted(&regression(30), "y");
    let mut child = folder.command(&["predict", "model.softwood", "-"]);
    let table = std::fs::File::open(folder.path("data.csv")).unwrap();
    let output = child.stdin(table).output().unwrap();
    let direct = folder.run(&["predict", "model.softwood", "data.csv"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), direct.out);
}

#[test]
fn scores_as_text_and_json() {
    let folder = fitted(&regression(60), "y");
    let scores = &folder.json(&["score", "model.softwood", "data.csv", "--json"])["scores"];
    for name in [
        "log_likelihood",
        "log_likelihood_std",
        "rmse",
        "mae",
        "crps",
        "coverage_90",
        "prr_knowledge",
    ] {
        assert!(scores[name].is_number(), "{name}: {scores}");
    }
    let text = folder.run(&["score", "model.softwood", "data.csv"]).out;
    assert!(
        text.contains("log_likelihood") && text.contains("60 rows of data.csv"),
        "{text}"
    );
    assert!(text.contains("90% intervals cover"), "{text}");
    let folder = fitted(&classification(60), "kind");
    let scores = &folder.json(&["score", "model.softwood", "data.csv", "--json"])["scores"];
    for name in ["nll", "brier", "error", "auc", "ece"] {
        assert!(scores[name].is_number(), "{name}: {scores}");
    }
}

#[test]
fn evaluate_as_text_and_json() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let mut args = vec![
        "evaluate",
        "data.csv",
        "--target",
        "y",
        "--model",
        "vst",
        "--protocol",
        "cv:3",
    ];
    args.extend(QUICK);
    let text = folder.run(&args).out;
    assert!(
        text.contains("cv:3, 60 rows, seed 0: mean ± standard deviation over 3 folds")
            && text.contains(" ± "),
        "{text}"
    );
    args.push("--json");
    let report = folder.json(&args);
    let model = &report["models"][0];
    assert_eq!(model["folds"].as_array().unwrap().len(), 3);
    for name in [
        "log_likelihood",
        "log_likelihood_std",
        "rmse_std",
        "mae",
        "crps",
        "coverage_95",
        "calibration_error",
        "sharpness_90",
        "fit_seconds",
    ] {
        assert!(
            model["mean"][name].is_number() && model["sd"][name].is_number(),
            "{name}: {model}"
        );
    }
    assert!(model["folds"][0]["peak_rss_bytes"].is_number());
}

#[test]
fn evaluate_by_given_splits() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    let folds = "0\n1\n2\n3\n".repeat(15);
    folder.write("splits.csv", format!("fold\n{folds}"));
    let mut args = vec![
        "evaluate",
        "data.csv",
        "-t",
        "y",
        "--protocol",
        "splits:splits.csv",
        "--json",
    ];
    args.extend(QUICK);
    let report = folder.json(&args);
    assert_eq!(report["models"][0]["folds"].as_array().unwrap().len(), 4);
}

#[test]
fn a_validation_set_and_weights_can_be_given() {
    let folder = Folder::new();
    folder.write("data.csv", regression(60));
    folder.write("valid.csv", regression(25));
    let mut args = vec![
        "fit",
        "data.csv",
        "-t",
        "y",
        "--valid",
        "valid.csv",
        "--weight",
        "a",
        "--json",
    ];
    args.extend(QUICK);
    let report = folder.json(&args);
    assert_eq!(
        (&report["n_held_out_rows"], &report["n_numeric"]),
        (&25.into(), &0.into())
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = fitted(&regression(60), "y");
    folder.write("long.csv", regression(20_000));
    let mut command = folder.command(&["predict", "model.softwood", "long.csv"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stderr, b"");
}
