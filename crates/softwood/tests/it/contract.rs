//! What every family owes its users, one suite over all of them.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problems::FitJson as _;
use crate::problems::{
    TARGETS, answers, categories, fit, mixed, normals, numbers, quick, replaced, with_target,
};
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Model, NoObserver, Observer, Pool, Progress,
    Roles, Run, Table, read_model, write_model,
};

/// The behaviour of each family on each target of the mixed table.
fn each(check: impl Fn(Family, &str)) {
    for &family in Family::ALL {
        for target in TARGETS {
            check(family, target);
        }
    }
}

fn quick_fit(family: Family, data: &Dataset) -> Box<dyn Model> {
    fit(family, &quick(family), data, 0)
}

/// As [`quick_fit`], with the error.
fn try_fit(family: Family, data: &Dataset, observer: &dyn Observer) -> Result<(), Error> {
    let pool = Pool::new(2).unwrap();
    let run = Run {
        key: Key::from_seed(0),
        pool: &pool,
        observer,
        held_out: None,
        warm_start: None,
    };
    family.fit(&quick(family), data, &run).map(|_| ())
}

fn roles(target: &str) -> Roles {
    Roles {
        target: target.to_owned(),
        ..Roles::default()
    }
}

#[test]
fn a_model_read_from_its_file_says_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    each(|family, target| {
        let table = mixed(1, 120);
        let model = quick_fit(family, &with_target(&table, target));
        let path = folder.path().join(format!("{target}.softwood"));
        write_model(&path, &model.record()).unwrap();
        let read = read_model(&path).unwrap();
        assert_eq!(answers(&*read, &table), answers(&*model, &table));
        assert_eq!(read.schema(), model.schema());
        assert_eq!(read.training(), model.training());
    });
}

#[test]
fn missing_cells_are_taken_in_training_and_in_prediction() {
    each(|family, target| {
        let full = mixed(2, 120);
        let mut a = numbers(&full, "a");
        let mut c = categories(Key::from_seed(3), a.len(), &["oak", "pine", "yew"]);
        for row in (0..a.len()).step_by(3) {
            a[row] = f64::NAN;
            c[(row + 1) % a.len()] = None;
        }
        let holes = replaced(&full, Column::numeric("a", a));
        let holes = replaced(&holes, Column::categorical("c", &c));
        // whether or not training had missing cells, `answers` finds finite numbers everywhere
        for training in [&full, &holes] {
            let model = quick_fit(family, &with_target(training, target));
            answers(&*model, &full);
            answers(&*model, &holes);
        }
    });
}

#[test]
fn a_column_without_a_single_cell_is_taken() {
    each(|family, target| {
        let table = mixed(4, 80);
        let empty = Column::numeric("empty", vec![f64::NAN; table.n_rows()]);
        let nameless = Column::categorical("nameless", &vec![None::<&str>; table.n_rows()]);
        let wide = replaced(&replaced(&table, empty), nameless);
        let model = quick_fit(family, &with_target(&wide, target));
        answers(&*model, &wide);
        // a cell where training had none
        let filled = Column::numeric("empty", vec![7.0; table.n_rows()]);
        answers(&*model, &replaced(&wide, filled));
        // nothing but missing cells: the marginal law is left
        let bare = wide.without(&["a", "b", "c"]);
        let model = quick_fit(family, &with_target(&bare, target));
        answers(&*model, &bare);
    });
}

#[test]
fn constant_columns_are_taken() {
    each(|family, target| {
        let table = mixed(5, 80);
        let table = replaced(&table, Column::numeric("a", vec![3.0; 80]));
        let table = replaced(&table, Column::categorical("c", &[Some("oak"); 80]));
        answers(&*quick_fit(family, &with_target(&table, target)), &table);
    });
}

#[test]
fn text_alone_is_enough() {
    each(|family, target| {
        let table = mixed(6, 80).without(&["a", "b"]);
        answers(&*quick_fit(family, &with_target(&table, target)), &table);
    });
}

/// Rows of each of four trees whose heights differ by five times the noise.
fn forest(n: usize) -> Table {
    let key = Key::from_seed(7);
    let names = ["ash", "elm", "oak", "yew"];
    let tree = categories(key.child(1), n, &names);
    let (age, noise) = (normals(key.child(2), n), normals(key.child(3), n));
    let level = |row: usize| {
        names
            .iter()
            .position(|name| tree[row].as_deref() == Some(name))
    };
    let height = (0..n)
        .map(|row| 2.5 * level(row).unwrap() as f64 + age[row] + 0.5 * noise[row])
        .collect();
    Table::new(vec![
        Column::numeric("age", age),
        Column::categorical("tree", &tree),
        Column::numeric("height", height),
    ])
    .unwrap()
}

