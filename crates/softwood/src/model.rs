//! The exit of every family: a model answers rows with its members' distributions, and one driver
//! asks it block by block, so that memory does not grow with rows x members x components.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::ops::{ControlFlow, Range};

use serde::{Deserialize, Serialize};

use crate::data::column::Column;
use crate::data::schema::Schema;
use crate::data::table::{Rows, Table};
use crate::error::{Error, Result};
use crate::explain::tree_export::TreeExport;
use crate::observer::{NoObserver, Observer, Progress};
use crate::par::Pool;
use crate::predictive::block::{Block, Head};
use crate::predictive::moments::{Moments, Uncertainty};
use crate::predictive::{categorical, crps, density, moments, quantile, sample};
use crate::rng::Key;
use crate::store::record::Record;

/// One point of the loss curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Epochs or trees so far, as [`Training::step`] says.
    pub epoch: usize,
    /// Evidence lower bound per row; mean log-likelihood of the training rows where a family has no
    /// such bound.
    pub elbo: f64,
    /// Mean held-out log-likelihood in standardised units, where it was measured.
    pub held_out: Option<f64>,
}

/// A configuration that was tried and what the held-out rows said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The configuration, as a user reads it.
    pub what: String,
    /// Mean held-out log-likelihood in standardised units.
    pub held_out: f64,
}

/// What the points of a loss curve count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CurveUnit {
    /// Passes through the rows; the training loss is an evidence lower bound.
    #[default]
    Epoch,
    /// Boosted trees; the training loss is a log-likelihood.
    Tree,
}

/// How a model came about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Training {
    /// The loss curve of the final run.
    pub curve: Vec<CurvePoint>,
    /// What was tried, in the order of trial.
    pub trials: Vec<Trial>,
    /// What was chosen, as a user reads it.
    pub chosen: String,
    /// Standard deviation of the training target, dividing by n; none for classification.
    #[serde(default)]
    pub target_sd: Option<f64>,
    /// What the points of the curve count.
    #[serde(default)]
    pub step: CurveUnit,
    /// How far the members differ, where a family tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<MemberReport>,
}

/// How far members differ, on a few training rows, and what to think of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Members.
    pub n_members: usize,
    /// Chains that they were taken from.
    pub n_chains: usize,
    /// Rows that they were compared on.
    pub n_rows: usize,
    /// Independent members that they are worth, for the outputs that tell knowledge uncertainty.
    pub effective: f64,
    /// Output by output.
    pub outputs: Vec<OutputSpread>,
    /// Why knowledge uncertainty should not be trusted, if so.
    pub warning: Option<String>,
}

/// How far members differ in one output; variances are means over rows, in the target's units
/// squared for a mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSpread {
    /// The output, as a user reads it.
    pub name: String,
    /// Independent members that they are worth.
    pub effective: f64,
    /// Square root of the variance of all members over that within a chain, where there are several
    /// chains of several members: near 1 where chains agree.
    pub r_hat: Option<f64>,
    /// Variance of all members.
    pub variance: f64,
    /// Variance of the means of chains, where there are several.
    pub between_chains: Option<f64>,
    /// Mean variance of the members of a chain, where it has several.
    pub within_chains: Option<f64>,
    /// Variance of all members over that of the model of a constant.
    pub spread: f64,
}

/// A fitted model.
pub trait Model: Debug + Send + Sync {
    /// The columns it wants and what it predicts.
    fn schema(&self) -> &Schema;
    /// The shape of its members' distributions.
    fn head(&self) -> Head;
    /// Number of members.
    fn n_members(&self) -> usize;
    /// Every member's distribution on a block of rows. `out` comes in the right shape.
    ///
    /// # Errors
    /// When the rows do not fit the schema.
    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()>;
    /// How it came about.
    fn training(&self) -> &Training;
    /// Everything needed to build it again.
    fn record(&self) -> Record;
    /// The parameters that it was fitted with, as a JSON object.
    fn params_json(&self) -> String {
        let record = self.record();
        record
            .meta
            .get("params")
            .unwrap_or(&serde_json::Value::Null)
            .to_string()
    }
    /// What the splits on each column gained in training, as parts of the whole; none for a family
    /// that does not split on columns.
    fn gains(&self) -> Option<Vec<f64>> {
        None
    }
    /// The tree, where the model is a single one of hard tests.
    fn tree_export(&self) -> Option<TreeExport> {
        None
    }
}

/// A model's answer to a table: ask it for moments, quantiles, densities, samples.
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

/// Values per block array that keep a block inside the second-level cache.
const BLOCK_VALUES: usize = 1 << 15;
/// Blocks that one task asks in turn, so that their memory is made once.
const BLOCKS_PER_TASK: usize = 16;

impl<'a> Distribution<'a> {
    /// The answer of `model` to the rows of `table`, columns matched by name.
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

    /// As [`Distribution::new`] for a table that outlives the answer: one that [`Schema::align`]
    /// made is not copied.
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

    /// The same answer, with a observer that hears of every block of rows and may stop a question:
    /// it then ends in [`Error::Cancelled`].
    #[must_use]
    pub fn observed_by(self, observer: &'a dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows()
    }

    /// The columns and what is predicted.
    pub fn schema(&self) -> &Schema {
        self.model.schema()
    }

