//! The predictive distribution through its public interface, for models with known members.

use crate::problems::{fit, mixed, with_target};
use proptest::prelude::*;
use serde_json::json;
use softwood::data::{Rows, Schema, Target, Task, Values};
use softwood::distribution::{Block, Head};
use softwood::evaluate::{ood, score};
use softwood::explain::{PermutationOptions, importances};
use softwood::model::Training;
use softwood::store::Record;
use softwood::{Column, Distribution, Error, Family, Key, Model, Pool, Result, Table};
use softwood_testkit::{close, ks_distance, ks_limit};

/// A model with known members: each component has the mean `mean + slope x` in a row with input
/// `x`.
#[derive(Debug)]
struct KnownMembers {
    schema: Schema,
    training: Training,
    head: Head,
    /// Weight (or probability), mean, slope and standard deviation of the components of each
    /// member.
    members: Vec<Vec<[f64; 4]>>,
}

impl KnownMembers {
    fn regression(members: Vec<Vec<[f64; 4]>>) -> Self {
        let components = members[0].len();
        Self {
            schema: Schema::of(&table(1), "y", Task::Regression),
            training: Training::default(),
            head: Head::Normal { components },
            members,
        }
    }

    fn classification(members: &[Vec<f64>]) -> Self {
        let classes = members[0].len();
        let names = (0..classes).map(|class| class.to_string()).collect();
        let member = |member: &Vec<f64>| member.iter().map(|&p| [p, 0.0, 0.0, 1.0]).collect();
        Self {
            schema: Schema::of(&table(1), "y", Task::Classification { classes: names }),
            training: Training::default(),
            head: Head::Categorical { classes },
            members: members.iter().map(member).collect(),
        }
    }
}

impl Model for KnownMembers {
    fn family(&self) -> &'static str {
        "known"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn head(&self) -> Head {
        self.head
    }
    fn n_members(&self) -> usize {
        self.members.len()
    }
    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        let Values::Numeric(x) = &rows.table.columns()[0].values else {
            unreachable!("the schema says numbers")
        };
        let is_normal = matches!(self.head, Head::Normal { .. });
        for (member, components) in self.members.iter().enumerate() {
            for (component, [weight, mean, slope, sd]) in components.iter().enumerate() {
                for (row, x) in x[rows.range.clone()].iter().enumerate() {
                    let at = out.at(member, component) + row;
                    out.weight[at] = *weight;
                    if is_normal {
                        let normal = out.normal_mut();
                        normal.mean[at] = mean + slope * x;
                        normal.sd[at] = *sd;
                    }
                }
            }
        }
        (out.shift, out.scale) = (SHIFT, SCALE);
        Ok(())
    }
    fn training(&self) -> &Training {
        &self.training
    }
    fn restored(&self, _record: &Record) -> Result<Box<dyn Model>> {
        unreachable!("the test writes no file")
    }
    fn record(&self) -> Record {
        Record::new("given", "null", Vec::new()).unwrap()
    }
}

const SHIFT: f64 = 100.0;
const SCALE: f64 = 20.0;

fn table(n_rows: usize) -> Table {
    let x = (0..n_rows).map(|row| row as f64 / n_rows as f64).collect();
    Table::new(vec![Column::numeric("x", x)]).unwrap()
}

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

