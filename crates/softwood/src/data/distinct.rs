//! The distinct rows of a dataset in an order that does not depend on how they came, without copying the table.

use crate::data::column::{Column, Values};
use crate::data::dataset::{Dataset, Target};
use crate::rng::{hash_text, mix};

/// Rows that stand for all: one of each set of equal rows, with the sum of their weights; rows of weight zero are left out.
///
/// The order is that of a hash of the cells, so any leading part is a random sample, and neither the order of rows nor that
/// of columns matters, nor whether a row is repeated or weighted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distinct {
    /// Row numbers of the dataset.
    pub(crate) rows: Vec<u32>,
    /// Their weights.
    pub(crate) weights: Vec<f64>,
}

impl Distinct {
    pub(crate) fn of(data: &Dataset) -> Self {
        let hashes = hashes(data);
        let weight = |row: u32| data.weights().map_or(1.0, |weights| weights[row as usize]);
        let mut order: Vec<(u64, u32)> = hashes
            .into_iter()
            .zip(0..)
            .filter(|&(_, row)| weight(row) > 0.0)
            .collect();
        order.sort_unstable();
        let mut distinct = Self {
            rows: Vec::with_capacity(order.len()),
            weights: Vec::with_capacity(order.len()),
        };
        for run in order.chunk_by(|a, b| a.0 == b.0) {
            distinct.push(data, run, weight);
        }
        distinct
    }

    /// Rows of one hash: nearly always equal, and told apart where they are not.
    fn push(&mut self, data: &Dataset, run: &[(u64, u32)], weight: impl Fn(u32) -> f64) {
        let mut rows: Vec<u32> = run.iter().map(|&(_, row)| row).collect();
        rows.sort_by(|&a, &b| {
            data.compare(a as usize, b as usize)
                .then(weight(a).total_cmp(&weight(b)))
        });
        for equal in rows.chunk_by(|&a, &b| data.compare(a as usize, b as usize).is_eq()) {
            self.rows.push(equal[0]);
            self.weights
                .push(equal.iter().map(|&row| weight(row)).sum());
        }
    }
}

/// One hash per row of its features and target.
fn hashes(data: &Dataset) -> Vec<u64> {
    let mut hashes: Vec<u64> = match data.target() {
        Target::Numeric(values) => values.iter().map(|&value| of_number(1, value)).collect(),
        Target::Classes(codes) => codes.iter().map(|&code| mix(u64::from(code) ^ 1)).collect(),
    };
    for column in data.features().columns() {
        add_column(column, &mut hashes);
    }
    hashes
}

/// Adds a hash of name and cell to each row; sums do not depend on the order of columns.
fn add_column(column: &Column, hashes: &mut [u64]) {
    let name = hash_text(&column.name);
    match &column.values {
        Values::Numeric(values) => {
            for (hash, &value) in hashes.iter_mut().zip(values) {
                *hash = hash.wrapping_add(of_number(name, value));
            }
        }
        Values::Categorical { codes, levels } => {
            let of_level: Vec<u64> = levels
                .iter()
                .map(|level| mix(name ^ hash_text(level)))
                .collect();
            for (hash, &code) in hashes.iter_mut().zip(codes) {
                let level = of_level.get(code as usize).copied();
                *hash = hash.wrapping_add(level.unwrap_or_else(|| mix(name ^ u64::from(code))));
            }
        }
    }
}

fn of_number(salt: u64, value: f64) -> u64 {
    mix(salt ^ value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dataset::Roles;
    use crate::data::table::Table;

    fn data(columns: Vec<Column>, weight: Option<&str>) -> Dataset {
        let roles = Roles {
            target: "y".to_owned(),
            weight: weight.map(str::to_owned),
            ..Roles::default()
        };
        Dataset::from_table(&Table::new(columns).unwrap(), &roles).unwrap()
    }

    #[test]
    fn repeated_rows_weigh_their_sum_and_order_does_not_matter() {
        let a = vec![1.0, 2.0, 1.0, 3.0, 2.0, 1.0];
        let y = vec![5.0, 6.0, 5.0, 7.0, 8.0, 5.0];
        let found = Distinct::of(&data(
            vec![
                Column::numeric("a", a.clone()),
                Column::numeric("y", y.clone()),
            ],
            None,
        ));
        assert_eq!(found.rows.len(), 4);
        assert_eq!(found.weights.iter().sum::<f64>(), 6.0);
        let weighted = data(
            vec![
                Column::numeric("y", vec![8.0, 7.0, 6.0, 5.0, 0.0]),
                Column::numeric("w", vec![1.0, 1.0, 1.0, 3.0, 0.0]),
                Column::numeric("a", vec![2.0, 3.0, 2.0, 1.0, 0.0]),
            ],
            Some("w"),
        );
        let again = Distinct::of(&weighted);
        assert_eq!(again.weights, found.weights);
        let Target::Numeric(theirs) = weighted.target() else {
            panic!("numbers expected")
        };
        for (&ours, &other) in found.rows.iter().zip(&again.rows) {
            assert_eq!(y[ours as usize].to_bits(), theirs[other as usize].to_bits());
        }
    }
}
