//! Random split of a dataset into training and validation rows.
//!
//! The soft families take both parts as datasets. Boosting takes the number of validation rows and
//! uses so many of its shuffled rows (`models/boosting/selection.rs`).

use crate::data::dataset::Dataset;
use crate::rng::{Key, shuffle};

/// Smallest number of rows that is split.
const MIN_ROWS_TO_SPLIT: usize = 40;
/// Largest number of copies of a deduplicated row that are assigned separately.
const MAX_COPIES: usize = 64;

/// Number of validation rows among `n_rows`; 0 if there are too few rows to split.
pub(crate) fn n_validation_rows(n_rows: usize, fraction: f64) -> usize {
    if n_rows < MIN_ROWS_TO_SPLIT {
        0
    } else {
        fraction_of(n_rows, fraction)
    }
}

/// Size of a fraction of `n` rows, at least one and less than all.
fn fraction_of(n: usize, fraction: f64) -> usize {
    ((n as f64 * fraction).round() as usize).clamp(1, n - 1)
}

/// Splits deduplicated rows at random into training and validation rows; `None` if there are too
/// few.
///
/// Each deduplicated row goes to one side. Below [`MIN_ROWS_TO_SPLIT`] distinct rows, the copies of
/// a row are split instead, because no distinct row can be spared entirely.
pub(crate) fn train_validation_split(
    data: &Dataset,
    fraction: f64,
    key: Key,
) -> Option<(Dataset, Dataset)> {
    if n_raw_rows(data) < MIN_ROWS_TO_SPLIT {
        return None;
    }
    let copies = copies_of(data);
    let mut order = copies.clone();
    shuffle(&mut key.rng(), &mut order);
    let (validation, train) = order.split_at(fraction_of(order.len(), fraction));
    let mut n_copies = vec![0; data.n_rows()];
    for &row in &copies {
        n_copies[row] += 1;
    }
    let train = subset(data, train, &n_copies)?;
    let validation = subset(data, validation, &n_copies)?;
    train.check_fit().ok()?;
    Some((train, validation))
}

/// Number of rows before deduplication: a weight counts as that many rows, but every row as at
/// least one.
pub(crate) fn n_raw_rows(data: &Dataset) -> usize {
    let total: f64 = data.weights().map_or(0.0, |weights| weights.iter().sum());
    data.n_rows().max(total as usize)
}

/// The row indices to shuffle: each row once, or once per copy if there are few distinct rows.
fn copies_of(data: &Dataset) -> Vec<usize> {
    let n_rows = data.n_rows();
    let Some(weights) = data.weights().filter(|_| n_rows < MIN_ROWS_TO_SPLIT) else {
        return (0..n_rows).collect();
    };
    let n_times = |row: usize| (weights[row] as usize).clamp(1, MAX_COPIES);
    (0..n_rows)
        .flat_map(|row| std::iter::repeat_n(row, n_times(row)))
        .collect()
}

/// The dataset of the chosen copies; each copy has an equal share of the weight of its row.
fn subset(data: &Dataset, chosen: &[usize], n_copies: &[usize]) -> Option<Dataset> {
    let mut counts = vec![0_u32; n_copies.len()];
    for &row in chosen {
        counts[row] += 1;
    }
    let rows: Vec<usize> = (0..counts.len()).filter(|&row| counts[row] > 0).collect();
    let share =
        |weights: &[f64], row: usize| weights[row] * f64::from(counts[row]) / n_copies[row] as f64;
    let weights = data
        .weights()
        .map(|weights| rows.iter().map(|&row| share(weights, row)).collect());
    data.try_take(&rows).ok()?.with_weights(weights).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::dataset::Roles;
    use crate::data::table::Table;

    fn data(x: Vec<f64>) -> Dataset {
        let y = x.iter().map(|x| x * 2.0).collect();
        let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)]).unwrap();
        let roles = Roles {
            target: "y".to_owned(),
            ..Roles::default()
        };
        Dataset::from_table(&table, &roles).unwrap().deduplicated()
    }

    fn total(data: &Dataset) -> f64 {
        data.weights().unwrap().iter().sum()
    }

    #[test]
    fn every_row_is_on_one_side() {
        let whole = data((0..100).map(f64::from).collect());
        let (train, validation) = train_validation_split(&whole, 0.2, Key::from_seed(3)).unwrap();
        assert_eq!((train.n_rows(), validation.n_rows()), (80, 20));
        assert_eq!(n_validation_rows(100, 0.2), 20);
    }

    #[test]
    fn few_rows_are_not_split_unless_they_stand_for_many() {
        let few = data((0..30).map(f64::from).collect());
        assert!(train_validation_split(&few, 0.2, Key::from_seed(3)).is_none());
        assert_eq!(n_validation_rows(30, 0.2), 0);
        let repeated = data((0..300).map(|i| f64::from(i % 3)).collect());
        assert_eq!(repeated.n_rows(), 3);
        let (train, validation) =
            train_validation_split(&repeated, 0.2, Key::from_seed(3)).unwrap();
        assert!((total(&train) + total(&validation) - 300.0).abs() < 1e-9);
        assert!(train.n_rows() == 3 && validation.n_rows() > 0);
    }
}
