//! Builds one column of a text file cell by cell and decides whether it is numeric or categorical.

use std::collections::BTreeSet;

use softwood::{Column, Error, Result};

use crate::category_builder::CategoryBuilder;
use crate::cell::{Cell, category, is_missing, parse_cell, quote_cell};
use crate::formatted_number::is_formatted_number;
use crate::options::KindRule;

/// A column that is mostly numbers is never categorical if it has more distinct numbers than this.
const MAX_NUMBER_CATEGORIES: usize = 20;

/// Position of a cell in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellPlace {
    /// Data row, counted from 1.
    pub row: usize,
    /// Line of the file, counted from 1.
    pub line: u64,
}

/// A column that is being read.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    name: String,
    rule: KindRule,
    cells: BuilderCells,
    counts: CellCounts,
}

/// The cells read so far.
#[derive(Debug)]
enum BuilderCells {
    /// No text so far: numbers, NaN where missing.
    Numbers(Vec<f64>),
    /// Categories; the first text came before any number.
    Categories(CategoryBuilder),
    /// Text came after numbers whose spelling was not kept: from here on cells are only counted.
    Discarded,
}

/// Counts of cells by content; kept from the first text cell on.
#[derive(Debug, Default)]
struct CellCounts {
    /// Cells that are not missing.
    n_present: usize,
    n_numbers: usize,
    /// Formatted numbers such as `$20`.
    n_formatted: usize,
    /// Bits of the distinct numbers, up to one more than the limit.
    distinct_numbers: BTreeSet<u64>,
    /// Distinct formatted numbers, up to one more than the limit.
    distinct_formatted: BTreeSet<String>,
    first_text: Option<(CellPlace, String)>,
    first_formatted: Option<(CellPlace, String)>,
}

/// The result of reading a column once.
#[derive(Debug)]
pub(crate) enum ColumnOutcome {
    /// The finished column.
    Complete(Column),
    /// The column of this name is categorical, and its texts have to be read a second time.
    ReadAsCategories(String),
}

impl ColumnBuilder {
    /// A column without any cells.
    pub(crate) fn new(name: &str, rule: KindRule) -> Self {
        let cells = match rule {
            KindRule::Categorical => BuilderCells::Categories(CategoryBuilder::default()),
            _ => BuilderCells::Numbers(Vec::new()),
        };
        Self {
            name: name.to_owned(),
            rule,
            cells,
            counts: CellCounts::default(),
        }
    }

    /// The column's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Appends a cell.
    pub(crate) fn push(&mut self, text: &str, place: CellPlace) -> Result<()> {
        if self.rule == KindRule::Categorical {
            self.push_category(text);
            return Ok(());
        }
        let cell = parse_cell(text);
        if let BuilderCells::Numbers(numbers) = &mut self.cells {
            match cell {
                Cell::Number(number) => numbers.push(number),
                Cell::Missing => numbers.push(f64::NAN),
                Cell::Text => return self.push_first_text(text, place),
            }
            return Ok(());
        }
        self.counts.add(cell);
        self.record_formatted(cell, text, place);
        self.push_category(text);
        Ok(())
    }

    fn record_formatted(&mut self, cell: Cell, text: &str, place: CellPlace) {
        if self.rule == KindRule::Infer && cell == Cell::Text {
            self.counts.record_formatted(text, place);
        }
    }

    fn push_category(&mut self, text: &str) {
        if let BuilderCells::Categories(categories) = &mut self.cells {
            categories.push(Some(text).filter(|text| !is_missing(text)).map(category));
        }
    }

    /// Handles the first text cell of a column that had only numbers and missing cells so far.
    fn push_first_text(&mut self, text: &str, place: CellPlace) -> Result<()> {
        if let Some(advice) = self.rule.text_advice() {
            let problem = format!(
                "{} (line {}) is not a number; leave the cell empty if it is missing{advice}",
                quote_cell(text),
                place.line
            );
            return Err(Error::cell(&self.name, place.row, problem));
        }
        let BuilderCells::Numbers(numbers) =
            std::mem::replace(&mut self.cells, BuilderCells::Discarded)
        else {
            return Ok(());
        };
        for &number in numbers.iter().filter(|number| !number.is_nan()) {
            self.counts.add(Cell::Number(number));
        }
        if self.counts.n_numbers == 0 {
            self.cells = BuilderCells::Categories(CategoryBuilder::with_missing(numbers.len()));
        }
        self.counts.add(Cell::Text);
        self.counts.first_text = Some((place, text.to_owned()));
        self.record_formatted(Cell::Text, text, place);
        self.push_category(text);
        Ok(())
    }

