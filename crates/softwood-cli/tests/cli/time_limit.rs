//! `softwood fit --time-limit`: a fit that is stopped by the clock still writes a model.

use crate::folder::Folder;
use crate::regression;

#[test]
fn a_fit_that_runs_out_of_time_writes_the_best_model_so_far() {
    let folder = Folder::new();
    folder.write("data.csv", regression(120));
    for family in [
        "vst",
        "vsgbm",
        "vart",
        "sgb",
        "sglb",
        "forest",
        "tree",
        "ldt",
        "soft-tree",
        "rnn-tree",
        "gp",
        "gp-rnn-tree",
    ] {
        let args = [
            "fit",
            "data.csv",
            "-t",
            "y",
            "--model",
            family,
            "--time-limit",
            "1e-9",
            "--json",
        ];
        let report = folder.json(&args);
        assert_eq!(report["training"]["is_stopped"], true, "{family}");
        let notes = report["notes"].to_string();
        assert!(notes.contains("stopped by the time limit"), "{notes}");
        let scored = folder.json(&["score", "model.softwood", "data.csv", "--json"]);
        assert!(scored["scores"]["crps"].as_f64().unwrap().is_finite());
    }
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let folder = Folder::new();
    folder.write("data.csv", regression(120));
    let fit = |more: &[&str], output: &str| {
        let mut args = vec![
            "fit", "data.csv", "-t", "y", "--model", "tree", "-o", output,
        ];
        args.extend(more);
        let ran = folder.run(&args);
        assert_eq!(ran.code, 0, "{}", ran.err);
        folder.bytes(output)
    };
    let limited = fit(&["--time-limit", "3600"], "limited.softwood");
    assert!(limited == fit(&[], "unlimited.softwood"));
}

#[test]
fn a_time_limit_is_a_positive_number() {
    let folder = Folder::new();
    folder.write("data.csv", regression(120));
    for limit in ["0", "-1", "nan", "soon"] {
        let limit = format!("--time-limit={limit}");
        folder.assert_rejected(
            &["fit", "data.csv", "-t", "y", &limit],
            &["--time-limit", "positive number of seconds"],
        );
    }
}
