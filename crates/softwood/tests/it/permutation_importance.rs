//! What columns are worth: figures on a model that is known, and the right column named by every family.

use std::ops::ControlFlow;

use crate::problems::{fit, mixed, normals, numbers, quick, replaced, uniforms, with_target};
use softwood::{
    Block, Column, ColumnImportance, Dataset, Distribution, Error, Family, Head, Importances, Key,
    Model, Observer, PermutationOptions, Pool, Progress, Record, Result, Roles, Rows, Schema,
    Table, Target, Task, Training, Values, importances,
};
use softwood_testkit::close;

/// Two members with means `3 a - b` and `3 a + b`: the mean is `3 a`, the knowledge deviation `|b|`, and `c` counts for
/// nothing. As classes, `p = (1 + a) / 2`, the same for both.
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
                (out.weight[at], out.sd[at]) = (1.0, 1.0);
                out.mean[at] = 3.0 * cell(0, row) + sign * cell(1, row);
            }
        }
        Ok(())
    }
    fn training(&self) -> &Training {
        &self.1
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

fn shuffling(repeats: usize) -> PermutationOptions<'static> {
    PermutationOptions {
        repeats,
        key: Key::from_seed(0),
        reference: None,
    }
}

fn ask(
    model: &dyn Model,
    table: &Table,
    target: Option<&Target>,
    shuffling: &PermutationOptions<'_>,
) -> Importances {
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, table, &pool).unwrap();
    importances(&dist, target, shuffling).unwrap()
}

fn column<'a>(found: &'a Importances, name: &str) -> &'a ColumnImportance {
    found
        .columns
        .iter()
        .find(|column| column.column == name)
        .unwrap()
}

/// The column of which `of` is greatest.
fn top(found: &Importances, of: impl Fn(&ColumnImportance) -> f64) -> &str {
    let columns = found.columns.iter();
    &columns
        .max_by(|a, b| of(a).total_cmp(&of(b)))
        .unwrap()
        .column
}

#[test]
fn figures_of_a_known_model() {
    let table = uniform(20_000);
    let y: Vec<f64> = numbers(&table, "a").iter().map(|a| 3.0 * a).collect();
    let found = ask(
        &Known::regression(),
        &table,
        Some(&Target::Numeric(y)),
        &shuffling(5),
    );
    // two uniform numbers lie 1/3 apart on average, and the root mean square of that is 1 over the root of 6
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
    // b is only moved among the rows, so that unsureness moves with it and its mean stays
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
    for measured in [
        c.prediction_change,
        c.knowledge_change,
        c.knowledge_shift,
        c.error_rise.unwrap(),
        c.log_likelihood_fall.unwrap(),
    ] {
        assert!(
            measured.mean.abs() < 1e-12 && measured.se.unwrap() < 1e-12,
            "{measured:?}"
        );
    }
}

#[test]
fn figures_of_known_classes() {
    let table = uniform(20_000);
    let y = Target::Classes(vec![1; 20_000]);
    let found = ask(&Known::classes(), &table, Some(&y), &shuffling(5));
    let a = column(&found, "a");
    // a probability of (1 + a) / 2 moves by half of what a does
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
    // the same cells in another order: the mean over rows that are all `yes` stays
    close(&[a.log_likelihood_fall.unwrap().mean], &[0.0], 1e-9);
    // the mean of ln((1 + a) / 2) is ln 2 - 1
    close(
        &[found.log_likelihood.unwrap()],
        &[2.0_f64.ln() - 1.0],
        0.01,
    );
}

#[test]
fn cells_of_a_reference_show_what_makes_rows_unsure() {
    let table = uniform(5000);
    let known = replaced(&uniform(300), Column::numeric("b", vec![0.0; 300]));
    let shuffling = PermutationOptions {
        reference: Some(&known),
        ..shuffling(2)
    };
    let found = ask(&Known::regression(), &table, None, &shuffling);
    assert_eq!(found.n_reference_rows, Some(300));
    let b = column(&found, "b");
    close(&[b.knowledge_shift.mean], &[-found.knowledge], 1e-9);
    close(&[column(&found, "a").knowledge_shift.mean], &[0.0], 1e-9);
    assert_eq!(b.log_likelihood_fall, None);
}

#[test]
fn same_on_any_number_of_threads_and_in_any_order_of_columns() {
    let table = uniform(9000);
    let y = Target::Numeric(numbers(&table, "c"));
    let answer = |threads: usize, table: &Table| {
        let pool = Pool::new(threads).unwrap();
        let model = Known::regression();
        let dist = Distribution::new(&model, table, &pool).unwrap();
        importances(&dist, Some(&y), &shuffling(3)).unwrap()
    };
    let one = answer(1, &table);
    for threads in [2, 3, 7] {
        assert_eq!(answer(threads, &table), one);
    }
    let turned = Table::new(table.columns().iter().rev().cloned().collect()).unwrap();
    assert_eq!(answer(2, &turned), one);
    assert_ne!(
        ask(
            &Known::regression(),
            &table,
            Some(&y),
            &PermutationOptions {
                key: Key::from_seed(1),
                ..shuffling(3)
            }
        ),
        one
    );
}

