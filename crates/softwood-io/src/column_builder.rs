//! Builds one column of a text file cell by cell and decides whether it is numeric or categorical.

use softwood::{Column, Error, Result};

use crate::category_builder::CategoryBuilder;
use crate::cell::{Cell, category, is_missing, loses_digits, parse_cell};
use crate::cell_counts::{CellCounts, CellPlace, PlacedCell};
use crate::limits;
use crate::options::KindRule;

/// A column that is being read.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    name: String,
    rule: KindRule,
    cells: BuilderCells,
    /// First cell that is not missing, while the cells are all numbers or all dates.
    first: Option<(Cell, PlacedCell)>,
    /// First integer whose last digits a 64-bit float does not keep.
    inexact: Option<PlacedCell>,
    counts: CellCounts,
}

/// The cells read so far.
#[derive(Debug)]
enum BuilderCells {
    /// All numbers or all dates so far; NaN where missing.
    Numbers(Vec<f64>),
    /// Categories; the first text came before any number.
    Categories(CategoryBuilder),
    /// Text came after numbers whose spelling was not kept: from here on cells are only counted.
    Discarded,
}

/// The result of reading a column once.
#[derive(Debug)]
pub(crate) enum ColumnOutcome {
    /// The finished column.
    Complete(BuiltColumn),
    /// The column of this name is categorical, and its texts have to be read a second time.
    ReadAsCategories(String),
}