/// Mean knowledge uncertainty of the rows of `table`, all of them said to be of one kind of tree.
fn knowledge(model: &dyn Model, table: &Table, kind: &str) -> f64 {
    let kinds = vec![Some(kind); table.n_rows()];
    let rows = replaced(table, Column::categorical("tree", &kinds));
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, &rows, &pool).unwrap();
    dist.uncertainty().unwrap().knowledge.iter().sum::<f64>() / table.n_rows() as f64
}

#[test]
fn an_unseen_category_raises_knowledge_uncertainty() {
    for &family in Family::ALL {
        let table = forest(400);
        let heights = numbers(&table, "height").into_iter();
        let tall: Vec<_> = heights
            .map(|h| Some(if h > 4.0 { "yes" } else { "no" }))
            .collect();
        let classes = replaced(
            &table.without(&["height"]),
            Column::categorical("tall", &tall),
        );
        for (table, target) in [(&table, "height"), (&classes, "tall")] {
            let data = Dataset::from_table(table, &roles(target)).unwrap();
            let model = quick_fit(family, &data);
            let unseen = knowledge(&*model, table, "baobab");
            for kind in ["ash", "elm", "oak", "yew"] {
                let seen = knowledge(&*model, table, kind);
                assert!(unseen > 2.0 * seen, "{target}: {unseen}, {kind} {seen}");
            }
        }
    }
}

#[test]
fn one_row_gets_the_answer_it_gets_among_others() {
    each(|family, target| {
        let table = mixed(8, 120);
        let model = quick_fit(family, &with_target(&table, target));
        let all = answers(&*model, &table);
        for row in [0, 17, 119] {
            let one = answers(&*model, &table.take(&[row]));
            // the mean, or the probability of the first class
            let width = model.schema().classes().map_or(1, <[String]>::len);
            assert_eq!(one[0], all[row * width]);
        }
    });
}

#[test]
fn two_rows_are_enough_and_one_is_not() {
    each(|family, target| {
        let table = mixed(9, 60);
        let data = with_target(&table, target);
        let other = (1..60).find(|&row| {
            let pair = data.take(&[0, row]);
            pair.check_fit().is_ok()
        });
        let pair = with_target(&table.take(&[0, other.unwrap()]), target);
        answers(&*quick_fit(family, &pair), &table);
        let one = with_target(&table.take(&[0]), target);
        assert!(matches!(
            try_fit(family, &one, &NoObserver),
            Err(Error::Table(_))
        ));
    });
}

#[test]
fn a_constant_target_is_refused_by_name() {
    for &family in Family::ALL {
        let table = replaced(&mixed(10, 50), Column::numeric("y", vec![2.5; 50]));
        let error = try_fit(family, &with_target(&table, "y"), &NoObserver).unwrap_err();
        assert!(error.to_string().contains("`y`"), "{error}");
        let table = replaced(&table, Column::categorical("two", &[Some("no"); 50]));
        let error = try_fit(family, &with_target(&table, "two"), &NoObserver).unwrap_err();
        assert!(error.to_string().contains("`two`"), "{error}");
    }
}

/// The table with `weights` as weights, for `target`.
fn weighted(table: &Table, weights: Vec<f64>, target: &str) -> Dataset {
    let data = with_target(table, target);
    Dataset::new(
        data.schema().clone(),
        data.features().clone(),
        data.target().clone(),
        Some(weights),
    )
    .unwrap()
}

#[test]
fn a_weight_is_a_repetition() {
    each(|family, target| {
        let table = mixed(11, 90);
        let count = |row: usize| 1 + row % 3;
        let rows: Vec<usize> = (0..90).flat_map(|row| vec![row; count(row)]).collect();
        let repeated = with_target(&table, target).take(&rows);
        let weights = (0..90).map(|row| count(row) as f64).collect();
        let weighted = weighted(&table, weights, target);
        assert_eq!(
            answers(&*quick_fit(family, &repeated), &table),
            answers(&*quick_fit(family, &weighted), &table)
        );
    });
}

