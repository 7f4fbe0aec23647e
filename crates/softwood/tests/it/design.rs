//! The next rows to label and the next candidates to try.

use crate::problems::{classifiers, fit, mixed, normals, quick, targets_of, uniforms, with_target};
use serde_json::{Value, json};
use softwood::decide::design::{
    RowCriterion, RowOptions, RowSelection, SuggestOptions, SuggestionCriterion, Suggestions,
    select_rows, suggest,
};
use softwood::{Column, Dataset, Distribution, Family, Key, Model, Pool, Result, Roles, Table};
use softwood_testkit::close;

/// The criteria that ask the model.
const CHOSEN_BY_MODEL: [RowCriterion; 3] = [
    RowCriterion::Information,
    RowCriterion::Variance,
    RowCriterion::VarianceReduction,
];

/// A quick Gaussian process.
fn process() -> Value {
    json!({"max_iterations": 20, "n_restarts": 0, "n_members": 64})
}

/// A dataset of inputs `x` and a target.
fn labelled(x: &[f64], y: Vec<f64>) -> Dataset {
    let table = inputs(x).with_column(Column::numeric("y", y)).unwrap();
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table, &roles).unwrap()
}

fn inputs(x: &[f64]) -> Table {
    Table::new(vec![Column::numeric("x", x.to_vec())]).unwrap()
}

/// A sine from 0 to 4 without rows between 1.5 and 2.5.
fn process_with_gap() -> Box<dyn Model> {
    let x: Vec<f64> = (0..80).map(|row| f64::from(row) / 20.0).collect();
    let x: Vec<f64> = x.into_iter().filter(|x| (x - 2.0).abs() > 0.5).collect();
    let noise = normals(Key::from_seed(3), x.len());
    let y = x.iter().zip(noise).map(|(x, e)| (2.0 * x).sin() + 0.05 * e);
    let y = y.collect();
    fit(Family::Gp, &process(), &labelled(&x, y), 0)
}

fn selected(model: &dyn Model, pool: &Table, n: usize, criterion: RowCriterion) -> RowSelection {
    let options = RowOptions::new(n, Key::from_seed(1)).criterion(criterion);
    select_rows(&model.predict(pool).unwrap(), &options).unwrap()
}

fn suggested(model: &dyn Model, pool: &Table, options: &SuggestOptions) -> Result<Suggestions> {
    suggest(&model.predict(pool).unwrap(), options)
}

/// `½ ln det(1 + A Aᵀ)` by elimination; `rows` has the rows of `A`.
fn information(rows: &[Vec<f64>]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let n = rows.len();
    let entry = |i: usize, j: usize| {
        let diagonal = if i == j { 1.0 } else { 0.0 };
        diagonal + dot(&rows[i], &rows[j])
    };
    let line = |i: usize| (0..n).map(|j| entry(i, j)).collect();
    let mut matrix: Vec<Vec<f64>> = (0..n).map(line).collect();
    let mut sum = 0.0;
    for k in 0..n {
        sum += 0.5 * matrix[k][k].ln();
        for i in k + 1..n {
            let factor = matrix[i][k] / matrix[k][k];
            for j in k..n {
                matrix[i][j] -= factor * matrix[k][j];
            }
        }
    }
    sum
}

/// The scaled deviations of every row (outputs, each with all members).
fn deviations(dist: &Distribution<'_>) -> Vec<Vec<Vec<f64>>> {
    let n_classes = dist.schema().classes().map(<[String]>::len);
    let (n_members, n_outputs) = (dist.n_members(), n_classes.unwrap_or(1));
    let (members, data) = (dist.members().unwrap(), dist.uncertainty().unwrap().data);
    let rows = members.chunks_exact(n_members * n_outputs).zip(data);
    rows.map(|(row, data)| {
        let output = |output: usize| {
            let values: Vec<f64> = row
                .iter()
                .skip(output)
                .step_by(n_outputs)
                .copied()
                .collect();
            let mean = values.iter().sum::<f64>() / n_members as f64;
            let variance = if n_classes.is_some() { mean } else { data };
            let scale = (variance * n_members as f64).sqrt();
            values.iter().map(|value| (value - mean) / scale).collect()
        };
        (0..n_outputs).map(output).collect()
    })
    .collect()
}

