//! The tree that can be read, and the forest: what they owe their users besides the contract of every family.

use crate::problems::FitJson as _;
use crate::problems::{answers, fit, mixed, normals, numbers, replaced, uniforms, with_target};
use serde_json::json;
use softwood::{
    Column, Condition, Dataset, Distribution, Family, Key, LeafValue, Pool, Roles, Table,
    TreeExport, Values,
};

fn dataset(columns: Vec<Column>) -> (Table, Dataset) {
    let table = Table::new(columns).unwrap();
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    let data = Dataset::from_table(&table, &roles).unwrap();
    (table, data)
}

/// Heights of trees: 10 for yews, for others 20 from an age of 37.5 on and 30 below; yews are the rarest.
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

/// The leaf of a row, by the outline alone.
fn walk(outline: &TreeExport, table: &Table, row: usize) -> usize {
    let mut at = 0;
    while let Some(split) = &outline.nodes[at].split {
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
            _ => panic!("a question of the wrong kind"),
        };
        at = split.children[usize::from(goes_right)];
    }
    at
}

#[test]
fn a_split_that_parts_missing_cells_from_all_others_says_so() {
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
    let outline = tree.tree_export().unwrap();
    let root = outline.nodes[0].split.as_ref().unwrap();
    assert!(
        root.question == Condition::Missing && root.missing_right,
        "{root:?}"
    );
    let text = outline.text();
    assert!(
        text.contains("x is missing") && !text.contains("or missing"),
        "{text}"
    );
}

#[test]
fn a_tree_says_what_made_the_data_in_the_units_of_the_table() {
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
    // which side yews are on is free
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
fn rows_walk_by_the_outline_as_they_do_in_the_model() {
    let full = mixed(3, 400);
    let mut a = numbers(&full, "a");
    for row in (0..a.len()).step_by(9) {
        a[row] = f64::NAN;
    }
    let table = replaced(&full, Column::numeric("a", a));
    for target in ["y", "three"] {
        let model = fit(
            Family::Tree,
            &json!({"ccp_alpha": 0.0}),
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
        let said = if target == "y" {
            dist.mean().unwrap()
        } else {
            dist.probabilities().unwrap()
        };
        for row in 0..400 {
            match &tree.nodes[walk(&tree, &table, row)].answer {
                LeafValue::Number { mean, .. } => assert!((mean - said[row]).abs() < 1e-6),
                // members are draws whose mean is brought to that of the leaf step by step
                LeafValue::Classes(shares) => {
                    for (class, share) in shares.iter().enumerate() {
                        assert!((share - said[3 * row + class]).abs() < 1e-3);
                    }
                }
            }
        }
    }
}

#[test]
fn gains_go_to_the_columns_that_matter() {
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
fn pruning_stops_where_it_is_asked_to() {
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
    for most in [1, 2, 7, 30] {
        assert!(n_leaves(json!({"ccp_alpha": 0.0, "max_leaf_nodes": most})) <= most);
    }
    assert_eq!(n_leaves(json!({"max_depth": 0})), 1);
    assert!(n_leaves(json!({"ccp_alpha": 0.0, "min_child_weight": 60.0})) <= 4);
}

#[test]
fn a_leaf_of_few_rows_is_less_sure_of_itself() {
    // 500 rows on the left, 20 on the right, of the same noise
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
    // exactly the variance over the rows
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
fn every_category_distinct_is_taken() {
    let names: Vec<_> = (0..300).map(|row| Some(format!("row {row}"))).collect();
    let y = normals(Key::from_seed(3), 300);
    let (table, data) = dataset(vec![
        Column::categorical("name", &names),
        Column::numeric("y", y),
    ]);
    for family in [Family::Tree, Family::Forest] {
        answers(&*fit(family, &json!({"n_members": 5}), &data, 0), &table);
    }
    // nothing can be learned from names, and a tree that learned them by heart must not be sure of it
    let model = fit(Family::Tree, &json!({}), &data, 0);
    let pool = Pool::new(1).unwrap();
    let sd = Distribution::new(&*model, &table, &pool)
        .unwrap()
        .sd()
        .unwrap();
    let mean = sd.iter().sum::<f64>() / 300.0;
    assert!((0.8..1.3).contains(&mean), "{mean}");
}

#[test]
fn a_forest_is_better_than_a_tree_and_knows_its_error() {
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
            dist.sd().unwrap(),
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
        // 500 rows: the root mean square has a deviation of 3%, six of which are allowed
        assert!((rmse / sd - 1.0).abs() < 0.2, "{rmse} {sd}");
    }
}

#[test]
fn deep_trees_on_a_staircase_need_little_memory_and_end() {
    // a chain of splits, each cutting one step off
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
        answers(
            &*fit(family, &params, &data, 0),
            &table.take(&[0, 10_000, 19_999]),
        );
    }
}

#[test]
fn members_must_not_be_more_than_trees() {
    let (_, data) = heights();
    let pool = Pool::new(1).unwrap();
    let run = softwood::Run::new(Key::from_seed(0), &pool);
    let error = Family::Forest
        .fit(&json!({"n_estimators": 5}), &data, &run)
        .unwrap_err();
    assert!(error.to_string().contains("`n_members` = 10"), "{error}");
    // as many members as trees: each tree is one
    let model = Family::Forest
        .fit(&json!({"n_estimators": 5, "n_members": 5}), &data, &run)
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
        let error = family.fit(&json!({}), &data, &run).unwrap_err();
        assert!(error.to_string().contains("70 classes"), "{error}");
    }
}
