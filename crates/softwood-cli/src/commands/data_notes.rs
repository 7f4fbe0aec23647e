//! Warnings about tables: columns that are probably not meant as features, targets that are probably
//! classes, and digits that are lost.

use std::collections::BTreeSet;

use softwood::Dataset;
use softwood::data::{FieldKind, Target, Values};
use softwood_io::InexactInteger;

/// Tables with fewer rows are not checked for columns with many distinct values.
const MIN_ROWS: usize = 20;
/// A target of at most this many integers is probably a class, ...
const MAX_CLASSES: usize = 10;
/// ... if each has at least this many rows on average.
const MIN_ROWS_PER_CLASS: usize = 10;

/// A note for each index column of a pandas frame that is not used as a feature.
pub(crate) fn on_index(left_out: &[String]) -> Vec<String> {
    let note = |name: &String| {
        format!(
            "column `{name}` is the index of a pandas frame and was left out; to use it as a feature, declare it \
             (--numeric {name} or --categorical {name})"
        )
    };
    left_out.iter().map(note).collect()
}

/// A note for each used column with an integer that loses digits.
pub(crate) fn on_inexact(inexact: &[InexactInteger], data: &Dataset) -> Vec<String> {
    let names: BTreeSet<&str> = data.features().names().collect();
    let is_used = |name: &str| name == data.schema().target || names.contains(name);
    let note = |found: &InexactInteger| {
        format!(
            "column `{0}`, row {1}: {2} loses its last digits, because numbers are 64-bit floats, exact up to 2^53; \
             if it is an identifier, leave it out (--ignore {0}) or declare it categorical (--categorical {0})",
            found.column, found.row, found.text
        )
    };
    let used = inexact.iter().filter(|found| is_used(&found.column));
    used.map(note).collect()
}

/// A note on a numeric target that is probably a class; none if the user has chosen the task.
pub(crate) fn on_target(data: &Dataset, is_task_given: bool) -> Option<String> {
    let Target::Numeric(values) = data.target() else {
        return None;
    };
    if is_task_given {
        return None;
    }
    let mut distinct = BTreeSet::new();
    for value in values {
        // adding zero makes -0 and 0 equal
        distinct.insert((value + 0.0).to_bits());
        if distinct.len() > MAX_CLASSES {
            return None;
        }
    }
    let mut found: Vec<f64> = distinct.into_iter().map(f64::from_bits).collect();
    found.sort_by(f64::total_cmp);
    let what = match found[..] {
        [low, high] => format!("only the two values {low} and {high}"),
        [low, .., high]
            if found.iter().all(|value| value.fract() == 0.0)
                && values.len() >= MIN_ROWS_PER_CLASS * found.len() =>
        {
            format!(
                "only {} distinct integers, from {low} to {high}",
                found.len()
            )
        }
        _ => return None,
    };
    Some(format!(
        "the target `{}` has {what}, and this is a regression; if these are classes, use --task classification \
         (--task regression omits this note)",
        data.schema().target
    ))
}

/// One note for each feature column that looks like identifiers or unreadable dates.
/// `date_columns` are numbers that were dates in the file.
pub(crate) fn on_features(data: &Dataset, date_columns: &[String]) -> Vec<String> {
    let fields = data.schema().fields.iter().zip(data.features().columns());
    let note = |(field, column): (&softwood::data::Field, &softwood::Column)| {
        let name = &field.name;
        match (&field.kind, &column.values) {
            (FieldKind::Categorical { levels }, _) => {
                let what = suspicion(levels, data.n_rows())?;
                Some(format!(
                    "column `{name}` {what}; if this is not intended, convert it to numbers or leave it out (--ignore {name})"
                ))
            }
            (_, Values::Numeric(values)) if !date_columns.contains(name) => {
                let what = row_count(values)?;
                Some(format!(
                    "column `{name}` {what}; if it only numbers the rows, leave it out (--ignore {name})"
                ))
            }
            _ => None,
        }
    };
    fields.filter_map(note).collect()
}

/// Why a categorical column is probably not meant as one, if so.
fn suspicion(levels: &[String], n_rows: usize) -> Option<String> {
    if !levels.is_empty() && levels.iter().all(|level| is_date(level)) {
        let what = "contains dates as text, each treated as a category; declare the column numeric \
            (--numeric) if all are written as 2024-01-31";
        return Some(what.to_owned());
    }
    let has_many_levels = n_rows >= MIN_ROWS && 2 * levels.len() > n_rows;
    has_many_levels.then(|| {
        format!(
            "has {} distinct texts in {n_rows} rows, each treated as a category",
            levels.len()
        )
    })
}

/// How a numeric column numbers the rows, if it does: integers, another one in every row, that
/// are consecutive or in order.
fn row_count(values: &[f64]) -> Option<String> {
    let is_integer = |value: &f64| value.fract() == 0.0;
    let (&first, &last) = (values.first()?, values.last()?);
    if values.len() < MIN_ROWS || !values.iter().all(is_integer) {
        return None;
    }
    let ascends = values.windows(2).all(|pair| pair[0] < pair[1]);
    let descends = values.windows(2).all(|pair| pair[0] > pair[1]);
    let span = values.len() as f64 - 1.0;
    let is = |a: f64, b: f64| (a - b).abs() < 0.5;
    if (ascends || descends) && is((last - first).abs(), span) {
        return Some(format!("counts the rows, from {first} to {last}"));
    }
    if ascends || descends {
        let order = if ascends { "ascending" } else { "descending" };
        return Some(format!(
            "has another integer in every row, in {order} order"
        ));
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let is_permutation = is(high - low, span) && sorted.windows(2).all(|pair| pair[0] < pair[1]);
    is_permutation.then(|| format!("has each integer from {low} to {high} in one row"))
}

/// Whether a text begins with a date such as `2024-01-31`, `31.01.2024` or `1/31/2024`.
fn is_date(text: &str) -> bool {
    let day = text.trim().split([' ', 'T']).next().unwrap_or_default();
    ['-', '/', '.'].into_iter().any(|mark| {
        let parts: Vec<&str> = day.split(mark).collect();
        let is_number = |part: &&str| {
            (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let has_year = [0, 2]
            .iter()
            .any(|&at| parts.get(at).is_some_and(|part| part.len() == 4));
        parts.len() == 3 && has_year && parts.iter().all(is_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_recognised() {
        for text in [
            "2024-01-31",
            "31.1.2024",
            "1/31/2024 12:30",
            "2024-01-31T10:00:00Z",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in ["", "1.2.3", "2024", "10-20-30", "a-b-2024", "192.168.0.1"] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn columns_that_number_the_rows_are_recognised() {
        let n = 30;
        let counting = |value: fn(usize) -> f64| row_count(&(0..n).map(value).collect::<Vec<_>>());
        for (found, part) in [
            (counting(|at| at as f64), "from 0 to 29"),
            (counting(|at| 30.0 - at as f64), "from 30 to 1"),
            (
                counting(|at| 1000.0 + (at * at) as f64 + at as f64),
                "ascending",
            ),
            (
                counting(|at| (at * 7 % 30) as f64),
                "from 0 to 29 in one row",
            ),
        ] {
            assert!(
                found.as_ref().is_some_and(|text| text.contains(part)),
                "{found:?}"
            );
        }
        for found in [
            counting(|at| (at / 2) as f64),
            counting(|at| at as f64 * 0.5),
            counting(|at| if at == 3 { f64::NAN } else { at as f64 }),
            counting(|at| (at * 7 % 30) as f64 * 2.0),
            row_count(&[1.0, 2.0, 3.0]),
        ] {
            assert_eq!(found, None);
        }
    }
}
