//! The dense encoding of a table for soft models: scaled numbers with indicators of missing cells, one-hot categories,
//! an optional rotation of the numbers, optional squares of either, and a last input of ones.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::column::{Column, MISSING, Values};
use crate::data::schema::{FieldKind, Schema};
use crate::data::standardise::Standard;
use crate::data::table::{Rows, Table};
use crate::numerics::eigen;
use crate::params::choices;

choices! {
    /// Rotation of the numeric inputs.
    Rotation {
        /// The columns as they are.
        None = "none",
        /// Their whitened principal components.
        Pca = "pca",
        /// Both side by side.
        Both = "both",
    }
}

choices! {
    /// Scaling of the numeric inputs.
    Scaling {
        /// Mean 0 and standard deviation 1.
        Standard = "standard",
        /// Mapped through their ranks to a standard Normal.
        Quantile = "quantile",
    }
}

/// How to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) scaling: Scaling,
    pub(crate) rotation: Rotation,
    /// Whether the squares of the numeric inputs are inputs too.
    pub(crate) squares: bool,
    /// Categories per column that get an input of their own.
    pub(crate) max_categories: usize,
}

/// A number's way to its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Number {
    /// Index of the column in the schema.
    column: usize,
    /// Stands for a missing cell.
    mean: f64,
    sd: f64,
    /// Whether missing cells have an indicator.
    has_missing: bool,
    /// Values at equal steps of rank, for quantile scaling; empty for standard scaling.
    knots: Vec<f64>,
}

/// The square of a numeric input `x`, without what is linear in it: `(x^2 - slope x - shift) / scale`.
///
/// Inputs that follow each other closely make poor gradients, and `x` is an input already. Beyond the training range
/// the square stays at its end: nothing is known of the curve there, and `x` itself goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Square {
    /// Index of the numeric input.
    input: usize,
    low: f64,
    high: f64,
    slope: f64,
    shift: f64,
    scale: f64,
}

/// A category's way to its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Category {
    column: usize,
    /// Input of each level, counted within the column; `None` where training had no such row.
    input_of_level: Vec<Option<usize>>,
    /// Input of missing cells, where training had any.
    missing: Option<usize>,
    n_inputs: usize,
}

/// A fitted encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    numbers: Vec<Number>,
    categories: Vec<Category>,
    /// Whitening rows, each as long as `numbers`; empty without rotation.
    rotation: Vec<f64>,
    /// Whether the unrotated numbers are inputs too.
    keeps_numbers: bool,
    /// Squares of numeric inputs, rotated ones included.
    #[serde(default)]
    squares: Vec<Square>,
}

/// A cell whose category training never saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// Row, counted from the first row asked.
    pub(crate) row: usize,
    /// Index of the column in the schema.
    pub(crate) column: usize,
    /// Inputs of the categories that training saw there.
    pub(crate) inputs: Range<usize>,
}

/// Inputs are held inside this many standard deviations, so that no cell can overflow a product.
const LIMIT: f64 = 1e3;
/// Squares are taken of inputs within this many standard deviations: an outlier would outweigh all other rows.
const SQUARE_LIMIT: f64 = 4.0;
/// Least standard deviation of a square's part that is not linear; a column of two values has none.
const LEAST_CURVE: f64 = 1e-4;
/// Principal components below this part of the largest are rounding noise.
const LEAST_EIGENVALUE: f64 = 1e-9;
/// Steps of rank of the quantile scaling.
const N_KNOTS: usize = 200;

impl Encoder {
    /// Learns the encoding of a training table with row weights.
    pub(crate) fn fit(table: &Table, weights: &[f64], encoding: Encoding) -> Self {
        let mut numbers = Vec::new();
        let mut categories = Vec::new();
        for (index, column) in table.columns().iter().enumerate() {
            match &column.values {
                Values::Numeric(values) => {
                    numbers.extend(Number::fit(index, values, weights, encoding.scaling));
                }
                Values::Categorical { codes, levels } => {
                    categories.push(Category::fit(
                        index,
                        codes,
                        weights,
                        (levels.len(), encoding.max_categories),
                    ));
                }
            }
        }
        let mut encoder = Self {
            numbers,
            categories,
            rotation: Vec::new(),
            keeps_numbers: true,
            squares: Vec::new(),
        };
        if encoding.rotation != Rotation::None && encoder.numbers.len() > 1 {
            encoder.rotation = encoder.whiten(table, weights);
            encoder.keeps_numbers = encoding.rotation == Rotation::Both;
        }
        if encoding.squares {
            encoder.squares = encoder.fit_squares(table, weights);
        }
        encoder
    }

