//! The schema of a training table: column names, kinds and categories, the target and its classes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::column::{Column, MISSING, UNSEEN, Values};
use crate::data::table::Table;
use crate::error::{Error, Result};

/// Kind of a feature column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum FieldKind {
    /// Numbers.
    Numeric,
    /// Categories.
    Categorical {
        /// Category names.
        levels: Arc<Vec<String>>,
    },
}

/// A feature column of the schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Field {
    /// Name.
    pub name: String,
    /// Kind.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// The prediction task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Task {
    /// A number.
    Regression,
    /// A class.
    Classification {
        /// Class names, in the order of the predicted probabilities.
        classes: Vec<String>,
    },
}

/// Type of the class labels in the training table, so that a program that loads the model can
/// convert class names back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Labels {
    /// Texts.
    #[default]
    Text,
    /// Numbers.
    Number,
    /// `true` and `false`.
    Boolean,
}

/// Columns and task of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Schema {
    /// Feature columns, in the order that the model expects.
    pub fields: Vec<Field>,
    /// Name of the target column.
    pub target: String,
    /// The prediction task.
    #[serde(flatten)]
    pub task: Task,
    /// Type of the class labels; meaningless for regression.
    #[serde(default)]
    pub labels: Labels,
    /// NumPy type of the class labels, such as `uint64`, so that Python gets back what it gave;
    /// `None` for labels that do not come from Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_dtype: Option<String>,
    /// Whether the training table had column names, where the names do not show it: `None` means
    /// that it had names unless they are the names `x0`, `x1`, ... of columns without names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_named: Option<bool>,
}

impl Schema {
    /// The schema of a table of features with column names, with text labels.
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
        let fields: Vec<Field> = fields.collect();
        Self {
            is_named: have_default_names(&fields).then_some(true),
            fields,
            target: target.into(),
            task,
            labels: Labels::Text,
            label_dtype: None,
        }
    }

    /// The same schema with another type of class labels.
    #[must_use]
    pub fn with_labels(self, labels: Labels) -> Self {
        Self { labels, ..self }
    }

    /// The same schema with the NumPy type of the class labels.
    #[must_use]
    pub fn with_label_dtype(self, label_dtype: Option<String>) -> Self {
        Self {
            label_dtype,
            ..self
        }
    }

    /// The schema of a table without column names, such as an array: its columns are called `x0`,
    /// `x1`, ...
    #[must_use]
    pub fn without_names(self) -> Self {
        // the default names show it; only a table with other names needs the flag
        let is_named = (!have_default_names(&self.fields)).then_some(false);
        Self { is_named, ..self }
    }

    /// Whether the training table had column names.
    pub fn has_names(&self) -> bool {
        self.is_named
            .unwrap_or_else(|| !have_default_names(&self.fields))
    }

    /// Whether columns, categories, target and classes are those of another schema. Where the
    /// table came from, and whether it had column names, does not matter.
    pub(crate) fn describes_same_data(&self, other: &Self) -> bool {
        self.fields == other.fields
            && self.target == other.target
            && self.task == other.task
            && self.labels == other.labels
    }

    /// Class names; `None` for regression.
    pub fn classes(&self) -> Option<&[String]> {
        match &self.task {
            Task::Regression => None,
            Task::Classification { classes } => Some(classes),
        }
    }

    /// Selects the columns of the schema by name, in its order, and codes categories by its levels.
    /// Other columns are dropped; categories that the schema does not have become [`UNSEEN`].
    ///
    /// # Errors
    /// When a column is absent or a cell is not a number in a numeric column.
    pub fn align(&self, table: &Table) -> Result<Table> {
        let index = table.index();
        let positions: Vec<Option<usize>> = self
            .fields
            .iter()
            .map(|field| index.find(&field.name))
            .collect();
        self.check_present(table, &positions)?;
        let columns = self
            .fields
            .iter()
            .zip(positions.into_iter().flatten())
            .map(|(field, position)| field.align(&table.columns()[position]));
        Table::new(columns.collect::<Result<_>>()?)
    }

    /// As [`Schema::align`], without a copy of a table that is aligned already.
    ///
    /// # Errors
    /// As [`Schema::align`].
    pub fn align_owned(&self, table: Table) -> Result<Table> {
        if self.is_aligned(&table) {
            return Ok(table);
        }
        self.align(&table)
    }

    /// Whether [`Schema::align`] would copy the table unchanged.
    pub(crate) fn is_aligned(&self, table: &Table) -> bool {
        let fits = |(field, column): (&Field, &Column)| {
            field.name == column.name
                && match (&field.kind, &column.values) {
                    (FieldKind::Numeric, Values::Numeric(_)) => true,
                    (
                        FieldKind::Categorical { levels },
                        Values::Categorical {
                            levels: table_levels,
                            ..
                        },
                    ) => levels == table_levels,
                    _ => false,
                }
        };
        let columns = table.columns();
        self.fields.len() == columns.len() && self.fields.iter().zip(columns).all(fits)
    }

    /// Returns an error that names all absent columns. `positions` are those of the fields in the
    /// table.
    fn check_present(&self, table: &Table, positions: &[Option<usize>]) -> Result<()> {
        let fields = self.fields.iter().zip(positions);
        let absent: Vec<_> = fields
            .filter(|(_, position)| position.is_none())
            .map(|(field, _)| field)
            .collect();
        match absent[..] {
            [] => Ok(()),
            [field] => table.column(&field.name).map(drop),
            _ => {
                let names = absent.iter().map(|field| format!("`{}`", field.name));
                Err(Error::Table(format!(
                    "the columns {} are not there, and the model needs them; there are {}",
                    names.collect::<Vec<_>>().join(", "),
                    table.some_names()
                )))
            }
        }
    }
}

