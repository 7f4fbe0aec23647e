//! Models do not depend on the order of rows and columns, nor on units.

use crate::problems::{
    fit, mixed, numbers, prediction_bits, quick, replaced, targets_of, with_target,
};
use softwood::{Column, Distribution, Family, Model, Pool, Table};

/// The numbers from 0 to n in another order.
fn permuted(n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&row| (row * 7919 % 1013, row));
    order
}

#[test]
fn the_order_of_training_rows_does_not_matter() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(1, 150);
            let models = [table.clone(), table.take(&permuted(150))]
                .map(|table| fit(family, &quick(family), &with_target(&table, target), 0));
            assert_eq!(
                prediction_bits(&*models[0], &table),
                prediction_bits(&*models[1], &table)
            );
        }
    }
}

#[test]
fn the_order_of_predicted_rows_does_not_matter() {
    for &family in Family::ALL {
        let table = mixed(2, 150);
        let model = fit(family, &quick(family), &with_target(&table, "y"), 0);
        let pool = Pool::new(2).unwrap();
        let means = |table: &Table| {
            Distribution::new(&*model, table, &pool)
                .unwrap()
                .mean()
                .unwrap()
        };
        let order = permuted(150);
        let (plain, other) = (means(&table), means(&table.take(&order)));
        for (at, &row) in order.iter().enumerate() {
            assert_eq!(plain[row].to_bits(), other[at].to_bits());
        }
    }
}

#[test]
fn columns_are_matched_by_name() {
    for &family in Family::ALL {
        for &target in targets_of(family) {
            let table = mixed(3, 120);
            let model = fit(family, &quick(family), &with_target(&table, target), 0);
            let mut columns = table.columns().to_vec();
            columns.reverse();
            columns.insert(1, Column::numeric("extra", vec![1e9; 120]));
            let other = Table::new(columns).unwrap();
            assert_eq!(
                prediction_bits(&*model, &table),
                prediction_bits(&*model, &other)
            );
        }
    }
}

/// Mean, standard deviation, and log density at the target.
fn moments(model: &dyn Model, table: &Table) -> [Vec<f64>; 3] {
    let pool = Pool::new(2).unwrap();
    let dist = Distribution::new(model, table, &pool).unwrap();
    let y = numbers(table, "y");
    [
        dist.mean().unwrap(),
        dist.std().unwrap(),
        dist.logpdf(&y).unwrap(),
    ]
}

#[test]
fn the_units_of_the_target_do_not_matter() {
    for &family in Family::ALL {
        let table = mixed(4, 150);
        let model = fit(family, &quick(family), &with_target(&table, "y"), 0);
        let [mean, sd, log_density] = moments(&*model, &table);
        for (shift, scale) in [(0.0, 3.7_f64), (-250.0, 0.01), (1e6, 12.0)] {
            let y = numbers(&table, "y")
                .iter()
                .map(|y| shift + scale * y)
                .collect();
            let table = replaced(&table, Column::numeric("y", y));
            let model = fit(family, &quick(family), &with_target(&table, "y"), 0);
            let [other_mean, other_sd, other_log_density] = moments(&*model, &table);
            for row in 0..table.n_rows() {
                let gap = (other_mean[row] - shift) / scale - mean[row];
                assert!(gap.abs() < 1e-4 * sd[row], "mean of row {row}: {gap}");
                let ratio = other_sd[row] / scale / sd[row];
                assert!((ratio - 1.0).abs() < 1e-4, "sd of row {row}: {ratio}");
                let gap = other_log_density[row] + scale.ln() - log_density[row];
                assert!(gap.abs() < 1e-3, "log density of row {row}: {gap}");
            }
        }
    }
}

#[test]
fn the_units_of_a_feature_do_not_matter() {
    for &family in Family::ALL {
        let table = mixed(5, 150);
        let model = fit(family, &quick(family), &with_target(&table, "y"), 0);
        let [mean, sd, _] = moments(&*model, &table);
        // multiplication by a power of two is exact
        let a = numbers(&table, "a").iter().map(|a| 1024.0 * a).collect();
        let table = replaced(&table, Column::numeric("a", a));
        let model = fit(family, &quick(family), &with_target(&table, "y"), 0);
        let [other_mean, other_sd, _] = moments(&*model, &table);
        for row in 0..table.n_rows() {
            assert!((other_mean[row] - mean[row]).abs() < 1e-4 * sd[row]);
            assert!((other_sd[row] / sd[row] - 1.0).abs() < 1e-4);
        }
    }
}
