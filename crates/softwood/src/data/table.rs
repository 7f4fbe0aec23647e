//! A table: columns of equal length with unique names and without infinite numbers.

use std::borrow::Cow;
use std::ops::Range;

use crate::data::column::{Column, Values};
use crate::error::{Error, Result};
use crate::stop;
use crate::suggestion::{did_you_mean, similar_name};

/// Columns of equal length with unique names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    columns: Vec<Column>,
    n_rows: usize,
}

impl Table {
    /// A table of the given columns.
    ///
    /// # Errors
    /// When names repeat, lengths differ, or a number is infinite.
    pub fn new(columns: Vec<Column>) -> Result<Self> {
        let n_rows = columns.first().map_or(0, Column::len);
        let repeated = ColumnIndex::of(&columns).first_repeated();
        for (index, column) in columns.iter().enumerate() {
            if repeated == Some(index) {
                return Err(Error::column(
                    &column.name,
                    "the name appears twice; every column needs a name of its own",
                ));
            }
            if column.len() != n_rows {
                let problem = format!("{} cells where the first column has {n_rows}", column.len());
                return Err(Error::column(&column.name, problem));
            }
            check_finite(column)?;
        }
        Ok(Self { columns, n_rows })
    }

    /// A table of columns derived from another table, without the checks of [`Table::new`]; names
    /// may be empty.
    pub(crate) fn derived(columns: Vec<Column>, n_rows: usize) -> Self {
        Self { columns, n_rows }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Looks up several columns; [`Table::column`] searches all columns for each name.
    pub(crate) fn index(&self) -> ColumnIndex<'_> {
        ColumnIndex::of(&self.columns)
    }

    /// The column with this name.
    ///
    /// # Errors
    /// When there is no such column; the message lists the column names.
    pub fn column(&self, name: &str) -> Result<&Column> {
        self.columns
            .iter()
            .find(|column| column.name == name)
            .ok_or_else(|| Error::column(name, self.absent(name)))
    }

    /// Error message for a column name that does not exist.
    fn absent(&self, name: &str) -> String {
        let message = format!("there is no such column; there are {}", self.some_names());
        let similar = similar_name(name, self.names());
        let n_numeric_names = self
            .names()
            .filter(|name| name.trim().parse::<f64>().is_ok());
        if similar.is_some() {
            message + &did_you_mean(similar)
        } else if 2 * n_numeric_names.count() > self.columns.len() {
            format!(
                "{message}; these look like cells: the first line must hold the names of the columns"
            )
        } else {
            message
        }
    }

    /// The first column names, with an ellipsis where there are more. Names with leading or
    /// trailing blanks are shown in backticks.
    pub(crate) fn some_names(&self) -> String {
        let quoted_if_padded = |name: &str| {
            if name.trim() == name {
                name.to_owned()
            } else {
                format!("`{name}`")
            }
        };
        let mut names: Vec<String> = self.names().take(20).map(quoted_if_padded).collect();
        if self.columns.len() > names.len() {
            names.push("...".to_owned());
        }
        names.join(", ")
    }

    /// The given rows, in that order.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Self {
        let columns = self.columns.iter().map(|column| column.take(rows));
        Self::derived(columns.collect(), rows.len())
    }

    /// As [`Table::take`], but checks at every column whether the work is cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it is.
    pub(crate) fn try_take(&self, rows: &[usize]) -> Result<Self> {
        let columns = self.columns.iter().map(|column| {
            stop::check()?;
            Ok(column.take(rows))
        });
        Ok(Self::derived(columns.collect::<Result<_>>()?, rows.len()))
    }

    /// The table without the named columns.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let mut names = names.to_vec();
        names.sort_unstable();
        let columns = self
            .columns
            .iter()
            .filter(|column| names.binary_search(&column.name.as_str()).is_err());
        Self {
            columns: columns.cloned().collect(),
            n_rows: self.n_rows,
        }
    }

    /// The table with one more column, or with the column of the same name replaced.
    ///
    /// # Errors
    /// When the length of the column is not the number of rows, or a number is infinite.
    pub fn with_column(mut self, column: Column) -> Result<Self> {
        if self.columns.is_empty() {
            return Self::new(vec![column]);
        }
        if column.len() != self.n_rows {
            let problem = format!("{} cells for a table of {} rows", column.len(), self.n_rows);
            return Err(Error::column(&column.name, problem));
        }
        check_finite(&column)?;
        match self.columns.iter_mut().find(|old| old.name == column.name) {
            Some(old) => *old = column,
            None => self.columns.push(column),
        }
        Ok(self)
    }

    /// The columns, in order, by value.
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// Appends `n_rows` rows: a column of the same kind for each column.
    pub(crate) fn append<'a>(&mut self, columns: impl Iterator<Item = &'a Column>, n_rows: usize) {
        for (column, other) in self.columns.iter_mut().zip(columns) {
            column.append(other);
        }
        self.n_rows += n_rows;
    }

    /// Replaces a column by another one of the same length.
    pub(crate) fn replace_column(&mut self, index: usize, column: Column) {
        debug_assert_eq!(column.len(), self.n_rows);
        self.columns[index] = column;
    }

    /// A view of a range of rows.
    pub fn rows(&self, range: Range<usize>) -> Rows<'_> {
        Rows { table: self, range }
    }
}

