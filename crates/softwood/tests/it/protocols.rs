//! Evaluation protocols: the rows of each split, and the report of an evaluation.

use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::json;
use softwood::evaluate::{Protocol, Split, evaluate};
use softwood::observer::{Event, NoObserver, Observer, Stop};
use softwood::{Column, Dataset, Error, Family, ModelSpec, Pool, Roles, Table};

fn data(n_rows: usize) -> Dataset {
    let x: Vec<f64> = (0..n_rows).map(|row| row as f64 / n_rows as f64).collect();
    let y = x
        .iter()
        .enumerate()
        .map(|(row, x)| 3.0 * x + (row % 7) as f64)
        .collect();
    let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap();
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(&table, &roles).unwrap()
}

fn splits(protocol: &str, n_rows: usize, seed: u64) -> Vec<Split> {
    Protocol::parse(protocol)
        .unwrap()
        .splits(&data(n_rows), seed, None)
        .unwrap()
}

fn splits_of_file(columns: Vec<Column>) -> Result<Vec<Split>, Error> {
    let table = Table::new(columns).unwrap();
    let n_rows = table.n_rows();
    Protocol::Splits(PathBuf::from("splits.csv")).splits(&data(n_rows), 0, Some(&table))
}

/// All rows of a split, sorted.
fn rows_of(split: &Split) -> Vec<usize> {
    let mut rows = [&split.train[..], &split.held_out, &split.test].concat();
    rows.sort_unstable();
    rows
}

fn all_rows(n_rows: usize) -> Vec<usize> {
    (0..n_rows).collect()
}

#[test]
fn more_folds_than_rows_are_rejected_before_memory_is_allocated_for_them() {
    for protocol in [
        "cv:31",
        "cv:18446744073709551615",
        "paper:0.2,4000000000000",
    ] {
        let found = Protocol::parse(protocol)
            .unwrap()
            .splits(&data(30), 0, None);
        let message = found.unwrap_err().to_string();
        assert!(
            message.contains("folds of 30 rows"),
            "{protocol}: {message}"
        );
    }
}

#[test]
fn protocols_are_parsed_and_printed() {
    for text in [
        "holdout:0.25",
        "cv:5",
        "paper:0.2,10",
        "splits:a,b:c.parquet",
    ] {
        assert_eq!(Protocol::parse(text).unwrap().to_string(), text);
    }
    for text in [
        "",
        "cv",
        "cv:1",
        "cv:x",
        "holdout:0",
        "holdout:1",
        "holdout:nan",
        "paper:0.2",
        "paper:2,10",
        "splits:",
        "loo",
    ] {
        let message = Protocol::parse(text).unwrap_err().to_string();
        assert!(message.contains("paper:F,K"), "{message}");
    }
}

#[test]
fn holdout_has_one_split() {
    let splits = splits("holdout:0.25", 101, 0);
    assert_eq!(splits.len(), 1);
    assert_eq!((splits[0].test.len(), splits[0].held_out.len()), (25, 0));
    assert_eq!(rows_of(&splits[0]), all_rows(101));
}

#[test]
fn every_row_is_a_test_row_of_one_fold_of_cross_validation() {
    let splits = splits("cv:4", 103, 0);
    let mut tested: Vec<usize> = splits.iter().flat_map(|split| split.test.clone()).collect();
    tested.sort_unstable();
    assert_eq!(tested, all_rows(103));
    assert!(
        splits
            .iter()
            .all(|split| rows_of(split) == all_rows(103) && split.held_out.is_empty())
    );
    assert!(
        splits
            .iter()
            .all(|split| [25, 26].contains(&split.test.len()))
    );
}

#[test]
fn the_folds_of_the_paper_protocol_share_their_test_rows() {
    let splits = splits("paper:0.2,10", 200, 3);
    assert_eq!(splits.len(), 10);
    let mut held_out: Vec<usize> = Vec::new();
    for split in &splits {
        assert_eq!(split.test, splits[0].test);
        assert_eq!(
            (split.test.len(), split.held_out.len(), split.train.len()),
            (40, 16, 144)
        );
        assert_eq!(rows_of(split), all_rows(200));
        held_out.extend(&split.held_out);
    }
    held_out.extend(&splits[0].test);
    held_out.sort_unstable();
    assert_eq!(held_out, all_rows(200));
}

#[test]
fn the_seed_determines_the_splits() {
    assert_eq!(splits("paper:0.2,5", 50, 1), splits("paper:0.2,5", 50, 1));
    assert_ne!(splits("paper:0.2,5", 50, 1), splits("paper:0.2,5", 50, 2));
}

#[test]
fn too_few_rows_are_an_error() {
    for (protocol, n_rows) in [
        ("cv:10", 5),
        ("paper:0.2,10", 3),
        ("holdout:0.01", 10),
        ("holdout:0.99", 10),
    ] {
        let error = Protocol::parse(protocol)
            .unwrap()
            .splits(&data(n_rows), 0, None)
            .unwrap_err();
        assert!(error.to_string().contains("rows"), "{error}");
    }
}