    /// Decides whether the column is numeric or categorical.
    pub(crate) fn finish(self) -> Result<ColumnOutcome> {
        if self.rule == KindRule::Infer {
            self.counts.check(&self.name)?;
        }
        let lenient = self.rule == KindRule::Lenient;
        Ok(match self.cells {
            BuilderCells::Numbers(numbers)
                if lenient && numbers.iter().any(|n| n.is_infinite()) =>
            {
                ColumnOutcome::ReadAsCategories(self.name)
            }
            BuilderCells::Numbers(numbers) => {
                ColumnOutcome::Complete(Column::numeric(self.name, numbers))
            }
            BuilderCells::Categories(categories) => ColumnOutcome::Complete(Column {
                name: self.name,
                values: categories.finish(),
            }),
            BuilderCells::Discarded => ColumnOutcome::ReadAsCategories(self.name),
        })
    }
}

impl CellCounts {
    fn add(&mut self, cell: Cell) {
        match cell {
            Cell::Missing => return,
            Cell::Text => {}
            Cell::Number(number) => {
                self.n_numbers += 1;
                if self.distinct_numbers.len() <= MAX_NUMBER_CATEGORIES {
                    self.distinct_numbers.insert(number.to_bits());
                }
            }
        }
        self.n_present += 1;
    }

    fn record_formatted(&mut self, text: &str, place: CellPlace) {
        if !is_formatted_number(text) {
            return;
        }
        self.n_formatted += 1;
        if self.distinct_formatted.len() <= MAX_NUMBER_CATEGORIES {
            self.distinct_formatted.insert(text.to_owned());
        }
        if self.first_formatted.is_none() {
            self.first_formatted = Some((place, text.to_owned()));
        }
    }

