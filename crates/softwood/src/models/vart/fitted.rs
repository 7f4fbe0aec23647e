//! The fitted variational regression tree: one posterior over structure and weights, or an average
//! of several; its members are drawn trees.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::error::{Error, Result};
use crate::explain::tree_export::{StructurePosterior, TreeExport};
use crate::extrapolation::Extrapolation;
use crate::inference::lowrank_gaussian::{LowRank, draw_block};
use crate::likelihood::soft::SoftLikelihood;
use crate::model::{Model, Training};
use crate::models::vart::init::VartPosterior;
use crate::models::vart::objective::MAX_LOGIT;
use crate::models::vart::params::VartParams;
use crate::models::vart::spec::VartSpec;
use crate::models::vart::streams::posterior_draws as streams;
use crate::models::vart::structure::MostProbableTree;
use crate::numerics::real::sigmoid;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::NoiseCalibration;
use crate::reserve::reserve;
use crate::rng::{Key, uniform};
use crate::soft::general_layout::GeneralLayout;
use crate::soft::stopping_tree::{MAX_DEPTH, StoppingTree};
use crate::soft::stopping_weights::NodeShape;
use crate::store::range;
use crate::store::record::{Array, Record};
use crate::trees::training_set::cart_target;
use crate::variational::ensemble::FitDraws;
use crate::variational::fitted::{FittedTrees, check_likelihood};
use crate::variational::noise_calibration;
use crate::variational::tree_summary::TreeSummary;

/// Calibration factors that are accepted from a file.
const NOISE_FACTORS: RangeInclusive<f64> = 1e-15..=1e15;
/// Maximum number of added trees in a model file.
const MAX_ADDED: usize = 1000;

/// A fitted variational regression tree.
#[derive(Debug, Clone)]
pub struct Vart {
    pub(super) params: VartParams,
    pub(super) schema: Schema,
    pub(super) training: Training,
    pub(super) standard: TargetUnits,
    /// Key of the posterior draws.
    pub(super) key: Key,
    /// Posterior over structure and weights of each fit.
    pub(super) posteriors: Vec<VartPosterior>,
    /// Drawn trees of each fit.
    pub(super) trees: Vec<FittedTrees<GeneralLayout>>,
    /// Calibration factor of the standard deviations of the noise; stored as `spread`.
    pub(super) noise_factor: f64,
    /// Calibration of the noise of the average of all fits.
    pub(super) calibration: NoiseCalibration,
    /// Training rows in the most probable tree of the first fit; `None` for a sum of trees.
    pub(super) summary: Option<TreeSummary>,
    pub(super) extrapolation: Option<Arc<Extrapolation>>,
}

/// The part of a fit that a model file holds as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct VartHeader {
    encoder: Encoder,
    first: StoppingTree,
    added: StoppingTree,
    n_added: usize,
    shape: NodeShape,
    mixing_levels: usize,
    law: SoftLikelihood,
    beta: f64,
    rank: usize,
}

/// A posterior and the encoder of its inputs.
#[derive(Debug)]
pub(super) struct EncodedPosterior {
    pub(super) encoder: Encoder,
    pub(super) posterior: VartPosterior,
}

/// Trees with drawn weights and hard split indicators.
pub(super) fn draw_trees(
    encoder: Encoder,
    posterior: &VartPosterior,
    n_draws: usize,
    key: Key,
) -> FittedTrees<GeneralLayout> {
    let VartPosterior { spec, logits, .. } = posterior;
    let n_logits = logits.len();
    let mut rng = key.child(streams::INDICATORS).rng();
    let splits: Vec<bool> = (0..n_draws * n_logits)
        .map(|at| uniform(&mut rng) < sigmoid(f64::from(logits[at % n_logits])))
        .collect();
    // nodes that split in no draw are not evaluated
    let active = spec.active(|node| splits.iter().skip(node).step_by(n_logits).any(|&s| s));
    let draws = draw_block(&posterior.posterior, n_draws, key);
    let weights = active.expand_hard(spec, &draws, &splits);
    FittedTrees::of_draws(encoder, active.kernel, Vec::new(), &weights, key)
}

