//! `softwood bandit`: report, plot, own tables, mistakes.

use crate::folder::Folder;

#[test]
fn agents_are_compared_on_a_public_problem() {
    let folder = Folder::new();
    let flags = ["--steps", "400", "--seeds", "2", "--svg", "regret.svg"];
    let mut args = vec!["bandit", "exploration", "--agent", "linear,uniform"];
    args.extend(flags);
    let ran = folder.run(&args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for part in [
        "20 arms, 400 steps, 2 seeds",
        "linear",
        "uniform",
        "of random",
    ] {
        assert!(ran.out.contains(part), "{}", ran.out);
    }
    let svg = String::from_utf8(folder.bytes("regret.svg")).unwrap();
    assert!(svg.contains("cumulative regret") && svg.contains("uniform"));

    args.push("--json");
    let report = folder.json(&args);
    let agents = report["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 2);
    assert_eq!(agents[0]["regrets"].as_array().unwrap().len(), 2);
    // the two seeds differ, and the second run prints the same figures
    assert_ne!(agents[1]["regrets"][0], agents[1]["regrets"][1]);
    let again = folder.json(&args);
    assert_eq!(again["agents"][0]["regrets"], agents[0]["regrets"]);
}

#[test]
fn warm_starts_are_a_flag_with_an_optional_value() {
    let folder = Folder::new();
    for flag in ["--warm-start", "--warm-start=false"] {
        let agent = ["--agent", "linear", "--steps", "100", "--seeds", "1"];
        let ran = folder.run(&[&["bandit", flag, "exploration"], &agent[..]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }
}

#[test]
fn a_table_of_rewards_is_a_problem() {
    let folder = Folder::new();
    let row = |row: i32| {
        let x = f64::from(row % 20) / 10.0 - 1.0;
        format!("{x},0,{x},{}", if x > 0.0 { "go" } else { "stay" })
    };
    let rows: Vec<String> = (0..60).map(row).collect();
    folder.write("own.csv", format!("x,stay,go,best\n{}", rows.join("\n")));
    let args = [
        "bandit", "own.csv", "--agent", "linear", "--seeds", "1", "--json",
    ];
    let with = |flags: &[&'static str]| folder.json(&[&args[..], flags].concat());
    let report = with(&["--rewards", "stay,go"]);
    assert_eq!(report["problem"], "own");
    assert_eq!(report["n_steps"], 60);
    let report = with(&["--classes", "best", "--steps", "50"]);
    assert_eq!(report["arms"], serde_json::json!(["go", "stay"]));
    assert_eq!(report["n_steps"], 50);
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new();
    folder.write("own.csv", "x,a,b\n1,0,1\n2,1,x\n");
    for (args, part) in [
        (&["bandit", "mushroms"][..], "did you mean `mushroom`"),
        (&["bandit", "own.csv"], "--rewards"),
        (&["bandit", "own.csv", "--rewards", "a,b"], "column `b`"),
        (&["bandit", "own.csv", "--rewards", "a"], "two arms"),
        (
            &["bandit", "exploration", "--agent", "vxt"],
            "no agent is called `vxt`",
        ),
        (
            &["bandit", "exploration", "--agent", "linear", "-p", "foo=1"],
            "none of the agents has parameters",
        ),
        (&["bandit", "exploration", "--epsilon", "7"], "--epsilon"),
        (
            &["bandit", "mushroom", "--data", "none"],
            "mushroom.parquet",
        ),
        (
            &[
                "bandit",
                "exploration",
                "--refit-growth",
                "0.5",
                "--steps",
                "50",
            ],
            "refit_growth",
        ),
    ] {
        let ran = folder.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{args:?}: {}", ran.err);
    }
}
