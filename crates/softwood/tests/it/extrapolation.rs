//! Knowledge uncertainty away from the training rows, which every family but the Gaussian processes
//! gets from a small process of its own.

use crate::problems::FitJson as _;
use crate::problems::{
    fit, meta_of, mixed, normals, prediction_bits, quick, uniforms, with_target,
};
use serde_json::{Value, json};
use softwood::distribution::Moments;
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Run, Table};

/// The families whose predictions widen.
fn families() -> impl Iterator<Item = Family> {
    let all = Family::ALL.iter().copied();
    all.filter(|family| !matches!(family, Family::Gp | Family::GpRnnTree))
}

fn quick_with(family: Family, extrapolation: bool) -> Value {
    let mut params = quick(family);
    params["extrapolation"] = json!(extrapolation);
    params
}

/// A wave with noise 0.1, without rows between -1 and 1 and beyond -3 and 3.
fn with_gap(n: usize) -> (Table, Dataset) {
    let key = Key::from_seed(8);
    let x = uniforms(key.child(0), n);
    let x: Vec<f64> = x
        .iter()
        .map(|u| {
            if *u < 0.5 {
                4.0 * u - 3.0
            } else {
                4.0 * u - 1.0
            }
        })
        .collect();
    let noise = normals(key.child(1), n);
    let y = x
        .iter()
        .zip(&noise)
        .map(|(x, noise)| truth(*x) + 0.1 * noise);
    let y = Column::numeric("y", y.collect());
    let table = Table::new(vec![Column::numeric("x", x), y]).unwrap();
    let data = with_target(&table, "y");
    (table, data)
}

fn truth(x: f64) -> f64 {
    (1.2 * x).sin() + 0.2 * x
}

fn at(x: Vec<f64>) -> Table {
    Table::new(vec![Column::numeric("x", x)]).unwrap()
}

fn moments(model: &dyn Model, table: &Table) -> Moments {
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, table, &pool).unwrap();
    dist.moments().unwrap()
}

#[test]
fn the_true_mean_lies_in_the_band_where_there_are_no_rows() {
    let (_, data) = with_gap(160);
    let away: Vec<f64> = (0..40)
        .map(|at| 0.05 * f64::from(at) - 1.0)
        .chain((0..20).map(|at| 3.0 + 0.05 * f64::from(at)))
        .collect();
    for family in families() {
        let model = fit(family, &quick_with(family, true), &data, 3);
        let found = moments(&*model, &at(away.clone()));
        let is_inside = |row: usize| {
            let band = 1.645 * found.knowledge_std[row];
            (found.mean[row] - truth(away[row])).abs() <= band
        };
        let share = (0..away.len()).filter(|&row| is_inside(row)).count() as f64 / 60.0;
        assert!(share >= 0.8, "{family:?}: {share}");
        let usual = moments(&*model, &at(vec![-2.0, 2.0])).knowledge_std;
        let far = moments(&*model, &at(vec![0.0, 4.5])).knowledge_std;
        assert!(
            far[0].min(far[1]) > 1.5 * usual[0].max(usual[1]),
            "{family:?}: {far:?} {usual:?}"
        );
    }
}

#[test]
fn rows_among_the_training_rows_are_not_widened() {
    let (_, data) = with_gap(160);
    let inside = at((0..50).map(|at| -2.8 + 0.03 * f64::from(at)).collect());
    for family in families() {
        let with = fit(family, &quick_with(family, true), &data, 3);
        let without = fit(family, &quick_with(family, false), &data, 3);
        assert_eq!(
            prediction_bits(&*with, &inside),
            prediction_bits(&*without, &inside),
            "{family:?}"
        );
        // the mean does not change anywhere
        let far = at(vec![0.0, 9.0, -30.0]);
        let means = [&with, &without].map(|model| moments(&**model, &far).mean);
        assert_eq!(means[0], means[1], "{family:?}");
        assert!(meta_of(&without.record()).get("extrapolation").is_none());
    }
}

