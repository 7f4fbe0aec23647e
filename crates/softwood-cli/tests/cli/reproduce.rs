//! `softwood reproduce`: the list, a small table from start to end, continued runs, missing data, and
//! its errors.

use serde_json::Value;

use crate::folder::{Folder, Ran};
use crate::{classification, regression};

/// A table of two regression sets, of which one is missing, and one classification set.
const TABLE: &str = r#"
name = "tiny"
paper = "vst"
place = "table 0"
title = "scores of tiny sets"
kind = "scores"
protocol = "splits"
rule = "overlap"
pairs = "paired-t"
notes = ["Made for a test."]

[quick]
splits = 1

[[metric]]
name = "MAE"
score = "mae"
scale = "target-half-range"
digits = 3

[[metric]]
name = "accuracy"
score = "error"
offset = 100
factor = -100
unit = "%"
higher_is_better = true
digits = 1

[[set]]
name = "line"
file = "line"
splits = "folds"
rows = 60

[[set]]
name = "absent"
file = "nowhere/absent"
rows = 10
source = "the moon"

[[set]]
name = "kinds"
file = "kinds"
splits = "folds"
rows = 60
task = "classification"

[[model]]
name = "tree"
family = "tree"
rows = ["good", "bad"]

[[model]]
name = "forest"
family = "forest"
params = { n_estimators = 20, n_members = 2 }
quick = { n_estimators = 10 }
rows = ["good"]

[[row]]
name = "good"
[row.figures.MAE]
line = [0.0001, 0.0]
absent = 1
[row.figures.accuracy]
kinds = [10.0, 1.0]

[[row]]
name = "bad"
[row.figures.MAE]
line = [0.9, 0.01]
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    let target = |table: String, name: &str| table.replacen(name, "target", 1);
    folder.write("data/line.csv", target(regression(60), "y"));
    folder.write("data/kinds.csv", target(classification(60), "kind"));
    folder.write(
        "data/folds.csv",
        format!("fold\n{}", "0\n1\n2\n".repeat(20)),
    );
    folder.write("tiny.toml", TABLE);
    folder
}

const RUN: [&str; 5] = ["reproduce", "--table", "tiny.toml", "--data", "data"];

fn json(folder: &Folder, more: &[&str]) -> Value {
    folder.json(&[&RUN[..], more, &["--json"]].concat())["tables"][0].clone()
}

/// Runs the program without the variable of the data directory.
fn without_variable(folder: &Folder, args: &[&str]) -> Ran {
    let mut command = folder.command(args);
    Ran::from(command.env_remove("SOFTWOOD_DATA").output().unwrap())
}

