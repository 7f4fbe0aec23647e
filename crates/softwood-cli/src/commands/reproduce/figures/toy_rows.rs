//! Rows of toy problems: random numbers, datasets of a few numeric columns, and grids of one.

use softwood::{Column, Dataset, Key, Result, Roles, Table};

use crate::commands::demo::data::normal;

/// Name of the target column.
pub(super) const TARGET: &str = "y";

/// `n` standard Normal numbers.
pub(super) fn normals(key: Key, n: usize) -> Vec<f64> {
    let draws = key.uniforms(2 * n);
    draws
        .chunks_exact(2)
        .map(|pair| normal(pair[0], pair[1]))
        .collect()
}

/// `n` uniform numbers between two ends.
pub(super) fn uniforms(key: Key, n: usize, [from, to]: [f64; 2]) -> Vec<f64> {
    let draws = key.uniforms(n).into_iter();
    draws.map(|draw| from + (to - from) * draw).collect()
}

/// A table of one numeric column `x`.
pub(super) fn grid(xs: &[f64]) -> Result<Table> {
    Table::new(vec![Column::numeric("x", xs.to_vec())])
}

/// A dataset of features and a target column.
pub(super) fn dataset(features: Table, target: Column, classify: bool) -> Result<Dataset> {
    let roles = Roles {
        target: target.name.clone(),
        classify: Some(classify),
        ..Roles::default()
    };
    Dataset::from_table(features.with_column(target)?, &roles)
}

/// A regression of `y` on one column `x`.
pub(super) fn curve_dataset(xs: &[f64], ys: &[f64]) -> Result<Dataset> {
    dataset(grid(xs)?, Column::numeric(TARGET, ys.to_vec()), false)
}

/// Mean squared difference of two sequences.
pub(super) fn mean_squared_error(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>() / a.len().max(1) as f64
}
