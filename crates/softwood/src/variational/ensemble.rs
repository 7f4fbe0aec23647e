//! An ensemble of fits whose posteriors are averaged: the part of a fitted model that the families
//! share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::json;

use crate::data::dataset::Dataset;
use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::{Target, TargetUnits};
use crate::error::{Error, Result};
use crate::extrapolation::Extrapolation;
use crate::fit::Run;
use crate::inference::hmc::ChainLength;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::likelihood::soft::SoftLikelihood;
use crate::model::Training;
use crate::observer::Event;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::{HeldOutBlock, NoiseCalibration};
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{Layout, StoredLayout};
use crate::store::record::Record;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedRows;
use crate::variational::fitted::{FittedHeader, FittedTrees};
use crate::variational::noise_calibration::MAX_ROWS;
use crate::variational::options::PosteriorMethod;
use crate::variational::sampling::{SampledFit, n_gradients, sample_weights};
use crate::variational::streams::run as streams;

/// Names of the fits in the model file of a family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredNames {
    /// Name of the list of headers.
    pub(crate) headers: &'static str,
    /// Prefix of the arrays; the index of the fit follows.
    pub(crate) array: &'static str,
}

impl StoredNames {
    fn array_of(self, fit: usize) -> String {
        format!("{}{fit}", self.array)
    }
}

/// A posterior and the encoder of its inputs, without draws.
#[derive(Debug)]
pub(crate) struct FitPosterior<L = Layout> {
    pub(crate) encoder: Encoder,
    pub(crate) spec: SoftTreeSpec<L>,
    pub(crate) blocks: Vec<LowRank>,
}

/// Largest number of different draws of a chain; more members repeat them.
const MAX_DISTINCT_DRAWS: usize = 250;

/// Prior and training rows of the chain of a fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainRows<'a> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) rows: &'a EncodedRows,
}

/// Number of draws of one fit of an ensemble, and their key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FitDraws {
    pub(crate) n_draws: usize,
    pub(crate) key: Key,
}

impl FitDraws {
    /// The draws of fit `fit`: members are distributed evenly over the fits.
    pub(crate) fn of(fit: usize, n_fits: usize, n_members: usize, key: Key) -> Self {
        Self {
            n_draws: n_members / n_fits + usize::from(fit < n_members % n_fits),
            key: key.child(fit as u64),
        }
    }
}

/// Returns an error if a warm start asks for fewer members than the fitted model has fits.
///
/// # Errors
/// The message has both numbers.
pub(crate) fn check_n_members(n_members: usize, n_fits: usize) -> Result<()> {
    if n_members >= n_fits {
        return Ok(());
    }
    Err(Error::Parameters(vec![format!(
        "`n_members` = {n_members} is fewer than the {n_fits} fits of the fitted model"
    )]))
}

/// Fits whose posterior draws are the members of a model.
#[derive(Debug, Clone)]
pub(crate) struct FittedEnsemble<L = Layout> {
    pub(crate) schema: Schema,
    pub(crate) training: Training,
    pub(crate) standard: TargetUnits,
    /// Key of the posterior draws.
    key: Key,
    pub(crate) fits: Vec<FittedTrees<L>>,
    extrapolation: Option<Arc<Extrapolation>>,
    /// Calibration of the noise on the validation rows.
    pub(crate) calibration: NoiseCalibration,
}

impl<L: StoredLayout> FittedEnsemble<L> {
    /// Draws `n_members` members from the posteriors. There is at least one, and at most one per
    /// member.
    pub(crate) fn new(
        schema: Schema,
        training: Training,
        standard: TargetUnits,
        posteriors: Vec<FitPosterior<L>>,
        n_members: usize,
        key: Key,
    ) -> Self {
        let n_fits = posteriors.len();
        let fit = |(at, posterior): (usize, FitPosterior<L>)| {
            let draws = FitDraws::of(at, n_fits, n_members, key);
            let FitPosterior {
                encoder,
                spec,
                blocks,
            } = posterior;
            FittedTrees::new(encoder, spec, blocks, draws.n_draws, draws.key)
        };
        Self {
            schema,
            training,
            standard,
            key,
            fits: posteriors.into_iter().enumerate().map(fit).collect(),
            extrapolation: None,
            calibration: NoiseCalibration::IDENTITY,
        }
    }

    /// The ensemble with predictions that widen away from the training rows.
    pub(crate) fn extrapolating(self, extrapolation: Option<&Arc<Extrapolation>>) -> Self {
        Self {
            extrapolation: extrapolation.cloned(),
            ..self
        }
    }

    /// What widens the predictions away from the training rows.
    pub(crate) fn extrapolation(&self) -> Option<&Extrapolation> {
        self.extrapolation.as_deref()
    }

    /// Restores an ensemble from a record and repeats its draws.
    ///
    /// # Errors
    /// When the record is incomplete or inconsistent.
    pub(crate) fn restore(record: &Record, names: StoredNames, n_members: usize) -> Result<Self> {
        let headers: Vec<FittedHeader<L>> = record.part(names.headers)?;
        let schema = Schema::from_record(record)?;
        let key: Key = record.part("key")?;
        let n_fits = headers.len();
        if n_fits == 0 || n_fits > n_members {
            return Err(Error::Format(format!(
                "`{}` has {n_fits} fits for {n_members} members; expected 1 to {n_members}",
                names.headers
            )));
        }
        let mut fits = Vec::with_capacity(n_fits);
        for (at, header) in headers.into_iter().enumerate() {
            let FitDraws { n_draws, key } = FitDraws::of(at, n_fits, n_members, key);
            let name = names.array_of(at);
            fits.push(FittedTrees::restore(
                header, record, &schema, &name, n_draws, key,
            )?);
        }
        Ok(Self {
            extrapolation: Extrapolation::read(record, &schema)?,
            schema,
            training: record.part("training")?,
            standard: TargetUnits::from_record(record)?,
            key,
            fits,
            calibration: NoiseCalibration::from_record(record)?,
        })
    }