#[test]
fn rows_in_a_gap_of_the_data_are_chosen_first() {
    let model = process_with_gap();
    let x: Vec<f64> = (0..80).map(|row| 0.025 + f64::from(row) / 20.0).collect();
    for criterion in CHOSEN_BY_MODEL {
        let found = selected(&*model, &inputs(&x), 3, criterion);
        for &row in &found.rows {
            assert!((x[row] - 2.0).abs() < 0.5, "{criterion:?}: {}", x[row]);
        }
        if criterion != RowCriterion::VarianceReduction {
            assert!(found.scores.is_sorted_by(|a, b| a >= b), "{found:?}");
        }
    }
}

#[test]
fn near_duplicates_are_not_chosen_together() {
    let model = process_with_gap();
    // ten places, each with ten rows that hardly differ
    let x: Vec<f64> = (0..100)
        .map(|row| 1.6 + 0.08 * f64::from(row / 10) + 1e-4 * f64::from(row % 10))
        .collect();
    for criterion in [RowCriterion::Information, RowCriterion::Variance] {
        let mut places: Vec<usize> = selected(&*model, &inputs(&x), 4, criterion)
            .rows
            .into_iter()
            .map(|row| row / 10)
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 4, "{criterion:?}: {places:?}");
    }
}

#[test]
fn copies_of_a_row_are_chosen_after_all_different_rows() {
    let model = process_with_gap();
    let x: Vec<f64> = (0..60).map(|row| 0.2 * f64::from(row % 20)).collect();
    for criterion in CHOSEN_BY_MODEL {
        let found = selected(&*model, &inputs(&x), 60, criterion).rows;
        for round in found.chunks_exact(20) {
            let mut places: Vec<usize> = round.iter().map(|row| row % 20).collect();
            places.sort_unstable();
            assert_eq!(places, (0..20).collect::<Vec<_>>(), "{criterion:?}");
        }
        let mut rows = found;
        rows.sort_unstable();
        assert_eq!(rows, (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn scores_of_information_are_the_greedy_gains_of_the_log_determinant() {
    let table = mixed(5, 150);
    for (family, params, target) in [
        (
            Family::Gp,
            json!({"n_members": 12, "max_iterations": 5, "n_restarts": 0}),
            "y",
        ),
        (Family::Sglb, quick(Family::Sglb), "three"),
    ] {
        let model = fit(family, &params, &with_target(&table, target), 2);
        let pool = mixed(6, 30);
        let dist = model.predict(&pool).unwrap();
        let all = deviations(&dist);
        let found = selected(&*model, &pool, 6, RowCriterion::Information);
        let mut batch: Vec<Vec<f64>> = Vec::new();
        let gain = |batch: &[Vec<f64>], row: usize| {
            information(&[batch, &all[row]].concat()) - information(batch)
        };
        for (at, (&row, score)) in found.rows.iter().zip(&found.scores).enumerate() {
            let open = (0..30).filter(|row| !found.rows[..at].contains(row));
            let best = open.map(|row| gain(&batch, row)).fold(0.0, f64::max);
            close(&[gain(&batch, row), *score], &[best, best], 1e-9);
            batch.extend(all[row].clone());
        }
        close(&[found.scores.iter().sum()], &[information(&batch)], 1e-9);
    }
}

/// Sum over the rows of a pool of `Σ d² `, given the labels of the rows of a batch, by conditioning on
/// one output after the other.
fn variance_left(pool: &[Vec<Vec<f64>>], noise: &[f64], batch: &[usize]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut all = pool.to_vec();
    for &row in batch {
        for output in 0..all[row].len() {
            let observed = all[row][output].clone();
            let noise = noise[row] * noise[row];
            // the square root of the posterior covariance of the weights: 1 - c a aᵀ
            let square = dot(&observed, &observed);
            let shrinkage = (1.0 - (noise / (noise + square)).sqrt()) / square.max(1e-300);
            for deviations in all.iter_mut().flatten() {
                let factor = shrinkage * dot(deviations, &observed);
                for (deviation, observed) in deviations.iter_mut().zip(&observed) {
                    *deviation -= factor * observed;
                }
            }
        }
    }
    all.iter().flatten().map(|d| dot(d, d)).sum()
}

#[test]
fn scores_of_variance_reduction_are_what_the_labels_remove_of_the_pools_variance() {
    let table = mixed(5, 150);
    let pool = mixed(6, 30);
    for (family, params, target) in [
        (
            Family::Gp,
            json!({"n_members": 12, "max_iterations": 5, "n_restarts": 0}),
            "y",
        ),
        (Family::Sglb, quick(Family::Sglb), "three"),
    ] {
        let model = fit(family, &params, &with_target(&table, target), 2);
        let dist = model.predict(&pool).unwrap();
        let mut all = deviations(&dist);
        let mut noise = vec![1.0; 30];
        if target == "y" {
            noise = dist.moments().unwrap().data_std;
            for (row, noise) in all.iter_mut().flatten().zip(&noise) {
                for deviation in row {
                    *deviation *= noise;
                }
            }
        }
        let unit = if target == "y" { 1.0 } else { 0.5 };
        let found = selected(&*model, &pool, 4, RowCriterion::VarianceReduction);
        for (at, (&row, score)) in found.rows.iter().zip(&found.scores).enumerate() {
            let before = variance_left(&all, &noise, &found.rows[..at]);
            let removed = |row: usize| {
                let batch = [&found.rows[..at], &[row]].concat();
                unit * (before - variance_left(&all, &noise, &batch)) / 30.0
            };
            let open = (0..30).filter(|row| !found.rows[..at].contains(row));
            let best = open.map(removed).fold(0.0, f64::max);
            close(&[removed(row), *score], &[best, best], 1e-9);
        }
    }
}

#[test]
fn scores_of_variance_are_the_knowledge_uncertainty() {
    let table = mixed(5, 150);
    for target in ["y", "three"] {
        let model = fit(
            Family::Forest,
            &quick(Family::Forest),
            &with_target(&table, target),
            0,
        );
        let pool = mixed(6, 50);
        let knowledge = model
            .predict(&pool)
            .unwrap()
            .uncertainty()
            .unwrap()
            .knowledge;
        let found = selected(&*model, &pool, 10, RowCriterion::Variance);
        let expected: Vec<f64> = found.rows.iter().map(|&row| knowledge[row]).collect();
        assert_eq!(found.scores, expected);
        let largest = knowledge.into_iter().fold(0.0, f64::max);
        close(&found.scores[..1], &[largest], 1e-12);
    }
}

/// A bump in one corner of the unit square.
fn bump(a: f64, b: f64) -> f64 {
    3.0 * (-20.0 * ((a - 0.8).powi(2) + (b - 0.8).powi(2))).exp() + (3.0 * a).sin()
}

/// Root mean square error of the mean after `n_rounds` batches of 5 rows on top of 10 random ones.
fn error_after(n_rounds: u64, criterion: RowCriterion, seed: u64) -> f64 {
    let key = Key::from_seed(seed);
    // most rows of the pool are far from the bump
    let squares = |key: Key| -> Vec<f64> { uniforms(key, 300).iter().map(|u| u * u).collect() };
    let (a, b, noise) = (
        squares(key.child(1)),
        squares(key.child(2)),
        normals(key.child(3), 300),
    );
    let y: Vec<f64> = (0..300)
        .map(|row| bump(a[row], b[row]) + 0.05 * noise[row])
        .collect();
    let all = Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("y", y),
    ]);
    let all = all.unwrap();
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    let model_of = |rows: &[usize]| {
        let data = Dataset::from_table(all.take(rows), &roles).unwrap();
        fit(Family::Gp, &process(), &data, seed)
    };
    let mut rows: Vec<usize> = (0..10).collect();
    for round in 0..n_rounds {
        let open: Vec<usize> = (0..300).filter(|row| !rows.contains(row)).collect();
        let model = model_of(&rows);
        let options = RowOptions::new(5, key.child(round)).criterion(criterion);
        let next = select_rows(&model.predict(&all.take(&open)).unwrap(), &options);
        rows.extend(next.unwrap().rows.iter().map(|&at| open[at]));
    }
    let grid: Vec<(f64, f64)> = (0..400)
        .map(|at| (f64::from(at / 20) / 19.0, f64::from(at % 20) / 19.0))
        .collect();
    let (a, b): (Vec<f64>, Vec<f64>) = grid.iter().copied().unzip();
    let table = Table::new(vec![Column::numeric("a", a), Column::numeric("b", b)]).unwrap();
    let means = model_of(&rows).predict(&table).unwrap().mean().unwrap();
    let squares = means
        .iter()
        .zip(grid)
        .map(|(mean, (a, b))| (mean - bump(a, b)).powi(2));
    (squares.sum::<f64>() / 400.0).sqrt()
}

#[test]
fn chosen_rows_are_worth_more_than_random_ones() {
    let mean = |criterion: RowCriterion| {
        (0..4)
            .map(|seed| error_after(5, criterion, seed))
            .sum::<f64>()
            / 4.0
    };
    let random = mean(RowCriterion::Random);
    for criterion in CHOSEN_BY_MODEL {
        let found = mean(criterion);
        assert!(
            found < 0.8 * random,
            "{criterion:?}: {found}, random: {random}"
        );
    }
}

#[test]
fn a_batch_beyond_the_pool_is_an_error_that_names_both_sizes() {
    let model = process_with_gap();
    let pool = inputs(&[1.0, 2.0, 3.0]);
    let dist = model.predict(&pool).unwrap();
    for (n, criterion) in [(4, RowCriterion::Random), (0, RowCriterion::Information)] {
        let options = RowOptions::new(n, Key::from_seed(0)).criterion(criterion);
        let message = select_rows(&dist, &options).unwrap_err().to_string();
        let expected =
            format!("n = {n}: there are 3 rows in the pool; expected a whole number from 1 to 3");
        assert_eq!(message, expected);
    }
    let options = SuggestOptions::new(3, Key::from_seed(0)).excluded(vec![true, false, false]);
    let message = suggest(&dist, &options).unwrap_err().to_string();
    assert!(
        message.contains("there are 2 candidates that are not excluded"),
        "{message}"
    );
}

#[test]
fn a_model_of_one_member_cannot_choose_rows() {
    let params = json!({"n_members": 1, "max_iterations": 5, "n_restarts": 0});
    let model = fit(
        Family::Gp,
        &params,
        &labelled(&[0.0, 1.0, 2.0], vec![0.0, 1.0, 0.5]),
        0,
    );
    let pool = model.predict(&inputs(&[0.5, 1.5])).unwrap();
    for criterion in CHOSEN_BY_MODEL {
        let options = RowOptions::new(1, Key::from_seed(0)).criterion(criterion);
        let message = select_rows(&pool, &options).unwrap_err().to_string();
        assert!(message.contains("`n_members` of at least 2"), "{message}");
    }
}

#[test]
fn choices_do_not_depend_on_the_number_of_threads() {
    let table = mixed(5, 300);
    let model = fit(
        Family::Vst,
        &quick(Family::Vst),
        &with_target(&table, "y"),
        0,
    );
    // a pool with a shortlist
    let pool = mixed(6, 5000);
    let choices = |threads: usize| {
        let threads = Pool::new(threads).unwrap();
        let dist = Distribution::new(&*model, &pool, &threads).unwrap();
        let key = Key::from_seed(4);
        let rows = RowCriterion::ALL.iter().map(|&criterion| {
            select_rows(&dist, &RowOptions::new(20, key).criterion(criterion)).unwrap()
        });
        let suggestions = SuggestionCriterion::ALL.iter().map(|&criterion| {
            suggest(
                &dist,
                &SuggestOptions::new(20, key).criterion(criterion).best(0.0),
            )
            .unwrap()
        });
        (rows.collect::<Vec<_>>(), suggestions.collect::<Vec<_>>())
    };
    let found = choices(1);
    assert_eq!(found, choices(2));
    let differ = |a: usize, b: usize| found.0[a].rows != found.0[b].rows;
    assert!(differ(0, 1) && differ(0, 2) && differ(1, 2));
}

#[test]
fn every_family_and_task_chooses_rows_and_candidates() {
    let table = mixed(5, 120);
    let pool = mixed(6, 40);
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let model = fit(family, &quick(family), &with_target(&table, target), 0);
            for criterion in CHOSEN_BY_MODEL {
                let found = selected(&*model, &pool, 40, criterion);
                let mut rows = found.rows.clone();
                rows.sort_unstable();
                let expected: Vec<usize> = (0..40).collect();
                assert_eq!(rows, expected, "{} {target} {criterion:?}", family.name());
                let is_valid = |score: &f64| score.is_finite() && *score >= 0.0;
                assert!(
                    found.scores.iter().all(is_valid),
                    "{} {target}",
                    family.name()
                );
            }
            let options = SuggestOptions::new(5, Key::from_seed(0));
            let options = if target == "y" {
                options
            } else {
                options.class(1)
            };
            for &criterion in SuggestionCriterion::ALL {
                let options = options.clone().best(0.5).criterion(criterion);
                let found = suggested(&*model, &pool, &options).unwrap();
                assert_eq!((found.rows.len(), found.mean.len()), (5, 5));
            }
        }
    }
}

