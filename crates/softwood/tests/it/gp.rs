//! The Gaussian process: moments and joint distribution are exact, members are functions, and a sparse
//! process with many inducing points is the exact one. A noise with steps is found as a tree.

use std::ops::ControlFlow;

use crate::problems::{fit, mixed, normals, numbers, replaced, with_target};
use serde_json::{Value, json};
use softwood::observer::{Event, Observer, Stop};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Roles, Run, Table};

/// A sine with a gap and noise of 0.1.
fn sine(n: usize) -> Table {
    let noise = normals(Key::from_seed(2), n);
    let x: Vec<f64> = (0..n)
        .map(|row| 8.0 * row as f64 / n as f64 + if 2 * row < n { 0.0 } else { 3.0 })
        .collect();
    let y = (0..n).map(|row| x[row].sin() + 0.1 * noise[row]).collect();
    Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
}

fn data(table: &Table) -> Dataset {
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

fn process(table: &Table, params: &Value) -> Box<dyn Model> {
    fit(Family::Gp, params, &data(table), 3)
}

/// The exact and the sparse process.
fn both() -> [Value; 2] {
    [json!({}), json!({"n_inducing": 12, "n_epochs": 2})]
}

#[test]
fn the_moments_of_the_members_are_those_of_the_joint_distribution() {
    let rows = Table::new(vec![Column::numeric(
        "x",
        (0..40).map(|row| f64::from(row) / 3.0 - 1.0).collect(),
    )])
    .unwrap();
    let pool = Pool::new(1).unwrap();
    for params in both() {
        for n_members in [2, 7, 32] {
            let mut params = params.clone();
            params["n_members"] = json!(n_members);
            let model = process(&sine(60), &params);
            let dist = Distribution::new(&*model, &rows, &pool).unwrap();
            let joint = dist.joint().unwrap().unwrap();
            let (mean, knowledge) = (dist.mean().unwrap(), dist.uncertainty().unwrap().knowledge);
            for row in 0..40 {
                assert!((mean[row] - joint.mean[row]).abs() < 1e-9);
                let variance = joint.covariance[row * 41];
                let error = (knowledge[row] - variance).abs();
                assert!(error < 1e-6 * (1e-3 + variance), "{row}: {error}");
            }
        }
    }
}

/// In a row with an unseen category each member has another known one.
#[test]
fn all_answers_agree_in_rows_with_unseen_categories() {
    let x: Vec<f64> = (0..120).map(|row| f64::from(row) / 20.0).collect();
    let names = ["a", "b", "c"];
    let group: Vec<Option<&str>> = (0..120).map(|at| Some(names[at % 3])).collect();
    let y = (0..120).map(|at| x[at].sin() + (at % 3) as f64).collect();
    let table = Table::new(vec![
        Column::numeric("x", x),
        Column::categorical("group", &group),
        Column::numeric("y", y),
    ])
    .unwrap();
    let rows = Table::new(vec![
        Column::numeric("x", vec![2.0, 9.0, 7.0]),
        Column::categorical("group", &[Some("d"); 3]),
    ])
    .unwrap();
    let pool = Pool::new(1).unwrap();
    let model = process(&table, &json!({"n_members": 16}));
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    let (moments, members) = (dist.moments().unwrap(), dist.members().unwrap());
    let draws = dist.sample(100_000, Key::from_seed(1)).unwrap();
    for (row, members) in members.chunks_exact(16).enumerate() {
        let mean = members.iter().sum::<f64>() / 16.0;
        let square = |value: &f64| (value - mean).powi(2);
        let sd = (members.iter().map(square).sum::<f64>() / 16.0).sqrt();
        assert!((mean - moments.mean[row]).abs() < 1e-9 * (1.0 + mean.abs()));
        assert!((sd / moments.knowledge_std[row] - 1.0).abs() < 1e-9);
        // the fourth moment of the widest component is finite: the standard error is below 1%
        let draws = &draws[row * 100_000..(row + 1) * 100_000];
        let square: f64 = draws.iter().map(|y| (y - moments.mean[row]).powi(2)).sum();
        let ratio = (square / 1e5).sqrt() / moments.std[row];
        assert!((ratio - 1.0).abs() < 0.05, "{row}: {ratio}");
    }
}

/// Normal distributions around sampled functions would have almost no density between them and beyond.
#[test]
fn densities_without_noise_have_heavier_tails_than_a_normal_distribution() {
    let x: Vec<f64> = (0..60).map(|row| f64::from(row) / 10.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
    let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap();
    let rows = Table::new(vec![Column::numeric("x", vec![3.05, 7.0, 9.0])]).unwrap();
    let pool = Pool::new(1).unwrap();
    for params in both() {
        let model = process(&table, &params);
        let dist = Distribution::new(&*model, &rows, &pool).unwrap();
        let moments = dist.moments().unwrap();
        for n_sds in [4.0, -4.0, 10.0] {
            let at = |row: usize| moments.mean[row] + n_sds * moments.std[row];
            let found = dist.logpdf(&[at(0), at(1), at(2)]).unwrap();
            let normal = |row: usize| -0.5 * n_sds * n_sds - moments.std[row].ln() - 0.919;
            for (row, found) in found.into_iter().enumerate() {
                assert!(found > normal(row), "row {row}, {n_sds} sd: {found}");
            }
        }
    }
}

#[test]
fn joint_covariances_are_symmetric_and_near_rows_are_correlated() {
    let model = process(&sine(60), &json!({}));
    let x = vec![5.0, 5.01, 30.0];
    let rows = Table::new(vec![Column::numeric("x", x)]).unwrap();
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    let c = dist.joint().unwrap().unwrap().covariance;
    let correlation = |a: usize, b: usize| c[3 * a + b] / (c[4 * a] * c[4 * b]).sqrt();
    assert!(correlation(0, 1) > 0.999, "{}", correlation(0, 1));
    assert!(correlation(0, 2).abs() < 0.2, "{}", correlation(0, 2));
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        assert_eq!(c[3 * a + b].to_bits(), c[3 * b + a].to_bits());
    }
}

#[test]
fn members_are_smooth_functions_that_differ_where_there_are_no_rows() {
    for params in both() {
        let model = process(&sine(60), &params);
        let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 20.0).collect();
        let rows = Table::new(vec![Column::numeric("x", x)]).unwrap();
        let pool = Pool::new(1).unwrap();
        let dist = Distribution::new(&*model, &rows, &pool).unwrap();
        let members = dist.members().unwrap();
        let n = model.n_members();
        // rows x members or members x rows: neighbours of one member differ little
        let of = |row: usize, member: usize| members[row * n + member];
        for member in 0..n {
            let steps = (1..200).map(|row| (of(row, member) - of(row - 1, member)).abs());
            let largest = steps.fold(0.0, f64::max);
            assert!(largest < 0.3, "member {member}: {largest}");
        }
        let parts = dist.uncertainty().unwrap();
        // inside the gap and inside the data
        assert!(parts.knowledge[110] > 5.0 * parts.knowledge[40]);
    }
}

