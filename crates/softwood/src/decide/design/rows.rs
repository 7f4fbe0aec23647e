//! The next rows to label: a batch of a pool of unlabelled rows (active learning).

use serde::Serialize;

use crate::decide::design::deviations::ScaledDeviations;
use crate::decide::design::member_posterior::MemberPosterior;
use crate::decide::design::shortlist::{groups_of_different_rows, random_order, shortlist};
use crate::decide::design::variance_reduction::ReferenceRows;
use crate::decide::design::{check_count, from_name, information, variance};
use crate::distribution::Distribution;
use crate::error::Result;
use crate::predictive::block::Head;
use crate::rng::Key;
use crate::stop;

/// The standard deviation of the noise counts as at least this fraction of the total one: a single
/// label then says at most everything about its row, up to rounding.
const MIN_NOISE: f64 = 1e-3;
/// Rows of the pool whose variances are to be reduced; a random sample of a larger pool.
const MAX_REFERENCE_ROWS: usize = 2000;

/// How rows are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowCriterion {
    /// Rows with the largest knowledge (epistemic) uncertainty: variance of the members' means, or
    /// mutual information of class and member. Rows on which the members deviate almost as they do on
    /// a chosen row are passed over.
    Variance,
    /// The batch whose labels together have the largest mutual information with the model, chosen
    /// greedily under a Normal approximation: rows that are uncertain for lack of knowledge, not of
    /// much noise, and that differ from each other.
    #[default]
    Information,
    /// The batch whose labels reduce the mean knowledge uncertainty of the rows of the pool most,
    /// chosen greedily under a Normal approximation: rows that tell about many others. The pool
    /// should be like the rows that are to be predicted.
    VarianceReduction,
    /// A random sample, for comparison.
    Random,
}

impl RowCriterion {
    /// All criteria.
    pub const ALL: &'static [Self] = &[
        Self::Information,
        Self::VarianceReduction,
        Self::Variance,
        Self::Random,
    ];

    /// Name of the criterion.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variance => "variance",
            Self::Information => "information",
            Self::VarianceReduction => "variance_reduction",
            Self::Random => "random",
        }
    }

    /// The criterion of this name.
    ///
    /// # Errors
    /// When there is no such criterion; the message lists all names.
    pub fn from_name(name: &str) -> Result<Self> {
        from_name(name, Self::ALL, Self::name)
    }
}

/// How many rows are chosen, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowOptions {
    /// Number of rows.
    pub n: usize,
    /// How rows are chosen.
    pub criterion: RowCriterion,
    /// Key of everything random: the random sample, the choice between equal scores, the candidates
    /// of a pool of more than 2000 rows, and the members of a model with more than 256.
    pub key: Key,
}

impl RowOptions {
    /// A batch of `n` rows by [`RowCriterion::Information`].
    pub fn new(n: usize, key: Key) -> Self {
        Self {
            n,
            criterion: RowCriterion::default(),
            key,
        }
    }

    /// Sets the criterion.
    #[must_use]
    pub fn criterion(self, criterion: RowCriterion) -> Self {
        Self { criterion, ..self }
    }
}

/// The chosen rows, in the order of the choice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RowSelection {
    /// Indices of the rows in the pool.
    pub rows: Vec<usize>,
    /// Why each row was chosen. [`RowCriterion::Information`]: what its label adds to those of the
    /// rows before it, in nats; the sum is the information of the batch. [`RowCriterion::Variance`]:
    /// its knowledge uncertainty, a variance or in nats. [`RowCriterion::VarianceReduction`]: by how
    /// much its label lowers the mean knowledge uncertainty of the pool, after those of the rows
    /// before it; for classes to second order in the deviations of the members.
    /// [`RowCriterion::Random`]: zero.
    pub scores: Vec<f64>,
}

/// Chooses the rows of a pool whose labels would improve the model most.
///
/// Equal rows of the pool are chosen once before any of them is chosen again. From a pool of more
/// than 2000 different rows (or four times the batch) the batch is chosen among as many candidates:
/// half of them those with the largest scores, half drawn with probabilities in proportion to the
/// scores.
///
/// ```
/// use softwood::decide::design::{RowOptions, select_rows};
/// use softwood::models::GpParams;
/// use softwood::{Column, Dataset, Fit, Key, Model, Roles, Table};
///
/// // labelled rows from 0 to 1 and from 2 to 3; the pool reaches from 0 to 3
/// let x: Vec<f64> = (0..40).map(|row| f64::from(row % 20) / 20.0 + f64::from(row / 20 * 2)).collect();
/// let y = x.iter().map(|x| (3.0 * x).sin()).collect();
/// let labelled = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)])?;
/// let roles = Roles { target: "y".to_owned(), ..Roles::default() };
/// let model = GpParams::default().fit(&Dataset::from_table(&labelled, &roles)?)?;
///
/// let grid: Vec<f64> = (0..=60).map(|row| f64::from(row) / 20.0).collect();
/// let pool = Table::new(vec![Column::numeric("x", grid.clone())])?;
/// let next = select_rows(&model.predict(&pool)?, &RowOptions::new(2, Key::from_seed(0)))?;
/// assert!((1.2..1.8).contains(&grid[next.rows[0]]));
/// # Ok::<(), softwood::Error>(())
/// ```
///
/// # Errors
/// When the pool has fewer rows than the batch, the model has a single member (unless the criterion
/// is random), or the model cannot predict.
pub fn select_rows(pool: &Distribution<'_>, options: &RowOptions) -> Result<RowSelection> {
    check_count(options.n, pool.n_rows(), "rows in the pool")?;
    stop::cancellable(pool.observer().cancel_tokens(), || {
        let mut order = random_order(pool.n_rows(), options.key);
        if options.criterion == RowCriterion::Random {
            order.truncate(options.n);
            return Ok(RowSelection {
                scores: vec![0.0; order.len()],
                rows: order,
            });
        }
        RowBatch::new(pool, *options)?.choose(&order)
    })
}

