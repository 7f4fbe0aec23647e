//! Deviations of the members from their mean, in units of the noise, for the candidates of a batch.

use crate::decide::design::member_rows::{MemberChoice, visit_members};
use crate::decide::design::{MAX_MEMBERS, streams};
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::numerics::dot::dot;
use crate::predictive::block::Head;
use crate::reserve::reserve;
use crate::rng::Key;

/// Classes of a row that are used at most: those on which the members disagree most. The
/// information of fewer outputs is a lower bound.
const MAX_CLASSES: usize = 16;
/// Averaged class probabilities count as at least this much; the members hardly differ in them.
const MIN_PROBABILITY: f64 = 1e-12;

/// Scaled deviations of the members on some rows.
#[derive(Debug)]
pub(super) struct ScaledDeviations {
    pub(super) n_members: usize,
    /// Outputs of a row: 1, or a number of classes.
    n_outputs: usize,
    /// Rows x outputs x members.
    values: Vec<f64>,
    /// The class of each output (rows x outputs).
    classes: Vec<u32>,
}

impl ScaledDeviations {
    /// The deviations of the members on `rows`; `noise_sd` is the standard deviation of the noise of
    /// each row of the distribution (regression; not used for classes).
    ///
    /// # Errors
    /// When the model has a single member, or as [`Distribution::members`].
    pub(super) fn of(
        distribution: &Distribution<'_>,
        rows: &[usize],
        noise_sd: &[f64],
        key: Key,
    ) -> Result<Self> {
        check_members(distribution)?;
        let n_classes = distribution.n_outputs();
        let n_members = distribution.n_members().min(MAX_MEMBERS);
        let mut found = Self {
            n_members,
            n_outputs: n_classes.min(MAX_CLASSES),
            values: Vec::new(),
            classes: Vec::new(),
        };
        let width = found.width();
        reserve(&mut found.values, rows.len(), width)?;
        reserve(&mut found.classes, rows.len(), n_classes.min(MAX_CLASSES))?;
        let is_regression = matches!(distribution.head(), Head::Normal { .. });
        let members = MemberChoice {
            n: n_members,
            key: key.child(streams::MEMBERS),
        };
        visit_members(distribution, rows, members, |position, outputs| {
            if is_regression {
                found.push_number(outputs, noise_sd[rows[position]]);
            } else {
                found.push_classes(outputs, n_classes);
            }
        })?;
        Ok(found)
    }

    fn width(&self) -> usize {
        self.n_outputs * self.n_members
    }

    /// Number of outputs of a row.
    pub(super) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// Number of rows.
    pub(super) fn n_rows(&self) -> usize {
        self.classes.len() / self.n_outputs
    }

    /// Deviations of the row at `position` (outputs x members).
    pub(super) fn row(&self, position: usize) -> &[f64] {
        &self.values[position * self.width()..][..self.width()]
    }

    /// Absolute correlation of two rows over the members, summed over the outputs that both rows
    /// have; zero if the members agree on one of the rows.
    pub(super) fn correlation(&self, first: usize, second: usize) -> f64 {
        let norm = |row: &[f64]| dot(row, row).sqrt();
        let scale = norm(self.row(first)) * norm(self.row(second));
        if scale > 0.0 {
            self.product(first, second).abs() / scale
        } else {
            0.0
        }
    }

    /// Sum of the products of the deviations of two rows.
    fn product(&self, first: usize, second: usize) -> f64 {
        let outputs = |position: usize| {
            let classes = &self.classes[position * self.n_outputs..][..self.n_outputs];
            classes
                .iter()
                .zip(self.row(position).chunks_exact(self.n_members))
        };
        let mut sum = 0.0;
        for (class, values) in outputs(first) {
            for (_, others) in outputs(second).filter(|(other, _)| *other == class) {
                sum += dot(values, others);
            }
        }
        sum
    }

    /// Adds a row of means.
    fn push_number(&mut self, means: &[f64], noise_sd: f64) {
        let scale = 1.0 / (self.n_members as f64).sqrt();
        let centre = mean_of(means.iter().copied());
        let deviations = means.iter().map(|mean| (mean - centre) / noise_sd * scale);
        self.values.extend(deviations);
        self.classes.push(0);
    }

    /// Adds a row of class probabilities (members x classes).
    fn push_classes(&mut self, probabilities: &[f64], n_classes: usize) {
        let of_class = |class: usize| probabilities.iter().skip(class).step_by(n_classes);
        let spread = |class: usize| {
            let centre = mean_of(of_class(class).copied());
            let squares = of_class(class).map(|p| (p - centre).powi(2));
            squares.sum::<f64>() / centre.max(MIN_PROBABILITY)
        };
        let mut classes: Vec<(f64, usize)> = (0..n_classes).map(|c| (spread(c), c)).collect();
        // stable: of equal classes the first
        classes.sort_by(|a, b| b.0.total_cmp(&a.0));
        for &(_, class) in &classes[..self.n_outputs] {
            let centre = mean_of(of_class(class).copied());
            let scale = (self.n_members as f64 * centre.max(MIN_PROBABILITY)).sqrt();
            let deviations = of_class(class).map(|p| (p - centre) / scale);
            self.values.extend(deviations);
            self.classes.push(class as u32);
        }
    }
}

fn mean_of(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    // divided first: the sum of numbers near the largest one is finite
    let n = values.len() as f64;
    values.map(|value| value / n).sum()
}

/// Returns an error for a model whose members cannot disagree.
fn check_members(distribution: &Distribution<'_>) -> Result<()> {
    if distribution.n_members() > 1 {
        return Ok(());
    }
    Err(Error::Parameters(vec![
        "the model has a single member and so no knowledge uncertainty; fit it with `n_members` of \
         at least 2, or choose rows at random"
            .to_owned(),
    ]))
}
