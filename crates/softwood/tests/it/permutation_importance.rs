//! Permutation importance: values for a known model, and the important column in every family.

use std::ops::ControlFlow;

use crate::problems::{fit, mixed, normals, numbers, quick, replaced, uniforms, with_target};
use softwood::data::{Rows, Schema, Target, Task, Values};
use softwood::distribution::{Block, Head};
use softwood::explain::{ColumnImportance, Importances, PermutationOptions, importances};
use softwood::model::Training;
use softwood::observer::{Event, Observer, Stop};
use softwood::store::Record;
use softwood::{
    Column, Dataset, Distribution, Error, Family, Key, Model, Pool, Result, Roles, Table,
};
use softwood_testkit::close;

/// A model of two members with means `3 a - b` and `3 a + b`: its mean is `3 a`, its knowledge
/// standard deviation `|b|`, and `c` has no effect. As a classifier both members have the
/// probability `(1 + a) / 2`.
#[derive(Debug)]
struct Known(Schema, Training);

impl Known {
    fn new(task: Task) -> Self {
        let columns = ["a", "b", "c"].map(|name| Column::numeric(name, vec![0.0]));
        let table = Table::new(columns.to_vec()).unwrap();
        Self(Schema::of(&table, "y", task), Training::default())
    }

    fn regression() -> Self {
        Self::new(Task::Regression)
    }

    fn classes() -> Self {
        let classes = vec!["no".to_owned(), "yes".to_owned()];
        Self::new(Task::Classification { classes })
    }
}

impl Model for Known {
    fn family(&self) -> &'static str {
        "known"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn head(&self) -> Head {
        match self.0.classes() {
            None => Head::Normal { components: 1 },
            Some(_) => Head::Categorical { classes: 2 },
        }
    }
    fn n_members(&self) -> usize {
        2
    }
    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let cell = |column: usize, row: usize| match &rows.table.columns()[column].values {
            Values::Numeric(cells) => cells[rows.range.start + row],
            Values::Categorical { .. } => unreachable!("the schema says numbers"),
        };
        for (member, sign) in [-1.0, 1.0].into_iter().enumerate() {
            for row in 0..out.n_rows {
                let at = out.at(member, 0) + row;
                if self.0.classes().is_some() {
                    let yes = out.at(member, 1) + row;
                    out.weight[yes] = 0.5 + 0.5 * cell(0, row);
                    out.weight[at] = 1.0 - out.weight[yes];
                    continue;
                }
                out.weight[at] = 1.0;
                let normal = out.normal_mut();
                normal.sd[at] = 1.0;
                normal.mean[at] = 3.0 * cell(0, row) + sign * cell(1, row);
            }
        }
        Ok(())
    }
    fn training(&self) -> &Training {
        &self.1
    }
    fn restored(&self, _record: &Record) -> Result<Box<dyn Model>> {
        unreachable!("the test writes no file")
    }
    fn record(&self) -> Record {
        Record::new("known", "null", Vec::new()).unwrap()
    }
}

/// Columns of uniform numbers between 0 and 1.
fn uniform(n: usize) -> Table {
    let column =
        |at: u64, name: &str| Column::numeric(name, uniforms(Key::from_seed(9).child(at), n));
    Table::new(vec![column(1, "a"), column(2, "b"), column(3, "c")]).unwrap()
}

fn options_with(repeats: usize) -> PermutationOptions<'static> {
    PermutationOptions {
        repeats,
        key: Key::from_seed(0),
        reference: None,
    }
}

fn measure(
    model: &dyn Model,
    table: &Table,
    target: Option<&Target>,
    options: &PermutationOptions<'_>,
) -> Importances {
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, table, &pool).unwrap();
    importances(&dist, target, options).unwrap()
}

fn column<'a>(found: &'a Importances, name: &str) -> &'a ColumnImportance {
    found
        .columns
        .iter()
        .find(|column| column.column == name)
        .unwrap()
}

/// The column with the largest `value`.
fn top(found: &Importances, value: impl Fn(&ColumnImportance) -> f64) -> &str {
    let columns = found.columns.iter();
    &columns
        .max_by(|a, b| value(a).total_cmp(&value(b)))
        .unwrap()
        .column
}

