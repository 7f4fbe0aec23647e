//! Monotonic constraints hold exactly in every member, and do no harm if they are true.

use crate::problems::FitJson as _;
use crate::problems::{categories, normals, uniforms};
use serde_json::{Value, json};
use softwood::distribution::{Block, Head};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table};

const FAMILIES: [Family; 2] = [Family::Sgb, Family::Sglb];
const GROW_POLICIES: [&str; 3] = ["symmetric", "depthwise", "leafwise"];

/// Numeric columns `a`, `b` (with missing cells) and `d`, a categorical column `c`, and a target
/// that is monotonic in none of them.
fn not_monotonic(key: Key, n: usize) -> Table {
    let (mut a, mut b, d, noise) = (
        normals(key.child(1), n),
        normals(key.child(2), n),
        normals(key.child(3), n),
        normals(key.child(4), n),
    );
    let c = categories(key.child(5), n, &["oak", "pine", "yew"]);
    let y: Vec<f64> = (0..n)
        .map(|row| {
            let shift = f64::from(c[row].as_deref() == Some("oak"));
            (3.0 * a[row]).sin() + a[row] * d[row] - b[row] * b[row] + shift + 0.3 * noise[row]
        })
        .collect();
    for row in (0..n).step_by(7) {
        a[row] = f64::NAN;
        b[(row + 3) % n] = f64::NAN;
    }
    let class: Vec<_> = y
        .iter()
        .map(|&y| Some(if y > 0.0 { "yes" } else { "no" }))
        .collect();
    Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("d", d),
        Column::categorical("c", &c),
        Column::categorical("class", &class),
        Column::numeric("y", y),
    ])
    .unwrap()
}

