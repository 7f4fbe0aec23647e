//! `softwood demo`: its files, its report, and the commands it prints.

use crate::folder::{Folder, QUICK};

#[test]
fn the_demo_writes_its_files_and_its_commands_work() {
    let folder = Folder::new();
    let mut args = vec!["demo", "--out", "my demo"];
    args.extend(QUICK);
    let ran = folder.run(&args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for part in [
        "log-likelihood",
        "RMSE",
        "CRPS",
        "coverage of 90% intervals",
        "share of knowledge uncertainty",
        "no training rows nearby",
        "90% intervals cover",
        "data (aleatoric) uncertainty",
    ] {
        assert!(ran.out.contains(part), "{}", ran.out);
    }
    assert!(folder.text("my demo/demo.svg").ends_with("</svg>\n"));
    let (_, next) = ran.out.split_once("Next:\n").unwrap();
    assert_eq!(next.lines().count(), 5, "{next}");
    for line in next.lines() {
        run_line(&folder, line.trim());
    }
}

/// Runs a printed command in a shell; commands that fit a model get fast parameters.
fn run_line(folder: &Folder, line: &str) {
    let fits = line.contains(" fit ") || line.contains(" evaluate ");
    let quick = if fits { QUICK.join(" ") } else { String::new() };
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &format!("{line} {quick}")])
        .current_dir(folder.path("."));
    let output = shell.output().unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_demo_as_json() {
    let folder = Folder::new();
    let mut args = vec!["demo", "--json"];
    args.extend(QUICK);
    let report = folder.json(&args);
    for region in ["inside", "outside"] {
        assert!(report[region]["scores"]["crps"].is_number(), "{report}");
        let share = report[region]["knowledge_share"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
    assert_eq!(report["files"].as_array().unwrap().len(), 5);
}

#[test]
fn a_directory_that_cannot_be_created_is_rejected() {
    let folder = Folder::new();
    folder.write("file", "");
    folder.assert_rejected(&["demo", "--out", "file/demo"], &["file/demo"]);
}