#[test]
fn every_family_names_the_columns_that_count() {
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
            let data = with_target(&train, target);
            let model = fit(family, &quick(family), &data, 0);
            let fresh = Dataset::aligned(data.schema(), &test, None).unwrap();
            let found = ask(model.as_ref(), &test, Some(fresh.target()), &shuffling(3));
            let name = family.name();
            let fall = |column: &ColumnImportance| column.log_likelihood_fall.unwrap().mean;
            let noise = column(&found, "noise");
            for wanted in ["a", "c"] {
                let other = column(&found, wanted);
                assert!(
                    fall(other) > 3.0 * fall(noise).abs(),
                    "{name} {target} {wanted}: {found:#?}"
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

/// `y` follows three columns; `b` is a uniform number squeezed by `squeeze`.
fn three_columns(seed: u64, n: usize, squeeze: fn(f64) -> f64) -> Table {
    let key = Key::from_seed(seed);
    let [a, b, c] = [1, 2, 3].map(|at| uniforms(key.child(at), n));
    let b: Vec<f64> = b.into_iter().map(squeeze).collect();
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

/// Training never saw a stretch of `b`; new rows are everywhere. Which column makes them unsure?
///
/// The stretch lies where a family says that it does not know: boosted trees differ about where to step across a gap, and
/// answer beyond the last row as at it; a smooth tree bridges a gap in a straight line, and differs beyond the last row.
#[test]
fn the_column_with_an_unseen_stretch_is_named() {
    let gap: fn(f64) -> f64 = |b| if b < 0.5 { 0.6 * b } else { 0.4 + 0.6 * b };
    let below: fn(f64) -> f64 = |b| 0.4 * b;
    for (family, squeeze, unseen) in [
        (Family::Vst, below, 0.5..1.0),
        (Family::Vsgbm, below, 0.5..1.0),
        (Family::Sgb, gap, 0.35..0.65),
        (Family::Sglb, gap, 0.35..0.65),
    ] {
        let train = three_columns(1, 600, squeeze);
        let test = three_columns(2, 600, |b| b);
        let roles = Roles {
            target: "y".to_owned(),
            ..Roles::default()
        };
        let data = Dataset::from_table(&train, &roles).unwrap();
        let model = fit(family, &quick(family), &data, 0);
        let found = ask(model.as_ref(), &test, None, &shuffling(5));
        let name = family.name();
        let change = |column: &ColumnImportance| column.knowledge_change.mean;
        assert_eq!(top(&found, change), "b", "{name}: {found:#?}");
        // unseen rows alone, with cells of the training rows: b, and no other column, would make them surer
        let b = numbers(&test, "b");
        let rows: Vec<usize> = (0..b.len())
            .filter(|&row| unseen.contains(&b[row]))
            .collect();
        let shuffling = PermutationOptions {
            reference: Some(&train),
            ..shuffling(5)
        };
        let found = ask(model.as_ref(), &test.take(&rows), None, &shuffling);
        let fall = |column: &ColumnImportance| -column.knowledge_shift.mean;
        assert_eq!(top(&found, fall), "b", "{name}: {found:#?}");
        let fall = fall(column(&found, "b"));
        assert!(fall > 0.2 * found.knowledge, "{name}: {found:#?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let model = Known::regression();
    let pool = Pool::new(1).unwrap();
    let refused =
        |rows: usize, target: Option<&Target>, shuffling: &PermutationOptions<'_>, part: &str| {
            let dist = Distribution::new(&model, &uniform(rows), &pool).unwrap();
            let message = importances(&dist, target, shuffling)
                .unwrap_err()
                .to_string();
            assert!(message.contains(part), "{message}");
        };
    refused(1, None, &shuffling(1), "at least 2 rows");
    refused(5, None, &shuffling(0), "`repeats` = 0");
    refused(
        5,
        Some(&Target::Numeric(vec![0.0; 4])),
        &shuffling(1),
        "4 target values for 5 rows",
    );
    refused(
        5,
        Some(&Target::Classes(vec![0; 5])),
        &shuffling(1),
        "classification",
    );
    let (empty, four) = (uniform(0), uniform(4));
    let short = four.without(&["b"]);
    let lent = |table| PermutationOptions {
        reference: Some(table),
        ..shuffling(1)
    };
    refused(5, None, &lent(&empty), "no rows");
    refused(0, None, &lent(&four), "no rows to explain");
    refused(5, None, &lent(&short), "column `b`");
}

#[test]
fn a_watch_can_stop_it() {
    struct Impatient;
    impl Observer for Impatient {
        fn step(&self, progress: &Progress<'_>) -> ControlFlow<()> {
            if progress.stage == "shuffling" {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }
    let pool = Pool::new(1).unwrap();
    let model = Known::regression();
    let dist = Distribution::new(&model, &uniform(5), &pool)
        .unwrap()
        .observed_by(&Impatient);
    let stopped = importances(&dist, None, &shuffling(1));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
}
