//! The predictive distribution of a model for a table. Every method asks the model for its members'
//! distributions block by block, so that memory does not grow with rows x members x components.

mod contrast;
mod predictions;
mod stop_check;

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::data::column::Column;
use crate::data::schema::Schema;
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::observer::{Event, NoObserver, Observer};
use crate::par::Pool;
use crate::reserve::zeros;
use crate::stop;

pub use crate::extrapolation::Extrapolation;
pub use crate::model::JointNormal;
pub use crate::predictive::block::{
    AddedVariance, Block, ComponentParameters, Head, LANES, NormalParameters,
};
pub use crate::predictive::moments::{Moments, Uncertainty};
pub use contrast::Contrast;
pub use predictions::{ClassSummary, RegressionSummary};

/// The predictive distribution of a model for the rows of a table: moments, quantiles, densities,
/// samples, class probabilities.
pub struct Distribution<'a> {
    model: &'a dyn Model,
    table: Cow<'a, Table>,
    pool: PoolHandle<'a>,
    observer: &'a dyn Observer,
    /// Whether rows away from the training rows are widened.
    is_widened: bool,
}

/// A thread pool that the distribution borrows, or shares with copies of itself.
#[derive(Debug, Clone)]
enum PoolHandle<'a> {
    Borrowed(&'a Pool),
    Shared(Arc<Pool>),
}

