//! Permutation importance: every column is shuffled in turn, and the changes of the score, of the
//! prediction and of knowledge uncertainty are measured.
//!
//! Each row takes its cell of the shuffled column from another row; its other cells stay. Averaged
//! over the rows:
//! - the decrease of the log-likelihood and the increase of the error tell how much the model
//!   depends on the column for good predictions;
//! - the change of the prediction tells how much the prediction depends on the column, right or
//!   wrong;
//! - the change of knowledge uncertainty tells how much that uncertainty depends on the column, and
//!   its shift tells the direction: a negative shift means that the rows' own cells make the model
//!   uncertain.
//!
//! Cells may come from a reference table instead: then the shift tells which columns make the rows
//! less familiar to the model than the reference rows.

use std::ops::{ControlFlow, Range};

use serde::Serialize;

use crate::data::table::Table;
use crate::data::target::Target;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::evaluate::scores::{check_classes, unit_of};
use crate::observer::Event;
use crate::par::Pool;
use crate::predictive::block::{Block, Head};
use crate::predictive::categorical::{entropies, most_probable, probabilities};
use crate::predictive::density;
use crate::predictive::moments::{MOMENTS, moments};
use crate::rng::{Key, cycle, shuffle};
use crate::score::log_score::log_probability;
use crate::stop;

/// Log densities of far targets are raised to this one, so that sums over rows do not overflow.
const MIN_LOG_DENSITY: f64 = -1e290;
/// Number of rows of a task; their table is copied once per column.
const ROWS_PER_TASK: usize = 4096;

/// How columns are shuffled.
#[derive(Debug, Clone, Copy)]
pub struct PermutationOptions<'a> {
    /// Number of shuffles of each column.
    pub repeats: usize,
    /// Key of the shuffles; the result of a column does not depend on the other columns.
    pub key: Key,
    /// Reference rows, whose cells replace those of the rows. `None`: the rows themselves.
    pub reference: Option<&'a Table>,
}

/// Mean over shuffles with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Standard error over shuffles (not over rows); `None` for a single shuffle.
    pub se: Option<f64>,
}

impl Estimate {
    /// A mean with its standard error, if there is one.
    pub const fn new(mean: f64, se: Option<f64>) -> Self {
        Self { mean, se }
    }
}

/// Effects of shuffling one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnImportance {
    /// Name of the column.
    pub column: String,
    /// Decrease of the mean log-likelihood of a row; `None` without a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_likelihood_fall: Option<Estimate>,
    /// Increase of the error: root mean square error (regression) or share of wrong labels; `None`
    /// without a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rise: Option<Estimate>,
    /// Change of the prediction of a row: absolute change of the mean in the target's units, or half
    /// the sum of the absolute changes of the class probabilities.
    pub prediction_change: Estimate,
    /// Absolute change of the knowledge uncertainty of a row: a standard deviation in the target's
    /// units, or nats.
    pub knowledge_change: Estimate,
    /// Signed change of the knowledge uncertainty of a row: positive where the cells of other rows
    /// make the model less certain.
    pub knowledge_shift: Estimate,
}

impl ColumnImportance {
    /// Effects on the prediction and, absolute and signed, on the knowledge uncertainty, without scores.
    pub fn new(
        column: String,
        prediction_change: Estimate,
        knowledge_change: Estimate,
        knowledge_shift: Estimate,
    ) -> Self {
        Self {
            column,
            log_likelihood_fall: None,
            error_rise: None,
            prediction_change,
            knowledge_change,
            knowledge_shift,
        }
    }
}

/// Permutation importances of all columns on a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Importances {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of reference rows; `None` without a reference.
    pub n_reference_rows: Option<usize>,
    /// Number of shuffles of each column.
    pub repeats: usize,
    /// Mean log-likelihood of a row before shuffling; `None` without a target.
    pub log_likelihood: Option<f64>,
    /// Root mean square error (regression) or share of wrong labels before shuffling; `None` without
    /// a target.
    pub error: Option<f64>,
    /// Mean knowledge uncertainty of a row before shuffling: a standard deviation in the target's
    /// units, or nats.
    pub knowledge: f64,
    /// Every column, in the order of the model's schema.
    pub columns: Vec<ColumnImportance>,
}

impl Importances {
    /// Importances without scores and without reference rows; `knowledge` is the mean knowledge
    /// uncertainty before shuffling.
    pub fn new(
        n_rows: usize,
        repeats: usize,
        knowledge: f64,
        columns: Vec<ColumnImportance>,
    ) -> Self {
        Self {
            n_rows,
            n_reference_rows: None,
            repeats,
            log_likelihood: None,
            error: None,
            knowledge,
            columns,
        }
    }
}