#[test]
fn rows_of_weight_zero_are_not_there() {
    each(|family, target| {
        let table = mixed(12, 90);
        let weights = (0..90).map(|row| f64::from(u8::from(row < 60))).collect();
        let kept: Vec<usize> = (0..60).collect();
        let (weighted, kept) = (
            weighted(&table, weights, target),
            with_target(&table, target).take(&kept),
        );
        assert_eq!(
            answers(&*quick_fit(family, &weighted), &table),
            answers(&*quick_fit(family, &kept), &table)
        );
    });
}

#[test]
fn what_only_rows_of_weight_zero_say_does_not_count() {
    for &family in Family::ALL {
        let table = mixed(13, 50);
        let mut y = vec![1.0; 50];
        y[49] = 2.0;
        let table = replaced(&table, Column::numeric("y", y));
        let mut weights = vec![1.0; 50];
        weights[49] = 0.0;
        let error = try_fit(family, &weighted(&table, weights, "y"), &NoObserver).unwrap_err();
        assert!(error.to_string().contains("`y`"), "{error}");
        let mut weights = vec![0.0; 50];
        weights[49] = 1.0;
        let error = try_fit(family, &weighted(&table, weights, "y"), &NoObserver).unwrap_err();
        assert!(matches!(error, Error::Table(_)), "{error}");
    }
}

/// Asks to stop at its n-th call.
struct Stop {
    after: usize,
    calls: AtomicUsize,
}

