//! The dense encoding of a table for soft trees: scaled numbers with indicators of missing cells,
//! one-hot categories, optionally a whitening rotation and squares of the numeric inputs, and a
//! last input of ones for the bias.

mod categorical;
pub(crate) mod input;
mod numeric;
mod rotation;
mod squares;

use serde::{Deserialize, Serialize};

use crate::data::column::{Column, Values};
use crate::data::encoding::categorical::CategoricalColumn;
use crate::data::encoding::numeric::NumericColumn;
use crate::data::encoding::rotation::WhiteningRotation;
use crate::data::encoding::squares::SquaredInput;
use crate::data::schema::{FieldKind, Schema};
use crate::data::table::{Rows, Table};
use crate::data::unseen::UnseenCell;
use crate::params::choices;
use crate::stop::{is_cancelled, until_cancelled};

choices! {
    /// Rotation of the numeric inputs.
    Rotation {
        /// The columns without rotation.
        None = "none",
        /// Whitened principal components.
        Pca = "pca",
        /// The columns and their whitened principal components.
        Both = "both",
    }
}

choices! {
    /// Scaling of the numeric inputs.
    Scaling {
        /// Mean 0 and standard deviation 1.
        Standard = "standard",
        /// Mapped through ranks to a standard Normal.
        Quantile = "quantile",
    }
}

/// Options of the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) scaling: Scaling,
    pub(crate) rotation: Rotation,
    /// Whether to add the squares of the numeric inputs.
    pub(crate) squares: bool,
    /// Largest number of categories per column with an input of their own.
    pub(crate) max_categories: usize,
}

/// A fitted encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    numbers: Vec<NumericColumn>,
    categories: Vec<CategoricalColumn>,
    /// Whitening rotation of the numeric inputs; empty without rotation.
    rotation: WhiteningRotation,
    /// Whether the unrotated numbers are inputs as well.
    keeps_numbers: bool,
    /// Squares of numeric inputs, including rotated ones.
    #[serde(default)]
    squares: Vec<SquaredInput>,
}

/// Number of products that a loop computes between two checks whether the work is cancelled.
const MAX_UNCHECKED: usize = 1 << 22;

/// Largest number of numeric columns whose rotation is tried in model selection. Its time grows with
/// the cube of the number, and a rotation of many columns seldom helps.
const MAX_ROTATED: usize = 200;

/// Inputs are clamped to this many standard deviations, so that no product overflows.
const LIMIT: f64 = 1e3;

impl Encoder {
    /// Fits the encoder to a training table with row weights.
    pub(crate) fn fit(table: &Table, weights: &[f64], encoding: Encoding) -> Self {
        let mut numbers = Vec::new();
        let mut categories = Vec::new();
        for (index, column) in until_cancelled(table.columns().iter().enumerate()) {
            match &column.values {
                Values::Numeric(values) => {
                    numbers.extend(NumericColumn::fit(index, values, weights, encoding.scaling));
                }
                Values::Categorical { codes, levels } => {
                    categories.push(CategoricalColumn::fit(
                        index,
                        codes,
                        weights,
                        levels.len(),
                        encoding.max_categories,
                    ));
                }
            }
        }
        let mut encoder = Self {
            numbers,
            categories,
            rotation: WhiteningRotation::default(),
            keeps_numbers: true,
            squares: Vec::new(),
        };
        if encoding.rotation != Rotation::None && encoder.numbers.len() > 1 {
            encoder.rotation = WhiteningRotation::fit(&encoder.numbers, table, weights);
            encoder.keeps_numbers = encoding.rotation == Rotation::Both;
        }
        if encoding.squares {
            encoder.squares = encoder.fit_squares(table, weights);
        }
        encoder
    }

