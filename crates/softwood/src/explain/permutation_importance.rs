//! What the columns are worth to a fitted model: every column is shuffled in turn, and what that
//! does to the score, to the prediction and to knowledge uncertainty is measured.
//!
//! Row `i` of column `c` takes its cell from another row; all its other cells stay. Averaged over
//! the rows:
//! - the fall of the log-likelihood and the rise of the error say what the model would lose without
//!   the column's order;
//! - the change of the prediction says how much the answer leans on the column, right or wrong;
//! - the change of knowledge says how much being sure or unsure hangs on the column, and its shift,
//!   with its sign, where other cells would lead: below zero, the rows' own cells are what makes
//!   the model unsure.
//!
//! Cells may come from a reference table instead: then the shift tells which columns make these
//! rows less known than those.

use std::ops::{ControlFlow, Range};

use serde::Serialize;

use crate::data::table::Table;
use crate::data::target::Target;
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::evaluate::scores::{check_classes, unit_of};
use crate::observer::Progress;
use crate::par::Pool;
use crate::predictive::block::{Block, Head};
use crate::predictive::categorical::{entropies, most_probable, probabilities};
use crate::predictive::density;
use crate::predictive::moments::{MOMENTS, moments};
use crate::rng::{Key, cycle, shuffle};
use crate::score::log_score::log_probability;

/// Rows that one task takes at a time: their table is copied once per column.
const ROWS_PER_TASK: usize = 4096;

/// How columns are shuffled.
#[derive(Debug, Clone, Copy)]
pub struct PermutationOptions<'a> {
    /// Times that each column is shuffled.
    pub repeats: usize,
    /// Address of the shuffles; a column's figures do not depend on the other columns.
    pub key: Key,
    /// Rows that lend their cells; the rows themselves where `None`.
    pub reference: Option<&'a Table>,
}

/// A mean over shuffles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error over shuffles (not over rows); none of a single shuffle.
    pub se: Option<f64>,
}

/// What shuffling one column does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnImportance {
    /// The column.
    pub column: String,
    /// By how much the mean log-likelihood of a row falls; none without a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_likelihood_fall: Option<Estimate>,
    /// By how much the error rises: root mean square (regression) or share of wrong labels; none
    /// without a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rise: Option<Estimate>,
    /// How far a row's prediction moves: absolute change of the mean in the target's units, or half
    /// the sum of the absolute changes of the class probabilities.
    pub prediction_change: Estimate,
    /// How far a row's knowledge uncertainty moves, up or down: a standard deviation in the
    /// target's units, or nats.
    pub knowledge_change: Estimate,
    /// The same with its sign: above zero, the cells of other rows make the model less sure.
    pub knowledge_shift: Estimate,
}

/// What each column is worth to a model on some rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importances {
    /// Rows asked.
    pub n_rows: usize,
    /// Rows that lent their cells; none where the rows themselves did.
    pub n_reference_rows: Option<usize>,
    /// Shuffles of each column.
    pub repeats: usize,
    /// Mean log-likelihood of a row before shuffling; none without a target.
    pub log_likelihood: Option<f64>,
    /// Root mean square error (regression) or share of wrong labels before shuffling; none without
    /// a target.
    pub error: Option<f64>,
    /// Mean knowledge uncertainty of a row before shuffling: a standard deviation in the target's
    /// units, or nats.
    pub knowledge: f64,
    /// Every column, in the order of the model's schema.
    pub columns: Vec<ColumnImportance>,
}

