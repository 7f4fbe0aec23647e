//! Options for reading a table: the delimiter and the kinds of the columns.

use std::collections::{BTreeMap, BTreeSet};

use softwood::data::{FieldKind, Schema, Task};
use softwood::{Error, Result, Table};

use crate::date::parse_date;
use crate::limits::ReadLimits;

/// How to read a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Delimiter of a CSV or TSV file: one ASCII byte. `None` takes the delimiter of the suffix.
    pub delimiter: Option<u8>,
    /// Columns to read as categorical, also if their cells are numbers.
    pub categorical: Vec<String>,
    /// Columns to read as numeric; a cell with other text is an error.
    pub numeric: Vec<String>,
    /// Columns that the caller does not use: they are read, and their cells never cause an error.
    pub ignore: Vec<String>,
    /// Whether columns that are not named above are read like those in `ignore`.
    pub lenient: bool,
    /// Largest sizes that are read.
    pub limits: ReadLimits,
}

/// How the kind of one column is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindRule {
    /// Numeric by declaration; other text is an error.
    Numeric,
    /// Numeric because it was numeric in training; other text is an error.
    Trained,
    /// Categorical by declaration or because it was categorical in training.
    Categorical,
    /// Inferred from the cells; an ambiguous column is an error.
    Infer,
    /// Inferred from the cells; an ambiguous column is categorical, and the cells of an unsupported
    /// Arrow type are missing.
    Lenient,
}

impl KindRule {
    /// The end of the error message about a text cell, for rules that accept only numbers.
    pub(crate) fn text_advice(self) -> Option<&'static str> {
        match self {
            Self::Numeric => Some(", or declare the column categorical"),
            Self::Trained => Some("; the column was numeric in training"),
            Self::Categorical | Self::Infer | Self::Lenient => None,
        }
    }
}

impl ReadOptions {
    /// Options for a table that a fitted model is applied to: the features, and the target of a
    /// regression, have the kinds they had in training; other columns never cause an error.
    #[must_use]
    pub fn for_schema(schema: &Schema) -> Self {
        let (numeric, categorical): (Vec<_>, Vec<_>) = schema
            .fields
            .iter()
            .partition(|field| field.kind == FieldKind::Numeric);
        let names =
            |fields: Vec<&softwood::data::Field>| fields.iter().map(|f| f.name.clone()).collect();
        let mut options = Self {
            categorical: names(categorical),
            numeric: names(numeric),
            lenient: true,
            ..Self::default()
        };
        match &schema.task {
            Task::Regression => options.numeric.push(schema.target.clone()),
            // class names that look like dates come from a column that was declared categorical
            Task::Classification { classes }
                if classes.iter().any(|class| parse_date(class).is_some()) =>
            {
                options.categorical.push(schema.target.clone());
            }
            _ => {}
        }
        options
    }

    /// Checks that the table has every column named in these options. Reading does not check that,
    /// because a model may be applied to a table without its target.
    ///
    /// # Errors
    /// When a named column is absent; the message lists the columns of the table.
    pub fn check_names(&self, table: &Table) -> Result<()> {
        let named = self.categorical.iter().chain(&self.numeric);
        for name in named.chain(&self.ignore) {
            table.column(name)?;
        }
        Ok(())
    }

    /// Rejects an impossible delimiter and a column declared both categorical and numeric.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(delimiter) = self.delimiter
            && (!delimiter.is_ascii() || b"\"\r\n\0".contains(&delimiter))
        {
            let found = std::ascii::escape_default(delimiter);
            return Err(Error::Parameters(vec![format!(
                "delimiter `{found}` is not allowed; it must be one ASCII character other than a quote or a line break"
            )]));
        }
        let numeric: BTreeSet<&String> = self.numeric.iter().collect();
        match self.categorical.iter().find(|name| numeric.contains(name)) {
            Some(name) => {
                let problem = "declared both categorical and numeric; choose one";
                Err(Error::column(name, problem))
            }
            None => Ok(()),
        }
    }

    /// The rules for all columns.
    pub(crate) fn rules(&self) -> KindRules<'_> {
        let mut declared = BTreeMap::new();
        let numeric = if self.lenient {
            KindRule::Trained
        } else {
            KindRule::Numeric
        };
        for (names, rule) in [
            (&self.numeric, numeric),
            (&self.categorical, KindRule::Categorical),
            (&self.ignore, KindRule::Lenient),
        ] {
            declared.extend(names.iter().map(|name| (name.as_str(), rule)));
        }
        let others = if self.lenient {
            KindRule::Lenient
        } else {
            KindRule::Infer
        };
        KindRules { declared, others }
    }
}

/// The rule for each column, by name.
#[derive(Debug)]
pub(crate) struct KindRules<'a> {
    declared: BTreeMap<&'a str, KindRule>,
    others: KindRule,
}

impl KindRules<'_> {
    /// The rule for the column of this name.
    pub(crate) fn of(&self, name: &str) -> KindRule {
        self.declared.get(name).copied().unwrap_or(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood::Column;

    fn table() -> Table {
        let city = Column::categorical("city", &[Some("Oslo")]);
        Table::new(vec![Column::numeric("age", vec![1.0]), city]).unwrap()
    }

    #[test]
    fn a_schema_decides_the_kinds_of_features_and_regression_target() {
        let schema = Schema::of(&table(), "price", Task::Regression);
        let options = ReadOptions::for_schema(&schema);
        assert_eq!(options.rules().of("age"), KindRule::Trained);
        assert_eq!(options.rules().of("city"), KindRule::Categorical);
        assert_eq!(options.rules().of("price"), KindRule::Trained);
        assert_eq!(options.rules().of("comment"), KindRule::Lenient);
        let classes = vec!["no".to_owned(), "yes".to_owned()];
        let schema = Schema::of(&table(), "price", Task::Classification { classes });
        let options = ReadOptions::for_schema(&schema);
        assert_eq!(options.rules().of("price"), KindRule::Lenient);
        let classes = vec!["2024-01-01".to_owned(), "2024-01-02".to_owned()];
        let schema = Schema::of(&table(), "day", Task::Classification { classes });
        let options = ReadOptions::for_schema(&schema);
        assert_eq!(options.rules().of("day"), KindRule::Categorical);
    }

    #[test]
    fn unknown_names_are_reported_with_the_known_ones() {
        let options = ReadOptions {
            categorical: vec!["town".to_owned()],
            ..ReadOptions::default()
        };
        let message = options.check_names(&table()).unwrap_err().to_string();
        assert!(message.contains("`town`") && message.contains("age, city"));
    }

    #[test]
    fn impossible_delimiters_and_contradictory_kinds_are_rejected() {
        for delimiter in [b'"', b'\n', b'\r', 0, 0xA7] {
            let options = ReadOptions {
                delimiter: Some(delimiter),
                ..ReadOptions::default()
            };
            let message = options.check().unwrap_err().to_string();
            assert!(message.starts_with("delimiter `"), "{message}");
        }
        let options = ReadOptions {
            categorical: vec!["a".to_owned()],
            numeric: vec!["a".to_owned()],
            ..ReadOptions::default()
        };
        assert!(options.check().is_err());
    }
}
