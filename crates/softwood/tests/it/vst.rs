//! Variational soft tree: warm starts, members of chains.

use std::ops::ControlFlow;

use serde_json::json;
use softwood::observer::{Event, Observer, Stop};
use softwood::{Column, Distribution, Family, Key, Model, Pool, Run, Table, from_bytes};

use crate::problems::{FitJson, normals, numbers, with_target};

/// A wave with little noise on an interval.
fn wave(seed: u64, n: usize, from: f64, to: f64) -> Table {
    let key = Key::from_seed(seed);
    let uniforms = key.child(0).uniforms(n);
    let x: Vec<f64> = uniforms.iter().map(|u| from + (to - from) * u).collect();
    let noise = normals(key.child(1), n);
    let y = x
        .iter()
        .zip(&noise)
        .map(|(x, z)| (3.0 * x).sin() + 0.1 * z)
        .collect();
    Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
}

/// Mean log density of the rows.
fn log_score(model: &dyn Model, table: &Table) -> f64 {
    let pool = Pool::new(1).unwrap();
    let y = numbers(table, "y");
    let scores = Distribution::new(model, table, &pool)
        .unwrap()
        .logpdf(&y)
        .unwrap();
    scores.iter().sum::<f64>() / y.len() as f64
}

#[test]
fn a_warm_start_follows_new_rows_and_keeps_shapes_and_fixed_parameters() {
    let params = json!({"max_depth": 3, "leaf_mixing": "blend", "n_fits": 2, "n_members": 20, "n_epochs": 200,
                        "scaling": "standard", "squares": false, "rotation": "none"});
    let fit = |table: &Table, params: &serde_json::Value, start: Option<&dyn Model>| {
        let pool = Pool::new(2).unwrap();
        let mut run = Run::new(Key::from_seed(1), &pool);
        run.warm_start = start;
        Family::Vst.fit_with(params, &with_target(table, "y"), &run)
    };
    let all = wave(1, 300, -1.0, 1.0);
    let is_old = |row: &usize| numbers(&all, "x")[*row] < 0.3;
    let old = all.take(&(0..300).filter(is_old).collect::<Vec<_>>());
    let first = fit(&old, &params, None).unwrap();
    let mut longer = params.clone();
    longer["n_epochs"] = 600.into();
    let continued = fit(&all, &longer, Some(&*first)).unwrap();
    let test = wave(3, 500, 0.3, 1.0);
    let (before, after) = (log_score(&*first, &test), log_score(&*continued, &test));
    assert!(after > before + 0.5, "{before} {after}");
    assert_eq!(continued.training().chosen, first.training().chosen);
    for (key, value) in [
        ("max_depth", json!(2)),
        ("n_fits", json!(1)),
        ("beta", json!(2.0)),
    ] {
        let mut changed = params.clone();
        changed[key] = value;
        let message = fit(&all, &changed, Some(&*first)).unwrap_err().to_string();
        assert!(message.contains(key), "{message}");
    }
}

/// Members of a chain differ from those of the Gaussian posterior, are the same for any number of threads
/// and after a round trip through a file, and a warm start draws them anew.
#[test]
fn chains_are_part_of_the_model() {
    let table = wave(4, 60, -1.0, 1.0);
    let data = with_target(&table, "y");
    let fit = |params: serde_json::Value, n_threads: usize| {
        let pool = Pool::new(n_threads).unwrap();
        let run = Run::new(Key::from_seed(2), &pool);
        Family::Vst.fit_with(&params, &data, &run).unwrap()
    };
    let params = |posterior: &str| {
        json!({"max_depth": 1, "leaf_mixing": "blend", "n_epochs": 20, "n_members": 6, "n_fits": 2,
                "scaling": "standard", "rotation": "none", "squares": false, "posterior": posterior})
    };
    let pool = Pool::new(1).unwrap();
    let means = |model: &dyn Model| {
        let dist = Distribution::new(model, data.features(), &pool).unwrap();
        dist.members().unwrap()
    };
    let chain = fit(params("hmc"), 1);
    let expected = means(&*chain);
    assert_ne!(expected, means(&*fit(params("variational"), 1)));
    assert_eq!(expected, means(&*fit(params("hmc"), 3)));
    let read = from_bytes(&chain.to_bytes()).unwrap();
    assert_eq!(expected, means(&*read));
    let run = Run::new(Key::from_seed(3), &pool).warm_start(&*read);
    let continued = Family::Vst.fit_with(&params("hmc"), &data, &run).unwrap();
    let arrays = continued.record().arrays;
    assert!(arrays.iter().any(|(name, _)| name.ends_with("_draws")));
}

/// Stops a fit when the first chain begins.
struct BeforeChains;

impl Observer for BeforeChains {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        if event.stage == "sampling" {
            ControlFlow::Break(Stop::Keep)
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn a_fit_that_is_stopped_before_its_chains_keeps_the_gaussian_posterior() {
    let data = with_target(&wave(4, 60, -1.0, 1.0), "y");
    let params = json!({"max_depth": 1, "leaf_mixing": "blend", "n_epochs": 5, "n_members": 6, "n_fits": 2,
                        "scaling": "standard", "rotation": "none", "squares": false, "posterior": "hmc"});
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(2), &pool).observer(&BeforeChains);
    let model = Family::Vst.fit_with(&params, &data, &run).unwrap();
    assert!(model.training().is_stopped);
    let arrays = model.record().arrays;
    assert!(!arrays.iter().any(|(name, _)| name.ends_with("_draws")));
}
