//! Generated tables with a known distribution, and helpers that fit a family and compare
//! predictions.

#![allow(dead_code, reason = "each test module uses some of the helpers")]

use serde_json::{Value, json};
use softwood::data::Values;
use softwood::store::Record;
use softwood::{
    Column, Dataset, Distribution, Family, Key, Model, Pool, Result, Roles, Run, Table,
};

/// `n` independent standard Normal numbers, by the Box-Muller transform.
pub(crate) fn normals(key: Key, n: usize) -> Vec<f64> {
    let pairs = key.uniforms(2 * n);
    let normal = |pair: &[f64]| {
        (-2.0 * (1.0 - pair[0]).ln()).sqrt() * (std::f64::consts::TAU * pair[1]).cos()
    };
    pairs.chunks_exact(2).map(normal).collect()
}

/// `n` independent uniform numbers between 0 and 1.
pub(crate) fn uniforms(key: Key, n: usize) -> Vec<f64> {
    key.uniforms(n)
}

/// Categories of `n` rows, drawn uniformly from `names`.
pub(crate) fn categories(key: Key, n: usize, names: &[&str]) -> Vec<Option<String>> {
    let at = |u: f64| ((u * names.len() as f64) as usize).min(names.len() - 1);
    let draws = uniforms(key, n).into_iter();
    draws.map(|u| Some(names[at(u)].to_owned())).collect()
}

/// Numeric columns `a` and `b`, a categorical column `c`, and three targets:
///
/// - `y = sin(2 a) + b/2 + shift of c + noise`
/// - `two`: the class `no` or `yes` by the sign of `y`
/// - `three`: as `two`, with a class `maybe` in between
pub(crate) fn mixed(seed: u64, n: usize) -> Table {
    let key = Key::from_seed(seed);
    let (a, b, noise) = (
        normals(key.child(1), n),
        normals(key.child(2), n),
        normals(key.child(3), n),
    );
    let c = categories(key.child(4), n, &["oak", "pine", "yew"]);
    let shift = |name: &Option<String>| {
        if name.as_deref() == Some("oak") {
            1.0
        } else {
            -0.5
        }
    };
    let y: Vec<f64> = (0..n)
        .map(|row| (2.0 * a[row]).sin() + 0.5 * b[row] + shift(&c[row]) + 0.2 * noise[row])
        .collect();
    let two: Vec<_> = y
        .iter()
        .map(|&y| Some(if y > 0.0 { "yes" } else { "no" }))
        .collect();
    let three = |y: f64| match y {
        ..-0.5 => "no",
        0.5.. => "yes",
        _ => "maybe",
    };
    let three: Vec<_> = y.iter().map(|&y| Some(three(y))).collect();
    Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::categorical("c", &c),
        Column::categorical("two", &two),
        Column::categorical("three", &three),
        Column::numeric("y", y),
    ])
    .unwrap()
}

/// Targets of [`mixed`]: a number, two classes, three classes.
pub(crate) const TARGETS: [&str; 3] = ["y", "two", "three"];

/// The targets of [`mixed`] that a family takes.
pub(crate) fn targets_of(family: Family) -> &'static [&'static str] {
    if family.supports_classes() {
        &TARGETS
    } else {
        &TARGETS[..1]
    }
}

/// The families that take classes.
pub(crate) fn classifiers() -> impl Iterator<Item = Family> {
    let all = Family::ALL.iter().copied();
    all.filter(|family| family.supports_classes())
}

/// The dataset with target `target`, without the other targets.
pub(crate) fn with_target(table: &Table, target: &str) -> Dataset {
    let others: Vec<&str> = TARGETS.into_iter().filter(|name| *name != target).collect();
    let roles = Roles {
        target: target.to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table.without(&others), &roles).unwrap()
}