    fn fit_squares(&self, table: &Table, weights: &[f64]) -> Vec<Square> {
        let width = self.n_inputs() + 1;
        let rows = self.encode(&table.rows(0..table.n_rows()));
        let column = |input: usize| {
            let values = rows.iter().skip(input).step_by(width);
            values.map(|&x| f64::from(x)).collect::<Vec<f64>>()
        };
        (0..self.n_numeric())
            .filter_map(|input| Square::fit(input, &column(input), weights))
            .collect()
    }

    /// Inputs that are numbers or their rotations; they stand first.
    fn n_numeric(&self) -> usize {
        let plain = if self.keeps_numbers {
            self.numbers.len()
        } else {
            0
        };
        plain + self.n_rotated()
    }

    fn n_rotated(&self) -> usize {
        self.rotation.len() / self.numbers.len().max(1)
    }

    /// Inputs per row, the bias apart.
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

    /// Whether every column it looks at is in the schema, as the right kind: an encoder from a file may not be.
    pub(crate) fn fits(&self, schema: &Schema) -> bool {
        let kind = |column: usize| schema.fields.get(column).map(|field| &field.kind);
        let numbers = self.numbers.iter().all(|number| {
            kind(number.column) == Some(&FieldKind::Numeric)
                && number.sd > 0.0
                && number.knots.len() != 1
        });
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
        let is_whole = self.rotation.len() == self.n_rotated() * self.numbers.len();
        let squares = (self.squares.iter())
            .all(|square| square.input < self.n_numeric() && square.is_sound());
        numbers && categories && is_whole && squares
    }

    /// Whether there are numbers to take squares of.
    pub(crate) fn can_square(table: &Table) -> bool {
        (table.columns().iter()).any(|column| matches!(column.values, Values::Numeric(_)))
    }

    /// Whether the numbers have more than one direction to rotate.
    pub(crate) fn can_rotate(table: &Table) -> bool {
        let is_number = |column: &&Column| matches!(column.values, Values::Numeric(_));
        table.columns().iter().filter(is_number).count() > 1
    }

    /// Encoded rows, `n_rows x (n_inputs + 1)`, the last input being one.
    pub(crate) fn encode(&self, rows: &Rows<'_>) -> Vec<f32> {
        let width = self.n_inputs() + 1;
        let mut out = vec![0.0; rows.len() * width];
        let mut scaled = vec![0.0; self.numbers.len()];
        for (row, out) in rows.range.clone().zip(out.chunks_exact_mut(width)) {
            let mut at = 0;
            for (number, scaled) in self.numbers.iter().zip(&mut scaled) {
                *scaled = number.scale(number.cell(rows.table, row));
            }
            if self.keeps_numbers {
                for (out, &scaled) in out.iter_mut().zip(&scaled) {
                    *out = scaled as f32;
                }
                at += scaled.len();
            }
            for direction in self.rotation.chunks_exact(scaled.len().max(1)) {
                let sum: f64 = direction.iter().zip(&scaled).map(|(a, b)| a * b).sum();
                out[at] = sum.clamp(-LIMIT, LIMIT) as f32;
                at += 1;
            }
            for square in &self.squares {
                out[at] = square.apply(f64::from(out[square.input])) as f32;
                at += 1;
            }
            for number in self.numbers.iter().filter(|number| number.has_missing) {
                out[at] = f32::from(u8::from(number.cell(rows.table, row).is_nan()));
                at += 1;
            }
            for category in &self.categories {
                if let Some(input) = category.input(rows.table, row) {
                    out[at + input] = 1.0;
                }
                at += category.n_inputs;
            }
            out[width - 1] = 1.0;
        }
        out
    }

    /// Cells whose category training never saw, so that none of its inputs is set.
    pub(crate) fn unseen(&self, rows: &Rows<'_>) -> Vec<Unseen> {
        let mut found = Vec::new();
        let one_hot: usize = self
            .categories
            .iter()
            .map(|category| category.n_inputs)
            .sum();
        let mut start = self.n_inputs() - one_hot;
        for category in &self.categories {
            let n_levels = category.n_inputs - usize::from(category.missing.is_some());
            for (at, row) in rows.range.clone().enumerate() {
                if n_levels > 0 && category.input(rows.table, row).is_none() {
                    found.push(Unseen {
                        row: at,
                        column: category.column,
                        inputs: start..start + n_levels,
                    });
                }
            }
            start += category.n_inputs;
        }
        found
    }