#[test]
fn a_sparse_process_with_all_rows_as_inducing_points_is_the_exact_one() {
    let table = sine(50);
    let fixed = json!({"length_scale": 0.5, "signal_scale": 1.0, "noise_scale": 0.2});
    let mut sparse = fixed.clone();
    sparse["n_inducing"] = json!(50);
    let pool = Pool::new(1).unwrap();
    let [exact, sparse] = [fixed, sparse].map(|params| {
        let model = process(&table, &params);
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        [dist.mean().unwrap(), dist.uncertainty().unwrap().knowledge].concat()
    });
    for (a, b) in exact.iter().zip(&sparse) {
        assert!((a - b).abs() < 1e-5, "{a} and {b}");
    }
}

#[test]
fn far_from_all_rows_the_prediction_is_the_prior() {
    let table = sine(60);
    let params = json!({"length_scale": 0.5, "signal_scale": 0.8, "noise_scale": 0.3});
    let model = process(&table, &params);
    let rows = Table::new(vec![Column::numeric("x", vec![1e6])]).unwrap();
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    let y = numbers(&table, "y");
    let mean = y.iter().sum::<f64>() / 60.0;
    let sd = (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 60.0).sqrt();
    let parts = dist.uncertainty().unwrap();
    assert!((dist.mean().unwrap()[0] - mean).abs() < 1e-9);
    assert!((parts.knowledge[0] / (0.8 * sd).powi(2) - 1.0).abs() < 1e-9);
    assert!((parts.data[0] / (0.3 * sd).powi(2) - 1.0).abs() < 1e-9);
}

#[test]
fn the_number_of_rows_decides_between_an_exact_and_a_sparse_process() {
    let table = sine(60);
    let chosen = |params: &Value| process(&table, params).training().chosen.clone();
    assert!(chosen(&json!({})).starts_with("exact"));
    let sparse = chosen(&json!({"max_exact_rows": 59, "n_epochs": 1}));
    assert!(sparse.contains("inducing points"), "{sparse}");
    let few = chosen(&json!({"n_inducing": 9, "n_epochs": 1}));
    assert!(few.starts_with("9 inducing points"), "{few}");
}