#[test]
fn importances_of_a_known_regression_model() {
    let table = uniform(20_000);
    let y: Vec<f64> = numbers(&table, "a").iter().map(|a| 3.0 * a).collect();
    let found = measure(
        &Known::regression(),
        &table,
        Some(&Target::Numeric(y)),
        &options_with(5),
    );
    // two uniform numbers have a mean distance of 1/3 and a root mean square distance of 1/sqrt(6)
    let (a, b, c) = (
        column(&found, "a"),
        column(&found, "b"),
        column(&found, "c"),
    );
    let means = [
        a.prediction_change.mean,
        b.knowledge_change.mean,
        a.error_rise.unwrap().mean,
    ];
    close(&means, &[1.0, 1.0 / 3.0, 3.0 / 6.0_f64.sqrt()], 0.02);
    close(&[found.knowledge, found.error.unwrap()], &[0.5, 0.0], 0.01);
    // permuting b permutes the knowledge uncertainty of the rows, and its mean stays
    close(
        &[
            b.knowledge_shift.mean,
            b.prediction_change.mean,
            a.knowledge_change.mean,
        ],
        &[0.0; 3],
        1e-9,
    );
    assert!(a.log_likelihood_fall.unwrap().mean > 0.1);
    for estimate in [
        c.prediction_change,
        c.knowledge_change,
        c.knowledge_shift,
        c.error_rise.unwrap(),
        c.log_likelihood_fall.unwrap(),
    ] {
        assert!(
            estimate.mean.abs() < 1e-12 && estimate.se.unwrap() < 1e-12,
            "{estimate:?}"
        );
    }
}

#[test]
fn importances_of_a_known_classifier() {
    let table = uniform(20_000);
    let y = Target::Classes(vec![1; 20_000]);
    let found = measure(&Known::classes(), &table, Some(&y), &options_with(5));
    let a = column(&found, "a");
    // the probability (1 + a) / 2 changes by half the change of a
    close(&[a.prediction_change.mean], &[1.0 / 6.0], 0.01);
    close(
        &[
            found.error.unwrap(),
            found.knowledge,
            a.error_rise.unwrap().mean,
        ],
        &[0.0; 3],
        1e-12,
    );
    // all rows are `yes`, so a permutation of the cells does not change the mean
    close(&[a.log_likelihood_fall.unwrap().mean], &[0.0], 1e-9);
    // the mean of ln((1 + a) / 2) is ln 2 - 1
    close(
        &[found.log_likelihood.unwrap()],
        &[2.0_f64.ln() - 1.0],
        0.01,
    );
}

#[test]
fn reference_cells_show_which_column_causes_knowledge_uncertainty() {
    let table = uniform(5000);
    let known = replaced(&uniform(300), Column::numeric("b", vec![0.0; 300]));
    let options = PermutationOptions {
        reference: Some(&known),
        ..options_with(2)
    };
    let found = measure(&Known::regression(), &table, None, &options);
    assert_eq!(found.n_reference_rows, Some(300));
    let b = column(&found, "b");
    close(&[b.knowledge_shift.mean], &[-found.knowledge], 1e-9);
    close(&[column(&found, "a").knowledge_shift.mean], &[0.0], 1e-9);
    assert_eq!(b.log_likelihood_fall, None);
}

#[test]
fn importances_do_not_depend_on_threads_or_column_order() {
    let table = uniform(9000);
    let y = Target::Numeric(numbers(&table, "c"));
    let measure_with = |threads: usize, table: &Table| {
        let pool = Pool::new(threads).unwrap();
        let model = Known::regression();
        let dist = Distribution::new(&model, table, &pool).unwrap();
        importances(&dist, Some(&y), &options_with(3)).unwrap()
    };
    let one = measure_with(1, &table);
    for threads in [2, 3, 7] {
        assert_eq!(measure_with(threads, &table), one);
    }
    let reversed = Table::new(table.columns().iter().rev().cloned().collect()).unwrap();
    assert_eq!(measure_with(2, &reversed), one);
    assert_ne!(
        measure(
            &Known::regression(),
            &table,
            Some(&y),
            &PermutationOptions {
                key: Key::from_seed(1),
                ..options_with(3)
            }
        ),
        one
    );
}

#[test]
fn every_family_finds_the_important_columns() {
    let with_noise = |seed: u64| {
        let table = mixed(seed, 400);
        replaced(
            &table,
            Column::numeric("noise", normals(Key::from_seed(seed + 50), 400)),
        )
    };
    let (train, test) = (with_noise(1), with_noise(2));
    for &family in Family::ALL {
        for target in ["y", "two"] {
            if target == "two" && !family.supports_classes() {
                continue;
            }
            let data = with_target(&train, target);
            let model = fit(family, &quick(family), &data, 0);
            let test_data = Dataset::aligned(data.schema(), &test, None).unwrap();
            let found = measure(
                model.as_ref(),
                &test,
                Some(test_data.target()),
                &options_with(3),
            );
            let name = family.name();
            let fall = |column: &ColumnImportance| column.log_likelihood_fall.unwrap().mean;
            let noise = column(&found, "noise");
            for important in ["a", "c"] {
                let other = column(&found, important);
                assert!(
                    fall(other) > 3.0 * fall(noise).abs(),
                    "{name} {target} {important}: {found:#?}"
                );
                assert!(other.error_rise.unwrap().mean > noise.error_rise.unwrap().mean);
                assert!(other.prediction_change.mean > 2.0 * noise.prediction_change.mean);
            }
            if let Some(gains) = model.gains() {
                assert!(
                    (gains.iter().sum::<f64>() - 1.0).abs() < 1e-9,
                    "{name}: {gains:?}"
                );
                assert!(
                    gains[0] > 2.0 * gains[3] && gains[2] > gains[3],
                    "{name}: {gains:?}"
                );
            }
        }
    }
}