#[test]
fn classes_that_the_members_disagree_on_are_chosen() {
    let table = mixed(5, 200);
    let pool = mixed(6, 300);
    let data = with_target(&table, "three");
    let model = fit(Family::Forest, &json!({"n_members": 20}), &data, 0);
    let knowledge = model
        .predict(&pool)
        .unwrap()
        .uncertainty()
        .unwrap()
        .knowledge;
    let mean =
        |rows: &[usize]| rows.iter().map(|&row| knowledge[row]).sum::<f64>() / rows.len() as f64;
    let all: Vec<usize> = (0..300).collect();
    for criterion in [RowCriterion::Information, RowCriterion::Variance] {
        let found = selected(&*model, &pool, 20, criterion).rows;
        assert!(mean(&found) > 1.5 * mean(&all), "{criterion:?}");
    }
}

/// Rows of the best predictions of each member.
fn best_rows(dist: &Distribution<'_>, sign: f64) -> Vec<usize> {
    let (members, n) = (dist.members().unwrap(), dist.n_members());
    let value = |row: usize, member: usize| sign * members[row * n + member];
    let best = |member: usize| {
        (0..dist.n_rows())
            .max_by(|&a, &b| value(a, member).total_cmp(&value(b, member)))
            .unwrap()
    };
    (0..n).map(best).collect()
}

