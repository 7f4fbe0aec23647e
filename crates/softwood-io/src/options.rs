//! What the caller knows about a table before it is read: the delimiter and the kinds of columns.

use softwood::{Error, FieldKind, Result, Schema, Table, Task};

/// How to read a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Delimiter of a CSV or TSV file: one ASCII byte. By suffix where `None`.
    pub delimiter: Option<u8>,
    /// Columns whose cells are categories, whatever they look like.
    pub categorical: Vec<String>,
    /// Columns whose cells are numbers; any other text there is an error.
    pub numeric: Vec<String>,
    /// Columns nobody will use: they are read, and never cause an error.
    pub ignore: Vec<String>,
    /// Whether every column that is not named above is read as those to be ignored are.
    pub lenient: bool,
}

/// How the cells of one column are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindRule {
    /// Array; other text is an error.
    Numeric,
    /// Numbers, since a model was trained on them; other text is an error.
    Trained,
    /// Categories.
    Categorical,
    /// By their looks; what cannot be settled is an error.
    Infer,
    /// By their looks; what cannot be settled is text, and a type without a reading is all missing.
    Lenient,
}

impl KindRule {
    /// Where only numbers will do: what a message about other text ends with.
    pub(crate) fn otherwise(self) -> Option<&'static str> {
        match self {
            Self::Numeric => Some(", or declare the column categorical"),
            Self::Trained => Some("; the model was trained on numbers here"),
            Self::Categorical | Self::Infer | Self::Lenient => None,
        }
    }
}

impl ReadOptions {
    /// Options for a table a fitted model is applied to: the model's fields, and the target of a regression, are read
    /// as what they were in training; other columns never cause an error.
    #[must_use]
    pub fn for_schema(schema: &Schema) -> Self {
        let (numeric, categorical): (Vec<_>, Vec<_>) = schema
            .fields
            .iter()
            .partition(|field| field.kind == FieldKind::Numeric);
        let names = |fields: Vec<&softwood::Field>| fields.iter().map(|f| f.name.clone()).collect();
        let mut options = Self {
            categorical: names(categorical),
            numeric: names(numeric),
            lenient: true,
            ..Self::default()
        };
        if schema.task == Task::Regression {
            options.numeric.push(schema.target.clone());
        }
        options
    }

    /// Checks that every column named here is in the table. Reading does not: a model may be applied to a table
    /// without its target.
    ///
    /// # Errors
    /// When a named column is absent; the message lists the names there are.
    pub fn check_names(&self, table: &Table) -> Result<()> {
        let named = self.categorical.iter().chain(&self.numeric);
        for name in named.chain(&self.ignore) {
            table.column(name)?;
        }
        Ok(())
    }

    /// Refuses a delimiter that cannot separate cells and a column declared to be two things.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(delimiter) = self.delimiter
            && (!delimiter.is_ascii() || b"\"\r\n\0".contains(&delimiter))
        {
            let found = std::ascii::escape_default(delimiter);
            return Err(Error::Parameters(vec![format!(
                "delimiter `{found}` cannot separate cells; it must be one ASCII character other than a quote or a line break"
            )]));
        }
        let both = |name: &&String| self.numeric.contains(name);
        match self.categorical.iter().find(both) {
            Some(name) => {
                let problem = "it is declared both categorical and numeric; choose one";
                Err(Error::column(name, problem))
            }
            None => Ok(()),
        }
    }

    /// The rule of the column of this name.
    pub(crate) fn rule(&self, name: &str) -> KindRule {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        if has(&self.ignore) {
            KindRule::Lenient
        } else if has(&self.categorical) {
            KindRule::Categorical
        } else if has(&self.numeric) && self.lenient {
            KindRule::Trained
        } else if has(&self.numeric) {
            KindRule::Numeric
        } else if self.lenient {
            KindRule::Lenient
        } else {
            KindRule::Infer
        }
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
    fn schema_forces_fields_and_regression_target() {
        let schema = Schema::of(&table(), "price", Task::Regression);
        let options = ReadOptions::for_schema(&schema);
        assert_eq!(options.rule("age"), KindRule::Trained);
        assert_eq!(options.rule("city"), KindRule::Categorical);
        assert_eq!(options.rule("price"), KindRule::Trained);
        assert_eq!(options.rule("comment"), KindRule::Lenient);
        let classes = vec!["no".to_owned(), "yes".to_owned()];
        let schema = Schema::of(&table(), "price", Task::Classification { classes });
        let options = ReadOptions::for_schema(&schema);
        assert_eq!(options.rule("price"), KindRule::Lenient);
    }

    #[test]
    fn unknown_names_are_told_with_the_known_ones() {
        let options = ReadOptions {
            categorical: vec!["town".to_owned()],
            ..ReadOptions::default()
        };
        let message = options.check_names(&table()).unwrap_err().to_string();
        assert!(message.contains("`town`") && message.contains("age, city"));
    }

    #[test]
    fn impossible_delimiters_and_double_kinds_are_refused() {
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