/// Computes the permutation importance of every column on the rows of `distribution`. Without
/// `target` there are no scores.
///
/// # Errors
/// When there are fewer than two rows to shuffle, no reference rows or no repeats, the targets do
/// not match the model or the number of rows, the reference lacks a column of the model, or the
/// observer stops the computation.
pub fn importances(
    distribution: &Distribution<'_>,
    target: Option<&Target>,
    options: &PermutationOptions<'_>,
) -> Result<Importances> {
    let reference = match options.reference {
        Some(table) => Some(distribution.schema().align(table)?),
        None => None,
    };
    check(distribution, target, options.repeats, reference.as_ref())?;
    let source_rows = (0..options.repeats as u64).map(|repeat| {
        let key = options.key.child(repeat);
        source_rows(key, distribution.n_rows(), reference.as_ref())
    });
    let run = PermutationRun {
        distribution,
        source: reference.as_ref().unwrap_or(distribution.table()),
        source_rows: source_rows.collect(),
        before: measure(distribution, target, 0)?,
        target,
        unit: unit(distribution, target)?,
    };
    let n_rows = distribution.n_rows() as f64;
    let before = run.sums(0..distribution.n_rows(), &run.before);
    let tokens = distribution.observer().cancel_tokens();
    let after = stop::cancellable(tokens, || run.shuffle_columns())?;
    let names = distribution.table().names();
    let columns = names
        .zip(after)
        .map(|(name, repeats)| run.importance(name, &before, &repeats));
    Ok(Importances {
        n_rows: distribution.n_rows(),
        n_reference_rows: reference.as_ref().map(Table::n_rows),
        repeats: options.repeats,
        log_likelihood: target.map(|_| before.log_likelihood / n_rows),
        error: target.map(|_| run.error(&before)),
        knowledge: before.knowledge / n_rows,
        columns: columns.collect(),
    })
}

fn check(
    distribution: &Distribution<'_>,
    target: Option<&Target>,
    repeats: usize,
    reference: Option<&Table>,
) -> Result<()> {
    if let Some(target) = target {
        distribution.require_one_per_row(target.len())?;
        match target {
            Target::Numeric(_) => distribution.require_regression("scores of numbers")?,
            Target::Classes(y) => {
                distribution.require_classification("scores of classes")?;
                check_classes(y, distribution.head().n_components())?;
            }
        }
    }
    let n_rows = distribution.n_rows();
    if repeats == 0 {
        return Err(Error::Parameters(vec![
            "`repeats` = 0: expected a whole number from 1".to_owned(),
        ]));
    }
    match reference {
        Some(reference) if reference.n_rows() == 0 => Err(Error::Table(
            "the reference table has no rows; give one with at least one row".to_owned(),
        )),
        Some(_) if n_rows == 0 => Err(Error::Table("there are no rows to explain".to_owned())),
        None if n_rows < 2 => Err(Error::Table(format!(
            "a column is shuffled among at least 2 rows; n_samples = {n_rows} was given"
        ))),
        _ => Ok(()),
    }
}

/// The source row whose cell each row takes. Without a reference no row keeps its own cell; the
/// reference rows are repeated in one random order.
fn source_rows(key: Key, n_rows: usize, reference: Option<&Table>) -> Vec<usize> {
    let mut rng = key.rng();
    let Some(reference) = reference else {
        return cycle(&mut rng, n_rows);
    };
    let mut rows: Vec<usize> = (0..reference.n_rows()).collect();
    shuffle(&mut rng, &mut rows);
    rows.into_iter().cycle().take(n_rows).collect()
}

/// A power of two near the largest target and mean; squares of errors in this unit do not overflow.
fn unit(distribution: &Distribution<'_>, target: Option<&Target>) -> Result<f64> {
    match target {
        Some(Target::Numeric(y)) => {
            let means = distribution.mean()?;
            Ok(unit_of(means.into_iter().chain(y.iter().copied())))
        }
        _ => Ok(1.0),
    }
}

/// Number of values per row of [`measure`].
fn width(head: Head) -> usize {
    match head {
        Head::Normal { .. } => 3,
        Head::Categorical { classes } => classes + 1,
    }
}

/// The measurements of each row: mean or class probabilities, knowledge uncertainty, and for
/// regression the log density (zero without a target). The rows are those of the target from `first`
/// on.
fn measure(
    distribution: &Distribution<'_>,
    target: Option<&Target>,
    first: usize,
) -> Result<Vec<f64>> {
    let width = width(distribution.head());
    match (distribution.head(), target) {
        (Head::Normal { .. }, target) => distribution.ask(width, |block, rows, out| {
            let y = match target {
                Some(Target::Numeric(y)) => Some(&y[first + rows.start..first + rows.end]),
                _ => None,
            };
            measure_regression(block, y, out);
        }),
        (Head::Categorical { classes }, _) => distribution.ask(width, |block, _, out| {
            measure_classification(block, classes, out);
        }),
    }
}

