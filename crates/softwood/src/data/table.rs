//! A table: columns of equal length with unique names and no infinities.

use std::ops::Range;

use crate::data::column::{Column, Values};
use crate::error::{Error, Result};

/// Columns of equal length with unique names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    columns: Vec<Column>,
    n_rows: usize,
}

impl Table {
    /// A table of these columns.
    ///
    /// # Errors
    /// When names repeat, lengths differ, or a number is infinite.
    pub fn new(columns: Vec<Column>) -> Result<Self> {
        let n_rows = columns.first().map_or(0, Column::len);
        for (index, column) in columns.iter().enumerate() {
            if columns[..index]
                .iter()
                .any(|earlier| earlier.name == column.name)
            {
                return Err(Error::column(
                    &column.name,
                    "the name appears twice; every column needs a name of its own",
                ));
            }
            if column.len() != n_rows {
                let problem = format!("{} cells where the first column has {n_rows}", column.len());
                return Err(Error::column(&column.name, problem));
            }
            // a look without an early end first: it takes several cells at once
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
        }
        Ok(Self { columns, n_rows })
    }

    /// A table of columns made from another's, whose names nobody asks for.
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

    /// The column of this name.
    ///
    /// # Errors
    /// When there is none; the message lists the names there are.
    pub fn column(&self, name: &str) -> Result<&Column> {
        self.columns
            .iter()
            .find(|column| column.name == name)
            .ok_or_else(|| Error::column(name, self.absent(name)))
    }

    /// What to say of a name that no column has.
    fn absent(&self, name: &str) -> String {
        let said = format!("there is no such column; there are {}", self.some_names());
        let wanted = name.trim().to_lowercase();
        let near = self
            .names()
            .find(|near| near.trim().to_lowercase() == wanted);
        let n_numbers = self
            .names()
            .filter(|name| name.trim().parse::<f64>().is_ok());
        if let Some(near) = near {
            format!("{said}; did you mean `{near}`?")
        } else if 2 * n_numbers.count() > self.columns.len() {
            format!(
                "{said}; these look like cells: the first line must hold the names of the columns"
            )
        } else {
            said
        }
    }

    /// The first names, and whether there are more; blanks at the ends of a name are shown.
    pub(crate) fn some_names(&self) -> String {
        let shown = |name: &str| {
            if name.trim() == name {
                name.to_owned()
            } else {
                format!("`{name}`")
            }
        };
        let mut names: Vec<String> = self.names().take(20).map(shown).collect();
        if self.columns.len() > names.len() {
            names.push("...".to_owned());
        }
        names.join(", ")
    }

    /// The rows given, in that order.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Self {
        Self {
            columns: self
                .columns
                .iter()
                .map(|column| column.take(rows))
                .collect(),
            n_rows: rows.len(),
        }
    }

    /// The table without the named columns.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let columns = self
            .columns
            .iter()
            .filter(|column| !names.contains(&column.name.as_str()));
        Self {
            columns: columns.cloned().collect(),
            n_rows: self.n_rows,
        }
    }

    /// Puts a column of as many cells in the place of another.
    pub(crate) fn put(&mut self, at: usize, column: Column) {
        debug_assert_eq!(column.len(), self.n_rows);
        self.columns[at] = column;
    }

    /// All rows as a view.
    pub fn rows(&self, range: Range<usize>) -> Rows<'_> {
        Rows { table: self, range }
    }
}

/// A run of rows of a table whose columns stand in the order of a model's schema.
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    /// The table, aligned by [`crate::Schema::align`].
    pub table: &'a Table,
    /// Which of its rows.
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
