//! Rows of inputs, stored column by column so that loops over rows vectorise; and rows with targets,
//! weights and noise variances.

use crate::data::encoding::Encoder;
use crate::data::table::Rows;
use crate::stop::until_cancelled;

/// `n` points with `n_inputs` coordinates each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Points {
    n: usize,
    n_inputs: usize,
    /// Inputs x points.
    columns: Vec<f64>,
}

impl Points {
    /// Points from columns (inputs x points).
    pub(crate) fn from_columns(columns: Vec<f64>, n: usize, n_inputs: usize) -> Self {
        assert_eq!(columns.len(), n * n_inputs, "a value for each input");
        Self {
            n,
            n_inputs,
            columns,
        }
    }

    /// Points from rows of f32 values; the first `n_inputs` of every `width` values are inputs.
    pub(crate) fn from_rows(rows: &[f32], width: usize, n_inputs: usize) -> Self {
        let n = rows.len() / width;
        let mut columns = vec![0.0; n * n_inputs];
        let inputs = columns.chunks_exact_mut(n.max(1)).enumerate();
        for (input, column) in until_cancelled(inputs) {
            for (value, row) in column.iter_mut().zip(rows.chunks_exact(width)) {
                *value = f64::from(row[input]);
            }
        }
        Self::from_columns(columns, n, n_inputs)
    }

    /// The encoded rows of a table.
    pub(crate) fn encoded(encoder: &Encoder, rows: &Rows<'_>) -> Self {
        let n_inputs = encoder.n_inputs();
        Self::from_rows(&encoder.encode(rows), n_inputs + 1, n_inputs)
    }

    pub(crate) fn n(&self) -> usize {
        self.n
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// All inputs (inputs x points).
    pub(crate) fn columns(&self) -> &[f64] {
        &self.columns
    }

    /// One input of all points.
    pub(crate) fn column(&self, input: usize) -> &[f64] {
        &self.columns[input * self.n..(input + 1) * self.n]
    }

    /// The inputs of one point.
    pub(crate) fn row(&self, point: usize) -> impl Iterator<Item = f64> {
        let columns = self.columns.chunks_exact(self.n.max(1));
        columns.map(move |column| column[point])
    }

    /// The given points, in that order.
    pub(crate) fn take(&self, points: &[usize]) -> Self {
        let columns = (0..self.n_inputs).flat_map(|input| {
            let column = self.column(input);
            points.iter().map(|&point| column[point])
        });
        Self {
            n: points.len(),
            n_inputs: self.n_inputs,
            columns: columns.collect(),
        }
    }

    /// Points with the given inputs, in that order.
    pub(crate) fn inputs(&self, inputs: &[usize]) -> Self {
        let columns = inputs.iter().flat_map(|&input| self.column(input));
        Self {
            n: self.n,
            n_inputs: inputs.len(),
            columns: columns.copied().collect(),
        }
    }

    /// Points whose inputs are multiplied by one factor each.
    pub(crate) fn times(&self, factors: &[f64]) -> Self {
        let columns = factors.iter().enumerate().flat_map(|(input, factor)| {
            let column = self.column(input).iter();
            column.map(move |value| value * factor)
        });
        Self {
            n: self.n,
            n_inputs: self.n_inputs,
            columns: columns.collect(),
        }
    }
}

/// Rows to condition on: `weight` observations of the value `target` at each point, whose noise has
/// the variance `noise`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observations<'a> {
    pub(crate) points: &'a Points,
    pub(crate) targets: &'a [f64],
    pub(crate) weights: &'a [f64],
    pub(crate) noise: &'a [f64],
}

/// Rows with targets and weights; the noise is a hyper-parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetRows<'a> {
    pub(crate) points: &'a Points,
    pub(crate) targets: &'a [f64],
    pub(crate) weights: &'a [f64],
    /// Noise variance of each row, relative to the hyper-parameter.
    pub(crate) noise_factors: &'a [f64],
}

/// Some of the rows.
#[derive(Debug, Clone)]
pub(crate) struct RowSample {
    points: Points,
    targets: Vec<f64>,
    weights: Vec<f64>,
    noise_factors: Vec<f64>,
}

impl<'a> TargetRows<'a> {
    /// The given rows.
    pub(crate) fn take(&self, rows: &[usize]) -> RowSample {
        let of = |values: &[f64]| rows.iter().map(|&row| values[row]).collect();
        RowSample {
            points: self.points.take(rows),
            targets: of(self.targets),
            weights: of(self.weights),
            noise_factors: of(self.noise_factors),
        }
    }

    /// Noise variance of each row, if the hyper-parameter is `noise`.
    pub(crate) fn noise(&self, noise: f64) -> Vec<f64> {
        let factors = self.noise_factors.iter();
        factors.map(|factor| noise * factor).collect()
    }

    /// The rows with their noise variances.
    pub(crate) fn observations(&self, noise: &'a [f64]) -> Observations<'a> {
        Observations {
            points: self.points,
            targets: self.targets,
            weights: self.weights,
            noise,
        }
    }

    /// Derivative with respect to the hyper-parameter, from those with respect to the noise variances
    /// of the rows.
    pub(crate) fn noise_slope(&self, of_rows: &[f64]) -> f64 {
        let terms = of_rows.iter().zip(self.noise_factors);
        terms.map(|(slope, factor)| slope * factor).sum()
    }
}

impl RowSample {
    pub(crate) fn rows(&self) -> TargetRows<'_> {
        TargetRows {
            points: &self.points,
            targets: &self.targets,
            weights: &self.weights,
            noise_factors: &self.noise_factors,
        }
    }
}