/// Three columns and a target; `b` is a uniform number transformed by `transform`.
fn three_columns(seed: u64, n: usize, transform: fn(f64) -> f64) -> Table {
    let key = Key::from_seed(seed);
    let [a, b, c] = [1, 2, 3].map(|at| uniforms(key.child(at), n));
    let b: Vec<f64> = b.into_iter().map(transform).collect();
    let noise = normals(key.child(4), n);
    let y = |row: usize| (5.0 * a[row]).sin() + 4.0 * b[row] + c[row] + 0.1 * noise[row];
    let y = (0..n).map(y).collect();
    let columns = [("a", a), ("b", b), ("c", c), ("y", y)];
    Table::new(
        columns
            .map(|(name, cells)| Column::numeric(name, cells))
            .to_vec(),
    )
    .unwrap()
}

/// The training rows leave out a range of `b`, and the test rows do not: `b` causes the knowledge
/// uncertainty.
///
/// The range is chosen by family. Boosted trees disagree about the threshold inside a gap, and are
/// constant beyond the last training row; soft trees interpolate a gap, and disagree beyond the
/// last training row.
#[test]
fn the_column_with_an_unseen_range_has_the_largest_knowledge_change() {
    let gap: fn(f64) -> f64 = |b| if b < 0.5 { 0.6 * b } else { 0.4 + 0.6 * b };
    let below: fn(f64) -> f64 = |b| 0.4 * b;
    for (family, transform, unseen) in [
        (Family::Vst, below, 0.5..1.0),
        (Family::Vsgbm, below, 0.5..1.0),
        (Family::Sgb, gap, 0.35..0.65),
        (Family::Sglb, gap, 0.35..0.65),
    ] {
        let train = three_columns(1, 600, transform);
        let test = three_columns(2, 600, |b| b);
        let roles = Roles {
            target: "y".to_owned(),
            ..Roles::default()
        };
        let data = Dataset::from_table(&train, &roles).unwrap();
        let model = fit(family, &quick(family), &data, 0);
        let found = measure(model.as_ref(), &test, None, &options_with(5));
        let name = family.name();
        let change = |column: &ColumnImportance| column.knowledge_change.mean;
        assert_eq!(top(&found, change), "b", "{name}: {found:#?}");
        // in rows of the unseen range, only cells of b from the training rows reduce knowledge
        // uncertainty
        let b = numbers(&test, "b");
        let rows: Vec<usize> = (0..b.len())
            .filter(|&row| unseen.contains(&b[row]))
            .collect();
        let options = PermutationOptions {
            reference: Some(&train),
            ..options_with(5)
        };
        let found = measure(model.as_ref(), &test.take(&rows), None, &options);
        let fall = |column: &ColumnImportance| -column.knowledge_shift.mean;
        assert_eq!(top(&found, fall), "b", "{name}: {found:#?}");
        let fall = fall(column(&found, "b"));
        assert!(fall > 0.2 * found.knowledge, "{name}: {found:#?}");
    }
}

#[test]
fn invalid_requests_are_refused() {
    let model = Known::regression();
    let pool = Pool::new(1).unwrap();
    let refused =
        |rows: usize, target: Option<&Target>, options: &PermutationOptions<'_>, part: &str| {
            let dist = Distribution::new(&model, &uniform(rows), &pool).unwrap();
            let message = importances(&dist, target, options).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        };
    refused(1, None, &options_with(1), "at least 2 rows");
    refused(5, None, &options_with(0), "`repeats` = 0");
    refused(
        5,
        Some(&Target::Numeric(vec![0.0; 4])),
        &options_with(1),
        "4 target values for 5 rows",
    );
    refused(
        5,
        Some(&Target::Classes(vec![0; 5])),
        &options_with(1),
        "classification",
    );
    let (empty, four) = (uniform(0), uniform(4));
    let short = four.without(&["b"]);
    let with_reference = |table| PermutationOptions {
        reference: Some(table),
        ..options_with(1)
    };
    refused(5, None, &with_reference(&empty), "no rows");
    refused(0, None, &with_reference(&four), "no rows to explain");
    refused(5, None, &with_reference(&short), "column `b`");
}

#[test]
fn an_observer_can_stop_the_permutations() {
    struct StopShuffling;
    impl Observer for StopShuffling {
        fn on_event(&self, event: &Event<'_>) -> ControlFlow<Stop> {
            if event.stage == "shuffling" {
                return ControlFlow::Break(Stop::Discard);
            }
            ControlFlow::Continue(())
        }
    }
    let pool = Pool::new(1).unwrap();
    let model = Known::regression();
    let dist = Distribution::new(&model, &uniform(5), &pool)
        .unwrap()
        .observed_by(&StopShuffling);
    let stopped = importances(&dist, None, &options_with(1));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
}