/// Members with a few components whose weights sum to one.
fn mixtures() -> impl Strategy<Value = Vec<Vec<[f64; 4]>>> {
    (1..6_usize, 1..5_usize).prop_flat_map(|(members, components)| {
        let component = (0.01..1.0_f64, -2.0..2.0_f64, -1.0..1.0_f64, -3.0..1.0_f64)
            .prop_map(|(weight, mean, slope, log_sd)| [weight, mean, slope, log_sd.exp()]);
        let member = prop::collection::vec(component, components).prop_map(|mut parts| {
            let total: f64 = parts.iter().map(|part| part[0]).sum();
            for part in &mut parts {
                part[0] /= total;
            }
            parts
        });
        prop::collection::vec(member, members)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cdf_is_monotone_and_the_inverse_of_quantile(members in mixtures()) {
        let (model, pool) = (KnownMembers::regression(members), pool());
        let distribution = Distribution::new(&model, &table(3), &pool).unwrap();
        let levels = [1e-4, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0 - 1e-4];
        let quantiles = distribution.quantile(&levels).unwrap();
        for (at, level) in levels.iter().enumerate() {
            let y: Vec<f64> = quantiles.chunks(levels.len()).map(|row| row[at]).collect();
            for found in distribution.cdf(&y).unwrap() {
                prop_assert!((found - level).abs() < 1e-6, "{found} {level}");
            }
        }
        prop_assert!(quantiles.chunks(levels.len()).all(<[f64]>::is_sorted));
        let interval = distribution.interval(0.5).unwrap();
        close(&interval[..2], &[quantiles[2], quantiles[4]], 1e-9);
    }

    #[test]
    fn density_integrates_to_one_and_to_the_moments(members in mixtures()) {
        let (model, pool) = (KnownMembers::regression(members), pool());
        let n = 4000;
        // all rows are equal; each evaluates the density at another target
        let same = Table::new(vec![Column::numeric("x", vec![0.5; n])]).unwrap();
        let distribution = Distribution::new(&model, &same, &pool).unwrap();
        let moments = distribution.moments().unwrap();
        let (low, width) = (SHIFT - 25.0 * SCALE, 50.0 * SCALE / n as f64);
        let y: Vec<f64> = (0..n).map(|at| low + at as f64 * width).collect();
        let density: Vec<f64> = distribution.logpdf(&y).unwrap().iter().map(|log| log.exp() * width).collect();
        let mean: f64 = density.iter().zip(&y).map(|(p, y)| p * y).sum();
        let variance: f64 = density.iter().zip(&y).map(|(p, y)| p * (y - mean).powi(2)).sum();
        close(&[density.iter().sum()], &[1.0], 1e-6);
        close(&[mean, variance.sqrt()], &[moments.mean[0], moments.std[0]], 1e-6);
    }

    #[test]
    fn the_decomposition_adds_up(members in mixtures()) {
        let (model, pool) = (KnownMembers::regression(members.clone()), pool());
        let distribution = Distribution::new(&model, &table(5), &pool).unwrap();
        let parts = distribution.uncertainty().unwrap();
        for row in 0..5 {
            let sum = parts.data[row] + parts.knowledge[row];
            prop_assert!((parts.total[row] - sum).abs() <= 1e-12 * sum);
            prop_assert!(parts.data[row] > 0.0 && parts.knowledge[row] >= 0.0);
        }
        if members.len() == 1 {
            prop_assert!(parts.knowledge.iter().all(|&knowledge| knowledge < 1e-9 * SCALE * SCALE));
        }
        let sd: Vec<f64> = parts.total.iter().map(|total| total.sqrt()).collect();
        close(&distribution.std().unwrap(), &sd, 1e-14);
    }

    #[test]
    fn crps_is_the_mean_error_minus_half_the_mean_distance_of_two_draws(members in mixtures(), y in 50.0..150.0_f64) {
        let (model, pool) = (KnownMembers::regression(members), pool());
        let distribution = Distribution::new(&model, &table(1), &pool).unwrap();
        let n = 20_000;
        let draws = distribution.sample(2 * n, Key::from_seed(3)).unwrap();
        let (a, b) = draws.split_at(n);
        let distance: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a - y).abs() - 0.5 * (a - b).abs()).collect();
        let mean = distance.iter().sum::<f64>() / n as f64;
        let variance = distance.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n as f64;
        // 64 cases with a tolerance of six standard errors: a failure probability below 2e-7
        let found = distribution.crps(&[y]).unwrap()[0];
        prop_assert!((found - mean).abs() < 6.0 * (variance / n as f64).sqrt() + 1e-9, "{found} {mean}");
    }
}

#[test]
fn three_members_have_the_variances_of_the_documentation() {
    // the example of docs/maths/vst.md
    let member = |mean: f64, variance: f64| vec![[1.0, mean, 0.0, variance.sqrt()]];
    let model =
        KnownMembers::regression(vec![member(1.0, 0.5), member(1.2, 0.4), member(0.9, 0.6)]);
    let pool = pool();
    let moments = Distribution::new(&model, &table(1), &pool)
        .unwrap()
        .moments()
        .unwrap();
    let unit = SCALE * SCALE;
    let found = [
        moments.variance.knowledge[0] / unit,
        moments.variance.data[0] / unit,
        moments.variance.total[0] / unit,
    ];
    close(
        &found,
        &[0.015_555_555_555_555_6, 0.5, 0.515_555_555_555_555_6],
        1e-13,
    );
}

