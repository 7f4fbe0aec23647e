//! The incremental soft tree: growth, published variants, members, export, threads.

use serde_json::json;
use softwood::explain::{Condition, LeafValue, TermValue};
use softwood::models::{Family, SoftTreeParams, TreeParams};
use softwood::{Column, Dataset, Distribution, Fit, Key, Model, Pool, Roles, Run, Table};

use crate::problems::{
    FitJson, fit, mixed, normals, numbers, prediction_bits, uniforms, with_target,
};

/// The sinusoid of the paper's figure 3: `y = sin(2 pi x) + noise` on [-1, 1].
fn sinusoid(seed: u64, n: usize) -> Table {
    let key = Key::from_seed(seed);
    let x: Vec<f64> = uniforms(key.child(0), n)
        .iter()
        .map(|u| 2.0 * u - 1.0)
        .collect();
    let noise = normals(key.child(1), n);
    let y = x
        .iter()
        .zip(&noise)
        .map(|(x, noise)| (std::f64::consts::TAU * x).sin() + 0.2 * noise);
    let y = y.collect();
    Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
}

fn dataset(table: &Table) -> Dataset {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

/// Mean squared error of a model against the sinusoid itself.
fn error(model: &dyn Model) -> f64 {
    let x: Vec<f64> = (0..401).map(|at| f64::from(at) / 200.0 - 1.0).collect();
    let table = Table::new(vec![Column::numeric("x", x.clone())]).unwrap();
    let pool = Pool::new(1).unwrap();
    let mean = Distribution::new(model, &table, &pool)
        .unwrap()
        .mean()
        .unwrap();
    let squares = mean
        .iter()
        .zip(&x)
        .map(|(mean, x)| (mean - (std::f64::consts::TAU * x).sin()).powi(2));
    squares.sum::<f64>() / 401.0
}

#[test]
fn a_soft_tree_of_nine_nodes_reaches_the_error_of_a_hard_tree_on_a_sinusoid() {
    let data = dataset(&sinusoid(1, 400));
    let hard = TreeParams::default().fit(&data).unwrap();
    let soft = SoftTreeParams {
        max_leaf_nodes: Some(5),
        ..SoftTreeParams::default()
    };
    let soft = soft.fit(&data).unwrap();
    assert!(soft.n_nodes().unwrap() <= 9.0);
    assert!(hard.n_nodes().unwrap() > 15.0);
    let (soft, hard) = (error(&soft), error(&hard));
    assert!(soft < 0.5 * hard, "{soft} against {hard}");
}

#[test]
fn every_option_fits_and_is_read_back() {
    let table = mixed(3, 200);
    let options = [
        json!({"growth": "depth-first"}),
        json!({"refine": false, "prune": false}),
        json!({"leaf_model": "constant"}),
        json!({"posterior": "ensemble", "n_fits": 3}),
        json!({"n_fits": 2}),
        json!({"prior": "fixed", "beta": 2.0}),
        json!({"variant": "paper", "max_leaf_nodes": 4}),
        json!({"variant": "released", "max_leaf_nodes": 4}),
        json!({"variant": "released", "max_leaf_nodes": 3, "refine": true, "prune": true, "posterior": "variational"}),
        json!({"max_leaf_nodes": 1}),
        json!({"max_depth": 0}),
    ];
    for target in ["y", "two"] {
        let data = with_target(&table, target);
        for mut params in options.clone() {
            params["n_epochs"] = 3.into();
            params["n_members"] = 4.into();
            let model = fit(Family::SoftTree, &params, &data, 0);
            let read = softwood::from_bytes(&model.to_bytes()).unwrap();
            assert_eq!(
                prediction_bits(&*model, &table),
                prediction_bits(&*read, &table),
                "{params}"
            );
        }
    }
}

#[test]
fn parameters_that_exclude_each_other_are_refused() {
    for params in [
        json!({"variant": "paper", "leaf_model": "linear"}),
        json!({"variant": "released", "growth": "best-first"}),
    ] {
        let message = Family::SoftTree.params_from_json(&params.to_string());
        let message = message.unwrap_err().to_string();
        assert!(message.contains("needs `variant` = extended"), "{message}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let table = mixed(4, 300);
    for (target, params) in [
        ("y", json!({"n_epochs": 5, "n_members": 4})),
        ("two", json!({"n_epochs": 5, "n_members": 4, "n_fits": 3})),
        ("y", json!({"variant": "released", "max_leaf_nodes": 5})),
    ] {
        let data = with_target(&table, target);
        let bytes = [1, 2, 3, 7].map(|threads| {
            let pool = Pool::new(threads).unwrap();
            let run = Run::new(Key::from_seed(0), &pool);
            let model = Family::SoftTree.fit_with(&params, &data, &run).unwrap();
            model.to_bytes()
        });
        assert!(bytes.iter().all(|other| *other == bytes[0]), "{params}");
    }
}

/// Rows follow the exported gates softly and the exported leaf functions: their blend is the
/// prediction of a point estimate.
#[test]
fn the_exported_tree_predicts_what_the_model_predicts() {
    let table = sinusoid(2, 300);
    let data = dataset(&table);
    let params =
        json!({"posterior": "ensemble", "n_fits": 1, "scaling": "standard", "squares": false});
    let model = fit(Family::SoftTree, &params, &data, 0);
    let tree = model.tree_export().unwrap();
    assert!(tree.nodes.len() >= 5, "{}", tree.text());
    let pool = Pool::new(1).unwrap();
    let mean = Distribution::new(&*model, &table, &pool)
        .unwrap()
        .mean()
        .unwrap();
    let x = numbers(&table, "x");
    let value = |terms: &[softwood::explain::LinearTerm], x: f64| -> f64 {
        let values = terms.iter().map(|term| match term.value {
            TermValue::Number { .. } => term.weight * x,
            _ => panic!("the only input is a number"),
        });
        values.sum()
    };
    for (row, &x) in x.iter().enumerate() {
        let mut reach = vec![0.0; tree.nodes.len()];
        reach[0] = 1.0;
        let mut predicted = 0.0;
        for (at, node) in tree.nodes.iter().enumerate() {
            if let Some(split) = &node.split {
                let Condition::Linear {
                    terms,
                    threshold,
                    steepness: Some(steepness),
                } = &split.question
                else {
                    panic!("a gate is a soft linear condition");
                };
                let activation = steepness * (value(terms, x) - threshold);
                let right = 1.0 / (1.0 + (-activation).exp());
                reach[split.children[0]] = reach[at] * (1.0 - right);
                reach[split.children[1]] = reach[at] * right;
            } else {
                let function = node.function.as_ref().unwrap();
                predicted += reach[at] * (function.intercept + value(&function.terms, x));
            }
        }
        assert!(
            (predicted - mean[row]).abs() < 1e-4,
            "{predicted} {}",
            mean[row]
        );
    }
    // the weights of the leaves add up to the rows, and their means lie within the target
    let weight: f64 = (tree.nodes.iter().filter(|node| node.split.is_none()))
        .map(|node| node.weight)
        .sum();
    assert!((weight - tree.nodes[0].weight).abs() < 1e-3 * weight);
    assert!(matches!(tree.nodes[0].answer, LeafValue::Number { mean, .. } if mean.abs() < 0.2));
}

#[test]
fn noise_alone_grows_no_tree() {
    let n = 600;
    let uniforms = Key::from_seed(8).uniforms(4 * n);
    let columns = ["a", "b", "c", "y"].iter().enumerate();
    let columns =
        columns.map(|(at, name)| Column::numeric(*name, uniforms[at * n..(at + 1) * n].to_vec()));
    let data = dataset(&Table::new(columns.collect()).unwrap());
    let params = json!({"n_epochs": 2, "min_gain": 3.0});
    let model = fit(Family::SoftTree, &params, &data, 0);
    assert_eq!(model.n_nodes(), Some(1.0), "{}", model.training().chosen);
}

#[test]
fn members_disagree_more_where_there_is_no_data() {
    let table = sinusoid(5, 300);
    let model = fit(Family::SoftTree, &json!({}), &dataset(&table), 0);
    let knowledge = |x: f64| {
        let rows = Table::new(vec![Column::numeric("x", vec![x])]).unwrap();
        let pool = Pool::new(1).unwrap();
        let distribution = Distribution::new(&*model, &rows, &pool).unwrap();
        distribution.uncertainty().unwrap().knowledge[0]
    };
    assert!(knowledge(3.0) > 3.0 * knowledge(0.2));
}

#[test]
fn a_constant_weight_grows_the_same_published_tree() {
    let table = sinusoid(6, 200);
    let columns = table.columns().iter().cloned();
    let weight = Column::numeric("w", vec![1000.0; 200]);
    let weighted = Table::new(columns.chain([weight]).collect()).unwrap();
    let roles = Roles {
        target: "y".to_owned(),
        weight: Some("w".to_owned()),
        ..Roles::default()
    };
    let weighted = Dataset::from_table(&weighted, &roles).unwrap();
    let params = json!({"variant": "released", "max_leaf_nodes": 8});
    let n_nodes = |data: &Dataset| fit(Family::SoftTree, &params, data, 0).n_nodes().unwrap();
    let plain = n_nodes(&dataset(&table));
    assert!(plain > 3.0);
    assert!((n_nodes(&weighted) - plain).abs() < 0.5);
}

/// Few distinct rows that stand for many: bootstrap samples hardly differ.
#[test]
fn trees_of_an_ensemble_agree_on_rows_that_are_repeated() {
    let n = 4000;
    let x: Vec<f64> = (0..n).map(|row| f64::from(row % 5)).collect();
    let y = (0..n).map(|row| f64::from(row % 5) + f64::from(row / 5 % 3) / 10.0);
    let y: Vec<f64> = y.collect();
    let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap();
    let params = json!({"posterior": "ensemble"});
    let model = fit(Family::SoftTree, &params, &dataset(&table), 0);
    let rows = Table::new(vec![Column::numeric("x", vec![0.0, 2.0, 4.0])]).unwrap();
    let pool = Pool::new(1).unwrap();
    let distribution = Distribution::new(&*model, &rows, &pool).unwrap();
    let knowledge = distribution.uncertainty().unwrap().knowledge;
    assert!(
        knowledge.iter().all(|&variance| variance < 0.01),
        "{knowledge:?}"
    );
}