    fn fit_squares(&self, table: &Table, weights: &[f64]) -> Vec<SquaredInput> {
        let width = self.n_inputs() + 1;
        let rows = self.encode(&table.rows(0..table.n_rows()));
        let column = |input: usize| {
            let values = rows.iter().skip(input).step_by(width);
            values.map(|&x| f64::from(x)).collect::<Vec<f64>>()
        };
        until_cancelled(0..self.n_numeric())
            .filter_map(|input| SquaredInput::fit(input, &column(input), weights))
            .collect()
    }

    /// Number of numeric inputs, including rotated ones; they are the first inputs.
    fn n_numeric(&self) -> usize {
        let plain = if self.keeps_numbers {
            self.numbers.len()
        } else {
            0
        };
        plain + self.rotation.n_outputs(self.numbers.len())
    }

    /// Number of inputs per row without the bias.
    pub(crate) fn n_inputs(&self) -> usize {
        let indicators = self
            .numbers
            .iter()
            .filter(|number| number.has_missing)
            .count();
        let one_hot: usize = self
            .categories
            .iter()
            .map(|category| category.n_inputs)
            .sum();
        self.n_numeric() + self.squares.len() + indicators + one_hot
    }

    /// Whether the encoder matches the schema and its indices are in range; an encoder that was
    /// read from a file may not.
    pub(crate) fn fits(&self, schema: &Schema) -> bool {
        let kind = |column: usize| schema.fields.get(column).map(|field| &field.kind);
        let numbers = self
            .numbers
            .iter()
            .all(|number| kind(number.column) == Some(&FieldKind::Numeric) && number.is_sound());
        let categories = self.categories.iter().all(|category| {
            let inputs = category
                .input_of_level
                .iter()
                .flatten()
                .chain(&category.missing);
            matches!(kind(category.column), Some(FieldKind::Categorical { .. }))
                && inputs.clone().all(|&input| input < category.n_inputs)
                && category.n_inputs <= category.input_of_level.len() + 1
        });
        let squares = (self.squares.iter())
            .all(|square| square.input < self.n_numeric() && square.is_sound());
        let is_ascending = (self.numbers).is_sorted_by(|a, b| a.column < b.column);
        numbers && is_ascending && categories && self.rotation.fits(self.numbers.len()) && squares
    }

    /// Whether the table has numbers to square.
    pub(crate) fn can_square(table: &Table) -> bool {
        (table.columns().iter()).any(|column| matches!(column.values, Values::Numeric(_)))
    }

    /// Whether model selection tries a rotation: the table has at least two numeric columns and at
    /// most [`MAX_ROTATED`].
    pub(crate) fn can_rotate(table: &Table) -> bool {
        let is_number = |column: &&Column| matches!(column.values, Values::Numeric(_));
        (2..=MAX_ROTATED).contains(&table.columns().iter().filter(is_number).count())
    }

    /// Encodes rows as `n_rows x (n_inputs + 1)`; the last input is one.
    pub(crate) fn encode(&self, rows: &Rows<'_>) -> Vec<f32> {
        let width = self.n_inputs() + 1;
        let mut out = vec![0.0; rows.len() * width];
        let mut scaled = vec![0.0; self.numbers.len()];
        let interval = (MAX_UNCHECKED / (width * (1 + self.numbers.len()))).max(1);
        for (row, out) in rows.range.clone().zip(out.chunks_exact_mut(width)) {
            if (row - rows.range.start).is_multiple_of(interval) && is_cancelled() {
                break;
            }
            for (number, scaled) in self.numbers.iter().zip(&mut scaled) {
                *scaled = number.scale(number.cell(rows.table, row));
            }
            self.write_row(rows.table, row, &scaled, out);
        }
        out
    }