    /// Rows v / sqrt(lambda) of the eigenvectors of the scaled numbers' covariance.
    fn whiten(&self, table: &Table, weights: &[f64]) -> Vec<f64> {
        let d = self.numbers.len();
        let mut covariance = vec![0.0; d * d];
        let mut scaled = vec![0.0; d];
        for row in 0..table.n_rows() {
            for (number, scaled) in self.numbers.iter().zip(&mut scaled) {
                *scaled = number.scale(number.cell(table, row));
            }
            for i in 0..d {
                for j in 0..=i {
                    covariance[i * d + j] += weights[row] * scaled[i] * scaled[j];
                }
            }
        }
        let total: f64 = weights.iter().sum();
        for i in 0..d {
            for j in 0..=i {
                covariance[i * d + j] /= total;
                covariance[j * d + i] = covariance[i * d + j];
            }
        }
        let (values, vectors) = eigen::symmetric(&covariance, d);
        let floor = LEAST_EIGENVALUE * values.first().copied().unwrap_or(0.0);
        let kept = values
            .iter()
            .zip(vectors.chunks_exact(d))
            .filter(|(value, _)| **value > floor);
        kept.flat_map(|(value, vector)| vector.iter().map(move |x| x / value.sqrt()))
            .collect()
    }
}

impl Number {
    /// `None` where the column says nothing: all missing, or constant without missing cells.
    fn fit(column: usize, values: &[f64], weights: &[f64], scaling: Scaling) -> Option<Self> {
        let mut present: Vec<(f64, f64)> = values
            .iter()
            .copied()
            .zip(weights.iter().copied())
            .filter(|(value, _)| !value.is_nan())
            .collect();
        let has_missing = present.len() < values.len();
        present.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (present.first()?.0, present.last()?.0);
        let largest = first.abs().max(last.abs());
        let is_constant = last - first <= 1e-12 * largest;
        if is_constant && !has_missing {
            return None;
        }
        let (sorted, weights): (Vec<f64>, Vec<f64>) = present.into_iter().unzip();
        let Standard {
            shift: mean,
            scale: sd,
        } = Standard::fit(&sorted, Some(&weights));
        let ranked = scaling == Scaling::Quantile && !is_constant;
        let knots = if ranked {
            knots_of(&sorted, &weights)
        } else {
            Vec::new()
        };
        Some(Self {
            column,
            mean,
            sd,
            has_missing,
            knots,
        })
    }

    fn cell(&self, table: &Table, row: usize) -> f64 {
        match &table.columns()[self.column].values {
            Values::Numeric(values) => values[row],
            Values::Categorical { .. } => f64::NAN,
        }
    }

    fn scale(&self, value: f64) -> f64 {
        if value.is_nan() {
            return 0.0;
        }
        if self.knots.is_empty() {
            ((value - self.mean) / self.sd).clamp(-LIMIT, LIMIT)
        } else {
            self.rank_score(value)
        }
    }

    /// Normal score of the value's interpolated rank; beyond the ends the line of the standard scaling goes on.
    fn rank_score(&self, value: f64) -> f64 {
        let last = self.knots.len() - 1;
        let at = self.knots.partition_point(|&knot| knot < value);
        let score = |rank: f64| normal_score((rank + 0.5) / (last as f64 + 1.0));
        if at == 0 || at > last {
            let end = if at == 0 { 0 } else { last };
            let beyond = (value - self.knots[end]) / self.sd;
            return (score(end as f64) + beyond).clamp(-LIMIT, LIMIT);
        }
        // a run of equal knots stands at the middle of its ranks
        let low = self.knots[at - 1];
        let high = self.knots[at];
        let run_end = self.knots.partition_point(|&knot| knot <= value);
        if run_end > at {
            return score(0.5 * (at as f64 + (run_end - 1) as f64));
        }
        score((at - 1) as f64 + (value - low) / (high - low))
    }
}

impl Square {
    /// `None` where the square is a linear function of the input.
    fn fit(input: usize, values: &[f64], weights: &[f64]) -> Option<Self> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = (least.max(-SQUARE_LIMIT), most.min(SQUARE_LIMIT));
        if low >= high {
            return None;
        }
        let total: f64 = weights.iter().sum();
        let mean = |of: &dyn Fn(f64) -> f64| {
            let terms = values.iter().zip(weights);
            terms
                .map(|(x, weight)| weight * of(x.clamp(low, high)))
                .sum::<f64>()
                / total
        };
        let (first, second) = (mean(&|x| x), mean(&|x| x * x));
        let variance = mean(&|x| (x - first) * (x - first));
        let slope = mean(&|x| (x - first) * (x * x - second)) / variance;
        let shift = second - slope * first;
        let scale = mean(&|x| (x * x - slope * x - shift).powi(2)).sqrt();
        let is_curved = slope.is_finite() && scale > LEAST_CURVE;
        is_curved.then_some(Self {
            input,
            low,
            high,
            slope,
            shift,
            scale,
        })
    }

    /// Whether it can be applied to any number: one from a file may not be.
    fn is_sound(&self) -> bool {
        -LIMIT <= self.low
            && self.low <= self.high
            && self.high <= LIMIT
            && self.slope.is_finite()
            && self.shift.is_finite()
            && self.scale > 0.0
            && self.scale.is_finite()
    }

    fn apply(&self, x: f64) -> f64 {
        let x = x.clamp(self.low, self.high);
        ((x * x - self.slope * x - self.shift) / self.scale).clamp(-LIMIT, LIMIT)
    }
}

