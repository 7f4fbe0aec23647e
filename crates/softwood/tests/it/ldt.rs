//! Behaviour of linear discriminant trees: oblique boundaries, groups of classes, pruning, wide
//! tables, and their export.

use crate::problems::FitJson as _;
use crate::problems::{
    TARGETS, categories, fit, mixed, normals, numbers, prediction_bits, replaced, uniforms,
    with_target,
};
use serde_json::json;
use softwood::data::{Target, Values};
use softwood::evaluate::score;
use softwood::explain::{Condition, ExportSplit, LeafValue, LinearTerm, TermValue, TreeExport};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table};

fn dataset(table: &Table, target: &str) -> Dataset {
    let roles = Roles {
        target: target.to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

fn error_rate(model: &dyn Model, table: &Table) -> f64 {
    let pool = Pool::new(2).unwrap();
    let data = Dataset::aligned(model.schema(), table, None).unwrap();
    let found = Distribution::new(model, table, &pool).unwrap();
    score(&found, data.target(), None).unwrap().values["error"]
}

/// Two classes on both sides of the plane `2 a + b - c = 0.3`, with a margin.
fn oblique(seed: u64, n: usize) -> Table {
    let key = Key::from_seed(seed);
    let [mut a, b, c] = [1, 2, 3].map(|child| uniforms(key.child(child), n));
    let mut class = Vec::with_capacity(n);
    for row in 0..n {
        let is_above = 2.0 * a[row] + b[row] - c[row] > 0.3;
        a[row] += if is_above { 0.1 } else { -0.1 };
        class.push(Some(if is_above { "above" } else { "below" }));
    }
    Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("c", c),
        Column::categorical("class", &class),
    ])
    .unwrap()
}

#[test]
fn an_oblique_boundary_needs_one_split() {
    let (train, test) = (oblique(1, 600), oblique(2, 600));
    let data = dataset(&train, "class");
    let ldt = fit(Family::Ldt, &json!({}), &data, 0);
    let tree = fit(Family::Tree, &json!({}), &data, 0);
    assert!(ldt.n_nodes().unwrap() < 0.5 * tree.n_nodes().unwrap());
    let (ldt, tree) = (error_rate(&*ldt, &test), error_rate(&*tree, &test));
    assert!(ldt < 0.03 && ldt < tree, "ldt {ldt}, tree {tree}");
}

/// Six classes, Normal around points of a circle.
fn circle(seed: u64, n: usize) -> Table {
    let key = Key::from_seed(seed);
    let [x, y] = [1, 2].map(|child| normals(key.child(child), n));
    let angle = |row: usize| (row % 6) as f64 * std::f64::consts::TAU / 6.0;
    let classes: Vec<_> = (0..n).map(|row| Some(format!("{}", row % 6))).collect();
    Table::new(vec![
        Column::numeric(
            "x",
            (0..n).map(|row| 6.0 * angle(row).cos() + x[row]).collect(),
        ),
        Column::numeric(
            "y",
            (0..n).map(|row| 6.0 * angle(row).sin() + y[row]).collect(),
        ),
        Column::categorical("class", &classes),
    ])
    .unwrap()
}

#[test]
fn classes_are_separated_group_by_group() {
    let data = dataset(&circle(3, 600), "class");
    let model = fit(Family::Ldt, &json!({}), &data, 0);
    // five splits separate six classes; neighbours are three standard deviations from the boundary
    let n_nodes = model.n_nodes().unwrap();
    assert!((11.0..=17.0).contains(&n_nodes), "{n_nodes} nodes");
    let error = error_rate(&*model, &circle(4, 600));
    assert!(error < 0.04, "{error}");
}

#[test]
fn validation_rows_prune_the_tree_of_a_random_target() {
    let key = Key::from_seed(5);
    let class = categories(key.child(1), 400, &["no", "yes"]);
    let table = replaced(&mixed(5, 400), Column::categorical("two", &class));
    let data = with_target(&table, "two");
    let model = fit(Family::Ldt, &json!({}), &data, 0);
    let n_nodes = model.n_nodes().unwrap();
    assert!(n_nodes < 20.0, "{n_nodes} nodes");
    // given validation rows replace the split: those of the training set prune nothing
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).held_out(&data);
    let full = Family::Ldt.fit_with(&json!({}), &data, &run).unwrap();
    assert!(full.n_nodes().unwrap() > 2.0 * n_nodes);
}