    /// Writes the inputs of a row with these scaled numbers to `out`, which is zero.
    fn write_row(&self, table: &Table, row: usize, scaled: &[f64], out: &mut [f32]) {
        let mut at = 0;
        if self.keeps_numbers {
            for (out, &scaled) in out.iter_mut().zip(scaled) {
                *out = scaled as f32;
            }
            at += scaled.len();
        }
        for rotated in self.rotation.apply(scaled) {
            out[at] = rotated.clamp(-LIMIT, LIMIT) as f32;
            at += 1;
        }
        for square in &self.squares {
            out[at] = square.apply(f64::from(out[square.input])) as f32;
            at += 1;
        }
        for number in self.numbers.iter().filter(|number| number.has_missing) {
            out[at] = f32::from(u8::from(number.cell(table, row).is_nan()));
            at += 1;
        }
        for category in &self.categories {
            if let Some(input) = category.input(table, row) {
                out[at + input] = 1.0;
            }
            at += category.n_inputs;
        }
        out[at] = 1.0;
    }

    /// The encoded row of unseen cells of one row, each replaced by a known code, if it has one.
    pub(crate) fn substituted(
        &self,
        rows: &Rows<'_>,
        cells: &[UnseenCell],
        codes: &[Option<usize>],
    ) -> Vec<f32> {
        let mut out = vec![0.0; self.n_inputs() + 1];
        let Some(row) = cells.first().map(|cell| rows.range.start + cell.row) else {
            return out;
        };
        let numbers = self.numbers.iter();
        let mut scaled: Vec<f64> = numbers
            .map(|number| number.scale(number.cell(rows.table, row)))
            .collect();
        let codes = cells.iter().zip(codes);
        let codes = codes.filter_map(|(cell, code)| Some((cell, (*code)?)));
        let (of_numbers, of_categories): (Vec<_>, Vec<_>) =
            codes.partition(|(cell, _)| cell.is_number);
        for (cell, code) in of_numbers {
            let mut columns = self.numbers.iter();
            if let Some(at) = columns.position(|number| number.column == cell.column) {
                let number = &self.numbers[at];
                scaled[at] = number.scale(number.quantiles.get(code).copied().unwrap_or(f64::NAN));
            }
        }
        self.write_row(rows.table, row, &scaled, &mut out);
        for (_, input) in of_categories {
            out[input] = 1.0;
        }
        out
    }

    /// Missing cells of these rows are no longer unseen, because a model is trained on them.
    pub(crate) fn see_missing_cells(&mut self, table: &Table) {
        for number in &mut self.numbers {
            if (0..table.n_rows()).any(|row| number.is_unseen(table, row)) {
                number.quantiles.clear();
            }
        }
        for category in &mut self.categories {
            category.see_missing_cells(table);
        }
    }