    /// The record of a model of the family, with its parameters.
    pub(crate) fn record(
        &self,
        family: &str,
        names: StoredNames,
        params: &impl Serialize,
    ) -> Record {
        let headers: Vec<FittedHeader<L>> = self.fits.iter().map(FittedTrees::header).collect();
        let mut meta = json!({
            "schema": self.schema, "params": params, "training": self.training,
            "standard": self.standard, "key": self.key,
        });
        meta[names.headers] = json!(headers);
        self.calibration.write(&mut meta);
        let fits = self.fits.iter().enumerate();
        let arrays = fits.flat_map(|(at, fit)| fit.arrays(&names.array_of(at)));
        let record = Record {
            family: family.to_owned(),
            meta,
            arrays: arrays.collect(),
        };
        Extrapolation::write(self.extrapolation(), record)
    }

    /// Replaces the draws of each fit by those of a chain, if the method and the length of the training
    /// ask for chains ([`n_gradients`]). A fit whose chain fails keeps its draws, and so do all after the
    /// observer stops the fit. There is one element of `chains` for each fit.
    ///
    /// # Errors
    /// When the observer discards the fit or the work is cancelled.
    pub(crate) fn sample(
        &mut self,
        chains: &[ChainRows<'_>],
        method: Option<PosteriorMethod>,
        schedule: TrainingSchedule,
        run: &Run<'_>,
    ) -> Result<()> {
        let n_gradients = n_gradients(method, chains[0].config, schedule);
        let Some(n_gradients) = n_gradients.filter(|_| !self.training.is_stopped) else {
            return Ok(());
        };
        let n_fits = self.fits.len();
        let fits = &self.fits;
        let is_stopped = AtomicBool::new(false);
        let draws = run.pool.map(n_fits, |at| {
            let fit = &fits[at];
            let ChainRows { config, rows } = chains[at];
            let n_distinct = fit.n_draws().min(MAX_DISTINCT_DRAWS);
            let length = ChainLength::within(n_gradients, n_distinct);
            let n_trajectories = length.n_trajectories();
            let mut on_trajectory = |trajectory: usize| {
                let done = at * n_trajectories + trajectory;
                let event = Event {
                    member: Some(at),
                    ..Event::new("sampling", done, n_fits * n_trajectories)
                };
                let flow = run.observer.on_event(&event);
                is_stopped.fetch_or(flow.is_break(), Ordering::Relaxed);
                flow
            };
            if is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let key = run.key.child(streams::CHAINS).child(at as u64);
            let sampled = SampledFit {
                config,
                spec: &fit.spec,
                blocks: &fit.blocks,
                rows,
            };
            sample_weights(&sampled, length, key, &mut on_trajectory)
        });
        for (fit, draws) in self.fits.iter_mut().zip(draws) {
            if let Some(draws) = draws? {
                let n_values = fit.n_draws() * fit.spec.stack.n_weights();
                fit.set_chain(draws.into_iter().cycle().take(n_values).collect());
            }
        }
        self.training.is_stopped |= is_stopped.into_inner();
        Ok(())
    }

    /// Whether the draws of a fit are those of a chain.
    pub(crate) fn has_chains(&self) -> bool {
        self.fits.iter().any(FittedTrees::has_chain)
    }

    /// Form of the predictive distribution of a member.
    pub(crate) fn head(&self) -> Head {
        if let Some(classes) = self.schema.classes() {
            return Head::Categorical {
                classes: classes.len(),
            };
        }
        let components = self.fits.iter().map(FittedTrees::n_components);
        Head::Normal {
            components: components.max().unwrap_or(1),
        }
    }

    /// Writes the predictive distributions of all members.
    pub(crate) fn members(&self, rows: &Rows<'_>, out: &mut Block) {
        self.uncalibrated_members(rows, out);
        self.calibration.apply(out);
    }

    /// As [`Self::members`], without the calibration of the noise.
    pub(crate) fn uncalibrated_members(&self, rows: &Rows<'_>, out: &mut Block) {
        out.shift = self.standard.shift;
        out.scale = self.standard.scale;
        let mut first = 0;
        for fit in &self.fits {
            fit.fill(rows, first, out);
            first += fit.n_draws();
        }
    }

    /// Calibrates a learned noise on rows that no fit was trained on.
    pub(crate) fn calibrate(&mut self, held_out: &Dataset) {
        let SoftLikelihood::Normal { floor } = self.fits[0].spec.likelihood else {
            return;
        };
        let rows = held_out.spaced(MAX_ROWS);
        let Target::Numeric(target) = rows.target() else {
            return;
        };
        let n_rows = rows.n_rows();
        let n_members = self.fits.iter().map(FittedTrees::n_draws).sum();
        let mut block = Block::new(self.head(), n_members, n_rows);
        self.uncalibrated_members(&rows.features().rows(0..n_rows), &mut block);
        let held_out = HeldOutBlock {
            block,
            added: Vec::new(),
            target: target.iter().map(|&y| self.standard.apply(y)).collect(),
            weight: rows.weights().map_or(vec![1.0; n_rows], <[f64]>::to_vec),
        };
        let held_out = [held_out];
        self.calibration = NoiseCalibration::learn(&held_out, floor).with_coverage_of(&held_out);
    }
}
