//! Members as functions and paired predictions, for every family.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problems::{fit, mixed, numbers, quick, targets_of, with_target};
use softwood::data::{Rows, Schema};
use softwood::distribution::{Block, Head};
use softwood::model::Training;
use softwood::store::Record;
use softwood::{Column, Distribution, Error, Family, Key, Model, Pool, Table};

/// Number of values that a member predicts for a row.
fn n_outputs(model: &dyn Model) -> usize {
    model.schema().classes().map_or(1, <[String]>::len)
}

fn fitted(family: Family, target: &str, table: &Table) -> Box<dyn Model> {
    fit(family, &quick(family), &with_target(table, target), 3)
}

#[test]
fn the_mean_of_the_members_is_the_prediction() {
    let pool = Pool::new(2).unwrap();
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(21, 130);
            let model = fitted(family, target, &table);
            let distribution = Distribution::new(&*model, &table, &pool).unwrap();
            let (n, width) = (model.n_members(), n_outputs(&*model));
            let members = distribution.members().unwrap();
            assert_eq!(members.len(), 130 * n * width);
            let expected = match model.head() {
                Head::Categorical { .. } => distribution.probabilities().unwrap(),
                _ => distribution.mean().unwrap(),
            };
            for (row, members) in members.chunks_exact(n * width).enumerate() {
                for output in 0..width {
                    let values = members.iter().skip(output).step_by(width);
                    let mean = values.sum::<f64>() / n as f64;
                    let expected = expected[row * width + output];
                    assert!(
                        (mean - expected).abs() < 1e-9 * expected.abs().max(1.0),
                        "{} {target}: {mean} {expected}",
                        family.name()
                    );
                }
            }
        }
    }
}

#[test]
fn sampled_functions_are_members_on_all_rows() {
    let pool = Pool::new(2).unwrap();
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(22, 90);
            let model = fitted(family, target, &table);
            let distribution = Distribution::new(&*model, &table, &pool).unwrap();
            let (n, width) = (model.n_members(), n_outputs(&*model));
            let members = distribution.members().unwrap();
            let sampled = distribution.sample_functions(3, Key::from_seed(5)).unwrap();
            let column = |values: &[f64], width_of: usize, at: usize| -> Vec<u64> {
                let rows = values.chunks_exact(width_of * width);
                rows.flat_map(|row| row[at * width..][..width].to_vec())
                    .map(f64::to_bits)
                    .collect()
            };
            for function in 0..3 {
                let function = column(&sampled, 3, function);
                let is_member = (0..n).any(|member| column(&members, n, member) == function);
                assert!(is_member, "{} {target}", family.name());
            }
        }
    }
}

#[test]
fn a_contrast_is_the_difference_of_the_members() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(23, 300);
            let model = fitted(family, target, &table);
            let ours = model.predict(&table).unwrap();
            let name = model
                .schema()
                .fields
                .iter()
                .find(|field| field.kind == softwood::data::FieldKind::Numeric)
                .unwrap()
                .name
                .clone();
            let shifted = numbers(&table, &name).iter().map(|x| x + 0.7).collect();
            let theirs = ours.with_column(Column::numeric(&name, shifted)).unwrap();
            let levels = [0.1, 0.9];
            let contrast = ours.contrast(&theirs, &levels).unwrap();
            let (n, width) = (model.n_members(), n_outputs(&*model));
            assert_eq!(contrast.n_outputs, width);
            let (a, b) = (ours.members().unwrap(), theirs.members().unwrap());
            let mut sums = vec![0.0; n * width];
            for (row, (a, b)) in a
                .chunks_exact(n * width)
                .zip(b.chunks_exact(n * width))
                .enumerate()
            {
                let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
                for (sum, difference) in sums.iter_mut().zip(&differences) {
                    *sum += difference / 300.0;
                }
                for output in 0..width {
                    let of_output = || differences.iter().skip(output).step_by(width);
                    let mean = of_output().sum::<f64>() / n as f64;
                    let variance = of_output().map(|d| (d - mean).powi(2)).sum::<f64>() / n as f64;
                    let at = row * width + output;
                    assert!((contrast.mean[at] - mean).abs() < 1e-9 * mean.abs().max(1.0));
                    assert!((contrast.std[at] - variance.sqrt()).abs() < 1e-9);
                    let [low, high] = [contrast.quantiles[2 * at], contrast.quantiles[2 * at + 1]];
                    assert!(low <= high && of_output().any(|d| *d <= low + 1e-12));
                }
            }
            for (found, expected) in contrast.member_means.iter().zip(sums) {
                assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0));
            }
            // a prediction minus itself is zero under every member, whatever the noise
            let zero = ours.contrast(&ours, &levels).unwrap();
            let is_zero = |values: &[f64]| values.iter().all(|value| value.abs() < 1e-300);
            assert!(is_zero(&zero.mean) && is_zero(&zero.std) && is_zero(&zero.member_means));
        }
    }
}