#[test]
fn the_list_of_tables_and_figures() {
    let ran = without_variable(&Folder::new(), &["reproduce"]);
    insta::assert_snapshot!(ran.out, @r"
    Cinquin, Rukat, Schmidt, Wistuba & Bekasov 2023, Variational Boosted Soft Trees
      vst-1              table 1         mean log-likelihood per test row, standardised target
                                         gal: power, protein, boston, naval, yacht, year, concrete, energy, kin8nm, wine
      vst-2              table 2         AUROC of out-of-domain detection by knowledge uncertainty
                                         gal: power, protein, boston, naval, yacht, year, concrete, energy, kin8nm, wine
                                         ood: year_head
      vst-3              table 3         cumulative regret of Thompson sampling, five seeds, as a share of that of random choices
                                         bandit: financial, mushroom, jester
      vst-6              table 6         RMSE of the test rows, standardised target
                                         gal: power, protein, boston, naval, yacht, year, concrete, energy, kin8nm, wine
      -                  tables 4 and 5  sizes of the sets, ranges of hyperparameters: no results
      vst-figure-2       figure 2        predictive distributions where there are no rows
                                         The rows are those of `softwood demo`: those of the paper are not known.
      vst-figure-3       figure 3        out-of-domain detection against the rank of the posterior covariance
                                         gal: boston, yacht, concrete, energy
                                         ood: year_head
      vst-figure-4       figure 4        scores of a variational soft tree against its depth
                                         The content of this figure of the paper is not known to us: the sweep is our reading.
                                         gal: boston, yacht, concrete, energy
      vst-figure-5       figure 5        scores of boosted variational soft trees against the number of trees
                                         The content of this figure of the paper is not known to us: the sweep is our reading.
                                         gal: boston, yacht, concrete, energy
      vst-figure-6       figure 6        cumulative regret of agents on the exploration problem
                                         The content of the figure of the paper is not known to us: curves of regret are our reading.
      vst-figure-7       figure 7        scores of a variational soft tree against the sharpness of its gates
                                         The content of this figure of the paper is not known to us: the sweep is our reading.
                                         gal: boston, yacht, concrete, energy

    Malinin, Prokhorenkova & Ustimenko 2021, Uncertainty in Gradient Boosting via Ensembles
      malinin-1          table 1         prediction rejection ratio and AUROC of out-of-domain detection
                                         class: adult, amazon, click, internet, kdd_appetency, kdd_churn, kdd_upselling, kick
                                         gal: boston, concrete, energy, kin8nm, naval, power, protein, wine, yacht, year
                                         ood: year_head
      malinin-2          table 2         RMSE and negative log-likelihood, raw targets
                                         gal: boston, concrete, energy, kin8nm, naval, power, protein, wine, yacht, year
      malinin-4          table 4         negative log-likelihood and error rate or RMSE
                                         class: adult, amazon, click, internet, kdd_appetency, kdd_churn, kdd_upselling, kick
                                         gal: boston, concrete, energy, kin8nm, naval, power, protein, wine, yacht, year
      malinin-5          table 5         SGLB and random forests: negative log-likelihood and error rate
                                         class: adult, amazon, click, internet, kdd_appetency, kdd_churn, kdd_upselling, kick
      malinin-6          table 6         SGLB and random forests: RMSE, raw targets
                                         gal: boston, concrete, energy, kin8nm, naval, power, protein, wine, yacht, year
      malinin-7          table 7         virtual and true ensembles of SGLB and random forests: PRR and AUROC
                                         class: adult, amazon, click, internet, kdd_appetency, kdd_churn, kdd_upselling, kick
                                         gal: boston, concrete, energy, kin8nm, power, protein, wine, yacht, year
                                         ood: year_head
      -                  table 3         sizes of the sets: no results
      malinin-heart      figures 2 to 4  uncertainty of an sglb ensemble around a heart without rows
      malinin-spiral     figures 2 to 4  uncertainty of an sglb ensemble on three spirals
      malinin-virtual    figures 2 to 4  knowledge uncertainty of true and virtual ensembles on three spirals
                                         The comparison with a virtual ensemble and a forest on these rows is our choice.

    Irsoy, Yildiz & Alpaydin 2012, Soft Decision Trees
      irsoy-1            table 1         mean squared error of the standardised target, and number of nodes
                                         irsoy: abalone, add10, boston, california, comp, concrete, puma8fh, puma8fm, puma8nh, puma8nm
      irsoy-2            table 2         accuracy, and number of nodes
                                         irsoy: breast, german, magic, musk2, pima, polyadenylation, ringnorm, satellite47, spambase, twonorm
      irsoy-figure-3     figure 3        a soft tree grows on a sinusoid
                                         Rows and sizes of the trees are ours, and the leaves are linear in x; those of the paper are constant.

    Salazar 2023, VaRT: Variational Regression Trees
      vart-1             table 1         average treatment effect on IHDP, truth 4
                                         causal: ihdp
      vart-2             table 2         RMSE of single draws of the posterior, target scaled to [0, 1]
                                         evans: autompg, concreteslump, forest, solar, stock, yacht, airfoil, autos, breastcancer, concrete, fertility, housing, machine, pendulum, servo, skillcraft, sml, wine
      vart-a             table A         mean absolute error of a target scaled to [-1, 1]
                                         evans: autompg, concreteslump, forest, solar, stock, yacht, airfoil, autos, breastcancer, concrete, fertility, housing, machine, pendulum, servo, skillcraft, sml, wine
      vart-b             table B         mean absolute error of a target scaled to [-1, 1], large sets
                                         evans: tamielectric, kin40k
      vart-figure-5      figure 5        effect of a treatment when treated and control rows overlap little
      vart-figure-6      figure 6        effect of a treatment when treated and control rows overlap well
      vart-figure-a      figure A        posterior over the number of leaves of a variational regression tree
                                         The tree that the rows come from is ours.

    Antoran, Yao, Pan, Hernandez-Lobato & Doshi-Velez 2020, Amortised Variational Inference for Hierarchical Mixture Models
      rnn-tree-1         table 1         error rate, and mean squared error of the standardised target
                                         sklearn: iris, wine, diabetes, digits, breast_cancer
                                         gal: boston
      rnn-tree-figure-2  figure 2        a Gaussian process whose noise is a tree
      rnn-tree-figure-3  figure 3        trees of depth 3 on a pulse of eight levels
                                         The levels of the pulse are ours.
      rnn-tree-figure-4  figure 4        error on the pulse of eight levels against depth
                                         What the figure of the paper shows beside the pulse is not known to us: this sweep is our reading.
      rnn-tree-figure-5  figure 5        parity of eight bits: accuracy against noise
                                         The noise levels and the number of rows are ours.

    Run tables with `softwood reproduce NAME... --data DIR`; `all` runs every table, --quick a part of each.
    Draw figures with `softwood reproduce NAME... -o DIR`; `figures` draws every figure.
    With --data DIR or the variable SOFTWOOD_DATA, this list says which sets are there.
    ");
}

#[test]
fn the_list_says_which_sets_are_there() {
    let folder = folder();
    std::fs::create_dir(folder.path("data/gal")).unwrap();
    folder.write("data/gal/boston.csv", "a,target\n1,2\n");
    let listing = folder.json(&["reproduce", "--data", "data", "--json"]);
    let first = &listing["papers"][0]["items"][0];
    assert_eq!(
        (&first["name"], &first["n_found"]),
        (&"vst-1".into(), &1.into())
    );
}

#[test]
fn ours_stand_beside_the_papers_in_its_units() {
    let folder = folder();
    let table = json(&folder, &[]);
    let metrics = table["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 2, "{table}");
    let tree = &metrics[0]["models"][0];
    let line = &tree["sets"][0];
    assert_eq!(tree["sets"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&line["set"], &line["n_splits"]),
        (&"line".into(), &3.into())
    );
    // the better one of both rows counts
    assert_eq!(line["paper"]["row"], "good");
    assert_eq!(line["paper"]["mark"], "loss");
    let accuracy = &metrics[1]["models"][0];
    let mean = accuracy["sets"][0]["mean"].as_f64().unwrap();
    assert!((50.0..=100.0).contains(&mean), "{accuracy}");
    let counts = serde_json::json!({ "wins": 1, "ties": 0, "losses": 0 });
    assert_eq!(accuracy["counts"], counts);
    assert_eq!(table["pairs"].as_array().unwrap().len(), 2);
}

#[test]
fn scores_are_those_of_evaluate() {
    let folder = folder();
    let table = json(&folder, &["--models", "tree", "--threads", "1"]);
    let found = table["metrics"][0]["models"][0]["sets"][0]["mean"].as_f64();
    let report = folder.json(&[
        "evaluate",
        "data/line.csv",
        "--target",
        "target",
        "--model",
        "tree",
        "--protocol",
        "splits:data/folds.csv",
        "--json",
    ]);
    let mae = report["models"][0]["mean"]["mae"].as_f64().unwrap();
    let targets = folder.text("data/line.csv");
    let targets = targets
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap());
    let mut targets: Vec<f64> = targets.map(|cell| cell.parse().unwrap()).collect();
    targets.sort_by(f64::total_cmp);
    let half_range = 0.5 * (targets[targets.len() - 1] - targets[0]);
    assert!((found.unwrap() - mae / half_range).abs() < 1e-12);
}

#[test]
fn missing_data_are_a_line_that_says_what_to_do() {
    let folder = folder();
    let ran = folder.run(&RUN);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for part in [
        "absent: there is no table `nowhere/absent`",
        "`softwood reproduce tiny --data DIR` runs the set",
        "Source: the moon",
        "Note: Made for a test.",
        "MAE (lower is better)",
        "accuracy in % (higher is better)",
    ] {
        assert!(ran.out.contains(part), "`{part}` is not in: {}", ran.out);
    }
}

#[test]
fn an_interrupted_run_continues_where_it_stopped() {
    let folder = folder();
    let output = ["-o", "out", "--models", "tree"];
    let whole = json(&folder, &output);
    let cells = folder.text("out/cells.jsonl");
    assert_eq!((cells.lines().count(), &whole["n_found"]), (6, &0.into()));
    // one cell is left, with a value that no fit would give
    let first = cells.lines().next().unwrap();
    let mut cell: Value = serde_json::from_str(first).unwrap();
    cell["values"]["mae"] = 1e6.into();
    folder.write("out/cells.jsonl", format!("{cell}\n{{\"table\": \"ti"));
    let again = json(&folder, &output);
    assert_eq!(again["n_found"], 1);
    let mean = again["metrics"][0]["models"][0]["sets"][0]["mean"].as_f64();
    assert!(mean.unwrap() > 1e3, "{again}");
    // another seed and other parameters are other cells
    let other = json(&folder, &[&output[..], &["--seed", "7"]].concat());
    assert_eq!(other["n_found"], 0);
}

#[test]
fn tables_of_one_protocol_share_their_cells() {
    let folder = folder();
    let output = ["-o", "out", "--models", "tree"];
    json(&folder, &output);
    let names = "name = \"other\"\ncells_of = \"tiny\"";
    folder.write("other.toml", TABLE.replacen("name = \"tiny\"", names, 1));
    let args = [
        "reproduce",
        "--table",
        "other.toml",
        "--data",
        "data",
        "--json",
    ];
    let other = folder.json(&[&args[..], &output].concat());
    assert_eq!(other["tables"][0]["n_found"], 6, "{other}");
}

#[test]
fn the_output_directory_has_the_report_as_markdown_and_json() {
    let folder = folder();
    let ran = folder.run(&[&RUN[..], &["-o", "out", "--quick"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("Written: out/results.md"), "{}", ran.out);
    let page = folder.text("out/results.md");
    for part in [
        "a quick run",
        "at most 1 splits of a set",
        "forest n_members=2 n_estimators=10",
        "| set | splits | ours | good or bad | mark | best of the paper | row | mark |",
        "| line | 1 | ",
    ] {
        assert!(page.contains(part), "`{part}` is not in: {page}");
    }
    let report: Value = serde_json::from_str(&folder.text("out/results.json")).unwrap();
    assert_eq!(report["quick"], true);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let folder = folder();
    let numbers = |threads: &str| {
        let table = json(&folder, &["--threads", threads]);
        table["metrics"].to_string()
    };
    assert_eq!(numbers("1"), numbers("3"));
}

#[test]
fn other_families_run_beside_the_paper() {
    let folder = folder();
    let table = json(&folder, &["--models", "ldt", "--quick"]);
    let ldt = &table["metrics"][0]["models"][0];
    assert_eq!(
        (&ldt["model"], &ldt["rows"]),
        (&"ldt".into(), &serde_json::json!([]))
    );
    assert_eq!(ldt["sets"][0]["paper"], Value::Null);
    assert_eq!(ldt["sets"][0]["best"]["row"], "good");
}

#[test]
fn wrong_names_have_a_suggestion() {
    let folder = folder();
    folder.assert_rejected(&["reproduce", "vst1"], &["vst1", "similar", "vst-1"]);
    folder.assert_rejected(
        &[&RUN[..], &["--models", "trees"]].concat(),
        &["no model is called `trees`", "`tree`"],
    );
}

#[test]
fn the_data_directory_must_be_given_and_exist() {
    let folder = folder();
    let ran = without_variable(&folder, &["reproduce", "vst-1"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("--data DIR"), "{}", ran.err);
    folder.assert_rejected(
        &["reproduce", "vst-1", "--data", "nope"],
        &["nope", "directory"],
    );
}

/// A table of regret and one of average effects.
const DECISIONS: [(&str, &str); 2] = [
    (
        "regret.toml",
        r#"
name = "regret"
paper = "vst"
place = "table 0"
title = "regret"
kind = "bandit"
protocol = "seeds"
repeats = 2
rule = "overlap"
quick = { steps = 120 }
metric = [{ name = "regret", score = "regret_share", digits = 3 }]
set = [{ name = "exploration", rows = 120 }, { name = "mushroom", file = "bandit/mushroom", rows = 10 }]
model = [{ name = "tree", family = "tree", rows = ["good"] }]

[[row]]
name = "good"
[row.figures.regret]
exploration = [9.9, 0.0]
"#,
    ),
    (
        "effects.toml",
        r#"
name = "effects"
paper = "vart"
place = "table 0"
title = "effects"
kind = "effects"
protocol = "runs"
repeats = 2
rule = "mean"
metric = [{ name = "effect", score = "effect", truth = 4.0, digits = 2 }]
set = [{ name = "linear", file = "trial", rows = 80 }]
model = [{ name = "tree", family = "tree", rows = ["bad"] }]

[[row]]
name = "bad"
[row.figures.effect]
linear = -90.0
"#,
    ),
];

#[test]
fn tables_of_regret_and_effects_are_run() {
    let folder = folder();
    let row = |row: usize| format!("{},{},{},0\n", row % 7, row % 5, row % 2);
    let rows: String = (0..80).map(row).collect();
    folder.write("data/trial.csv", format!("a,b,treatment,target\n{rows}"));
    for (name, text) in DECISIONS {
        folder.write(name, text);
        let args = [
            "reproduce",
            "--table",
            name,
            "--data",
            "data",
            "--quick",
            "--json",
        ];
        let table = folder.json(&args)["tables"][0].clone();
        let compared = &table["metrics"][0]["models"][0];
        assert_eq!(compared["counts"]["wins"], 1, "{table}");
        assert_eq!(compared["sets"][0]["n_splits"], 2);
        let n_missing = table["missing"].as_array().unwrap().len();
        assert_eq!(n_missing, usize::from(name == "regret.toml"));
    }
}

#[test]
fn figures_are_drawn_without_data_into_one_gallery() {
    let folder = Folder::new();
    let draw = ["reproduce", "rnn-tree-figure-3", "--quick"];
    folder.assert_rejected(&draw, &["rnn-tree-figure-3", "--output"]);
    let args = [&draw[..], &["-o", "out"]].concat();
    let ran = without_variable(&folder, &args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for file in ["rnn-tree-figure-3.svg", "gallery.md"] {
        let written = format!("Written: out/{file}");
        assert!(ran.out.contains(&written), "{}", ran.out);
    }
    let svg = folder.text("out/rnn-tree-figure-3.svg");
    assert!(svg.contains("squared error") && svg.ends_with("</svg>\n"));
    // another run adds to the gallery, and stands before the first in the order of the figures
    let ran = without_variable(&folder, &["reproduce", "irsoy-figure-3", "-o", "out"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = folder.text("out/gallery.md");
    let place = |part: &str| {
        page.find(part)
            .unwrap_or_else(|| panic!("`{part}`: {page}"))
    };
    let (first, second) = (
        place("## A soft tree grows on a sinusoid"),
        place("## Trees of depth 3"),
    );
    assert!(first < second);
    for part in [
        "![Trees of depth 3 on a pulse of eight levels](rnn-tree-figure-3.svg)",
        "`softwood reproduce rnn-tree-figure-3 --quick -o DIR`",
        "Antoran, Yao, Pan, Hernandez-Lobato & Doshi-Velez 2020",
        "seed 0",
        std::env::consts::ARCH,
    ] {
        place(part);
    }
    assert!(!folder.path("out/results.md").exists());
}

#[test]
fn options_of_tables_are_refused_for_figures() {
    let folder = Folder::new();
    for option in [["--splits", "2"], ["--models", "vst"]] {
        let args = ["reproduce", "irsoy-figure-3", "-o", "out"];
        folder.assert_rejected(&[&args[..], &option].concat(), &["only figures are named"]);
    }
}

#[test]
fn a_figure_whose_data_are_missing_names_the_table() {
    let folder = folder();
    let args = ["reproduce", "vst-figure-4", "-o", "out", "--data", "data"];
    folder.assert_rejected(&args, &["vst-figure-4", "gal/boston", "--data DIR"]);
}

#[test]
fn a_figure_of_scores_is_drawn_from_the_data() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("data/gal")).unwrap();
    for set in ["boston", "yacht", "concrete", "energy"] {
        let table = regression(60).replacen('y', "target", 1);
        folder.write(&format!("data/gal/{set}.csv"), table);
    }
    let args = ["reproduce", "vst-figure-5", "--data", "data", "--quick"];
    let ran = folder.run(&[&args[..], &["-o", "out"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let svg = folder.text("out/vst-figure-5.svg");
    assert!(svg.contains(">boston<") && svg.contains(">number of trees<"));
}
