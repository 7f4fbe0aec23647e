//! The fitted boosted model: chains of trees, the members read off them, and their distributions.

use serde_json::{Value, json};

use crate::boosting::chain::Chain;
use crate::boosting::used_thresholds::UsedThresholds;
use crate::data::schema::{FieldKind, Schema};
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::data::unseen::UnseenSubstitutes;
use crate::error::{Error, Result};
use crate::fit::Fit;
use crate::likelihood::normal::Normal;
use crate::model::{CurveUnit, Model, Training};
use crate::models::boosting::config::Members;
use crate::models::boosting::features::FeaturePipeline;
use crate::models::boosting::likelihood::BoostingLikelihood;
use crate::models::boosting::params::{SgbParams, SglbParams};
use crate::models::boosting::serialize::{decode, encode};
use crate::numerics::logspace::softmax;
use crate::params;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;
use crate::store::record::Record;
use crate::trees::column_gains::as_shares;

/// Seed of the edges that chains draw.
const EDGES: u64 = 1;
/// Most levels of a tree, as the parameters have it.
const MAX_LEVELS: usize = 16;

/// A fitted boosted model.
#[derive(Debug, Clone)]
pub struct Boosted {
    pub(super) family: &'static str,
    pub(super) schema: Schema,
    pub(super) params: Value,
    pub(super) training: Training,
    pub(super) standard: TargetUnits,
    pub(super) likelihood: BoostingLikelihood,
    pub(super) pipeline: FeaturePipeline,
    /// Step size and depth.
    pub(super) settings: (f64, usize),
    pub(super) members: Members,
    pub(super) chains: Vec<Chain>,
    pub(super) substitutes: UnseenSubstitutes,
    /// Where the thresholds of each chain stand in the gaps between training values; files of the first versions hold no key.
    pub(super) thresholds: Option<Key>,
    /// Trees after which each member is read off, by chain.
    pub(super) snapshots: Vec<Vec<usize>>,
    /// What the trees of each chain ask of a table.
    pub(super) used_thresholds: Vec<UsedThresholds>,
}

impl Boosted {
    /// The same with its members marked on the chains.
    pub(super) fn with_snapshots(mut self) -> Self {
        self.training.step = CurveUnit::Tree;
        let chains = self.chains.iter().enumerate();
        self.snapshots = chains
            .map(|(at, chain)| self.members.snapshots(chain.trees.len(), at))
            .collect();
        // the first chain has its edges in the middle, each other one somewhere in the gaps: an ensemble is unsure there
        let key = self.thresholds.unwrap_or(Key::from_seed(EDGES));
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
        let schema: Schema = record.part("schema")?;
        let kinds: Vec<Option<usize>> = schema
            .fields
            .iter()
            .map(|field| match &field.kind {
                FieldKind::Numeric => None,
                FieldKind::Categorical { levels } => Some(levels.len()),
            })
            .collect();
        let (likelihood, members): (BoostingLikelihood, Members) =
            (record.part("law")?, record.part("members")?);
        let pipeline = FeaturePipeline::decode(record, &kinds)?;
        let standard = TargetUnits::from_record(record)?;
        let classes = schema.classes().map(<[String]>::len);
        let is_sound = match likelihood {
            BoostingLikelihood::Normal { floor } => classes.is_none() && floor > 0.0,
            BoostingLikelihood::Squared { sd } => classes.is_none() && sd > 0.0,
            BoostingLikelihood::Binary => classes == Some(2),
            BoostingLikelihood::Multiclass { classes: n } => classes == Some(n),
        };
        let settings: (f64, usize) = record.part("settings")?;
        let n = members.chains;
        let is_sound = is_sound
            && settings.0 > 0.0
            && settings.0 <= 1.0
            && settings.1 <= MAX_LEVELS
            && (1..=members.total).contains(&n)
            && members.total <= 1000
            && (0.0..1.0).contains(&members.burn_in);
        if !is_sound {
            return Err(Error::Format(
                "likelihood, members and schema do not fit together".to_owned(),
            ));
        }
        let chains = (0..n).map(|at| decode(record, at, likelihood.n_outputs(), &pipeline.cuts));
        let chains = chains.collect::<Result<_>>()?;
        let model = Self {
            family,
            schema,
            params: with_new_names(family, &record.part("params")?)?,
            training: record.part("training")?,
            standard,
            likelihood,
            pipeline,
            settings,
            members,
            chains,
            substitutes: UnseenSubstitutes::from_record(record)?,
            thresholds: record.part("thresholds")?,
            snapshots: Vec::new(),
            used_thresholds: Vec::new(),
        };
        Ok(model.with_snapshots())
    }

    fn fill(&self, out: &mut Block, member: usize, output: usize, first: usize, values: &[f64]) {
        match self.likelihood {
            BoostingLikelihood::Normal { floor } if output == 1 => {
                let at = out.at(member, 0) + first;
                Normal { floor }.scales(values, &mut out.sd[at..at + values.len()]);
            }
            BoostingLikelihood::Normal { .. } | BoostingLikelihood::Squared { .. } => {
                let at = out.at(member, 0) + first;
                out.mean[at..at + values.len()].copy_from_slice(values);
                out.weight[at..at + values.len()].fill(1.0);
                if let BoostingLikelihood::Squared { sd } = self.likelihood {
                    out.sd[at..at + values.len()].fill(sd);
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
        out.shift = self.standard.shift;
        out.scale = self.standard.scale;
        let derived = self.pipeline.derive(rows);
        let rows = &derived
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
            for (test, &gain) in tree.structure.conditions().iter().zip(&tree.gains) {
                // columns that are looked at together share what they gain
                let columns = &sources[test.column];
                for &column in columns {
                    gains[column] += f64::from(gain).max(0.0) / columns.len() as f64;
                }
            }
        }
        Some(as_shares(gains))
    }

    fn record(&self) -> Record {
        let (statistics, mut arrays) = self.pipeline.encode();
        for (at, chain) in self.chains.iter().enumerate() {
            arrays.extend(encode(chain, at));
        }
        Record {
            family: self.family.to_owned(),
            meta: json!({
                "schema": self.schema, "params": self.params, "training": self.training, "standard": self.standard,
                "law": self.likelihood, "cuts": self.pipeline.cuts, "statistics": statistics, "members": self.members,
                "settings": self.settings, "unseen": self.substitutes.stored(), "thresholds": self.thresholds,
            }),
            arrays,
        }
    }
}

/// The parameters of a record by their present names.
fn with_new_names(family: &str, params: &Value) -> Result<Value> {
    let params = if family == SgbParams::FAMILY {
        serde_json::to_value(params::from_record::<SgbParams>(params)?)
    } else {
        serde_json::to_value(params::from_record::<SglbParams>(params)?)
    };
    params.map_err(|error| Error::Format(error.to_string()))
}