    /// Cells whose category did not occur in training, so that none of the inputs of the column is
    /// set, and missing cells of numeric columns that had none. Cells of one row follow each other.
    pub(crate) fn unseen(&self, rows: &Rows<'_>) -> Vec<UnseenCell> {
        let mut found = Vec::new();
        for number in self.numbers.iter().filter(|number| !number.has_missing) {
            for (at, row) in rows.range.clone().enumerate() {
                if number.is_unseen(rows.table, row) {
                    found.push(UnseenCell {
                        row: at,
                        column: number.column,
                        known: 0..number.quantiles.len(),
                        is_number: true,
                    });
                }
            }
        }
        let one_hot: usize = self
            .categories
            .iter()
            .map(|category| category.n_inputs)
            .sum();
        let mut start = self.n_inputs() - one_hot;
        for category in &self.categories {
            let n_levels = category.n_inputs - usize::from(category.missing.is_some());
            for (at, row) in rows.range.clone().enumerate() {
                if n_levels > 0 && category.is_unseen(rows.table, row) {
                    found.push(UnseenCell {
                        row: at,
                        column: category.column,
                        known: start..start + n_levels,
                        is_number: false,
                    });
                }
            }
            start += category.n_inputs;
        }
        found.sort_by_key(|cell| cell.row);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::schema::Task;
    use crate::data::unseen::UnseenSubstitutes;
    use crate::rng::Key;
    use softwood_testkit::close;

    const PLAIN: Encoding = Encoding {
        scaling: Scaling::Standard,
        rotation: Rotation::None,
        squares: false,
        max_categories: 2,
    };

    fn encoded(encoder: &Encoder, table: &Table) -> Vec<Vec<f64>> {
        let width = encoder.n_inputs() + 1;
        let all = encoder.encode(&table.rows(0..table.n_rows()));
        all.chunks_exact(width)
            .map(|row| row.iter().map(|&x| f64::from(x)).collect())
            .collect()
    }

    #[test]
    fn numbers_are_standardised_and_missing_cells_have_an_indicator() {
        let table = Table::new(vec![
            Column::numeric("a", vec![1.0, 3.0, f64::NAN]),
            Column::numeric("constant", vec![5.0; 3]),
        ]);
        let table = table.unwrap();
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], PLAIN);
        let rows = encoded(&encoder, &table);
        close(
            &rows.concat(),
            &[-1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0],
            1e-6,
        );
    }

    #[test]
    fn unseen_cells_are_replaced_in_all_inputs_that_they_enter() {
        let encoding = Encoding {
            rotation: Rotation::Both,
            squares: true,
            ..PLAIN
        };
        // the table with another value of `z` in row 5
        let values = |other: Option<f64>| -> Table {
            let x = (0..40).map(|row| f64::from(row * 7 % 40)).collect();
            let mut z: Vec<f64> = (0..40).map(|row| f64::from(row * row % 13)).collect();
            z[5] = other.unwrap_or(z[5]);
            let texts: Vec<_> = (0..40).map(|row| Some(["a", "b"][row % 2])).collect();
            let columns = vec![
                Column::numeric("x", x),
                Column::numeric("z", z),
                Column::categorical("k", &texts),
            ];
            Table::new(columns).unwrap()
        };
        let table = values(None);
        let mut encoder = Encoder::fit(&table, &[1.0; 40], encoding);
        assert_eq!(encoder.unseen(&table.rows(0..40)), []);
        let new = values(Some(f64::NAN));
        let rows = new.rows(4..7);
        let cells = encoder.unseen(&rows);
        assert_eq!((cells.len(), cells[0].row, cells[0].column), (1, 1, 1));
        let substitutes = UnseenSubstitutes::new(Key::from_seed(3));
        for member in 0..20 {
            let code = substitutes.code_of(member, &cells[0]).unwrap();
            let known = values(Some(encoder.numbers[1].quantiles[code]));
            let expected = encoder.encode(&known.rows(5..6));
            assert_eq!(encoder.substituted(&rows, &cells, &[Some(code)]), expected);
        }
        encoder.see_missing_cells(&new);
        assert_eq!(encoder.unseen(&rows), []);
    }

    #[test]
    fn rare_categories_share_an_input_and_unseen_ones_set_none() {
        let texts: Vec<Option<&str>> = "aaabbcd"
            .split("")
            .filter(|t| !t.is_empty())
            .map(Some)
            .collect();
        let table = Table::new(vec![Column::categorical("c", &texts)]).unwrap();
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], PLAIN);
        assert_eq!(encoder.n_inputs(), 3);
        let schema = Schema::of(&table, "t", Task::Regression);
        let other = Table::new(vec![Column::categorical(
            "c",
            &[Some("a"), Some("d"), Some("new"), None],
        )])
        .unwrap();
        let rows = encoded(&encoder, &schema.align(&other).unwrap());
        let expected = [
            [1.0, 0.0, 0.0, 1.0],
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
        ];
        close(&rows.concat(), expected.as_flattened(), 0.0);
    }

    #[test]
    fn rotation_whitens() {
        let a: Vec<f64> = (0..500).map(|i| f64::from(i * 37 % 101)).collect();
        let b: Vec<f64> = a
            .iter()
            .enumerate()
            .map(|(i, x)| x + 0.01 * ((i * 53 % 97) as f64))
            .collect();
        let table = Table::new(vec![Column::numeric("a", a), Column::numeric("b", b)]).unwrap();
        let encoder = Encoder::fit(
            &table,
            &vec![1.0; table.n_rows()],
            Encoding {
                rotation: Rotation::Pca,
                ..PLAIN
            },
        );
        let rows = encoded(&encoder, &table);
        let n = rows.len() as f64;
        let moment = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>() / n;
        close(
            &[moment(0, 0), moment(0, 1), moment(1, 1)],
            &[1.0, 0.0, 1.0],
            1e-4,
        );
    }

    #[test]
    fn quantile_scaling_is_monotone_and_bounds_heavy_tails() {
        let values: Vec<f64> = (0..1000).map(|i| (f64::from(i) / 100.0).exp()).collect();
        let table = Table::new(vec![Column::numeric("a", values)]).unwrap();
        let encoder = Encoder::fit(
            &table,
            &vec![1.0; table.n_rows()],
            Encoding {
                scaling: Scaling::Quantile,
                ..PLAIN
            },
        );
        let rows = encoded(&encoder, &table);
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0]));
        assert!(rows[999][0] < 4.0 && rows[0][0] > -4.0);
        let beyond = Table::new(vec![Column::numeric("a", vec![1e5, 1e6])]).unwrap();
        let rows = encoded(&encoder, &beyond);
        assert!(rows[1][0] > rows[0][0] && rows[0][0] > 3.0);
    }

    const SQUARED: Encoding = Encoding {
        squares: true,
        ..PLAIN
    };

    #[test]
    fn squares_are_standardised_and_uncorrelated_with_their_input() {
        let skewed: Vec<f64> = (0..200).map(|i| (f64::from(i) / 60.0).exp()).collect();
        let coin: Vec<f64> = (0..200).map(|i| f64::from(i % 2)).collect();
        let table = Table::new(vec![
            Column::numeric("skewed", skewed),
            Column::numeric("coin", coin),
        ])
        .unwrap();
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], SQUARED);
        // the square of a column of two values is linear in that column, so there is only one
        // square
        assert_eq!(encoder.n_inputs(), 3);
        let rows = encoded(&encoder, &table);
        let mean = |of: &dyn Fn(&Vec<f64>) -> f64| rows.iter().map(of).sum::<f64>() / 200.0;
        close(
            &[mean(&|row| row[2]), mean(&|row| row[2] * row[2])],
            &[0.0, 1.0],
            1e-5,
        );
        close(&[mean(&|row| row[0] * row[2])], &[0.0], 1e-5);
    }

    #[test]
    fn squares_are_constant_outside_the_training_range() {
        let values = (0..50).map(f64::from).chain([f64::NAN]).collect();
        let table = Table::new(vec![Column::numeric("a", values)]).unwrap();
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], SQUARED);
        let far = vec![0.0, -1e9, 49.0, 1e300, 24.5, f64::NAN];
        let rows = encoded(
            &encoder,
            &Table::new(vec![Column::numeric("a", far)]).unwrap(),
        );
        let squares: Vec<f64> = rows.iter().map(|row| row[1]).collect();
        close(&squares[..2], &[squares[0]; 2], 0.0);
        close(&squares[2..4], &[squares[2]; 2], 0.0);
        // a missing cell has the value of the mean, also in the square
        close(&squares[5..], &squares[4..5], 1e-6);
    }

    #[test]
    fn invalid_squares_are_rejected() {
        let table = Table::new(vec![Column::numeric("a", (0..50).map(f64::from).collect())]);
        let table = table.unwrap();
        let schema = Schema::of(&table, "t", Task::Regression);
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], SQUARED);
        assert!(encoder.fits(&schema));
        let damage: [fn(&mut SquaredInput); 6] = [
            |square| square.input = 1,
            |square| square.low = 1e3 + 1.0,
            |square| square.high = f64::NAN,
            |square| square.slope = f64::INFINITY,
            |square| square.shift = f64::NAN,
            |square| square.scale = 0.0,
        ];
        for damage in damage {
            let mut damaged = encoder.clone();
            damage(&mut damaged.squares[0]);
            assert!(!damaged.fits(&schema), "{:?}", damaged.squares[0]);
        }
    }
}