fn measure_regression(block: &Block, y: Option<&[f64]>, out: &mut [f64]) {
    let n_rows = out.len() / 3;
    let mut parts = vec![0.0; n_rows * MOMENTS];
    moments(block, &mut parts);
    let mut log_density = vec![0.0; n_rows];
    if let Some(y) = y {
        density::log_density(block, y, &mut log_density);
    }
    for (row, out) in out.chunks_exact_mut(3).enumerate() {
        let parts = &parts[row * MOMENTS..][..MOMENTS];
        let log_density = log_density[row].max(MIN_LOG_DENSITY);
        out.copy_from_slice(&[parts[0], parts[5], log_density]);
    }
}

fn measure_classification(block: &Block, classes: usize, out: &mut [f64]) {
    let n_rows = out.len() / (classes + 1);
    let mut means = vec![0.0; n_rows * classes];
    probabilities(block, &mut means);
    let mut parts = vec![0.0; n_rows * 2];
    entropies(block, &mut parts);
    for (row, out) in out.chunks_exact_mut(classes + 1).enumerate() {
        out[..classes].copy_from_slice(&means[row * classes..][..classes]);
        out[classes] = parts[2 * row + 1];
    }
}

/// Sums of the measurements over rows.
#[derive(Debug, Clone, Copy, Default)]
struct ImportanceSums {
    log_likelihood: f64,
    /// Squared errors in units of [`PermutationRun::unit`], or wrong labels.
    error: f64,
    prediction_change: f64,
    knowledge: f64,
    knowledge_change: f64,
}

impl ImportanceSums {
    fn add(&mut self, other: &Self) {
        self.log_likelihood += other.log_likelihood;
        self.error += other.error;
        self.prediction_change += other.prediction_change;
        self.knowledge += other.knowledge;
        self.knowledge_change += other.knowledge_change;
    }
}

/// State that all shuffles share.
struct PermutationRun<'a> {
    distribution: &'a Distribution<'a>,
    /// The rows whose cells are taken: the reference, or the rows themselves.
    source: &'a Table,
    /// For each repeat, the source row of each row.
    source_rows: Vec<Vec<usize>>,
    /// Measurements of the rows before shuffling.
    before: Vec<f64>,
    target: Option<&'a Target>,
    /// Unit of squared errors.
    unit: f64,
}