fn dataset(table: &Table, target: &str) -> Dataset {
    let other = if target == "y" { "class" } else { "y" };
    let roles = Roles {
        target: target.to_owned(),
        ignore: vec![other.to_owned()],
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

/// Mean of each member, or its probability of the second class, members x rows.
fn members(model: &dyn Model, table: &Table) -> Vec<Vec<f64>> {
    let aligned = model.schema().align(table).unwrap();
    let n_rows = aligned.n_rows();
    let mut block = Block::new(model.head(), model.n_members(), n_rows);
    model.members(&aligned.rows(0..n_rows), &mut block).unwrap();
    let values = |member: usize| match model.head() {
        Head::Normal { .. } => block.normal().mean[block.at(member, 0)..][..n_rows].to_vec(),
        Head::Categorical { .. } => block.weight[block.at(member, 1)..][..n_rows].to_vec(),
        head => panic!("unexpected head {head:?}"),
    };
    (0..model.n_members()).map(values).collect()
}

/// Copies of one row of the table in which `column` runs over a grid.
fn along(table: &Table, column: &str, row: usize) -> Table {
    let n = 80;
    let grid: Vec<f64> = (0..n).map(|at| -4.0 + 0.1 * f64::from(at)).collect();
    let kept = table.take(&vec![row; n as usize]);
    crate::problems::replaced(&kept, Column::numeric(column, grid))
}

/// Random parameters, determined by `seed`.
fn random_params(family: Family, seed: u64) -> Value {
    let u = uniforms(Key::from_seed(seed).child(9), 12);
    let pick = |of: usize, n: usize| (u[of] * n as f64) as usize;
    let constraints = [
        json!({"a": 1}),
        json!({"a": -1, "b": 1}),
        json!({"a": 1, "b": 1, "d": -1}),
        json!({"b": -1}),
    ];
    let mut params = json!({
        "n_estimators": 10 + pick(0, 60),
        "n_members": 1 + pick(1, 4),
        "learning_rate": ([0.03, 0.1, 0.5, 1.0][pick(2, 4)]),
        "max_depth": 1 + pick(3, 6),
        "grow_policy": (GROW_POLICIES[pick(4, 3)]),
        "max_leaf_nodes": 2 + pick(5, 40),
        "l2_regularization": ([0.0, 1.0, 10.0][pick(6, 3)]),
        "subsample": ([0.3, 1.0][pick(7, 2)]),
        "colsample_bytree": ([0.5, 1.0][pick(8, 2)]),
        "max_bins": ([3, 16, 255][pick(9, 3)]),
        "noise": (["varying", "constant"][pick(10, 2)]),
        "monotonic_cst": (constraints[pick(11, 4)]),
    });
    if family == Family::Sglb {
        params["langevin_noise"] = json!(["posterior", "malinin", "split-noise"][pick(9, 3)]);
        params["virtual_ensemble"] = json!(pick(5, 2) == 1);
        params["model_shrink_rate"] = json!([0.0, 0.01][pick(6, 2)]);
    }
    params
}

/// Number of steps that violate the constraint by more than the tolerance.
fn n_violations(values: &[f64], direction: i64, tolerance: f64) -> usize {
    values
        .windows(2)
        .filter(|pair| direction as f64 * (pair[1] - pair[0]) < -tolerance)
        .count()
}

#[test]
fn every_member_satisfies_the_constraints_for_any_parameters() {
    let pool = Pool::new(2).unwrap();
    for at in 0..60 {
        let family = FAMILIES[at as usize % 2];
        let target = ["y", "y", "class"][at as usize % 3];
        let table = not_monotonic(Key::from_seed(at), 40 + 5 * at as usize);
        let params = random_params(family, at);
        let run = Run::new(Key::from_seed(at), &pool);
        let model = family
            .fit_with(&params, &dataset(&table, target), &run)
            .unwrap();
        // means are sums in a fixed order, whose rounding is monotonic; a probability has more
        // rounding errors
        let tolerance = if target == "y" { 0.0 } else { 1e-12 };
        for (column, direction) in params["monotonic_cst"].as_object().unwrap() {
            for row in 0..12 {
                for values in members(model.as_ref(), &along(&table, column, row)) {
                    let n = n_violations(&values, direction.as_i64().unwrap(), tolerance);
                    assert_eq!(n, 0, "{at} {column} {params} {values:?}");
                }
            }
        }
    }
}

/// The test above can fail: without constraints the predictions are not monotonic.
#[test]
fn without_constraints_predictions_are_not_monotonic() {
    let table = not_monotonic(Key::from_seed(1), 200);
    let params = crate::problems::quick(Family::Sgb);
    let model = crate::problems::fit(Family::Sgb, &params, &dataset(&table, "y"), 1);
    let values = members(model.as_ref(), &along(&table, "a", 1));
    assert!(values.iter().all(|values| n_violations(values, 1, 0.0) > 0));
}

/// `y = 2 tanh(a) - b + sin(2 d) + noise`, increasing in `a` and decreasing in `b`; `d` is
/// correlated with `a`.
fn smooth(key: Key, n: usize, noise: f64) -> Table {
    let (a, b, d, e) = (
        normals(key.child(1), n),
        normals(key.child(2), n),
        normals(key.child(3), n),
        normals(key.child(4), n),
    );
    let d: Vec<f64> = (0..n).map(|row| 0.7 * a[row] + 0.7 * d[row]).collect();
    let y = (0..n).map(|row| 2.0 * a[row].tanh() - b[row] + (2.0 * d[row]).sin() + noise * e[row]);
    let y: Vec<f64> = y.collect();
    let class: Vec<_> = y
        .iter()
        .map(|&y| Some(if y > 0.0 { "yes" } else { "no" }))
        .collect();
    Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("d", d),
        Column::categorical("class", &class),
        Column::numeric("y", y),
    ])
    .unwrap()
}

/// Log-likelihood and RMSE (for classification the error rate) on new rows, averaged over six
/// fits.
fn quality(family: Family, target: &str, params: &Value, noise: f64) -> [f64; 2] {
    let pool = Pool::new(2).unwrap();
    let (mut sums, n_fits) = ([0.0; 2], 6);
    for seed in 0..n_fits {
        let train = smooth(Key::from_seed(100 + seed), 300, noise);
        let new_rows = smooth(Key::from_seed(200 + seed), 2000, noise);
        let run = Run::new(Key::from_seed(seed), &pool);
        let model = family
            .fit_with(params, &dataset(&train, target), &run)
            .unwrap();
        let report = softwood::evaluate::score(
            &Distribution::new(model.as_ref(), &new_rows, &pool).unwrap(),
            &model.schema().target_of(&new_rows).unwrap(),
            model.training().target_sd,
        )
        .unwrap();
        let (log_likelihood, error) = if target == "y" {
            (report.values["log_likelihood"], report.values["rmse"])
        } else {
            (-report.values["nll"], report.values["error"])
        };
        sums[0] += log_likelihood / n_fits as f64;
        sums[1] += error / n_fits as f64;
    }
    sums
}