#[test]
fn several_permutations_train_on_nine_tenths_of_the_rows() {
    let reversed: Vec<f64> = (0..20).rev().map(f64::from).collect();
    let forward: Vec<f64> = (0..20).map(f64::from).collect();
    let splits = splits_of_file(vec![
        Column::numeric("perm_0", reversed.clone()),
        Column::numeric("perm_10", forward.clone()),
        Column::numeric("perm_2", reversed),
    ])
    .unwrap();
    assert_eq!(splits.len(), 3);
    assert_eq!(splits[0].test, [1, 0]);
    assert_eq!(
        splits[1].test,
        [1, 0],
        "columns are sorted by number, not by name"
    );
    assert_eq!(splits[2].test, [18, 19]);
    assert_eq!(
        splits[0].train[..3],
        [19, 18, 17],
        "the order of the rows is kept"
    );
}

#[test]
fn one_permutation_trains_on_four_fifths_of_the_rows_or_on_whole_folds() {
    // five ascending runs of 7, 7, 7, 7 and 8 rows: the fourth ends at row 28; four fifths of 36
    // rows are 29
    let mut order: Vec<f64> = Vec::new();
    for run in 0..5 {
        order.extend(
            (0..36)
                .filter(|row| (row % 5).min(4) == (run + 1) % 5)
                .map(f64::from),
        );
    }
    let ends = splits_of_file(vec![Column::numeric("perm_0", order.clone())]).unwrap();
    let train = &ends[0].train;
    assert!((28..=30).contains(&train.len()));
    let next = ends[0].test[0];
    assert!(
        next < train[train.len() - 1],
        "a run ends where training ends"
    );

    let shuffled: Vec<f64> = (0..101).map(|row| f64::from(row * 37 % 101)).collect();
    assert_eq!(
        splits_of_file(vec![Column::numeric("perm_0", shuffled.clone())]).unwrap()[0]
            .train
            .len(),
        81
    );

    let named = splits_of_file(vec![
        Column::numeric("perm_0", shuffled),
        Column::numeric("n_train", vec![60.0; 101]),
    ])
    .unwrap();
    assert_eq!(named[0].train.len(), 60);
}

#[test]
fn each_fold_is_tested_once() {
    let splits = splits_of_file(vec![Column::numeric(
        "fold",
        vec![2.0, 0.0, 1.0, 0.0, 2.0, 1.0],
    )])
    .unwrap();
    assert_eq!(splits.len(), 3);
    assert_eq!(
        (&splits[0].test[..], &splits[0].train[..]),
        (&[1, 3][..], &[0, 2, 4, 5][..])
    );
}

#[test]
fn halves_swap_roles_and_never_contain_test_rows() {
    let test = Column::categorical(
        "test",
        &["true", "false", "false", "false", "false", "true"].map(Some),
    );
    let half = |name: &str, cells: [f64; 6]| Column::numeric(name, cells.to_vec());
    let splits = splits_of_file(vec![
        test.clone(),
        half("half_1", [-1.0, 0.0, 0.0, 1.0, 1.0, -1.0]),
        half("half_2", [-1.0, 0.0, 1.0, 0.0, 1.0, -1.0]),
    ])
    .unwrap();
    assert_eq!(splits.len(), 4);
    assert_eq!(splits[1].train, [3, 4]);
    assert_eq!(splits[1].held_out, [1, 2]);
    assert!(splits.iter().all(|split| split.test == [0, 5]));

    let error =
        splits_of_file(vec![test, half("half_1", [0.0, 0.0, 0.0, 1.0, 1.0, -1.0])]).unwrap_err();
    assert!(
        error.to_string().contains("column `half_1`, row 1"),
        "{error}"
    );
}

#[test]
fn a_column_can_mark_the_test_rows() {
    for test in [
        Column::numeric("test", vec![0.0, 1.0, 0.0, 0.0]),
        Column::categorical("test", &["False", "True", "False", "False"].map(Some)),
    ] {
        let splits = splits_of_file(vec![test]).unwrap();
        assert_eq!(splits.len(), 1);
        assert_eq!(
            (&splits[0].train[..], &splits[0].test[..]),
            (&[0, 2, 3][..], &[1][..])
        );
    }
}

#[test]
fn invalid_splits_are_refused_with_the_name_of_the_file() {
    let numbers = |name: &str, cells: &[f64]| vec![Column::numeric(name, cells.to_vec())];
    for (columns, expected) in [
        (numbers("part", &[0.0; 4]), "perm_0"),
        (numbers("perm_0", &[0.0, 1.0, 1.0, 2.0]), "row 3"),
        (numbers("perm_0", &[0.0, 1.0, 2.0, 9.0]), "row 4"),
        (numbers("fold", &[0.0, 0.5, 1.0, 1.0]), "whole number"),
        (numbers("fold", &[0.0, f64::NAN, 1.0, 1.0]), "whole number"),
        (numbers("test", &[0.0; 4]), "no rows to test on"),
    ] {
        let message = splits_of_file(columns).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let table = Table::new(numbers("fold", &[0.0, 1.0])).unwrap();
    let protocol = Protocol::parse("splits:folds.csv").unwrap();
    let message = protocol
        .splits(&data(5), 0, Some(&table))
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("folds.csv: ") && message.contains("2 rows"),
        "{message}"
    );
    assert!(protocol.splits(&data(5), 0, None).is_err());
}

