//! The variational regression tree: posterior over structures, options, sums, warm starts, export.

use crate::problems::{FitJson, fit, mixed, normals, prediction_bits, uniforms, with_target};
use serde_json::json;
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table};

/// Rows of a tree with three leaves: steps of one input, and noise.
fn three_leaves(seed: u64, n: usize) -> Table {
    let key = Key::from_seed(seed);
    let x = uniforms(key.child(1), n);
    let noise = normals(key.child(2), n);
    let step = |x: f64| match x {
        ..0.35 => -1.0,
        ..0.7 => 1.5,
        _ => 0.2,
    };
    let y = x.iter().zip(&noise).map(|(&x, e)| step(x) + 0.2 * e);
    let y = y.collect();
    Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
}

fn dataset(table: &Table) -> Dataset {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table.clone(), &roles).unwrap()
}

/// Rows drawn from a soft tree with three leaves, each a Normal distribution.
fn drawn_from_a_tree(seed: u64, n: usize) -> Table {
    let key = Key::from_seed(seed);
    let (a, b) = (normals(key.child(1), n), normals(key.child(2), n));
    let (u, v) = (uniforms(key.child(3), n), uniforms(key.child(4), n));
    let noise = normals(key.child(5), n);
    let gate = |t: f64| 1.0 / (1.0 + (-5.0 * t).exp());
    let y = (0..n).map(|row| {
        let level = match (u[row] < gate(a[row]), v[row] < gate(b[row] - 0.2)) {
            (false, _) => -1.5,
            (true, false) => 0.5,
            (true, true) => 2.0,
        };
        level + 0.25 * noise[row]
    });
    let y = y.collect();
    let columns = [("a", a), ("b", b), ("y", y)].map(|(name, x)| Column::numeric(name, x));
    Table::new(columns.to_vec()).unwrap()
}

