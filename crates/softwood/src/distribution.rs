//! The predictive distribution of a model for a table. Every method asks the model for its members'
//! distributions block by block, so that memory does not grow with rows x members x components.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::ops::{ControlFlow, Range};

use crate::data::column::Column;
use crate::data::schema::Schema;
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::observer::{NoObserver, Observer, Progress};
use crate::par::Pool;
use crate::predictive::block::{Block, Head};
use crate::predictive::moments::{Moments, Uncertainty};
use crate::predictive::{categorical, crps, density, moments, quantile, sample};
use crate::rng::Key;

/// The predictive distribution of a model for the rows of a table: moments, quantiles, densities,
/// samples, class probabilities.
pub struct Distribution<'a> {
    model: &'a dyn Model,
    table: Cow<'a, Table>,
    pool: &'a Pool,
    observer: &'a dyn Observer,
}

impl Debug for Distribution<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distribution")
            .field("model", &self.model)
            .field("n_rows", &self.n_rows())
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// Number of values per array of a block; such a block fits into the second-level cache.
const BLOCK_VALUES: usize = 1 << 15;
/// Number of blocks that one task computes in the same memory.
const BLOCKS_PER_TASK: usize = 16;

impl<'a> Distribution<'a> {
    /// The prediction of `model` for the rows of `table`; columns are matched by name.
    ///
    /// # Errors
    /// When a column is absent or of the wrong kind.
    pub fn new(model: &'a dyn Model, table: &Table, pool: &'a Pool) -> Result<Self> {
        Ok(Self {
            model,
            table: Cow::Owned(model.schema().align(table)?),
            pool,
            observer: &NoObserver,
        })
    }