#[test]
fn a_suggestion_of_thompson_sampling_is_the_best_row_of_a_member() {
    let model = process_with_gap();
    let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 50.0).collect();
    let pool = inputs(&x);
    let dist = model.predict(&pool).unwrap();
    for (maximize, sign) in [(true, 1.0), (false, -1.0)] {
        let best = best_rows(&dist, sign);
        let mut found: Vec<usize> = Vec::new();
        for seed in 0..40 {
            let options = SuggestOptions::new(1, Key::from_seed(seed)).maximize(maximize);
            found.extend(suggest(&dist, &options).unwrap().rows);
        }
        assert!(found.iter().all(|row| best.contains(row)));
        found.sort_unstable();
        found.dedup();
        assert!(
            found.len() > 2,
            "different draws give different rows: {found:?}"
        );
    }
    // a batch has no row twice, even with more rows than members
    let options = SuggestOptions::new(150, Key::from_seed(0));
    let found = suggest(&dist, &options).unwrap();
    let mut rows = found.rows.clone();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), 150);
    let moments = dist.moments().unwrap();
    let of_rows = |values: &[f64]| -> Vec<f64> { found.rows.iter().map(|&r| values[r]).collect() };
    close(&found.mean, &of_rows(&moments.mean), 1e-12);
    close(&found.knowledge_sd, &of_rows(&moments.knowledge_std), 1e-12);
}

