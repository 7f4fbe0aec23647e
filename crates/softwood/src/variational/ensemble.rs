//! An ensemble of fits whose posteriors are averaged: the part of a fitted model that the families
//! share.

use serde::Serialize;
use serde_json::{Value, json};

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::LowRank;
use crate::model::Training;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::{Layout, StoredLayout};
use crate::store::record::{Array, Record};
use crate::variational::fitted::{FittedHeader, FittedTrees};

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
        }
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
            schema,
            training: record.part("training")?,
            standard: TargetUnits::from_record(record)?,
            key,
            fits,
        })
    }

    /// The JSON part of a record, with the parameters of the family.
    pub(crate) fn meta(&self, names: StoredNames, params: &impl Serialize) -> Value {
        let headers: Vec<FittedHeader<L>> = self.fits.iter().map(FittedTrees::header).collect();
        let mut meta = json!({
            "schema": self.schema, "params": params, "training": self.training,
            "standard": self.standard, "key": self.key,
        });
        meta[names.headers] = json!(headers);
        meta
    }

    /// The arrays of a record.
    pub(crate) fn arrays(&self, names: StoredNames) -> Vec<(String, Array)> {
        let fits = self.fits.iter().enumerate();
        fits.map(|(at, fit)| (names.array_of(at), fit.array()))
            .collect()
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
        out.shift = self.standard.shift;
        out.scale = self.standard.scale;
        let mut first = 0;
        for fit in &self.fits {
            fit.fill(rows, first, out);
            first += fit.n_draws();
        }
    }
}