#[test]
fn a_small_table_has_at_most_one_split() {
    for target in TARGETS {
        let data = with_target(&mixed(6, 35), target);
        let model = fit(Family::Ldt, &json!({}), &data, 0);
        assert!(model.n_nodes().unwrap() <= 3.0, "{target}");
    }
}

/// Normal numbers; two classes differ by a standard deviation in the first twenty columns.
fn wide(seed: u64, n_rows: usize, n_columns: usize) -> Table {
    let key = Key::from_seed(seed);
    let class = categories(key.child(1 << 20), n_rows, &["down", "up"]);
    let shift = |at: usize, row: usize| match class[row].as_deref() {
        Some("up") if at < 20 => 1.0,
        _ => 0.0,
    };
    let column = |at: usize| {
        let cells = normals(key.child(at as u64), n_rows)
            .into_iter()
            .enumerate();
        let cells = cells.map(|(row, value)| value + shift(at, row));
        Column::numeric(format!("x{at}"), cells.collect())
    };
    let mut columns: Vec<Column> = (0..n_columns).map(column).collect();
    columns.push(Column::categorical("class", &class));
    Table::new(columns).unwrap()
}

#[test]
fn tables_with_many_columns_are_fitted() {
    // more columns than rows, and more of both than the linear system takes
    for (n_rows, n_columns, max_error) in [(200, 800, 0.25), (900, 700, 0.1)] {
        let model = fit(
            Family::Ldt,
            &json!({}),
            &dataset(&wide(7, n_rows, n_columns), "class"),
            0,
        );
        let error = error_rate(&*model, &wide(8, 500, n_columns));
        assert!(error < max_error, "{n_rows} x {n_columns}: {error}");
    }
}

/// The value of a term of a linear condition in a row.
fn value_of(term: &LinearTerm, table: &Table, row: usize) -> f64 {
    let column = table.column(term.column.as_ref().unwrap()).unwrap();
    let is_true = |truth: bool| f64::from(u8::from(truth));
    match (&term.value, &column.values) {
        (TermValue::Number { if_missing }, Values::Numeric(cells)) => {
            if cells[row].is_nan() {
                *if_missing
            } else {
                cells[row]
            }
        }
        (TermValue::Missing, Values::Numeric(cells)) => is_true(cells[row].is_nan()),
        (TermValue::Among(names), Values::Categorical { codes, levels }) => {
            let level = levels.get(codes[row] as usize);
            is_true(level.is_some_and(|level| names.contains(level)))
        }
        (TermValue::Missing, Values::Categorical { codes, levels }) => {
            is_true(codes[row] as usize >= levels.len())
        }
        (value, _) => panic!("{value:?} in column {}", column.name),
    }
}

fn goes_right(split: &ExportSplit, table: &Table, row: usize) -> bool {
    let Condition::Linear {
        terms,
        threshold,
        steepness: None,
    } = &split.question
    else {
        panic!("a hard linear condition expected");
    };
    let sum: f64 = (terms.iter())
        .map(|term| term.weight * value_of(term, table, row))
        .sum();
    sum > *threshold
}

/// The leaf that the exported conditions send a row to.
fn exported_leaf(export: &TreeExport, table: &Table, row: usize) -> usize {
    let mut at = 0;
    while let Some(split) = &export.nodes[at].split {
        at = split.children[usize::from(goes_right(split, table, row))];
    }
    at
}

/// Columns of very different units, with missing cells.
fn in_other_units(seed: u64, n: usize) -> Table {
    let table = mixed(seed, n);
    let cells = |name: &str, shift: f64, scale: f64, hole: usize| -> Vec<f64> {
        let numbers = numbers(&table, name).into_iter().enumerate();
        numbers
            .map(|(row, value)| {
                if row % hole == 3 {
                    f64::NAN
                } else {
                    shift + scale * value
                }
            })
            .collect()
    };
    let mut c = categories(Key::from_seed(seed), n, &["oak", "pine", "yew", "elm"]);
    for row in (0..n).step_by(13) {
        c[row] = None;
    }
    let table = replaced(&table, Column::numeric("a", cells("a", 1e4, 250.0, 7)));
    let table = replaced(&table, Column::numeric("b", cells("b", -3e-5, 1e-6, n)));
    replaced(&table, Column::categorical("c", &c))
}