/// Data variance, members, draws, density and quantiles of a row away from the training rows describe
/// the same distribution.
#[test]
fn all_answers_agree_away_from_the_rows() {
    let (_, data) = with_gap(160);
    let table = at(vec![0.1, -0.4, 3.6]);
    let pool = Pool::new(1).unwrap();
    for family in families() {
        let model = fit(family, &quick_with(family, true), &data, 3);
        let alone = fit(family, &quick_with(family, false), &data, 3);
        let dist = Distribution::new(&*model, &table, &pool).unwrap();
        let found = dist.moments().unwrap();
        let expected = moments(&*alone, &table);
        let members = dist.members().unwrap();
        let n_members = model.n_members();
        let draws = dist.sample(20_000, Key::from_seed(1)).unwrap();
        let ratio = |row: usize| found.knowledge_std[row] / expected.knowledge_std[row];
        assert!((0..3).any(|row| ratio(row) > 1.1), "{family:?}");
        for row in 0..3 {
            let close = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * b.abs();
            let (data_std, alone) = (found.data_std[row], expected.data_std[row]);
            assert!(
                close(data_std, alone, 1e-6),
                "{family:?}: {data_std} {alone}"
            );
            // the larger of the model's own knowledge and that of the process
            assert!(found.knowledge_std[row] > (1.0 - 1e-9) * expected.knowledge_std[row]);
            if n_members > 1 {
                let of_row = &members[row * n_members..(row + 1) * n_members];
                let mean = of_row.iter().sum::<f64>() / n_members as f64;
                let square = |value: &f64| (value - mean).powi(2);
                let variance = of_row.iter().map(square).sum::<f64>() / n_members as f64;
                let sd = found.knowledge_std[row];
                assert!(
                    close(variance.sqrt(), sd, 1e-6),
                    "{family:?}: {variance} {sd}"
                );
            }
            // half of the draws lie between the quartiles
            let quartiles = dist.quantile(&[0.25, 0.75]).unwrap();
            let (low, high) = (quartiles[2 * row], quartiles[2 * row + 1]);
            let of_row = &draws[row * 20_000..(row + 1) * 20_000];
            let inside = of_row.iter().filter(|&&y| y > low && y < high).count();
            assert!((9_600..10_400).contains(&inside), "{family:?}: {inside}");
            // the density integrates to one
            let (centre, sd) = (found.mean[row], found.std[row]);
            let grid: Vec<f64> = (-400..=400)
                .map(|step| centre + 0.05 * f64::from(step) * sd)
                .collect();
            let rows = at(vec![[0.1, -0.4, 3.6][row]; grid.len()]);
            let dense = Distribution::new(&*model, &rows, &pool).unwrap();
            let mass: f64 = dense.logpdf(&grid).unwrap().iter().map(|l| l.exp()).sum();
            let mass = mass * 0.05 * sd;
            assert!((mass - 1.0).abs() < 0.02, "{family:?}: {mass}");
        }
    }
}

#[test]
fn a_loaded_model_widens_as_before_and_the_order_of_rows_does_not_matter() {
    let table = mixed(4, 150);
    let data = with_target(&table, "y");
    let far = {
        let mut columns = table.columns().to_vec();
        columns[0] = Column::numeric(
            "a",
            (0..150).map(|row| 0.2 * f64::from(row) - 15.0).collect(),
        );
        Table::new(columns).unwrap()
    };
    for family in families() {
        let model = fit(family, &quick_with(family, true), &data, 3);
        let loaded = softwood::from_bytes(&model.to_bytes()).unwrap();
        let bits = prediction_bits(&*model, &far);
        assert_eq!(prediction_bits(&*loaded, &far), bits, "{family:?}");
    }
    // in another order
    let params = quick_with(Family::Tree, true);
    let order: Vec<usize> = (0..150).map(|row| row * 7 % 150).collect();
    let model = fit(Family::Tree, &params, &data, 3);
    let shuffled = fit(Family::Tree, &params, &data.take(&order), 3);
    assert_eq!(
        prediction_bits(&*shuffled, &far),
        prediction_bits(&*model, &far)
    );
}

/// Tables for which the process has nothing to say, or much: none of them fails a fit.
#[test]
fn odd_tables_do_not_fail() {
    let column = |name: &str, values: Vec<f64>| Column::numeric(name, values);
    let n = 130;
    let x: Vec<f64> = (0..n).map(f64::from).collect();
    let wide = (0..300).map(|at| {
        let values = uniforms(Key::from_seed(at), n as usize);
        column(&format!("x{at}"), values)
    });
    let wide: Vec<Column> = wide.chain([column("y", x.clone())]).collect();
    let missing = x.iter().map(|x| if *x > 60.0 { f64::NAN } else { *x });
    let tables = [
        vec![column("x", vec![1.0; n as usize]), column("y", x.clone())],
        vec![column("x", missing.collect()), column("y", x.clone())],
        vec![
            column("x", x.clone()),
            column("y", x.iter().map(|x| x * 1e300).collect()),
        ],
        vec![
            column("x", x.iter().map(|x| x * 1e-300).collect()),
            column("y", x.clone()),
        ],
        vec![column("x", x[..2].to_vec()), column("y", x[..2].to_vec())],
        wide,
    ];
    for columns in tables {
        let table = Table::new(columns).unwrap();
        for family in [Family::Tree, Family::Sglb] {
            let model = fit(
                family,
                &quick_with(family, true),
                &with_target(&table, "y"),
                1,
            );
            prediction_bits(&*model, &table);
            let loaded = softwood::from_bytes(&model.to_bytes()).unwrap();
            assert_eq!(
                prediction_bits(&*loaded, &table),
                prediction_bits(&*model, &table)
            );
        }
    }
}