/// The noise of 0.2 and the sine of `mixed` are found; an irrelevant column changes little.
#[test]
fn noise_is_estimated_and_irrelevant_columns_are_ignored() {
    let table = mixed(4, 300);
    let pool = Pool::new(1).unwrap();
    let noise = normals(Key::from_seed(8), 300);
    let wider = replaced(&table, Column::numeric("d", noise));
    for table in [&table, &wider] {
        let model = fit(Family::Gp, &json!({}), &with_target(table, "y"), 0);
        let dist = Distribution::new(&*model, table, &pool).unwrap();
        let noise = dist.uncertainty().unwrap().data[0].sqrt();
        assert!((noise - 0.2).abs() < 0.03, "{noise}");
    }
}

/// The noise function of Antorán et al. 2020, figure 2: `f = -x^3 + x^2`, and a log noise scale of 0, 2/3,
/// 2 and 10/3 on four parts of [-2, 1].
const LOG_SCALES: [f64; 4] = [0.0, 2.0 / 3.0, 2.0, 10.0 / 3.0];

fn steps_of_noise(n: usize, seed: u64) -> Table {
    let noise = normals(Key::from_seed(seed), n);
    let x: Vec<f64> = (0..n)
        .map(|row| 3.0 * row as f64 / (n - 1) as f64 - 2.0)
        .collect();
    let level = |x: f64| LOG_SCALES[((x + 2.0) / 0.75).min(3.0) as usize];
    let y = x.iter().zip(&noise);
    let y = y
        .map(|(&x, z)| x * x - x * x * x + level(x).exp() * z)
        .collect();
    Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
}

/// With 150 rows of each step, the standard error of a log scale is 0.06.
#[test]
fn every_step_of_the_noise_is_found() {
    let model = fit(
        Family::GpRnnTree,
        &json!({}),
        &data(&steps_of_noise(600, 1)),
        0,
    );
    let rows = Table::new(vec![Column::numeric("x", vec![-1.7, -0.9, -0.1, 0.7])]).unwrap();
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    for (variance, log_scale) in dist.uncertainty().unwrap().data.iter().zip(LOG_SCALES) {
        let error = 0.5 * variance.ln() - log_scale;
        assert!(error.abs() < 0.25, "{log_scale}: {error}");
    }
    let tree = model.tree_export().unwrap();
    assert_eq!(tree.nodes.len(), 7, "{}", tree.text());
    assert!(tree.text().starts_with("y: noise ± "), "{}", tree.text());
}

#[test]
fn a_noise_that_is_the_same_everywhere_has_a_tree_of_one_leaf() {
    let table = sine(200);
    let model = fit(Family::GpRnnTree, &json!({}), &data(&table), 3);
    let tree = model.tree_export().unwrap();
    assert_eq!(tree.nodes.len(), 1, "{}", tree.text());
    let plain = process(&table, &json!({}));
    let pool = Pool::new(1).unwrap();
    let [a, b] = [&model, &plain].map(|model| {
        let dist = Distribution::new(&**model, &table, &pool).unwrap();
        [dist.mean().unwrap(), dist.std().unwrap()].concat()
    });
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 0.02, "{a} and {b}");
    }
}

#[test]
fn a_sparse_process_finds_the_noise_too() {
    let params = json!({"n_inducing": 20, "n_epochs": 3, "max_depth": 2});
    let model = fit(
        Family::GpRnnTree,
        &params,
        &data(&steps_of_noise(1200, 1)),
        0,
    );
    let rows = Table::new(vec![Column::numeric("x", vec![-1.0, -0.1, 0.7])]).unwrap();
    let pool = Pool::new(1).unwrap();
    let dist = Distribution::new(&*model, &rows, &pool).unwrap();
    let variances = dist.uncertainty().unwrap().data;
    assert!(variances.is_sorted_by(|a, b| 4.0 * a < *b), "{variances:?}");
    assert!(dist.joint().unwrap().is_some());
}

