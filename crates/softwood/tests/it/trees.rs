//! Behaviour of the single tree and of the forest, besides that of every family.

use crate::problems::FitJson as _;
use crate::problems::{
    fit, mixed, normals, numbers, prediction_bits, replaced, uniforms, with_target,
};
use serde_json::json;
use softwood::data::Values;
use softwood::explain::{Condition, LeafValue, TreeExport};
use softwood::{Column, Dataset, Distribution, Family, Key, Pool, Roles, Table};

fn dataset(columns: Vec<Column>) -> (Table, Dataset) {
    let table = Table::new(columns).unwrap();
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    let data = Dataset::from_table(&table, &roles).unwrap();
    (table, data)
}

/// Heights: 10 for yews, otherwise 20 above an age of 37.5 and 30 below.
fn heights() -> (Table, Dataset) {
    let n = 240;
    let age: Vec<f64> = (0..n).map(|row| f64::from(row * 7 % 75)).collect();
    let kind: Vec<_> = (0..n)
        .map(|row| Some(["ash", "elm", "oak", "oak", "yew"][row as usize % 5]))
        .collect();
    let noise = normals(Key::from_seed(1), n as usize);
    let height = |row: usize| {
        let level = match (kind[row], age[row] > 37.0) {
            (Some("yew"), _) => 10.0,
            (_, true) => 20.0,
            (_, false) => 30.0,
        };
        level + 0.5 * noise[row]
    };
    let y = (0..n as usize).map(height).collect();
    dataset(vec![
        Column::numeric("age", age.clone()),
        Column::categorical("kind", &kind),
        Column::numeric("noise", uniforms(Key::from_seed(8), n as usize)),
        Column::numeric("y", y),
    ])
}

/// The leaf of a row according to the exported tree.
fn exported_leaf(tree_export: &TreeExport, table: &Table, row: usize) -> usize {
    let mut at = 0;
    while let Some(split) = &tree_export.nodes[at].split {
        let goes_right = match (
            &table.column(&split.column).unwrap().values,
            &split.question,
        ) {
            (Values::Numeric(values), Condition::Above(threshold)) => {
                if values[row].is_nan() {
                    split.missing_right
                } else {
                    values[row] > *threshold
                }
            }
            (Values::Numeric(values), Condition::Missing) => values[row].is_nan(),
            (Values::Categorical { codes, levels }, Condition::Among(names)) => levels
                .get(codes[row] as usize)
                .map_or(split.missing_right, |level| names.contains(level)),
            _ => panic!("the condition does not fit the column"),
        };
        at = split.children[usize::from(goes_right)];
    }
    at
}

#[test]
fn a_split_on_missing_cells_is_exported_as_such() {
    let x = (0..60).map(|row| {
        if row % 3 == 0 {
            f64::NAN
        } else {
            f64::from(row % 2)
        }
    });
    let y = (0..60).map(|row| f64::from(u8::from(row % 3 == 0)) + 0.01 * f64::from(row % 5));
    let data = dataset(vec![
        Column::numeric("x", x.collect()),
        Column::numeric("y", y.collect()),
    ])
    .1;
    let tree = fit(Family::Tree, &json!({"max_depth": 1}), &data, 0);
    let tree_export = tree.tree_export().unwrap();
    let root = tree_export.nodes[0].split.as_ref().unwrap();
    assert!(
        root.question == Condition::Missing && root.missing_right,
        "{root:?}"
    );
    let text = tree_export.text();
    assert!(
        text.contains("x is missing") && !text.contains("or missing"),
        "{text}"
    );
}