/// Whether the columns are called `x0`, `x1`, ..., as those of a table without names are.
fn have_default_names(fields: &[Field]) -> bool {
    let mut names = fields.iter().enumerate();
    names.all(|(at, field)| field.name.strip_prefix('x') == Some(at.to_string().as_str()))
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
                    levels: table_levels,
                },
            ) => {
                let index = NameIndex::of(levels);
                let code_of_level: Vec<u32> =
                    table_levels.iter().map(|text| index.code(text)).collect();
                let codes = codes
                    .iter()
                    .map(|&code| code_of_level.get(code as usize).copied().unwrap_or(code))
                    .collect();
                Values::Categorical {
                    codes,
                    levels: Arc::clone(levels),
                }
            }
            (FieldKind::Categorical { levels }, Values::Numeric(values)) => {
                let index = NameIndex::of(levels);
                let code = |value: &f64| {
                    if value.is_nan() {
                        MISSING
                    } else {
                        index.code(&value.to_string())
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

    /// Converts a column of categories, as a reader makes it from a column without numbers, to
    /// numbers.
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

/// Looks up category codes by name with a binary search; a linear search per cell would be too slow
/// for many categories.
#[derive(Debug)]
pub(crate) struct NameIndex<'a> {
    names: &'a [String],
    /// Codes sorted by their names.
    order: Vec<u32>,
}

impl<'a> NameIndex<'a> {
    pub(crate) fn of(names: &'a [String]) -> Self {
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_by_key(|&code| &names[code as usize]);
        Self { names, order }
    }

    /// The code of a name; the first one if a name occurs twice.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let name_of = |code: u32| self.names[code as usize].as_str();
        let position = self.order.partition_point(|&code| name_of(code) < name);
        let code = self.order.get(position).copied()?;
        (name_of(code) == name).then_some(code)
    }

    fn code(&self, name: &str) -> u32 {
        self.find(name).unwrap_or(UNSEEN)
    }
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

    fn numeric_schema(names: &[&str]) -> Schema {
        let column = |name: &&str| Column::numeric(*name, vec![1.0, 2.0]);
        let table = Table::new(names.iter().map(column).collect()).unwrap();
        Schema::of(&table, "t", Task::Regression)
    }

    #[test]
    fn the_file_tells_columns_named_x0_from_columns_without_names() {
        for names in [&["x0", "x1"][..], &["x1", "x0"], &["x00"], &["a", "b"]] {
            let schema = numeric_schema(names);
            for (schema, is_named) in [(schema.clone(), true), (schema.without_names(), false)] {
                assert_eq!(schema.has_names(), is_named, "{names:?}");
                let text = serde_json::to_string(&schema).unwrap();
                let again: Schema = serde_json::from_str(&text).unwrap();
                assert_eq!(again, schema);
                assert_eq!(again.has_names(), is_named, "{names:?}");
            }
        }
    }

    #[test]
    fn schemas_of_older_files_are_read_and_have_names_unless_they_are_the_default_ones() {
        for (name, is_named) in [("x0", false), ("age", true)] {
            let text = format!(
                r#"{{"fields":[{{"name":"{name}","kind":"numeric"}}],"target":"t","task":"regression","labels":"text"}}"#
            );
            let schema: Schema = serde_json::from_str(&text).unwrap();
            assert_eq!(schema.has_names(), is_named);
            assert_eq!(schema.label_dtype, None);
        }
    }

    /// A linear search per cell would take 10^10 comparisons.
    #[test]
    fn very_many_categories_are_found_in_any_order() {
        let n = 100_000_u32;
        let levels = Arc::new((0..n).rev().map(|name| name.to_string()).collect());
        let known = Values::Categorical {
            codes: (0..n).collect(),
            levels,
        };
        let column = |values: Values| {
            let name = "id".to_owned();
            Table::new(vec![Column { name, values }]).unwrap()
        };
        let schema = Schema::of(&column(known), "t", Task::Regression);
        let numbers = (0..=n).map(f64::from).collect();
        let texts: Vec<_> = (0..=n).map(|name| Some(name.to_string())).collect();
        for values in [
            Values::Numeric(numbers),
            Column::categorical("id", &texts).values,
        ] {
            let aligned = schema.align(&column(values)).unwrap();
            let Values::Categorical { codes, .. } = &aligned.columns()[0].values else {
                panic!("categories expected")
            };
            let expected = (0..n).rev().chain([UNSEEN]);
            assert!(codes.iter().copied().eq(expected));
        }
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
        let message = schema
            .align(&table().without(&["a", "b"]))
            .unwrap_err()
            .to_string();
        assert!(message.contains("`a`, `b`"), "{message}");
        let texts = Table::new(vec![
            Column::categorical("a", &[Some("12"), Some("n/a")]),
            Column::categorical("b", &[Some("x"), Some("y")]),
        ])
        .unwrap();
        let message = schema.align(&texts).unwrap_err().to_string();
        assert!(
            message.contains("row 2") && message.contains("`n/a`"),
            "{message}"
        );
    }
}
