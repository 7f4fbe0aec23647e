//! The fitted boosted model: chains of trees, and the distributions of the members taken from them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::boosting::chain::Chain;
use crate::boosting::used_thresholds::UsedThresholds;
use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::extrapolation::Extrapolation;
use crate::fit::Fit;
use crate::likelihood::normal::Normal;
use crate::model::{CurveUnit, Model, Training};
use crate::models::boosting::config::{Hyperparameters, Members};
use crate::models::boosting::features::FeaturePipeline;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::params::{SgbParams, SglbParams};
use crate::models::boosting::serialize::{decode, encode};
use crate::numerics::logspace::softmax;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::predictive::noise_calibration::NoiseCalibration;
use crate::rng::Key;
use crate::store::record::Record;
use crate::trees::column_gains::as_shares;
use crate::trees::training_set::levels_of;

/// Seed of the thresholds of models from files without a key for them (the first versions).
const DEFAULT_THRESHOLD_SEED: u64 = 1;
/// Largest depth of a tree and largest number of members: the bounds of the parameters.
const MAX_DEPTH: usize = 16;
const MAX_MEMBERS: usize = 1000;
/// Largest factor by which the sum of the first trees of a shrunken chain is multiplied.
const MAX_FACTOR: f64 = 1e30;

/// A fitted boosted model.
#[derive(Debug, Clone)]
pub struct Boosted {
    pub(super) family: &'static str,
    pub(super) schema: Schema,
    pub(super) params: Value,
    pub(super) training: Training,
    pub(super) target_units: TargetUnits,
    pub(super) likelihood: BoostingLikelihood,
    /// Calibration of the noise of a regression.
    pub(super) calibration: NoiseCalibration,
    pub(super) pipeline: FeaturePipeline,
    pub(super) hyperparameters: Hyperparameters,
    pub(super) members: Members,
    pub(super) chains: Vec<Chain>,
    pub(super) substitutes: UnseenSubstitutes,
    /// Key of the random thresholds between neighbouring training values; `None` in files of the
    /// first versions.
    pub(super) threshold_key: Option<Key>,
    /// Number of trees of each member, by chain.
    pub(super) snapshots: Vec<Vec<usize>>,
    /// Thresholds that the trees of each chain use.
    pub(super) used_thresholds: Vec<UsedThresholds>,
    pub(super) extrapolation: Option<Arc<Extrapolation>>,
}

impl Boosted {
    /// Fills in the snapshots and the used thresholds, which are computed from the other fields.
    pub(super) fn with_snapshots(mut self) -> Self {
        self.training.step = CurveUnit::Tree;
        let chains = self.chains.iter().enumerate();
        self.snapshots = chains
            .map(|(at, chain)| self.members.snapshots(chain.trees.len(), at))
            .collect();
        // between two neighbouring training values, the first chain has its threshold in the middle
        // and the others at random, so that the members disagree there
        let key = self
            .threshold_key
            .unwrap_or(Key::from_seed(DEFAULT_THRESHOLD_SEED));
        let cuts = &self.pipeline.cuts;
        let chains = self.chains.iter().enumerate();
        let used_thresholds = chains.map(|(at, chain)| match at {
            0 => UsedThresholds::new(chain, cuts, self.substitutes, at),
            _ => UsedThresholds::new(
                chain,
                &cuts.jittered(key.child(at as u64)),
                self.substitutes,
                at,
            ),
        });
        self.used_thresholds = used_thresholds.collect();
        self
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(family: &'static str, record: &Record) -> Result<Self> {
        let schema = Schema::from_record(record)?;
        let (likelihood, members): (BoostingLikelihood, Members) =
            (record.part("law")?, record.part("members")?);
        let pipeline = FeaturePipeline::decode(record, &levels_of(&schema))?;
        let target_units = TargetUnits::from_record(record)?;
        let classes = schema.classes().map(<[String]>::len);
        likelihood.check_ranges()?;
        let fits_schema = match likelihood {
            BoostingLikelihood::Normal { .. } | BoostingLikelihood::Squared { .. } => {
                classes.is_none()
            }
            BoostingLikelihood::Binary => classes == Some(2),
            BoostingLikelihood::Multiclass { classes: n } => classes == Some(n),
        };
        let hyperparameters: Hyperparameters = record.part("settings")?;
        let is_valid = fits_schema
            && hyperparameters.learning_rate > 0.0
            && hyperparameters.learning_rate <= 1.0
            && hyperparameters.max_depth <= MAX_DEPTH
            && (1..=members.total).contains(&members.chains)
            && members.total <= MAX_MEMBERS
            && (0.0..1.0).contains(&members.burn_in);
        if !is_valid {
            return Err(Error::Format(
                "the likelihood does not fit the schema, or the learning rate, the depth or the members are out of range"
                    .to_owned(),
            ));
        }
        let chains = (0..members.chains)
            .map(|at| decode(record, at, likelihood.n_outputs(), &pipeline.cuts));
        let chains = chains.collect::<Result<_>>()?;
        let model = Self {
            extrapolation: Extrapolation::read(record, &schema)?,
            family,
            schema,
            params: with_current_names(family, &record.part("params")?)?,
            training: record.part("training")?,
            target_units,
            likelihood,
            calibration: NoiseCalibration::from_record(record)?,
            pipeline,
            hyperparameters,
            members,
            chains,
            substitutes: UnseenSubstitutes::from_record(record)?,
            threshold_key: record.part("thresholds")?,
            snapshots: Vec::new(),
            used_thresholds: Vec::new(),
        };
        let model = model.with_snapshots();
        if !model.has_valid_shrinkage() {
            return Err(Error::Format(
                "the shrinkage of a chain is too small for its number of trees".to_owned(),
            ));
        }
        Ok(model)
    }

    /// Whether the factors of all members are moderate; otherwise their trees vanish in the sum of
    /// the whole chain, from which they are computed.
    pub(super) fn has_valid_shrinkage(&self) -> bool {
        let mut chains = self.chains.iter().zip(&self.snapshots);
        chains.all(|(chain, snapshots)| {
            let first = snapshots.iter().copied().min().unwrap_or(chain.trees.len());
            chain.shrinkage > 0.0 && chain.factor(first) <= MAX_FACTOR
        })
    }

    /// Writes one raw output of a member, for rows from `first` on, as parameters of its
    /// distribution. Logits of more than two classes are written as they are: they need a softmax
    /// over all outputs.
    fn fill(&self, out: &mut Block, member: usize, output: usize, first: usize, values: &[f64]) {
        match self.likelihood {
            BoostingLikelihood::Normal { floor } if output == 1 => {
                let at = out.at(member, 0) + first;
                Normal { floor }.scales(values, &mut out.normal_mut().sd[at..at + values.len()]);
            }
            BoostingLikelihood::Normal { .. } | BoostingLikelihood::Squared { .. } => {
                let at = out.at(member, 0) + first;
                out.normal_mut().mean[at..at + values.len()].copy_from_slice(values);
                out.weight[at..at + values.len()].fill(1.0);
                if let BoostingLikelihood::Squared { sd } = self.likelihood {
                    out.normal_mut().sd[at..at + values.len()].fill(sd);
                }
            }
            BoostingLikelihood::Binary => {
                let (no, yes) = (out.at(member, 0) + first, out.at(member, 1) + first);
                for (at, &logit) in values.iter().enumerate() {
                    let p = 1.0 / (1.0 + (-logit).exp());
                    out.weight[no + at] = 1.0 - p;
                    out.weight[yes + at] = p;
                }
            }
            BoostingLikelihood::Multiclass { .. } => {
                let at = out.at(member, output) + first;
                out.weight[at..at + values.len()].copy_from_slice(values);
            }
        }
    }
}

impl Model for Boosted {
    fn family(&self) -> &'static str {
        self.family
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn head(&self) -> Head {
        match self.schema.classes() {
            Some(classes) => Head::Categorical {
                classes: classes.len(),
            },
            None => Head::Normal { components: 1 },
        }
    }