/// Places that are tried in turn, from four on, until one is within 0.01 of the maximum.
fn n_trials(criterion: SuggestionCriterion, seed: u64) -> usize {
    let f = |x: f64| (5.0 * x).sin() + 0.8 * x;
    let grid: Vec<f64> = (0..=300).map(|row| f64::from(row) / 100.0).collect();
    let largest = grid.iter().map(|&x| f(x)).fold(f64::NEG_INFINITY, f64::max);
    let mut is_tried = vec![false; grid.len()];
    for row in [20, 90, 200, 280] {
        is_tried[row] = true;
    }
    for n in 4..30 {
        let x: Vec<f64> = (grid.iter().zip(&is_tried))
            .filter(|(_, tried)| **tried)
            .map(|(x, _)| *x)
            .collect();
        let y: Vec<f64> = x.iter().map(|&x| f(x)).collect();
        if y.iter().any(|&y| y > largest - 0.01) {
            return n;
        }
        let model = fit(Family::Gp, &process(), &labelled(&x, y), seed);
        let options = SuggestOptions::new(1, Key::from_seed(seed).child(n as u64))
            .criterion(criterion)
            .excluded(is_tried.clone());
        let next = suggested(&*model, &inputs(&grid), &options).unwrap();
        assert!(!is_tried[next.rows[0]]);
        is_tried[next.rows[0]] = true;
    }
    30
}