/// A finished column and what its reader noticed.
#[derive(Debug)]
pub(crate) struct BuiltColumn {
    pub column: Column,
    /// Whether the numbers are dates.
    pub is_date: bool,
    /// First integer whose last digits the column does not keep.
    pub inexact: Option<PlacedCell>,
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
            first: None,
            inexact: None,
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
            return self.push_category(text);
        }
        let cell = parse_cell(text);
        if let BuilderCells::Numbers(numbers) = &mut self.cells {
            return match (cell, &self.first) {
                (Cell::Missing, _) => limits::push(numbers, f64::NAN),
                (Cell::Number(number), Some((Cell::Number(_), _))) => {
                    limits::push(numbers, number)?;
                    self.record_inexact(number, text, place);
                    Ok(())
                }
                (Cell::Date(date), Some((Cell::Date(_), _))) => limits::push(numbers, date),
                (Cell::Number(value) | Cell::Date(value), None) => {
                    limits::push(numbers, value)?;
                    self.first = Some((cell, PlacedCell::new(text, place)));
                    if cell == Cell::Number(value) {
                        self.record_inexact(value, text, place);
                    }
                    Ok(())
                }
                _ => self.push_first_odd(cell, text, place),
            };
        }
        self.count(cell, text, place);
        self.push_category(text)
    }

    fn record_inexact(&mut self, number: f64, text: &str, place: CellPlace) {
        if self.inexact.is_none() && loses_digits(text, number) {
            self.inexact = Some(PlacedCell::new(text.trim(), place));
        }
    }

    fn count(&mut self, cell: Cell, text: &str, place: CellPlace) {
        self.counts.add(cell, text, place);
        if self.rule == KindRule::Infer && cell == Cell::Text {
            self.counts.record_formatted(text, place);
        }
    }

    fn push_category(&mut self, text: &str) -> Result<()> {
        match &mut self.cells {
            BuilderCells::Categories(categories) => {
                categories.push(Some(text).filter(|text| !is_missing(text)).map(category))
            }
            _ => Ok(()),
        }
    }

    /// Handles the first cell that differs from those before it: a text, a date after numbers or a
    /// number after dates.
    fn push_first_odd(&mut self, cell: Cell, text: &str, place: CellPlace) -> Result<()> {
        if let Some(advice) = self.rule.text_advice() {
            let expected = match &self.first {
                Some((Cell::Date(_), _)) => "date, unlike the cells before it",
                Some(_) if cell != Cell::Text => "number, unlike the cells before it",
                _ => "number",
            };
            let problem = format!(
                "{} is not a {expected}; leave the cell empty if it is missing{advice}",
                PlacedCell::new(text, place).shown()
            );
            return Err(Error::cell(&self.name, place.row, problem));
        }
        let BuilderCells::Numbers(numbers) =
            std::mem::replace(&mut self.cells, BuilderCells::Discarded)
        else {
            return Ok(());
        };
        if self.first.is_none() {
            self.cells = BuilderCells::Categories(CategoryBuilder::with_missing(numbers.len()));
        }
        self.counts.start(&numbers, self.first.take());
        self.count(cell, text, place);
        self.push_category(text)
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
            BuilderCells::Numbers(numbers) => ColumnOutcome::Complete(BuiltColumn {
                column: Column::numeric(self.name, numbers),
                is_date: matches!(self.first, Some((Cell::Date(_), _))),
                inexact: self.inexact,
            }),
            BuilderCells::Categories(categories) => ColumnOutcome::Complete(BuiltColumn {
                column: Column {
                    name: self.name,
                    values: categories.finish(),
                },
                is_date: false,
                inexact: None,
            }),
            BuilderCells::Discarded => ColumnOutcome::ReadAsCategories(self.name),
        })
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
            ColumnOutcome::Complete(built) => built.column.values,
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

    fn days(n: usize) -> Vec<String> {
        (0..n)
            .map(|n| format!("2024-{:02}-{:02}", n / 28 + 1, n % 28 + 1))
            .collect()
    }

    #[test]
    fn dates_and_missing_cells_make_a_column_of_seconds() {
        let texts = ["1970-01-02", "NaT", "", " 1970-01-01T00:00:01Z "];
        for rule in [
            KindRule::Infer,
            KindRule::Numeric,
            KindRule::Trained,
            KindRule::Lenient,
        ] {
            let Values::Numeric(numbers) = ready(rule, &texts) else {
                panic!("numbers expected")
            };
            assert!(numbers[1].is_nan() && numbers[2].is_nan());
            assert_eq!((numbers[0], numbers[3]), (86_400.0, 1.0));
        }
        let found = ready(KindRule::Categorical, &texts[..2]);
        assert_eq!(found, names(&[Some("1970-01-02"), None]));
    }

    #[test]
    fn a_cell_that_is_no_date_among_many_dates_is_rejected() {
        for odd in ["5 Jan", "17", "2024-02-30"] {
            let mut texts = days(30);
            texts.insert(10, odd.to_owned());
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let message = build(KindRule::Infer, &texts).unwrap_err().to_string();
            let quoted = format!("`{odd}` (line 12) is not a date");
            for part in [
                "column `x`, row 11",
                &quoted,
                "30 of the column's 31",
                "--categorical x",
            ] {
                assert!(message.contains(part), "{message}");
            }
            assert!(matches!(
                build(KindRule::Lenient, &texts),
                Ok(ColumnOutcome::ReadAsCategories(_))
            ));
            let message = build(KindRule::Trained, &texts).unwrap_err().to_string();
            assert!(
                message.contains("is not a date, unlike the cells before it"),
                "{message}"
            );
        }
    }

    #[test]
    fn an_odd_cell_before_the_dates_or_numbers_is_named() {
        for (odd, rest, what) in [
            ("17", days(30), "date"),
            (
                "2024-01-05",
                (0..30).map(|n| n.to_string()).collect(),
                "number",
            ),
        ] {
            let texts: Vec<&str> = [odd]
                .into_iter()
                .chain(rest.iter().map(String::as_str))
                .collect();
            let message = build(KindRule::Infer, &texts).unwrap_err().to_string();
            let part =
                format!("row 1: `{odd}` (line 2) is not a {what}, but 30 of the column's 31");
            assert!(message.contains(&part), "{message}");
        }
    }

    #[test]
    fn the_first_integer_that_loses_digits_is_reported() {
        let texts = ["1", "9007199254740993", "9007199254740995"];
        let Ok(ColumnOutcome::Complete(built)) = build(KindRule::Infer, &texts) else {
            panic!("numbers expected")
        };
        let inexact = built.inexact.unwrap();
        assert_eq!((inexact.place.row, inexact.text.as_str()), (2, texts[1]));
    }
}