    /// The rows, aligned with the schema.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn pool(&self) -> &Pool {
        self.pool
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        self.observer
    }

    /// The same model's answer to other rows that are aligned already.
    pub(crate) fn of_rows<'b>(&'b self, table: Table, pool: &'b Pool) -> Distribution<'b> {
        Distribution {
            model: self.model,
            table: Cow::Owned(table),
            pool,
            observer: &NoObserver,
        }
    }

    /// Puts other cells, coded as the schema says, in the place of a column.
    pub(crate) fn put(&mut self, at: usize, column: Column) {
        self.table.to_mut().replace_column(at, column);
    }

    /// The shape of the members' distributions.
    pub fn head(&self) -> Head {
        self.model.head()
    }

    /// Number of members.
    pub fn n_members(&self) -> usize {
        self.model.n_members()
    }

    /// Asks `question` of every block of rows; each row gets `width` numbers (row-major, rows x
    /// width).
    ///
    /// # Errors
    /// As [`Model::members`].
    pub fn ask(
        &self,
        width: usize,
        question: impl Fn(&Block, Range<usize>, &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        let values_per_row = self.model.n_members() * self.model.head().n_components();
        let rows_per_block = (BLOCK_VALUES / values_per_row.max(1))
            .next_multiple_of(16)
            .clamp(16, 256);
        let stretch = rows_per_block * BLOCKS_PER_TASK;
        let answers = self.pool.map_blocks(self.n_rows(), stretch, |rows| {
            self.ask_stretch(rows, rows_per_block, width, &question)
        });
        let mut all = Vec::with_capacity(self.n_rows() * width);
        for answers in answers {
            all.extend(answers?);
        }
        Ok(all)
    }

    /// Asks block after block of a stretch of rows in the same memory.
    fn ask_stretch(
        &self,
        rows: Range<usize>,
        rows_per_block: usize,
        width: usize,
        question: impl Fn(&Block, Range<usize>, &mut [f64]),
    ) -> Result<Vec<f64>> {
        let fresh = |n_rows| Block::new(self.model.head(), self.model.n_members(), n_rows);
        let mut answers = vec![0.0; rows.len() * width];
        let mut block = fresh(rows_per_block.min(rows.len()));
        let chunks = answers.chunks_mut((rows_per_block * width).max(1));
        for (start, answers) in rows.clone().step_by(rows_per_block).zip(chunks) {
            let range = start..(start + rows_per_block).min(rows.end);
            self.look(start)?;
            if range.len() != block.n_rows {
                block = fresh(range.len());
            }
            self.model
                .members(&self.table.rows(range.clone()), &mut block)?;
            question(&block, range, answers);
        }
        Ok(answers)
    }

    fn look(&self, row: usize) -> Result<()> {
        let progress = Progress {
            stage: "answering",
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

/// Answers in the target's units. Each asks the model anew, block by block.
///
/// # Errors
/// All fail as [`Model::members`] does; besides, where the question does not fit the task, where
/// there is not one target value for each row, and where a level is not a probability.
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

    /// Total, data and knowledge uncertainty of each row: variances (regression) or entropies in
    /// nats (classification).
    pub fn uncertainty(&self) -> Result<Uncertainty> {
        if matches!(self.head(), Head::Normal { .. }) {
            return Ok(self.moments()?.variance);
        }
        let parts = self.ask(2, |block, _, out| categorical::entropies(block, out))?;
        let (data, knowledge) = parts.chunks_exact(2).map(|row| (row[0], row[1])).unzip();
        Ok(Uncertainty::sum_of(data, knowledge))
    }

    /// Mean, standard deviation and the parts of the variance in one pass (regression).
    pub fn moments(&self) -> Result<Moments> {
        self.require_regression("a mean")?;
        let numbers = self.ask(moments::MOMENTS, |block, _, out| {
            moments::moments(block, out);
        })?;
        Ok(Moments::from_rows(&numbers))
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

    /// The central interval that holds the target with probability `level` (regression; row-major,
    /// rows x 2).
    pub fn interval(&self, level: f64) -> Result<Vec<f64>> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::Parameters(vec![format!(
                "level {level}: expected a number above 0 and below 1"
            )]));
        }
        self.quantile(&[0.5 - 0.5 * level, 0.5 + 0.5 * level])
    }

    /// Probability of a target at most `y`, one `y` per row (regression).
    pub fn cdf(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.ask_at(y, "a cdf", density::cdf)
    }

    /// Natural logarithm of the density at `y`, one `y` per row (regression).
    pub fn log_density(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.ask_at(y, "a density", density::log_density)
    }

    /// Continuous ranked probability score at `y`, one `y` per row, in the target's units
    /// (regression).
    pub fn crps(&self, y: &[f64]) -> Result<Vec<f64>> {
        self.ask_at(y, "a CRPS", crps::crps)
    }

    /// Independent draws of the target: numbers, or class indices (row-major, rows x n). Row `r`
    /// draws from `key.child(r)`.
    pub fn sample(&self, n: usize, key: Key) -> Result<Vec<f64>> {
        self.ask(n, |block, rows, out| {
            sample::draws(block, rows.start, n, key, out);
        })
    }

    /// Conditional means of `n` sampled members, the same members on every row (regression;
    /// row-major, rows x n). Members repeat only where `n` exceeds their number.
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

    fn ask_at(
        &self,
        y: &[f64],
        what: &str,
        question: impl Fn(&Block, &[f64], &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        self.require_regression(what)?;
        self.require_one_per_row(y.len())?;
        self.ask(1, |block, rows, out| question(block, &y[rows], out))
    }
}

fn wrong_task(what: &str, task: &str) -> Error {
    Error::Table(format!("{what} can only be asked of a {task} model"))
}