/// The table with `column` in place of the column of the same name, or added.
pub(crate) fn replaced(table: &Table, column: Column) -> Table {
    let mut columns: Vec<Column> = table.columns().to_vec();
    match columns.iter_mut().find(|old| old.name == column.name) {
        Some(old) => *old = column,
        None => columns.push(column),
    }
    Table::new(columns).unwrap()
}

/// Values of a numeric column.
pub(crate) fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match &table.column(name).unwrap().values {
        Values::Numeric(values) => values.clone(),
        Values::Categorical { .. } => panic!("`{name}` holds categories"),
    }
}

/// Parameters for a fit of about a tenth of a second.
pub(crate) fn quick(family: Family) -> Value {
    match family {
        Family::Vst | Family::SoftTree => json!({"n_epochs": 20, "n_members": 40}),
        Family::Vart => json!({"n_epochs": 20, "n_fits": 2, "n_members": 40}),
        Family::Vsgbm => {
            json!({"n_epochs": 20, "n_estimators": 2, "max_depth": 2, "n_fits": 2, "n_members": 40})
        }
        Family::Sgb | Family::Sglb => {
            json!({"n_estimators": 60, "n_members": 6, "learning_rate": 0.1, "max_depth": 3})
        }
        Family::Forest => json!({"n_estimators": 60, "n_members": 6}),
        Family::RnnTree => json!({"n_steps": 60, "n_restarts": 4, "max_depth": 3, "n_hidden": 8}),
        Family::Gp => {
            json!({
                "max_iterations": 15, "n_restarts": 0, "n_inducing": null, "max_exact_rows": 400,
                "n_epochs": 2, "n_members": 40
            })
        }
        Family::GpRnnTree => {
            json!({
                "max_iterations": 10, "n_restarts": 0, "max_exact_rows": 400, "n_epochs": 1, "n_members": 40,
                "max_depth": 2, "n_hidden": 8, "n_tree_restarts": 2, "n_steps": 40
            })
        }
        _ => json!({}),
    }
}

/// Fits a family with JSON parameters.
pub(crate) trait FitJson {
    fn fit_with(self, params: &Value, data: &Dataset, run: &Run<'_>) -> Result<Box<dyn Model>>;
}

impl FitJson for Family {
    fn fit_with(self, params: &Value, data: &Dataset, run: &Run<'_>) -> Result<Box<dyn Model>> {
        self.params_from_json(&params.to_string())?
            .fit_with(data, run)
    }
}

/// The metadata of a model's record.
pub(crate) fn meta_of(record: &Record) -> Value {
    serde_json::from_str(&record.meta_json()).unwrap()
}

/// A record with other metadata.
pub(crate) fn with_meta(record: &Record, meta: &Value) -> Record {
    Record::new(&record.family, &meta.to_string(), record.arrays.clone()).unwrap()
}

/// Fits with two threads and `seed`.
pub(crate) fn fit(family: Family, params: &Value, data: &Dataset, seed: u64) -> Box<dyn Model> {
    let pool = Pool::new(2).unwrap();
    let run = Run::new(Key::from_seed(seed), &pool);
    family.fit_with(params, data, &run).unwrap()
}

/// The bits of all predictions of a model for a table; panics if one is not finite.
pub(crate) fn prediction_bits(model: &dyn Model, table: &Table) -> Vec<u64> {
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, table, &pool).unwrap();
    let mut numbers = if model.schema().classes().is_some() {
        dist.probabilities().unwrap()
    } else {
        let levels = dist.quantile(&[0.05, 0.5, 0.95]).unwrap();
        [dist.mean().unwrap(), levels].concat()
    };
    let parts = dist.uncertainty().unwrap();
    numbers.extend(
        parts
            .total
            .into_iter()
            .chain(parts.data)
            .chain(parts.knowledge),
    );
    assert!(
        numbers.iter().all(|number| number.is_finite()),
        "a prediction is not finite"
    );
    numbers.into_iter().map(f64::to_bits).collect()
}