    /// As [`Distribution::new`], but borrows a table that [`Schema::align`] has aligned instead of
    /// copying it.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    pub fn borrowing(model: &'a dyn Model, table: &'a Table, pool: &'a Pool) -> Result<Self> {
        let schema = model.schema();
        let table = if schema.is_aligned(table) {
            Cow::Borrowed(table)
        } else {
            Cow::Owned(schema.align(table)?)
        };
        Ok(Self {
            model,
            table,
            pool,
            observer: &NoObserver,
        })
    }

    /// Sets an observer that receives every block of rows and may stop a computation, which then
    /// returns [`Error::Cancelled`].
    #[must_use]
    pub fn observed_by(self, observer: &'a dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows()
    }

    /// Columns and task of the model.
    pub fn schema(&self) -> &Schema {
        self.model.schema()
    }

    /// The rows, aligned to the schema.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn pool(&self) -> &Pool {
        self.pool
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        self.observer
    }

    /// The prediction of the same model for other rows that are aligned already.
    pub(crate) fn for_rows<'b>(&'b self, table: Table, pool: &'b Pool) -> Distribution<'b> {
        Distribution {
            model: self.model,
            table: Cow::Owned(table),
            pool,
            observer: &NoObserver,
        }
    }

    /// Replaces a column by another one with the categories of the schema.
    pub(crate) fn replace_column(&mut self, index: usize, column: Column) {
        self.table.to_mut().replace_column(index, column);
    }

    /// Shape of the distributions of the members.
    pub fn head(&self) -> Head {
        self.model.head()
    }

    /// Number of members.
    pub fn n_members(&self) -> usize {
        self.model.n_members()
    }

    /// Calls `compute` on every block of rows with the range of its rows and the output of `width`
    /// values per row; returns all outputs (row-major, rows x width).
    ///
    /// # Errors
    /// As [`Model::members`].
    pub fn ask(
        &self,
        width: usize,
        compute: impl Fn(&Block, Range<usize>, &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        let values_per_row = self.model.n_members() * self.model.head().n_components();
        let rows_per_block = (BLOCK_VALUES / values_per_row.max(1))
            .next_multiple_of(16)
            .clamp(16, 256);
        let rows_per_task = rows_per_block * BLOCKS_PER_TASK;
        let results = self.pool.map_blocks(self.n_rows(), rows_per_task, |rows| {
            self.compute_range(rows, rows_per_block, width, &compute)
        });
        let mut all = Vec::with_capacity(self.n_rows() * width);
        for values in results {
            all.extend(values?);
        }
        Ok(all)
    }

    /// Computes the blocks of a range of rows one after the other in the same memory.
    fn compute_range(
        &self,
        rows: Range<usize>,
        rows_per_block: usize,
        width: usize,
        compute: impl Fn(&Block, Range<usize>, &mut [f64]),
    ) -> Result<Vec<f64>> {
        let new_block = |n_rows| Block::new(self.model.head(), self.model.n_members(), n_rows);
        let mut values = vec![0.0; rows.len() * width];
        let mut block = new_block(rows_per_block.min(rows.len()));
        let chunks = values.chunks_mut((rows_per_block * width).max(1));
        for (start, values) in rows.clone().step_by(rows_per_block).zip(chunks) {
            let range = start..(start + rows_per_block).min(rows.end);
            self.report_progress(start)?;
            if range.len() != block.n_rows {
                block = new_block(range.len());
            }
            self.model
                .members(&self.table.rows(range.clone()), &mut block)?;
            compute(&block, range, values);
        }
        Ok(values)
    }

    fn report_progress(&self, row: usize) -> Result<()> {
        let progress = Progress {
            stage: "predicting",
            done: row,
            total: self.n_rows(),
            elbo: None,
            held_out: None,
        };
        match self.observer.step(&progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

/// Predictions in the target's units. Every call evaluates the model again, block by block.
///
/// # Errors
/// All methods fail as [`Model::members`] does, and if the method does not match the task, if there
/// is not one target value per row, or if a level is not between 0 and 1.
#[allow(clippy::missing_errors_doc)]
impl Distribution<'_> {
    /// Predictive mean of each row (regression).
    pub fn mean(&self) -> Result<Vec<f64>> {
        Ok(self.moments()?.mean)
    }

    /// Predictive standard deviation of each row (regression).
    pub fn sd(&self) -> Result<Vec<f64>> {
        Ok(self.moments()?.sd)
    }

    /// Total, data (aleatoric) and knowledge (epistemic) uncertainty of each row: variances
    /// (regression) or entropies in nats (classification). Data uncertainty is the noise that no
    /// amount of training data removes; knowledge uncertainty is the disagreement of the members
    /// and shrinks with more data.
    pub fn uncertainty(&self) -> Result<Uncertainty> {
        if matches!(self.head(), Head::Normal { .. }) {
            return Ok(self.moments()?.variance);
        }
        let parts = self.ask(2, |block, _, out| categorical::entropies(block, out))?;
        let (data, knowledge) = parts.chunks_exact(2).map(|row| (row[0], row[1])).unzip();
        Ok(Uncertainty::sum_of(data, knowledge))
    }

    /// Mean, standard deviation and variance decomposition in one pass (regression).
    pub fn moments(&self) -> Result<Moments> {
        self.require_regression("a mean")?;
        let rows = self.ask(moments::MOMENTS, |block, _, out| {
            moments::moments(block, out);
        })?;
        Ok(Moments::from_rows(&rows))
    }

    /// Quantiles of each row (regression; row-major, rows x levels).
    pub fn quantile(&self, levels: &[f64]) -> Result<Vec<f64>> {
        self.require_regression("quantiles")?;
        if let Some(level) = levels.iter().find(|&&level| !(level > 0.0 && level < 1.0)) {
            return Err(Error::Parameters(vec![format!(
                "level {level}: expected a number above 0 and below 1"
            )]));
        }
        self.ask(levels.len(), |block, _, out| {
            quantile::quantiles(block, levels, out);
        })
    }

    /// Central interval that contains the target with probability `level` (regression; row-major,
    /// rows x 2).
    pub fn interval(&self, level: f64) -> Result<Vec<f64>> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::Parameters(vec![format!(
                "level {level}: expected a number above 0 and below 1"
            )]));
        }
        self.quantile(&[0.5 - 0.5 * level, 0.5 + 0.5 * level])
    }

    /// Cumulative distribution function at `y`, one value per row (regression).
    pub fn cdf(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.evaluate_at(y, "a cdf", density::cdf)
    }

    /// Natural logarithm of the density at `y`, one value per row (regression).
    pub fn log_density(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.evaluate_at(y, "a density", density::log_density)
    }

    /// Continuous ranked probability score at `y`, one value per row, in the target's units
    /// (regression).
    pub fn crps(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.evaluate_at(y, "a CRPS", crps::crps)
    }

    /// Independent draws of the target: numbers, or class indices (row-major, rows x n). Row `r`
    /// uses the random stream `key.child(r)`.
    pub fn sample(&self, n: usize, key: Key) -> Result<Vec<f64>> {
        self.ask(n, |block, rows, out| {
            sample::draws(block, rows.start, n, key, out);
        })
    }

    /// Conditional means of `n` random members, the same members on every row (regression;
    /// row-major, rows x n). Members repeat only if `n` exceeds their number.
    pub fn sample_functions(&self, n: usize, key: Key) -> Result<Vec<f64>> {
        self.require_regression("sampled functions")?;
        let members = sample::choose_members(self.n_members(), n, key);
        self.ask(n, |block, _, out| {
            moments::member_means(block, &members, out);
        })
    }

    /// Class probabilities of each row (classification; row-major, rows x classes).
    pub fn probabilities(&self) -> Result<Vec<f64>> {
        self.require_classification("probabilities")?;
        self.ask(self.head().n_components(), |block, _, out| {
            categorical::probabilities(block, out);
        })
    }

    /// The most probable class of each row (classification).
    pub fn labels(&self) -> Result<Vec<u32>> {
        let probabilities = self.probabilities()?;
        let rows = probabilities.chunks_exact(self.head().n_components());
        Ok(rows.map(categorical::most_probable).collect())
    }

    pub(crate) fn require_regression(&self, what: &str) -> Result<()> {
        match self.head() {
            Head::Normal { .. } => Ok(()),
            Head::Categorical { .. } => Err(wrong_task(what, "regression")),
        }
    }

    pub(crate) fn require_classification(&self, what: &str) -> Result<()> {
        match self.head() {
            Head::Normal { .. } => Err(wrong_task(what, "classification")),
            Head::Categorical { .. } => Ok(()),
        }
    }

    pub(crate) fn require_one_per_row(&self, given: usize) -> Result<()> {
        if given == self.n_rows() {
            return Ok(());
        }
        Err(Error::Table(format!(
            "{given} target values for {} rows; expected one for each row",
            self.n_rows()
        )))
    }

    fn evaluate_at(
        &self,
        y: &[f64],
        what: &str,
        compute: impl Fn(&Block, &[f64], &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        self.require_regression(what)?;
        self.require_one_per_row(y.len())?;
        self.ask(1, |block, rows, out| compute(block, &y[rows], out))
    }
}

fn wrong_task(what: &str, task: &str) -> Error {
    Error::Table(format!("{what} can only be asked of a {task} model"))
}