#[test]
fn an_exported_tree_has_the_structure_of_the_data_in_units_of_the_table() {
    let (_, data) = heights();
    let tree = fit(Family::Tree, &json!({}), &data, 0)
        .tree_export()
        .unwrap();
    assert_eq!(tree.nodes.len(), 5, "{tree:?}");
    let root = tree.nodes[0].split.as_ref().unwrap();
    assert_eq!(root.column, "kind");
    let Condition::Among(names) = &root.question else {
        panic!("{root:?}")
    };
    // yews may be on either side
    assert!(
        names == &["yew"] || names == &["ash", "elm", "oak"],
        "{names:?}"
    );
    let age = tree.nodes.iter().filter_map(|node| node.split.as_ref());
    let age = age
        .filter(|split| split.column == "age")
        .collect::<Vec<_>>();
    let [age] = age[..] else { panic!("{tree:?}") };
    let Condition::Above(threshold) = age.question else {
        panic!("{age:?}")
    };
    assert!((37.0..38.0).contains(&threshold), "{threshold}");
    for child in age.children {
        let LeafValue::Number { mean, sd } = tree.nodes[child].answer else {
            panic!("{tree:?}")
        };
        assert!(
            (mean - 20.0).abs() < 0.3 || (mean - 30.0).abs() < 0.3,
            "{mean}"
        );
        assert!((0.3..0.7).contains(&sd), "{sd}");
    }
    let gains: f64 = tree
        .nodes
        .iter()
        .filter_map(|node| node.split.as_ref())
        .map(|split| split.gain)
        .sum();
    assert!((0.95..1.0).contains(&gains), "{gains}");
}

#[test]
fn the_exported_tree_has_the_predictions_of_the_model() {
    let full = mixed(3, 400);
    let mut a = numbers(&full, "a");
    for row in (0..a.len()).step_by(9) {
        a[row] = f64::NAN;
    }
    let table = replaced(&full, Column::numeric("a", a));
    for target in ["y", "three"] {
        let model = fit(
            Family::Tree,
            // rules know nothing of rows that lie far from all others
            &json!({"ccp_alpha": 0.0, "extrapolation": false}),
            &with_target(&table, target),
            0,
        );
        let tree = model.tree_export().unwrap();
        assert!(tree.nodes.len() > 20);
        let weight: f64 = tree
            .nodes
            .iter()
            .filter(|node| node.split.is_none())
            .map(|node| node.weight)
            .sum();
        assert!((weight - 400.0).abs() < 1e-6 && (tree.nodes[0].weight - 400.0).abs() < 1e-6);
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let predicted = if target == "y" {
            dist.mean().unwrap()
        } else {
            dist.probabilities().unwrap()
        };
        for row in 0..400 {
            match &tree.nodes[exported_leaf(&tree, &table, row)].answer {
                LeafValue::Number { mean, .. } => assert!((mean - predicted[row]).abs() < 1e-6),
                // the mean of the members is matched to the leaf iteratively
                LeafValue::Classes(probabilities) => {
                    for (class, p) in probabilities.iter().enumerate() {
                        assert!((p - predicted[3 * row + class]).abs() < 1e-3);
                    }
                }
                value => panic!("unexpected leaf {value:?}"),
            }
        }
    }
}

