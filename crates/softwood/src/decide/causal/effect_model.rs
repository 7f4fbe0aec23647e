//! The result of an estimation: average effects, effects of single rows, values of policies.

use serde::Serialize;

use crate::data::column::Column;
use crate::data::table::Table;
use crate::decide::causal::arm_models::{ArmModels, PairedMembers, Prediction, random_pairs};
use crate::decide::causal::config::{CausalConfig, CausalMethod, CausalRoles};
use crate::decide::causal::cross_fit::CrossFit;
use crate::decide::causal::estimate::{
    EffectEstimate, EstimateParts, MemberSpread, check_level, half_widths_in_sd,
};
use crate::decide::causal::linear_score::{Assignment, LinearScore, Outcomes};
use crate::decide::causal::overlap::OverlapReport;
use crate::decide::causal::row_means::RowMeans;
use crate::decide::causal::treated_rows::{TreatedRows, dataset};
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::model::Model;
use crate::observer::{NoObserver, Observer};
use crate::par::Pool;
use crate::rng::Key;
use crate::stop;

/// Random streams of an estimation, besides those of cross-fitting.
const CORRECTION_FIT: u64 = 11;
const CORRECTION_PAIRS: u64 = 12;
const DRAWS: u64 = 13;

/// Rows whose members are in memory at a time.
pub(super) const CHUNK_ROWS: usize = 4096;

/// Name of the target of the regression of the corrections; a covariate of that name gets the
/// precedence.
const CORRECTION: &str = "correction";

/// Estimated effects of a treatment: made by [`estimate`](super::estimate).
#[derive(Debug)]
pub struct EffectModel {
    pub(super) data: TreatedRows,
    pub(super) config: CausalConfig,
    pub(super) fits: CrossFit,
    /// Propensities inside of the clipping bounds.
    pub(super) clipped: Vec<f64>,
    pub(super) rows: RowMeans,
    /// What the scores add to the effects of the outcome models (doubly robust).
    correction: Option<Box<dyn Model>>,
    overlap: OverlapReport,
    key: Key,
}

/// Effects of single rows, given their covariates (CATE).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConditionalEffects {
    /// Mean over the members.
    pub mean: Vec<f64>,
    /// Standard deviation over the members: knowledge (epistemic) uncertainty of the effect.
    pub std: Vec<f64>,
    /// Probability of the intervals.
    pub level: f64,
    /// Lower end of the central interval.
    pub lower: Vec<f64>,
    /// Upper end of the central interval.
    pub upper: Vec<f64>,
}

impl ConditionalEffects {
    /// Number of rows whose interval lies above zero.
    pub fn n_positive(&self) -> usize {
        self.lower.iter().filter(|&&lower| lower > 0.0).count()
    }

    /// Number of rows whose interval lies below zero.
    pub fn n_negative(&self) -> usize {
        self.upper.iter().filter(|&&upper| upper < 0.0).count()
    }
}

impl EffectModel {
    pub(super) fn fit(data: TreatedRows, config: &CausalConfig, run: &Run<'_>) -> Result<Self> {
        config.check()?;
        stop::cancellable(run.observer.cancel_tokens(), || {
            let fits = CrossFit::fit(&data, config, run)?;
            let prediction = Prediction {
                pool: run.pool,
                observer: run.observer,
            };
            let rows = RowMeans::compute(&data, &fits, prediction)?;
            let clip = |e: &f64| e.clamp(config.clip, 1.0 - config.clip);
            let clipped = fits.propensity.iter().map(clip).collect();
            let overlap = OverlapReport::new(&data, &fits.propensity, &rows, config);
            let mut model = Self {
                data,
                config: config.clone(),
                fits,
                clipped,
                rows,
                correction: None,
                overlap,
                key: run.key,
            };
            if config.method == CausalMethod::DoublyRobust {
                model.correction = model.fit_correction(run)?;
            }
            Ok(model)
        })
    }

    /// Regression of the corrections of the scores on the covariates. Rows are weighted by
    /// `e (1 - e)`, which is in proportion to the precision of their corrections. `None` if the
    /// corrections cannot be a target, because they are equal up to rounding or too large.
    fn fit_correction(&self, run: &Run<'_>) -> Result<Option<Box<dyn Model>>> {
        let n = self.data.n_rows();
        let score = LinearScore::average_effect(self.assignment());
        let corrections: Vec<f64> = (0..n)
            .map(|row| n as f64 * score.correction(self.outcomes(), row))
            .collect();
        let mut name = CORRECTION.to_owned();
        while self.data.covariates.names().any(|other| other == name) {
            name.push('_');
        }
        let column = Column::numeric(name, corrections);
        let data = dataset(self.data.covariates.clone(), column)?;
        let precision: Vec<f64> = self.clipped.iter().map(|e| e * (1.0 - e)).collect();
        let mean = precision.iter().sum::<f64>() / n as f64;
        let weights = precision.into_iter().map(|weight| weight / mean).collect();
        let data = data.with_weights(Some(weights))?;
        if data.check_fit().is_err() {
            return Ok(None);
        }
        let run = Run {
            key: run.key.child(CORRECTION_FIT),
            ..*run
        };
        self.config.outcome.fit_with(&data, &run).map(Some)
    }