    /// Rejects a numeric column that contains formatted numbers or a few text cells. A column
    /// counts as numeric if at least 90% of its cells are numbers and many of those are distinct.
    fn check(&self, name: &str) -> Result<()> {
        let Some((place, text)) = &self.first_text else {
            return Ok(());
        };
        let are_most = |count: usize| count * 10 >= self.n_present * 9;
        let n_distinct = self.distinct_numbers.len() + self.distinct_formatted.len();
        if let Some((place, text)) = &self.first_formatted
            && are_most(self.n_numbers + self.n_formatted)
            && n_distinct > MAX_NUMBER_CATEGORIES
        {
            let problem = format!(
                "{} (line {}) looks like a formatted number; write it as 1234.5, without currency signs or \
                 separators, or declare the column categorical (--categorical {name})",
                quote_cell(text),
                place.line
            );
            return Err(Error::cell(name, place.row, problem));
        }
        if !are_most(self.n_numbers) || self.distinct_numbers.len() <= MAX_NUMBER_CATEGORIES {
            return Ok(());
        }
        let problem = format!(
            "{} (line {}) is not a number, but {} of the column's {} cells are; leave the cell empty if it is \
             missing, or declare the column categorical (--categorical {name})",
            quote_cell(text),
            place.line,
            self.n_numbers,
            self.n_present
        );
        Err(Error::cell(name, place.row, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::data::Values;

    fn build(rule: KindRule, texts: &[&str]) -> Result<ColumnOutcome> {
        let mut builder = ColumnBuilder::new("x", rule);
        for (at, text) in texts.iter().enumerate() {
            let line = at as u64 + 2;
            builder.push(text, CellPlace { row: at + 1, line })?;
        }
        builder.finish()
    }

    fn ready(rule: KindRule, texts: &[&str]) -> Values {
        match build(rule, texts).unwrap() {
            ColumnOutcome::Complete(column) => column.values,
            ColumnOutcome::ReadAsCategories(_) => panic!("one reading should suffice"),
        }
    }

    fn names(texts: &[Option<&str>]) -> Values {
        Column::categorical("x", texts).values
    }

    #[test]
    fn numbers_and_missing_cells_make_a_numeric_column() {
        let Values::Numeric(numbers) = ready(KindRule::Infer, &["1", "NA", " 2.5"]) else {
            panic!("numbers expected")
        };
        assert!(numbers[1].is_nan());
        assert_eq!((numbers[0], numbers[2]), (1.0, 2.5));
    }

    #[test]
    fn a_column_of_missing_cells_is_numeric() {
        let values = ready(KindRule::Infer, &["", "?", "null"]);
        assert!(
            matches!(values, Values::Numeric(n) if n.len() == 3 && n.iter().all(|n| n.is_nan()))
        );
    }

    #[test]
    fn text_before_numbers_keeps_every_spelling() {
        let found = ready(KindRule::Infer, &["", "a", "007", "True", "na", "a"]);
        let wanted = names(&[None, Some("a"), Some("007"), Some("true"), None, Some("a")]);
        assert_eq!(found, wanted);
    }

    #[test]
    fn text_after_numbers_requires_a_second_reading() {
        let outcome = build(KindRule::Infer, &["007", "a", "b"]).unwrap();
        assert!(matches!(outcome, ColumnOutcome::ReadAsCategories(_)));
    }

    #[test]
    fn declared_categorical_columns_keep_the_spelling_of_numbers() {
        let found = ready(KindRule::Categorical, &["1.0", "1", "NA"]);
        assert_eq!(found, names(&[Some("1.0"), Some("1"), None]));
    }

    #[test]
    fn a_text_cell_among_many_numbers_is_rejected_unless_the_column_is_lenient() {
        let mut texts: Vec<String> = (0..30).map(|n| n.to_string()).collect();
        texts.insert(10, "oops".to_owned());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let message = build(KindRule::Infer, &texts).unwrap_err().to_string();
        for part in [
            "column `x`, row 11",
            "`oops` (line 12)",
            "30 of the column's 31",
            "--categorical x",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!(build(KindRule::Lenient, &texts).is_ok());
        let message = build(KindRule::Numeric, &texts).unwrap_err().to_string();
        assert!(
            message.contains("row 11") && message.contains("`oops`"),
            "{message}"
        );
    }

    #[test]
    fn formatted_numbers_are_rejected_unless_few_are_distinct() {
        let commas: Vec<String> = (0..40).map(|n| format!("{n},5")).collect();
        let mixed: Vec<String> = (0..40)
            .map(|n| {
                if n % 2 == 0 {
                    format!("{n}")
                } else {
                    format!("{n} %")
                }
            })
            .collect();
        for (texts, row, found) in [
            (&commas, 1, "`0,5` (line 2)"),
            (&mixed, 2, "`1 %` (line 3)"),
        ] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let message = build(KindRule::Infer, &texts).unwrap_err().to_string();
            for part in [
                &format!("column `x`, row {row}"),
                found,
                "1234.5",
                "--categorical x",
            ] {
                assert!(message.contains(part), "{message}");
            }
            assert!(build(KindRule::Lenient, &texts).is_ok());
            assert!(build(KindRule::Categorical, &texts).is_ok());
            assert!(build(KindRule::Infer, &texts[..20]).is_ok());
        }
    }

    #[test]
    fn few_distinct_numbers_or_many_texts_are_categorical() {
        let mut few: Vec<String> = (0..100).map(|n| (n % 20).to_string()).collect();
        few.push("other".to_owned());
        let mut many: Vec<String> = (0..89).map(|n| n.to_string()).collect();
        many.extend((0..11).map(|n| format!("w{n}")));
        for texts in [few, many] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            assert!(matches!(
                build(KindRule::Infer, &texts),
                Ok(ColumnOutcome::ReadAsCategories(_))
            ));
        }
    }

    #[test]
    fn infinities_become_categories_only_in_lenient_columns() {
        let texts = ["1", "inf"];
        assert!(matches!(ready(KindRule::Infer, &texts), Values::Numeric(n) if n[1].is_infinite()));
        assert!(matches!(
            build(KindRule::Lenient, &texts),
            Ok(ColumnOutcome::ReadAsCategories(_))
        ));
    }
}