/// A batch in the making.
struct RowBatch<'a> {
    pool: &'a Distribution<'a>,
    options: RowOptions,
    /// Knowledge uncertainty of each row.
    knowledge: Vec<f64>,
    /// What candidates are preferred by: knowledge uncertainty, or its share in the total.
    score: Vec<f64>,
    /// Standard deviation of the noise of each row (regression).
    noise_sd: Vec<f64>,
    /// Unit of the deviations of the reference rows (regression).
    unit: f64,
    posterior: Option<MemberPosterior>,
    selection: RowSelection,
}

impl<'a> RowBatch<'a> {
    fn new(pool: &'a Distribution<'a>, options: RowOptions) -> Result<Self> {
        let is_regression = matches!(pool.head(), Head::Normal { .. });
        let mut unit = 1.0;
        let (knowledge, score, noise_sd) = if is_regression {
            let moments = pool.moments()?;
            let stds = moments.std.iter().zip(&moments.data_std);
            let noise_sd: Vec<f64> = stds
                .map(|(std, data)| data.max(MIN_NOISE * std).max(f64::MIN_POSITIVE))
                .collect();
            unit = noise_sd.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let score = match options.criterion {
                RowCriterion::Variance => moments.variance.knowledge.clone(),
                _ => (moments.knowledge_std.iter().zip(&noise_sd))
                    .map(|(knowledge, noise)| (knowledge / noise).powi(2))
                    .collect(),
            };
            (moments.variance.knowledge, score, noise_sd)
        } else {
            let knowledge = pool.uncertainty()?.knowledge;
            (knowledge.clone(), knowledge, Vec::new())
        };
        Ok(Self {
            pool,
            options,
            knowledge,
            score,
            noise_sd,
            unit,
            posterior: None,
            selection: RowSelection {
                rows: Vec::new(),
                scores: Vec::new(),
            },
        })
    }

    /// Chooses the batch; `order` decides between equal scores.
    fn choose(mut self, order: &[usize]) -> Result<RowSelection> {
        let reference = match self.options.criterion {
            RowCriterion::VarianceReduction => Some(self.reference_rows(order)?),
            _ => None,
        };
        let groups = groups_of_different_rows(self.pool.table(), order, self.options.key);
        for group in groups {
            let n = self.options.n - self.selection.rows.len();
            if n == 0 {
                break;
            }
            self.add_from(group, n, reference.as_ref())?;
        }
        Ok(self.selection)
    }

    /// A random sample of the pool, with deviations in one unit.
    fn reference_rows(&self, order: &[usize]) -> Result<ReferenceRows> {
        let rows = &order[..order.len().min(MAX_REFERENCE_ROWS)];
        let units = vec![self.unit; self.noise_sd.len()];
        ReferenceRows::new(&ScaledDeviations::of(
            self.pool,
            rows,
            &units,
            self.options.key,
        )?)
    }

    /// Adds up to `n` of the rows.
    fn add_from(
        &mut self,
        rows: Vec<usize>,
        n: usize,
        reference: Option<&ReferenceRows>,
    ) -> Result<()> {
        let n = n.min(rows.len());
        let rows = shortlist(rows, &self.score, n, self.options.key);
        let candidates = ScaledDeviations::of(self.pool, &rows, &self.noise_sd, self.options.key)?;
        if self.options.criterion == RowCriterion::Variance {
            for position in variance::choose(&candidates, n)? {
                self.push(rows[position], self.knowledge[rows[position]]);
            }
            return Ok(());
        }
        let posterior = self
            .posterior
            .get_or_insert_with(|| MemberPosterior::new(candidates.n_members));
        let chosen = match reference {
            None => information::choose(posterior, &candidates, n)?,
            Some(reference) => reference.choose(posterior, &candidates, n, self.pool.pool())?,
        };
        let scale = self.score_unit();
        for (position, score) in chosen {
            self.push(rows[position], (scale * score).min(f64::MAX));
        }
        Ok(())
    }

    /// What the scores of the greedy criteria are multiplied by.
    fn score_unit(&self) -> f64 {
        let is_classes = self.noise_sd.is_empty();
        match self.options.criterion {
            // half of the squared deviations is the mutual information to second order
            RowCriterion::VarianceReduction if is_classes => 0.5,
            RowCriterion::VarianceReduction => (self.unit * self.unit).min(f64::MAX),
            _ => 1.0,
        }
    }

    fn push(&mut self, row: usize, score: f64) {
        self.selection.rows.push(row);
        self.selection.scores.push(score);
    }
}
