//! Cancel tokens: work is cancelled between two events, wherever it is, and work that is not
//! cancelled keeps its bits.

use std::ops::ControlFlow;
use std::sync::Mutex;

use serde_json::json;

use crate::problems::FitJson as _;
use crate::problems::{fit, mixed, normals, numbers, quick, targets_of, with_target};
use softwood::evaluate::{Protocol, evaluate};
use softwood::explain::{PermutationOptions, importances};
use softwood::observer::{CancelToken, Event, Observer, Stop};
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Model, Pool, Result, Roles, Run, Table,
};

/// How often a token may be checked after it is cancelled: each of the loops around the place of the
/// stop notices it once.
const MAX_CHECKS_AFTER: usize = 60;

/// An observer with a token, which notes the number of checks before each event.
struct Watched {
    token: CancelToken,
    checks: Mutex<Vec<usize>>,
}

impl Watched {
    fn new(token: CancelToken) -> Self {
        Self {
            token,
            checks: Mutex::default(),
        }
    }

    /// Number of checks between each event and the one before it.
    fn intervals(&self) -> Vec<usize> {
        let checks = self.checks.lock().unwrap();
        let before = std::iter::once(&0).chain(checks.iter());
        before.zip(checks.iter()).map(|(a, b)| b - a).collect()
    }
}

impl Observer for Watched {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        self.checks.lock().unwrap().push(self.token.n_checks());
        ControlFlow::Continue(())
    }

    fn cancel_tokens(&self) -> Vec<CancelToken> {
        vec![self.token.clone()]
    }
}

fn fit_on(
    pool: &Pool,
    family: Family,
    data: &Dataset,
    watched: &Watched,
) -> Result<Box<dyn Model>> {
    let run = Run::new(Key::from_seed(0), pool).observer(watched);
    family.fit_with(&quick(family), data, &run)
}

/// Runs `work` with a token that is never cancelled, then with tokens that are cancelled at several
/// of its checks, the first and the last among them.
fn is_cancelled_anywhere<T>(what: &str, work: impl Fn(&Watched) -> Result<T>) -> T {
    let counted = Watched::new(CancelToken::new());
    let done = work(&counted).unwrap_or_else(|error| panic!("{what}: {error}"));
    let n_checks = counted.token.n_checks();
    assert!(n_checks > 4, "{what}: {n_checks} checks");
    for n in [
        1,
        2,
        3,
        n_checks / 10,
        n_checks / 3,
        n_checks / 2,
        n_checks - 1,
        n_checks,
    ] {
        let n = n.max(1);
        let stopped = Watched::new(CancelToken::at_check(n));
        let result = work(&stopped);
        assert!(
            matches!(result, Err(Error::Cancelled)),
            "{what}: cancelled at check {n} of {n_checks}"
        );
        let n_after = stopped.token.n_checks() - n;
        assert!(
            n_after <= MAX_CHECKS_AFTER,
            "{what}: {n_after} checks after check {n}"
        );
    }
    done
}

#[test]
fn a_fit_is_cancelled_anywhere_and_a_token_does_not_change_its_bits() {
    let pool = Pool::new(1).unwrap();
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let data = with_target(&mixed(14, 80), target);
            let what = format!("{} {target}", family.name());
            let model =
                is_cancelled_anywhere(&what, |watched| fit_on(&pool, family, &data, watched));
            let alone = fit(family, &quick(family), &data, 0);
            assert!(model.to_bytes() == alone.to_bytes(), "{what}");
        }
    }
}

#[test]
fn a_fit_on_several_threads_is_cancelled_on_all_of_them() {
    let pool = Pool::new(3).unwrap();
    for &family in Family::ALL {
        let data = with_target(&mixed(14, 80), "y");
        for n in [1, 20, 50] {
            let watched = Watched::new(CancelToken::at_check(n));
            let result = fit_on(&pool, family, &data, &watched);
            assert!(matches!(result, Err(Error::Cancelled)), "{}", family.name());
            assert!(watched.token.n_checks() - n <= 3 * MAX_CHECKS_AFTER);
        }
    }
}

#[test]
fn an_epoch_checks_at_every_step() {
    let data = with_target(&mixed(15, 800), "y");
    let params = json!({
        "max_depth": 1, "leaf_mixing": "blend", "scaling": "standard", "rotation": "none",
        "squares": false, "n_epochs": 3, "batch_size": 16, "n_fits": 1, "n_members": 2,
    });
    let (pool, watched) = (Pool::new(1).unwrap(), Watched::new(CancelToken::new()));
    let run = Run::new(Key::from_seed(0), &pool).observer(&watched);
    Family::Vst.fit_with(&params, &data, &run).unwrap();
    let intervals = watched.intervals();
    assert_eq!(intervals.len(), 3);
    // 720 training rows in batches of 16
    assert!(intervals.iter().all(|&n| n >= 45), "{intervals:?}");
}

/// A table of Normal numbers whose target is the sum of the first two.
fn wide(n_rows: usize, n_columns: usize) -> Dataset {
    let key = Key::from_seed(16);
    let mut columns: Vec<Column> = (0..n_columns)
        .map(|at| Column::numeric(format!("x{at}"), normals(key.child(at as u64), n_rows)))
        .collect();
    let noise = normals(key.child(1 << 20), n_rows);
    let (a, b) = (&columns[0], &columns[1]);
    let table = |column: &Column| Table::new(vec![column.clone()]).unwrap();
    let (a, b) = (numbers(&table(a), "x0"), numbers(&table(b), "x1"));
    let y = (0..n_rows).map(|row| a[row] + b[row] + 0.1 * noise[row]);
    columns.push(Column::numeric("y", y.collect()));
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(Table::new(columns).unwrap(), &roles).unwrap()
}