fn model_spec() -> ModelSpec {
    let params = json!({"max_depth": 1, "leaf_mixing": "mixture", "n_epochs": 2, "n_members": 4,
                        "scaling": "standard", "rotation": "none", "squares": false});
    Family::Vst.params_from_json(&params.to_string()).unwrap()
}

#[test]
fn reports_do_not_depend_on_threads_and_average_the_folds() {
    let data = data(80);
    let splits = splits("paper:0.25,4", 80, 0);
    let run = |threads: usize| {
        let pool = Pool::new(threads).unwrap();
        evaluate(
            &[model_spec(), model_spec()],
            &data,
            &splits,
            7,
            &pool,
            &NoObserver,
        )
        .unwrap()
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.len(), 2);
    for (a, b) in one.iter().zip(&three) {
        assert_eq!(a.folds.len(), 4);
        for (a, b) in a.folds.iter().zip(&b.folds) {
            assert_eq!((a.fold, &a.scores), (b.fold, &b.scores));
        }
    }
    assert_eq!(
        one[0].folds[2].scores, one[1].folds[2].scores,
        "equal models have equal scores"
    );
    let rmse: Vec<f64> = one[0]
        .folds
        .iter()
        .map(|fold| fold.scores.values["rmse"])
        .collect();
    let mean = rmse.iter().sum::<f64>() / 4.0;
    assert!((one[0].mean["rmse"] - mean).abs() < 1e-12);
    for name in [
        "log_likelihood",
        "log_likelihood_std",
        "rmse_std",
        "crps",
        "coverage_90",
        "fit_seconds",
        "peak_rss_bytes",
    ] {
        assert!(
            one[0].mean[name].is_finite() && one[0].sd[name].is_finite(),
            "{name}"
        );
    }
    let text = serde_json::to_value(&one[0]).unwrap();
    assert!(text["folds"][0]["scores"]["crps"].is_number() && text["mean"]["crps"].is_number());
}

#[test]
fn the_number_of_nodes_is_reported_for_single_trees() {
    let tree = Family::Tree.params_from_json("{\"n_members\": 2}").unwrap();
    let data = data(40);
    let pool = Pool::new(2).unwrap();
    let splits = splits("cv:3", 40, 0);
    let report = evaluate(&[tree, model_spec()], &data, &splits, 0, &pool, &NoObserver).unwrap();
    let n_nodes: Vec<f64> = (report[0].folds.iter())
        .map(|fold| fold.n_nodes.unwrap())
        .collect();
    assert!(
        n_nodes.iter().all(|n| (n % 2.0 - 1.0).abs() < 1e-9),
        "{n_nodes:?}"
    );
    let mean = n_nodes.iter().sum::<f64>() / 3.0;
    assert!((report[0].mean["n_nodes"] - mean).abs() < 1e-12);
    let other = serde_json::to_value(&report[1]).unwrap();
    assert!(other["folds"][0].get("n_nodes").is_none() && other["mean"].get("n_nodes").is_none());
}

#[test]
fn one_fold_has_a_standard_deviation_of_zero() {
    let data = data(40);
    let pool = Pool::new(2).unwrap();
    let report = evaluate(
        &[model_spec()],
        &data,
        &splits("holdout:0.2", 40, 0),
        0,
        &pool,
        &NoObserver,
    )
    .unwrap();
    assert!(report[0].sd.values().all(|sd| *sd <= 0.0));
}

#[test]
fn a_fold_that_cannot_be_fitted_is_named() {
    let data = data(40);
    let constant: Vec<usize> = (0..40).filter(|row| row % 7 == 0).take(1).collect();
    let split = Split {
        train: [constant.clone(), constant].concat(),
        held_out: Vec::new(),
        test: vec![1, 2],
    };
    let pool = Pool::new(1).unwrap();
    let good = splits("holdout:0.2", 40, 0).remove(0);
    let message = evaluate(
        &[model_spec()],
        &data,
        &[good, split],
        0,
        &pool,
        &NoObserver,
    )
    .unwrap_err()
    .to_string();
    assert!(
        message.contains("fold 1") && message.contains("equal"),
        "{message}"
    );
    let out_of_range = Split {
        train: vec![0, 1, 99],
        held_out: Vec::new(),
        test: vec![2],
    };
    assert!(
        evaluate(
            &[model_spec()],
            &data,
            &[out_of_range],
            0,
            &pool,
            &NoObserver
        )
        .is_err()
    );
}

/// Stops at the first call.
struct StopAtOnce;

impl Observer for StopAtOnce {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        ControlFlow::Break(Stop::Discard)
    }
}

#[test]
fn an_observer_can_stop_the_evaluation() {
    let pool = Pool::new(2).unwrap();
    let result = evaluate(
        &[model_spec()],
        &data(60),
        &splits("cv:3", 60, 0),
        0,
        &pool,
        &StopAtOnce,
    );
    assert!(matches!(result, Err(Error::Cancelled)));
}