#[test]
fn draws_follow_the_cdf_and_do_not_depend_on_threads_or_blocks() {
    let parts = vec![[0.3, -1.0, 0.5, 0.2], [0.7, 1.0, 0.0, 0.7]];
    let other = vec![[0.5, 0.0, 0.0, 0.1], [0.5, 2.0, 0.0, 0.4]];
    let model = KnownMembers::regression(vec![parts, other]);
    let (one, three) = (pool(), Pool::new(3).unwrap());
    let key = Key::from_seed(11);
    let many = Distribution::new(&model, &table(700), &one)
        .unwrap()
        .sample(3, key)
        .unwrap();
    let threads = Distribution::new(&model, &table(700), &three)
        .unwrap()
        .sample(3, key)
        .unwrap();
    assert_eq!(many, threads);

    let n = 20_000;
    let x = Table::new(vec![Column::numeric("x", vec![0.3])]).unwrap();
    let draws = Distribution::new(&model, &x, &one)
        .unwrap()
        .sample(n, key)
        .unwrap();
    let same = Table::new(vec![Column::numeric("x", vec![0.3; n])]).unwrap();
    let mut sorted = draws.clone();
    sorted.sort_by(f64::total_cmp);
    let cdf = Distribution::new(&model, &same, &one)
        .unwrap()
        .cdf(&sorted)
        .unwrap();
    let distance = ks_distance(&cdf, |p| p);
    assert!(distance < ks_limit(n, 1e-7), "{distance}");
}

#[test]
fn sampled_functions_are_the_members_means_without_repetition() {
    let members: Vec<_> = (0..5)
        .map(|m| vec![[1.0, f64::from(m), 0.0, 0.1]])
        .collect();
    let (model, pool) = (KnownMembers::regression(members), pool());
    let distribution = Distribution::new(&model, &table(300), &pool).unwrap();
    let functions = distribution.sample_functions(5, Key::from_seed(2)).unwrap();
    let mut first = functions[..5].to_vec();
    assert!(
        functions.chunks(5).all(|row| row == first),
        "the same members on every row"
    );
    first.sort_by(f64::total_cmp);
    let expected: Vec<f64> = (0..5).map(|m| SHIFT + SCALE * f64::from(m)).collect();
    close(&first, &expected, 1e-12);
    let more = distribution
        .sample_functions(12, Key::from_seed(2))
        .unwrap();
    assert_eq!(more.len(), 300 * 12);
}

#[test]
fn entropies_are_decomposed_and_labels_have_the_largest_probability() {
    let model = KnownMembers::classification(&[vec![0.9, 0.1, 0.0], vec![0.1, 0.3, 0.6]]);
    let pool = pool();
    let distribution = Distribution::new(&model, &table(2), &pool).unwrap();
    close(
        &distribution.probabilities().unwrap()[..3],
        &[0.5, 0.2, 0.3],
        1e-15,
    );
    assert_eq!(distribution.labels().unwrap(), [0, 0]);
    let parts = distribution.uncertainty().unwrap();
    let entropy = |p: &[f64]| {
        -p.iter()
            .filter(|p| **p > 0.0)
            .map(|p| p * p.ln())
            .sum::<f64>()
    };
    let total = entropy(&[0.5, 0.2, 0.3]);
    let data = 0.5 * (entropy(&[0.9, 0.1]) + entropy(&[0.1, 0.3, 0.6]));
    close(
        &[parts.total[0], parts.data[0], parts.knowledge[0]],
        &[total, data, total - data],
        1e-14,
    );
    let draws = distribution.sample(1000, Key::from_seed(1)).unwrap();
    assert!(draws.iter().all(|draw| [0.0, 1.0, 2.0].contains(draw)));
}