#[test]
fn contrasts_need_one_model_and_equally_many_rows() {
    let table = mixed(24, 60);
    let model = fitted(Family::Tree, "y", &table);
    let other = fitted(Family::Tree, "y", &table);
    let prediction = model.predict(&table).unwrap();
    let fewer = table.take(&(0..59).collect::<Vec<_>>());
    for unlike in [model.predict(&fewer), other.predict(&table)] {
        let error = prediction.contrast(&unlike.unwrap(), &[]).unwrap_err();
        assert!(matches!(error, Error::Table(_)), "{error}");
    }
    let error = prediction.contrast(&prediction, &[1.5]).unwrap_err();
    assert!(error.to_string().contains("level 1.5"), "{error}");
}

#[test]
fn a_replaced_column_must_be_one_of_the_model() {
    let table = mixed(25, 60);
    let model = fitted(Family::Tree, "y", &table);
    let prediction = model.predict(&table).unwrap();
    let name = &model.schema().fields[0].name;
    for column in [
        Column::numeric("no such column", vec![0.0; 60]),
        Column::numeric(name, vec![0.0; 59]),
    ] {
        let error = prediction.with_column(column).unwrap_err();
        assert!(matches!(error, Error::Column { .. }), "{error}");
    }
}

#[test]
fn one_pass_gives_the_same_answers_as_single_questions() {
    let pool = Pool::new(2).unwrap();
    for &family in Family::ALL {
        let table = mixed(26, 150);
        let model = fitted(family, "y", &table);
        let distribution = Distribution::new(&*model, &table, &pool).unwrap();
        let summary = distribution.summary(&[0.1, 0.5]).unwrap();
        assert_eq!(summary.moments, distribution.moments().unwrap());
        assert_eq!(
            summary.quantiles,
            distribution.quantile(&[0.1, 0.5]).unwrap()
        );
        if !family.supports_classes() {
            continue;
        }
        let model = fitted(family, "three", &table);
        let distribution = Distribution::new(&*model, &table, &pool).unwrap();
        let summary = distribution.class_summary().unwrap();
        assert_eq!(summary.probabilities, distribution.probabilities().unwrap());
        assert_eq!(summary.labels, distribution.labels().unwrap());
        assert_eq!(summary.uncertainty, distribution.uncertainty().unwrap());
    }
}

/// A model that counts how often it predicts a block of rows.
#[derive(Debug)]
struct CountingModel {
    model: Box<dyn Model>,
    n_blocks: AtomicUsize,
}

impl Model for CountingModel {
    fn family(&self) -> &'static str {
        self.model.family()
    }
    fn schema(&self) -> &Schema {
        self.model.schema()
    }
    fn head(&self) -> Head {
        self.model.head()
    }
    fn n_members(&self) -> usize {
        self.model.n_members()
    }
    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> softwood::Result<()> {
        self.n_blocks.fetch_add(1, Ordering::Relaxed);
        self.model.members(rows, out)
    }
    fn training(&self) -> &Training {
        self.model.training()
    }
    fn restored(&self, record: &Record) -> softwood::Result<Box<dyn Model>> {
        self.model.restored(record)
    }
    fn record(&self) -> Record {
        self.model.record()
    }
}

/// All columns of a prediction come from one pass over the model.
#[test]
fn a_prediction_with_all_its_columns_is_one_pass() {
    let table = mixed(24, 40);
    for target in ["y", "three"] {
        let model = CountingModel {
            model: fitted(Family::Sgb, target, &table),
            n_blocks: AtomicUsize::new(0),
        };
        let pool = Pool::new(1).unwrap();
        let distribution = Distribution::new(&model, &table, &pool).unwrap();
        let passes = |ask: &dyn Fn()| {
            let before = model.n_blocks.load(Ordering::Relaxed);
            ask();
            model.n_blocks.load(Ordering::Relaxed) - before
        };
        let one = passes(&|| {
            distribution.uncertainty().unwrap();
        });
        let all = passes(&|| {
            if target == "y" {
                distribution.summary(&[0.05, 0.5, 0.95]).unwrap();
            } else {
                distribution.class_summary().unwrap();
            }
        });
        assert_eq!((one > 0, all), (true, one), "{target}");
    }
}

#[test]
fn the_log_probability_of_a_class_is_the_logarithm_of_its_probability() {
    let table = mixed(25, 60);
    let model = fitted(Family::Tree, "three", &table);
    let distribution = model.predict(&table).unwrap();
    let classes: Vec<u32> = (0..60).map(|row| row % 3).collect();
    let probabilities = distribution.probabilities().unwrap();
    for (row, found) in distribution.logpmf(&classes).unwrap().iter().enumerate() {
        let p = probabilities[3 * row + row % 3];
        assert_eq!(found.to_bits(), p.ln().to_bits());
    }
    let message = |result: softwood::Result<Vec<f64>>| result.unwrap_err().to_string();
    assert!(message(distribution.logpmf(&[3; 60])).contains("no class 3"));
    assert!(message(distribution.logpmf(&[0; 59])).contains("59 target values for 60 rows"));
    let numbers = fitted(Family::Tree, "y", &table);
    assert!(message(numbers.predict(&table).unwrap().logpmf(&[0; 60])).contains("classification"));
}
