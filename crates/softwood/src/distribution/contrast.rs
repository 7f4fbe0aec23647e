//! Contrasts: the difference of two predictions under the same members, such as the effect of a
//! treatment.

use std::ops::Range;

use crate::distribution::predictions::member_outputs;
use crate::distribution::stop_check::StopCheck;
use crate::distribution::{BLOCKS_PER_TASK, Distribution};
use crate::error::{Error, Result};
use crate::predictive::block::Block;
use crate::reserve::{reserve, zeros};

/// The difference of two predictions of one model for paired rows. Each member is a function that
/// is evaluated on both rows of a pair, so that the differences of the members show how certain the
/// model is of the difference. Outputs are the conditional mean (regression), or the probability of
/// each class (classification).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Contrast {
    /// Number of outputs: 1, or the number of classes.
    pub n_outputs: usize,
    /// Mean over the members (row-major, rows x outputs).
    pub mean: Vec<f64>,
    /// Standard deviation over the members: knowledge (epistemic) uncertainty of the difference
    /// (row-major, rows x outputs).
    pub std: Vec<f64>,
    /// Quantiles over the members, interpolated (row-major, rows x outputs x levels).
    pub quantiles: Vec<f64>,
    /// Mean over the rows for each member: a sample of the average difference (row-major, members
    /// x outputs).
    pub member_means: Vec<f64>,
}