impl Vart {
    pub(super) fn new(
        params: VartParams,
        schema: Schema,
        training: Training,
        standard: TargetUnits,
        posteriors: Vec<EncodedPosterior>,
        key: Key,
    ) -> Self {
        let n_fits = posteriors.len();
        let mut model = Self {
            schema,
            training,
            standard,
            key,
            posteriors: Vec::with_capacity(n_fits),
            trees: Vec::with_capacity(n_fits),
            noise_factor: 1.0,
            calibration: NoiseCalibration::IDENTITY,
            summary: None,
            extrapolation: None,
            params,
        };
        for (at, fit) in posteriors.into_iter().enumerate() {
            let draws = FitDraws::of(at, n_fits, model.params.n_members, key);
            let EncodedPosterior { encoder, posterior } = fit;
            let trees = draw_trees(encoder, &posterior, draws.n_draws, draws.key);
            model.trees.push(trees);
            model.posteriors.push(posterior);
        }
        model
    }

    /// The parameters of the fit.
    pub fn params(&self) -> &VartParams {
        &self.params
    }

    /// Posterior mean and covariance (row-major) of the weights of fit `fit`; `None` if there is no
    /// such fit. The rules of the nodes that may split come first, then the leaves of all nodes;
    /// each has one weight per encoded input and the bias last.
    pub fn weights(&self, fit: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let posterior = &self.posteriors.get(fit)?.posterior;
        let mean = posterior.mean().iter().map(|&mean| f64::from(mean));
        Some((mean.collect(), posterior.covariance()))
    }

    /// Whether the noise scale is calibrated.
    pub(super) fn is_calibrated(&self) -> bool {
        let is_learned = self.schema.classes().is_none() && self.params.noise_scale.is_none();
        is_learned && self.params.calibrate_noise
    }

    /// Restores the model from its record.
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        let params: VartParams = params::from_record(&record.part("params")?)?;
        let headers: Vec<VartHeader> = record.part("fits")?;
        let schema = Schema::from_record(record)?;
        let n_members = params.n_members;
        if headers.is_empty() || headers.len() > n_members {
            return Err(Error::Format(format!(
                "`fits` has {} fits for {n_members} members; expected 1 to {n_members}",
                headers.len()
            )));
        }
        let noise_factor: f64 = record.part("spread")?;
        range::check("spread", noise_factor, &NOISE_FACTORS)?;
        let posteriors = headers.into_iter().enumerate();
        let posteriors: Result<Vec<_>> = posteriors
            .map(|(at, header)| header.restore(record, &schema, at))
            .collect();
        let posteriors = posteriors?;
        for fit in &posteriors {
            // the draws are many times larger than the file
            let spec = &fit.posterior.spec;
            let n_weights = spec.active(|_| true).kernel.stack.n_weights();
            reserve(&mut Vec::<f32>::new(), n_members, n_weights)?;
        }
        let model = Self::new(
            params,
            schema,
            record.part("training")?,
            TargetUnits::from_record(record)?,
            posteriors,
            record.part("key")?,
        );
        let summary: Option<TreeSummary> = record.part("summary")?;
        let is_valid = match (&summary, model.posteriors[0].spec.n_added) {
            (None, n_added) => n_added > 0,
            (Some(_), 1..) => false,
            (Some(summary), 0) => {
                let tree = MostProbableTree::new(&model.posteriors[0]);
                summary.fits(cart_target(&model.schema), &tree.layout)
            }
        };
        if !is_valid {
            return Err(Error::Format("`summary` does not fit the tree".to_owned()));
        }
        Ok(Self {
            extrapolation: Extrapolation::read(record, &model.schema)?,
            noise_factor,
            calibration: NoiseCalibration::from_record(record)?,
            summary,
            ..model
        })
    }
}

impl VartHeader {
    fn new(encoder: &Encoder, posterior: &VartPosterior) -> Self {
        let spec = posterior.spec.clone();
        Self {
            encoder: encoder.clone(),
            first: spec.first,
            added: spec.added,
            n_added: spec.n_added,
            shape: spec.shape,
            mixing_levels: spec.mixing_levels,
            law: spec.likelihood,
            beta: spec.beta,
            rank: posterior.posterior.rank,
        }
    }