/// The standard Normal number with probability `p` below it.
fn normal_score(p: f64) -> f64 {
    std::f64::consts::SQRT_2 * statrs::function::erf::erf_inv(2.0 * p - 1.0)
}

/// Values at equal steps of weighted rank.
fn knots_of(sorted: &[f64], weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let n_knots = N_KNOTS.min(sorted.len()).max(2);
    let mut knots = Vec::with_capacity(n_knots);
    let (mut at, mut below) = (0, 0.0);
    for knot in 0..n_knots {
        let rank = total * (knot as f64 + 0.5) / n_knots as f64;
        while at + 1 < sorted.len() && below + weights[at] < rank {
            below += weights[at];
            at += 1;
        }
        knots.push(sorted[at]);
    }
    knots
}

impl Category {
    fn fit(
        column: usize,
        codes: &[u32],
        weights: &[f64],
        (n_levels, max_categories): (usize, usize),
    ) -> Self {
        let mut counts = vec![0.0; n_levels];
        for (&code, weight) in codes
            .iter()
            .zip(weights)
            .filter(|(code, _)| (**code as usize) < n_levels)
        {
            counts[code as usize] += weight;
        }
        let mut by_count: Vec<usize> = (0..n_levels).filter(|&level| counts[level] > 0.0).collect();
        by_count.sort_by(|&a, &b| counts[b].total_cmp(&counts[a]));
        let mut input_of_level = vec![None; n_levels];
        for (rank, &level) in by_count.iter().enumerate() {
            // from the cap on, all share the input "other"
            input_of_level[level] = Some(rank.min(max_categories));
        }
        let mut n_inputs = by_count.len().min(max_categories + 1);
        let missing = codes.contains(&MISSING).then(|| {
            n_inputs += 1;
            n_inputs - 1
        });
        Self {
            column,
            input_of_level,
            missing,
            n_inputs,
        }
    }

    fn input(&self, table: &Table, row: usize) -> Option<usize> {
        match &table.columns()[self.column].values {
            Values::Categorical { codes, .. } if codes[row] == MISSING => self.missing,
            Values::Categorical { codes, .. } => self
                .input_of_level
                .get(codes[row] as usize)
                .copied()
                .flatten(),
            Values::Numeric(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::schema::Task;
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
    fn numbers_are_standardised_and_missing_cells_flagged() {
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
    fn rare_categories_fold_and_unseen_ones_vanish() {
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
    fn quantile_scaling_is_monotone_and_tames_heavy_tails() {
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
    fn squares_are_standardised_and_share_nothing_linear_with_their_input() {
        let skewed: Vec<f64> = (0..200).map(|i| (f64::from(i) / 60.0).exp()).collect();
        let coin: Vec<f64> = (0..200).map(|i| f64::from(i % 2)).collect();
        let table = Table::new(vec![
            Column::numeric("skewed", skewed),
            Column::numeric("coin", coin),
        ])
        .unwrap();
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], SQUARED);
        // the square of a column of two values is linear in it, so there is one square, not two
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
    fn squares_stay_at_the_ends_of_the_training_range() {
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
        // a missing cell stands at the mean, in the square too
        close(&squares[5..], &squares[4..5], 1e-6);
    }

    #[test]
    fn unsound_squares_are_refused() {
        let table = Table::new(vec![Column::numeric("a", (0..50).map(f64::from).collect())]);
        let table = table.unwrap();
        let schema = Schema::of(&table, "t", Task::Regression);
        let encoder = Encoder::fit(&table, &vec![1.0; table.n_rows()], SQUARED);
        assert!(encoder.fits(&schema));
        let spoil: [fn(&mut Square); 6] = [
            |square| square.input = 1,
            |square| square.low = 1e3 + 1.0,
            |square| square.high = f64::NAN,
            |square| square.slope = f64::INFINITY,
            |square| square.shift = f64::NAN,
            |square| square.scale = 0.0,
        ];
        for spoil in spoil {
            let mut damaged = encoder.clone();
            spoil(&mut damaged.squares[0]);
            assert!(!damaged.fits(&schema), "{:?}", damaged.squares[0]);
        }
    }
}
