//! `softwood causal`: the report as text and JSON, the table of effects, policies, and errors.

use crate::folder::Folder;

/// `n` rows with the covariates `age` and `sex`; the drug adds 2 to the recovery, and older rows get
/// it more often and recover more slowly.
pub(crate) fn trial(n: usize) -> String {
    let row = |at: usize| {
        let age = at * 37 % 60;
        let drug = usize::from(at * 53 % 71 < age);
        let noise = (at * 61 % 17) as f64 / 17.0 - 0.5;
        let recovery = 30.0 - 0.2 * age as f64 + 2.0 * drug as f64 + noise;
        format!("{age},{},{drug},{recovery}\n", ["f", "m"][at % 2])
    };
    "age,sex,drug,recovery\n".to_owned() + &(0..n).map(row).collect::<String>()
}

const CAUSAL: [&str; 12] = [
    "causal",
    "trial.csv",
    "--treatment",
    "drug",
    "--outcome",
    "recovery",
    "--model",
    "tree",
    "--propensity",
    "tree",
    "--threads",
    "2",
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("trial.csv", trial(300));
    folder
}

#[test]
fn the_report_has_averages_rows_policy_and_overlap() {
    let folder = folder();
    let ran = folder.run(&[&CAUSAL[..], &["-o", "effects.csv"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in [
        "effect of drug (1 against 0) on recovery",
        "doubly-robust with tree, propensities by tree, 5 folds",
        "Average effect on these rows (90% interval)",
        "with an interval above 0",
        "Policy: treat where the effect exceeds 0",
        "Overlap",
        "effects of all rows: effects.csv",
    ] {
        assert!(ran.out.contains(part), "`{part}` is not in: {}", ran.out);
    }
    let effects = folder.text("effects.csv");
    assert!(
        effects.starts_with("effect,sd,lower,upper,propensity\n"),
        "{effects}"
    );
    assert_eq!(effects.lines().count(), 301);
}

#[test]
fn every_method_gives_the_effect_as_json() {
    let folder = folder();
    for method in ["single", "per-arm", "doubly-robust"] {
        let flags = ["--method", method, "--json", "--policy-cost", "1"];
        let report = folder.json(&[&CAUSAL[..], &flags].concat());
        let number = |part: &str, name: &str| report[part][name].as_f64().unwrap();
        let mean = number("average_effect", "mean");
        assert!((mean - 2.0).abs() < 0.7, "{method}: {mean}");
        assert!(
            report["naive_difference"].as_f64().unwrap() < 0.5,
            "{report}"
        );
        assert!(number("average_effect", "lower") < mean, "{report}");
        assert_eq!(report["method"], method);
        assert_eq!(
            report["overlap"]["n_treated"].as_u64().unwrap()
                + report["overlap"]["n_control"].as_u64().unwrap(),
            300
        );
        // treating every row gains 1; trees do not split on the treatment everywhere
        assert!(number("policy", "share_treated") > 0.5, "{report}");
        let gain = report["policy"]["gain"]["mean"].as_f64().unwrap();
        assert!((0.5..1.3).contains(&gain), "{method}: {gain}");
        assert_eq!(report["policy"]["cost"], 1.0);
    }
}

#[test]
fn a_column_of_decisions_is_valued_and_is_no_covariate() {
    let folder = folder();
    let table = trial(300);
    let cells = ["plan"].into_iter().chain(["1", "0"].into_iter().cycle());
    let lines = table.lines().zip(cells);
    let with_policy: Vec<String> = lines.map(|(line, cell)| format!("{line},{cell}")).collect();
    folder.write("trial.csv", with_policy.join("\n"));
    let report = folder.json(&[&CAUSAL[..], &["--policy", "plan", "--json"]].concat());
    assert_eq!(report["policy"]["share_treated"], 0.5);
    let gain = report["policy"]["gain"]["mean"].as_f64().unwrap();
    assert!((gain - 1.0).abs() < 0.4, "{gain}");
    folder.write("trial.csv", trial(300));
    folder.assert_rejected(
        &[&CAUSAL[..], &["--policy", "age"]].concat(),
        &["column `age`, row 2", "1 (treat) or 0"],
    );
}

#[test]
fn the_seed_decides_and_the_threads_do_not() {
    let folder = folder();
    let run = |flags: &[&str]| {
        let mut report = folder.json(&[&CAUSAL[..10], &["--json"], flags].concat());
        report["seconds"] = 0.into();
        report
    };
    let one = run(&["--threads", "1"]);
    assert_eq!(one, run(&["--threads", "2"]));
    assert_ne!(one, run(&["--threads", "2", "--seed", "1"]));
}

#[test]
fn effects_can_go_to_standard_output() {
    let folder = folder();
    let ran = folder.run(&[&CAUSAL[..], &["-o", "-"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.starts_with("effect,sd,lower,upper,propensity\n"),
        "{}",
        ran.out
    );
    assert_eq!(ran.out.lines().count(), 301);
    folder.assert_rejected(
        &[&CAUSAL[..], &["-o", "-", "--json"]].concat(),
        &["both write to standard output"],
    );
}

#[test]
fn mistakes_are_named() {
    let folder = folder();
    folder.write("constant.csv", trial(300).replace(",1,", ",0,"));
    folder.write("hole.csv", "a,drug,recovery\n1,0,1\n2,1,\n3,0,1\n");
    let command = |data: &'static str, treatment: &'static str, outcome: &'static str| {
        vec![
            "causal",
            data,
            "--treatment",
            treatment,
            "--outcome",
            outcome,
            "--model",
            "tree",
        ]
    };
    for (args, parts) in [
        (
            command("trial.csv", "drgu", "recovery"),
            ["column `drgu`", "did you mean"],
        ),
        (
            command("trial.csv", "age", "recovery"),
            ["column `age`", "60 levels"],
        ),
        (
            command("trial.csv", "drug", "drug"),
            ["column `drug`", "both the treatment and the outcome"],
        ),
        (
            command("trial.csv", "drug", "sex"),
            ["column `sex`", "number"],
        ),
        (
            command("constant.csv", "drug", "recovery"),
            ["column `drug`", "all rows have the level `0`"],
        ),
        (
            command("hole.csv", "drug", "recovery"),
            ["column `recovery`, row 2", "outcome is missing"],
        ),
    ] {
        folder.assert_rejected(&args, &parts);
    }
    for (flags, part) in [
        (["--method", "magic"], "doubly-robust"),
        (["--level", "2"], "between 0 and 1"),
        (["--propensity", "gp"], "predicts numbers only"),
        (["--model", "catboost"], "sgb"),
        (["-o", "trial.csv"], "overwrite an input file"),
        (["--policy-cost", "much"], "expected a number"),
    ] {
        let mut args = command("trial.csv", "drug", "recovery");
        args.retain(|word| flags[0] != "--model" || !["--model", "tree"].contains(word));
        args.extend(flags);
        folder.assert_rejected(&args, &[part]);
    }
}