#[test]
fn scores_of_a_known_model() {
    let model = KnownMembers::regression(vec![vec![[1.0, 0.0, 0.0, 1.0]]]);
    let pool = pool();
    let distribution = Distribution::new(&model, &table(4), &pool).unwrap();
    let y = vec![SHIFT - SCALE, SHIFT, SHIFT + SCALE, SHIFT + 3.0 * SCALE];
    let scores = score(&distribution, &Target::Numeric(y), Some(SCALE))
        .unwrap()
        .values;
    let log_likelihood_std = -0.5 * (2.0 * std::f64::consts::PI).ln() - 0.5 * (11.0 / 4.0);
    let found = [
        "log_likelihood",
        "log_likelihood_std",
        "rmse_std",
        "mae",
        "coverage_50",
        "coverage_90",
        "coverage_95",
        "calibration_error",
        "sharpness_90",
    ]
    .map(|name| scores[name]);
    let expected = [
        log_likelihood_std - SCALE.ln(),
        log_likelihood_std,
        (11.0_f64 / 4.0).sqrt(),
        1.25 * SCALE,
        0.25,
        0.75,
        0.75,
        // intervals up to level 0.65 cover a quarter of the rows, the wider ones three quarters
        2.85 / 19.0,
        2.0 * 1.644_853_626_951_472_7 * SCALE,
    ];
    close(&found, &expected, 1e-12);
    // CRPS of a standard Normal at z: z (2 Phi(z) - 1) + 2 phi(z) - 1/√π
    let crps = |z: f64, cdf: f64| {
        z * (2.0 * cdf - 1.0) + 2.0 * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
            - 1.0 / std::f64::consts::PI.sqrt()
    };
    let one = crps(1.0, 0.841_344_746_068_542_9);
    let expected = (2.0 * one + crps(0.0, 0.5) + crps(3.0, 0.998_650_101_968_369_9)) / 4.0;
    close(&[scores["crps"]], &[SCALE * expected], 1e-12);
    // a constant uncertainty does not rank rows
    close(&[scores["prr_total"]], &[0.0], 1e-12);
}

#[test]
fn undefined_classification_scores_are_left_out() {
    let model = KnownMembers::classification(&[vec![0.8, 0.2]]);
    let pool = pool();
    let distribution = Distribution::new(&model, &table(4), &pool).unwrap();
    let scores = score(&distribution, &Target::Classes(vec![0, 0, 0, 1]), None)
        .unwrap()
        .values;
    close(
        &["nll", "brier", "error", "auc", "ece"].map(|name| scores[name]),
        &[
            -(3.0 * 0.8_f64.ln() + 0.2_f64.ln()) / 4.0,
            (3.0 * 0.08 + 1.28) / 4.0,
            0.25,
            0.5,
            0.05,
        ],
        1e-12,
    );
    let scores = score(&distribution, &Target::Classes(vec![0; 4]), None)
        .unwrap()
        .values;
    assert!(!scores.contains_key("auc") && !scores.contains_key("prr_total"));
}

#[test]
fn invalid_requests_are_refused() {
    let (numbers, classes) = (
        KnownMembers::regression(vec![vec![[1.0, 0.0, 0.0, 1.0]]]),
        KnownMembers::classification(&[vec![0.5, 0.5]]),
    );
    let pool = pool();
    let numbers = Distribution::new(&numbers, &table(2), &pool).unwrap();
    let classes = Distribution::new(&classes, &table(2), &pool).unwrap();
    assert!(matches!(numbers.probabilities(), Err(Error::Table(_))));
    assert!(matches!(classes.quantile(&[0.5]), Err(Error::Table(_))));
    assert!(matches!(
        numbers.quantile(&[0.5, 1.0]),
        Err(Error::Parameters(_))
    ));
    assert!(matches!(
        numbers.interval(f64::NAN),
        Err(Error::Parameters(_))
    ));
    let message = numbers.crps(&[1.0]).unwrap_err().to_string();
    assert!(message.contains("1 target values for 2 rows"), "{message}");
    assert!(score(&numbers, &Target::Classes(vec![0, 0]), None).is_err());
    assert!(score(&classes, &Target::Numeric(vec![0.0, 0.0]), None).is_err());
    assert!(score(&classes, &Target::Classes(vec![0, 7]), None).is_err());
}

