//! One text column, built cell by cell: decides whether it holds numbers or categories.

use std::collections::BTreeSet;

use softwood::{Column, Error, Result};

use crate::cell::{Cell, category, is_missing, read_cell, shown};
use crate::formatted_number::is_dressed;
use crate::levels::Levels;
use crate::options::KindRule;

/// Distinct numbers beyond which a column of almost only numbers is no set of categories.
const MAX_NUMBER_CATEGORIES: usize = 20;

/// Where a cell stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellPlace {
    /// Data row, from 1.
    pub row: usize,
    /// Line of the file, from 1.
    pub line: u64,
}

/// A column in the making.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    name: String,
    rule: KindRule,
    cells: BuilderCells,
    tally: Tally,
}

/// What has been kept of the cells.
#[derive(Debug)]
enum BuilderCells {
    /// No words so far.
    Array(Vec<f64>),
    /// Categories; words came before any number.
    Names(Levels),
    /// Words came after numbers whose spelling is gone: only the tally goes on.
    Lost,
}

/// What the column looks like so far; kept from the first words on.
#[derive(Debug, Default)]
struct Tally {
    n_present: usize,
    n_numbers: usize,
    n_dressed: usize,
    distinct: BTreeSet<u64>,
    distinct_dressed: BTreeSet<String>,
    first_words: Option<(CellPlace, String)>,
    first_dressed: Option<(CellPlace, String)>,
}

/// What became of a column.
#[derive(Debug)]
pub(crate) enum ColumnOutcome {
    /// It is whole.
    Ready(Column),
    /// It holds categories, and its texts have to be read again.
    ReadAgain(String),
}

impl ColumnBuilder {
    /// A column without cells.
    pub(crate) fn new(name: &str, rule: KindRule) -> Self {
        let cells = match rule {
            KindRule::Categorical => BuilderCells::Names(Levels::default()),
            _ => BuilderCells::Array(Vec::new()),
        };
        Self {
            name: name.to_owned(),
            rule,
            cells,
            tally: Tally::default(),
        }
    }

    /// The column's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds a cell.
    pub(crate) fn push(&mut self, text: &str, place: CellPlace) -> Result<()> {
        if self.rule == KindRule::Categorical {
            self.push_name(text);
            return Ok(());
        }
        let cell = read_cell(text);
        if let BuilderCells::Array(numbers) = &mut self.cells {
            match cell {
                Cell::Number(number) => numbers.push(number),
                Cell::Missing => numbers.push(f64::NAN),
                Cell::Words => return self.first_words(text, place),
            }
            return Ok(());
        }
        self.tally.add(cell);
        self.note(cell, text, place);
        self.push_name(text);
        Ok(())
    }

    fn note(&mut self, cell: Cell, text: &str, place: CellPlace) {
        if self.rule == KindRule::Infer && cell == Cell::Words {
            self.tally.note_words(text, place);
        }
    }

    fn push_name(&mut self, text: &str) {
        if let BuilderCells::Names(levels) = &mut self.cells {
            levels.push(Some(text).filter(|text| !is_missing(text)).map(category));
        }
    }

    /// The first words in what may have been a column of numbers.
    fn first_words(&mut self, text: &str, place: CellPlace) -> Result<()> {
        if let Some(otherwise) = self.rule.otherwise() {
            let problem = format!(
                "{} (line {}) is not a number; leave the cell empty if it is missing{otherwise}",
                shown(text),
                place.line
            );
            return Err(Error::cell(&self.name, place.row, problem));
        }
        let BuilderCells::Array(numbers) = std::mem::replace(&mut self.cells, BuilderCells::Lost)
        else {
            return Ok(());
        };
        for &number in numbers.iter().filter(|number| !number.is_nan()) {
            self.tally.add(Cell::Number(number));
        }
        if self.tally.n_numbers == 0 {
            self.cells = BuilderCells::Names(Levels::after_missing(numbers.len()));
        }
        self.tally.add(Cell::Words);
        self.tally.first_words = Some((place, text.to_owned()));
        self.note(Cell::Words, text, place);
        self.push_name(text);
        Ok(())
    }

    /// Settles what the column is.
    pub(crate) fn finish(self) -> Result<ColumnOutcome> {
        if self.rule == KindRule::Infer {
            self.tally.check(&self.name)?;
        }
        let lenient = self.rule == KindRule::Lenient;
        Ok(match self.cells {
            BuilderCells::Array(numbers) if lenient && numbers.iter().any(|n| n.is_infinite()) => {
                ColumnOutcome::ReadAgain(self.name)
            }
            BuilderCells::Array(numbers) => {
                ColumnOutcome::Ready(Column::numeric(self.name, numbers))
            }
            BuilderCells::Names(levels) => ColumnOutcome::Ready(Column {
                name: self.name,
                values: levels.finish(),
            }),
            BuilderCells::Lost => ColumnOutcome::ReadAgain(self.name),
        })
    }
}