/// The members of a classifier disagree far from the rows, and are as they were among them.
#[test]
fn classes_become_uncertain_away_from_the_rows() {
    let table = mixed(4, 200);
    let far = {
        let mut columns = table.columns().to_vec();
        for at in [0, 1] {
            columns[at] = Column::numeric(["a", "b"][at], vec![25.0; 200]);
        }
        Table::new(columns).unwrap()
    };
    let pool = Pool::new(1).unwrap();
    for family in families() {
        for target in ["two", "three"] {
            let data = with_target(&table, target);
            let with = fit(family, &quick_with(family, true), &data, 3);
            let without = fit(family, &quick_with(family, false), &data, 3);
            let knowledge = |model: &dyn Model, table: &Table| {
                let dist = Distribution::new(model, table, &pool).unwrap();
                let total = dist.probabilities().unwrap().iter().sum::<f64>();
                assert!((total - 200.0).abs() < 1e-5, "{family:?}: {total}");
                dist.uncertainty().unwrap().knowledge.iter().sum::<f64>() / 200.0
            };
            let (far_with, near_with) = (knowledge(&*with, &far), knowledge(&*with, &table));
            let far_without = knowledge(&*without, &far);
            let message = format!("{family:?} {target}: {near_with} {far_with} {far_without}");
            assert!(far_with > 2.0 * near_with, "{message}");
            // the members of soft trees may disagree as much by themselves
            assert!(far_with > 0.8 * far_without, "{message}");
            let loaded = softwood::from_bytes(&with.to_bytes()).unwrap();
            assert_eq!(
                prediction_bits(&*loaded, &far),
                prediction_bits(&*with, &far)
            );
            // the centre of the rows
            let centre = Table::new(vec![
                Column::numeric("a", vec![0.1]),
                Column::numeric("b", vec![-0.1]),
                Column::categorical("c", &[Some("pine")]),
            ])
            .unwrap();
            assert_eq!(
                prediction_bits(&*with, &centre),
                prediction_bits(&*without, &centre),
                "{family:?}"
            );
        }
    }
}

#[test]
fn an_unseen_category_counts_as_far() {
    let table = mixed(4, 300);
    let model = fit(Family::Tree, &json!({}), &with_target(&table, "y"), 3);
    let row = |c: &str| {
        let cells = [Some(c)];
        Table::new(vec![
            Column::numeric("a", vec![0.0]),
            Column::numeric("b", vec![0.0]),
            Column::categorical("c", &cells),
        ])
        .unwrap()
    };
    let known = moments(&*model, &row("pine")).knowledge_std[0];
    let unseen = moments(&*model, &row("cedar")).knowledge_std[0];
    assert!(unseen > 2.0 * known, "{known} {unseen}");
}

/// Monotone constraints hold in every member, also where the predictions are widened.
#[test]
fn constrained_members_keep_their_functions() {
    let (_, data) = with_gap(160);
    let grid = at((0..200).map(|at| 0.1 * f64::from(at) - 10.0).collect());
    let pool = Pool::new(1).unwrap();
    for family in [Family::Sgb, Family::Sglb] {
        let mut params = quick_with(family, true);
        params["monotonic_cst"] = json!({"x": 1});
        let model = fit(family, &params, &data, 3);
        let dist = Distribution::new(&*model, &grid, &pool).unwrap();
        let members = dist.members().unwrap();
        let n_members = model.n_members();
        for pair in members.windows(n_members + 1).step_by(1) {
            assert!(pair[n_members] >= pair[0] - 1e-9, "{family:?}");
        }
        params["extrapolation"] = json!(false);
        let alone = fit(family, &params, &data, 3);
        let alone = Distribution::new(&*alone, &grid, &pool).unwrap();
        assert_eq!(members, alone.members().unwrap(), "{family:?}");
        let widest = dist.moments().unwrap().knowledge_std;
        assert!(widest[199] > 2.0 * widest[80], "{family:?}");
    }
}

/// A snapshot that predicts during the fit has fewer members than the model, which is unchanged.
#[test]
fn snapshots_that_predict_do_not_change_the_model() {
    use softwood::observer::{Event, Observer, Stop};
    use std::ops::ControlFlow;

    struct Predicts(Table);
    impl Observer for Predicts {
        fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
            if let Some(Ok(model)) = event.snapshot() {
                model.predict(&self.0).unwrap().quantile(&[0.1]).unwrap();
            }
            ControlFlow::Continue(())
        }
    }
    let (_, data) = with_gap(100);
    let far = at(vec![0.0, 9.0]);
    let pool = Pool::new(1).unwrap();
    let observer = Predicts(far.clone());
    for family in [Family::Sgb, Family::Vst] {
        let run = Run::new(Key::from_seed(1), &pool);
        let plain = family.fit_with(&quick(family), &data, &run).unwrap();
        let watched = run.observer(&observer);
        let watched = family.fit_with(&quick(family), &data, &watched).unwrap();
        assert_eq!(
            prediction_bits(&*watched, &far),
            prediction_bits(&*plain, &far),
            "{family:?}"
        );
    }
}
