//! Counts the cells of a text column by content, to reject a column in which a few cells differ
//! from the others.

use std::collections::BTreeSet;

use softwood::{Error, Result};

use crate::cell::{Cell, quote_cell};
use crate::formatted_number::is_formatted_number;

/// A column that is mostly numbers or dates is never categorical if it has more distinct ones than
/// this.
const MAX_NUMBER_CATEGORIES: usize = 20;

/// Position of a cell in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellPlace {
    /// Data row, counted from 1.
    pub row: usize,
    /// Line of the file, counted from 1.
    pub line: u64,
}

/// A cell and its position.
#[derive(Debug, Clone)]
pub(crate) struct PlacedCell {
    pub place: CellPlace,
    pub text: String,
}

impl PlacedCell {
    pub(crate) fn new(text: &str, place: CellPlace) -> Self {
        Self {
            place,
            text: text.to_owned(),
        }
    }

    /// The cell as messages name it: its text and its line.
    pub(crate) fn shown(&self) -> String {
        format!("{} (line {})", quote_cell(&self.text), self.place.line)
    }
}

/// Cells of one content.
#[derive(Debug, Default)]
struct ContentCount {
    n_cells: usize,
    /// Bits of the distinct values, up to one more than the limit.
    distinct: BTreeSet<u64>,
    first: Option<PlacedCell>,
}

/// Counts of cells by content; kept from the first cell on that differs from those before it.
#[derive(Debug, Default)]
pub(crate) struct CellCounts {
    numbers: ContentCount,
    dates: ContentCount,
    texts: ContentCount,
    /// Formatted numbers such as `$20`; they are counted as texts too.
    formatted: ContentCount,
    /// Distinct formatted numbers, up to one more than the limit.
    distinct_formatted: BTreeSet<String>,
}

impl ContentCount {
    fn add(&mut self, value: f64) {
        self.n_cells += 1;
        if self.distinct.len() <= MAX_NUMBER_CATEGORIES {
            self.distinct.insert(value.to_bits());
        }
    }

    fn record_first(&mut self, text: &str, place: CellPlace) {
        if self.first.is_none() {
            self.first = Some(PlacedCell::new(text, place));
        }
    }
}

impl CellCounts {
    /// Adds the values that came before the first cell that differs: all numbers or all dates.
    /// `first` is the first cell with a value.
    pub(crate) fn start(&mut self, values: &[f64], first: Option<(Cell, PlacedCell)>) {
        let Some((cell, first)) = first else { return };
        let count = match cell {
            Cell::Date(_) => &mut self.dates,
            _ => &mut self.numbers,
        };
        count.first = Some(first);
        for value in values.iter().filter(|value| !value.is_nan()) {
            count.add(*value);
        }
    }

    /// Counts a cell.
    pub(crate) fn add(&mut self, cell: Cell, text: &str, place: CellPlace) {
        let (count, value) = match cell {
            Cell::Missing => return,
            Cell::Number(value) => (&mut self.numbers, value),
            Cell::Date(value) => (&mut self.dates, value),
            Cell::Text => (&mut self.texts, 0.0),
        };
        count.add(value);
        count.record_first(text, place);
    }

    /// Counts a text that may be a formatted number.
    pub(crate) fn record_formatted(&mut self, text: &str, place: CellPlace) {
        if !is_formatted_number(text) {
            return;
        }
        self.formatted.n_cells += 1;
        self.formatted.record_first(text, place);
        if self.distinct_formatted.len() <= MAX_NUMBER_CATEGORIES {
            self.distinct_formatted.insert(text.to_owned());
        }
    }

    fn n_present(&self) -> usize {
        self.numbers.n_cells + self.dates.n_cells + self.texts.n_cells
    }

    /// Rejects a numeric column that contains formatted numbers or a few other cells, and a date
    /// column with a few other cells. A column counts as numeric (as dates) if at least 90% of its
    /// cells are numbers (dates) and many of those are distinct.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let are_most = |count: usize| count * 10 >= self.n_present() * 9;
        let n_distinct = self.numbers.distinct.len() + self.distinct_formatted.len();
        if let Some(formatted) = &self.formatted.first
            && are_most(self.numbers.n_cells + self.formatted.n_cells)
            && n_distinct > MAX_NUMBER_CATEGORIES
        {
            let problem = format!(
                "{} looks like a formatted number; write it as 1234.5, without currency signs or separators, or \
                 declare the column categorical (--categorical {name})",
                formatted.shown()
            );
            return Err(Error::cell(name, formatted.place.row, problem));
        }
        let texts = self.texts.first.as_ref();
        for (most, what, other) in [
            (&self.numbers, "number", self.dates.first.as_ref()),
            (&self.dates, "date", self.numbers.first.as_ref()),
        ] {
            let odd = texts.into_iter().chain(other);
            let Some(odd) = odd.min_by_key(|cell| cell.place.row) else {
                continue;
            };
            if are_most(most.n_cells) && most.distinct.len() > MAX_NUMBER_CATEGORIES {
                let problem = format!(
                    "{} is not a {what}, but {} of the column's {} cells are; leave the cell empty if it is \
                     missing, or declare the column categorical (--categorical {name})",
                    odd.shown(),
                    most.n_cells,
                    self.n_present()
                );
                return Err(Error::cell(name, odd.place.row, problem));
            }
        }
        Ok(())
    }
}