    /// Whether the parts of the header fit each other and the schema.
    fn is_consistent(&self, schema: &Schema) -> bool {
        let leaf = self.shape.leaf;
        let n_channels = schema.classes().map_or(2, <[String]>::len);
        let is_classification = self.law == SoftLikelihood::Categorical;
        self.encoder.fits(schema)
            && leaf.n_inputs == self.encoder.n_inputs()
            && leaf.n_channels == n_channels
            && n_channels > 0
            && is_classification == schema.classes().is_some()
            && !(is_classification && self.shape.has_constant_scale)
            && self.n_added <= MAX_ADDED
            && (self.n_added == 0 || self.mixing_levels == 0)
            && self.mixing_levels <= MAX_DEPTH
            && self.rank <= self.shape.largest_block()
    }

    fn restore(self, record: &Record, schema: &Schema, at: usize) -> Result<EncodedPosterior> {
        if !self.is_consistent(schema) {
            return Err(Error::Format(format!(
                "the header of fit {at} does not fit its layout or the schema"
            )));
        }
        check_likelihood(self.law, self.beta)?;
        let spec = VartSpec {
            first: self.first,
            added: self.added,
            n_added: self.n_added,
            shape: self.shape,
            mixing_levels: self.mixing_levels,
            likelihood: self.law,
            beta: self.beta,
        };
        let n_weights = spec.n_weights();
        let n_values = n_weights.checked_mul(self.rank + 2);
        let n_values = n_values.ok_or_else(|| Error::Format("too many weights".to_owned()))?;
        let logits = record.f32s(&format!("splits{at}"), spec.n_logits())?;
        let posterior = LowRank {
            n_weights,
            rank: self.rank,
            values: record.f32s(&format!("fit{at}"), n_values)?.to_vec(),
            block_ends: spec.block_ends(),
        };
        let has_valid_logits = logits.iter().all(|logit| logit.abs() <= MAX_LOGIT);
        if !posterior.is_in_range() || !has_valid_logits {
            return Err(Error::Format(format!(
                "the arrays of fit {at} have weights, standard deviations or logits that are out of range"
            )));
        }
        Ok(EncodedPosterior {
            encoder: self.encoder,
            posterior: VartPosterior {
                logits: logits.to_vec(),
                spec,
                posterior,
            },
        })
    }
}

impl Model for Vart {
    fn family(&self) -> &'static str {
        "vart"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn head(&self) -> Head {
        if let Some(classes) = self.schema.classes() {
            return Head::Categorical {
                classes: classes.len(),
            };
        }
        let components = self.trees.iter().map(FittedTrees::n_components);
        Head::Normal {
            components: components.max().unwrap_or(1),
        }
    }

    fn n_members(&self) -> usize {
        self.params.n_members
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        out.shift = self.standard.shift;
        out.scale = self.standard.scale;
        let mut first = 0;
        for trees in &self.trees {
            trees.fill(rows, first, out);
            first += trees.n_draws();
        }
        if self.is_calibrated() {
            noise_calibration::apply(&self.trees, self.noise_factor, out);
            self.calibration.apply(out);
        }
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn tree_export(&self) -> Option<TreeExport> {
        self.exported()
    }

    fn structure(&self) -> Option<StructurePosterior> {
        self.structure_posterior()
    }

    fn n_nodes(&self) -> Option<f64> {
        let structure = self.structure_posterior()?;
        Some(2.0 * structure.mean_leaves() - 1.0)
    }

    fn extrapolation(&self) -> Option<&Extrapolation> {
        self.extrapolation.as_deref()
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(record)?))
    }

    fn record(&self) -> Record {
        let fits = self.trees.iter().zip(&self.posteriors);
        let headers: Vec<VartHeader> = fits
            .map(|(trees, posterior)| VartHeader::new(&trees.encoder, posterior))
            .collect();
        let mut arrays = Vec::with_capacity(2 * headers.len());
        for (at, posterior) in self.posteriors.iter().enumerate() {
            let values = posterior.posterior.values.clone();
            arrays.push((format!("fit{at}"), Array::F32(values)));
            arrays.push((format!("splits{at}"), Array::F32(posterior.logits.clone())));
        }
        let mut meta = json!({
                "schema": self.schema, "params": self.params, "training": self.training,
                "standard": self.standard, "key": self.key, "fits": headers,
                "spread": self.noise_factor, "summary": self.summary,
        });
        self.calibration.write(&mut meta);
        let record = Record {
            family: "vart".to_owned(),
            meta,
            arrays,
        };
        Extrapolation::write(self.extrapolation(), record)
    }
}