#[test]
fn exported_conditions_send_every_row_to_its_leaf() {
    for target in TARGETS {
        let table = in_other_units(9, 500);
        let data = with_target(&table, target);
        let params = json!({"max_categories": 2, "n_members": 1});
        let model = fit(Family::Ldt, &params, &data, 0);
        let export = model.tree_export().unwrap();
        assert!(export.nodes.len() > 3, "{target}: {}", export.text());
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let mut counts = vec![0.0; export.nodes.len()];
        for row in 0..500 {
            let leaf = exported_leaf(&export, &table, row);
            counts[leaf] += 1.0;
            // a single member predicts the value of the leaf
            match &export.nodes[leaf].answer {
                LeafValue::Number { mean, .. } => {
                    let predicted = dist.mean().unwrap()[row];
                    assert!((predicted - mean).abs() < 1e-6, "row {row}");
                }
                LeafValue::Classes(shares) => {
                    let n = shares.len();
                    let predicted = &dist.probabilities().unwrap()[row * n..(row + 1) * n];
                    let gap = predicted.iter().zip(shares).map(|(a, b)| (a - b).abs());
                    assert!(gap.fold(0.0, f64::max) < 1e-6, "row {row}");
                }
                other => panic!("{other:?}"),
            }
        }
        // the leaves hold the training rows and those of the validation set
        for (node, count) in export.nodes.iter().zip(counts) {
            let is_leaf = node.split.is_none();
            assert!(!is_leaf || (node.weight - count).abs() < 1e-9, "{target}");
        }
    }
}

#[test]
fn gains_and_the_column_of_a_split_follow_the_weights() {
    let model = fit(
        Family::Ldt,
        &json!({}),
        &dataset(&oblique(1, 600), "class"),
        0,
    );
    let gains = model.gains().unwrap();
    assert!((gains.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(
        gains[0] > gains[1] && gains[1] > 0.0 && gains[2] > 0.0,
        "{gains:?}"
    );
    let export = model.tree_export().unwrap();
    assert_eq!(export.nodes[0].split.as_ref().unwrap().column, "a");
}

#[test]
fn the_target_of_a_regression_is_split_along_its_gradient() {
    let key = Key::from_seed(11);
    let n = 800;
    let [a, b, noise] = [1, 2, 3].map(|child| normals(key.child(child), n));
    let y: Vec<f64> = (0..n)
        .map(|row| a[row] - b[row] + 0.1 * noise[row])
        .collect();
    let table = Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("y", y.clone()),
    ])
    .unwrap();
    let rmse = |family: Family| {
        let model = fit(family, &json!({}), &dataset(&table, "y"), 0);
        let pool = Pool::new(1).unwrap();
        let found = Distribution::new(&*model, &table, &pool).unwrap();
        score(&found, &Target::Numeric(y.clone()), None)
            .unwrap()
            .values["rmse"]
    };
    let (ldt, tree) = (rmse(Family::Ldt), rmse(Family::Tree));
    assert!(ldt < 0.8 * tree, "ldt {ldt}, tree {tree}");
}

#[test]
fn unseen_categories_in_several_columns_are_replaced_together() {
    let n = 300;
    let key = Key::from_seed(12);
    let [c, d] = [1, 2].map(|child| categories(key.child(child), n, &["oak", "yew"]));
    let y = (0..n)
        .map(|row| f64::from(u8::from(c[row] == d[row])) + f64::from(u8::from(c[row] == c[0])))
        .collect();
    let table = Table::new(vec![
        Column::categorical("c", &c),
        Column::categorical("d", &d),
        Column::numeric("y", y),
    ])
    .unwrap();
    let model = fit(Family::Ldt, &json!({}), &dataset(&table, "y"), 0);
    let new = replaced(&table, Column::categorical("c", &vec![Some("elm"); n]));
    let new = replaced(&new, Column::categorical("d", &vec![Some("ash"); n]));
    let bits = prediction_bits(&*model, &new);
    assert!(bits[1..n].iter().all(|bit| *bit == bits[0]), "equal rows");
}
