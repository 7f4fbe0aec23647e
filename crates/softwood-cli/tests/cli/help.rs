//! Help texts: their examples work as printed; lists that should only change deliberately.

use crate::folder::{Folder, QUICK};

const COMMANDS: [&str; 11] = [
    "fit",
    "predict",
    "score",
    "evaluate",
    "ood",
    "bandit",
    "causal",
    "explain",
    "models",
    "reproduce",
    "demo",
];

/// The commands below `Example:` of a help text.
fn examples(help: &str) -> Vec<String> {
    let (_, below) = help
        .split_once("Example:\n")
        .expect("every help text ends with an example");
    below
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

fn houses(n: usize) -> String {
    let row = |at: usize| {
        let (area, rooms) = (40 + at * 53 % 160, 1 + at % 5);
        let price = 3 * area + 20 * rooms + at * 31 % 13;
        format!("{area},{rooms},{},{price}\n", ["north", "south"][at % 2])
    };
    "area,rooms,side,price\n".to_owned() + &(0..n).map(row).collect::<String>()
}

#[test]
fn examples_work_as_printed() {
    let folder = Folder::new();
    folder.write("train.csv", houses(60));
    folder.write("test.csv", houses(20));
    folder.write("trial.csv", crate::causal::trial(60));
    folder.write(
        "other_rows.csv",
        "side,rooms,area\nnorth,40,9000\nsouth,77,12000\n",
    );
    for command in COMMANDS.into_iter().filter(|command| *command != "demo") {
        for example in examples(&folder.run(&[command, "--help"]).out) {
            let mut words = example.split_whitespace();
            assert_eq!(words.next(), Some("softwood"), "{example}");
            let ran = folder.run(&words.collect::<Vec<_>>());
            assert_eq!(ran.code, 0, "{example}: {}", ran.err);
        }
    }
    assert!(folder.names().contains(&"predictions.csv".to_owned()));
}

#[test]
fn every_help_text_ends_with_an_example_of_its_command() {
    let folder = Folder::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let ran = folder.run(&[command, flag]);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""));
            let start = format!("softwood {command}");
            assert!(
                examples(&ran.out)
                    .iter()
                    .all(|example| example.starts_with(&start)),
                "{}",
                ran.out
            );
        }
    }
    assert_eq!(examples(&folder.run(&["--help"]).out), ["softwood demo"]);
}

#[test]
fn without_arguments_help_is_shown_and_unknown_commands_are_rejected() {
    let folder = Folder::new();
    let ran = folder.run(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("evaluate"), "{}", ran.err);
    folder.assert_rejected(&["fti"], &["fti"]);
    assert!(folder.run(&["--version"]).out.starts_with("softwood "));
}

#[test]
fn both_kinds_of_uncertainty_have_their_usual_names() {
    let folder = Folder::new();
    for command in ["", "predict", "ood", "demo"] {
        let args: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|arg| !arg.is_empty())
            .collect();
        let help = folder.run(&args).out;
        for word in ["data", "aleatoric", "knowledge", "epistemic"] {
            assert!(help.contains(word), "{word}: {help}");
        }
    }
}

#[test]
fn the_list_of_models() {
    insta::assert_snapshot!(Folder::new().run(&["models"]).out, @r"
    vst          variational soft tree: one soft tree with a Gaussian posterior over all weights
    vsgbm        boosted variational soft trees: a sum of soft trees with a posterior over all weights
    sgb          stochastic gradient boosting: an ensemble of boosted hard trees, one per seed
    sglb         Langevin boosting: boosted hard trees whose ensemble members are posterior samples
    forest       random forest: bagged hard trees; groups of trees act as ensemble members
    vart         variational regression tree: one soft tree with a posterior over its structure and all weights
    soft-tree    incremental soft tree: one soft tree that grows while the validation error falls
    tree         classification or regression tree: one hard tree, pruned by cross-validation
    ldt          linear discriminant tree: one hard tree whose splits are linear in all columns, pruned on validation rows
    rnn-tree     RNN-Tree: decision trees that a recurrent network writes, optimised as a whole
    gp           Gaussian process: a distribution over smooth functions, exact or with inducing points; regression only
    gp-rnn-tree  Gaussian process with tree-shaped noise: a recurrent network writes the tree of the noise; regression only

    `softwood models NAME` lists the parameters of a model, `softwood models FILE` describes a model file.
    ");
}

#[test]
fn parameters_are_listed_with_default_range_and_description() {
    let folder = Folder::new();
    let text = folder.run(&["models", "vst"]).out;
    let report = folder.json(&["models", "vst", "--json"]);
    for spec in report["parameters"].as_array().unwrap() {
        for key in ["name", "doc"] {
            assert!(text.contains(spec[key].as_str().unwrap()), "{spec}");
        }
    }
    for part in [
        "max_depth = auto",
        "integer, 0 to 8, or auto",
        "mixture, blend, hybrid",
    ] {
        assert!(text.contains(part), "{text}");
    }
    for pair in QUICK.iter().filter(|word| **word != "-p") {
        let (name, _) = pair.split_once('=').unwrap();
        assert!(text.contains(&format!("\n  {name} = ")), "{name}");
    }
    assert_eq!(folder.json(&["models", "--json"])[0]["model"], "vst");
}
