//! Questions that take long on a few rows: the observer stops them within a block of rows.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use softwood::observer::{Event, Observer, Stop};
use softwood::{Distribution, Error, Family, Key, Model, Pool, Result, Table};

use crate::problems::{TARGETS, fit, mixed, quick, with_target};

/// Stops at event number `last`.
struct StopAt {
    last: usize,
    n_events: AtomicUsize,
}

impl Observer for StopAt {
    fn on_event(&self, _: &Event<'_>) -> ControlFlow<Stop> {
        if self.n_events.fetch_add(1, Ordering::Relaxed) + 1 >= self.last {
            ControlFlow::Break(Stop::Discard)
        } else {
            ControlFlow::Continue(())
        }
    }
}

const N_ROWS: usize = 3;

type Question = fn(&Distribution<'_>) -> Result<Vec<f64>>;

/// Questions with many values for each row, and the name of each.
const REGRESSION: [(&str, Question); 4] = [
    ("sample", |dist| dist.sample(10_000, Key::from_seed(0))),
    ("functions", |dist| {
        dist.sample_functions(10_000, Key::from_seed(0))
    }),
    ("quantile", |dist| dist.quantile(&levels(1000))),
    ("contrast", |dist| {
        Ok(dist.contrast(dist, &levels(1000))?.quantiles)
    }),
];
const CLASSIFICATION: [(&str, Question); 3] = [REGRESSION[0], REGRESSION[1], REGRESSION[3]];

fn levels(n: usize) -> Vec<f64> {
    (1..=n).map(|at| at as f64 / (n + 1) as f64).collect()
}

fn fitted(target: &str) -> (Box<dyn Model>, Table) {
    let family = Family::from_name("tree").unwrap();
    let table = mixed(31, 90);
    let model = fit(family, &quick(family), &with_target(&table, target), 3);
    let rows: Vec<usize> = (0..N_ROWS).collect();
    (model, table.take(&rows))
}

#[test]
fn an_observer_stops_a_question_within_a_block_of_rows() {
    for (target, questions) in TARGETS.iter().zip([&REGRESSION[..], &CLASSIFICATION]) {
        let (model, rows) = fitted(target);
        for threads in [1, 2] {
            let pool = Pool::new(threads).unwrap();
            for (name, question) in questions {
                // the first event is that of the block
                for last in [2, 4] {
                    let n_events = AtomicUsize::new(0);
                    let observer = StopAt { last, n_events };
                    let distribution = Distribution::new(&*model, &rows, &pool).unwrap();
                    let answer = question(&distribution.observed_by(&observer));
                    assert!(
                        matches!(answer, Err(Error::Cancelled)),
                        "{target} {name} {last}"
                    );
                }
            }
        }
    }
}

#[test]
fn functions_beyond_the_number_of_members_repeat_the_members() {
    for target in TARGETS {
        let (model, rows) = fitted(target);
        let pool = Pool::new(1).unwrap();
        let distribution = Distribution::new(&*model, &rows, &pool).unwrap();
        let n_members = model.n_members();
        let members = distribution.members().unwrap();
        let width = members.len() / (N_ROWS * n_members);
        let n = 2 * n_members + 1;
        let functions = distribution.sample_functions(n, Key::from_seed(1)).unwrap();
        let column = |values: &[f64], per_row: usize, at: usize| -> Vec<u64> {
            let rows = values.chunks_exact(per_row * width);
            let cells = rows.flat_map(|row| row[at * width..][..width].to_vec());
            cells.map(f64::to_bits).collect()
        };
        let all: Vec<_> = (0..n_members)
            .map(|at| column(&members, n_members, at))
            .collect();
        for at in 0..n {
            assert!(all.contains(&column(&functions, n, at)), "{target} {at}");
        }
        assert!((0..n_members).all(|at| {
            let first = (0..n_members).map(|at| column(&functions, n, at));
            first.into_iter().any(|function| function == all[at])
        }));
    }
}
