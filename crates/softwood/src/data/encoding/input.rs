//! Description of the encoded inputs in the terms of the table: the column of each input, and how
//! its value follows from a cell.

use crate::data::encoding::Encoder;
use crate::data::schema::{FieldKind, Schema};

/// One encoded input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodedInput {
    /// Index of the column in the schema; `None` for an input that combines several columns.
    pub(crate) column: Option<usize>,
    pub(crate) value: InputValue,
}

/// The value of an encoded input. Values are clamped far outside of the training range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputValue {
    /// `(cell - mean) / sd`; a missing cell counts as the mean.
    Standardised { mean: f64, sd: f64 },
    /// One if the cell is one of these levels, zero otherwise.
    Levels(Vec<String>),
    /// One if the cell is missing, zero otherwise.
    Missing,
    /// Not an affine function of one cell; the label names it for users.
    Derived { label: String },
}

impl Encoder {
    /// The inputs of the encoder in order, without the bias.
    pub(crate) fn inputs(&self, schema: &Schema) -> Vec<EncodedInput> {
        let mut inputs = self.numeric_inputs(schema);
        let squares = self.squares.iter().map(|square| {
            let squared = inputs.get(square.input);
            let label = squared.map_or_else(|| "?".to_owned(), |input| number_label(input, schema));
            EncodedInput {
                column: squared.and_then(|input| input.column),
                value: InputValue::Derived {
                    label: format!("square of {label}"),
                },
            }
        });
        let squares: Vec<EncodedInput> = squares.collect();
        inputs.extend(squares);
        let with_missing = self.numbers.iter().filter(|number| number.has_missing);
        inputs.extend(with_missing.map(|number| EncodedInput {
            column: Some(number.column),
            value: InputValue::Missing,
        }));
        for category in &self.categories {
            let levels = match schema.fields.get(category.column).map(|field| &field.kind) {
                Some(FieldKind::Categorical { levels }) => levels.as_slice(),
                _ => &[],
            };
            inputs.extend((0..category.n_inputs).map(|input| EncodedInput {
                column: Some(category.column),
                value: if category.missing == Some(input) {
                    InputValue::Missing
                } else {
                    let inputs = category.input_of_level.iter().zip(levels);
                    let of_input = inputs.filter(|(of_level, _)| **of_level == Some(input));
                    InputValue::Levels(of_input.map(|(_, level)| level.clone()).collect())
                },
            }));
        }
        inputs
    }

    /// Inputs of the numeric columns and of their rotation.
    fn numeric_inputs(&self, schema: &Schema) -> Vec<EncodedInput> {
        let numbers = self.numbers.iter().filter(|_| self.keeps_numbers);
        let numbers = numbers.map(|number| EncodedInput {
            column: Some(number.column),
            value: if number.knots.is_empty() {
                InputValue::Standardised {
                    mean: number.mean,
                    sd: number.sd,
                }
            } else {
                let name = column_name(schema, number.column);
                InputValue::Derived {
                    label: format!("rank of {name}"),
                }
            },
        });
        let n_components = self.rotation.n_outputs(self.numbers.len());
        let components = (1..=n_components).map(|component| EncodedInput {
            column: None,
            value: InputValue::Derived {
                label: format!("principal component {component}"),
            },
        });
        numbers.chain(components).collect()
    }
}

/// Name of a numeric input for users: `age`, `rank of age`, `principal component 1`.
fn number_label(input: &EncodedInput, schema: &Schema) -> String {
    match (&input.value, input.column) {
        (InputValue::Derived { label }, _) => label.clone(),
        (_, Some(column)) => column_name(schema, column).to_owned(),
        (_, None) => "?".to_owned(),
    }
}

fn column_name(schema: &Schema, column: usize) -> &str {
    schema
        .fields
        .get(column)
        .map_or("?", |field| field.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::column::Column;
    use crate::data::encoding::{Encoding, Rotation, Scaling};
    use crate::data::schema::Task;
    use crate::data::table::Table;

    fn table() -> Table {
        Table::new(vec![
            Column::numeric("a", vec![1.0, 3.0, f64::NAN, 2.0, 7.0]),
            Column::numeric("b", vec![4.0, 1.0, 3.0, 2.0, 9.0]),
            Column::categorical("c", &[Some("x"), Some("x"), Some("y"), Some("z"), None]),
        ])
        .unwrap()
    }

    fn encoder(scaling: Scaling, rotation: Rotation, squares: bool) -> Encoder {
        let encoding = Encoding {
            scaling,
            rotation,
            squares,
            max_categories: 1,
        };
        Encoder::fit(&table(), &[1.0; 5], encoding)
    }

    fn inputs(encoder: &Encoder) -> Vec<EncodedInput> {
        let inputs = encoder.inputs(&Schema::of(&table(), "t", Task::Regression));
        assert_eq!(inputs.len(), encoder.n_inputs());
        inputs
    }

    #[test]
    fn indicators_name_the_levels_of_their_column() {
        let inputs = inputs(&encoder(Scaling::Standard, Rotation::None, false));
        let levels = |names: &[&str]| {
            InputValue::Levels(names.iter().map(|&name| name.to_owned()).collect())
        };
        let expected = [
            (0, InputValue::Missing),
            (2, levels(&["x"])),
            (2, levels(&["y", "z"])),
            (2, InputValue::Missing),
        ];
        for (input, (column, value)) in inputs[2..].iter().zip(expected) {
            assert_eq!((input.column, &input.value), (Some(column), &value));
        }
    }

    #[test]
    fn inputs_that_are_not_affine_have_a_label() {
        let inputs = inputs(&encoder(Scaling::Quantile, Rotation::Both, true));
        let labels = inputs.iter().map_while(|input| match &input.value {
            InputValue::Derived { label } => Some(label.as_str()),
            _ => None,
        });
        let labels: Vec<&str> = labels.take(5).collect();
        let expected = [
            "rank of a",
            "rank of b",
            "principal component 1",
            "principal component 2",
            "square of rank of a",
        ];
        assert_eq!(labels, expected);
    }

    /// The description of a standardised input gives the encoded value.
    #[test]
    fn standardised_inputs_are_affine_functions_of_the_cells() {
        let encoder = encoder(Scaling::Standard, Rotation::None, false);
        let inputs = inputs(&encoder);
        let InputValue::Standardised { mean, sd } = inputs[1].value else {
            panic!("a standardised number expected");
        };
        let encoded = encoder.encode(&table().rows(0..5));
        let width = encoder.n_inputs() + 1;
        for (row, cell) in [4.0, 1.0, 3.0, 2.0, 9.0].into_iter().enumerate() {
            let value = f64::from(encoded[row * width + 1]);
            assert!((value - (cell - mean) / sd).abs() < 1e-6);
        }
    }
}
