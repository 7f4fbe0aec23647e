//! Small model files of every family that the mutations start from, and the fixtures.

use std::path::Path;

use serde_json::{Value, json};
use softwood::{Column, Dataset, Family, Key, Pool, Roles, Run, Table};

use crate::engine::ModelParts;

const N_ROWS: usize = 90;

fn table() -> Table {
    let key = Key::from_seed(1);
    let (a, b) = (key.child(1).uniforms(N_ROWS), key.child(2).uniforms(N_ROWS));
    let missing = |row: usize, value: f64| if row % 11 == 3 { f64::NAN } else { value };
    let names = ["red", "green", "blue"];
    let colour: Vec<_> = (0..N_ROWS).map(|row| Some(names[row % 3])).collect();
    // more levels than trees split into sets: target-encoded by boosted trees
    let city: Vec<_> = (0..N_ROWS)
        .map(|row| (row % 13 != 5).then(|| format!("city{}", row * 7 % 14)))
        .collect();
    let y: Vec<f64> = (0..N_ROWS)
        .map(|row| {
            (5.0 * a[row]).sin() + b[row] + 0.3 * (row % 3) as f64 + 0.1 * (row * 7 % 14) as f64
        })
        .collect();
    let class = |n: usize| -> Vec<Option<String>> {
        let class = |row: usize| (y[row] * 2.0) as i64 as usize % n;
        (0..N_ROWS)
            .map(|row| Some(format!("c{}", class(row).min(n - 1))))
            .collect()
    };
    // more classes than one round of boosting updates
    let many: Vec<_> = (0..N_ROWS)
        .map(|row| Some(format!("c{}", row % 34)))
        .collect();
    Table::new(vec![
        Column::numeric(
            "a",
            a.iter()
                .enumerate()
                .map(|(row, &a)| missing(row, a))
                .collect(),
        ),
        Column::numeric("b", b),
        Column::categorical("colour", &colour),
        Column::categorical("city", &city),
        Column::numeric("y", y.clone()),
        Column::categorical("two", &class(2)),
        Column::categorical("three", &class(3)),
        Column::categorical("many", &many),
    ])
    .unwrap()
}

fn dataset(target: &str) -> Dataset {
    let others = ["y", "two", "three", "many"];
    let others: Vec<&str> = others.into_iter().filter(|name| *name != target).collect();
    let roles = Roles {
        target: target.to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table().without(&others), &roles).unwrap()
}

fn fits() -> Vec<(Family, &'static str, Value)> {
    let soft = json!({"max_depth": 1, "n_epochs": 2, "n_members": 3, "scaling": "standard",
                      "leaf_mixing": "mixture", "rotation": "both", "squares": true});
    let ranks = json!({"max_depth": 2, "n_epochs": 2, "n_members": 3, "scaling": "quantile",
                       "leaf_mixing": "blend", "rotation": "none", "squares": false});
    let sums = |noise: &str| {
        json!({"max_depth": 1, "n_epochs": 2, "n_members": 4, "n_estimators": 2, "n_fits": 2,
               "leaf_mixing": "blend", "noise": noise, "joint_training": false,
               "scaling": "standard", "rotation": "none", "squares": false})
    };
    let boosted = |noise: &str| {
        json!({"n_estimators": 4, "n_members": 3, "learning_rate": 0.3, "max_depth": 2,
               "noise": noise})
    };
    let virtual_members = json!({"n_estimators": 12, "n_members": 4, "n_chains": 2, "virtual_ensemble": true,
                                 "learning_rate": 0.3, "max_depth": 2});
    let forest = json!({"n_estimators": 4, "n_members": 2, "max_depth": 3});
    let tree = json!({"n_members": 3, "max_depth": 3});
    let grown = |posterior: &str| {
        json!({"max_leaf_nodes": 3, "min_gain": 0.0, "prune": false, "n_epochs": 2, "n_fits": 2,
               "n_members": 3, "posterior": posterior})
    };
    let stopping = json!({"start_depth": 2, "leaf_mixing": "hybrid", "n_epochs": 2, "n_moves": 0, "n_fits": 2,
                          "n_members": 3});
    let stopping_sum = json!({"start_depth": 1, "n_estimators": 2, "n_epochs": 2, "n_fits": 1, "rank": 0,
                              "n_members": 3, "scale_model": "constant"});
    let written = json!({"max_depth": 2, "n_steps": 4, "n_restarts": 2, "n_members": 3, "n_hidden": 4,
                         "posterior": true});
    let noise_tree = |mut params: Value| {
        for (name, value) in [
            ("max_iterations", 3),
            ("n_restarts", 0),
            ("n_members", 4),
            ("n_steps", 4),
            ("n_tree_restarts", 1),
            ("max_depth", 2),
        ] {
            params[name] = json!(value);
        }
        params
    };
    vec![
        (Family::Vart, "y", stopping.clone()),
        (Family::Vart, "y", stopping_sum),
        (Family::Vart, "three", stopping),
        (Family::Vst, "y", soft.clone()),
        (Family::Vst, "y", ranks),
        (Family::Vst, "three", soft),
        (Family::Vsgbm, "y", sums("constant")),
        (Family::Vsgbm, "y", sums("varying")),
        (Family::Vsgbm, "two", sums("varying")),
        (Family::Sgb, "y", boosted("varying")),
        (Family::Sgb, "y", boosted("constant")),
        (Family::Sgb, "two", boosted("varying")),
        (Family::Sgb, "many", boosted("varying")),
        (Family::Sglb, "y", virtual_members.clone()),
        (Family::Sglb, "three", virtual_members),
        (Family::Forest, "y", forest.clone()),
        (Family::Forest, "three", forest),
        (Family::Tree, "y", tree.clone()),
        (Family::Tree, "three", tree.clone()),
        (Family::Ldt, "y", tree.clone()),
        (Family::Ldt, "three", tree),
        (
            Family::Gp,
            "y",
            json!({"max_iterations": 3, "n_restarts": 0, "n_members": 5}),
        ),
        (
            Family::Gp,
            "y",
            json!({"n_inducing": 8, "n_epochs": 1, "max_iterations": 3, "n_restarts": 0, "n_members": 4}),
        ),
        (Family::GpRnnTree, "y", noise_tree(json!({}))),
        (
            Family::GpRnnTree,
            "y",
            noise_tree(json!({"n_inducing": 8, "n_epochs": 1})),
        ),
        (Family::RnnTree, "y", written.clone()),
        (Family::RnnTree, "three", written),
        (Family::SoftTree, "y", grown("variational")),
        (Family::SoftTree, "y", grown("ensemble")),
        (Family::SoftTree, "three", grown("variational")),
    ]
}

/// Model files in parts, with their names.
pub(crate) fn files() -> Vec<(String, ModelParts)> {
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(5), &pool);
    let mut files: Vec<(String, ModelParts)> = fits()
        .into_iter()
        .map(|(family, target, params)| {
            let spec = family.params_from_json(&params.to_string()).unwrap();
            let model = spec.fit_with(&dataset(target), &run).unwrap();
            let name = format!("{} on {target}", family.name());
            (name, ModelParts::of(&model.to_bytes()))
        })
        .collect();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["vst-1", "vst-1-classes", "vsgbm-1"] {
        let bytes = std::fs::read(fixtures.join(format!("{name}.softwood"))).unwrap();
        files.push((name.to_owned(), ModelParts::of(&bytes)));
    }
    files
}
