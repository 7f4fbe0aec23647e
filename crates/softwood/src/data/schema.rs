//! What a model remembers of its training table: names, kinds, categories, the target and its classes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::column::{Column, MISSING, UNSEEN, Values};
use crate::data::table::Table;
use crate::error::{Error, Result};

/// Kind of a feature column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FieldKind {
    /// Numbers.
    Numeric,
    /// Categories.
    Categorical {
        /// Their names.
        levels: Arc<Vec<String>>,
    },
}

/// A feature column of the schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Kind.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// What is predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
pub enum Task {
    /// A number.
    Regression,
    /// One of a few classes.
    Classification {
        /// Their names, in the order of the probabilities.
        classes: Vec<String>,
    },
}

/// The columns a model was trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Feature columns, in the order the model wants them.
    pub fields: Vec<Field>,
    /// Name of the target column.
    pub target: String,
    /// What is predicted.
    #[serde(flatten)]
    pub task: Task,
}

impl Schema {
    /// The schema of a table of features.
    pub fn of(features: &Table, target: impl Into<String>, task: Task) -> Self {
        let fields = features.columns().iter().map(|column| Field {
            name: column.name.clone(),
            kind: match &column.values {
                Values::Numeric(_) => FieldKind::Numeric,
                Values::Categorical { levels, .. } => FieldKind::Categorical {
                    levels: Arc::clone(levels),
                },
            },
        });
        Self {
            fields: fields.collect(),
            target: target.into(),
            task,
        }
    }

    /// Classes, or none for regression.
    pub fn classes(&self) -> Option<&[String]> {
        match &self.task {
            Task::Regression => None,
            Task::Classification { classes } => Some(classes),
        }
    }

    /// The table's columns matched by name, in the order of the schema, categories coded by its levels.
    /// Other columns are left out; unknown categories become [`UNSEEN`].
    ///
    /// # Errors
    /// When a column is absent or holds the wrong kind of cell.
    pub fn align(&self, table: &Table) -> Result<Table> {
        let columns = self
            .fields
            .iter()
            .map(|field| field.align(table.column(&field.name)?));
        Table::new(columns.collect::<Result<_>>()?)
    }
}

impl Field {
    fn align(&self, column: &Column) -> Result<Column> {
        let values = match (&self.kind, &column.values) {
            (FieldKind::Numeric, Values::Numeric(values)) => Values::Numeric(values.clone()),
            (FieldKind::Numeric, Values::Categorical { codes, levels }) => {
                self.numbers_of(codes, levels)?
            }
            (
                FieldKind::Categorical { levels },
                Values::Categorical {
                    codes,
                    levels: theirs,
                },
            ) => {
                let map: Vec<u32> = theirs.iter().map(|text| code_of(levels, text)).collect();
                let codes = codes
                    .iter()
                    .map(|&code| map.get(code as usize).copied().unwrap_or(code))
                    .collect();
                Values::Categorical {
                    codes,
                    levels: Arc::clone(levels),
                }
            }
            (FieldKind::Categorical { levels }, Values::Numeric(values)) => {
                let code = |value: &f64| {
                    if value.is_nan() {
                        MISSING
                    } else {
                        code_of(levels, &value.to_string())
                    }
                };
                Values::Categorical {
                    codes: values.iter().map(code).collect(),
                    levels: Arc::clone(levels),
                }
            }
        };
        Ok(Column {
            name: self.name.clone(),
            values,
        })
    }

    /// A column without a single number (all missing, or text) arrives as categories.
    fn numbers_of(&self, codes: &[u32], levels: &[String]) -> Result<Values> {
        let mut values = Vec::with_capacity(codes.len());
        for (row, &code) in codes.iter().enumerate() {
            let Some(text) = levels.get(code as usize) else {
                values.push(f64::NAN);
                continue;
            };
            let number = text.trim().parse::<f64>().map_err(|_| {
                Error::cell(
                    &self.name,
                    row + 1,
                    format!("`{text}` is not a number; the model was trained on numbers here"),
                )
            })?;
            values.push(number);
        }
        Ok(Values::Numeric(values))
    }
}

fn code_of(levels: &[String], text: &str) -> u32 {
    levels
        .iter()
        .position(|level| level == text)
        .map_or(UNSEEN, |at| at as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let b = Column::categorical("b", &[Some("x"), Some("y"), None]);
        Table::new(vec![Column::numeric("a", vec![1.0, f64::NAN, 3.0]), b]).unwrap()
    }

    #[test]
    fn columns_match_by_name_in_any_order() {
        let schema = Schema::of(&table(), "t", Task::Regression);
        let b = Column::categorical("b", &[Some("y"), Some("new"), None]);
        let other = Table::new(vec![
            b,
            Column::numeric("extra", vec![0.0; 3]),
            Column::numeric("a", vec![7.0; 3]),
        ]);
        let aligned = schema.align(&other.unwrap()).unwrap();
        assert_eq!(aligned.names().collect::<Vec<_>>(), ["a", "b"]);
        let Values::Categorical { codes, .. } = &aligned.columns()[1].values else {
            panic!("categories expected")
        };
        assert_eq!(codes, &[1, UNSEEN, MISSING]);
    }

    #[test]
    fn absent_columns_and_text_for_numbers_are_named() {
        let schema = Schema::of(&table(), "t", Task::Regression);
        let message = schema
            .align(&table().without(&["b"]))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("`b`") && message.contains("there are a"),
            "{message}"
        );
        let texts = Table::new(vec![Column::categorical("a", &[Some("12"), Some("n/a")])]).unwrap();
        let message = schema.align(&texts).unwrap_err().to_string();
        assert!(
            message.contains("row 2") && message.contains("`n/a`"),
            "{message}"
        );
    }
}