    fn n_members(&self) -> usize {
        self.members.total
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        out.shift = self.target_units.shift;
        out.scale = self.target_units.scale;
        let encoded = self.pipeline.target_encoded(rows);
        let rows = &encoded
            .as_ref()
            .map_or_else(|| rows.clone(), |table| table.rows(0..table.n_rows()));
        let mut member = 0;
        for (at, (chain, snapshots)) in self.chains.iter().zip(&self.snapshots).enumerate() {
            let bins = self.used_thresholds[at].of(rows);
            chain.forward(&bins, snapshots, |snapshot, output, first, values| {
                self.fill(out, member + snapshot, output, first, values);
            });
            member += snapshots.len();
        }
        out.pad();
        self.calibration.apply(out);
        if let BoostingLikelihood::Multiclass { classes } = self.likelihood {
            let stride = out.stride;
            for member in out.weight.chunks_exact_mut(classes * stride) {
                softmax(member, stride);
            }
        }
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn gains(&self) -> Option<Vec<f64>> {
        let mut gains = vec![0.0; self.schema.fields.len()];
        let sources = self.pipeline.sources(gains.len());
        for tree in self.chains.iter().flat_map(|chain| &chain.trees) {
            for (condition, &gain) in tree.structure.conditions().iter().zip(&tree.gains) {
                // the columns of a category cross share its gain
                let columns = &sources[condition.column];
                for &column in columns {
                    gains[column] += f64::from(gain).max(0.0) / columns.len() as f64;
                }
            }
        }
        Some(as_shares(gains))
    }

    fn extrapolation(&self) -> Option<&Extrapolation> {
        self.extrapolation.as_deref()
    }

    fn restored(&self, record: &Record) -> Result<Box<dyn Model>> {
        Ok(Box::new(Self::from_record(self.family, record)?))
    }

    fn record(&self) -> Record {
        let (encoder, mut arrays) = self.pipeline.encode();
        for (at, chain) in self.chains.iter().enumerate() {
            arrays.extend(encode(chain, at));
        }
        let mut meta = json!({
                "schema": self.schema, "params": self.params, "training": self.training, "standard": self.target_units,
                "law": self.likelihood, "cuts": self.pipeline.cuts, "statistics": encoder, "members": self.members,
                "settings": self.hyperparameters, "unseen": self.substitutes.stored(), "thresholds": self.threshold_key,
        });
        self.calibration.write(&mut meta);
        let record = Record {
            family: self.family.to_owned(),
            meta,
            arrays,
        };
        Extrapolation::write(self.extrapolation(), record)
    }
}

/// The parameters of a record with former parameter names replaced by the current ones.
fn with_current_names(family: &str, params: &Value) -> Result<Value> {
    let params = if family == SgbParams::FAMILY {
        serde_json::to_value(params::from_record::<SgbParams>(params)?)
    } else {
        serde_json::to_value(params::from_record::<SglbParams>(params)?)
    };
    params.map_err(|error| Error::Format(error.to_string()))
}