impl Tally {
    fn add(&mut self, cell: Cell) {
        match cell {
            Cell::Missing => return,
            Cell::Words => {}
            Cell::Number(number) => {
                self.n_numbers += 1;
                if self.distinct.len() <= MAX_NUMBER_CATEGORIES {
                    self.distinct.insert(number.to_bits());
                }
            }
        }
        self.n_present += 1;
    }

    fn note_words(&mut self, text: &str, place: CellPlace) {
        if !is_dressed(text) {
            return;
        }
        self.n_dressed += 1;
        if self.distinct_dressed.len() <= MAX_NUMBER_CATEGORIES {
            self.distinct_dressed.insert(text.to_owned());
        }
        if self.first_dressed.is_none() {
            self.first_dressed = Some((place, text.to_owned()));
        }
    }

    /// Refuses numbers in other clothes and words that look like a slip in a column of numbers: nine cells in ten are numbers, and many different ones.
    fn check(&self, name: &str) -> Result<()> {
        let Some((place, text)) = &self.first_words else {
            return Ok(());
        };
        let are_most = |count: usize| count * 10 >= self.n_present * 9;
        let n_distinct = self.distinct.len() + self.distinct_dressed.len();
        if let Some((place, text)) = &self.first_dressed
            && are_most(self.n_numbers + self.n_dressed)
            && n_distinct > MAX_NUMBER_CATEGORIES
        {
            let problem = format!(
                "{} (line {}) is a number only to people; write it as 1234.5 is written, without other marks, or \
                 declare the column categorical (--categorical {name})",
                shown(text),
                place.line
            );
            return Err(Error::cell(name, place.row, problem));
        }
        if !are_most(self.n_numbers) || self.distinct.len() <= MAX_NUMBER_CATEGORIES {
            return Ok(());
        }
        let problem = format!(
            "{} (line {}) is not a number, but {} of the column's {} cells are; leave the cell empty if it is missing, \
             or declare the column categorical (--categorical {name})",
            shown(text),
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
    use softwood::Values;

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
            ColumnOutcome::Ready(column) => column.values,
            ColumnOutcome::ReadAgain(_) => panic!("the column should be whole"),
        }
    }

    fn names(texts: &[Option<&str>]) -> Values {
        Column::categorical("x", texts).values
    }

    #[test]
    fn numbers_and_missing_cells_are_numeric() {
        let Values::Numeric(numbers) = ready(KindRule::Infer, &["1", "NA", " 2.5"]) else {
            panic!("numbers expected")
        };
        assert!(numbers[1].is_nan());
        assert_eq!((numbers[0], numbers[2]), (1.0, 2.5));
    }

    #[test]
    fn all_missing_is_numeric() {
        let values = ready(KindRule::Infer, &["", "?", "null"]);
        assert!(
            matches!(values, Values::Numeric(n) if n.len() == 3 && n.iter().all(|n| n.is_nan()))
        );
    }

    #[test]
    fn words_first_keep_every_spelling() {
        let found = ready(KindRule::Infer, &["", "a", "007", "True", "na", "a"]);
        let wanted = names(&[None, Some("a"), Some("007"), Some("true"), None, Some("a")]);
        assert_eq!(found, wanted);
    }

    #[test]
    fn words_after_numbers_ask_for_a_second_reading() {
        let outcome = build(KindRule::Infer, &["007", "a", "b"]).unwrap();
        assert!(matches!(outcome, ColumnOutcome::ReadAgain(_)));
    }

    #[test]
    fn declared_categories_keep_the_spelling_of_numbers() {
        let found = ready(KindRule::Categorical, &["1.0", "1", "NA"]);
        assert_eq!(found, names(&[Some("1.0"), Some("1"), None]));
    }

    #[test]
    fn a_slip_among_many_numbers_is_told_unless_it_does_not_matter() {
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
    fn numbers_for_people_are_told_unless_they_are_few() {
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
    fn few_distinct_numbers_or_many_words_are_categories() {
        let mut few: Vec<String> = (0..100).map(|n| (n % 20).to_string()).collect();
        few.push("other".to_owned());
        let mut many: Vec<String> = (0..89).map(|n| n.to_string()).collect();
        many.extend((0..11).map(|n| format!("w{n}")));
        for texts in [few, many] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            assert!(matches!(
                build(KindRule::Infer, &texts),
                Ok(ColumnOutcome::ReadAgain(_))
            ));
        }
    }

    #[test]
    fn infinities_become_text_only_where_nobody_looks() {
        let texts = ["1", "inf"];
        assert!(matches!(ready(KindRule::Infer, &texts), Values::Numeric(n) if n[1].is_infinite()));
        assert!(matches!(
            build(KindRule::Lenient, &texts),
            Ok(ColumnOutcome::ReadAgain(_))
        ));
    }
}