impl Debug for Distribution<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distribution")
            .field("model", &self.model)
            .field("n_rows", &self.n_rows())
            .field("pool", self.pool())
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
            pool: PoolHandle::Borrowed(pool),
            observer: &NoObserver,
            is_widened: true,
        })
    }

    /// As [`Distribution::new`], on all threads of the machine.
    ///
    /// # Errors
    /// As [`Distribution::new`].
    pub(crate) fn on_all_threads(model: &'a dyn Model, table: &Table) -> Result<Self> {
        Ok(Self {
            model,
            table: Cow::Owned(model.schema().align(table)?),
            pool: PoolHandle::Shared(Arc::new(Pool::new(0)?)),
            observer: &NoObserver,
            is_widened: true,
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
            pool: PoolHandle::Borrowed(pool),
            observer: &NoObserver,
            is_widened: true,
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
        match &self.pool {
            PoolHandle::Borrowed(pool) => pool,
            PoolHandle::Shared(pool) => pool,
        }
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        self.observer
    }

    /// The prediction of the same model for other rows that are aligned already.
    pub(crate) fn for_rows<'b>(&'b self, table: Table, pool: &'b Pool) -> Distribution<'b> {
        Distribution {
            model: self.model,
            table: Cow::Owned(table),
            pool: PoolHandle::Borrowed(pool),
            observer: &NoObserver,
            is_widened: true,
        }
    }

    /// The same prediction without the widening of rows away from the training rows, for questions
    /// whose answers do not depend on it.
    fn without_widening(&self) -> Distribution<'_> {
        Distribution {
            model: self.model,
            table: Cow::Borrowed(&self.table),
            pool: PoolHandle::Borrowed(self.pool()),
            observer: self.observer,
            is_widened: false,
        }
    }

    /// Replaces a column by another one with the categories of the schema.
    pub(crate) fn replace_column(&mut self, index: usize, column: Column) {
        self.table.to_mut().replace_column(index, column);
    }

    /// The prediction of the same model for the same rows with one column replaced, such as the
    /// treatment of a counterfactual.
    ///
    /// # Errors
    /// When the model has no column of that name, or the column is of the wrong kind or length.
    pub fn with_column(&self, column: Column) -> Result<Distribution<'a>> {
        let schema = self.schema();
        if !schema.fields.iter().any(|field| field.name == column.name) {
            return Err(Error::column(&column.name, "the model has no such column"));
        }
        let table = self.table.clone().into_owned().with_column(column)?;
        Ok(Distribution {
            model: self.model,
            table: Cow::Owned(schema.align_owned(table)?),
            pool: self.pool.clone(),
            observer: self.observer,
            is_widened: self.is_widened,
        })
    }

    /// The joint distribution of the regression function at all rows, for models that have it in
    /// closed form; `None` for the others.
    ///
    /// # Errors
    /// As [`Model::joint`].
    pub fn joint(&self) -> Result<Option<JointNormal>> {
        self.model.joint(&self.table.rows(0..self.n_rows()))
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
        let [values] = self.ask_many([width], |block, rows, [out]| compute(block, rows, out))?;
        Ok(values)
    }

    /// As [`Distribution::ask`], with several outputs of their own widths in one pass over the
    /// model.
    ///
    /// # Errors
    /// As [`Model::members`], and [`Error::Memory`] if the outputs do not fit into memory.
    pub fn ask_many<const N: usize>(
        &self,
        widths: [usize; N],
        compute: impl Fn(&Block, Range<usize>, [&mut [f64]; N]) + Sync,
    ) -> Result<[Vec<f64>; N]> {
        self.ask_blocks(widths, Block::check, compute)
    }

    /// As [`Distribution::ask_many`], with members that may not be finite: the caller checks the
    /// outputs.
    fn ask_unchecked<const N: usize>(
        &self,
        widths: [usize; N],
        compute: impl Fn(&Block, Range<usize>, [&mut [f64]; N]) + Sync,
    ) -> Result<[Vec<f64>; N]> {
        self.ask_blocks(widths, |_| Ok(()), compute)
    }

    fn ask_blocks<const N: usize>(
        &self,
        widths: [usize; N],
        check: impl Fn(&Block) -> Result<()> + Sync,
        compute: impl Fn(&Block, Range<usize>, [&mut [f64]; N]) + Sync,
    ) -> Result<[Vec<f64>; N]> {
        let rows_per_block = self.rows_per_block();
        let mut all = widths.map(|_| Vec::new());
        for (values, width) in all.iter_mut().zip(widths) {
            *values = zeros(self.n_rows(), width)?;
        }
        let outputs = all.each_mut().map(Vec::as_mut_slice);
        let mut tasks = task_outputs(outputs, widths, self.n_rows(), rows_per_block);
        let compute_task = |_, task: &mut TaskOutput<'_, N>| {
            let TaskOutput {
                rows,
                values,
                result,
            } = task;
            *result = self.each_block(rows.clone(), rows_per_block, |block, range| {
                let (first, n) = (range.start - rows.start, range.len());
                let mut at = 0;
                let outputs = values.each_mut().map(|values| {
                    let width = widths[at];
                    at += 1;
                    &mut values[first * width..(first + n) * width]
                });
                check(block)?;
                compute(block, range, outputs);
                Ok(())
            });
        };
        self.cancellable(|| {
            self.pool().each(&mut tasks, compute_task);
            tasks.into_iter().try_for_each(|task| task.result)
        })?;
        Ok(all)
    }

    /// Runs `work`, which the observer may cancel between two pieces of a block.
    fn cancellable<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        stop::cancellable(self.observer.cancel_tokens(), work)
    }

    /// Number of rows of a block that fits into the cache.
    fn rows_per_block(&self) -> usize {
        let values_per_row = self.n_members() * self.head().n_components();
        (BLOCK_VALUES / values_per_row.max(1))
            .next_multiple_of(LANES)
            .clamp(LANES, 256)
    }

    /// Computes the blocks of a range of rows one after the other in the same memory.
    fn each_block(
        &self,
        rows: Range<usize>,
        rows_per_block: usize,
        mut visit: impl FnMut(&Block, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut block = self.new_block(rows_per_block.min(rows.len()));
        for start in rows.clone().step_by(rows_per_block) {
            let range = start..(start + rows_per_block).min(rows.end);
            stop::check()?;
            self.report_progress(start)?;
            self.fill_block(range.clone(), &mut block)?;
            visit(&block, range)?;
        }
        Ok(())
    }

    fn new_block(&self, n_rows: usize) -> Block {
        Block::new(self.head(), self.n_members(), n_rows)
    }

    /// Computes the members' distributions on some rows.
    fn fill_block(&self, rows: Range<usize>, block: &mut Block) -> Result<()> {
        if rows.len() != block.n_rows {
            *block = self.new_block(rows.len());
        }
        let rows = self.table.rows(rows);
        block.added = None;
        self.model.members(&rows, block)?;
        let extrapolation = self.model.extrapolation();
        if let Some(extrapolation) = extrapolation.filter(|_| self.is_widened) {
            extrapolation.widen(&rows, block);
        }
        Ok(())
    }

    fn report_progress(&self, row: usize) -> Result<()> {
        let event = Event::new("predicting", row, self.n_rows());
        match self.observer.on_event(&event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(_) => Err(Error::Cancelled),
        }
    }
}

/// The rows of one task and their part of each output.
struct TaskOutput<'a, const N: usize> {
    rows: Range<usize>,
    values: [&'a mut [f64]; N],
    result: Result<()>,
}

/// Divides outputs of the given widths among tasks of whole blocks.
fn task_outputs<const N: usize>(
    mut outputs: [&mut [f64]; N],
    widths: [usize; N],
    n_rows: usize,
    rows_per_block: usize,
) -> Vec<TaskOutput<'_, N>> {
    let rows_per_task = rows_per_block * BLOCKS_PER_TASK;
    let mut tasks = Vec::with_capacity(n_rows.div_ceil(rows_per_task));
    for start in (0..n_rows).step_by(rows_per_task) {
        let rows = start..(start + rows_per_task).min(n_rows);
        let mut at = 0;
        let values = outputs.each_mut().map(|rest| {
            let (part, others) = std::mem::take(rest).split_at_mut(rows.len() * widths[at]);
            at += 1;
            *rest = others;
            part
        });
        tasks.push(TaskOutput {
            rows,
            values,
            result: Ok(()),
        });
    }
    tasks
}