#[test]
fn knowledge_uncertainty_separates_tables_if_members_disagree() {
    // two members with means x and -x and noise 0.5: the knowledge sd is |x|, the data sd is
    // constant
    let model = KnownMembers::regression(vec![
        vec![[1.0, 0.0, 1.0, 0.5]],
        vec![[1.0, 0.0, -1.0, 0.5]],
    ]);
    let pool = pool();
    let predict = |x: &[f64]| {
        let table = Table::new(vec![Column::numeric("x", x.to_vec())]).unwrap();
        Distribution::new(&model, &table, &pool).unwrap()
    };
    let found = ood(&predict(&[0.0, 1.0, 4.0]), &predict(&[2.0, -3.0])).unwrap();
    assert_eq!((found.n_in, found.n_out), (3, 2));
    // 2 and 3 rank above 0 and 1 but below 4; a threshold below 2 misclassifies the row with 4 only
    close(&[found.knowledge.auroc], &[4.0 / 6.0], 1e-12);
    close(&[found.knowledge.one_split_auroc], &[5.0 / 6.0], 1e-12);
    close(
        &[
            found.knowledge.threshold.unwrap(),
            found.knowledge.median_in,
            found.knowledge.median_out,
        ],
        &[1.5 * SCALE, SCALE, 2.5 * SCALE],
        1e-12,
    );
    close(&[found.total.auroc], &[4.0 / 6.0], 1e-12);
    assert_eq!((found.data.auroc, found.data.threshold), (0.5, None));
}

#[test]
fn empty_tables_and_different_tasks_cannot_be_compared() {
    let numbers = KnownMembers::regression(vec![vec![[1.0, 0.0, 0.0, 1.0]]]);
    let classes = KnownMembers::classification(&[vec![0.5, 0.5]]);
    let pool = pool();
    let predict = |model, n_rows| Distribution::new(model, &table(n_rows), &pool).unwrap();
    for (inside, outside, part) in [(0, 2, "no rows inside"), (2, 0, "no rows outside")] {
        let error = ood(&predict(&numbers, inside), &predict(&numbers, outside)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = ood(&predict(&numbers, 2), &predict(&classes, 2)).unwrap_err();
    assert!(error.to_string().contains("do not compare"), "{error}");
}

#[test]
fn an_empty_table_has_empty_predictions() {
    let model = KnownMembers::regression(vec![vec![[1.0, 0.0, 0.0, 1.0]]]);
    let pool = pool();
    let distribution = Distribution::new(&model, &table(0), &pool).unwrap();
    assert!(distribution.mean().unwrap().is_empty());
    assert!(distribution.quantile(&[0.1, 0.9]).unwrap().is_empty());
    assert!(score(&distribution, &Target::Numeric(Vec::new()), None).is_err());
}

#[test]
fn results_that_do_not_fit_into_memory_are_errors() {
    let pool = Pool::new(1).unwrap();
    let key = Key::from_seed(0);
    let regression = KnownMembers::regression(vec![vec![[1.0, 0.0, 1.0, 1.0]]]);
    let classification = KnownMembers::classification(&[vec![0.3, 0.7]]);
    for model in [&regression as &dyn Model, &classification] {
        let distribution = Distribution::new(model, &table(300), &pool).unwrap();
        // beyond the address space, and beyond the range of a count
        for n in [1 << 50, usize::MAX / 2] {
            let sample = distribution.sample(n, key).unwrap_err();
            let functions = distribution.sample_functions(n, key).unwrap_err();
            assert!(matches!(sample, Error::Memory { .. }), "{sample}");
            assert!(matches!(functions, Error::Memory { .. }), "{functions}");
        }
        assert!(distribution.ask(1 << 50, |_, _, _| ()).is_err());
        let pair = distribution.ask_pair(&distribution, 1 << 50, |_, _, _, _| ());
        assert!(matches!(pair, Err(Error::Memory { .. })));
    }
}

/// The log density of a far target is the largest negative number; sums over several such rows
/// would overflow.
#[test]
fn scores_and_importances_of_far_targets_are_finite() {
    let table = mixed(3, 40);
    let data = with_target(&table, "y");
    let model = fit(Family::Tree, &json!({}), &data, 0);
    let distribution = model.predict(&table).unwrap();
    let target = Target::Numeric(vec![1e300; 40]);
    let scores = score(&distribution, &target, None).unwrap();
    assert!(
        scores.values.values().all(|value| value.is_finite()),
        "{scores:?}"
    );
    let options = PermutationOptions {
        repeats: 2,
        key: Key::from_seed(1),
        reference: None,
    };
    let found = importances(&distribution, Some(&target), &options).unwrap();
    assert!(found.log_likelihood.unwrap().is_finite());
    for column in &found.columns {
        assert!(
            column.log_likelihood_fall.unwrap().mean.is_finite(),
            "{column:?}"
        );
    }
}