    /// Roles of the columns.
    pub fn roles(&self) -> &CausalRoles {
        &self.data.roles
    }

    /// The settings of the estimation.
    pub fn config(&self) -> &CausalConfig {
        &self.config
    }

    /// The covariates of the rows of the estimation, without rows of other treatments.
    pub fn covariates(&self) -> &Table {
        &self.data.covariates
    }

    /// Whether each row is treated.
    pub fn is_treated(&self) -> &[bool] {
        &self.data.is_treated
    }

    /// The level of the treatment column that counts as treated, and the one that counts as
    /// control.
    pub fn levels(&self) -> (&str, &str) {
        (&self.data.levels.0, &self.data.levels.1)
    }

    /// Positions of the rows of the estimation in the table.
    pub fn row_indices(&self) -> &[usize] {
        &self.data.kept
    }

    /// Number of rows that were left out because their treatment is neither of the two levels.
    pub fn n_left_out(&self) -> usize {
        self.data.n_left_out
    }

    /// Number of folds of cross-fitting.
    pub fn n_folds(&self) -> usize {
        self.fits.n_folds
    }

    /// The difference of the mean outcomes of the two arms, which is the effect only where the
    /// treatment was assigned at random.
    pub fn naive_difference(&self) -> f64 {
        let mean = |is_treated: bool| {
            let rows = self.data.arm(is_treated);
            rows.iter().map(|&row| self.data.outcome[row]).sum::<f64>() / rows.len() as f64
        };
        mean(true) - mean(false)
    }

    /// How well the arms overlap, and where the effects rest on extrapolation.
    pub fn overlap(&self) -> &OverlapReport {
        &self.overlap
    }

    /// Average effect over the rows of the estimation (ATE) with an interval of this level.
    ///
    /// # Errors
    /// When the level is not between 0 and 1.
    pub fn average_effect(&self, level: f64, pool: &Pool) -> Result<EffectEstimate> {
        self.estimate(&LinearScore::average_effect(self.assignment()), level, pool)
    }

    /// Average effect over the treated rows of the estimation (ATT).
    ///
    /// # Errors
    /// When the level is not between 0 and 1.
    pub fn effect_on_treated(&self, level: f64, pool: &Pool) -> Result<EffectEstimate> {
        let score = LinearScore::effect_on_treated(self.assignment());
        self.estimate(&score, level, pool)
    }

    /// The average of the effects of the rows of a table of covariates, which need not be those of
    /// the estimation: their covariates are fixed. The scores have no part in it, only the models
    /// that [`EffectModel::conditional_effects`] evaluates.
    ///
    /// # Errors
    /// When a covariate is absent or of the wrong kind, there are no rows, or the level is not
    /// between 0 and 1.
    pub fn average_effect_of(
        &self,
        table: &Table,
        level: f64,
        pool: &Pool,
    ) -> Result<EffectEstimate> {
        check_level(level)?;
        if table.n_rows() == 0 {
            return Err(Error::Table(
                "an average effect needs at least one row".to_owned(),
            ));
        }
        let mut sums = vec![0.0; self.n_effect_members()];
        self.each_effect(table, pool, &NoObserver, |members| {
            for (sum, value) in sums.iter_mut().zip(members) {
                *sum += value;
            }
        })?;
        let n = table.n_rows() as f64;
        let parts = EstimateParts {
            members: sums.into_iter().map(|sum| sum / n).collect(),
            sampling_variance: 0.0,
        };
        parts.estimate(level, self.config.n_draws, self.key.child(DRAWS))
    }

    /// Effects of the rows of a table of covariates (CATE) with intervals of this level; columns are
    /// matched by name.
    ///
    /// # Errors
    /// When a covariate is absent or of the wrong kind, or the level is not between 0 and 1.
    pub fn conditional_effects(
        &self,
        table: &Table,
        level: f64,
        pool: &Pool,
    ) -> Result<ConditionalEffects> {
        self.conditional_effects_observed(table, level, pool, &NoObserver)
    }