#[test]
fn the_posterior_over_the_number_of_leaves_concentrates_on_the_truth_in_most_data_sets() {
    let params = json!({"leaf_model": "constant", "leaf_mixing": "mixture", "start_depth": 3, "n_fits": 1,
                        "initial_split": 0.73, "split_rate": 5.0, "n_moves": 0,
                        "scaling": "standard", "rotation": "none", "squares": false});
    let of_seed = |seed: u64, n: usize| {
        let model = fit(
            Family::Vart,
            &params,
            &dataset(&drawn_from_a_tree(seed, n)),
            0,
        );
        let structure = model.structure().unwrap();
        assert!((structure.n_leaves.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((structure.depth.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        structure.n_leaves[2]
    };
    // a fit may stay in the basin of a hard tree that splits in another order
    let found: Vec<f64> = (1..=5).map(|seed| of_seed(seed, 1000)).collect();
    let n_concentrated = found
        .iter()
        .filter(|&&probability| probability > 0.5)
        .count();
    assert!(n_concentrated >= 3, "{found:?}");
}

#[test]
fn every_option_fits_and_is_read_back() {
    let table = mixed(3, 200);
    let options = [
        json!({"max_depth": 0}),
        json!({"max_depth": 1}),
        json!({"start_depth": 4, "leaf_mixing": "hybrid", "mixing_levels": 2}),
        json!({"leaf_mixing": "mixture"}),
        json!({"leaf_model": "constant"}),
        json!({"scale_model": "constant"}),
        json!({"n_estimators": 3}),
        json!({"n_moves": 3, "max_depth": 6}),
        json!({"kl_estimate": "single-draw", "rank": 0}),
        json!({"reduction": "mean", "kl_weight": 0.001}),
        json!({"prior": "fixed", "beta": 2.0, "rank": 4}),
        json!({"calibrate_noise": false, "early_stopping": false}),
    ];
    for target in ["y", "three"] {
        let data = with_target(&table, target);
        for mut params in options.clone() {
            params["n_epochs"] = 3.into();
            params["n_members"] = 4.into();
            params["n_fits"] = 2.into();
            let model = fit(Family::Vart, &params, &data, 0);
            let is_sum = params["n_estimators"].as_u64() == Some(3);
            assert_eq!(
                model.structure().is_none(),
                is_sum && model.tree_export().is_none()
            );
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
    for (params, word) in [
        (json!({"start_depth": 3, "max_depth": 2}), "start_depth"),
        (json!({"kl_estimate": "single-draw", "rank": 2}), "rank"),
        (
            json!({"n_estimators": 2, "leaf_mixing": "mixture"}),
            "leaf_mixing",
        ),
        (json!({"mixing_levels": 1}), "mixing_levels"),
        (json!({"temperature": 2.0}), "initial_temperature"),
    ] {
        let message = Family::Vart.params_from_json(&params.to_string());
        let message = message.unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
}

/// Mean squared error against the true steps.
fn error(model: &dyn Model) -> f64 {
    let x: Vec<f64> = (0..200).map(|at| (f64::from(at) + 0.5) / 200.0).collect();
    let truth = |x: f64| match x {
        ..0.35 => -1.0,
        ..0.7 => 1.5,
        _ => 0.2,
    };
    let table = Table::new(vec![Column::numeric("x", x.clone())]).unwrap();
    let pool = Pool::new(1).unwrap();
    let mean = Distribution::new(model, &table, &pool)
        .unwrap()
        .mean()
        .unwrap();
    let squares = mean
        .iter()
        .zip(&x)
        .map(|(mean, &x)| (mean - truth(x)).powi(2));
    squares.sum::<f64>() / 200.0
}

#[test]
fn structure_moves_grow_a_tree_that_begins_too_small() {
    let data = dataset(&three_leaves(5, 600));
    let params = |n_moves: usize| {
        json!({"leaf_model": "constant", "leaf_mixing": "blend", "start_depth": 1, "n_moves": n_moves,
               "n_fits": 1, "beta": 5.0, "n_epochs": 200, "scaling": "standard", "rotation": "none",
               "squares": false})
    };
    let [still, moved] = [0, 3].map(|n_moves| fit(Family::Vart, &params(n_moves), &data, 0));
    assert!(still.n_nodes().unwrap() <= 3.0 + 1e-9);
    assert!(moved.n_nodes().unwrap() > 3.5);
    let (still, moved) = (error(&*still), error(&*moved));
    assert!(moved < 0.5 * still, "{moved} against {still}");
}

#[test]
fn a_sum_of_trees_fits_an_additive_function_better_than_one_small_tree() {
    let key = Key::from_seed(9);
    let (a, b) = (uniforms(key.child(1), 500), uniforms(key.child(2), 500));
    let noise = normals(key.child(3), 500);
    let y = (0..500)
        .map(|row| (6.0 * a[row]).sin() + (6.0 * b[row]).cos() + 0.05 * noise[row])
        .collect();
    let columns = vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("y", y),
    ];
    let table = Table::new(columns).unwrap();
    let data = dataset(&table);
    let log_likelihood = |n_estimators: usize| {
        let params = json!({"start_depth": 1, "max_depth": 2, "leaf_mixing": "blend", "leaf_model": "constant",
                            "n_estimators": n_estimators, "n_moves": 0, "n_fits": 1, "n_epochs": 150});
        let model = fit(Family::Vart, &params, &data, 0);
        let pool = Pool::new(1).unwrap();
        let distribution = Distribution::new(&*model, &table, &pool).unwrap();
        let scores = distribution.logpdf(data_target(&data)).unwrap();
        scores.iter().sum::<f64>() / 500.0
    };
    let (one, four) = (log_likelihood(1), log_likelihood(4));
    assert!(four > one + 0.2, "{four} against {one}");
}

fn data_target(data: &Dataset) -> &[f64] {
    match data.target() {
        softwood::data::Target::Numeric(values) => values,
        _ => panic!("the target is a number"),
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let table = mixed(4, 150);
    let data = with_target(&table, "y");
    let params = json!({"n_epochs": 4, "n_members": 6, "n_fits": 3});
    let bits = [1, 2, 3].map(|n_threads| {
        let pool = Pool::new(n_threads).unwrap();
        let run = Run::new(Key::from_seed(2), &pool);
        let model = Family::Vart.fit_with(&params, &data, &run).unwrap();
        prediction_bits(&*model, &table)
    });
    assert!(bits[0] == bits[1] && bits[0] == bits[2]);
}

#[test]
fn the_most_probable_tree_is_exported_with_its_probabilities() {
    let params = json!({"leaf_model": "constant", "leaf_mixing": "blend", "beta": 10.0, "n_fits": 2,
                        "n_epochs": 300});
    let model = fit(Family::Vart, &params, &dataset(&three_leaves(1, 500)), 0);
    let tree = model.tree_export().unwrap();
    let n_leaves = tree
        .nodes
        .iter()
        .filter(|node| node.split.is_none())
        .count();
    assert!(n_leaves >= 3, "{}", tree.text());
    assert!((tree.nodes[0].weight - 450.0).abs() < 1.0);
    let structure = model.structure().unwrap();
    assert_eq!(structure.n_fits, 2);
    let root = structure.nodes[0];
    assert!((root.node, root.depth) == (1, 0) && root.splits > 0.9 && root.exists > 0.999);
    assert!(
        structure
            .nodes
            .windows(2)
            .all(|pair| pair[0].node < pair[1].node)
    );
}

#[test]
fn a_warm_start_follows_new_rows_and_needs_a_member_for_every_fit() {
    let params = json!({"leaf_model": "constant", "leaf_mixing": "blend", "start_depth": 2, "n_fits": 2,
                        "n_members": 10, "n_epochs": 100, "beta": 5.0, "n_moves": 0});
    let model = fit(Family::Vart, &params, &dataset(&three_leaves(2, 200)), 0);
    let more = dataset(&three_leaves(7, 1500));
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(1), &pool).warm_start(&*model);
    let mut longer = params.clone();
    longer["n_epochs"] = 300.into();
    let continued = Family::Vart.fit_with(&longer, &more, &run).unwrap();
    assert!(error(&*continued) < error(&*model));
    let mut fewer = params.clone();
    fewer["n_members"] = 1.into();
    let message = Family::Vart.fit_with(&fewer, &more, &run).unwrap_err();
    assert!(message.to_string().contains("n_members"), "{message}");
    let mut deeper = params;
    deeper["start_depth"] = 1.into();
    let message = Family::Vart.fit_with(&deeper, &more, &run).unwrap_err();
    assert!(message.to_string().contains("start_depth"), "{message}");
}