#[test]
fn the_stages_before_the_first_event_check_at_every_column() {
    let data = wide(40, 500);
    for (family, params) in [
        (
            Family::Vst,
            json!({"n_epochs": 1, "n_fits": 1, "max_depth": 1, "rotation": "pca"}),
        ),
        (Family::Tree, json!({})),
        (Family::Ldt, json!({})),
        (Family::SoftTree, json!({"n_epochs": 1})),
        (
            Family::Vart,
            json!({"n_epochs": 1, "n_fits": 1, "max_depth": 1, "rotation": "pca"}),
        ),
        (Family::Forest, json!({"n_estimators": 1, "n_members": 1})),
        (
            Family::Vsgbm,
            json!({"n_epochs": 1, "n_fits": 1, "n_estimators": 1, "max_depth": 1, "rotation": "pca"}),
        ),
        (
            Family::Sgb,
            json!({"n_estimators": 1, "n_members": 1, "learning_rate": 0.1}),
        ),
        (
            Family::Sglb,
            json!({"n_estimators": 1, "n_members": 1, "learning_rate": 0.1}),
        ),
        (
            Family::RnnTree,
            json!({"n_steps": 1, "n_restarts": 1, "max_depth": 1}),
        ),
        (Family::Gp, json!({"max_iterations": 0, "n_restarts": 0})),
        (
            Family::GpRnnTree,
            json!({"max_iterations": 0, "n_restarts": 0, "n_steps": 1, "n_tree_restarts": 1}),
        ),
    ] {
        let (pool, watched) = (Pool::new(1).unwrap(), Watched::new(CancelToken::new()));
        let run = Run::new(Key::from_seed(0), &pool).observer(&watched);
        family.fit_with(&params, &data, &run).unwrap();
        let first = watched.intervals()[0];
        assert!(first >= 500, "{}: {first} checks", family.name());
    }
}

#[test]
fn a_table_of_more_columns_than_rows_is_fitted_in_every_encoding() {
    let data = wide(60, 150);
    for rotation in ["none", "pca", "both"] {
        let params = json!({
            "max_depth": 2, "leaf_mixing": "blend", "leaf_model": "linear", "rotation": rotation,
            "scaling": "standard", "squares": false, "n_epochs": 300, "n_fits": 1,
        });
        let model = fit(Family::Vst, &params, &data, 0);
        let pool = Pool::new(1).unwrap();
        let mean = Distribution::new(&*model, data.features(), &pool)
            .and_then(|rows| rows.mean())
            .unwrap();
        assert!(mean.iter().all(|mean| mean.is_finite()), "{rotation}");
        // the whitened components of fewer rows than columns reproduce the training rows
        let softwood::data::Target::Numeric(y) = data.target() else {
            panic!("numbers expected")
        };
        let error = mean.iter().zip(y).map(|(mean, y)| (mean - y).powi(2));
        let error = error.sum::<f64>() / 60.0;
        assert!(error < 1.9, "{rotation}: {error}");
    }
}

/// A question about rows, and its name.
type Question<'a> = (&'a str, &'a dyn Fn(&Distribution<'_>) -> Result<Vec<f64>>);

#[test]
fn a_question_about_one_block_of_rows_is_cancelled_between_its_pieces() {
    let table = mixed(17, 120);
    let data = with_target(&table, "y");
    let params = json!({
        "max_depth": 3, "leaf_mixing": "mixture", "n_epochs": 20, "n_members": 200, "n_fits": 1,
    });
    let model = fit(Family::Vst, &params, &data, 0);
    let rows = table.take(&(0..12).collect::<Vec<_>>());
    let (pool, y) = (Pool::new(1).unwrap(), numbers(&rows, "y"));
    let questions: [Question<'_>; 4] = [
        ("crps", &|rows| rows.crps(&y)),
        ("quantile", &|rows| rows.quantile(&[0.1, 0.9])),
        ("sample", &|rows| rows.sample(5000, Key::from_seed(1))),
        ("mean", &|rows| rows.mean()),
    ];
    for (what, question) in questions {
        let ask = |watched: &Watched| {
            question(&Distribution::new(&*model, &rows, &pool)?.observed_by(watched))
        };
        is_cancelled_anywhere(what, ask);
        let watched = Watched::new(CancelToken::new());
        ask(&watched).unwrap();
        // an event for the block, and a check for each member at least
        assert!(!watched.intervals().is_empty(), "{what}");
        assert!(watched.token.n_checks() >= 200, "{what}");
    }
}

#[test]
fn an_evaluation_and_a_permutation_importance_are_cancelled_anywhere() {
    let table = mixed(18, 60);
    let data = with_target(&table, "y");
    let pool = Pool::new(1).unwrap();
    let spec = Family::Tree.params_from_json("{}").unwrap();
    let splits = Protocol::Holdout(0.3).splits(&data, 0, None).unwrap();
    is_cancelled_anywhere("evaluate", |watched| {
        evaluate(
            std::slice::from_ref(&spec),
            &data,
            &splits,
            0,
            &pool,
            watched,
        )
    });
    let model = fit(Family::Vst, &quick(Family::Vst), &data, 0);
    let options = PermutationOptions {
        repeats: 1,
        key: Key::from_seed(0),
        reference: None,
    };
    is_cancelled_anywhere("importances", |watched| {
        let rows = Distribution::new(&*model, &table, &pool)?.observed_by(watched);
        importances(&rows, Some(data.target()), &options)
    });
}
