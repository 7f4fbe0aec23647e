//! Rows set aside to choose and to stop by.

use crate::data::dataset::Dataset;
use crate::rng::{Key, shuffle};
use crate::variational::config::SoftTreeConfig;

/// Fewest rows of which a part is held out.
const MIN_ROWS_TO_SPLIT: usize = 40;
/// Most copies of one row that are set aside one by one.
const MAX_COPIES: usize = 64;

/// Splits off the held-out part; `None` where there are too few rows to spare any, or nothing to use it for.
pub(crate) fn set_aside(
    data: &Dataset,
    config: &SoftTreeConfig,
    key: Key,
) -> Option<(Dataset, Dataset)> {
    let n_rows = data.n_rows();
    let nothing_to_choose = !config.early_stopping
        && config.depth.is_some()
        && config.leaf_mixing.is_some()
        && config.scaling.is_some()
        && config.rotation.is_some()
        && config.squares.is_some();
    if n_raw_rows(data) < MIN_ROWS_TO_SPLIT || nothing_to_choose {
        return None;
    }
    let copies = copies_of(data);
    let mut order = copies.clone();
    shuffle(&mut key.rng(), &mut order);
    let n_spare = ((order.len() as f64 * config.validation_fraction).round() as usize)
        .clamp(1, order.len() - 1);
    let (spare, kept) = order.split_at(n_spare);
    let mut n_copies = vec![0; n_rows];
    for &row in &copies {
        n_copies[row] += 1;
    }
    let (train_rows, spare) = (part(data, kept, &n_copies)?, part(data, spare, &n_copies)?);
    train_rows.check_fit().ok()?;
    Some((train_rows, spare))
}

/// Rows before equal ones were merged: a weight counts as that many rows, but no row as less than one.
pub(crate) fn n_raw_rows(data: &Dataset) -> usize {
    let total: f64 = data.weights().map_or(0.0, |weights| weights.iter().sum());
    data.n_rows().max(total as usize)
}

/// What is shuffled to set rows aside: the rows, or where few differ each row as often as it was merged, for of a few
/// rows that stand for many none can be spared whole.
fn copies_of(data: &Dataset) -> Vec<usize> {
    let n_rows = data.n_rows();
    let Some(weights) = data.weights().filter(|_| n_rows < MIN_ROWS_TO_SPLIT) else {
        return (0..n_rows).collect();
    };
    let times = |row: usize| (weights[row] as usize).clamp(1, MAX_COPIES);
    (0..n_rows)
        .flat_map(|row| std::iter::repeat_n(row, times(row)))
        .collect()
}

/// The part of the data that some of its copies make up; each has an equal share of its row's weight.
fn part(data: &Dataset, chosen: &[usize], n_copies: &[usize]) -> Option<Dataset> {
    let mut counts = vec![0_u32; n_copies.len()];
    for &row in chosen {
        counts[row] += 1;
    }
    let rows: Vec<usize> = (0..counts.len()).filter(|&row| counts[row] > 0).collect();
    let part = data.take(&rows);
    let share =
        |(&row, weight): (&usize, &f64)| weight * f64::from(counts[row]) / n_copies[row] as f64;
    let weights = (part.weights()).map(|weights| rows.iter().zip(weights).map(share).collect());
    let (schema, features) = (part.schema().clone(), part.features().clone());
    Dataset::new(schema, features, part.target().clone(), weights).ok()
}