impl PermutationRun<'_> {
    /// Sums for each column and repeat.
    fn shuffle_columns(&self) -> Result<Vec<Vec<ImportanceSums>>> {
        let n_columns = self.source.columns().len();
        let n_repeats = self.source_rows.len();
        let n_rows = self.distribution.n_rows();
        let n_blocks = n_rows.div_ceil(ROWS_PER_TASK);
        let tasks = self.distribution.pool().map(n_columns * n_blocks, |task| {
            let first = task % n_blocks * ROWS_PER_TASK;
            let rows = first..(first + ROWS_PER_TASK).min(n_rows);
            let report_progress = |repeat: usize| {
                let total = n_columns * n_blocks * n_repeats;
                self.report_progress(task * n_repeats + repeat, total)
            };
            self.shuffle_block(task / n_blocks, rows, report_progress)
        });
        let mut sums = vec![vec![ImportanceSums::default(); n_repeats]; n_columns];
        for (task, block_sums) in tasks.into_iter().enumerate() {
            for (sum, part) in sums[task / n_blocks].iter_mut().zip(&block_sums?) {
                sum.add(part);
            }
        }
        Ok(sums)
    }

    fn report_progress(&self, done: usize, total: usize) -> Result<()> {
        let event = Event::new("shuffling", done, total);
        match self.distribution.observer().on_event(&event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(_) => Err(Error::Cancelled),
        }
    }

    /// Sums over a block of rows for each repeat, with shuffled cells of one column.
    /// `report_progress` may stop the computation before each repeat.
    fn shuffle_block(
        &self,
        column: usize,
        rows: Range<usize>,
        report_progress: impl Fn(usize) -> Result<()>,
    ) -> Result<Vec<ImportanceSums>> {
        let table = (self.distribution.table()).try_take(&rows.clone().collect::<Vec<_>>())?;
        // blocks run in parallel, so each predicts on one thread
        let single_thread = Pool::new(1)?;
        let mut shuffled = self.distribution.for_rows(table, &single_thread);
        let source = &self.source.columns()[column];
        let repeats = self.source_rows.iter().enumerate();
        let sums = repeats.map(|(repeat, source_rows)| {
            report_progress(repeat)?;
            shuffled.replace_column(column, source.take(&source_rows[rows.clone()]));
            let after = measure(&shuffled, self.target, rows.start)?;
            Ok(self.sums(rows.clone(), &after))
        });
        sums.collect()
    }

    /// Sums over a range of rows, from their measurements after shuffling.
    fn sums(&self, rows: Range<usize>, after: &[f64]) -> ImportanceSums {
        let width = width(self.distribution.head());
        let before = self.before[rows.start * width..].chunks_exact(width);
        let mut sums = ImportanceSums::default();
        for ((row, before), after) in rows.zip(before).zip(after.chunks_exact(width)) {
            sums.add(&self.row(row, before, after));
        }
        sums
    }

    fn row(&self, row: usize, before: &[f64], after: &[f64]) -> ImportanceSums {
        // the knowledge uncertainty follows the mean or the class probabilities
        let n_predictions = match self.distribution.head() {
            Head::Normal { .. } => 1,
            Head::Categorical { classes } => classes,
        };
        let pairs = before[..n_predictions].iter().zip(&after[..n_predictions]);
        let change: f64 = pairs.map(|(before, after)| (after - before).abs()).sum();
        let (log_likelihood, error) = match self.target {
            None => (0.0, 0.0),
            Some(Target::Numeric(y)) => {
                let error = after[0] / self.unit - y[row] / self.unit;
                (after[2], error * error)
            }
            Some(Target::Classes(y)) => {
                let is_wrong = most_probable(&after[..n_predictions]) != y[row];
                let probability = after[y[row] as usize];
                (log_probability(probability), f64::from(u8::from(is_wrong)))
            }
        };
        let (knowledge_before, knowledge) = (before[n_predictions], after[n_predictions]);
        ImportanceSums {
            log_likelihood,
            error,
            prediction_change: if n_predictions > 1 {
                0.5 * change
            } else {
                change
            },
            knowledge,
            knowledge_change: (knowledge - knowledge_before).abs(),
        }
    }

    /// Root mean square error, or share of wrong labels.
    fn error(&self, sums: &ImportanceSums) -> f64 {
        let mean = sums.error / self.distribution.n_rows() as f64;
        match self.distribution.head() {
            Head::Normal { .. } => mean.sqrt() * self.unit,
            Head::Categorical { .. } => mean,
        }
    }

    fn importance(
        &self,
        name: &str,
        before: &ImportanceSums,
        repeats: &[ImportanceSums],
    ) -> ColumnImportance {
        let n_rows = self.distribution.n_rows() as f64;
        let over_repeats = |of: &dyn Fn(&ImportanceSums) -> f64| {
            estimate(&repeats.iter().map(of).collect::<Vec<_>>())
        };
        let scored = |of: &dyn Fn(&ImportanceSums) -> f64| self.target.map(|_| over_repeats(of));
        ColumnImportance {
            column: name.to_owned(),
            log_likelihood_fall: scored(&|sums| {
                before.log_likelihood / n_rows - sums.log_likelihood / n_rows
            }),
            error_rise: scored(&|sums| self.error(sums) - self.error(before)),
            prediction_change: over_repeats(&|sums| sums.prediction_change / n_rows),
            knowledge_change: over_repeats(&|sums| sums.knowledge_change / n_rows),
            knowledge_shift: over_repeats(&|sums| {
                sums.knowledge / n_rows - before.knowledge / n_rows
            }),
        }
    }
}

/// Mean and standard error, computed in a unit in which squares do not overflow.
fn estimate(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    let unit = unit_of(values.iter().copied());
    let mean = values.iter().map(|value| value / unit).sum::<f64>() / n;
    let squares = values.iter().map(|value| (value / unit - mean).powi(2));
    let se = (values.len() > 1).then(|| (squares.sum::<f64>() / (n - 1.0) / n).sqrt() * unit);
    Estimate {
        mean: mean * unit,
        se,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn means_and_standard_errors() {
        // by hand: squares around 2.5 add up to 5, so the error is the root of 5 / 3 / 4
        for unit in [1.0, 1e300, 1e-300] {
            let found = estimate(&[1.0, 2.0, 3.0, 4.0].map(|value| value * unit));
            let se = (5.0_f64 / 12.0).sqrt();
            close(
                &[found.mean / unit, found.se.unwrap() / unit],
                &[2.5, se],
                1e-14,
            );
        }
        assert_eq!(estimate(&[7.0]).se, None);
    }

    #[test]
    fn no_row_keeps_its_own_cell_and_reference_rows_are_used_equally_often() {
        for n in [2, 3, 10, 101] {
            let mut rows = source_rows(Key::from_seed(n as u64), n, None);
            assert!(rows.iter().enumerate().all(|(row, &from)| row != from));
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..n));
        }
        let column = crate::data::column::Column::numeric("a", vec![0.0; 4]);
        let reference = Table::new(vec![column]).unwrap();
        let rows = source_rows(Key::from_seed(0), 10, Some(&reference));
        let times = |row: usize| rows.iter().filter(|&&from| from == row).count();
        assert!((0..4).all(|row| (2..=3).contains(&times(row))), "{rows:?}");
    }
}