/// Measures what each column is worth to the model on the rows of `distribution`. Without `target`
/// nothing is scored.
///
/// # Errors
/// When there are fewer than two rows to shuffle, no rows to lend cells, no repeats, targets that
/// do not fit the model or the number of rows, a reference without the model's columns, or the
/// observer asked to stop.
pub fn importances(
    distribution: &Distribution<'_>,
    target: Option<&Target>,
    shuffling: &PermutationOptions<'_>,
) -> Result<Importances> {
    let lent = match shuffling.reference {
        Some(table) => Some(distribution.schema().align(table)?),
        None => None,
    };
    check(distribution, target, shuffling.repeats, lent.as_ref())?;
    let lender = lent.as_ref().unwrap_or(distribution.table());
    let orders = (0..shuffling.repeats as u64).map(|repeat| {
        let key = shuffling.key.child(repeat);
        order(key, distribution.n_rows(), lent.as_ref())
    });
    let ground = PermutationRun {
        distribution,
        lender,
        orders: orders.collect(),
        before: answers(distribution, target, 0)?,
        target,
        unit: unit(distribution, target)?,
    };
    let n_rows = distribution.n_rows() as f64;
    let before = ground.sums(0..distribution.n_rows(), &ground.before);
    let after = ground.shuffled()?;
    let names = distribution.table().names();
    let columns = names
        .zip(after)
        .map(|(name, repeats)| ground.importance(name, &before, &repeats));
    Ok(Importances {
        n_rows: distribution.n_rows(),
        n_reference_rows: lent.as_ref().map(Table::n_rows),
        repeats: shuffling.repeats,
        log_likelihood: target.map(|_| before.log_likelihood / n_rows),
        error: target.map(|_| ground.error(&before)),
        knowledge: before.knowledge / n_rows,
        columns: columns.collect(),
    })
}

fn check(
    distribution: &Distribution<'_>,
    target: Option<&Target>,
    repeats: usize,
    lent: Option<&Table>,
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
    match lent {
        Some(lent) if lent.n_rows() == 0 => Err(Error::Table(
            "the reference has no rows that could lend their cells".to_owned(),
        )),
        Some(_) if n_rows == 0 => Err(Error::Table("there are no rows to explain".to_owned())),
        None if n_rows < 2 => Err(Error::Table(format!(
            "a column is shuffled among at least 2 rows; n_samples = {n_rows} was given"
        ))),
        _ => Ok(()),
    }
}

/// Which row lends its cell to each row. Among themselves no row keeps its own; a reference is gone
/// through in random order, again and again until all rows are served.
fn order(key: Key, n_rows: usize, lent: Option<&Table>) -> Vec<usize> {
    let mut rng = key.rng();
    let Some(lent) = lent else {
        return cycle(&mut rng, n_rows);
    };
    let mut rows: Vec<usize> = (0..lent.n_rows()).collect();
    shuffle(&mut rng, &mut rows);
    rows.into_iter().cycle().take(n_rows).collect()
}

/// A power of two near the largest target and mean, in whose units squares of errors stay in range.
fn unit(distribution: &Distribution<'_>, target: Option<&Target>) -> Result<f64> {
    match target {
        Some(Target::Numeric(y)) => {
            let means = distribution.mean()?;
            Ok(unit_of(means.into_iter().chain(y.iter().copied())))
        }
        _ => Ok(1.0),
    }
}

/// Array per row of [`answers`].
fn width(head: Head) -> usize {
    match head {
        Head::Normal { .. } => 3,
        Head::Categorical { classes } => classes + 1,
    }
}

/// What is measured of each row: mean or class probabilities, knowledge uncertainty, and log
/// density (zero without a target). The rows are those of the target from `first` on.
fn answers(
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
            numbers(block, y, out);
        }),
        (Head::Categorical { classes }, _) => distribution.ask(width, |block, _, out| {
            shares(block, classes, out);
        }),
    }
}

fn numbers(block: &Block, y: Option<&[f64]>, out: &mut [f64]) {
    let n_rows = out.len() / 3;
    let mut parts = vec![0.0; n_rows * MOMENTS];
    moments(block, &mut parts);
    let mut log_density = vec![0.0; n_rows];
    if let Some(y) = y {
        density::log_density(block, y, &mut log_density);
    }
    for (row, out) in out.chunks_exact_mut(3).enumerate() {
        let parts = &parts[row * MOMENTS..][..MOMENTS];
        out.copy_from_slice(&[parts[0], parts[5], log_density[row]]);
    }
}

fn shares(block: &Block, classes: usize, out: &mut [f64]) {
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

/// ImportanceSums over rows of what is measured.
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

/// What all shuffles share.
struct PermutationRun<'a> {
    distribution: &'a Distribution<'a>,
    lender: &'a Table,
    /// For each repeat, which row lends to which.
    orders: Vec<Vec<usize>>,
    /// Answers to the rows as they are.
    before: Vec<f64>,
    target: Option<&'a Target>,
    unit: f64,
}

