//! Splits from a table with one row for each row of the data. The column names tell the form of the
//! table:
//!
//! - `perm_0`, `perm_1`, ...: each a permutation of all row indices, training rows first. Such a
//!   file does not hold the number of training rows, unless a column `n_train` does. Published
//!   files have 90% of the rows, rounded, if there are several permutations, and 80% if there is
//!   one; if the permutation is a concatenation of ascending runs (one fold after the other),
//!   training ends with the run that ends nearest to 80%.
//! - `fold`: the rows of each number are the test rows once, in the order of the numbers.
//! - `test`, `half_1`, `half_2`, ...: `test` marks the test rows, the others are 0 or 1 in each
//!   half; one half is for training and the other for validation, then the other way round.
//! - `test` alone marks the test rows.

use std::collections::BTreeMap;

use crate::data::column::{Column, Values};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::evaluate::protocol::Split;

/// A permutation with more ascending runs than this is random, not a concatenation of folds.
const MAX_RUNS: usize = 32;

/// Reads the splits from a table.
///
/// # Errors
/// When the form is unknown, the number of rows differs, or a cell has an invalid value.
pub(crate) fn splits(table: &Table, n_rows: usize) -> Result<Vec<Split>> {
    if table.n_rows() != n_rows {
        return Err(Error::Table(format!(
            "the splits have {} rows and the data {n_rows}; they must have the same",
            table.n_rows()
        )));
    }
    let permutations = columns(table, "perm_");
    let halves = columns(table, "half_");
    let has = |name: &str| table.names().any(|found| found == name);
    if !permutations.is_empty() {
        let n_train = read_n_train(table)?;
        let several = permutations.len() > 1;
        permutations
            .iter()
            .map(|column| by_permutation(column, n_train, several))
            .collect()
    } else if has("fold") {
        by_fold(table.column("fold")?)
    } else if has("test") && !halves.is_empty() {
        by_halves(table.column("test")?, &halves)
    } else if has("test") {
        let is_test = whole_numbers(table.column("test")?)?;
        Ok(vec![Split {
            train: rows_where(&is_test, 0),
            held_out: Vec::new(),
            test: rows_where(&is_test, 1),
        }])
    } else {
        Err(Error::Table(
            "the column names match no form of splits; expected perm_0, perm_1, ..., or fold, or \
             test, or test with half_1, half_2, ..."
                .to_owned(),
        ))
    }
}

/// Columns whose name is `prefix` followed by a number, in the order of the numbers.
fn columns<'a>(table: &'a Table, prefix: &str) -> Vec<&'a Column> {
    let numbered = |column: &'a Column| {
        let number = column.name.strip_prefix(prefix)?.parse::<u64>().ok()?;
        Some((number, column))
    };
    let mut found: Vec<_> = table.columns().iter().filter_map(numbered).collect();
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, column)| column).collect()
}

fn read_n_train(table: &Table) -> Result<Option<usize>> {
    let Some(column) = table
        .columns()
        .iter()
        .find(|column| column.name == "n_train")
    else {
        return Ok(None);
    };
    let found = whole_numbers(column)?.first().copied().unwrap_or(0);
    match usize::try_from(found) {
        Ok(n_train) if n_train < table.n_rows() => Ok(Some(n_train)),
        _ => Err(Error::cell(
            "n_train",
            1,
            format!("{found}: expected fewer training rows than there are rows"),
        )),
    }
}

fn by_permutation(column: &Column, n_train: Option<usize>, several: bool) -> Result<Split> {
    let numbers = whole_numbers(column)?;
    let n_rows = numbers.len();
    let mut seen = vec![false; n_rows];
    let mut permutation = Vec::with_capacity(n_rows);
    for (at, &number) in numbers.iter().enumerate() {
        let row = usize::try_from(number)
            .ok()
            .filter(|&row| row < n_rows && !seen[row])
            .ok_or_else(|| {
                let problem = format!(
                    "{number}: expected every row number from 0 to {} once",
                    n_rows - 1
                );
                Error::cell(&column.name, at + 1, problem)
            })?;
        seen[row] = true;
        permutation.push(row);
    }
    let n_train = n_train.unwrap_or_else(|| infer_n_train(&permutation, several));
    let test = permutation.split_off(n_train);
    Ok(Split {
        train: permutation,
        held_out: Vec::new(),
        test,
    })
}

fn infer_n_train(permutation: &[usize], several: bool) -> usize {
    let count = |share: f64| (share * permutation.len() as f64).round() as usize;
    if several {
        return count(0.9);
    }
    let ends: Vec<usize> = (1..permutation.len())
        .filter(|&at| permutation[at] < permutation[at - 1])
        .collect();
    if ends.len() >= MAX_RUNS {
        return count(0.8);
    }
    ends.into_iter()
        .min_by_key(|end| end.abs_diff(count(0.8)))
        .unwrap_or(count(0.8))
}

fn by_fold(column: &Column) -> Result<Vec<Split>> {
    let numbers = whole_numbers(column)?;
    let mut folds: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (row, &fold) in numbers.iter().enumerate() {
        folds.entry(fold).or_default().push(row);
    }
    let splits = folds.into_iter().map(|(fold, test)| Split {
        train: (0..numbers.len())
            .filter(|&row| numbers[row] != fold)
            .collect(),
        held_out: Vec::new(),
        test,
    });
    Ok(splits.collect())
}

fn by_halves(test: &Column, halves: &[&Column]) -> Result<Vec<Split>> {
    let is_test = whole_numbers(test)?;
    let test = rows_where(&is_test, 1);
    let mut splits = Vec::with_capacity(2 * halves.len());
    for column in halves {
        let half = whole_numbers(column)?;
        let is_invalid = |row: &usize| (half[*row] == 0 || half[*row] == 1) == (is_test[*row] == 1);
        if let Some(row) = (0..half.len()).find(is_invalid) {
            let problem = format!("{}: expected 0 or 1, and -1 for test rows", half[row]);
            return Err(Error::cell(&column.name, row + 1, problem));
        }
        for (train, held_out) in [(0, 1), (1, 0)] {
            splits.push(Split {
                train: rows_where(&half, train),
                held_out: rows_where(&half, held_out),
                test: test.clone(),
            });
        }
    }
    Ok(splits)
}

fn rows_where(numbers: &[i64], value: i64) -> Vec<usize> {
    (0..numbers.len())
        .filter(|&row| numbers[row] == value)
        .collect()
}

/// The cells as integers; `false` is 0 and `true` is 1, in any spelling of the table format.
fn whole_numbers(column: &Column) -> Result<Vec<i64>> {
    let cell = |row: usize| match &column.values {
        Values::Numeric(values) => whole(values[row]),
        Values::Categorical { codes, levels } => {
            let text = levels.get(codes[row] as usize)?;
            match text.to_ascii_lowercase().as_str() {
                "true" => Some(1),
                "false" => Some(0),
                number => whole(number.parse().ok()?),
            }
        }
    };
    (0..column.len())
        .map(|row| {
            cell(row).ok_or_else(|| Error::cell(&column.name, row + 1, "expected a whole number"))
        })
        .collect()
}

fn whole(number: f64) -> Option<i64> {
    (number.fract().abs() <= 0.0 && number.abs() < 1e15).then_some(number as i64)
}