impl Observer for Stop {
    fn step(&self, _: &Progress<'_>) -> ControlFlow<()> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < self.after {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

#[test]
fn a_fit_stops_when_it_is_asked_to() {
    each(|family, target| {
        let data = with_target(&mixed(14, 80), target);
        for after in [0, 1, 30] {
            let observer = Stop {
                after,
                calls: AtomicUsize::new(0),
            };
            let result = try_fit(family, &data, &observer);
            assert!(
                matches!(result, Err(Error::Cancelled)),
                "after {after}: {result:?}"
            );
        }
    });
}

#[test]
fn class_probabilities_sum_to_one_and_the_label_is_the_largest() {
    for &family in Family::ALL {
        for target in ["two", "three"] {
            let table = mixed(15, 150);
            let model = quick_fit(family, &with_target(&table, target));
            let pool = Pool::new(1).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let n_classes = model.schema().classes().unwrap().len();
            let (probabilities, labels) = (dist.probabilities().unwrap(), dist.labels().unwrap());
            for (row, label) in probabilities.chunks_exact(n_classes).zip(labels) {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{row:?}");
                assert!(row.iter().all(|&p| (0.0..=1.0).contains(&p)), "{row:?}");
                assert!(row.iter().all(|&p| p <= row[label as usize]), "{row:?}");
            }
        }
    }
}

#[test]
fn a_class_of_one_row_is_kept() {
    for &family in Family::ALL {
        let table = mixed(16, 100);
        let mut classes: Vec<_> = (0..100).map(|row| Some(["no", "yes"][row % 2])).collect();
        classes[40] = Some("rare");
        let table = replaced(&table, Column::categorical("three", &classes));
        let model = quick_fit(family, &with_target(&table, "three"));
        assert_eq!(model.schema().classes().unwrap(), ["no", "rare", "yes"]);
        answers(&*model, &table);
    }
}

#[test]
fn numbers_can_be_classes() {
    for &family in Family::ALL {
        let table = mixed(17, 80);
        let digits = (0..80).map(|row| f64::from(row % 3)).collect();
        let table = replaced(&table, Column::numeric("y", digits)).without(&["two", "three"]);
        let roles = Roles {
            classify: Some(true),
            ..roles("y")
        };
        let model = quick_fit(family, &Dataset::from_table(&table, &roles).unwrap());
        assert_eq!(model.schema().classes().unwrap(), ["0", "1", "2"]);
        answers(&*model, &table);
    }
}

#[test]
fn targets_of_any_size_and_offset_are_taken() {
    for &family in Family::ALL {
        let table = mixed(18, 100);
        let y = numbers(&table, "y");
        for (shift, scale) in [(0.0, 1e300), (0.0, 1e-300), (1e9, 1e-3), (-1e9, 1.0)] {
            let moved: Vec<f64> = y.iter().map(|y| shift + scale * y).collect();
            let table = replaced(&table, Column::numeric("y", moved.clone()));
            let model = quick_fit(family, &with_target(&table, "y"));
            let pool = Pool::new(1).unwrap();
            let dist = Distribution::new(&*model, &table, &pool).unwrap();
            let low = moved.iter().copied().fold(f64::INFINITY, f64::min);
            let high = moved.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let width = high - low;
            for mean in dist.mean().unwrap() {
                assert!(mean > low - width && mean < high + width, "{scale}: {mean}");
            }
            for sd in dist.sd().unwrap() {
                assert!(sd > 1e-4 * width && sd < 2.0 * width, "{scale}: {sd}");
            }
            for pair in dist.interval(0.9).unwrap().chunks_exact(2) {
                assert!(low - width < pair[0] && pair[0] < pair[1] && pair[1] < high + width);
            }
            let of_targets = [
                dist.log_density(&moved).unwrap(),
                dist.crps(&moved).unwrap(),
                dist.cdf(&moved).unwrap(),
            ];
            assert!(
                of_targets.iter().flatten().all(|number| number.is_finite()),
                "{scale}"
            );
        }
    }
}

#[test]
fn features_of_any_size_are_taken() {
    each(|family, target| {
        let table = mixed(19, 80);
        let stretched = |scale: f64| {
            let a = numbers(&table, "a").iter().map(|a| scale * a).collect();
            replaced(&table, Column::numeric("a", a))
        };
        for scale in [1e300, 1e-300] {
            let table = stretched(scale);
            answers(&*quick_fit(family, &with_target(&table, target)), &table);
        }
        // far outside of what training saw
        let model = quick_fit(family, &with_target(&table, target));
        answers(&*model, &stretched(1e300));
    });
}

#[test]
fn a_held_out_row_beyond_all_others_leaves_a_model_that_can_be_read() {
    let table = mixed(9, 120);
    let data = with_target(&table, "y");
    let far = replaced(&table, Column::numeric("y", vec![1e25; 120]));
    let held_out = with_target(&far, "y");
    let pool = Pool::new(1).unwrap();
    let run = Run {
        key: Key::from_seed(0),
        pool: &pool,
        observer: &NoObserver,
        held_out: Some(&held_out),
        warm_start: None,
    };
    for &family in Family::ALL {
        let model = family.fit(&quick(family), &data, &run).unwrap();
        let bytes = softwood::model_to_bytes(&model.record());
        let read = softwood::model_from_bytes(&bytes).unwrap();
        assert_eq!(answers(&*read, &table), answers(&*model, &table));
    }
}

#[test]
fn weights_beyond_any_number_of_rows_are_refused() {
    let table = mixed(10, 60);
    for weight in [1e-30, 1e30] {
        let column = Column::numeric("w", vec![weight; 60]);
        let mut columns = table.columns().to_vec();
        columns.push(column);
        let weighed = Table::new(columns).unwrap();
        let roles = Roles {
            weight: Some("w".to_owned()),
            ..roles("y")
        };
        let message = Dataset::from_table(&weighed, &roles)
            .unwrap_err()
            .to_string();
        assert!(message.contains("add up to"), "{message}");
    }
}

#[test]
fn a_class_for_every_row_is_refused_and_says_what_would_be_right() {
    each(|family, target| {
        if target != "two" {
            return;
        }
        let table = mixed(31, 60);
        let names: Vec<_> = (0..60).map(|row| Some(format!("row {row}"))).collect();
        let data = with_target(&replaced(&table, Column::categorical("two", &names)), "two");
        let message = try_fit(family, &data, &NoObserver).unwrap_err().to_string();
        assert!(
            message.contains("`two`") && message.contains("values repeat"),
            "{message}"
        );
    });
}

#[test]
fn a_few_rows_that_repeat_often_are_chosen_on() {
    let x: Vec<f64> = (0..400).map(|row| f64::from(row % 8)).collect();
    let y = x
        .iter()
        .zip(0..)
        .map(|(x, row)| x.sin() + f64::from(row / 8 % 2));
    let table = Table::new(vec![
        Column::numeric("y", y.collect()),
        Column::numeric("x", x),
    ])
    .unwrap();
    let data = Dataset::from_table(&table, &roles("y")).unwrap();
    let model = quick_fit(Family::Vst, &data);
    // sixteen distinct rows, but four hundred to choose a shape on
    assert!(model.training().trials.len() > 5);
}