/// With all rows as inducing points and a given kernel, a sparse process has the noise of the exact one,
/// and its function is conditioned on the noise that it predicts.
#[test]
fn a_sparse_process_is_conditioned_on_the_noise_of_its_leaves() {
    let table = steps_of_noise(200, 4);
    let exact = json!({"length_scale": 0.7, "signal_scale": 1.0});
    let mut sparse = exact.clone();
    sparse["n_inducing"] = json!(200);
    let pool = Pool::new(1).unwrap();
    let [exact, sparse] = [exact, sparse].map(|params| {
        let model = fit(Family::GpRnnTree, &params, &data(&table), 0);
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let parts = dist.uncertainty().unwrap();
        (model.tree_export().unwrap().nodes.len(), parts)
    });
    assert_eq!(exact.0, sparse.0);
    // thresholds may differ by some rows, so the middle of each step is compared; the levels of both
    // have different priors, which move the variance of 50 rows by up to a sixth
    for row in [25, 75, 125, 175] {
        let noise = sparse.1.data[row] / exact.1.data[row];
        assert!((noise.ln()).abs() < 0.2, "{row}: {noise}");
        let knowledge = sparse.1.knowledge[row] / exact.1.knowledge[row];
        assert!((knowledge.ln()).abs() < 0.2, "{row}: {knowledge}");
    }
}

#[test]
fn leaves_at_the_floor_of_the_noise_are_not_split() {
    let params = json!({"min_scale": 10.0, "n_tree_restarts": 1});
    let model = fit(
        Family::GpRnnTree,
        &params,
        &data(&steps_of_noise(300, 5)),
        0,
    );
    let tree = model.tree_export().unwrap();
    assert_eq!(tree.nodes.len(), 1, "{}", tree.text());
}

/// Stops at the first event of a stage.
struct StopAt(&'static str);

impl Observer for StopAt {
    fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
        if event.stage == self.0 {
            return ControlFlow::Break(Stop::Keep);
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_stop_ends_the_training_of_the_network_and_leaves_a_tree() {
    let table = steps_of_noise(120, 6);
    let params = json!({"n_steps": 1_000_000, "max_depth": 4}).to_string();
    let spec = Family::GpRnnTree.params_from_json(&params).unwrap();
    let pool = Pool::new(2).unwrap();
    for stage in [
        "starting points",
        "optimising",
        "training the network of the noise",
    ] {
        let observer = StopAt(stage);
        let run = Run::new(Key::from_seed(1), &pool).observer(&observer);
        let model = spec.fit_with(&data(&table), &run).unwrap();
        assert!(model.training().is_stopped, "{stage}");
        let tree = model.tree_export().unwrap();
        assert!(tree.svg().contains("</svg>"), "{stage}");
        Distribution::new(&*model, &table, &pool)
            .unwrap()
            .std()
            .unwrap();
    }
}

#[test]
fn the_gain_of_a_split_of_the_noise_is_a_log_likelihood_per_row() {
    let model = fit(
        Family::GpRnnTree,
        &json!({}),
        &data(&steps_of_noise(400, 7)),
        0,
    );
    let tree = model.tree_export().unwrap();
    let split = tree.nodes[0].split.as_ref().unwrap();
    // half of the rows have a log scale of about 0.5, the other half one of about 3
    assert!(split.gain > 0.3 && split.gain < 3.0, "{}", split.gain);
}

/// Noise that is a mixture of narrow and wide Normal distributions: a calibrated noise is more probable on new
/// rows than a Normal one, and a given one is kept.
#[test]
fn the_tails_of_the_noise_are_learned_unless_it_is_given() {
    let table = |key: u64, n: usize| {
        let (z, u) = (
            normals(Key::from_seed(key), n),
            normals(Key::from_seed(key + 1), n),
        );
        let x: Vec<f64> = (0..n).map(|row| 6.0 * row as f64 / n as f64).collect();
        let y = (0..n)
            .map(|row| x[row].sin() + 0.1 * z[row] * u[row].exp())
            .collect();
        Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap()
    };
    let (train, test) = (table(30, 400), table(40, 4000));
    let pool = Pool::new(1).unwrap();
    let score = |params: Value| {
        let model = process(&train, &params);
        let dist = Distribution::new(&*model, &test, &pool).unwrap();
        let densities = dist.logpdf(&numbers(&test, "y")).unwrap();
        let data = dist.uncertainty().unwrap().data[0];
        (densities.iter().sum::<f64>() / 4000.0, data)
    };
    let calibrated = score(json!({}));
    let normal = score(json!({"calibrate_noise": false}));
    assert!(calibrated.0 > normal.0 + 0.1, "{calibrated:?} {normal:?}");
    let given = score(json!({"noise_scale": 0.3}));
    let not_calibrated = score(json!({"noise_scale": 0.3, "calibrate_noise": false}));
    assert_eq!(given, not_calibrated);
}