    /// As [`EffectModel::conditional_effects`], with an observer that may stop the computation.
    ///
    /// # Errors
    /// As [`EffectModel::conditional_effects`], and [`Error::Cancelled`] if it is stopped.
    pub fn conditional_effects_observed(
        &self,
        table: &Table,
        level: f64,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<ConditionalEffects> {
        check_level(level)?;
        let mut found = ConditionalEffects {
            mean: Vec::new(),
            std: Vec::new(),
            level,
            lower: Vec::new(),
            upper: Vec::new(),
        };
        let width = half_widths_in_sd(self.n_effect_members(), level);
        self.each_effect(table, pool, observer, |members| {
            let spread = MemberSpread::of(members);
            let sd = spread.variance.sqrt();
            found.mean.push(spread.mean);
            found.std.push(sd);
            found.lower.push(spread.mean - width * sd);
            found.upper.push(spread.mean + width * sd);
        })?;
        Ok(found)
    }

    fn n_effect_members(&self) -> usize {
        self.fits.outcome.iter().map(ArmModels::n_members).sum()
    }

    /// Calls `visit` with the effects of all members on each row.
    fn each_effect(
        &self,
        table: &Table,
        pool: &Pool,
        observer: &dyn Observer,
        mut visit: impl FnMut(&[f64]),
    ) -> Result<()> {
        let n_members = self.n_effect_members();
        let prediction = Prediction { pool, observer };
        let pairs = self.correction.as_ref().map(|model| {
            let key = self.key.child(CORRECTION_PAIRS);
            random_pairs(n_members, model.n_members(), key)
        });
        for start in (0..table.n_rows()).step_by(CHUNK_ROWS) {
            let rows: Vec<usize> = (start..(start + CHUNK_ROWS).min(table.n_rows())).collect();
            let chunk = table.take(&rows);
            let models = self.fits.outcome.iter();
            let members: Vec<PairedMembers> = models
                .map(|model| model.members(&chunk, &self.data.roles, prediction))
                .collect::<Result<_>>()?;
            let corrections = match &self.correction {
                None => None,
                Some(model) => {
                    let rows = Distribution::new(model.as_ref(), &chunk, pool)?;
                    Some((rows.observed_by(observer).members()?, model.n_members()))
                }
            };
            let mut effects = Vec::with_capacity(n_members);
            for row in 0..rows.len() {
                effects.clear();
                effects.extend(members.iter().flat_map(|part| part.effects(row)));
                if let (Some((values, width)), Some(pairs)) = (&corrections, &pairs) {
                    for (effect, &pair) in effects.iter_mut().zip(pairs) {
                        *effect += values[row * width + pair];
                    }
                }
                visit(&effects);
            }
        }
        Ok(())
    }

    pub(super) fn assignment(&self) -> Assignment<'_> {
        let is_corrected = self.config.method == CausalMethod::DoublyRobust;
        Assignment {
            is_treated: &self.data.is_treated,
            propensity: is_corrected.then_some(&self.clipped),
        }
    }

    pub(super) fn outcomes(&self) -> Outcomes<'_> {
        Outcomes {
            y: &self.data.outcome,
            treated: &self.rows.treated,
            control: &self.rows.control,
        }
    }

    /// The value of a score with its uncertainty: that of the members and that of the rows.
    pub(super) fn estimate(
        &self,
        score: &LinearScore,
        level: f64,
        pool: &Pool,
    ) -> Result<EffectEstimate> {
        check_level(level)?;
        let n_members = self.fits.outcome.iter().map(ArmModels::n_members).max();
        let constant = score.constant(&self.data.outcome);
        let mut members = vec![constant; n_members.unwrap_or(0)];
        let prediction = Prediction {
            pool,
            observer: &NoObserver,
        };
        let rows_of_models = self.fits.predicted_rows();
        for (models, rows) in self.fits.outcome.iter().zip(rows_of_models) {
            for rows in rows.chunks(CHUNK_ROWS) {
                let chunk = self.data.covariates.take(rows);
                let found = models.members(&chunk, &self.data.roles, prediction)?;
                for (at, &row) in rows.iter().enumerate() {
                    let (treated, control) = score.coefficients(row);
                    let (ours, theirs) = found.row(at);
                    for (member, value) in members.iter_mut().enumerate() {
                        let own = member % found.n_members;
                        *value += treated * ours[own] + control * theirs[own];
                    }
                }
            }
        }
        let parts = EstimateParts {
            members,
            sampling_variance: score.sampling_variance(self.outcomes(), self.config.scope),
        };
        parts.estimate(level, self.config.n_draws, self.key.child(DRAWS))
    }
}