#[test]
fn the_maximum_of_a_function_is_found_in_few_trials() {
    for &criterion in SuggestionCriterion::ALL {
        let found: Vec<usize> = (0..4).map(|seed| n_trials(criterion, seed)).collect();
        assert!(found.iter().all(|&n| n <= 18), "{criterion:?}: {found:?}");
    }
}

#[test]
fn excluded_rows_are_never_suggested() {
    let model = process_with_gap();
    let x: Vec<f64> = (0..50).map(|row| f64::from(row) / 12.0).collect();
    let pool = inputs(&x);
    for &criterion in SuggestionCriterion::ALL {
        let mut is_tried = vec![false; 50];
        is_tried[7] = true;
        for step in 0..7 {
            let options = SuggestOptions::new(7, Key::from_seed(step))
                .criterion(criterion)
                .excluded(is_tried.clone());
            for row in suggested(&*model, &pool, &options).unwrap().rows {
                assert!(!is_tried[row], "{criterion:?}: {row}");
                is_tried[row] = true;
            }
        }
        assert!(is_tried.iter().all(|tried| *tried));
        let options = SuggestOptions::new(1, Key::from_seed(0)).excluded(is_tried);
        assert!(suggested(&*model, &pool, &options).is_err());
    }
}

#[test]
fn expected_improvement_is_the_mean_of_the_improvements_of_the_members() {
    let model = process_with_gap();
    let x: Vec<f64> = (0..80).map(|row| f64::from(row) / 20.0).collect();
    let pool = inputs(&x);
    let dist = model.predict(&pool).unwrap();
    let (members, n) = (dist.members().unwrap(), dist.n_members());
    for (maximize, sign, best) in [(true, 1.0, 0.7), (false, -1.0, 0.2)] {
        let options = SuggestOptions::new(3, Key::from_seed(0))
            .criterion(SuggestionCriterion::ExpectedImprovement)
            .maximize(maximize)
            .best(best);
        let found = suggest(&dist, &options).unwrap();
        let mut bests = vec![sign * best; n];
        for &row in &found.rows {
            let improvement = |row: usize| {
                let values = members[row * n..][..n].iter().zip(&bests);
                values
                    .map(|(value, best)| (sign * value - best).max(0.0))
                    .sum::<f64>()
            };
            let largest = (0..80).map(improvement).fold(0.0, f64::max);
            close(&[improvement(row)], &[largest], 1e-12);
            for (best, value) in bests.iter_mut().zip(&members[row * n..][..n]) {
                *best = best.max(sign * value);
            }
        }
    }
}

#[test]
fn suggestions_for_classes_maximize_the_probability_of_one() {
    let table = mixed(5, 200);
    let pool = mixed(6, 100);
    for family in classifiers().take(2) {
        let model = fit(family, &quick(family), &with_target(&table, "three"), 0);
        let dist = model.predict(&pool).unwrap();
        let probabilities = dist.probabilities().unwrap();
        let found = suggest(&dist, &SuggestOptions::new(5, Key::from_seed(0)).class(2)).unwrap();
        for (&row, mean) in found.rows.iter().zip(&found.mean) {
            close(&[probabilities[3 * row + 2]], &[*mean], 1e-9);
            assert!(*mean > 0.5, "{}: {mean}", family.name());
        }
    }
}

#[test]
fn options_that_do_not_fit_the_model_are_errors() {
    let model = process_with_gap();
    let table = mixed(5, 60);
    let classes = fit(Family::Tree, &json!({}), &with_target(&table, "three"), 0);
    let one = || SuggestOptions::new(1, Key::from_seed(0));
    let improvement = || one().criterion(SuggestionCriterion::ExpectedImprovement);
    let x = inputs(&[0.5, 1.0]);
    for (options, expected) in [
        (one().class(0), "the model predicts numbers"),
        (
            one().excluded(vec![true]),
            "excluded has 1 entries for 2 candidates",
        ),
        (improvement(), "give `best`"),
        (improvement().best(f64::NAN), "best = NaN"),
    ] {
        let message = suggested(&*model, &x, &options).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    for (options, expected) in [
        (one(), "the model predicts classes; give the class"),
        (one().class(3), "class = 3: the model has 3 classes"),
    ] {
        let message = suggested(&*classes, &table, &options)
            .unwrap_err()
            .to_string();
        assert!(message.contains(expected), "{message}");
    }
    let message = RowCriterion::from_name("variances")
        .unwrap_err()
        .to_string();
    assert!(message.contains("did you mean `variance`"), "{message}");
}
