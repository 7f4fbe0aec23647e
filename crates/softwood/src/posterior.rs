//! The exit of every family: a posterior answers rows with its members' distributions, and one driver asks it
//! block by block, so that memory does not grow with rows x members x components.

use std::fmt::Debug;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::schema::Schema;
use crate::data::table::{Rows, Table};
use crate::error::Result;
use crate::par::Pool;
use crate::predictive::block::{Block, Head};
use crate::store::record::Record;

/// One point of the loss curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Epoch or round.
    pub epoch: usize,
    /// Evidence lower bound per row.
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

/// How a model came about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Training {
    /// The loss curve of the final run.
    pub curve: Vec<CurvePoint>,
    /// What was tried, in the order of trial.
    pub trials: Vec<Trial>,
    /// What was chosen, as a user reads it.
    pub chosen: String,
}

/// A fitted model.
pub trait Posterior: Debug + Send + Sync {
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
}

/// A posterior's answer to a table: ask it for moments, quantiles, densities, samples.
#[derive(Debug)]
pub struct Distribution<'a> {
    posterior: &'a dyn Posterior,
    table: Table,
    pool: &'a Pool,
}

/// Values per block array that keep a block inside the second-level cache.
const BLOCK_VALUES: usize = 1 << 16;

impl<'a> Distribution<'a> {
    /// The answer of `posterior` to the rows of `table`, columns matched by name.
    ///
    /// # Errors
    /// When a column is absent or of the wrong kind.
    pub fn new(posterior: &'a dyn Posterior, table: &Table, pool: &'a Pool) -> Result<Self> {
        Ok(Self {
            posterior,
            table: posterior.schema().align(table)?,
            pool,
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows()
    }

    /// The shape of the members' distributions.
    pub fn head(&self) -> Head {
        self.posterior.head()
    }

    /// Number of members.
    pub fn n_members(&self) -> usize {
        self.posterior.n_members()
    }

    /// Asks `question` of every block of rows; each row gets `width` numbers (row-major, rows x width).
    ///
    /// # Errors
    /// As [`Posterior::members`].
    pub fn ask(
        &self,
        width: usize,
        question: impl Fn(&Block, Range<usize>, &mut [f64]) + Sync,
    ) -> Result<Vec<f64>> {
        let values_per_row = self.posterior.n_members() * self.posterior.head().n_components();
        let rows_per_block = (BLOCK_VALUES / values_per_row.max(1))
            .next_multiple_of(16)
            .clamp(16, 256);
        let blocks = self
            .pool
            .map_blocks(self.n_rows(), rows_per_block, |range| {
                let mut block = Block::new(
                    self.posterior.head(),
                    self.posterior.n_members(),
                    range.len(),
                );
                self.posterior
                    .members(&self.table.rows(range.clone()), &mut block)?;
                let mut answers = vec![0.0; range.len() * width];
                question(&block, range, &mut answers);
                Ok(answers)
            });
        let mut all = Vec::with_capacity(self.n_rows() * width);
        for answers in blocks {
            all.extend(answers?);
        }
        Ok(all)
    }
}