#[test]
fn important_columns_have_the_largest_gains() {
    let (_, data) = heights();
    for family in [Family::Tree, Family::Forest] {
        let gains = fit(family, &json!({"max_depth": 4}), &data, 0)
            .gains()
            .unwrap();
        assert!((gains.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(
            gains[0] > 0.1 && gains[1] > 0.3 && gains[2] < 0.1,
            "{gains:?}"
        );
    }
}

#[test]
fn parameters_limit_the_size_of_the_tree() {
    let (_, data) = heights();
    let n_leaves = |params: serde_json::Value| {
        let tree = fit(Family::Tree, &params, &data, 0).tree_export().unwrap();
        tree.nodes
            .iter()
            .filter(|node| node.split.is_none())
            .count()
    };
    let full = n_leaves(json!({"ccp_alpha": 0.0}));
    let chosen = n_leaves(json!({}));
    assert!(chosen < full, "{chosen} {full}");
    assert_eq!(n_leaves(json!({"ccp_alpha": 0.1})), 3);
    assert_eq!(n_leaves(json!({"ccp_alpha": 1.0})), 1);
    for max in [1, 2, 7, 30] {
        assert!(n_leaves(json!({"ccp_alpha": 0.0, "max_leaf_nodes": max})) <= max);
    }
    assert_eq!(n_leaves(json!({"max_depth": 0})), 1);
    assert!(n_leaves(json!({"ccp_alpha": 0.0, "min_child_weight": 60.0})) <= 4);
}

#[test]
fn a_leaf_with_few_rows_has_more_knowledge_uncertainty() {
    // 500 rows on the left, 20 on the right, with the same noise
    let x: Vec<f64> = (0..520)
        .map(|row| f64::from(u8::from(row >= 500)))
        .collect();
    let noise = normals(Key::from_seed(2), 520);
    let y: Vec<f64> = x
        .iter()
        .zip(&noise)
        .map(|(x, noise)| 20.0 * x + noise)
        .collect();
    let classes: Vec<_> = noise
        .iter()
        .map(|z| Some(if *z > 0.5 { "yes" } else { "no" }))
        .collect();
    let (table, data) = dataset(vec![Column::numeric("x", x), Column::numeric("y", y)]);
    let knowledge = |data: &Dataset| {
        let model = fit(
            Family::Tree,
            &json!({"ccp_alpha": 0.0, "min_child_weight": 20.0}),
            data,
            0,
        );
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let parts = dist.uncertainty().unwrap();
        (parts.knowledge[0], parts.knowledge[519], parts.data[519])
    };
    let (many, few, noise) = knowledge(&data);
    // exactly the variance divided by the number of rows
    assert!((few / (noise / 20.0) - 1.0).abs() < 1e-6, "{few} {noise}");
    assert!(few > 10.0 * many, "{few} {many}");
    let table = replaced(&table, Column::categorical("y", &classes));
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    let data = Dataset::from_table(&table, &roles).unwrap();
    let model = fit(
        Family::Tree,
        &json!({"max_depth": 1, "min_child_weight": 20.0, "ccp_alpha": 0.0}),
        &data,
        0,
    );
    if model.tree_export().unwrap().nodes.len() == 3 {
        let (many, few, _) = knowledge(&data);
        assert!(few > 3.0 * many, "{few} {many}");
    }
}

#[test]
fn a_category_for_every_row_is_accepted_and_not_memorized() {
    let names: Vec<_> = (0..300).map(|row| Some(format!("row {row}"))).collect();
    let y = normals(Key::from_seed(3), 300);
    let (table, data) = dataset(vec![
        Column::categorical("name", &names),
        Column::numeric("y", y),
    ]);
    for family in [Family::Tree, Family::Forest] {
        prediction_bits(&*fit(family, &json!({"n_members": 5}), &data, 0), &table);
    }
    // the categories carry no information: the predicted standard deviation must be that of the
    // target
    let model = fit(Family::Tree, &json!({}), &data, 0);
    let pool = Pool::new(1).unwrap();
    let sd = Distribution::new(&*model, &table, &pool)
        .unwrap()
        .std()
        .unwrap();
    let mean = sd.iter().sum::<f64>() / 300.0;
    assert!((0.8..1.3).contains(&mean), "{mean}");
}

#[test]
fn a_forest_predicts_better_than_a_tree_and_both_have_the_right_scale() {
    let n = 1500;
    let key = Key::from_seed(9);
    let inputs: Vec<Vec<f64>> = (0..5).map(|at| uniforms(key.child(at), n)).collect();
    let noise = normals(key.child(9), n);
    let truth = |row: usize| {
        let x = |at: usize| inputs[at][row];
        10.0 * (std::f64::consts::PI * x(0) * x(1)).sin()
            + 20.0 * (x(2) - 0.5).powi(2)
            + 10.0 * x(3)
    };
    let y: Vec<f64> = (0..n).map(|row| truth(row) + noise[row]).collect();
    let mut columns: Vec<Column> = inputs
        .iter()
        .enumerate()
        .map(|(at, values)| Column::numeric(format!("x{at}"), values.clone()))
        .collect();
    columns.push(Column::numeric("y", y));
    let table = Table::new(columns).unwrap();
    let (train, test): (Vec<usize>, Vec<usize>) = (0..n).partition(|row| row % 3 > 0);
    let (_, data) = dataset(table.take(&train).columns().to_vec());
    let test = table.take(&test);
    let pool = Pool::new(2).unwrap();
    let rmse_and_sd = |family: Family| {
        let model = fit(family, &json!({}), &data, 0);
        let dist = Distribution::new(&*model, &test, &pool).unwrap();
        let (mean, sd, y) = (
            dist.mean().unwrap(),
            dist.std().unwrap(),
            numbers(&test, "y"),
        );
        let square = |of: &dyn Fn(usize) -> f64| {
            ((0..y.len()).map(|row| of(row).powi(2)).sum::<f64>() / y.len() as f64).sqrt()
        };
        (square(&|row| mean[row] - y[row]), square(&|row| sd[row]))
    };
    let (tree, forest) = (rmse_and_sd(Family::Tree), rmse_and_sd(Family::Forest));
    assert!(forest.0 < 0.8 * tree.0, "{forest:?} {tree:?}");
    for (rmse, sd) in [tree, forest] {
        // 500 rows: the RMSE has a relative standard deviation of 3%; the tolerance is six of them
        assert!((rmse / sd - 1.0).abs() < 0.2, "{rmse} {sd}");
    }
}

#[test]
fn very_deep_trees_are_accepted() {
    // each split separates the largest values only
    let n = 20_000;
    let x: Vec<f64> = (0..n).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| (x / f64::from(n) * 18.0).exp()).collect();
    let (table, data) = dataset(vec![Column::numeric("x", x), Column::numeric("y", y)]);
    for family in [Family::Tree, Family::Forest] {
        let params = if family == Family::Tree {
            json!({"max_depth": 1000, "min_child_weight": 1.0, "ccp_alpha": 0.0})
        } else {
            json!({"max_depth": 1000, "n_estimators": 10, "n_members": 10})
        };
        prediction_bits(
            &*fit(family, &params, &data, 0),
            &table.take(&[0, 10_000, 19_999]),
        );
    }
}

#[test]
fn more_members_than_trees_are_refused() {
    let (_, data) = heights();
    let pool = Pool::new(1).unwrap();
    let run = softwood::Run::new(Key::from_seed(0), &pool);
    let error = Family::Forest
        .fit_with(&json!({"n_estimators": 5}), &data, &run)
        .unwrap_err();
    assert!(error.to_string().contains("`n_members` = 10"), "{error}");
    // as many members as trees: each member is a tree
    let model = Family::Forest
        .fit_with(&json!({"n_estimators": 5, "n_members": 5}), &data, &run)
        .unwrap();
    assert_eq!(model.n_members(), 5);
}

#[test]
fn too_many_classes_are_refused_with_their_number() {
    let n = 70 * 8;
    let names: Vec<_> = (0..n)
        .map(|row| Some(format!("class {}", row % 70)))
        .collect();
    let x = uniforms(Key::from_seed(4), n);
    let (_, data) = dataset(vec![
        Column::numeric("x", x),
        Column::categorical("y", &names),
    ]);
    let pool = Pool::new(1).unwrap();
    let run = softwood::Run::new(Key::from_seed(0), &pool);
    for family in [Family::Tree, Family::Forest] {
        let error = family.fit_with(&json!({}), &data, &run).unwrap_err();
        assert!(error.to_string().contains("70 classes"), "{error}");
    }
}