impl Distribution<'_> {
    /// Calls `compute` on the blocks of both tables for every range of rows, in one pass: on the
    /// block of `self`, the block of `other`, the range of rows and the output of `width` values per
    /// row. Returns all outputs (row-major, rows x width).
    ///
    /// # Errors
    /// When the two predictions are of different models or numbers of rows, or as
    /// [`Model::members`](crate::Model::members).
    pub fn ask_pair(
        &self,
        other: &Distribution<'_>,
        width: usize,
        compute: impl Fn(&Block, &Block, Range<usize>, &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        let tasks = self.map_pairs(other, |rows| {
            let mut values = zeros(rows.len(), width)?;
            self.each_pair(other, rows.clone(), |first, second, range| {
                let at = (range.start - rows.start) * width..(range.end - rows.start) * width;
                compute(first, second, range, &mut values[at]);
            })?;
            Ok(values)
        })?;
        let mut all = Vec::new();
        reserve(&mut all, self.n_rows(), width)?;
        all.extend(tasks.into_iter().flatten());
        Ok(all)
    }

    /// The prediction of `self` minus that of `other`, which is of the same model for as many rows;
    /// quantiles over the members at `levels`.
    ///
    /// ```
    /// use softwood::models::TreeParams;
    /// use softwood::{Column, Dataset, Fit, Model, Roles, Table};
    ///
    /// // the treatment adds 2 to the outcome
    /// let treated: Vec<f64> = (0..100).map(|row| f64::from(row % 2)).collect();
    /// let y = treated.iter().zip(0..).map(|(t, row)| 2.0 * t + 0.1 * f64::from(row % 7)).collect();
    /// let table = Table::new(vec![Column::numeric("treated", treated), Column::numeric("y", y)])?;
    /// let roles = Roles { target: "y".to_owned(), ..Roles::default() };
    /// let model = TreeParams::default().fit(&Dataset::from_table(&table, &roles)?)?;
    ///
    /// let rows = model.predict(&table)?;
    /// let all = rows.with_column(Column::numeric("treated", vec![1.0; 100]))?;
    /// let none = rows.with_column(Column::numeric("treated", vec![0.0; 100]))?;
    /// let effect = all.contrast(&none, &[0.05, 0.95])?;
    /// assert!((effect.mean[0] - 2.0).abs() < 0.1);
    /// # Ok::<(), softwood::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Distribution::ask_pair`].
    pub fn contrast(&self, other: &Distribution<'_>, levels: &[f64]) -> Result<Contrast> {
        if let Some(level) = levels.iter().find(|level| !(0.0..=1.0).contains(*level)) {
            return Err(Error::Parameters(vec![format!(
                "level {level}: expected a number from 0 to 1"
            )]));
        }
        let (n_members, n_outputs) = (self.n_members(), self.n_outputs());
        let all: Vec<usize> = (0..n_members).collect();
        let width = n_members * n_outputs;
        let n_quantiles = n_outputs * levels.len();
        let stop_check = StopCheck::of(self);
        let tasks = self.map_pairs(other, |rows| {
            let mut part = Contrast::empty(n_outputs, width);
            reserve(&mut part.quantiles, rows.len(), n_quantiles)?;
            self.each_pair(other, rows, |first, second, range| {
                let (mut ours, mut theirs) = (
                    vec![0.0; range.len() * width],
                    vec![0.0; range.len() * width],
                );
                member_outputs(first, &all, &mut ours);
                member_outputs(second, &all, &mut theirs);
                for (ours, theirs) in ours.iter_mut().zip(&theirs) {
                    *ours -= theirs;
                }
                for row in ours.chunks_exact(width) {
                    if stop_check.is_stopped(range.start) {
                        return;
                    }
                    part.push_row(row, levels);
                }
            })?;
            Ok(part)
        })?;
        let mut contrast = Contrast::empty(n_outputs, width);
        reserve(&mut contrast.quantiles, self.n_rows(), n_quantiles)?;
        for part in tasks {
            contrast.mean.extend(part.mean);
            contrast.std.extend(part.std);
            contrast.quantiles.extend(part.quantiles);
            for (sum, part) in contrast.member_means.iter_mut().zip(part.member_means) {
                *sum += part;
            }
        }
        for mean in &mut contrast.member_means {
            *mean /= self.n_rows().max(1) as f64;
        }
        stop_check.finish(contrast)?.check()
    }

    /// Calls `compute` on ranges of paired rows, in parallel; the results are in order.
    fn map_pairs<T: Send>(
        &self,
        other: &Distribution<'_>,
        compute: impl Fn(Range<usize>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let is_same_model = std::ptr::addr_eq(self.model, other.model);
        if !is_same_model || self.n_rows() != other.n_rows() {
            return Err(Error::Table(format!(
                "a contrast needs two predictions of one model for equally many rows; these are for {} and {} rows{}",
                self.n_rows(),
                other.n_rows(),
                if is_same_model {
                    ""
                } else {
                    " of different models"
                }
            )));
        }
        let rows_per_task = self.rows_per_block() * BLOCKS_PER_TASK;
        self.cancellable(|| {
            let tasks = self
                .pool()
                .map_blocks(self.n_rows(), rows_per_task, compute);
            tasks.into_iter().collect()
        })
    }

    /// Computes the blocks of both tables for a range of rows one after the other.
    fn each_pair(
        &self,
        other: &Distribution<'_>,
        rows: Range<usize>,
        mut visit: impl FnMut(&Block, &Block, Range<usize>),
    ) -> Result<()> {
        let rows_per_block = self.rows_per_block();
        let mut second = other.new_block(rows_per_block.min(rows.len()));
        self.each_block(rows, rows_per_block, |first, range| {
            other.fill_block(range.clone(), &mut second)?;
            first.check()?;
            second.check()?;
            visit(first, &second, range);
            Ok(())
        })
    }
}

impl Contrast {
    fn empty(n_outputs: usize, width: usize) -> Self {
        Self {
            n_outputs,
            mean: Vec::new(),
            std: Vec::new(),
            quantiles: Vec::new(),
            member_means: vec![0.0; width],
        }
    }

    /// Returns an error if a difference is too large for a number.
    fn check(self) -> Result<Self> {
        let parts = [&self.mean, &self.std, &self.quantiles, &self.member_means];
        if parts.into_iter().flatten().all(|number| number.is_finite()) {
            return Ok(self);
        }
        Err(Error::Table(
            "the difference of two predictions exceeds the largest number; divide the target before the fit"
                .to_owned(),
        ))
    }

    /// Adds the differences of all members on a row (members x outputs).
    fn push_row(&mut self, row: &[f64], levels: &[f64]) {
        for (sum, difference) in self.member_means.iter_mut().zip(row) {
            *sum += difference;
        }
        for output in 0..self.n_outputs {
            let mut values: Vec<f64> = row
                .iter()
                .skip(output)
                .step_by(self.n_outputs)
                .copied()
                .collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let unit = unit_of(&values);
            let variance = values
                .iter()
                .map(|value| ((value - mean) / unit).powi(2))
                .sum::<f64>()
                / n;
            self.mean.push(mean);
            self.std.push(variance.sqrt() * unit);
            if !levels.is_empty() {
                values.sort_by(f64::total_cmp);
                let quantiles = levels.iter().map(|level| interpolated(&values, *level));
                self.quantiles.extend(quantiles);
            }
        }
    }
}

/// A unit in which the squares of the values are finite: one, but for huge values.
fn unit_of(values: &[f64]) -> f64 {
    const HUGE: f64 = 1e150;
    let largest = values
        .iter()
        .fold(0.0, |largest: f64, value| largest.max(value.abs()));
    if largest > HUGE { largest } else { 1.0 }
}

/// The quantile of sorted values, linear between neighbouring ones.
fn interpolated(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}