/// Positions of columns by name, for binary searches.
#[derive(Debug)]
pub(crate) struct ColumnIndex<'a> {
    /// Names and positions, sorted.
    order: Vec<(&'a str, usize)>,
}

impl<'a> ColumnIndex<'a> {
    fn of(columns: &'a [Column]) -> Self {
        let names = columns.iter().map(|column| column.name.as_str());
        let mut order: Vec<(&str, usize)> = names.zip(0..).collect();
        order.sort_unstable();
        Self { order }
    }

    /// The position of the column with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let at = self.order.partition_point(|&(other, _)| other < name);
        let &(found, position) = self.order.get(at)?;
        (found == name).then_some(position)
    }

    /// The first column that has the name of an earlier one.
    fn first_repeated(&self) -> Option<usize> {
        let pairs = self.order.windows(2);
        pairs
            .filter(|pair| pair[0].0 == pair[1].0)
            .map(|pair| pair[1].1)
            .min()
    }
}

/// Returns an error if a number is infinite.
fn check_finite(column: &Column) -> Result<()> {
    // a pass without early exit comes first, because it vectorises
    if let Values::Numeric(values) = &column.values
        && values
            .iter()
            .fold(false, |any, value| any | value.is_infinite())
        && let Some(row) = values.iter().position(|value| value.is_infinite())
    {
        let problem = format!(
            "{} is not a finite number; leave the cell empty if it is missing",
            values[row]
        );
        return Err(Error::cell(&column.name, row + 1, problem));
    }
    Ok(())
}

impl From<Table> for Cow<'_, Table> {
    fn from(table: Table) -> Self {
        Cow::Owned(table)
    }
}

impl<'a> From<&'a Table> for Cow<'a, Table> {
    fn from(table: &'a Table) -> Self {
        Cow::Borrowed(table)
    }
}

/// A contiguous range of rows of a table whose columns are in the order of a model's schema.
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    /// The table, aligned by [`crate::data::Schema::align`].
    pub table: &'a Table,
    /// The rows in view.
    pub range: Range<usize>,
}

impl Rows<'_> {
    /// Number of rows in view.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether no row is in view.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::schema::{Schema, Task};
    use crate::stop::{CancelToken, cancellable};

    #[test]
    fn the_first_repeated_name_is_reported_and_columns_are_found_by_name() {
        let named = |names: &[&str]| {
            let columns = names.iter().map(|&name| Column::numeric(name, vec![1.0]));
            Table::new(columns.collect())
        };
        let message = named(&["c", "a", "b", "b", "a"]).unwrap_err().to_string();
        assert!(message.contains("`b`"), "{message}");
        let table = named(&["c", "a", "b"]).unwrap();
        let index = table.index();
        let found = ["a", "b", "c", "", "d"].map(|name| index.find(name));
        assert_eq!(found, [Some(1), Some(2), Some(0), None, None]);
        let without = table.without(&["c", "x", "a"]);
        assert_eq!(without.names().collect::<Vec<_>>(), ["b"]);
    }

    /// Comparing every name with every other would take 4 * 10^10 comparisons.
    #[test]
    fn a_table_of_many_columns_is_checked_and_aligned() {
        let column = |at: usize| Column::numeric(format!("a rather long name {at}"), vec![1.0]);
        let table = Table::new((0..200_000).map(column).collect()).unwrap();
        let schema = Schema::of(&table, "y", Task::Regression);
        let reversed = Table::new((0..200_000).rev().map(column).collect()).unwrap();
        assert!(!schema.is_aligned(&reversed));
        assert!(schema.is_aligned(&schema.align(&reversed).unwrap()));
    }

    #[test]
    fn a_column_is_added_or_replaces_that_of_its_name() {
        let table = Table::default();
        let table = table.with_column(Column::numeric("a", vec![1.0, 2.0]));
        let b = Column::categorical("b", &[Some("x"), None]);
        let table = table.unwrap().with_column(b.clone()).unwrap();
        let again = Column::numeric("a", vec![3.0, f64::INFINITY.recip()]);
        let replaced = table.clone().with_column(again.clone()).unwrap();
        assert_eq!(replaced, Table::new(vec![again, b]).unwrap());
        for (column, expected) in [
            (
                Column::numeric("c", vec![1.0]),
                "`c`: 1 cells for a table of 2 rows",
            ),
            (Column::numeric("a", vec![1.0, f64::INFINITY]), "`a`, row 2"),
        ] {
            let message = table.clone().with_column(column).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
    #[test]
    fn rows_that_cancelled_work_takes_are_right_or_an_error() {
        let table = Table::new(vec![
            Column::numeric("a", vec![1.0, 2.0]),
            Column::categorical("b", &[Some("x"), Some("y")]),
        ]);
        let table = table.unwrap();
        let expected = table.take(&[1, 0]);
        assert_eq!(table.try_take(&[1, 0]).unwrap(), expected);
        for n in [1, 2] {
            let token = CancelToken::at_check(n);
            let result = cancellable(vec![token.clone()], || {
                assert!(matches!(table.try_take(&[1, 0]), Err(Error::Cancelled)));
                assert_eq!(table.take(&[1, 0]), expected);
                Ok(())
            });
            assert!(result.is_err());
            assert_eq!(token.n_checks(), n);
        }
    }
}