impl PermutationRun<'_> {
    /// ImportanceSums of each column and repeat.
    fn shuffled(&self) -> Result<Vec<Vec<ImportanceSums>>> {
        let n_columns = self.lender.columns().len();
        let n_rows = self.distribution.n_rows();
        let n_blocks = n_rows.div_ceil(ROWS_PER_TASK);
        let tasks = self.distribution.pool().map(n_columns * n_blocks, |task| {
            let first = task % n_blocks * ROWS_PER_TASK;
            let rows = first..(first + ROWS_PER_TASK).min(n_rows);
            let look = |repeat: usize| {
                let n_repeats = self.orders.len();
                self.look(task * n_repeats + repeat, n_columns * n_blocks * n_repeats)
            };
            self.shuffle_block(task / n_blocks, rows, look)
        });
        let mut sums = vec![vec![ImportanceSums::default(); self.orders.len()]; n_columns];
        for (task, found) in tasks.into_iter().enumerate() {
            for (sum, part) in sums[task / n_blocks].iter_mut().zip(&found?) {
                sum.add(part);
            }
        }
        Ok(sums)
    }

    fn look(&self, done: usize, total: usize) -> Result<()> {
        let progress = Progress {
            stage: "shuffling",
            done,
            total,
            elbo: None,
            held_out: None,
        };
        match self.distribution.observer().step(&progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }

    /// ImportanceSums over some rows of each repeat, with cells of one column lent; `look` may stop
    /// it before each repeat.
    fn shuffle_block(
        &self,
        column: usize,
        rows: Range<usize>,
        look: impl Fn(usize) -> Result<()>,
    ) -> Result<Vec<ImportanceSums>> {
        let own: Vec<usize> = rows.clone().collect();
        // tasks run side by side, so each asks its own rows alone
        let alone = Pool::new(1)?;
        let mut asked = self
            .distribution
            .for_rows(self.distribution.table().take(&own), &alone);
        let lender = &self.lender.columns()[column];
        let sums = self.orders.iter().enumerate().map(|(repeat, order)| {
            look(repeat)?;
            asked.replace_column(column, lender.take(&order[rows.clone()]));
            let answers = answers(&asked, self.target, rows.start)?;
            Ok(self.sums(rows.clone(), &answers))
        });
        sums.collect()
    }

    /// ImportanceSums over some rows, given their answers.
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
        let at = match self.distribution.head() {
            Head::Normal { .. } => 1,
            Head::Categorical { classes } => classes,
        };
        let pairs = before[..at].iter().zip(&after[..at]);
        let moved: f64 = pairs.map(|(before, after)| (after - before).abs()).sum();
        let (log_likelihood, error) = match self.target {
            None => (0.0, 0.0),
            Some(Target::Numeric(y)) => {
                let error = after[0] / self.unit - y[row] / self.unit;
                (after[2], error * error)
            }
            Some(Target::Classes(y)) => {
                let is_wrong = most_probable(&after[..at]) != y[row];
                let probability = after[y[row] as usize];
                (log_probability(probability), f64::from(u8::from(is_wrong)))
            }
        };
        ImportanceSums {
            log_likelihood,
            error,
            prediction_change: if at > 1 { 0.5 * moved } else { moved },
            knowledge: after[at],
            knowledge_change: (after[at] - before[at]).abs(),
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
            measured(&repeats.iter().map(of).collect::<Vec<_>>())
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

/// Mean and standard error, in units in which no square leaves the range of numbers.
fn measured(values: &[f64]) -> Estimate {
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
            let found = measured(&[1.0, 2.0, 3.0, 4.0].map(|value| value * unit));
            let se = (5.0_f64 / 12.0).sqrt();
            close(
                &[found.mean / unit, found.se.unwrap() / unit],
                &[2.5, se],
                1e-14,
            );
        }
        assert_eq!(measured(&[7.0]).se, None);
    }

    #[test]
    fn no_row_keeps_its_own_cell_and_a_reference_serves_all_alike() {
        for n in [2, 3, 10, 101] {
            let mut rows = order(Key::from_seed(n as u64), n, None);
            assert!(rows.iter().enumerate().all(|(row, &from)| row != from));
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..n));
        }
        let column = crate::data::column::Column::numeric("a", vec![0.0; 4]);
        let lent = Table::new(vec![column]).unwrap();
        let rows = order(Key::from_seed(0), 10, Some(&lent));
        let times = |row: usize| rows.iter().filter(|&&from| from == row).count();
        assert!((0..4).all(|row| (2..=3).contains(&times(row))), "{rows:?}");
    }
}