/// With given settings: a smaller error in both families, and for `sgb` a better likelihood too.
#[test]
fn a_true_constraint_does_no_harm() {
    for family in FAMILIES {
        for growth in GROW_POLICIES {
            for target in ["y", "class"] {
                let unconstrained = json!({
                    "n_estimators": 150, "n_members": 4, "learning_rate": 0.05, "max_depth": 4, "grow_policy": growth,
                });
                let mut constrained = unconstrained.clone();
                constrained["monotonic_cst"] = json!({"a": 1, "b": -1});
                let unconstrained = quality(family, target, &unconstrained, 1.0);
                let constrained = quality(family, target, &constrained, 1.0);
                let message = format!(
                    "{family:?} {growth} {target}: {unconstrained:?}, constrained {constrained:?}"
                );
                assert!(constrained[1] <= unconstrained[1], "{message}");
                assert!(
                    family == Family::Sglb || constrained[0] >= unconstrained[0],
                    "{message}"
                );
            }
        }
    }
}

/// With selected settings the likelihood of `sglb` is as good too: its members have less noise, but
/// differ by their subsamples.
#[test]
fn a_true_constraint_does_no_harm_with_selected_settings() {
    let (mut unconstrained, mut constrained) = ([0.0; 2], [0.0; 2]);
    for growth in ["symmetric", "leafwise"] {
        for noise in ["varying", "constant"] {
            let params = json!({"n_estimators": 200, "n_members": 5, "grow_policy": growth, "noise": noise, "subsample": 0.5});
            let mut with_constraints = params.clone();
            with_constraints["monotonic_cst"] = json!({"a": 1, "b": -1});
            for (sums, params) in [
                (&mut unconstrained, &params),
                (&mut constrained, &with_constraints),
            ] {
                let found = quality(Family::Sglb, "y", params, 1.0);
                sums[0] += found[0] / 4.0;
                sums[1] += found[1] / 4.0;
            }
        }
    }
    assert!(
        constrained[0] >= unconstrained[0] && constrained[1] <= unconstrained[1],
        "{unconstrained:?}, constrained {constrained:?}"
    );
}

#[test]
fn invalid_constraints_are_refused() {
    let table = not_monotonic(Key::from_seed(3), 60);
    let pool = Pool::new(1).unwrap();
    for (constraints, parts) in [
        (
            json!({"e": 1, "c": -1}),
            [
                "`monotonic_cst`: there is no column `e`; there are a, b, d, c",
                "`c` is categorical",
            ],
        ),
        (json!({"a": 2}), ["column `a` has 2", "+1 (rising) or -1"]),
        (
            json!({"a": "up"}),
            ["column `a` has \"up\"", "+1 (rising) or -1"],
        ),
        (json!(["a"]), ["`monotonic_cst` = [\"a\"]", "none"]),
    ] {
        let run = Run::new(Key::from_seed(0), &pool);
        let found = Family::Sglb.fit_with(
            &json!({"monotonic_cst": constraints}),
            &dataset(&table, "y"),
            &run,
        );
        let message = found
            .map(|model| model.n_members())
            .unwrap_err()
            .to_string();
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
    let three = crate::problems::with_target(&crate::problems::mixed(1, 60), "three");
    let run = Run::new(Key::from_seed(0), &pool);
    let found = Family::Sgb.fit_with(&json!({"monotonic_cst": {"a": 1}}), &three, &run);
    let message = found
        .map(|model| model.n_members())
        .unwrap_err()
        .to_string();
    assert!(message.contains("`monotonic_cst` needs"), "{message}");
    assert!(message.contains("`three` has 3 classes"), "{message}");
}
